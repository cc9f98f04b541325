"""Where a release is written: under a name that nobody reads until the promise was counted on what was written.

A DataFrame is only a recipe: a release that stayed one would be drawn again at every action, and what was counted would
not be what is read. So it is written, read again, counted, and only then is it published.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from duckanon.spark.frames import column

_TABLE = re.compile(r"\w+(\.\w+){0,2}")
_ORDER = "_duckanon_order"


class Target:
    """The name of a release: a path, which has a slash, or a table of the catalog, all that Connect can rename."""

    def __init__(self, session: SparkSession, name: object) -> None:
        if not isinstance(name, str) or not name:
            raise ValueError(f"to must be a path or the name of a table; got {name!r}.")
        self._session = session
        self._name = name.rstrip("/") if "/" in name else name
        self._drafts: list[str] = []
        self._is_table = "/" not in name
        if self._is_table and not _TABLE.fullmatch(name):
            raise ValueError(f"to must be a path or the name of a table such as clinic.released; got {name!r}.")
        if not self._is_table and not hasattr(session, "_jsparkSession"):
            raise ValueError(
                "to must be the name of a table over Spark Connect, where no file can be renamed; got a path."
            )
        if self._is_table:
            is_taken = session.catalog.tableExists(name)
        else:
            files, path = self._files()
            is_taken = files.exists(path(self._name))
        if is_taken:
            raise ValueError("to must be new: there is something of that name, and it is not replaced.")

    def draft(self, rows: DataFrame) -> DataFrame:
        """Write rows under a temporary name, and return them as read from there."""
        token = os.urandom(8).hex()
        if self._is_table:
            self._drafts.append(f"{self._name}_duckanon_{token}")
            rows.write.format("parquet").saveAsTable(self._drafts[-1])
            return self._session.table(self._drafts[-1])
        folder, _, _ = self._name.rpartition("/")
        self._drafts.append(f"{folder}/_duckanon_{token}")  # Spark reads no names that begin so
        rows.write.parquet(self._drafts[-1])
        return self._session.read.schema(rows.schema).parquet(self._drafts[-1])

    def publish(self) -> DataFrame:
        """Publish the last draft as the release, and return it."""
        draft = self._drafts[-1]
        if self._is_table:
            self._session.sql(f"ALTER TABLE {_quote(draft)} RENAME TO {_quote(self._name)}")
            self._drafts.pop()
            return self._session.table(self._name)
        files, path = self._files()
        if files.exists(path(self._name)) or not files.rename(path(draft), path(self._name)):
            raise ValueError("to must be new: something got that name in the meantime, and it is not replaced.")
        self._drafts.pop()
        return self._session.read.parquet(self._name)

    def clear(self) -> None:
        """Delete all drafts that have not become a release."""
        for draft in self._drafts:
            if self._is_table:
                self._session.sql(f"DROP TABLE IF EXISTS {_quote(draft)}")
            else:
                files, path = self._files()
                files.delete(path(draft), True)
        self._drafts.clear()

    def _files(self) -> tuple[Any, Callable[[str], Any]]:
        """Return the file system of the target, and what makes its paths: the one thing that DataFrames cannot do."""
        path = self._session._jvm.org.apache.hadoop.fs.Path
        configuration = self._session._jsparkSession.sessionState().newHadoopConf()
        return path(self._name).getFileSystem(configuration), path


@contextmanager
def target_called(session: SparkSession, name: object) -> Iterator[Target]:
    """Open a target, and delete what has not become a release, however it ends."""
    target = Target(session, name)
    try:
        yield target
    finally:
        target.clear()


def shuffle(rows: DataFrame) -> DataFrame:
    """Return rows in an order that depends only on their values and a number that is not kept.

    A task that is run again puts its rows in the same places: with random numbers, some rows could be written twice and
    others never. Spark's hash of (NULL, 1) is that of (1, NULL), so that it must be told which are NULL.
    """
    salt = int.from_bytes(os.urandom(8), "big", signed=True)
    cells = [column(name) for name in rows.columns]
    order = F.xxhash64(F.lit(salt), *(part for cell in cells for part in (cell, cell.isNull())))
    placed = rows.withColumn(_ORDER, order).repartition(F.col(_ORDER)).sortWithinPartitions(_ORDER)
    return placed.drop(_ORDER)


def _quote(name: str) -> str:
    return ".".join(f"`{part}`" for part in name.split("."))

"""The workspace of a large release: a database, a folder for parts, and the target under a hidden name.

The parts hold originals. Their folder is the process's own, and is removed when the release ends; after a crash the
next release to the same target removes it.

The memory that a release may take, shared between DuckDB and the parts.
"""

from __future__ import annotations

import glob
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import duckdb
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq

import duckanon
from duckanon._bridge import sql
from duckanon._core.common import progress
from duckanon._core.common.outbox import Outbox
from duckanon._core.common.own_files import temporary_folder
from duckanon._core.common.resources import free_memory, measure_memory, read_memory

_DATABASE_SHARE = 0.4
"""Share of the free memory that DuckDB may take while it routes and counts; parts are made when it rests."""

_LEAST_FREE = 200 * 10**6
"""Memory of a release besides Python and its libraries: DuckDB's buffers, and one partition of a useful size."""

_MOST_KEPT = 200 * 10**6
"""Bytes that are taken for what releases keep, at most: whatever else a process got meanwhile is not theirs."""

_kept = 0
"""Bytes that releases of this process keep for later ones: libraries, and what allocators do not give back."""


@dataclass(frozen=True)
class Budget:
    """The memory of a release, in bytes."""

    database: int  # that DuckDB may take
    part: int  # that the making of one part may take


def budget(memory: str) -> Budget:
    """Share the memory that the process may take between DuckDB and the parts."""
    total, used = read_memory(memory), bytes_before()
    free = total - used
    if free < _LEAST_FREE:
        least = (used + _LEAST_FREE) // 10**6 + 1
        raise ValueError(f"memory must be at least {least}MB here; got {memory}.")
    return Budget(int(free * _DATABASE_SHARE), int(free * (1 - _DATABASE_SHARE)))


def bytes_before() -> int:
    """Return the bytes that the process has, without those that its releases keep and use again.

    The first release of a process counts its libraries as its own, and so do the others: what is enough once is enough
    again.
    """
    return max(measure_memory() - _kept, 0)


@contextmanager
def counting_what_is_kept() -> Iterator[None]:
    """Count what a release keeps for later ones when the block ends."""
    global _kept
    kept, before = _kept, measure_memory()
    try:
        yield
    finally:
        free_memory()
        _kept = min(max(kept + measure_memory() - before, _kept), _MOST_KEPT)


Place: TypeAlias = str | os.PathLike[str]
Target: TypeAlias = Place | tuple[Place, str] | None
Rows: TypeAlias = pa.Table | pa.RecordBatch | pads.Dataset | pa.RecordBatchReader | duckdb.DuckDBPyRelation
Source: TypeAlias = Place | tuple[Place, str] | Rows
"""Paths, with the name of a table if they are those of DuckDB files, or rows in Arrow or DuckDB."""

SOURCE = "source"
"""The name of the source's rows in the database."""

_OPEN: dict[duckdb.DuckDBPyConnection, threading.Event] = {}
"""The databases of all releases of this process, and whether they were asked to stop."""

_DATABASES = (".duckdb", ".db", ".ddb")
_BATCH = 100_000
_CATALOG = "source_file"
_TARGET = "target_file"


@dataclass(frozen=True)
class Workspace:
    """Connection, folder and files of a release."""

    con: duckdb.DuckDBPyConnection  # with the source's rows as `SOURCE`
    folder: Path  # of parts
    hidden: Path  # where the release is written before it has its name
    table: str | None  # the name of the table in a target that is a DuckDB file; None: a Parquet file
    memory: Budget
    is_named: bool  # whether there is a target

    def partition(self, query: str, folder: str, column: str, count: int) -> list[list[Path]]:
        """Write the rows of a query by the number, from 0 to count - 1, in a column; return the files of each."""
        into = self.folder / folder
        self.con.execute("SET preserve_insertion_order = false").fetchall()
        self.con.execute(
            f"COPY ({query}) TO {sql.literal(str(into))} (FORMAT parquet, PARTITION_BY ({column}), COMPRESSION lz4)"
        ).fetchall()
        self.con.execute("SET preserve_insertion_order = true").fetchall()
        return [sorted((into / f"{column}={number}").glob("*.parquet")) for number in range(count)]

    def write_rows(self, rows: Path) -> str:
        """Write the rows of a Parquet file to the hidden target, and return what they are read from there by."""
        if self.table is None:
            os.replace(rows, self.hidden) if rows != self.hidden else None
            return f"read_parquet({sql.literal(str(self.hidden))})"
        name = sql.quote(self.table)
        self.con.execute(f"ATTACH {sql.literal(str(self.hidden))} AS {_TARGET}").fetchall()
        self.con.execute(
            f"CREATE TABLE {_TARGET}.main.{name} AS FROM read_parquet({sql.literal(str(rows))})"
        ).fetchall()
        rows.unlink()
        self.con.execute(f"DETACH {_TARGET}").fetchall()
        self.con.execute(f"ATTACH {sql.literal(str(self.hidden))} AS {_TARGET} (READ_ONLY)").fetchall()
        return f"{_TARGET}.main.{name}"

    def reader(self) -> pa.RecordBatchReader | None:
        """Open a release without a target: its file is unlinked with the folder, and lasts as long as the reader."""
        if self.is_named:
            return None
        file = pq.ParquetFile(self.hidden)
        return pa.RecordBatchReader.from_batches(file.schema_arrow, file.iter_batches(_BATCH))


@contextmanager
def workspace(
    source: Source, target: Target, memory: str, temporary: Place | None = None, replace: bool = False
) -> Iterator[Workspace]:
    """Open a source and a place to write to; the target is published when the block ends without an error.

    Args:
        source: The path of Parquet files; the path of a DuckDB file and the name of a table, as a tuple; or a pyarrow
            Table, RecordBatch, Dataset or RecordBatchReader, or a DuckDB relation.
        target: The path of a Parquet file; that of a DuckDB file and the name of its table, as a tuple; or None for a
            release without a name, which is read by the `reader` of what is returned.
        memory: What the process may take, such as '2GB'.
        temporary: The folder in which that of the parts is made; None: that of temporary files.
        replace: Whether a file at the target may be there, and gives way to the release.
    """
    shares = budget(memory)
    where = None if temporary is None else Path(temporary)
    if where is not None and not where.is_dir():
        raise ValueError(f"temporary must be a folder; got {where}.")
    with counting_what_is_kept(), _places(target, where, replace) as (folder, hidden, table):
        con = duckanon.connect()
        _OPEN[con] = threading.Event()
        try:
            _set(con, shares, folder)
            with sql.watch_files(con) as so_far:
                _open(con, source, folder)
                if target is not None:
                    con.execute(f"DESCRIBE {SOURCE}").fetchall()
                    _check_apart(_place("target", target)[0], so_far() | _files_of(source))
            with progress.watch(_asking(_OPEN[con], progress.get_watcher())):
                yield Workspace(con, folder, hidden, table, shares, target is not None)
        finally:
            del _OPEN[con]
            con.close()


@contextmanager
def _places(target: Target, where: Path | None, is_replacing: bool) -> Iterator[tuple[Path, Path, str | None]]:
    """Give the folder of parts, the hidden target and its table; the target is published in the end."""
    if target is None:
        with temporary_folder(where) as folder:
            yield folder, folder / "released.parquet", None
        return
    path, table = _place("target", target)
    with Outbox([path], spill_in=where) as outbox:
        _refuse_existing(path, is_replacing)
        yield outbox.spill, outbox.beside(path), table
        _refuse_existing(path, is_replacing)
        outbox.publish()


def _refuse_existing(target: Path, is_replacing: bool) -> None:
    if not is_replacing and os.path.lexists(target):
        raise ValueError(f"target must be new, and {target} is there already; name another, or give replace=True.")


def _files_of(source: Source) -> set[Path]:
    """Return the files of a source that may not be opened before they are read: those of a folder, for one."""
    if isinstance(source, str | os.PathLike):
        place = Path(source)
        files = glob.glob(str(place / "**" / "*.parquet") if place.is_dir() else str(place), recursive=True)
    else:
        files = getattr(source, "files", [])  # of a Dataset
    return {Path(file) for file in files}


def _check_apart(target: Path, read: Iterable[Path]) -> None:
    """Refuse to write a file that is read, by whatever name it is reached."""
    if target.exists() and any(path.exists() and os.path.samefile(path, target) for path in read):
        raise ValueError(f"target must be another file than the source; got {target}.")


def interrupt_all() -> None:
    """Stop all releases of this process, from another thread; previous releases stay in place."""
    for con, is_stopped in list(_OPEN.items()):
        is_stopped.set()
        con.interrupt()


def _asking(is_stopped: threading.Event, outer: Callable[[], None] | None) -> Callable[[], None]:
    def ask() -> None:
        if outer is not None:
            outer()
        if is_stopped.is_set():
            raise progress.StoppedError

    return ask


def _set(con: duckdb.DuckDBPyConnection, memory: Budget, folder: Path) -> None:
    for name, value in {
        "memory_limit": f"{memory.database}B",
        "temp_directory": str(folder / "spilled"),
        "enable_progress_bar": False,
        "python_enable_replacements": False,
        "partitioned_write_flush_threshold": 8192,  # rows that a part has in memory before they are written
    }.items():
        con.execute(f"SET {name} = {sql.literal(value)}").fetchall()


def _place(parameter: str, place: object) -> tuple[Path, str | None]:
    """Read a path, or a path and the name of a table."""
    path, table = place if isinstance(place, tuple) and len(place) == 2 else (place, None)
    if not isinstance(path, str | os.PathLike) or not (table is None or isinstance(table, str)):
        raise ValueError(
            f"{parameter} must be the path of a Parquet file, or that of a DuckDB file and the name of a table; "
            f"got {type(place).__name__}."
        )
    is_database = str(path).lower().endswith(_DATABASES)
    if is_database != (table is not None):
        raise ValueError(
            f"{parameter} must have the name of a table if it is a DuckDB file, ('people.duckdb', 'visits'), and none "
            f"else; got {place}."
        )
    if not is_database and not str(path).lower().endswith(".parquet") and parameter == "target":
        raise ValueError(f"target must end in .parquet, or be a DuckDB file and the name of a table; got {path}.")
    return Path(path), table


def _open(con: duckdb.DuckDBPyConnection, source: Source, folder: Path) -> None:
    """Make the source's rows readable under the name of `SOURCE`, repeatedly."""
    if isinstance(source, str | os.PathLike | tuple):
        path, table = _place("source", source)
        place = sql.literal(str(path))
        try:
            if table is not None:
                con.execute(f"ATTACH {place} AS {_CATALOG} (READ_ONLY)").fetchall()
                con.execute(f"CREATE VIEW {SOURCE} AS FROM {_CATALOG}.{sql.quote(table)}").fetchall()
            else:
                files = sql.literal(str(path / "**" / "*.parquet")) if path.is_dir() else place
                con.execute(f"CREATE VIEW {SOURCE} AS FROM read_parquet({files})").fetchall()
        except duckdb.Error as error:
            raise OSError(f"{path}: it cannot be read ({sql.reason(error)}).") from None
        return
    if isinstance(source, duckdb.DuckDBPyRelation):
        source = arrow_reader(source, _BATCH)
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    if isinstance(source, pa.Table | pads.Dataset):
        con.register(SOURCE, source)
    elif isinstance(source, pa.RecordBatchReader):  # it can be read once, and is read twice
        kept = sql.literal(str(folder / "source.parquet"))
        con.register("reader", source)
        con.execute(f"COPY reader TO {kept} (FORMAT parquet)").fetchall()
        con.unregister("reader")
        con.execute(f"CREATE VIEW {SOURCE} AS FROM read_parquet({kept})").fetchall()
    else:
        raise ValueError(
            "source must be a path, a path and the name of a table, a pyarrow Table, RecordBatch, Dataset or "
            f"RecordBatchReader, or a DuckDB relation; got {type(source).__name__}."
        )


def arrow_reader(relation: duckdb.DuckDBPyRelation, batch_rows: int) -> pa.RecordBatchReader:
    """Read a relation some rows at a time, under the name that DuckDB's version has for it."""
    read = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
    return read(batch_rows)

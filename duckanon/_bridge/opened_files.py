"""The files that DuckDB opens for statements: asked of DuckDB, since a query can name a file in many ways."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

_OPENED = re.compile(r'\{"fs":"[^"]*","path":"(?P<path>.*)","op":"OPEN".*\}', re.DOTALL)
"""A line of DuckDB's log: it looks like JSON, but quotes in paths are not escaped."""


@contextmanager
def opened_files(con: duckdb.DuckDBPyConnection) -> Iterator[Callable[[], set[Path]]]:
    """Watch which files a database opens, as long as the block lasts; give a function that returns those so far.

    DuckDB's log has every path, through views, expressions, globs, `~` and `file://`, as the file system is asked for
    it. It costs nothing that could be measured (20 million rows of Parquet: 170 lines). The log is one for all
    connections of a database, which must be ours, and is empty afterwards.
    """
    con.execute("CALL truncate_duckdb_logs()").fetchall()
    con.execute("CALL enable_logging('FileSystem', level = 'trace')").fetchall()

    def so_far() -> set[Path]:
        lines = con.execute("SELECT DISTINCT message FROM duckdb_logs() WHERE type = 'FileSystem'").fetchall()
        return {Path(found["path"]) for (line,) in lines if (found := _OPENED.fullmatch(line))}

    try:
        yield so_far
    finally:
        with contextlib.suppress(duckdb.Error):  # an interrupted connection is closed soon
            con.execute("CALL disable_logging()").fetchall()
            con.execute("CALL truncate_duckdb_logs()").fetchall()

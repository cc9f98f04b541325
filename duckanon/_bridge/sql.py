"""Values written as SQL, what a connection tells, and DuckDB's errors without what they quote."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import duckdb

from duckanon._bridge import errors
from duckanon._bridge.duckdb_messages import without_values
from duckanon._bridge.sql_text import literal, quote, quote_all, structure

__all__ = [
    "Connection",
    "bare",
    "columns",
    "fetch_row",
    "literal",
    "quote",
    "quote_all",
    "reason",
    "structure",
    "watch_files",
]

Connection: TypeAlias = duckdb.DuckDBPyConnection

_OPENED = re.compile(r'\{"fs":"[^"]*","path":"(?P<path>.*)","op":"OPEN".*\}', re.DOTALL)
"""A line of DuckDB's log: it looks like JSON, but quotes in paths are not escaped."""


def columns(con: Connection, table: str) -> dict[str, str]:
    """Return the columns of a table with their types."""
    return {row[0]: str(row[1]) for row in con.execute(f"DESCRIBE FROM {quote(table)}").fetchall()}


def fold_name(name: str) -> bytes:
    """Return a name as DuckDB compares names: in lower case, of ASCII's letters only."""
    return name.encode().lower()


def fetch_row(con: Connection, query: str) -> tuple[Any, ...]:
    """Return the only row of a query."""
    rows: list[tuple[Any, ...]] = con.execute(query).fetchall()
    return rows[0]


def bare(query: str) -> str:
    """Return a query without the comments and semicolons at its end, so that it can stand in brackets."""
    encoded = query.encode()
    end = len(encoded)
    for start, kind in reversed(duckdb.tokenize(query)):
        if kind != duckdb.token_type.comment and encoded[start:end].strip() != b";":
            break
        end = start
    return encoded[:end].decode().strip()


def reason(error: BaseException) -> str:
    """Say why something failed, without a full stop and without what DuckDB quotes: a value is a person's.

    Our own functions name no person's value, nor do errors of the file system; of what Python raises beside them only
    the kind is told.
    """
    if isinstance(error, OSError):
        return " ".join(str(error).split()).rstrip(".")
    message = errors.plain(errors.without_json(errors.plain(BaseException.__str__(error))))
    if re.match(r"anon(?:\.\w+)?: ", message):
        return " ".join(message.split()).rstrip(".")
    return without_values(message) if isinstance(error, duckdb.Error) else type(error).__name__


@contextlib.contextmanager
def watch_files(con: Connection) -> Iterator[Callable[[], set[Path]]]:
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

"""Where the tables of a job are: in memory, or, where memory is given, in a file of the job's temporary folder."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb

from duckanon._bridge import sql
from duckanon._core.common.memory import bytes_of, resident
from duckanon.job.errors import PolicyError

_CATALOG = "job_tables"
_RESTING = "64MB"
"""Memory limit of the job's database while partitions are processed, which need the memory themselves."""


@dataclass(frozen=True)
class Storage:
    """The memory limit of the tables of a job."""

    schema: str  # the schema in which they are made
    folder: Path  # the job's temporary folder, in which originals may be
    memory: str | None  # what the process may take, such as '2GB'; None: nothing was said
    begun_with: int  # bytes that the process had before it read anything


@contextmanager
def open_storage(con: sql.Connection, memory: str | None, folder: Path) -> Iterator[Storage]:
    """Make the place of the job's tables; where memory is given, DuckDB takes its share and spills beyond."""
    if memory is None:
        yield Storage("memory.main", folder, None, 0)
        return
    from duckanon.large.memory import budget

    begun_with = resident()
    try:
        share = budget(memory).database
    except ValueError as error:
        raise PolicyError(str(error)) from None
    before = sql.one(con, "SELECT current_setting('memory_limit')")[0]
    con.execute(f"ATTACH {sql.literal(str(folder / 'job.duckdb'))} AS {_CATALOG}").fetchall()
    try:
        con.execute(f"SET memory_limit = '{share}B'").fetchall()
        yield Storage(f"{_CATALOG}.main", folder, memory, begun_with)
    finally:
        with contextlib.suppress(duckdb.Error):  # an interrupted connection is closed soon
            con.execute(f"SET memory_limit = '{before}'").fetchall()
            con.execute("USE memory.main").fetchall()
            con.execute(f"DETACH {_CATALOG}").fetchall()


@contextmanager
def resting(con: sql.Connection) -> Iterator[None]:
    """Let the job's database give its memory back, as long as the block lasts."""
    limit = sql.one(con, "SELECT current_setting('memory_limit')")[0]
    con.execute(f"SET memory_limit = '{_RESTING}'").fetchall()
    yield
    con.execute(f"SET memory_limit = '{limit}'").fetchall()


def widen(con: sql.Connection, memory: str) -> None:
    """Let the job's database take all that is free: a function that works in memory returns its rows at once."""
    free = max(bytes_of(memory) - resident(), bytes_of(_RESTING))
    con.execute(f"SET memory_limit = '{free}B'").fetchall()

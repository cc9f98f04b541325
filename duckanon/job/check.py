"""A policy checked without a release: by itself, and against the columns of its sources."""

from __future__ import annotations

from pathlib import Path

import duckdb

from duckanon._bridge import sql
from duckanon.job import consistency, methods, policy_file, refusals, sources
from duckanon.job.errors import PolicyError
from duckanon.job.linked_consistency import uncounted
from duckanon.job.places import originals, places, target_name
from duckanon.job.policy import LEFT_OUT
from duckanon.job.policy_file import PolicyFile
from duckanon.job.promise_claims import counted_promises
from duckanon.job.run import connection


def check_policy(policy: str | Path, with_data: bool = True) -> list[str]:
    """Return what a policy would do, a line a table; raises the job's errors where it is wrong.

    With data, a sample of the rows is read, and columns are named that the release would refuse since they narrow down
    others; without, only the names of the columns are.
    """
    file = policy_file.read(policy)
    consistency.check(file)
    read = originals(file, places(file))
    con = connection()
    try:
        lines, refused = [], []
        for number, (name, table) in enumerate(file.policy.tables.items(), 1):
            try:
                with read.watched(con):
                    files = sources.files_of(file, table.source)
                    most, unread = refusals.MOST_ROWS if with_data else 0, table.named(*LEFT_OUT)
                    query = sources.open_source(con, table.source, files, unread=unread, limit=most).query
                    types = sources.checked_columns(con, file, name, query)
                    tells_more = uncounted(con, file, name, types, query if with_data else None)
                if tells_more:
                    refused.append(tells_more)
                con.execute("USE memory.main").fetchall()
                if with_data and (narrowed := _narrowed(con, file, name, number, files)):
                    refused.append(narrowed)
            except duckdb.Error as error:
                raise sources.unreadable(table.source, error) from None
            shown, promised = target_name(table.target), ", ".join(counted_promises(table))
            lines.append(f"{name}: {table.method.name} to {shown}; promises {promised}")
        if refused:
            raise PolicyError("\n".join(map(str, refused)))
        return lines
    finally:
        con.close()


def _narrowed(con: sql.Connection, file: PolicyFile, name: str, number: int, files: list[Path]) -> PolicyError | None:
    """Name the columns that the release would refuse, since they narrow down others."""
    table = file.policy.tables[name]
    kept = methods.judged(table)
    if not table.method.makes_classes or not kept or table.promises.k is None:
        return None
    unread = table.named(*LEFT_OUT)
    query = sources.open_source(con, table.source, files, unread=unread, limit=refusals.MOST_ROWS).query
    trees = sources.hierarchies(con, file, name, number, f"({query})")
    single = {column: names[0] for column, names in trees.items()}
    judged = refusals.foreseen(con, query, methods.protected(table), kept, table.promises.k, single)
    con.execute("USE memory.main").fetchall()
    return refusals.narrowing_error(file, name, judged)

"""A policy checked without a release: by itself, and against the columns of its sources."""

from __future__ import annotations

from pathlib import Path

import duckdb

from duckanon.job import consistency, policy_file, sources, sql
from duckanon.job.errors import FileProblem
from duckanon.job.places import places, target_name
from duckanon.job.policy import LEFT_OUT
from duckanon.job.run import connection


def checked(policy: str | Path) -> list[str]:
    """Return what a policy would do, a line a table; raises the job's errors where it is wrong."""
    file = policy_file.read(policy)
    consistency.check(file)
    places(file)
    con = connection()
    try:
        lines = []
        for name, table in file.policy.tables.items():
            try:
                files = sources.files_of(file, table.source)
                query = sources.opened(con, table.source, files, unread=table.named(*LEFT_OUT), limit=0)
                sources.checked_columns(con, file, name, query)
                con.execute("USE memory.main").fetchall()
            except duckdb.Error as error:
                raise FileProblem(f"{table.source.path}: the table cannot be read ({sql.why(error)}).") from None
            values = table.promises.model_dump(exclude={"l_kind", "c"}, exclude_none=True)
            shown = target_name(table.target)
            promised = [promise for promise, value in values.items() if value is not False]
            lines.append(f"{name}: {table.method.name} to {shown}; promises {', '.join(promised)}")
        return lines
    finally:
        con.close()

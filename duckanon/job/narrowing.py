"""Columns of a policy that would be released as they are, and narrow down one that is protected."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import duckdb

from duckanon._bridge import sql
from duckanon.job.errors import PolicyError
from duckanon.job.policy_file import PolicyFile

MOST_ROWS = 10_000
"""Rows that are looked at: the release looks at all of its classes, this tells within seconds what it will refuse."""

_JUDGED = re.compile(r'"(?P<kept>[^"]+)"(?: in keep)? narrows down "(?P<of>[^"]+)"')
_UNJUDGED = "too few rows to tell whether"

Judged = tuple[str, str, bool | None]
"""A column that is kept, one that is protected, and whether it narrows it down; None: too few rows tell."""


def foreseen(
    con: duckdb.DuckDBPyConnection,
    rows: str,
    protected: Sequence[str],
    kept: Sequence[str],
    k: int,
    hierarchies: Mapping[str, str] | None = None,
) -> list[Judged]:
    """Return the pairs that a release would refuse, judged by a plan for a sample of the rows.

    Args:
        con: The job's database.
        rows: A query.
        protected, kept: The columns that are generalized, and those that are released as they are.
        k: People in a class.
        hierarchies: The names of the tables of hierarchies.
    """
    if not protected or not kept:
        return []
    listed = sql.names([*protected, *kept])
    given = f", hierarchies := {sql.literal(hierarchies)}" if hierarchies else ""
    try:
        con.execute(
            f"CREATE OR REPLACE TEMP TABLE looked_at AS SELECT {listed} FROM ({rows}) "
            f"USING SAMPLE reservoir({MOST_ROWS} ROWS) REPEATABLE (1)"
        ).fetchall()
        con.execute(
            "CREATE OR REPLACE TEMP TABLE foreseen_plan AS FROM anon.plan('looked_at', "
            f"{sql.literal(list(protected))}, {k}{given})"
        ).fetchall()
        found: list[Judged] = con.execute(
            "SELECT kept_column, column_name, narrows FROM anon.kept_column_risk('looked_at', "
            f"{sql.literal(list(protected))}, {sql.literal(list(kept))}, plan := 'foreseen_plan') "
            "WHERE narrows IS DISTINCT FROM false"
        ).fetchall()
    except duckdb.InterruptException:
        raise
    except duckdb.Error:  # another refusal, about which the release speaks
        return []
    return found


def told(refusal: str) -> list[Judged]:
    """Return the pairs that a refusal of one of our functions names.

    Examples:
        >>> told('anon.boxes: the column "age" in keep narrows down "born", "year" narrows down "born"; omit them.')
        [('age', 'born', True), ('year', 'born', True)]
    """
    known, _, unknown = refusal.partition(_UNJUDGED)
    return [
        (pair["kept"], pair["of"], narrows)
        for text, narrows in ((known, True), (unknown, None))
        for pair in _JUDGED.finditer(text)
    ]


def refused(file: PolicyFile, table: str, judged: Iterable[Judged]) -> PolicyError | None:
    """Make the error about all pairs, a line each, in the words of a policy; None where there is none."""
    errors = [file.wrong(table, ("columns", kept), f"{words(*pair)}.") for pair in judged for kept in pair[:1]]
    return PolicyError("\n".join(map(str, errors))) if errors else None


def words(kept: str, protected: str, narrows: bool | None) -> str:
    """Say what a column tells of another, and the two ways out."""
    ways_out = "give it the role quasi_identifier or drop, or name it in narrowing under [method]"
    return f"{finding(f'columns.{kept}', protected, narrows)}; {ways_out}"


def finding(kept: str, protected: str, narrows: bool | None) -> str:
    """Say what a column tells of another."""
    beginning = "" if narrows else "there are too few rows to tell whether "
    return f"{beginning}{kept} narrows down {protected}"

"""The rows of a release in cohorts: new ones, new ones under coarser labels, and those that are kept."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from duckanon._bridge import sql
from duckanon._core.account.cohorts import Decision
from duckanon._core.account.groups import ABSENT
from duckanon._core.common.arrays import Ints
from duckanon.job.coarser_labels import CoarserLabels
from duckanon.job.last_cohorts import LastRelease
from duckanon.job.policy import Table

_VIEWS = ("fresh_people", "coarse_people", "ladders", "kept_rows")


def write(
    con: sql.Connection,
    table: Table,
    applied: str,
    released: str,
    names: list[str],
    decided: Decision,
    levels: Ints,
    labels: CoarserLabels,
    last: LastRelease | None,
) -> None:
    """Make the table of the release, in random order.

    Args:
        con: Where the tables are.
        table: The table of the policy.
        applied: The table whose rows have the plan's labels.
        released: The table to make.
        names: What the release calls each person.
        decided: Who is in it.
        levels: Of each person, the level of their labels.
        labels: What labels are at each level.
        last: The last release, of which rows are kept.
    """
    person, types = sql.name(table.person or ""), sql.columns(con, applied)
    is_fresh = (decided.classes != ABSENT) & ~decided.is_old
    fresh, coarse = np.flatnonzero(is_fresh & (levels == 0)), np.flatnonzero(is_fresh & (levels > 0))
    try:
        con.register("fresh_people", pa.table({"whose": pa.array([names[place] for place in fresh], pa.string())}))
        parts = [
            f"SELECT applied.* FROM {applied} AS applied JOIN fresh_people ON applied.{person} = fresh_people.whose"
        ]
        parts.append(_coarse(con, applied, person, [names[place] for place in coarse], levels[coarse], labels))
        if last:
            is_kept = decided.is_old[last.owners]
            owners = [names[place] if kept else None for place, kept in zip(last.owners, is_kept, strict=True)]
            con.register("kept_rows", pa.table({"whose": pa.array(owners, pa.string())}))
            others = ", ".join(f"file.{sql.name(column)}" for column in types if column != table.person)
            parts.append(
                f"SELECT {others}, kept_rows.whose AS {person} FROM ({last.rows}) AS file POSITIONAL JOIN kept_rows "
                "WHERE kept_rows.whose IS NOT NULL"
            )
        con.execute(
            f"CREATE TABLE {released} AS SELECT * FROM ({' UNION ALL BY NAME '.join(parts)}) "
            "ORDER BY anon._random() ASC NULLS LAST"
        ).fetchall()
    finally:
        for view in _VIEWS:
            con.execute(f"DROP VIEW IF EXISTS {view}").fetchall()


def _coarse(
    con: sql.Connection, applied: str, person: str, whose: list[str], levels: Ints, labels: CoarserLabels
) -> str:
    """Return the query of rows whose labels are coarser than the plan's."""
    rungs = np.array(labels.levels)[levels]
    columns = {f"rung {place}": rungs[:, place] for place in range(len(labels.columns))}
    con.register("coarse_people", pa.table({"whose": pa.array(whose, pa.string()), **columns}))
    steps = [
        {"place": place, "rung": number, "label": label, "coarser": coarser}
        for place, ladder in enumerate(labels.ladders)
        for number, rung in enumerate(ladder.rungs, 1)
        for label, coarser in rung.items()
    ]
    schema = pa.schema({"place": pa.int64(), "rung": pa.int64(), "label": pa.string(), "coarser": pa.string()})
    con.register("ladders", pa.Table.from_pylist(steps, schema))
    shown, joins = [], ""
    for place, (column, ladder) in enumerate(zip(labels.columns, labels.ladders, strict=True)):
        own, rung = f"applied.{sql.name(column)}", f"coarse_people.{sql.name(f'rung {place}')}"
        cases = f"CASE {rung} WHEN 0 THEN {own} "
        if ladder.rungs:
            joins += (
                f" LEFT JOIN ladders AS ladder_{place} ON ladder_{place}.place = {place} "
                f"AND ladder_{place}.rung = {rung} AND ladder_{place}.label = {own}"
            )
            cases += f"WHEN {len(ladder.rungs) + 1} THEN NULL ELSE ladder_{place}.coarser "
        shown.append(f"{cases}END AS {sql.name(column)}")
    return (
        f"SELECT applied.* REPLACE ({', '.join(shown)}) FROM {applied} AS applied "
        f"JOIN coarse_people ON applied.{person} = coarse_people.whose{joins}"
    )

"""Plans that are kept: this month's categories used again next month."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from duckanon._bridge import sql
from duckanon._core.common.arrays import spell_count
from duckanon._core.common.release_record import PlanEntry
from duckanon._core.privacy.narrowing import COARSER_TOO, describe_judgements
from duckanon.job import methods
from duckanon.job.errors import FileProblem, PolicyError
from duckanon.job.policy import Table

if TYPE_CHECKING:
    from duckanon.job.cohorts import Cohorts

_MOST_BUCKETS = 100
"""Buckets of a column up to which a plan is applied as CASEs. On ten million rows CASEs took 7 processor seconds where
anon.apply_plan took 15.5 (five columns of 20 buckets), but 13 where that took 4 (one column of 500)."""


@dataclass(frozen=True)
class Planned:
    """A release made by a plan."""

    is_reused: bool  # whether the plan was there before
    coverage: list[dict[str, Any]]  # how well it fits: the counts of anon.plan_coverage for each column
    small_classes: int  # classes that were left out, since they have too few people or sensitive values

    def warnings(self, k: int | None) -> list[str]:
        """Say where a plan that was used again no longer fits."""
        if not self.is_reused:
            return []
        strange = [
            f"the plan does not know {spell_count(unknown, 'value', 'values')} of {row['column_name']}; "
            f"{'it is' if unknown == 1 else 'they are'} in its bucket for other values, or in its first or last one."
            for row in self.coverage
            if (unknown := row["unseen"] + row["below_range"] + row["above_range"])
        ]
        if self.small_classes:
            strange.append(
                f"{spell_count(self.small_classes, 'class of the plan has', 'classes of the plan have')} fewer than "
                f"{k} people, or too few values of a sensitive column: their rows were suppressed."
            )
        return strange

    def entry(self, path: Path) -> PlanEntry:
        """Return the entry of the record."""
        return {
            "path": path.name,
            "reused": self.is_reused,
            "coverage": self.coverage,
            "small_classes_left_out": self.small_classes,
        }


def release(
    con: sql.Connection,
    table: Table,
    original: str,
    released: str,
    hierarchies: dict[str, str],
    path: Path,
    cohorts: Cohorts | None = None,
) -> Planned:
    """Release a table by the plan of a file, or by a new one, which is in the table ``plan`` then.

    `cohorts` make the release from the labelled table, where classes are entered and left together.
    """
    is_reused = path.exists()
    if is_reused:
        _load(con, table, path)
    else:
        k = cohorts.class_size(table) if cohorts else None
        con.execute(f"CREATE TABLE plan AS {methods.call(table, original, hierarchies, 'plan', k)}").fetchall()
    _check_narrowing(con, table, original)
    cursor = con.execute(f"FROM anon.plan_coverage({sql.literal(original)}, 'plan')")
    fields = [column[0] for column in cursor.description]
    coverage = [dict(zip(fields, row, strict=True)) for row in cursor.fetchall()]
    con.execute(f"CREATE TABLE applied AS {label_query(con, original, methods.columns_to_keep(table))}").fetchall()
    if cohorts:
        cohorts.release(con, table, "applied", released, hierarchies)
        con.execute("DROP TABLE applied").fetchall()
        return Planned(is_reused, coverage, 0)
    classes = methods.columns_to_protect(table)
    con.execute(
        f"CREATE OR REPLACE TABLE small_classes AS SELECT {sql.quote_all(classes)} FROM applied GROUP BY ALL "
        f"HAVING {_is_small(table)}"
    ).fetchall()
    equal = " AND ".join(f"applied.{sql.quote(c)} IS NOT DISTINCT FROM small_classes.{sql.quote(c)}" for c in classes)
    con.execute(  # in random order, since the old one may tell what was taken away
        f"CREATE TABLE {released} AS SELECT * FROM applied ANTI JOIN small_classes ON {equal} ORDER BY anon._random() "
        "ASC NULLS LAST"
    ).fetchall()
    small = sql.fetch_row(con, "SELECT count(*) FROM small_classes")[0]
    con.execute("DROP TABLE applied").fetchall()
    return Planned(is_reused, coverage, small)


def label_query(con: sql.Connection, original: str, keep: list[str]) -> str:
    """Return the query that labels a table by the table ``plan``: CASEs where that is quicker, and sqlglot is there."""
    by_lookup = f"FROM anon.apply_plan({sql.literal(original)}, 'plan', keep := {sql.literal(keep or None)})"
    buckets = sql.fetch_row(con, "SELECT max(n) FROM (SELECT count(*) AS n FROM plan GROUP BY column_name)")[0]
    types = sql.columns(con, original)
    if buckets > _MOST_BUCKETS or any("ENUM(" in types[column] for column in keep):  # whose values are released as text
        return by_lookup
    try:
        from duckanon._render.queries import render

        return render(con.sql("FROM plan").to_arrow_table(), "duckdb", sql.quote(original), keep=keep, types=types)
    except (ImportError, ValueError):  # what cannot be rendered can be looked up, or is refused there
        return by_lookup


def set_aside(con: sql.Connection, name: str) -> None:
    """Give the table ``plan`` another name, so that the next release can have one."""
    con.execute(f"ALTER TABLE plan RENAME TO {name}").fetchall()


def write(con: sql.Connection, path: Path) -> None:
    """Write the plan to a file."""
    try:
        con.execute(f"COPY plan TO {sql.literal(str(path))} (FORMAT parquet)").fetchall()
    except duckdb.Error as error:
        raise FileProblem(f"the plan cannot be written ({sql.reason(error)}).") from None


def _load(con: sql.Connection, table: Table, path: Path) -> None:
    try:
        con.execute(f"CREATE TABLE plan AS FROM read_parquet({sql.literal(str(path))})").fetchall()
        planned = {row[0] for row in con.execute("SELECT DISTINCT column_name FROM plan").fetchall()}
    except duckdb.Error as error:
        raise FileProblem(f"{path}: the plan cannot be read ({sql.reason(error)}).") from None
    if planned != set(methods.columns_to_protect(table)):
        raise PolicyError(
            f"{path}: the plan must have the policy's quasi-identifiers; it has {', '.join(sorted(planned))}: "
            "remove the file to have a new one made."
        )


def _check_narrowing(con: sql.Connection, table: Table, original: str) -> None:
    """Refuse kept columns that tell more of a coarse one than its label does, as anon.generalize does."""
    kept = methods.columns_to_judge(table)
    if not kept:
        return
    judged = con.execute(
        f"SELECT kept_column, column_name, narrows FROM anon.kept_column_risk({sql.literal(original)}, "
        f"{sql.literal(methods.columns_to_protect(table))}, {sql.literal(kept)}, plan := 'plan', "
        f"person := {sql.literal(table.person)})"
    ).fetchall()
    if refused := describe_judgements(judged, COARSER_TOO):
        raise duckdb.InvalidInputException(f"anon.generalize: {refused}")


def _is_small(table: Table) -> str:
    """Return the condition of classes to leave out."""
    size = f"count(DISTINCT {sql.quote(table.person)})" if table.person else "count(*)"
    conditions = [f"{size} < {table.promises.k}"]
    if table.promises.l is not None and table.promises.l_kind == "distinct":
        for column in map(sql.quote, table.with_roles("sensitive")):
            conditions.append(f"count(DISTINCT {column}) + (count(*) > count({column}))::INTEGER < {table.promises.l}")
    return " OR ".join(conditions)

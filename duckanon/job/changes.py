"""Changes between two releases of the same people, which reveal together who came or left.

A class of twelve that was one of eleven before tells that one person came: who knows of somebody new knows the class
then, and the sensitive value too, as the difference of two counts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from duckanon._bridge import sql
from duckanon.job.policy import Table, source_format
from duckanon.job.promises import Promise, Tables, linking
from duckanon.job.readback import Shape
from duckanon.job.sources import hash_of_release


def compared(
    con: sql.Connection, table: Table, form: Shape, tables: Tables, previous: Path | str
) -> dict[str, Any] | None:
    """Compare the classes of a release with those of the last one; None where these have other columns.

    The last one is a file, or the query of a server's rows. Rows are counted; pseudonyms where both releases have them.
    """
    catalog = "previous_release"
    k = table.promises.k or 0
    try:
        rows = previous if isinstance(previous, str) else _rows(con, form, previous, catalog)
        present = {row[0] for row in con.execute(f"DESCRIBE {rows}").fetchall()}
        if not set(form.classes) <= present:
            return None
        person = next(iter(linking(table)), None)
        person = person if person in present else None
        size = f"count(DISTINCT {sql.name('whose')})" if person else "count(*)"
        columns = ", ".join(f"{sql.name(name)}::VARCHAR AS c{place}" for place, name in enumerate(form.classes))
        whose = f"{sql.name(person)}::VARCHAR" if person else "NULL"
        classes, before, same, small, came, went = sql.one(
            con,
            f"WITH both_releases AS (SELECT true AS is_new, {whose} AS whose, {columns} FROM {tables.counted} "
            f"UNION ALL SELECT false, {whose}, {columns} FROM ({rows})), "
            f"sizes AS (SELECT {size} FILTER (is_new) AS n, {size} FILTER (NOT is_new) AS m FROM both_releases "
            f"GROUP BY {', '.join(f'c{place}' for place in range(len(form.classes)))}) "
            f"SELECT count(*) FILTER (n > 0), count(*) FILTER (m > 0), count(*) FILTER (n > 0 AND m > 0), "
            f"count(*) FILTER (abs(n - m) BETWEEN 1 AND {k - 1}), "
            f"coalesce(sum(n - m) FILTER (n - m BETWEEN 1 AND {k - 1}), 0)::BIGINT, "
            f"coalesce(sum(m - n) FILTER (m - n BETWEEN 1 AND {k - 1}), 0)::BIGINT FROM sizes",
        )
    finally:
        con.execute(f"DETACH DATABASE IF EXISTS {catalog}").fetchall()
    return {
        "previous_sha256": hash_of_release(con, previous),
        "counted": "people" if person else "rows",
        "classes": classes,
        "classes_before": before,
        "classes_in_both": same,
        "small_changes": small,
        "came_in_small_changes": came,
        "went_in_small_changes": went,
    }


def promise(table: Table, change: dict[str, Any]) -> Promise | None:
    """Return the promise about changes, if the policy makes one."""
    asked = table.promises.max_small_changes
    if asked is None:
        return None
    measured = change["small_changes"]
    helpful = "publishing less often, so that more people come and go at once, or a larger max_small_changes"
    return Promise("max_small_changes", asked, measured, measured <= asked, words(table, change), helpful)


def words(table: Table, change: dict[str, Any]) -> str:
    """Say what changed."""
    return (
        f"{change['small_changes']} classes differ from the previous release by fewer than {table.promises.k} "
        f"{change['counted']}: an attacker who knows who came or left in between learns more than their class."
    )


def _rows(con: sql.Connection, form: Shape, previous: Path, catalog: str) -> str:
    place, kind = sql.literal(str(previous)), source_format(str(previous))
    if kind == "duckdb":
        con.execute(f"ATTACH {place} AS {catalog} (READ_ONLY)").fetchall()
        return f"SELECT * FROM {catalog}.main.{sql.name(form.table)}"
    if kind == "csv":
        return f"SELECT * FROM read_csv({place}, all_varchar = true, header = true)"
    return f"SELECT * FROM read_parquet({place})"

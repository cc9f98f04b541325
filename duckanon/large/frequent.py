"""Rows of frequent combinations of values: most of them are released as they are, and need no search for a class."""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

from duckanon._bridge import sql
from duckanon.large.checks import Checked
from duckanon.large.workspace import SOURCE, Workspace

_FREQUENT = "frequent"
_INSIDE = "inside"
_PART = "_duckanon_part"


class Divided(NamedTuple):
    """A table whose frequent rows were set apart."""

    inside: str  # the name of the rows among which classes are searched
    rows: int  # how many these are
    apart: list[list[Path]]  # the files of parts that hold the others, at least k rows of every combination


def divided(work: Workspace, what: Checked, k: int, left: int, rows: int, part_rows: int) -> Divided:
    """Set rows apart that share their values with many others, where that leaves less to be searched.

    Of a combination that at least `left + k` rows, all of other people, have, all but `left` are set apart: at least k
    of them, so that they are a class whatever becomes of the others.
    """
    names = sql.names(what.names)
    (combinations,) = sql.one(work.con, f"SELECT approx_count_distinct(hash({names})) FROM {SOURCE}")
    if rows <= part_rows or 2 * combinations > rows:  # one part needs no others; so many combinations are not frequent
        return Divided(SOURCE, rows, [])
    work.con.execute(
        f"CREATE TABLE {_FREQUENT} AS SELECT {names}, row_number() OVER () AS _duckanon_number, _duckanon_rows "
        f"FROM (SELECT {names}, count(*) - {left} AS _duckanon_rows FROM {SOURCE} GROUP BY {names} "
        f"HAVING count(*) >= {left + k})"
    ).fetchall()
    (others,) = sql.one(work.con, f"SELECT coalesce(sum(_duckanon_rows), 0)::BIGINT FROM {_FREQUENT}")
    if not others:
        return Divided(SOURCE, rows, [])
    # a combination of very many rows is itself divided, into pieces of at least k
    piece = max(k, part_rows // 4)
    count = math.ceil(1.5 * others / part_rows)  # pieces are of different sizes, and so are parts
    same = " AND ".join(f"source.{sql.name(n)} IS NOT DISTINCT FROM frequent.{sql.name(n)}" for n in what.names)
    columns = ", ".join(f"source.{sql.name(name)}" for name in what.columns)
    last_piece = f"greatest(_duckanon_rows // {piece}, 1) - 1"
    query = (
        f"SELECT * EXCLUDE (_duckanon_place, _duckanon_number, _duckanon_rows), "
        f"CASE WHEN _duckanon_place < {left} THEN 0 ELSE 1 + (_duckanon_number + "
        f"least((_duckanon_place - {left}) // {piece}, {last_piece})) % {count} END AS {_PART} FROM ("
        f"SELECT {columns}, _duckanon_number, _duckanon_rows, "
        "row_number() OVER (PARTITION BY _duckanon_number) - 1 AS _duckanon_place "
        f"FROM {SOURCE} AS source JOIN {_FREQUENT} AS frequent ON {same}) "
        f"UNION ALL SELECT {columns}, 0 AS {_PART} FROM {SOURCE} AS source ANTI JOIN {_FREQUENT} AS frequent ON {same}"
    )
    files = work.partition(query, "divided", _PART, count + 1)
    work.con.execute(f"DROP TABLE {_FREQUENT}").fetchall()
    inside = sql.literal([str(path) for path in files[0]])
    work.con.execute(f"CREATE VIEW {_INSIDE} AS FROM read_parquet({inside}, hive_partitioning = false)").fetchall()
    return Divided(_INSIDE, rows - others, [paths for paths in files[1:] if paths])

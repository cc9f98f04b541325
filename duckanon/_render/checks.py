"""Checks of a table in another engine: `duckanon.render_check`.

Each check is a chain of steps that read from top to bottom. What engines lack is written as what all have: a running
maximum over two stacked lists instead of an ASOF join, the dense rank of a value instead of a join by values that may
be NULL, counts as doubles instead of divisions that may cut off.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp, parse_one

from duckanon._core.common.arguments import refuse_unless
from duckanon._core.common.names import refuse_unknown_options
from duckanon._core.common.rules import ColumnNames, OneOf
from duckanon._render.dialects import Dialect, column, dialect_called, source_table

CHECKS = ("k", "l", "t", "individual_risk")
DISTANCES = ("ordered", "equal")
_LIMITS = (2, 3, 5, 10, 20)
_TAKEN = {"k": {"person"}, "l": {"sensitive"}, "t": {"sensitive", "distance"}, "individual_risk": {"weight"}}

_GROUPED = """
    _duckanon_grouped AS (
        SELECT {keys}, _duckanon_value, CAST(COUNT(*) AS DOUBLE PRECISION) AS size
        FROM _duckanon_rows GROUP BY {keys}, _duckanon_value)"""

_K = """
    WITH _duckanon_classes AS (
        SELECT COUNT(*) AS row_count, {people} AS people FROM _duckanon_rows GROUP BY {keys})
    SELECT MIN(people) AS k, COUNT(*) AS classes, SUM(row_count) AS "rows",
           SUM(CASE WHEN people = 1 THEN 1 ELSE 0 END) AS singletons, {under}
    FROM _duckanon_classes"""

_L = """
    WITH {grouped}, _duckanon_classes AS (
        SELECT SUM(size) AS total, COUNT(*) AS distinct_values, MAX(size) AS largest,
               LN(SUM(size)) - SUM(size * LN(size)) / SUM(size) AS entropy
        FROM _duckanon_grouped GROUP BY {keys})
    SELECT MIN(distinct_values) AS distinct_l, EXP(MIN(entropy)) AS entropy_l,
           CASE WHEN MIN(distinct_values) > 1 THEN MAX(largest / NULLIF(total - largest, 0)) END AS recursive_c
    FROM _duckanon_classes"""

_PLACED = """
    _duckanon_cells AS (
        SELECT {keys}, size, DENSE_RANK() OVER (
            ORDER BY CASE WHEN _duckanon_value IS NULL THEN 1 ELSE 0 END, _duckanon_value NULLS FIRST) AS place
        FROM _duckanon_grouped),
    _duckanon_totals AS (SELECT place, SUM(size) AS people FROM _duckanon_cells GROUP BY place)"""

_SUMMARY = "SELECT MAX(t) AS t, SUM(t * total) / SUM(total) AS average_t, COUNT(*) AS classes FROM _duckanon_distances"

_EQUAL = """
    WITH {grouped}, {placed}, _duckanon_whole AS (SELECT SUM(people) AS everybody FROM _duckanon_totals),
    _duckanon_shares AS (
        SELECT {keys}, place, size, SUM(size) OVER (PARTITION BY {keys}) AS total FROM _duckanon_cells),
    _duckanon_distances AS (
        SELECT SUM(size) AS total,
               SUM(CASE WHEN size * everybody > people * total
                        THEN (size * everybody - people * total) / (total * everybody) ELSE 0 END) AS t
        FROM _duckanon_shares JOIN _duckanon_totals ON _duckanon_shares.place = _duckanon_totals.place
             CROSS JOIN _duckanon_whole
        GROUP BY {keys})
    {summary}"""

# A class's own cumulative share P changes only at its own values; from one to the next, Q is below P up to a crossing
# and above it from there on. `area` is the sum of Q, in people, up to a place (anon._closeness has the same steps).
_ORDERED = """
    WITH {grouped}, {placed}, _duckanon_running AS (
        SELECT place, SUM(people) OVER (ORDER BY place ROWS UNBOUNDED PRECEDING) AS people_until FROM _duckanon_totals),
    _duckanon_areas AS (
        SELECT place, people_until, SUM(people_until) OVER (ORDER BY place ROWS UNBOUNDED PRECEDING) AS area
        FROM _duckanon_running),
    _duckanon_whole AS (
        SELECT MAX(people_until) AS everybody, MAX(area) AS whole_area, MAX(place) AS places FROM _duckanon_areas),
    _duckanon_steps AS (
        SELECT {keys}, _duckanon_cells.place AS place, area - people_until AS area_before,
               SUM(size) OVER (PARTITION BY {keys} ORDER BY _duckanon_cells.place ROWS UNBOUNDED PRECEDING)
                   AS own_people,
               SUM(size) OVER (PARTITION BY {keys}) AS total, size,
               LEAD(_duckanon_cells.place) OVER (PARTITION BY {keys} ORDER BY _duckanon_cells.place) AS next_place,
               LEAD(area - people_until) OVER (PARTITION BY {keys} ORDER BY _duckanon_cells.place) AS next_area
        FROM _duckanon_cells JOIN _duckanon_areas ON _duckanon_cells.place = _duckanon_areas.place),
    _duckanon_stacked AS (
        SELECT {keys}, place, area_before, own_people, total, size, next_place, next_area,
               own_people / total AS reached, 1 AS is_step, 0 AS whole_place, 0 AS area
        FROM _duckanon_steps
        UNION ALL
        SELECT {no_keys}, 0, 0, 0, 0, 0, 0, 0, people_until / everybody, 0, place, area
        FROM _duckanon_areas CROSS JOIN _duckanon_whole),
    _duckanon_crossed AS (
        SELECT {keys}, place, area_before, own_people, total, size, next_place, next_area, is_step,
               MAX(whole_place) OVER (ORDER BY reached, is_step ROWS UNBOUNDED PRECEDING) AS last_below,
               MAX(area) OVER (ORDER BY reached, is_step ROWS UNBOUNDED PRECEDING) AS area_below
        FROM _duckanon_stacked),
    _duckanon_bounded AS (
        SELECT {keys}, place, area_before, own_people, total, size, last_below, area_below, everybody, whole_area,
               places, COALESCE(next_place, places + 1) AS next_place, COALESCE(next_area, whole_area) AS next_area
        FROM _duckanon_crossed CROSS JOIN _duckanon_whole WHERE is_step = 1),
    _duckanon_crossings AS (
        SELECT {keys}, place, area_before, own_people, total, size, next_place, everybody, whole_area, places,
               GREATEST(LEAST(last_below, next_place - 1), place - 1) AS crossing,
               GREATEST(LEAST(area_below, next_area), area_before) AS crossing_area
        FROM _duckanon_bounded),
    _duckanon_distances AS (
        SELECT SUM(size) AS total,
               (SUM(own_people * (2 * crossing - place - next_place + 2)) / MAX(total)
                + (SUM(2 * (area_before - crossing_area)) + MAX(whole_area)) / MAX(everybody))
               / CASE WHEN MAX(places) > 1 THEN MAX(places) - 1 ELSE 1 END AS t
        FROM _duckanon_crossings GROUP BY {keys})
    {summary}"""


@refuse_unknown_options("duckanon")
def render_check(
    check: str,
    cols: Sequence[str],
    dialect: str = "duckdb",
    table: str = "patients",
    sensitive: str | None = None,
    distance: str | None = None,
    weight: str | None = None,
    person: str | None = None,
) -> str:
    """Write a check of a table as one SELECT of another engine.

    Args:
        check: ``k``: the smallest class, the number of classes and of rows, classes of one, and rows in classes of
            fewer than 2, 3, 5, 10 and 20, as in `anon.k_anonymity`. ``l``: the fewest values of ``sensitive`` in a
            class, the smallest exp(entropy), and the c that recursive 2-diversity must exceed (NULL: a class has a
            single value, and no c is enough), as in `anon.l_diversity`. ``t``: the largest distance, its average over
            the rows and the classes, as in `anon.t_closeness`. ``individual_risk``: every row with
            ``sample_frequency``, ``population_frequency`` and ``risk``, as in `anon.individual_risk` with ``method :=
            'approximate'``.
        cols: The columns that an attacker may know, spelled as in the table. NULL is a value.
        dialect, table: As in `duckanon.render`.
        sensitive: With ``l`` and ``t``, the column that nobody should learn; NULL is a value.
        distance: With ``t``: ``ordered`` for numbers and dates, ``equal`` for all others; which it is, a query cannot
            see.
        weight: With ``individual_risk``, the column that says for how many people a row stands; None: the table is its
            own population.
        person: With ``k``, the column that says whose row it is: classes then count different people.

    Returns:
        A comment that says whether the tests execute this dialect, and the query, without a semicolon.
    """
    refuse_unless(OneOf(*CHECKS), "check", check)
    refuse_unless(ColumnNames(), "cols", cols)
    target = dialect_called(dialect)
    source = source_table(table, target)
    named = {"sensitive": sensitive, "distance": distance, "weight": weight, "person": person}
    _refuse_options(check, named)
    if check == "individual_risk":
        query = _individual_risk(cols, target, source, weight)
    else:
        query = _summary(check, cols, target, source, named)
    return target.write(query, f"duckanon.render_check: {check}")


def _refuse_options(check: str, named: dict[str, Any]) -> None:
    for name, value in named.items():
        if value is not None and name not in _TAKEN[check]:
            raise ValueError(f"{name} must be None for the check {check}; got {value!r}.")
        if name != "distance" and value is not None and (not isinstance(value, str) or not value):
            raise ValueError(f"{name} must be the name of a column; got {value!r}.")
    if "sensitive" in _TAKEN[check] and named["sensitive"] is None:
        raise ValueError(f"sensitive must be the name of a column for the check {check}; got NULL.")
    if "distance" in _TAKEN[check]:
        refuse_unless(OneOf(*DISTANCES), "distance", named["distance"])


def _summary(check: str, cols: Sequence[str], dialect: Dialect, source: exp.Table, named: dict[str, Any]) -> Any:
    """Return a check whose result is one row."""
    names = [f"_duckanon_key_{place}" for place in range(1, len(cols) + 1)]
    first = [exp.alias_(dialect.key(column(col)), name, quoted=False) for col, name in zip(cols, names, strict=True)]
    value = named["sensitive"] or named["person"]
    if value is not None:
        is_ordered = named["distance"] == "ordered" or named["person"] is not None
        first.append(exp.alias_(column(value) if is_ordered else dialect.key(column(value)), "_duckanon_value"))
    steps = {
        "keys": ", ".join(names),
        "no_keys": ", ".join(f"NULL AS {name}" for name in names),
        "people": "COUNT(*)" if named["person"] is None else "COUNT(DISTINCT _duckanon_value)",
        "under": ", ".join(
            f"SUM(CASE WHEN people < {limit} THEN row_count ELSE 0 END) AS rows_under_{limit}" for limit in _LIMITS
        ),
        "placed": _PLACED.format(keys=", ".join(names)),
        "grouped": _GROUPED.format(keys=", ".join(names)),
        "summary": _SUMMARY,
    }
    text = {"k": _K, "l": _L, "t": _ORDERED if named["distance"] == "ordered" else _EQUAL}[check].format(**steps)
    query: Any = parse_one(text, read="postgres")
    rows = exp.CTE(
        this=exp.select(*first).from_(source), alias=exp.TableAlias(this=exp.to_identifier("_duckanon_rows"))
    )
    with_ = query.args["with_"]
    with_.set("expressions", [rows, *with_.expressions])
    return query


def _individual_risk(cols: Sequence[str], dialect: Dialect, source: exp.Table, weight: str | None) -> exp.Expression:
    """Return every row with its risk: expected 1/F for classes of one and two, sdcMicro's formula for larger ones."""
    counted = exp.Count(this=exp.Star()), exp.Count(this=exp.Star()) if weight is None else exp.Sum(this=column(weight))
    frequency, stands_for = (
        exp.Window(this=count, partition_by=[dialect.key(column(col)) for col in cols]) for count in counted
    )
    double = exp.DataType.build("double")
    sized = exp.select(
        exp.Star(),
        exp.alias_(exp.cast(frequency, double), "sample_frequency"),
        exp.alias_(exp.cast(stands_for, double), "population_frequency"),
    ).from_(source)
    risk = parse_one(_RISK, read="postgres")
    return exp.select(exp.Star(), exp.alias_(risk, "risk")).from_(sized.subquery("_duckanon_sized"))


_SHARE = "(sample_frequency / population_frequency)"
_ODDS = "(sample_frequency / (population_frequency - sample_frequency))"
_RISK = f"""
    CASE WHEN population_frequency <= sample_frequency THEN 1 / sample_frequency
         WHEN sample_frequency = 1 THEN {_ODDS} * LN(population_frequency / sample_frequency)
         WHEN sample_frequency = 2
              THEN {_ODDS} - {_ODDS} * {_ODDS} * LN(population_frequency / sample_frequency)
         ELSE {_SHARE} / (sample_frequency - 1 + {_SHARE}) END"""

"""Answers for those who receive boxes: quantiles and counts against brute force, groups against each group alone."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import duckdb
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from duckanon._methods.intervals.regions import parse_condition
from tests.profiles import cheap, dear, seeds
from tests.sqltest import data_file

QUANTILES = [0, 0.1, 0.25, 0.3, 0.5, 0.57, 0.75, 0.9, 1]
WHOLE = st.tuples(st.integers(0, 4), st.integers(0, 2)).map(lambda pair: (pair[0], pair[0] + pair[1]))
OPEN = st.tuples(st.none() | st.integers(0, 4), st.none() | st.integers(4, 6))


def replace(con: duckdb.DuckDBPyConnection, columns: str, rows: list[tuple], name: str = "boxed") -> None:
    """Make a table of a few rows; the columns with their types."""
    con.execute(f"CREATE OR REPLACE TABLE {name} ({columns})").fetchall()
    con.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(rows[0]))})", rows)


def answers(con: duckdb.DuckDBPyConnection, call: str) -> list[tuple]:
    return con.execute(f"FROM anon.{call}").fetchall()


def rank(quantile: float, size: int) -> int:
    return max(math.ceil(Fraction(str(quantile)) * size), 1) - 1


def many(boxes: st.SearchStrategy) -> st.SearchStrategy[list[list]]:
    """Draw several small tables, which are asked at once as groups: a query takes longer than its rows."""
    return st.lists(st.lists(boxes, min_size=1, max_size=5), min_size=5, max_size=12)


@pytest.mark.thorough
@dear
@given(many(WHOLE))
def test_quantiles_are_the_extremes_of_all_tables(shared: duckdb.DuckDBPyConnection, cases: list[list]) -> None:
    replace(
        shared, "x_lo INTEGER, x_hi INTEGER, place INTEGER", [(*box, i) for i, case in enumerate(cases) for box in case]
    )
    rows = answers(shared, f"interval_quantiles('boxed', ['x'], quantiles := {QUANTILES}, by := ['place'])")
    assert len(rows) == len(cases) * len(QUANTILES)
    for place, _, quantile, estimate, lower, upper, records in rows:
        case = cases[place]
        values = [sorted(table)[rank(quantile, len(case))] for table in product(*(range(a, b + 1) for a, b in case))]
        assert (lower, upper, records) == (min(values), max(values), len(case))
        assert lower <= estimate <= upper


@pytest.mark.thorough
@dear
@given(many(OPEN))
def test_open_ends_are_infinite_where_they_decide(shared: duckdb.DuckDBPyConnection, cases: list[list]) -> None:
    replace(
        shared, "x_lo INTEGER, x_hi INTEGER, place INTEGER", [(*box, i) for i, case in enumerate(cases) for box in case]
    )
    rows = answers(shared, f"interval_quantiles('boxed', ['x'], quantiles := {QUANTILES}, by := ['place'])")
    for place, _, quantile, _, lower, upper, _ in rows:
        lows = sorted(-math.inf if low is None else low for low, _ in cases[place])
        highs = sorted(math.inf if high is None else high for _, high in cases[place])
        assert (lower, upper) == (lows[rank(quantile, len(lows))], highs[rank(quantile, len(lows))])


@pytest.mark.thorough
@dear
@given(st.lists(st.integers(-5, 5), min_size=1, max_size=30), st.lists(st.integers(0, 100), min_size=1, max_size=9))
def test_quantiles_of_exact_columns_are_duckdbs(shared, values: list[int], percent: list[int]) -> None:
    replace(shared, "x DECIMAL(9, 2)", [(value / 4,) for value in values])
    quantiles = "[" + ", ".join(f"{number / 100:.2f}" for number in percent) + "]"
    expected = shared.execute(f"SELECT quantile_disc(x, {quantiles}) FROM boxed").fetchall()[0][0]
    rows = answers(shared, f"interval_quantiles('boxed', ['x'], quantiles := {quantiles})")
    assert [row[2:5] for row in rows] == [(float(value),) * 3 for value in expected]


NUMBER = st.sampled_from(["-1", "0", "1", "1.5", "2", "2.5", "3", "4", "5.0", "7"])
TEXT = st.sampled_from(["'a'", "'b'", "'c'"])
SIGN = st.sampled_from(["=", "<>", "!=", "<", "<=", ">", ">="])


def comparisons(column: str, values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    negation = st.sampled_from(["", "NOT "])
    few = st.lists(values, min_size=1, max_size=3).map(", ".join)
    return st.one_of(
        st.builds(lambda sign, value: f"{column} {sign} {value}", SIGN, values),
        st.builds(lambda sign, value: f"{value} {sign} {column}", SIGN, values),
        st.builds(lambda no, low, high: f"{column} {no}BETWEEN {low} AND {high}", negation, values, values),
        st.builds(lambda no, listed: f"{column} {no}IN ({listed})", negation, few),
    )


def joined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    word = st.sampled_from([" AND ", " OR "])
    parts = st.lists(inner, min_size=2, max_size=3)
    return st.one_of(
        st.builds(lambda part: f"NOT ({part})", inner),
        st.builds(lambda between, several: "(" + between.join(several) + ")", word, parts),
    )


NULLS = st.sampled_from(["s IS NULL", "s IS NOT NULL"])
TESTS = st.one_of(comparisons("x", NUMBER), comparisons("y", NUMBER), comparisons("s", TEXT), NULLS)
CONDITIONS = st.recursive(TESTS, joined, max_leaves=6)
KIND = st.sampled_from(["a", "b", None])


def points_of(rows: list[tuple], step: float) -> list[tuple]:
    """List all points of boxes on a grid, with the number of the box."""
    return [
        (place, x, y, s)
        for place, (x_low, x_high, y_low, y_high, s) in enumerate(rows)
        for x in np.arange(x_low, x_high + 0.01, step).tolist()
        for y in np.arange(y_low, y_high + 0.01, step).tolist()
    ]


def check_counts(con: duckdb.DuckDBPyConnection, kind: str, rows: list[tuple], step: float, condition: str) -> None:
    """Compare with DuckDB, which says of all points of the boxes whether they meet the condition."""
    columns = f"x_lo {kind}, x_hi {kind}, y_lo {kind}, y_hi {kind}, s VARCHAR, place INTEGER"
    replace(con, columns, [(*row, place) for place, row in enumerate(rows)])
    replace(con, f"place INTEGER, x {kind}, y {kind}, s VARCHAR", points_of(rows, step), "points")
    query = f"SELECT avg(coalesce({condition}, false)::INTEGER) FROM points GROUP BY place ORDER BY place"
    shares = [share for (share,) in con.execute(query).fetchall()]
    alone = answers(con, f"interval_counts('boxed', $${condition}$$, by := ['place'])")
    for place, (share, row) in enumerate(zip(shares, alone, strict=True)):
        number, certain, estimate, possible, records, *fractions = row
        assert (number, certain, possible, records) == (place, share == 1, share > 0, 1)
        assert fractions == [certain, estimate, possible]
        if kind == "INTEGER":  # where all values are on the grid
            assert estimate == pytest.approx(share)
        assert certain <= estimate <= possible


@pytest.mark.thorough
@dear
@given(st.lists(st.tuples(WHOLE, WHOLE, KIND), min_size=1, max_size=12), CONDITIONS)
@example([((0, 2), (0, 0), None), ((1, 2), (0, 3), "a")], "NOT (x >= 1 AND s = 'a') OR s <> 'b' OR y > 0 AND y < 1")
def test_counts_are_those_of_all_tables(shared: duckdb.DuckDBPyConnection, boxes: list, condition: str) -> None:
    check_counts(shared, "INTEGER", [(*x, *y, s) for x, y, s in boxes], 1, condition)


@pytest.mark.thorough
@dear
@given(st.lists(st.tuples(WHOLE, WHOLE, KIND), min_size=1, max_size=12), CONDITIONS)
def test_counts_of_doubles_are_those_of_all_points(shared, boxes: list, condition: str) -> None:
    """Between two of the numbers that conditions have there is always a quarter."""
    check_counts(shared, "DOUBLE", [(*x, y[0] / 2, y[1] / 2, s) for x, y, s in boxes], 0.25, condition)


@cheap
@given(st.text(alphabet="xy()<>=!'\"0.5eE-, ANDORTINSULBEW;", max_size=30))
def test_any_text_is_a_condition_or_refused(text: str) -> None:
    try:
        parse_condition(text)
    except ValueError as refusal:
        if not str(refusal).startswith("condition must"):
            raise


def test_conditions_that_would_take_long_are_refused(con: duckdb.DuckDBPyConnection) -> None:
    names = [f"{{'lo': 0, 'hi': 9}} AS x{i}" for i in range(24)]
    con.execute(f"CREATE TABLE boxed AS SELECT {', '.join(names)}").fetchall()
    pairs = " AND ".join(f"(x{i} = 1 OR x{i + 1} = 2)" for i in range(0, 24, 2))
    with pytest.raises(duckdb.Error, match="condition must be simpler; it falls into more than 1000 regions"):
        answers(con, f"interval_counts('boxed', '{pairs}')")
    for nested in ("(" * 5000 + "x0 = 1" + ")" * 4000, "NOT " * 2000 + "x0 = 1"):
        with pytest.raises(duckdb.Error, match=r"anon\.interval_counts: condition must"):
            answers(con, f"interval_counts('boxed', '{nested}')")


CALLS = [
    "interval_statistics('{}', ['x', 'y']{})",
    "interval_quantiles('{}', ['x', 'y']{})",
    "interval_counts('{}', 'x >= 2 AND y < 4'{})",
    "interval_regression('{}', 'y', ['x']{})",
]


@pytest.mark.thorough
@pytest.mark.parametrize("seed", seeds(1, 2))
def test_each_group_is_answered_as_if_it_were_alone(con: duckdb.DuckDBPyConnection, seed: int) -> None:
    rng = np.random.default_rng(seed)
    low, width = rng.integers(0, 5, (40, 2)), rng.integers(0, 3, (40, 2))
    kinds = rng.choice(["b", "a", ""], 40)
    boxes = np.column_stack([low, low + width]).tolist()
    columns = "x_lo INTEGER, y_lo INTEGER, x_hi INTEGER, y_hi INTEGER, kind VARCHAR"
    replace(con, columns, [(*box, kind or None) for box, kind in zip(boxes, kinds, strict=True)])
    for call in CALLS:
        together = answers(con, call.format("boxed", ", by := ['kind']"))
        alone = []
        for kind in ("a", "b", None):
            con.execute(
                "CREATE OR REPLACE TABLE one AS FROM boxed WHERE kind IS NOT DISTINCT FROM ?", [kind]
            ).fetchall()
            alone += [(kind, *row) for row in answers(con, call.format("one", ""))]
        assert len(together) == len(alone)
        for row, other in zip(together, alone, strict=True):
            assert [cell for cell in row if not isinstance(cell, float)] == [
                cell for cell in other if not isinstance(cell, float)
            ]
            # Searches stop within the stated looseness, and where depends on the order of the boxes.
            assert [cell for cell in row if isinstance(cell, float)] == pytest.approx(
                [cell for cell in other if isinstance(cell, float)], abs=1e-3, nan_ok=True
            )


VALUES = {
    "UTINYINT": st.integers(0, 255),
    "BIGINT": st.integers(-(2**63), 2**63 - 1),
    "HUGEINT": st.integers(-(2**100), 2**100),
    "DOUBLE": st.floats(allow_nan=False),
    "FLOAT": st.floats(width=32, allow_nan=False),
    "DECIMAL(4, 1)": st.integers(-9999, 9999).map(lambda number: f"{number / 10:.1f}"),
    "DECIMAL(38, 3)": st.integers(-(10**34), 10**34).map(lambda number: f"{number}.125"),
    "DATE": st.dates(),
    "TIMESTAMP": st.datetimes(),
    "TIMESTAMP_S": st.datetimes().map(lambda moment: moment.replace(microsecond=0)),
    "TIMESTAMPTZ": st.datetimes().map(lambda moment: f"{moment}+00"),
}
ENDS = [value.map(str) | st.none() for value in VALUES.values() for _ in ("lo", "hi")]


@pytest.mark.thorough
@dear
@given(st.lists(st.tuples(*ENDS), min_size=1, max_size=4))
def test_flat_boxes_come_back_as_they_were(shared: duckdb.DuckDBPyConnection, rows: list[tuple]) -> None:
    """All types, with ends of any kind and open ones, beside names that only look like ends."""
    flat = [f'"an ""{kind}_{end}" {kind}' for kind in VALUES for end in ("lo", "hi")]
    replace(shared, ", ".join(flat), rows, "ends")
    boxed = [f'struct_pack(lo := "an ""{kind}_lo", hi := "an ""{kind}_hi") AS "an ""{kind}"' for kind in VALUES]
    shared.execute(
        f"CREATE OR REPLACE TABLE boxed AS SELECT 1 AS box, {', '.join(boxed)}, 2 AS single_lo, 'a' AS hi FROM ends"
    ).fetchall()
    shared.execute("CREATE OR REPLACE TABLE flat AS FROM anon.flatten_boxes('boxed')").fetchall()
    assert (
        shared.sql("SELECT * EXCLUDE (box, single_lo, hi) FROM flat").fetchall() == shared.sql("FROM ends").fetchall()
    )
    shared.execute("CREATE OR REPLACE TABLE back AS FROM anon.unflatten_boxes('flat')").fetchall()  # bound once
    back, original = shared.sql("FROM back"), shared.sql("FROM boxed")
    assert (back.columns, back.types) == (original.columns, original.types)
    assert back.fetchall() == original.fetchall()


@pytest.mark.thorough
def test_midpoints_have_the_mean_that_is_estimated(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        """CREATE TABLE boxed AS SELECT {'lo': i, 'hi': 2 * i + 1} AS x, {'lo': i * 0.1, 'hi': i * 0.3} AS y,
           {'lo': DATE '2020-01-01' + i::INTEGER, 'hi': DATE '2020-03-01' + 2 * i::INTEGER} AS day
           FROM range(50) AS t(i)"""
    ).fetchall()
    means = con.execute("SELECT avg(x), avg(y), avg(epoch(day) / 86400) FROM anon.midpoints('boxed')").fetchall()[0]
    rows = con.execute("FROM anon.interval_statistics('boxed', ['x', 'y', 'day']) WHERE statistic = 'mean'").fetchall()
    assert means == pytest.approx([row[2] for row in rows])


@pytest.mark.thorough
def test_truth_of_nhanes_lies_within(con: duckdb.DuckDBPyConnection) -> None:
    """Quantiles and counts of a release of real people, by gender, against the original."""
    con.execute(
        f"""CREATE TABLE people AS SELECT age_years, SBP, BMI, gender FROM '{data_file("nhanes.parquet")}'
            WHERE age_years IS NOT NULL AND SBP IS NOT NULL AND BMI IS NOT NULL"""
    ).fetchall()
    release = "anon.boxes('people', ['age_years', 'SBP', 'BMI'], 10, keep := ['gender'])"
    con.execute(f"CREATE TABLE boxed AS FROM {release}").fetchall()
    query = "SELECT gender, quantile_disc(SBP, [0.25, 0.5, 0.75]) FROM people GROUP BY gender ORDER BY gender"
    truth = [(gender, value) for gender, values in con.execute(query).fetchall() for value in values]
    rows = answers(con, "interval_quantiles('boxed', ['SBP'], by := ['gender'])")
    for (gender, _, _, estimate, lower, upper, _), (true_gender, value) in zip(rows, truth, strict=True):
        assert gender == true_gender
        assert lower <= value <= upper
        assert lower <= estimate <= upper
    rng = np.random.default_rng(0)
    for _ in range(50):
        low, high = sorted(rng.integers(18, 80, 2).tolist())
        disease = f"(SBP >= {rng.integers(100, 180)} OR BMI > {rng.integers(20, 40)})"
        condition = f"age_years BETWEEN {low} AND {high} AND {disease}"
        [(count,)] = con.execute(f"SELECT count(*) FROM people WHERE {condition}").fetchall()
        [(certain, estimate, possible, records, *_)] = answers(con, f"interval_counts('boxed', '{condition}')")
        assert certain <= count <= possible
        assert abs(estimate - count) < 0.1 * records


@pytest.mark.parametrize(("text", "got"), [(None, "NULL"), ("", "''"), (" ", "' '"), (5, "5")])
def test_a_condition_that_is_no_text_is_named_as_in_sql(text: object, got: str) -> None:
    with pytest.raises(ValueError, match=f"got {got}") as error:
        parse_condition(text)  # type: ignore[arg-type]
    assert str(error.value).endswith(f"; got {got}.")

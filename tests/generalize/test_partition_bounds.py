"""Tests of what partitions tell: no bound and no label is one person's value, and nothing is lost on the way."""

from __future__ import annotations

import bisect
import datetime
import math
import time
from collections import Counter
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckanon._core.common import labels
from duckanon._core.common.values import take_exact_numbers
from duckanon._methods.generalize.partition.column_partitions import report_optimum, report_quantiles
from tests.profiles import cheap, dear

Connection = duckdb.DuckDBPyConnection

FUNCTIONS = {
    "quantile, k": (
        3,
        lambda values: report_quantiles(values, col="x", k=3, buckets=None, label="interval", nulls="error"),
    ),
    "quantile, buckets": (
        10,
        lambda values: report_quantiles(values, col="x", k=None, buckets=4, label="interval", nulls="error"),
    ),
    "optimal": (
        3,
        lambda values: report_optimum(values, col="x", k=3, cost="squares", label="interval", nulls="error"),
    ),
}
SQL = {
    "quantile, k": (3, "anon.quantile_partition('t', 'x', k := 3)"),
    "quantile, buckets": (10, "anon.quantile_partition('t', 'x', buckets := 4)"),
    "optimal": (3, "anon.optimal_partition('t', 'x', 3)"),
    "sampled": (10, "anon.sampled_partition('t', 'x', 4)"),
}

number_lists = st.one_of(
    st.lists(st.integers(-20, 20), min_size=3, max_size=60),
    st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=60),
    # neighbouring doubles, and values around zero, where a step is smaller than any difference
    st.lists(st.integers(0, 6).map(lambda steps: 0.3 + steps * math.ulp(0.3)), min_size=3, max_size=30),
    st.lists(st.sampled_from([0.0, 5e-324, 0.1, 0.2, 1.0]), min_size=3, max_size=30),
)


def bounds(values: list[Any], result: pa.Table) -> tuple[list[float], list[int]]:
    rows = result.to_pylist()
    assert rows[0]["lower"] is None
    assert rows[-1]["upper"] is None
    assert [row["upper"] for row in rows[:-1]] == [row["lower"] for row in rows[1:]]
    return [float(row["lower"]) for row in rows[1:]], [row["rows"] for row in rows]


@pytest.mark.thorough
@pytest.mark.parametrize("name", FUNCTIONS)
@cheap
@given(values=number_lists)
def test_no_bound_is_the_value_of_fewer_than_k(name, values):
    """The attack: look for the bounds among the values. Ends and cuts of the version before were in the table."""
    least, partition = FUNCTIONS[name]
    cuts, rows = bounds(values, partition(pa.array(values)))
    holders = Counter(float(value) for value in values)
    assert not [cut for cut in cuts if 0 < holders[cut] < least]
    # the counts are those of the buckets as they are written down
    placed = Counter(bisect.bisect_right(cuts, float(value)) for value in values)
    assert [placed[bucket] for bucket in range(len(rows))] == rows


@pytest.mark.parametrize("name", SQL)
@pytest.mark.parametrize(
    "column",
    [
        "(i * 7919 % 1000)::INTEGER",
        "(i * 7919 % 1000)::DECIMAL(9, 3) / 8",
        "((i * 7919 % 1000)::DECIMAL(30, 20) / 7)::DECIMAL(30, 12)",
        "sin(i * 1.7)",
        "(sin(i * 1.7))::FLOAT",
        "DATE '1970-01-01' + (i * 7919 % 1000)::INTEGER",
        "DATE '2024-01-01' + (i * i % 97)::INTEGER",
        "TIMESTAMP '2024-01-01 08:00:00' + (i * 7919 % 1000) * INTERVAL 7 SECOND",
        "TIMESTAMPTZ '2024-01-01 08:00:00+02' + (i * 7919 % 1000) * INTERVAL 1 MICROSECOND",
        "i * i % 37",
    ],
)
@pytest.mark.thorough
def test_stored_partitions_hold_nobodys_value_and_are_applied_as_counted(con, name, column):
    least, call = SQL[name]
    con.execute("SET TimeZone = 'America/New_York'")
    con.execute(f"CREATE TABLE t AS SELECT {column} AS x FROM range(300) AS r(i)").fetchall()
    con.execute(f"CREATE TABLE p AS FROM {call}").fetchall()
    edges = con.execute("SELECT lower, upper FROM p ORDER BY bucket").fetchall()
    assert edges[0][0] is None
    assert edges[-1][1] is None
    assert None not in [low for low, _ in edges[1:]]
    # the attack: who has a bound?
    named = con.execute("SELECT count(*) AS n FROM t JOIN p ON x = lower OR x = upper GROUP BY x, bucket").fetchall()
    assert not [n for (n,) in named if n < least]
    counted = con.execute('SELECT label, "rows" FROM p ORDER BY label').fetchall()
    applied = con.execute(
        "SELECT x, count(*) FROM anon.apply_partition('t', 'x', 'p') GROUP BY x ORDER BY x"
    ).fetchall()
    assert applied == counted
    assert len(counted) > 1


@pytest.mark.parametrize("call", ["quantile_partition('t', 'x', buckets := 4", "sampled_partition('t', 'x', 4"])
def test_medians_are_no_ones_value_and_keep_the_order(con, call):
    """The attack: the labels of the version before were four people's incomes."""
    con.execute("CREATE TABLE t AS SELECT 1e4 * exp(sin(i * 1.7)) AS x FROM range(400) AS r(i)").fetchall()
    rows = con.execute(f"SELECT lower, upper, CAST(label AS DOUBLE) FROM anon.{call}, label := 'median')").fetchall()
    values = {x for (x,) in con.execute("SELECT x FROM t").fetchall()}
    assert not values & {label for _, _, label in rows}
    assert all((low is None or low <= label) and (high is None or label < high) for low, high, label in rows)


@cheap
@given(values=number_lists, k=st.integers(2, 5))
def test_a_median_is_the_bucket_s_or_between_k_values_around_it(values, k):
    if len(values) < k:
        return
    options = {"col": "x", "k": k, "buckets": None, "nulls": "error"}
    cuts, _ = bounds(values, report_quantiles(pa.array(values), label="interval", **options))
    names = report_quantiles(pa.array(values), label="median", **options)["label"].to_pylist()
    ordered = sorted(float(value) + 0.0 for value in values)
    for bucket, name in enumerate(names):
        inside = [value for value in ordered if bisect.bisect_right(cuts, value) == bucket]
        median = inside[(len(inside) - 1) // 2]
        if inside.count(median) >= k:
            assert float(name) == median
        elif name[0] not in "<>[*":  # an interval where no number lies between the values
            label = float(name)
            first = sum(value < label for value in inside)
            last = sum(value <= label for value in inside)
            # fewer than k rows lie between the label and the median
            assert inside[0] < label < inside[-1]
            assert abs((len(inside) - 1) // 2 - (first if label > median else last - 1)) < k


def test_cuts_do_not_tell_the_day_after():
    """The last day before a value would tell the value: of two neighbours a cut says only that it is between them."""
    scale = labels.Times(is_date=True)
    at = [(datetime.date(2024, 3, day) - datetime.date(1970, 1, 1)).days * 86_400_000_000 for day in (5, 9, 10, 20)]
    assert scale.text(scale.cut(at[0], at[3], False)) == "2024-03-13"
    assert scale.text(scale.cut(at[0], at[1], False)) == "2024-03-07"
    assert scale.text(scale.cut(at[1], at[2], False)) == "2024-03-09 12:00:00"
    assert scale.text(scale.cut(at[0], at[3], True)) == "2024-03-20"
    moments = labels.Times(is_date=False)
    assert math.isnan(moments.cut(at[0], at[0] + 1, False))
    assert moments.cut(at[0], at[0] + 2, False) == at[0] + 1


def test_a_cut_above_zero_is_not_the_value():
    """Beside zero a step is 5e-324: taken off 0.1 it leaves 0.1, which was the cut."""
    assert 0 < labels.Numbers(False).cut(0.0, 0.1, False) < 0.1


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        (pa.array([2**53 + 1, 5]), "whole numbers from 2^53 on"),
        (pa.array([-(2**53), 5]), "whole numbers from 2^53 on"),
        (pa.array([2**63 + 1], pa.uint64()), "whole numbers from 2^53 on"),
        (pa.array(["12345678901234567890"]).cast(pa.decimal128(38, 0)), "whole numbers from 2^53 on"),
        (pa.array(["0.1234567890123456"]).cast(pa.decimal128(38, 20)), "decimals of more than 15 digits"),
        (pa.array(["0.0000000123456789012345678"]).cast(pa.decimal128(38, 30)), "decimals of more than 15 digits"),
        (pa.array([datetime.datetime(9000, 1, 1, 0, 0, 0, 1)]), "moments so far from 1970"),
    ],
)
def test_what_a_double_does_not_tell_apart_is_refused(values, problem):
    with pytest.raises(ValueError, match=r'^column "x" holds ' + problem.replace("^", r"\^")):
        take_exact_numbers("x", values)


def test_what_a_double_tells_apart_is_taken():
    for texts, places in ((["0.1", "12.34567890123", "-700.5"], 20), (["1E-7", "0.00000000000012"], 30)):
        known, _, _ = take_exact_numbers("x", pa.array(texts).cast(pa.decimal128(38, places)))
        assert known.tolist() == [float(text) for text in texts]
    assert take_exact_numbers("x", pa.array([2**53 - 1]))[0].tolist() == [2.0**53 - 1]
    last_second = datetime.datetime(9999, 12, 31, 23, 59, 59)
    moments, _, scale = take_exact_numbers("x", pa.array([last_second]))
    assert scale.text(moments[0]) == str(last_second)


@dear
@given(digits=st.lists(st.integers(0, 10**15 - 1), min_size=1, max_size=50), scale=st.integers(0, 30))
def test_long_decimals_are_the_same_numbers_in_python_and_in_sql(shared, digits, scale):
    texts = sorted({f"{digit}e-{scale}" for digit in digits})
    values = f"unnest({texts}::DECIMAL(38, {min(scale, 22)})[])"
    column, doubles = shared.execute(
        f"SELECT list(x::VARCHAR), list(anon._plan_number(x)) FROM (SELECT {values} AS x)"
    ).fetchone()
    decimals = pa.array(column).cast(pa.decimal128(38, min(scale, 22)))
    assert take_exact_numbers("x", decimals)[0].tolist() == doubles


@pytest.mark.thorough
@pytest.mark.parametrize("column", ["9007199254740992 + i", "(9007199254740992 + i)::HUGEINT", "2::UHUGEINT ** 0 * i"])
@pytest.mark.parametrize("call", ["plan('t', ['x'], 3)", "generalize('t', ['x'], 3)", "optimal_partition('t', 'x', 3)"])
def test_k_holds_or_is_refused_beyond_the_doubles(con, call, column):
    """Of nine neighbours from 2^53 on the version before made buckets of 4, 2 and 3 rows for k = 3."""
    column = column.replace("2::UHUGEINT ** 0 * i", "340282366920938463463374607431768211000::UHUGEINT + i::UHUGEINT")
    con.execute(f"CREATE TABLE t AS SELECT {column} AS x FROM range(9) AS r(i)").fetchall()
    with pytest.raises(duckdb.Error, match=r'column "x" holds whole numbers from 2\^53 on'):
        con.execute(f"FROM anon.{call}").fetchall()


def test_codes_beyond_the_doubles_are_kept_as_text(con):
    con.execute("CREATE TABLE t AS SELECT 9007199254740992 + i % 2 AS x FROM range(20) AS r(i)").fetchall()
    result = con.execute(
        "SELECT x, count(*) FROM anon.generalize('t', ['x'], 3, methods := MAP {'x': 'top'}) GROUP BY x"
    )
    assert sorted(result.fetchall()) == [("9007199254740992", 10), ("9007199254740993", 10)]


@pytest.mark.thorough
@pytest.mark.parametrize("method", ["calendar", "interval"])
def test_a_plan_of_dates_is_not_applied_to_their_texts(con, method):
    """Every text was called as the rest is, and nobody told."""
    con.execute("CREATE TABLE t AS SELECT DATE '2000-01-01' + (i * 13 % 999)::INTEGER AS Dob FROM range(500) AS r(i)")
    con.execute(f"CREATE TABLE plan AS FROM anon.plan('t', ['dob'], 5, methods := MAP {{'dob': '{method}'}})")
    assert len(con.execute("SELECT DISTINCT dob FROM anon.apply_plan('t', 'plan')").fetchall()) > 5
    for kind in ("VARCHAR", "INTEGER"):
        con.execute(f"CREATE OR REPLACE TABLE other AS SELECT NULL::{kind} AS dob UNION ALL SELECT NULL")
        with pytest.raises(duckdb.Error) as raised:
            con.execute("FROM anon.apply_plan('other', 'plan')").fetchall()
        assert str(raised.value).endswith(
            'anon.apply_plan: column "dob" must hold dates or timestamps, as the plan\'s does; '
            f"its type is {kind}: cast it first."
        )
    con.execute("CREATE TABLE moments AS SELECT CAST(dob AS TIMESTAMP) AS dob FROM t")
    labels_of = "SELECT dob FROM anon.apply_plan('{}', 'plan') ORDER BY dob"
    assert con.execute(labels_of.format("moments")).fetchall() == con.execute(labels_of.format("t")).fetchall()


@pytest.mark.thorough
def test_coverage_shows_that_people_have_moved_to_the_ends(con):
    con.execute("CREATE TABLE t AS SELECT i % 100 AS age FROM range(5000) AS r(i)")
    con.execute("CREATE TABLE plan AS FROM anon.plan('t', ['age'], 500)")
    con.execute("CREATE TABLE later AS SELECT age + 60 AS age FROM t")
    now, then = con.execute(
        "SELECT outer_fraction, fitted_outer_fraction FROM anon.plan_coverage('t', 'plan')"
    ).fetchone()
    assert now == pytest.approx(then)
    ends = "SELECT label FROM plan WHERE covers = 'number' AND (lower IS NULL OR upper IS NULL)"
    expected = con.execute(f"SELECT avg((age IN ({ends}))::INTEGER) FROM anon.apply_plan('later', 'plan')").fetchone()
    result = con.execute("SELECT outer_fraction FROM anon.plan_coverage('later', 'plan')").fetchone()
    assert result == expected
    assert result[0] > 2 * then


def test_the_values_of_a_fraction_of_rows_are_not_in_a_sampled_partition(con):
    """Cuts from a sample are no values either, of the sample or of the table."""
    rng = np.random.default_rng(5)
    table = pa.table({"x": rng.lognormal(10, 1, 50_000)})
    con.register("t", table)
    cuts = con.execute("SELECT lower FROM anon.sampled_partition('t', 'x', 20, sample_rows := 5000)").fetchall()
    assert len(cuts) == 20
    assert not {cut for (cut,) in cuts} & set(table["x"].to_pylist())


def test_columns_that_are_not_released_take_no_time(con: Connection) -> None:
    """The expressions of a partition are bound for the columns of the result: two hundred took five seconds."""
    listed = ", ".join(f"i AS c{place}" for place in range(200))
    con.execute(f"CREATE OR REPLACE TABLE wide AS SELECT i * 7 % 20 AS age, {listed} FROM range(60) AS t(i)")
    con.execute("CREATE OR REPLACE TABLE parts AS FROM anon.quantile_partition('wide', 'age', 4)")
    begin = time.process_time()
    rows = con.execute("FROM anon.apply_partition('wide', 'age', 'parts', keep := ['c7'])").fetchall()
    assert time.process_time() - begin < 2
    assert sorted(row[1] for row in rows) == list(range(60))

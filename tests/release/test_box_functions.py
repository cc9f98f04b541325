"""anon.boxes and the statistics over it, end to end: promises, enclosures, real data."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.profiles import dear
from tests.release.coded import check_held
from tests.sqltest import data_file

Connection = duckdb.DuckDBPyConnection


def rows(con: Connection, query: str) -> list[tuple[Any, ...]]:
    return con.execute(query).fetchall()


TRUTH = """
    SELECT 'mean', ['{0}'], avg({0}) FROM t UNION ALL SELECT 'variance', ['{0}'], var_pop({0}) FROM t
    UNION ALL SELECT 'standard_deviation', ['{0}'], stddev_pop({0}) FROM t"""
PAIRS = """
    UNION ALL SELECT 'covariance', ['{0}', '{1}'], covar_pop({0}, {1}) FROM t
    UNION ALL SELECT 'correlation', ['{0}', '{1}'], corr({0}, {1}) FROM t"""


NUMBERS = st.floats(-1e3, 1e3).map(lambda number: round(number, 9))
"""Not as near to 0 as 1e-290, which an end that is rounded does not hold."""


@dear
@given(
    values=st.lists(st.tuples(st.integers(-50, 50), NUMBERS), min_size=10, max_size=80),
    k=st.integers(2, 10),
    box=st.sampled_from(["parts", "cell", "bounds", "rounded"]),
)
def test_boxes_hold_k_records_and_statistics_hold_the_truth(
    con: Connection, values: list[tuple[int, float]], k: int, box: str
) -> None:
    table = pa.table({"a": [a for a, _ in values], "b": [b for _, b in values], "id": range(len(values))})
    con.register("source", table)
    con.execute("CREATE OR REPLACE TABLE t AS FROM source").fetchall()
    con.execute(
        f"CREATE OR REPLACE TABLE boxed AS "
        f"FROM anon.boxes('t', ['a', 'b'], {k}, box := '{box}', keep := ['id'], narrowing := ['id'], "
        "bounds_are_public := true)"
    ).fetchall()
    assert min(n for (n,) in rows(con, "SELECT count(*) FROM boxed GROUP BY box")) >= k
    for name in ("a", "b"):
        query = f"SELECT t.{name}, b.{name}.lo, b.{name}.hi FROM boxed AS b JOIN t USING (id)"
        check_held(*zip(*rows(con, query), strict=True), None, k)
    con.execute("""
        CREATE OR REPLACE TABLE t AS            -- as it is coded
        SELECT id, greatest(boxed.a.lo, least(boxed.a.hi, t.a)) AS a, greatest(boxed.b.lo, least(boxed.b.hi, t.b)) AS b
        FROM t JOIN boxed USING (id)""").fetchall()
    truth = {
        (s, tuple(c)): v
        for s, c, v in rows(con, TRUTH.format("a") + " UNION ALL " + TRUTH.format("b") + PAIRS.format("a", "b"))
    }
    for name, columns, _, lower, upper, *_ in rows(con, "FROM anon.interval_statistics('boxed', ['a', 'b'])"):
        value = truth[name, tuple(columns)]
        if value is not None and np.isfinite(value):
            slack = 1e-9 * max(1.0, abs(value))
            assert lower - slack <= value <= upper + slack


@pytest.mark.parametrize("box", ["parts", "cell"])
def test_a_table_of_too_few_values_for_any_stratum_is_refused(con: Connection, box: str) -> None:
    con.execute("CREATE TABLE t AS SELECT i % 2 AS x, i % 3 AS sex FROM range(30) AS r(i)").fetchall()
    with pytest.raises(
        duckdb.InvalidInputException, match="column 'x' must have at least 3 values that are far enough"
    ):
        con.execute(f"FROM anon.boxes('t', ['x'], 5, l := 3, box := '{box}', by := ['sex'])").fetchall()


@pytest.mark.parametrize(
    ("box", "holds"),
    [
        ("rounded", "day(born.lo) = 1 AND day(born.hi + 1) = 1"),
        ("cell", "age.lo % 2 = 0 AND age.hi % 2 = 0"),
        ("bounds", "age.lo % 2 = 1 AND age.hi % 2 = 1 AND day(born.lo) BETWEEN 11 AND 19"),
    ],
)
def test_ends_are_values_of_people_only_where_bounds_are_asked_for(con: Connection, box: str, holds: str) -> None:
    """All ages are odd, so that what is midway is even, and nobody was born on the first or last days of a month."""
    con.execute(
        "CREATE TABLE t AS SELECT make_date(1950 + i, 1 + i % 12, 11 + i % 9) AS born, 2 * i + 1 AS age "
        "FROM range(40) AS r(i)"
    ).fetchall()
    ends = f"FROM anon.boxes('t', ['born', 'age'], 5, box := '{box}', bounds_are_public := true)"
    assert rows(con, f"SELECT DISTINCT {holds} {ends}") == [(True,)]


@pytest.mark.thorough
def test_a_column_that_no_statistic_needs_shapes_no_box(con: Connection) -> None:
    """The boxes are those of the five values of `a`, as if `b`, which nothing is asked of, were not there."""
    con.execute("CREATE OR REPLACE TABLE t AS SELECT i % 5 AS a, (i * 61) % 97 AS b FROM range(200) AS _(i)").fetchall()
    statistics = "[{'statistic': 'variance', 'columns': ['a']}]"
    boxes = f"FROM anon.boxes('t', ['b', 'a'], 10, effort := 'thorough', statistics := {statistics})"
    assert rows(con, f"SELECT count(DISTINCT box), count(DISTINCT a.lo) {boxes}") == [(5, 5)]


def test_labelled_records_find_a_box_that_holds_them(con: Connection) -> None:
    con.execute(
        "CREATE TABLE t AS SELECT i AS id, hash(i) % 1000 / 10 AS x, hash(-i) % 997 AS y FROM range(3000) AS r(i)"
    ).fetchall()
    con.execute(
        "CREATE TABLE boxed AS FROM anon.boxes('t', ['x', 'y'], 10, keep := ['id'], narrowing := ['id'])"
    ).fetchall()
    con.execute("CREATE TABLE boxes AS FROM anon.box_table('boxed', ['x', 'y'])").fetchall()
    found = rows(
        con,
        """
        SELECT count(*), count(*) FILTER (l.x BETWEEN b.x.lo AND b.x.hi AND l.y BETWEEN b.y.lo AND b.y.hi)
        FROM anon.label_boxes('t', 'boxes', ['x', 'y']) AS l JOIN boxes AS b USING (box)""",
    )
    assert found == [(3000, 3000)]
    same = rows(
        con,
        """SELECT avg((l.box = b.box)::INT)
           FROM anon.label_boxes('t', 'boxes', ['x', 'y']) AS l JOIN boxed AS b USING (id)""",
    )
    assert same[0][0] > 0.99  # but for those on a border


@pytest.mark.thorough
def test_people_fall_into_boxes_of_their_own_group(con: Connection) -> None:
    """Boxes of parts hold nobody else, so everybody finds the own box again, but who was lent to a pooled group."""
    con.execute("""CREATE TABLE t AS
        SELECT i AS id, (hash(i) % 100)::INTEGER AS a, (hash(i + 1000) % 50)::INTEGER AS b,
               if(i % 2 = 0, 'f', 'm') AS sex, if(i % 120 < 3, 'tiny ' || i % 120, 'region ' || i % 3) AS region
        FROM range(600) AS r(i)""")
    for by in ("NULL", "['sex', 'region']"):
        more = "['id', 'region']" if by == "NULL" else "['id']"
        con.execute(
            f"CREATE OR REPLACE TABLE b AS FROM anon.boxes('t', ['a', 'b'], 10, by := {by}, keep := {more},"
            f" narrowing := {more})"
        )
        others = f"""SELECT count(*), count(*) FILTER (labelled.box IS DISTINCT FROM b.box
                                                     AND (b.region IS NOT NULL OR t.region LIKE 'tiny%'))
            FROM anon.label_boxes('t', 'b', ['a', 'b'], by := {by}) AS labelled JOIN b USING (id) JOIN t USING (id)"""
        assert rows(con, others) == [(600, 0)]
    assert rows(con, "SELECT count(*) > 0 FROM b WHERE region IS NULL") == [(True,)]
    others = """SELECT count(*) FILTER (labelled.box IS DISTINCT FROM b.box) > 300
        FROM anon.label_boxes('t', 'b', ['a', 'b']) AS labelled JOIN b USING (id)"""
    assert rows(con, others) == [(True,)]


@pytest.mark.thorough
def test_asking_for_one_covariance_of_four_columns_makes_it_four_times_sharper(con: Connection) -> None:
    con.execute("""
        CREATE TABLE t AS SELECT sqrt(-2 * ln(u)) * cos(2 * pi() * v) AS a, sqrt(-2 * ln(u)) * sin(2 * pi() * v) AS b,
               sqrt(-2 * ln(w)) * cos(2 * pi() * z) AS c, sqrt(-2 * ln(w)) * sin(2 * pi() * z) AS d
        FROM (SELECT ((hash(i) >> 11) + 1) / 9007199254740993 AS u, (hash(i + 10**6) >> 11) / 9007199254740992 AS v,
                     ((hash(-i - 1) >> 11) + 1) / 9007199254740993 AS w,
                     (hash(-i - 10**6) >> 11) / 9007199254740992 AS z
              FROM range(20_000) AS r(i))""").fetchall()
    widths = []
    for statistics in ("NULL", "[{'statistic': 'covariance', 'columns': ['a', 'b']}]"):
        con.execute(f"""
            CREATE OR REPLACE TABLE boxed AS
            FROM anon.boxes('t', ['a', 'b', 'c', 'd'], 10, statistics := {statistics})""").fetchall()
        ((width,),) = rows(
            con,
            "SELECT upper - lower FROM anon.interval_statistics('boxed', ['a', 'b']) WHERE statistic = 'covariance'",
        )
        widths.append(width)
    assert widths[0] > 4 * widths[1]


@pytest.mark.thorough
@pytest.mark.parametrize("k", [50, pytest.param(5, marks=pytest.mark.thorough)])
def test_nhanes_lies_in_its_intervals(con: Connection, k: int) -> None:
    con.execute(f"CREATE TABLE t AS FROM '{data_file('nhanes.parquet')}'").fetchall()
    cols = [name for name, kind, *_ in rows(con, "DESCRIBE t") if kind == "DOUBLE"][:3]
    con.execute(f"CREATE TABLE boxed AS FROM anon.boxes('t', {cols}, {k})").fetchall()
    found = rows(con, f"FROM anon.interval_statistics('boxed', {cols})")
    for name, columns, _, lower, upper, *_ in found:
        if name == "mean":
            ((value,),) = rows(con, f'SELECT avg("{columns[0]}") FROM t')
            assert lower <= value <= upper
        if name == "correlation":
            ((value,),) = rows(con, f'SELECT corr("{columns[0]}", "{columns[1]}") FROM t')
            assert lower <= value <= upper

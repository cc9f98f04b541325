"""Plans, partitions and generalized tables: against the paper, against brute force, on random tables."""

from __future__ import annotations

import datetime
import itertools
import math
from collections import Counter
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from duckanon._core.common import labels
from duckanon._core.common.values import take_numbers
from duckanon._methods.generalize import plans
from duckanon._methods.generalize.partition.column_partitions import find_cuts as cuts_of_pairs
from tests.profiles import cheap
from tests.sqltest import data_file

Connection = duckdb.DuckDBPyConnection


def rows(con: Connection, query: str, *parameters: Any) -> list[tuple[Any, ...]]:
    return con.execute(query, list(parameters)).fetchall()


def value(con: Connection, query: str, *parameters: Any) -> Any:
    return rows(con, query, *parameters)[0][0]


# ---- the budget ----


@pytest.mark.parametrize(
    ("population", "distinct", "k"),
    [
        (3e8, 2.4e6, 100),
        (3e8, 15_000, 20_000),
        (1000, 20, 30),
        (1000, 20, 80),
        (3e8, 3e6, 150),
        (1e12, 1e9, 900),
        (7, 3, 2),
    ],
)
def test_the_probability_is_the_binomial_tail(con: Connection, population: float, distinct: float, k: int) -> None:
    ((_, exact, bound),) = rows(con, f"FROM anon.anonymity_probability({population}, {distinct}, {k})")
    assert exact == pytest.approx(stats.binom.sf(k - 1, int(population), 1 / distinct), rel=1e-9)
    assert 1 - exact == pytest.approx(stats.binom.cdf(k - 1, int(population), 1 / distinct), rel=1e-9)
    assert bound <= exact


@given(
    budget=st.floats(1, 1e9),
    columns=st.lists(st.tuples(st.integers(1, 5000), st.integers(0, 20)), min_size=1, max_size=6),
)
@example(budget=124999999.99999988, columns=[(125, 0), (1000, 0), (1000, 0)])  # a rounding error below a product
def test_allocations_keep_to_the_budget_and_waste_nothing(
    con: Connection, budget: float, columns: list[tuple[int, int]]
) -> None:
    counts, weights = [count for count, _ in columns], [weight for _, weight in columns]
    if not any(weights):
        weights[0] = 1
    kept = value(con, "SELECT anon.allocate(?, ?, ?)", budget, counts, weights)
    assert math.prod(kept) <= budget
    assert all(1 <= item <= most for item, most in zip(kept, counts, strict=True))
    for place, most in enumerate(counts):
        one_more = math.prod(kept) // kept[place] * (kept[place] + 1)
        assert kept[place] == most or one_more > budget
    assert kept == plans.allocate(budget, counts, weights)


def test_allocations_before_rounding_are_optimal() -> None:
    """Large budgets hardly round: no other product within the budget has a smaller sum of w / d."""
    kept = plans.allocate(1e9, [10**6] * 3, [1.0, 2.0, 4.0])
    assert [kept[1] / kept[0], kept[2] / kept[0]] == pytest.approx([2, 4], rel=0.01)
    ours = sum(w / d for w, d in zip((1, 2, 4), kept, strict=True))
    generator = np.random.default_rng(0)
    for _ in range(200):
        a, b = np.exp(generator.uniform(0, np.log(1e6), 2))
        c = min(1e9 / a / b, 1e6)
        assert 1 / a + 2 / b + 4 / c >= ours * (1 - 0.01)


# ---- one column ----


def brute_force(values: list[int], k: int, cost: str) -> float:
    """The least cost of all partitions, equal values together: every set of borders between different values."""
    values = sorted(values)
    borders = [at for at in range(1, len(values)) if values[at] != values[at - 1]]
    best = math.inf
    for count in range(len(borders) + 1):
        for chosen in itertools.combinations(borders, count):
            edges = [0, *chosen, len(values)]
            groups = [values[a:b] for a, b in itertools.pairwise(edges)]
            if min(map(len, groups)) >= k:
                costs = [group_cost(group, cost) for group in groups]
                best = min(best, max(costs) if cost == "center" else sum(costs))
    return best


def group_cost(group: list[int], cost: str) -> float:
    if cost == "ranks":
        return float(sum(abs(rank - (len(group) - 1) // 2) for rank in range(len(group))))
    if cost == "squares":
        return sum((x - sum(group) / len(group)) ** 2 for x in group)
    if cost == "median":
        return float(sum(abs(x - sorted(group)[len(group) // 2]) for x in group))
    half = (group[-1] - group[0]) / 2
    return half if cost == "center" else half * len(group)


@given(
    values=st.lists(st.integers(-20, 20), min_size=1, max_size=11),
    k=st.integers(1, 5),
    cost=st.sampled_from(["squares", "median", "radius", "center", "ranks"]),
)
def test_partitions_cost_the_least(con: Connection, values: list[int], k: int, cost: str) -> None:
    k = min(k, len(values))
    con.execute("CREATE OR REPLACE TABLE s AS SELECT unnest(?::INTEGER[]) AS x", [values]).fetchall()
    call = f"anon.quantile_partition('s', 'x', k := {k})"
    if cost != "ranks":
        call = f"anon.optimal_partition('s', 'x', {k}, cost := '{cost}')"
    result = rows(con, f'SELECT lower, upper, "rows", cost FROM {call}')
    costs = [item[3] for item in result]
    assert (max(costs) if cost == "center" else sum(costs)) == pytest.approx(brute_force(values, k, cost), abs=1e-9)
    assert min(item[2] for item in result) >= k
    assert sum(item[2] for item in result) == len(values)
    edges = [item[0] for item in result]
    assert [item[2] for item in result] == list(
        np.bincount(np.searchsorted(edges[1:], values, side="right"), minlength=len(result))
    )


@pytest.mark.thorough
def test_the_error_falls_with_the_square_of_the_buckets(con: Connection) -> None:
    """Figure 7 of the paper: Error / MinError is 1 / b^2 for evenly spread values."""
    con.execute("CREATE TABLE u AS SELECT i * 0.37 AS x FROM range(20_000) AS r(i)").fetchall()
    for buckets in (2, 5, 10, 50, 100):
        con.execute(
            f"CREATE OR REPLACE TABLE p AS FROM anon.quantile_partition('u', 'x', buckets := {buckets})"
        ).fetchall()
        con.execute("CREATE OR REPLACE TABLE o AS FROM anon.apply_partition('u', 'x', 'p')").fetchall()
        ratio = value(con, "SELECT error_ratio FROM anon.generalization_loss('u', 'o', ['x']) WHERE column_name = 'x'")
        assert ratio == pytest.approx(1 / buckets**2, rel=0.05)


@pytest.mark.thorough
def test_sampled_cuts_are_where_the_bound_says(con: Connection) -> None:
    """The bound holds for all cuts at once with a probability of 1 - delta: half of the runs may miss with 0.5."""
    con.execute("CREATE TABLE big AS SELECT hash(i) / 1e19 AS x FROM range(50_000) AS r(i)").fetchall()
    ordered = np.sort(np.array([x for (x,) in rows(con, "SELECT x FROM big")]))
    misses, paper_misses = 0, 0
    for _ in range(40):
        cuts = rows(
            con, "SELECT lower FROM anon.sampled_partition('big', 'x', 10, epsilon := 0.02, delta := 0.5) OFFSET 1"
        )
        wrong = [abs(np.searchsorted(ordered, cut) / 50_000 - place / 10) for place, (cut,) in enumerate(cuts, start=1)]
        misses += max(wrong) > 0.02 + 2 / 50_000
        # the paper's size for the same epsilon: 1 / 0.02 ln(1 / 0.5)
        cuts = rows(con, "SELECT lower FROM anon.sampled_partition('big', 'x', 10, sample_rows := 35) OFFSET 1")
        wrong = [abs(np.searchsorted(ordered, cut) / 50_000 - place / 10) for place, (cut,) in enumerate(cuts, start=1)]
        paper_misses += max(wrong) > 0.02
    assert misses <= 20
    assert paper_misses > 30


@cheap
@given(st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=2, unique=True))
def test_readable_cuts_part_the_same_values(pair: list[float]) -> None:
    low, high = sorted(pair)
    for scale in (labels.Numbers(False), labels.Numbers(True)):
        if scale.is_whole:
            low, high = float(math.floor(low)), float(math.floor(low) + 1 + math.floor(high - low))
        cut = scale.readable(low, high)
        assert low < cut <= high
        assert float(scale.text(cut)) == cut


@pytest.mark.parametrize(
    ("low", "high", "cut"),
    [
        (2.3456, 3.4567, "3"),
        (24, 25, "25"),
        (-3.5, 4, "0"),
        (0.1234, 0.12391, "0.1235"),
        (41, 89, "50"),
        (21, 49, "40"),
        (20400, 20499, "20450"),
        (1234, 5678, "5000"),
        (99, 101, "100"),
    ],
)
def test_readable_cuts_are_round(low: float, high: float, cut: str) -> None:
    scale = labels.Numbers(False)
    assert scale.text(scale.readable(low, high)) == cut


@cheap
@given(st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=2, unique=True), st.booleans())
def test_a_cut_is_no_value_unless_it_is_shared(pair: list[float], is_whole: bool) -> None:
    low, high = sorted(map(math.floor, pair) if is_whole else pair)
    if low == high:
        high += 1
    scale = labels.Numbers(is_whole)
    cut = scale.cut(float(low), float(high), is_shared=False)
    if math.isnan(cut):
        assert math.nextafter(low, math.inf) == high
    else:
        assert low < cut < high
        assert float(scale.text(cut)) == cut
    assert low < scale.cut(float(low), float(high), is_shared=True) <= high


NUMBER = st.one_of(st.floats(-1e9, 1e9), st.integers(-300, 300).map(float), st.floats(0, 1e-6), st.floats(1e14, 1e18))


@pytest.mark.thorough
@cheap
@given(st.lists(st.tuples(NUMBER, NUMBER, st.booleans()), min_size=1, max_size=20), st.booleans())
def test_many_cuts_are_those_of_each_pair(pairs: list[tuple[float, float, bool]], is_whole: bool) -> None:
    scale = labels.Numbers(is_whole)
    lows = [float(math.floor(min(pair[:2]))) if is_whole else min(pair[:2]) for pair in pairs]
    highs = [float(math.floor(max(pair[:2])) + 1) if is_whole else max(pair[:2]) for pair in pairs]
    chosen = [place for place in range(len(pairs)) if lows[place] < highs[place]]
    each = [scale.cut(lows[place], highs[place], pairs[place][2]) for place in chosen]
    together = cuts_of_pairs(
        scale,
        np.array([lows[place] for place in chosen]),
        np.array([highs[place] for place in chosen]),
        np.array([pairs[place][2] for place in chosen], bool),
    )
    np.testing.assert_array_equal(together, each)


def test_readable_dates() -> None:
    def at(text: str) -> float:
        return (datetime.datetime.fromisoformat(text) - datetime.datetime(1970, 1, 1)) / datetime.timedelta(
            microseconds=1
        )

    scale = labels.Times(False)
    cases = {
        ("1969-03-04", "1982-07-08"): "1980-01-01",
        ("1981-03-04", "1982-07-08"): "1982-01-01",
        ("1982-05-04", "1982-06-08"): "1982-06-01",
        ("1982-05-04 10:20:00", "1982-05-04 11:30:00"): "1982-05-04 11:00:00",
    }
    for (low, high), cut in cases.items():
        assert scale.text(scale.readable(at(low), at(high))) == cut


# ---- plans ----


@pytest.mark.thorough
@pytest.mark.usefixtures("short_search")
def test_example_7_is_where_the_search_begins(con: Connection) -> None:
    """Gender, date of birth and ZIP among 3e8 people, (0.9, 100): gender stays, the other two share 1.2e6."""
    con.execute("""
        CREATE TABLE people AS
        SELECT CASE WHEN i % 2 = 0 THEN 'F' ELSE 'M' END AS gender,
               DATE '1930-01-01' + (i * 7 % 22_000)::INTEGER AS dob, lpad((i * 11 % 42_000)::VARCHAR, 5, '0') AS zip
        FROM range(42_000) AS r(i)""").fetchall()
    con.execute(
        "CREATE TABLE plan AS FROM anon.plan('people', ['gender', 'dob', 'zip'], 100, population := 3e8)"
    ).fetchall()
    allowed = dict(rows(con, "SELECT column_name, allowed FROM anon.explain_plan('plan')"))
    # months of 60 years, but for extremes of fewer than 100 people, and the first three digits, as in the paper
    assert allowed == {"gender": 2, "dob": 721, "zip": 420}
    assert math.prod(allowed.values()) <= value(con, "SELECT anon.distinct_budget(3e8, 100)")


@pytest.mark.thorough
@pytest.mark.usefixtures("short_search")
def test_a_stored_plan_gives_the_same_labels_next_month(con: Connection) -> None:
    con.execute("""
        CREATE TABLE march AS
        SELECT i % 90 AS age, DATE '1950-01-01' + (i * 37 % 20000)::INTEGER AS dob, 'c' || i % 40 AS city,
               (i * 7919 % 1000) / 10 AS weight
        FROM range(3000) AS r(i)""").fetchall()
    con.execute(
        "CREATE TABLE april AS SELECT * REPLACE (age + 5 AS age), 1 AS more FROM march WHERE age % 3 = 0"
    ).fetchall()
    con.execute("CREATE TABLE plan AS FROM anon.plan('march', ['age', 'dob', 'city', 'weight'], 8)").fetchall()
    for name in ("age", "dob", "city", "weight"):
        names = {}
        for table in ("march", "april"):
            con.execute(f"CREATE OR REPLACE TABLE both_ AS SELECT *, {name} AS own FROM {table}").fetchall()
            pairs = rows(con, f"SELECT DISTINCT own, {name} FROM anon.apply_plan('both_', 'plan', keep := ['own'])")
            assert len(pairs) == len({own for own, _ in pairs})  # a function of the value
            names[table] = dict(pairs)
        assert names["march"].keys() & names["april"].keys()
        assert all(names["april"].get(own, label) == label for own, label in names["march"].items())


def test_a_named_end_stops_where_its_neighbour_begins(con: Connection) -> None:
    """A value of k people alone at an end reaches to the cut beside it, which may be nearer than the next value."""
    con.execute("CREATE TABLE t AS SELECT unnest([-3, -3, -2, -1, 0, 10, 22, 22, 23, 27, 33, 35, 38]) AS x").fetchall()
    options = "max_suppressed_fraction := 0.0, methods := MAP {'x': 'interval'}"
    con.execute(f"CREATE TABLE plan AS FROM anon.plan('t', ['x'], 2, {options})").fetchall()
    assert rows(con, "FROM plan WHERE covers = 'number' AND lower::DOUBLE >= upper::DOUBLE") == []
    applied = Counter(label for (label,) in rows(con, "FROM anon.apply_plan('t', 'plan')"))
    assert applied == dict(rows(con, 'SELECT label, "rows" FROM plan WHERE "rows" > 0'))


def test_an_edited_plan_is_applied_as_edited(con: Connection) -> None:
    con.execute("CREATE TABLE t AS SELECT i % 60 AS age FROM range(600) AS r(i)").fetchall()
    con.execute("CREATE TABLE plan AS FROM anon.plan('t', ['age'], 200)").fetchall()
    con.execute("UPDATE plan SET label = 'young' WHERE upper = '19.5'").fetchall()
    assert value(con, "SELECT count(*) FROM anon.apply_plan('t', 'plan') WHERE age = 'young'") == 200


@pytest.mark.usefixtures("short_search")
def test_plans_survive_a_file(con: Connection, tmp_path: Any) -> None:
    con.execute("CREATE TABLE t AS SELECT i % 60 AS age, i % 2 AS sex FROM range(600) AS r(i)").fetchall()
    con.execute(f"COPY (FROM anon.plan('t', ['age', 'sex'], 50)) TO '{tmp_path}/plan.parquet'").fetchall()
    con.execute(f"CREATE TABLE plan AS FROM '{tmp_path}/plan.parquet'").fetchall()
    assert len(rows(con, "SELECT DISTINCT age, sex FROM anon.apply_plan('t', 'plan')")) == 12


# ---- generalized tables ----


@pytest.mark.thorough
@pytest.mark.usefixtures("short_search")
def test_names_that_need_quotes(con: Connection) -> None:
    con.execute("""
        CREATE TABLE "my table" AS
        SELECT i % 30 AS "select", i % 2 AS "Größe", i % 5 AS "a ""quoted"" name", i AS "x.y"
        FROM range(300) AS r(i)""").fetchall()
    cols = ["select", "Größe", 'a "quoted" name']
    released = con.execute(f"FROM anon.generalize('my table', {cols}, 10, keep := ['x.y'])")
    assert [name for name, *_ in released.description] == [*cols, "x.y"]
    assert min(Counter(row[:3] for row in released.fetchall()).values()) >= 10


def test_numbers_between_kept_ones_are_in_gaps(con: Connection) -> None:
    """Nobody has them, so that a plan applied to other rows shows nothing of them."""
    con.execute("CREATE TABLE doses AS SELECT [5, 20, 21][1 + i % 3] AS dose FROM range(60) AS r(i)").fetchall()
    con.execute(
        "CREATE TABLE plan AS FROM anon.plan('doses', ['dose'], 20, methods := MAP {'dose': 'round'})"
    ).fetchall()
    assert rows(con, "SELECT covers, lower, upper, label, rows FROM plan") == [
        ("number", None, "5", "*", 0),
        ("number", "5", "6", "5", 20),
        ("number", "6", "20", "*", 0),
        ("number", "20", "21", "20", 20),
        ("number", "21", "22", "21", 20),
        ("number", "22", None, "*", 0),
        ("rest", None, None, "*", 0),
        ("null", None, None, "*", 0),
    ]
    con.execute("CREATE TABLE others AS SELECT unnest([4, 5, 6, 19, 20, 21, 22]) AS dose").fetchall()
    assert Counter(rows(con, "FROM anon.apply_plan('others', 'plan')")) == {
        ("5",): 1,
        ("20",): 1,
        ("21",): 1,
        ("*",): 4,
    }


@pytest.mark.thorough
@pytest.mark.usefixtures("short_search")
def test_the_calendar_and_the_prefixes_are_those_of_the_functions(con: Connection) -> None:
    """Labels inside the fitted range are what anon.generalize_date and anon.generalize_prefix write."""
    con.execute("""
        CREATE TABLE t AS
        SELECT DATE '1930-01-01' + (i * 7 % 25000)::INTEGER AS dob, lpad((i % 900)::VARCHAR, 5, '0') AS zip
        FROM range(4000) AS r(i)""").fetchall()
    con.execute("CREATE TABLE plan AS FROM anon.plan('t', ['dob', 'zip'], 20)").fetchall()
    levels = "['day', 'month', 'quarter', 'half-year', 'year', '5 years', 'decade']"
    con.execute("CREATE TABLE twice AS SELECT *, dob AS day, zip AS code FROM t").fetchall()
    strange = rows(
        con,
        f"""
        SELECT day, dob FROM anon.apply_plan('twice', 'plan', keep := ['day'])
        WHERE dob NOT LIKE '<=%' AND dob NOT LIKE '>=%'
          AND NOT list_contains([anon.generalize_date(day, l) FOR l IN {levels}], dob)""",
    )
    assert not strange
    strange = rows(
        con,
        """
        SELECT code, zip FROM anon.apply_plan('twice', 'plan', keep := ['code'])
        WHERE zip <> '*' AND NOT list_contains([anon.generalize_prefix(code, n) FOR n IN [1, 2, 3, 4, 5]], zip)""",
    )
    assert not strange


ADULT = {
    "sex": "sex", "age": "age", "race": "race", "marital_status": "marital-status", "education": "education",
    "native_country": "native-country", "workclass": "workclass", "occupation": "occupation",
}  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize(("k", "arx"), [(10, 0.344), (5, 0.292)])
def test_adult_loses_less_than_with_arx(con: Connection, k: int, arx: float) -> None:
    """ARX's best global recoding with the same hierarchies, 5 % of the rows suppressed at most."""
    con.execute(f"""
        CREATE TABLE adult AS FROM '{data_file("adult.csv")}'
        WHERE workclass <> '?' AND occupation <> '?' AND native_country <> '?'""").fetchall()
    for name, file in ADULT.items():
        path = data_file(f"adult_hierarchies/adult_hierarchy_{file}.csv")
        con.execute(
            f"CREATE TABLE h_{name} AS FROM read_csv('{path}', delim = ';', header = false, all_varchar = true)"
        ).fetchall()
    trees = "MAP {" + ", ".join(f"'{name}': 'h_{name}'" for name in ADULT) + "}"
    con.execute(f"""
        CREATE TABLE released AS
        FROM anon.generalize('adult', {list(ADULT)}, {k}, hierarchies := {trees},
                             max_suppressed_fraction := 0.05)""").fetchall()
    assert value(con, f"SELECT k FROM anon.k_anonymity('released', {list(ADULT)})") >= k
    ((loss, suppressed),) = rows(
        con,
        f"""
        SELECT ncp, suppressed_rows
        FROM anon.generalization_loss('adult', 'released', {list(ADULT)}, hierarchies := {trees})
        WHERE column_name IS NULL""",
    )
    assert suppressed <= 0.05 * 30_162
    assert loss < 0.96 * arx


def test_leaves_of_decimals_are_what_duckdb_makes_of_them(con: Connection) -> None:
    values = [item / 10 for item in range(10_000)]
    con.execute("CREATE TABLE t AS SELECT (i / 10)::DECIMAL(9,1) AS x FROM range(10_000) AS r(i)").fetchall()
    column = con.sql("FROM t").to_arrow_table().column(0)
    assert take_numbers("x", column)[0].tolist() == values == [x for (x,) in rows(con, "SELECT x::DOUBLE FROM t")]


def test_missing_values_stay_missing_where_enough_people_share_them(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE t AS SELECT CASE WHEN i % 5 > 0 THEN i % 7 END AS x, i % 3 AS y FROM range(100) AS s(i)")
    con.execute("CREATE TABLE p AS FROM anon.plan('t', ['x', 'y'], 3)")
    labels = dict(con.execute("SELECT column_name, label FROM p WHERE covers = 'null'").fetchall())
    assert labels == {"x": None, "y": "*"}  # nobody's y is missing
    assert con.execute("SELECT count(*) - count(x) FROM anon.apply_plan('t', 'p')").fetchone() == (20,)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 3, 5] * 5, {"1": 5, "3": 5, "5": 5}),
        ([1, 3, 5] * 5 + [6, 7, 8], {"1": 5, "3": 5, ">=5": 8}),  # from 5 on, which is no one person's
        ([1, 3, 5] * 5 + [0, -1], {"<2": 7, "3": 5, "5": 5}),
    ],
)
def test_values_that_enough_people_share_keep_their_names_in_steps(
    con: Connection, values: list[int], expected: dict[str, int]
) -> None:
    con.execute("CREATE TABLE odd AS SELECT unnest(?) AS x", [values]).fetchall()
    query = "SELECT x, count(*) FROM anon.generalize('odd', ['x'], 5, methods := MAP {'x': 'round'}) GROUP BY x"
    assert dict(rows(con, query)) == expected

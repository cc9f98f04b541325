"""The checks against a brute-force oracle on random tables, and against published numbers on Adult."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from decimal import Decimal
from typing import Any

import duckdb
import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from scipy.stats import wasserstein_distance

from tests.profiles import dear

QUASI = ["q", "R s", "flag"]
TYPES = {"q": pa.string(), "R s": pa.int32(), "flag": pa.bool_(), "num": pa.int64(), "txt": pa.string()}
ROW = st.tuples(
    st.sampled_from(["a", "b", None]),
    st.sampled_from([1, 2, None]),
    st.sampled_from([True, False, None]),
    st.sampled_from([10, 20, 35, 90, -5, None]),
    st.sampled_from(["x", "y", "z", None]),
)
TABLES = st.lists(ROW, min_size=1, max_size=40)
COLUMNS = st.lists(st.sampled_from(QUASI), min_size=1, max_size=3, unique=True)
NULLS = st.sampled_from(["value", "drop"])


def fill(con: duckdb.DuckDBPyConnection, rows: list[tuple]) -> None:
    columns = dict(zip(TYPES, zip(*rows, strict=True), strict=True))
    random_table = pa.table({name: pa.array(values, TYPES[name]) for name, values in columns.items()})
    con.register("random_table", random_table)
    con.execute("CREATE OR REPLACE TABLE people AS FROM random_table").fetchall()


def classes(rows: list[tuple], cols: list[str], nulls: str) -> dict[tuple, list[tuple]]:
    """The oracle's equivalence classes, in the table's order of columns."""
    places = sorted(list(TYPES).index(name) for name in cols)
    found: dict[tuple, list[tuple]] = defaultdict(list)
    for row in rows:
        key = tuple(row[place] for place in places)
        if nulls == "value" or None not in key:
            found[key].append(row)
    return found


def answer(con: duckdb.DuckDBPyConnection, query: str) -> list[dict[str, Any]]:
    result = con.execute(query)
    names = [column[0] for column in result.description]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


def refused(con: duckdb.DuckDBPyConnection, query: str) -> bool:
    with pytest.raises(duckdb.InvalidInputException, match="the table has no rows to look at"):
        con.execute(query).fetchall()
    return True


@pytest.mark.thorough
@given(rows=TABLES, cols=COLUMNS, nulls=NULLS)
def test_class_counts(shared: duckdb.DuckDBPyConnection, rows: list[tuple], cols: list[str], nulls: str) -> None:
    fill(shared, rows)
    sizes = [len(members) for members in classes(rows, cols, nulls).values()]
    call = f"('people', {cols}, nulls := '{nulls}')"
    histogram = answer(shared, f"FROM anon.class_sizes{call}")
    assert [(line["class_size"], line["classes"], line["rows"]) for line in histogram] == [
        (size, count, size * count) for size, count in sorted(Counter(sizes).items())
    ]
    if not sizes:
        assert refused(shared, f"FROM anon.k_anonymity{call}")
        return
    assert histogram[-1]["cumulative_fraction"] == pytest.approx(1)
    [checked] = answer(shared, f"FROM anon.k_anonymity{call}")
    assert checked == {
        "k": min(sizes),
        "classes": len(sizes),
        "rows": sum(sizes),
        "singletons": sizes.count(1),
        **{f"rows_under_{k}": sum(size for size in sizes if size < k) for k in (2, 3, 5, 10, 20)},
        "people": sum(sizes),
        "linked_k": min(sizes),
    }


@dear
@given(rows=TABLES, cols=COLUMNS, nulls=NULLS, k=st.integers(2, 6))
def test_small_classes_and_their_rows(
    shared: duckdb.DuckDBPyConnection, rows: list[tuple], cols: list[str], nulls: str, k: int
) -> None:
    fill(shared, rows)
    small = {key: members for key, members in classes(rows, cols, nulls).items() if len(members) < k}
    found = shared.execute(f"FROM anon.small_classes('people', {cols}, {k}, nulls := '{nulls}')").fetchall()
    assert Counter(found) == Counter({(*key, len(members)): 1 for key, members in small.items()})
    assert [row[-1] for row in found] == sorted(row[-1] for row in found)
    risky = shared.execute(f"FROM anon.risky_rows('people', {cols}, {k}, nulls := '{nulls}')").fetchall()
    assert Counter(risky) == Counter((*row, len(members)) for members in small.values() for row in members)


@given(rows=TABLES, cols=COLUMNS, nulls=NULLS, factor=st.none() | st.sampled_from([1, 3, 1e6]))
def test_quasi_identifier(
    shared: duckdb.DuckDBPyConnection, rows: list[tuple], cols: list[str], nulls: str, factor: float | None
) -> None:
    fill(shared, rows)
    grouped = classes(rows, cols, nulls)
    population = "NULL" if factor is None else len(rows) * factor
    call = f"FROM anon.quasi_identifier('people', {cols}, population := {population}, nulls := '{nulls}')"
    if not grouped:
        assert refused(shared, call)
        return
    [found] = answer(shared, call)
    sizes = [len(members) for members in grouped.values()]
    product = math.prod(len(set(values)) for values in zip(*grouped, strict=True))
    people = sum(sizes) if factor is None else len(rows) * factor
    bound = product / (math.e * people) if product <= people else math.exp(-people / product)
    assert found == pytest.approx(
        {
            "rows": sum(sizes),
            "distinct_observed": len(sizes),
            "singletons": sizes.count(1),
            "unique_fraction": sizes.count(1) / sum(sizes),
            "distinct_product": product,
            "unique_fraction_bound": bound,
            "population_anonymity": max(people / product, 1),
            "smallest_class": min(sizes),
            "average_class": sum(sizes) / len(sizes),
            "people": sum(sizes),
        }
    )


def entropy_l(counts: list[int]) -> float:
    shares = [count / sum(counts) for count in counts]
    return math.exp(-sum(share * math.log(share) for share in shares))


def ratio(counts: list[int], level: int) -> float:
    rest = sum(sorted(counts, reverse=True)[level - 1 :])
    return max(counts) / rest if rest else math.inf


@pytest.mark.thorough
@dear
@given(rows=TABLES, cols=COLUMNS, nulls=NULLS, sensitive=st.sampled_from(["num", "txt"]))
def test_l_diversity(
    shared: duckdb.DuckDBPyConnection, rows: list[tuple], cols: list[str], nulls: str, sensitive: str
) -> None:
    fill(shared, rows)
    place = list(TYPES).index(sensitive)
    counts = {
        key: list(Counter(row[place] for row in members).values())
        for key, members in classes(rows, cols, nulls).items()
    }
    call = f"('people', {cols}, '{sensitive}', nulls := '{nulls}')"
    if not counts:
        assert refused(shared, f"FROM anon.l_diversity{call}")
        return
    found = answer(shared, f"FROM anon.l_diversity{call}")
    fewest = min(map(len, counts.values()))
    levels = range(2, max(2, fewest) + 1)
    assert [(line["measure"], line["l"]) for line in found[:1]] == [("distinct", fewest)]
    assert found[1]["measure"] == "entropy"
    assert found[1]["l"] == pytest.approx(min(map(entropy_l, counts.values())))
    assert [(line["measure"], line["l"], line["c"]) for line in found[2:]] == [
        ("recursive", level, pytest.approx(max(ratio(of_class, level) for of_class in counts.values())))
        for level in levels
    ]
    worst = counts[tuple(found[0]["worst_class"].values())]
    assert (len(worst), sum(worst)) == (fewest, found[0]["worst_class_size"])
    names = sorted(cols, key=list(TYPES).index)
    each = {
        tuple(line[name] for name in names): line for line in answer(shared, f"FROM anon.l_diversity_classes{call}")
    }
    assert each.keys() == counts.keys()
    for key, of_class in counts.items():
        line = each[key]
        assert (line["class_size"], line["distinct_l"]) == (sum(of_class), len(of_class))
        assert line["entropy_l"] == pytest.approx(entropy_l(of_class))
        assert line["recursive_c"] == pytest.approx(ratio(of_class, 2))
        assert line["most_frequent_fraction"] == pytest.approx(max(of_class) / sum(of_class))
    failing = answer(
        shared, f"FROM anon.l_diversity_classes('people', {cols}, '{sensitive}', l := 3, nulls := '{nulls}')"
    )
    assert len(failing) == sum(len(of_class) < 3 for of_class in counts.values())


def closeness(own: list[Any], everyone: list[Any], distance: str) -> float:
    """The distance by scipy, on ranks for ordered values (NULL last), by definition for the others."""
    order = sorted(set(everyone), key=lambda value: (value is None, value if value is not None else 0))
    if distance == "ordered":
        ranks = [[order.index(value) / max(len(order) - 1, 1) for value in values] for values in (own, everyone)]
        return float(wasserstein_distance(*ranks))
    shares = [Counter(values) for values in (own, everyone)]
    return sum(abs(shares[0][value] / len(own) - shares[1][value] / len(everyone)) for value in order) / 2


@pytest.mark.thorough
@dear
@given(
    rows=TABLES,
    cols=COLUMNS,
    nulls=NULLS,
    choice=st.sampled_from([("num", "auto", "ordered"), ("num", "equal", "equal"), ("txt", "auto", "equal")]),
)
def test_t_closeness(
    shared: duckdb.DuckDBPyConnection, rows: list[tuple], cols: list[str], nulls: str, choice: tuple[str, str, str]
) -> None:
    fill(shared, rows)
    sensitive, asked, distance = choice
    place = list(TYPES).index(sensitive)
    members = {key: [row[place] for row in rows] for key, rows in classes(rows, cols, nulls).items()}
    everyone = [value for values in members.values() for value in values]
    call = f"('people', {cols}, '{sensitive}', distance := '{asked}', nulls := '{nulls}')"
    if not members:
        assert refused(shared, f"FROM anon.t_closeness{call}")
        return
    expected = {key: closeness(own, everyone, distance) for key, own in members.items()}
    [found] = answer(shared, f"FROM anon.t_closeness{call}")
    assert found["distance"] == distance
    assert found["t"] == pytest.approx(max(expected.values()), abs=1e-12)
    mean = sum(expected[key] * len(own) for key, own in members.items()) / len(everyone)
    assert found["average_t"] == pytest.approx(mean, abs=1e-12)
    assert expected[tuple(found["worst_class"].values())] == pytest.approx(found["t"], abs=1e-9)
    names = sorted(cols, key=list(TYPES).index)
    each = answer(shared, f"FROM anon.t_closeness_classes{call}")
    assert {tuple(line[name] for name in names): line["t"] for line in each} == pytest.approx(expected, abs=1e-12)
    limited = call.replace(", distance", ", t := 0.25, distance")
    far = answer(shared, f"FROM anon.t_closeness_classes{limited}")
    assert all(line["t"] > 0.25 for line in far)
    assert abs(len(far) - sum(t > 0.25 for t in expected.values())) <= sum(
        abs(t - 0.25) < 1e-9 for t in expected.values()
    )


@pytest.mark.thorough
@given(rows=TABLES, cols=COLUMNS, nulls=NULLS, threshold=st.sampled_from([0.05, 0.2, 0.34]))
def test_reidentification_risk(
    shared: duckdb.DuckDBPyConnection, rows: list[tuple], cols: list[str], nulls: str, threshold: float
) -> None:
    fill(shared, rows)
    sizes = [len(members) for members in classes(rows, cols, nulls).values()]
    call = f"FROM anon.reidentification_risk('people', {cols}, threshold := {threshold}, nulls := '{nulls}')"
    if not sizes:
        assert refused(shared, call)
        return
    at_risk = sum(size for size in sizes if 1 / size > threshold)
    prosecutor, journalist, marketer = answer(shared, call)
    expected = {
        "maximum_risk": 1 / min(sizes),
        "average_risk": len(sizes) / sum(sizes),
        "rows_at_risk": at_risk,
        "fraction_at_risk": at_risk / sum(sizes),
        "people_at_risk": at_risk,
    }
    assert prosecutor == {"attacker": "prosecutor", **pytest.approx(expected).expected}
    assert journalist == {"attacker": "journalist", **pytest.approx(expected).expected}
    assert (marketer["attacker"], marketer["maximum_risk"], marketer["rows_at_risk"]) == ("marketer", None, None)
    assert marketer["average_risk"] == pytest.approx(len(sizes) / sum(sizes))


@pytest.mark.parametrize("fraction", [0.001, 0.01, 0.3, 0.9, 0.99])
@pytest.mark.parametrize("size", [1, 2, 3, 10])
def test_journalist_risk_is_the_negative_binomial_mean(
    con: duckdb.DuckDBPyConnection, fraction: float, size: int
) -> None:
    """Against the sum of the series: P(F = h) = C(h-1, f-1) p^f (1-p)^(h-f)."""
    people = np.arange(size, size + int(60 / fraction))
    logs = np.array([math.lgamma(h) - math.lgamma(size) - math.lgamma(h - size + 1) for h in people])
    weights = np.exp(logs + size * math.log(fraction) + (people - size) * math.log1p(-fraction))
    exact = float(np.sum(weights / people))
    [(estimate,)] = con.execute(f"SELECT anon._expected_risk({size}, {fraction})").fetchall()
    assert estimate == pytest.approx(exact, rel=2e-5)


ADULT_COLUMNS = {
    "A1": "age",
    "A2": "workclass",
    "A3": "education",
    "A4": "marital_status",
    "A5": "occupation",
    "A6": "relationship",
    "A7": "race",
    "A8": "sex",
    "A9": "hours_per_week",
    "A10": "native_country",
}
PAPER_DISTINCT = dict(zip(ADULT_COLUMNS, (60, 8, 15, 7, 14, 6, 5, 2, 20, 40), strict=True))
FIGURE_3 = [  # columns, S, F1, D, F2, k-Anon, as printed
    ("A1", 2, "6.1e-5", "60", "7.4e-8", "5e6"),
    ("A1 A9", 986, "0.03", "1200", "1.48e-6", "2.5e5"),
    ("A1 A7 A8", 65, "0.002", "600", "7.4e-7", "5e5"),
    ("A1 A2 A3 A5", 5056, "0.16", "1e5", "1.2e-4", "3e3"),
    ("A1 A2 A5 A10", 3105, "0.095", "2.7e5", "3.3e-4", "1.1e3"),
    ("A1 A5 A9 A10", 7581, "0.23", "6.7e5", "8.3e-4", "4.5e2"),
    ("A2 A3 A5 A10", 1384, "0.043", "6.7e4", "8.3e-5", "4.5e3"),
    ("A1 A2 A3 A5 A10", 7659, "0.235", "4e6", "4.9e-3", "75"),
    ("A1 A2 A4 A5 A6", 5215, "0.16", "2.8e5", "3.4e-4", "1e3"),
    ("A1 A2 A5 A6 A9", 12870, "0.40", "8e5", "9.9e-4", "3.8e2"),
    ("A1 A2 A5 A9 A10", 10402, "0.32", "5.4e6", "6.7e-3", "55"),
    ("A1 A2 A3 A4 A5 A6 A7 A8 A9 A10", 24802, "0.76", "33e9", "0.99", "1"),
]


def agrees(value: float, printed: str) -> bool:
    """Within one unit of the last printed digit: the paper rounds some of its figures and cuts others."""
    digits = Decimal(printed)
    return abs(value - float(printed)) <= float(Decimal(1).scaleb(digits.as_tuple().exponent))


@pytest.mark.thorough
@pytest.mark.parametrize("line", FIGURE_3, ids=lambda line: line[0].replace(" ", ""))
def test_figure_3_of_probabilistic_anonymity(adult: duckdb.DuckDBPyConnection, line: tuple) -> None:
    """S and F1 are Adult's own; D, F2 and k-Anon use the authors' estimates of the distinct counts (ERRATA 2)."""
    labels, singletons, unique_fraction, product, bound, anonymity = line
    cols = [ADULT_COLUMNS[label] for label in labels.split()]
    [found] = answer(adult, f"FROM anon.quasi_identifier('adult', {cols}, population := 3e8)")
    assert found["singletons"] == singletons
    assert agrees(found["unique_fraction"], unique_fraction)
    counts = [PAPER_DISTINCT[label] for label in labels.split()]
    [theory] = answer(
        adult,
        f"""SELECT anon.multiple_domain({counts}) AS d, anon.max_unique_fraction(d, 3e8) AS f2,
                   greatest(3e8 / d, 1) AS k""",
    )
    assert agrees(theory["d"], product)
    e_of_paper = math.e / 2.7 if theory["d"] <= 3e8 else 1  # it computes D / (2.7 n)
    assert agrees(theory["f2"] * e_of_paper, bound)
    assert agrees(theory["k"], anonymity)


def test_figure_1_is_continuous_and_smooth(con: duckdb.DuckDBPyConnection) -> None:
    n, h = 1e6, 1.0
    below, at, above = (
        con.execute(f"SELECT anon.max_unique_fraction({n + step}, {n})").fetchall()[0][0] for step in (-h, 0, h)
    )
    assert at == pytest.approx(1 / math.e, rel=1e-12)
    assert (at - below) / h * n == pytest.approx(1 / math.e, rel=1e-5)
    assert (above - at) / h * n == pytest.approx(1 / math.e, rel=1e-5)


@pytest.mark.thorough
@given(alpha=st.floats(1e-6, 1 - 1e-6), population=st.floats(1, 1e10))
def test_distinct_for_alpha_inverts(shared: duckdb.DuckDBPyConnection, alpha: float, population: float) -> None:
    query = "SELECT anon.max_unique_fraction(anon.distinct_for_alpha($a::DOUBLE, $n::DOUBLE), $n::DOUBLE)"
    [(back,)] = shared.execute(query, {"a": alpha, "n": population}).fetchall()
    assert back == pytest.approx(alpha, rel=1e-9)


def test_max_unique_fraction_bounds_every_distribution(con: duckdb.DuckDBPyConnection) -> None:
    """The expected share of unique rows, n p (1-p)^(n-1) summed, stays under it whatever the distribution."""
    random = np.random.default_rng(5)
    n = 200
    for values in (1, 5, 50, 200, 400, 2000):
        [(bound,)] = con.execute(f"SELECT anon.max_unique_fraction({values}, {n})").fetchall()
        for _ in range(200):
            shares = random.dirichlet(np.full(values, 10 ** random.uniform(-2, 2)))
            expected = float(np.sum(shares * (1 - shares) ** (n - 1)))
            assert expected <= bound * (1 + 1 / (n - 1)) + 1e-12  # the paper writes e^(-np) for (1-p)^(n-1)


PYCANON = [  # pycanon 1.3.6 on adult.csv; its recursive c is not the definition's, its entropy l is cut to an integer
    (
        "age, education, occupation, relationship, sex, native_country",
        {"k": 1},
        {"income": (1, 1, 0.7591904425539756), "hours_per_week": (1, 1, 0.5765813247790004)},
    ),
    (
        "workclass, race, sex, marital_status, age",
        {"k": 1},
        {"income": (1, 1, 0.7591904425539756), "hours_per_week": (1, 1, 0.5765813247790004)},
    ),
    ("sex, race", {"k": 109}, {"income": (2, 1, 0.18576368588639136), "hours_per_week": (23, 6, 0.049617546210691386)}),
    (
        "marital_status LIKE 'Married%' AS married, native_country = 'United-States' AS us, sex",
        {"k": 298},
        {"income": (2, 1, 0.2117845085244712), "hours_per_week": (41, 7, 0.04448975682853603)},
    ),
    (
        """age // 20 AS age20, sex, CASE WHEN education_num < 9 THEN 'low' WHEN education_num < 13 THEN 'mid'
           ELSE 'high' END AS edu3""",
        {"k": 3},
        {"income": (1, 1, 0.46212718954192744), "hours_per_week": (3, 2, 0.19800605902301877)},
    ),
]


@pytest.mark.thorough
@pytest.mark.parametrize("case", PYCANON, ids=lambda case: case[0][:12])
def test_agrees_with_pycanon(adult: duckdb.DuckDBPyConnection, case: tuple) -> None:
    expressions, counts, measures = case
    adult.execute(f"CREATE OR REPLACE VIEW seen AS SELECT {expressions}, {', '.join(measures)} FROM adult").fetchall()
    names = [row[0] for row in adult.execute("DESCRIBE seen").fetchall()][: -len(measures)]
    assert answer(adult, f"FROM anon.k_anonymity('seen', {names})")[0]["k"] == counts["k"]
    for sensitive, (distinct, entropy, t) in measures.items():
        lines = answer(adult, f"FROM anon.l_diversity('seen', {names}, '{sensitive}')")
        assert lines[0]["l"] == distinct
        assert math.floor(lines[1]["l"]) == entropy
        assert answer(adult, f"FROM anon.t_closeness('seen', {names}, '{sensitive}')")[0]["t"] == pytest.approx(
            t, rel=1e-9
        )

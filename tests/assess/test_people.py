"""The checks where a person has several rows: against brute force on sets of people, and against count(DISTINCT)."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict

import duckdb
import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from duckanon._core.common import row_keys
from duckanon._core.common.codes import encode_columns
from duckanon._measure.assess import lattice, sampling
from tests.assess.test_assess import NULLS, answer, closeness, entropy_l, ratio
from tests.profiles import dear

TYPES = {"q": pa.string(), "r": pa.int32(), "num": pa.int64(), "who": pa.string()}
ROW = st.tuples(
    st.sampled_from(["a", "b", None]),
    st.sampled_from([0, 1, None]),
    st.sampled_from([10, 20, None]),
    st.sampled_from(["p", "q", "r", "s", "t", None]),
)
TABLES = st.lists(ROW, min_size=1, max_size=40).filter(lambda rows: any(row[3] is not None for row in rows))
COLUMNS = st.lists(st.sampled_from(["q", "r"]), min_size=1, max_size=2, unique=True)


def fill(con: duckdb.DuckDBPyConnection, rows: list[tuple]) -> None:
    columns = dict(zip(TYPES, zip(*rows, strict=True), strict=True))
    random_table = pa.table({name: pa.array(values, TYPES[name]) for name, values in columns.items()})
    con.register("random_table", random_table)
    con.execute("CREATE OR REPLACE TABLE visits AS FROM random_table").fetchall()


def classes(rows: list[tuple], cols: list[str], nulls: str) -> dict[tuple, list[tuple]]:
    places = sorted(list(TYPES).index(name) for name in cols)
    found: dict[tuple, list[tuple]] = defaultdict(list)
    for row in rows:
        key = tuple(row[place] for place in places)
        if nulls == "value" or None not in key:
            found[key].append(row)
    return found


def who(rows: list[tuple]) -> set[str]:
    return {row[3] for row in rows} - {None}


def sets_of_classes(grouped: dict[tuple, list[tuple]]) -> dict[str, frozenset]:
    everybody = set().union(*map(who, grouped.values()))
    return {person: frozenset(key for key, rows in grouped.items() if person in who(rows)) for person in everybody}


@pytest.mark.thorough
@dear
@given(rows=TABLES, cols=COLUMNS, nulls=NULLS, k=st.integers(2, 4))
def test_classes_count_people(
    shared: duckdb.DuckDBPyConnection, rows: list[tuple], cols: list[str], nulls: str, k: int
) -> None:
    fill(shared, rows)
    grouped = classes(rows, cols, nulls)
    if not grouped:
        return
    sizes = {key: len(who(members)) for key, members in grouped.items()}
    linked = Counter(sets_of_classes(grouped).values())
    [checked] = answer(shared, f"FROM anon.k_anonymity('visits', {cols}, nulls := '{nulls}', person := 'WHO')")
    assert checked == {
        "k": min(sizes.values()),
        "classes": len(sizes),
        "rows": sum(map(len, grouped.values())),
        "singletons": list(sizes.values()).count(1),
        **{
            f"rows_under_{limit}": sum(len(grouped[key]) for key in sizes if sizes[key] < limit)
            for limit in (2, 3, 5, 10, 20)
        },
        "people": sum(linked.values()),
        "linked_k": min(linked.values(), default=0),
    }
    histogram = answer(shared, f"FROM anon.class_sizes('visits', {cols}, nulls := '{nulls}', person := 'who')")
    assert {line["class_size"]: line["classes"] for line in histogram} == Counter(sizes.values())
    assert sum(line["rows"] for line in histogram) == checked["rows"]
    small = shared.execute(f"FROM anon.small_classes('visits', {cols}, {k}, nulls := '{nulls}', person := 'who')")
    assert Counter(small.fetchall()) == Counter((*key, size) for key, size in sizes.items() if size < k)
    risky = shared.execute(f"FROM anon.risky_rows('visits', {cols}, {k}, nulls := '{nulls}', person := 'who')")
    assert Counter(risky.fetchall()) == Counter(
        (*row, sizes[key]) for key, members in grouped.items() for row in members if sizes[key] < k
    )


@dear
@given(rows=TABLES, cols=COLUMNS, nulls=NULLS, threshold=st.sampled_from([0.2, 0.34, 0.6]))
def test_risk_is_that_of_a_persons_smallest_class(
    shared: duckdb.DuckDBPyConnection, rows: list[tuple], cols: list[str], nulls: str, threshold: float
) -> None:
    fill(shared, rows)
    grouped = classes(rows, cols, nulls)
    sizes = {key: max(len(who(members)), 1) for key, members in grouped.items()}
    risks = [1 / min(sizes[key] for key in keys) for keys in sets_of_classes(grouped).values()]
    if not risks:
        return
    call = f"('visits', {cols}, threshold := {threshold}, nulls := '{nulls}', person := 'who')"
    prosecutor = answer(shared, f"FROM anon.reidentification_risk{call}")[0]
    assert prosecutor == {
        "attacker": "prosecutor",
        "maximum_risk": pytest.approx(1 / min(sizes.values())),
        "average_risk": pytest.approx(sum(risks) / len(risks)),
        "rows_at_risk": sum(len(grouped[key]) for key in sizes if 1 / sizes[key] > threshold),
        "fraction_at_risk": pytest.approx(sum(risk > threshold for risk in risks) / len(risks)),
        "people_at_risk": sum(risk > threshold for risk in risks),
    }


@pytest.mark.thorough
@dear
@given(rows=TABLES, cols=COLUMNS, nulls=NULLS)
def test_diversity_and_closeness_count_people(
    shared: duckdb.DuckDBPyConnection, rows: list[tuple], cols: list[str], nulls: str
) -> None:
    fill(shared, rows)
    grouped = classes(rows, cols, nulls)
    if not grouped:
        return
    cells = {
        key: [value for _, value in {(row[3], row[2]) for row in members if row[3] is not None}]
        for key, members in grouped.items()
    }
    counted = [row for members in grouped.values() for row in members]
    everyone = [value for _, value in {(row[3], row[2]) for row in counted if row[3] is not None}]
    names = sorted(cols, key=list(TYPES).index)
    call = f"('visits', {cols}, 'num', nulls := '{nulls}', person := 'who')"
    lines = answer(shared, f"FROM anon.l_diversity_classes{call}")
    assert len(lines) == len(cells)
    for line in lines:
        values = cells[tuple(line[name] for name in names)]
        counts = list(Counter(values).values())
        members = grouped[tuple(line[name] for name in names)]
        assert (line["class_size"], line["distinct_l"]) == (len(who(members)), len(counts))
        assert line["entropy_l"] == pytest.approx(entropy_l(counts) if counts else 0)
        assert line["recursive_c"] == pytest.approx(ratio(counts, 2) if counts else math.inf)
        assert line["most_frequent_fraction"] == pytest.approx(max(counts) / sum(counts) if counts else 1)
    measured = answer(shared, f"FROM anon.l_diversity{call}")
    assert measured[0]["l"] == min(len(set(values)) for values in cells.values())
    for distance in ("ordered", "equal"):
        far = answer(shared, f"FROM anon.t_closeness_classes{call[:-1]}, distance := '{distance}')")
        expected = {key: closeness(own, everyone, distance) if own else 1 for key, own in cells.items()}
        assert {tuple(line[name] for name in names): line["t"] for line in far} == pytest.approx(expected, abs=1e-12)
        assert [line["class_size"] for line in far] == [
            len(who(grouped[tuple(line[name] for name in names)])) for line in far
        ]
        [worst] = answer(shared, f"FROM anon.t_closeness{call[:-1]}, distance := '{distance}')")
        assert worst["t"] == pytest.approx(max(expected.values()), abs=1e-12)
        weight = sum(map(len, cells.values()))
        average = sum(expected[key] * len(own) for key, own in cells.items()) / weight if weight else None
        assert worst["average_t"] == (None if average is None else pytest.approx(average, abs=1e-12))


@pytest.mark.parametrize("distance", ["ordered", "equal"])
def test_spreading_people_over_classes_hides_no_class(shared: duckdb.DuckDBPyConnection, distance: str) -> None:
    """Enter the people of the worst class in all others too: it stays as far from the table as it was."""
    rng = np.random.default_rng(1)
    rows = [(f"class {rng.integers(0, 3)}", int(rng.integers(0, 4)), who) for who in range(60)]
    rows += [("worst", 4, who) for who in range(60, 70)]
    spread = rows + [(f"class {number}", 4, who) for who in range(60, 70) for number in range(3)]
    far = []
    for table in (rows, spread):
        columns = dict(zip(("q", "value", "who"), zip(*table, strict=True), strict=True))
        shared.register("spread_people", pa.table(columns))
        call = f"anon.t_closeness('spread_people', ['q'], 'value', '{distance}', person := 'who')"
        far += shared.execute(f"SELECT worst_class.q, t FROM {call}").fetchall()
    assert far[0] == far[1]
    assert far[0] == ("worst", pytest.approx(closeness([4] * 10, [value for _, value, _ in rows], distance)))


def text_order(key: tuple) -> tuple:
    """As DuckDB orders structs: NULL after every value."""
    return tuple((value is None, "" if value is None else value) for value in key)


@dear
@given(rows=TABLES, cols=COLUMNS, nulls=NULLS, by_person=st.booleans())
def test_the_worst_class_of_several_is_that_of_the_largest_counts(
    shared: duckdb.DuckDBPyConnection, rows: list[tuple], cols: list[str], nulls: str, by_person: bool
) -> None:
    """Of the classes that are equally bad the one whose counts have the largest sum; then the order decides."""
    rows = rows if by_person else [(*row[:3], str(place)) for place, row in enumerate(rows)]
    fill(shared, rows)
    grouped = classes(rows, cols, nulls)
    if not grouped:
        return
    names = sorted(cols, key=list(TYPES).index)
    sizes = {key: len(who(members)) for key, members in grouped.items()}
    counts = {
        key: sorted(Counter(value for _, value in {(row[3], row[2]) for row in members if row[3]}).values())[::-1]
        for key, members in grouped.items()
    }
    person = ", person := 'who'" if by_person else ""
    measured = answer(shared, f"FROM anon.l_diversity('visits', {cols}, 'num', nulls := '{nulls}'{person})")
    fewest = min(map(len, counts.values()))
    expected = [("distinct", fewest, {key: len(own) for key, own in counts.items()})]
    expected += [("entropy", None, {key: round(entropy_l(own), 12) if own else 0 for key, own in counts.items()})]
    for level in range(2, 1 + max(2, min(fewest, 10))):
        scores = {key: -ratio(own, level) if own else -math.inf for key, own in counts.items()}
        expected.append(("recursive", level, scores))
    assert [line["measure"] for line in measured] == [measure for measure, _, _ in expected]
    for line, (measure, level, scores) in zip(measured, expected, strict=True):
        tied = [key for key in scores if scores[key] == min(scores.values())]
        most = max(sum(counts[key]) for key in tied)
        largest = sorted((key for key in tied if sum(counts[key]) == most), key=text_order)
        shown = largest[-1 if measure == "recursive" else 0]
        assert (tuple(line["worst_class"][name] for name in names), line["worst_class_size"]) == (shown, sizes[shown])
        assert line["l"] == pytest.approx(level if level is not None else min(scores.values()))
        if measure == "recursive":
            assert line["c"] == pytest.approx(-min(scores.values()))


def test_levels_above_two_take_the_counts_of_the_most_frequent_values(con: duckdb.DuckDBPyConnection) -> None:
    """Twelve values, the first twelve times, the last once: levels 2 to 10 against the definition."""
    con.execute("CREATE TABLE t AS SELECT 'a' AS q, v, p FROM range(12) AS x(v), range(12) AS y(p) WHERE p <= v")
    counts = list(range(12, 0, -1))
    found = con.execute("SELECT l, c FROM anon.l_diversity('t', ['q'], 'v', person := 'p') WHERE measure = 'recursive'")
    assert dict(found.fetchall()) == pytest.approx({level: ratio(counts, level) for level in range(2, 11)})


ALONE = """
    WITH classes AS (SELECT {names}, count(DISTINCT who) AS size, any_value(who) AS anyone FROM visits GROUP BY ALL)
    SELECT (SELECT count(*) FROM visits), count(*), count(DISTINCT anyone) FILTER (size = 1), min(size), avg(size),
           (SELECT count(DISTINCT who) FROM visits) FROM classes"""


@pytest.mark.thorough
@dear
@given(rows=TABLES)
def test_the_search_and_the_single_set_agree_with_count_distinct(
    shared: duckdb.DuckDBPyConnection, rows: list[tuple]
) -> None:
    fill(shared, rows)
    exact = answer(shared, "FROM anon.quasi_identifiers('visits', population := 1000, person := 'Who')")
    near = answer(shared, "FROM anon.quasi_identifiers('visits', approximate := true, person := 'Who')")
    assert sorted(line["columns"] for line in exact) == sorted(line["columns"] for line in near)
    assert len(exact) == 7
    sampled = {tuple(line["columns"]): line for line in near}
    for line in exact:
        names = ", ".join(line["columns"])
        figures = ["rows", "distinct_observed", "singletons", "smallest_class", "average_class", "people"]
        [expected] = shared.execute(ALONE.format(names=names)).fetchall()
        assert tuple(line[name] for name in figures) == pytest.approx(expected)
        [single] = answer(
            shared, f"FROM anon.quasi_identifier('visits', {line['columns']}, population := 1000, person := 'who')"
        )
        assert {name: line[name] for name in single} == pytest.approx(single)
        assert line["unique_fraction"] == pytest.approx(expected[2] / expected[5])
        for figure in ("rows", "distinct_observed", "singletons", "people", "distinct_product"):
            assert sampled[tuple(line["columns"])][figure] == pytest.approx(line[figure])


def brute_force(rows: list[tuple], persons: list, columns: int) -> dict[tuple[int, ...], tuple[int, int, int, int]]:
    found = {}
    for size in range(1, columns + 1):
        for members in itertools.combinations(range(columns), size):
            grouped: dict[tuple, set] = defaultdict(set)
            for row, person in zip(rows, persons, strict=True):
                grouped[tuple(row[member] for member in members)] |= {person} - {None}
            sizes = [len(group) for group in grouped.values()]
            alone = set().union(*(group for group in grouped.values() if len(group) == 1))
            found[members] = (len(sizes), len(alone), min(sizes), sum(sizes))
    return found


@pytest.mark.thorough
@pytest.mark.parametrize("constants", [{}, {"_FEW_CELLS": 0, "_DENSE_DEEPER": 0.0}, {"LARGEST_KEY": 2**6}])
def test_the_walk_equals_brute_force(monkeypatch: pytest.MonkeyPatch, constants: dict[str, float]) -> None:
    """All ways through the walk: many rows that are left out as unique, sorted keys, keys too large to pack."""
    for name, value in constants.items():
        for module in (lattice, row_keys):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, value)
    draw = np.random.default_rng(len(constants))
    for _ in range(40):
        count, columns = int(draw.choice([1, 2, 30, 300])), int(draw.integers(1, 5))
        rows = [tuple(row) for row in draw.integers(0, draw.choice([2, 6, 60], columns), (count, columns)).tolist()]
        persons = [None if draw.random() < 0.1 else int(draw.integers(0, max(count // 3, 1))) for _ in range(count)]
        table = pa.table({f"c{place}": list(values) for place, values in enumerate(zip(*rows, strict=True))})
        [(codes, _)] = encode_columns(pa.table({"person": pa.array(persons, pa.int64())}))
        whose = lattice.number_people(codes, np.array([person is not None for person in persons]))
        found = {
            one.columns: (one.distinct, one.singletons, one.smallest, one.members)
            for one in lattice.walk(encode_columns(table), people=whose)
        }
        assert found == brute_force(rows, persons, columns)


@pytest.mark.thorough
def test_samples_of_people() -> None:
    """Full samples are exact; others give the combinations of one person, and people, within their errors."""
    draw = np.random.default_rng(4)
    columns = [draw.integers(0, size, 200_000).astype(np.uint64) for size in (300, 200)]
    persons = draw.integers(1, 40_000, 200_000).astype(np.uint64)
    named = draw.random(200_000) < 0.95
    grouped: dict[tuple, set] = defaultdict(set)
    for first, second, person, is_named in zip(*(column.tolist() for column in columns), persons, named, strict=True):
        grouped[first, second] |= {int(person)} if is_named else set()
    alone = [min(group) for group in grouped.values() if len(group) == 1]
    for capacity in (100_000, 2_000):
        halves = [sampling.DistinctSampler([(0, 1)], capacity, has_people=True) for _ in range(2)]
        for half, rows in zip(halves, (slice(0, 90_000), slice(90_000, None)), strict=True):
            half.update([column[rows] for column in columns], persons[rows], named[rows])
        halves[0].merge(halves[1])
        [estimate] = halves[0].estimates()
        assert halves[0].people().distinct == len(set(persons[named].tolist()))
        if estimate.rate == 1:
            assert (estimate.distinct, estimate.singletons) == (len(grouped), len(set(alone)))
        else:
            assert abs(estimate.distinct - len(grouped)) < 4 * estimate.distinct_error
            assert abs(estimate.singletons - len(alone)) < 4 * estimate.singletons_error


def test_twenty_people_with_ten_visits_each(con: duckdb.DuckDBPyConnection) -> None:
    """The table that passed as k = 10: each class holds the ten visits of one person."""
    con.execute(
        "CREATE TABLE visits AS SELECT i // 10 AS patient, i // 10 AS place, i % 10 AS day FROM range(200) t(i)"
    )
    assert con.execute("SELECT k, linked_k, people FROM anon.k_anonymity('visits', ['place'])").fetchall() == [
        (10, 10, 200)
    ]
    checked = "SELECT k, linked_k, people, rows_under_2 FROM anon.k_anonymity('visits', ['place'], person := 'patient')"
    assert con.execute(checked).fetchall() == [(1, 1, 20, 200)]


def test_linked_rows_tell_people_apart_that_their_classes_hide(con: duckdb.DuckDBPyConnection) -> None:
    """Every pair of classes is one person's: k is 9, and whoever links the rows of a person knows who it is."""
    con.execute("""CREATE TABLE visits AS SELECT a * 10 + b AS patient, unnest([a, b]) AS place
                   FROM range(10) x(a), range(10) y(b) WHERE a < b""")
    checked = "SELECT k, linked_k, people FROM anon.k_anonymity('visits', ['place'], person := 'patient')"
    assert con.execute(checked).fetchall() == [(9, 1, 45)]


def test_a_set_of_classes_is_not_confused_with_one_that_lacks_the_class_whose_hash_is_zero(
    con: duckdb.DuckDBPyConnection,
) -> None:
    """DuckDB's hash of 0 is 0, which adds nothing to a sum: {0, 1} and {1} are different sets all the same."""
    con.execute("CREATE TABLE visits AS FROM (VALUES (1, 0), (1, 1), (2, 1)) AS t(patient, place)")
    checked = "SELECT linked_k FROM anon.k_anonymity('visits', ['place'], person := 'patient')"
    assert con.execute(checked).fetchall() == [(1,)]


@pytest.mark.thorough
def test_a_view_that_is_drawn_anew_loses_no_class(con: duckdb.DuckDBPyConnection) -> None:
    """The classes are counted in one reading and named in another, where they may be gone."""
    con.execute("CREATE TABLE t AS SELECT i AS a, i % 5 AS b FROM range(4000) AS r(i)").fetchall()
    con.execute("CREATE VIEW v AS FROM t WHERE random() < 0.02").fetchall()
    for _ in range(3):
        assert con.execute("SELECT t > 0 FROM anon.t_closeness('v', ['a'], 'b')").fetchall() == [(True,)]
        assert con.execute("SELECT count(*) FROM anon.l_diversity('v', ['a'], 'b')").fetchall() == [(3,)]
        assert con.execute("SELECT count(*) > 30 FROM anon.l_diversity_classes('v', ['a'], 'b')").fetchall() == [
            (True,)
        ]
        assert con.execute("SELECT count(*) > 30 FROM anon.t_closeness_classes('v', ['a'], 'b')").fetchall() == [
            (True,)
        ]

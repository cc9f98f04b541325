"""anon.microaggregate: MDAV word for word, the published losses, k people in every group, and what labels tell."""

from __future__ import annotations

import csv

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from duckanon._core.common.people import NOBODY, count_people
from duckanon._methods.microaggregate import fast as fast_module
from duckanon._methods.microaggregate.fast import (
    _GroupMembers,
    _StepChanges,
    average_groups,
    fast,
    list_members,
    measure_errors,
    refine_groups,
    regroup,
)
from duckanon._methods.microaggregate.mdav import group_parts, mdav
from duckanon._methods.microaggregate.microaggregated_table import compute_group_values, group_records
from tests.profiles import cheap, dear
from tests.release.coded import check_held
from tests.sqltest import data_file

Connection = duckdb.DuckDBPyConnection


def apart(x: np.ndarray, y: np.ndarray) -> float:
    return float(((x - y) ** 2).sum())


def mdav_word_for_word(points: np.ndarray, k: int) -> set[frozenset[int]]:
    """Domingo-Ferrer and Torra 2005, Algorithm MDAV-generic, one record at a time."""
    left = list(range(len(points)))
    groups = []

    def gather(seed: int) -> None:
        near = sorted(left, key=lambda row: apart(points[row], points[seed]))[:k]
        groups.append(frozenset(near))
        for row in near:
            left.remove(row)

    def farthest(point: np.ndarray) -> int:
        return max(left, key=lambda row: apart(points[row], point))

    while len(left) >= 3 * k:
        first = farthest(points[left].mean(axis=0))
        second = farthest(points[first])
        gather(first)
        gather(second)
    if len(left) >= 2 * k:
        gather(farthest(points[left].mean(axis=0)))
    return {*groups, frozenset(left)}


def as_sets(group: np.ndarray) -> set[frozenset[int]]:
    return {frozenset(np.flatnonzero(group == number).tolist()) for number in np.unique(group)}


@cheap
@given(st.integers(0, 2**32 - 1), st.integers(2, 6), st.integers(6, 60), st.integers(1, 3))
def test_mdav_is_what_was_published(seed: int, k: int, rows: int, columns: int) -> None:
    points = np.random.default_rng(seed).normal(size=(rows, columns))
    expected = mdav_word_for_word(points, k)
    assert as_sets(mdav(points, k)) == expected


@given(st.integers(0, 2**32 - 1), st.integers(2, 4), st.lists(st.integers(0, 30), min_size=1, max_size=5))
def test_parts_at_once_are_parts_one_by_one(seed: int, k: int, more: list[int]) -> None:
    part = np.repeat(np.arange(len(more)), [k + extra for extra in more])
    random = np.random.default_rng(seed)
    points, part = random.normal(size=(len(part), 2)), random.permutation(part)
    expected = set()
    for number in np.unique(part):
        rows = np.flatnonzero(part == number)
        expected |= {frozenset(rows[list(group)].tolist()) for group in mdav_word_for_word(points[rows], k)}
    assert as_sets(group_parts(points, part, k)) == expected


def census() -> np.ndarray:
    values = np.loadtxt(data_file("CASCrefmicrodata.csv"), delimiter=",", skiprows=1)
    return (values - values.mean(axis=0)) / values.std(axis=0, ddof=1)


@pytest.mark.thorough
@pytest.mark.parametrize(("k", "published", "bar"), [(3, 5.6922, 5.30), (5, 9.0884, 8.25), (10, 14.1559, 12.60)])
def test_the_loss_of_census(k: int, published: float, bar: float) -> None:
    points = census()
    total = ((points - points.mean(axis=0)) ** 2).sum()
    assert 100 * measure_errors(points, mdav(points, k)).sum() / total == pytest.approx(published, abs=5e-5)
    group = group_records(list(points.T), k, "fast", None)
    assert np.bincount(group).min() >= k
    assert 100 * measure_errors(points, group).sum() / total <= bar


def test_mdav_is_that_of_sdcmicro() -> None:
    names = ("expend", "income", "savings")
    original, released = (
        np.array([[float(row[name]) for name in names] for row in csv.DictReader(data_file(f"risk/{file}").open())])
        for file in ("testdata.csv", "testdata_mdav3.csv")
    )
    group = group_records(list(original.T), 3, "mdav", None)
    np.testing.assert_allclose(average_groups(original, group, int(group.max()) + 1)[group], released, rtol=1e-9)


tables = st.integers(4, 70).flatmap(
    lambda rows: st.tuples(
        arrays(np.float64, (rows, 2), elements=st.one_of(st.integers(0, 2).map(float), st.floats(-9, 9, width=16))),
        arrays(np.int64, rows, elements=st.integers(NOBODY, rows // 2)),
    )
)


@pytest.mark.thorough
@dear
@given(tables, st.integers(2, 5), st.sampled_from(["mdav", "fast"]))
def test_every_group_has_k_people(table: tuple[np.ndarray, np.ndarray], k: int, method: str) -> None:
    values, people = table
    for whose in (None, people):
        enough = len(values) if whose is None else len(set(whose.tolist()) - {NOBODY})
        if enough < k:
            with pytest.raises(ValueError, match="k must be at most"):
                group_records(list(values.T), k, method, whose)
            continue
        group = group_records(list(values.T), k, method, whose)
        count = int(group.max()) + 1
        assert np.bincount(group, minlength=count).min() > 0
        assert count_people(group, whose, count).min() >= k


@dear
@given(tables, st.integers(2, 4))
def test_steps_lose_nothing(table: tuple[np.ndarray, np.ndarray], k: int) -> None:
    """Whatever is done to groups afterwards, squared distances fall, and k people stay in each."""
    values, people = table
    for whose in (None, people):
        if (len(values) if whose is None else len(set(whose.tolist()) - {NOBODY})) < k:
            continue
        group = mdav(values, k, whose)
        for better in (
            refine_groups(values, group, k, 5, whose),
            regroup(values, group, k, 2, np.random.default_rng(0), whose),
            regroup(values, group, k, 3, np.random.default_rng(0), whose),
        ):
            assert count_people(better, whose, int(better.max()) + 1).min() >= k
            assert measure_errors(values, better).sum() <= measure_errors(values, group).sum() * (1 + 1e-9)


def test_refining_finds_the_swap() -> None:
    points = np.array([[0.0], [0.1], [9.0], [0.2], [9.1], [9.2]])
    assert as_sets(refine_groups(points, np.array([0, 0, 0, 1, 1, 1]), 3, 9)) == {
        frozenset({0, 1, 3}),
        frozenset({2, 4, 5}),
    }


def test_a_record_moves_where_both_groups_stay_large_enough() -> None:
    points = np.array([[0.0], [0.1], [9.0], [9.1], [9.2]])
    assert as_sets(refine_groups(points, np.array([0, 0, 0, 1, 1]), 2, 9)) == {frozenset({0, 1}), frozenset({2, 3, 4})}


@pytest.mark.thorough
@pytest.mark.parametrize("with_people", [False, True])
def test_large_tables_are_grouped_in_parts(monkeypatch: pytest.MonkeyPatch, with_people: bool) -> None:
    monkeypatch.setattr(fast_module, "_SMALL", 100)
    monkeypatch.setattr(fast_module, "PART", 20)
    monkeypatch.setattr(fast_module, "LEAST_PART", 60)
    random = np.random.default_rng(5)
    points, people = random.normal(size=(1_500, 3)), random.integers(NOBODY, 900, 1_500)
    group = fast(points, 3, people if with_people else None)
    sizes = count_people(group, people if with_people else None, int(group.max()) + 1)
    assert sizes.min() >= 3
    assert sizes.mean() < 6
    assert measure_errors(points, group).sum() < 0.05 * points.var(axis=0).sum() * len(points)


@pytest.mark.thorough
def test_the_cost_of_fast_grows_with_the_rows() -> None:
    points = np.random.default_rng(0).normal(size=(30_000, 8))
    group, by_mdav = fast(points, 10), mdav(points, 10)
    assert np.bincount(group).min() >= 10
    assert measure_errors(points, group).sum() < measure_errors(points, by_mdav).sum()


@given(st.lists(st.floats(-100, 100, width=16), min_size=3, max_size=12), st.integers(2, 5))
def test_a_median_is_of_three_people_at_least(values: list[float], k: int) -> None:
    numbers = np.array(values)
    (middle,) = compute_group_values(numbers, np.zeros(len(values), np.int64), None, k, "median")
    ordered, size = np.sort(numbers), len(values)
    counted = max(3, -(-k // 2))
    left_out = max(0, (size - counted) // 2)
    chosen = ordered[left_out : size - left_out]
    assert len(chosen) >= 3
    assert middle == pytest.approx(chosen.mean(), abs=1e-9)


def test_somebody_with_many_records_counts_once() -> None:
    """A mean of rows would be 99.0: that of the one person with a hundred of them."""
    numbers, people = np.array([0.0, 50.0, *[100.0] * 98]), np.array([0, 1, *[2] * 98])
    assert compute_group_values(numbers, np.zeros(100, np.int64), people, 3, "mean").tolist() == [50.0]


def test_equal_values_are_their_mean() -> None:
    assert compute_group_values(np.full(3, 0.1), np.zeros(3, np.int64), None, 3, "mean").tolist() == [0.1]


@pytest.mark.thorough
def test_groups_do_not_depend_on_the_order_of_rows(con: Connection) -> None:
    random = np.random.default_rng(2)
    source = pa.table({"x": random.normal(size=300), "y": random.integers(0, 50, 300), "g": random.integers(0, 2, 300)})
    answers = []
    for table in (source, source.take(pa.array(random.permutation(300)))):
        con.register("source", table)
        call = "anon.microaggregate('source', ['x', 'y'], 4, method := 'fast', by := ['g'])"
        answers.append(sorted(con.execute(f"FROM {call}").fetchall()))
    assert answers[0] == answers[1]


@pytest.mark.parametrize("label", ["mean", "median"])
def test_means_are_kept_and_no_extreme_is_told(con: Connection, label: str) -> None:
    random = np.random.default_rng(3)
    values = np.append(random.normal(size=200), 1e6)  # one person far from all others
    con.register("source", pa.table({"x": values}))
    released = con.execute(f"SELECT x FROM anon.microaggregate('source', ['x'], 3, label := '{label}')").fetchnumpy()[
        "x"
    ]
    assert not np.isin(released, values).any()
    assert label == "median" or released.mean() == pytest.approx(values.mean())


@dear
@given(tables, st.integers(2, 4))
def test_intervals_hold_their_records_and_end_at_nobody(
    shared: Connection, table: tuple[np.ndarray, np.ndarray], k: int
) -> None:
    """An end is either round, or a value that k people share; how round, the tests of boxes tell."""
    values, people = table
    if len(set(people.tolist()) - {NOBODY}) < k:
        return
    columns = {"id": np.arange(len(values)), "x": values[:, 0], "y": values[:, 1]}
    source = pa.table({**columns, "person": pa.array(people, mask=people == NOBODY)})
    shared.register("source", source)
    rows = shared.execute(f"""
        SELECT box, person, r.x.lo, r.x.hi, s.x
        FROM anon.microaggregate('source', ['x', 'y'], {k}, label := 'interval', person := 'person', keep := ['id'],
                                 narrowing := ['id']) AS r JOIN source AS s USING (id)""").fetchall()
    assert len(rows) == len(values)
    check_held([row[4] for row in rows], [row[2] for row in rows], [row[3] for row in rows], [r[1] for r in rows], k)
    for box in {row[0] for row in rows}:
        assert len({row[1] for row in rows if row[0] == box} - {None}) >= k


@cheap
@given(st.integers(0, 10**9), st.integers(1, 4), st.integers(1, 4))
def test_what_steps_add_is_what_the_squares_grow_by(seed: int, first: int, second: int) -> None:
    random = np.random.default_rng(seed)
    points = random.normal(size=(first + second, 3)).round(1)
    group = np.repeat([0, 1], [first, second])
    table, sizes = list_members(group, 2), np.array([[first, second]])
    means = average_groups(points, group, 2)
    members = _GroupMembers.of(points, table, means)
    steps = _StepChanges(members, np.array([[0, 1]]), means[np.newaxis], sizes, np.ones((1, 2), np.bool_))
    swaps, *moves = (ways[0] for ways in steps.of(np.array([0])))

    def grown(records: list[int]) -> float:
        changed = group.copy()
        changed[records] = 1 - changed[records]
        return float(measure_errors(points, changed).sum() - measure_errors(points, group).sum())

    for left, x in enumerate(table[0]):
        for right, y in enumerate(table[1]):
            expected = grown([x, y]) if min(x, y) >= 0 else np.inf
            assert swaps[left, right] == pytest.approx(expected, abs=1e-9)
            assert steps.least[0] <= swaps[left, right] + 1e-9
    for side, size in enumerate((first, second)):
        for place, x in enumerate(table[side]):
            if x >= 0 and size > 1:
                assert moves[side][place] == pytest.approx(grown([x]), abs=1e-9)

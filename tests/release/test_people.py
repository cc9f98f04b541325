"""Releases of tables with several rows a person: k means k different people, counted by brute force."""

from __future__ import annotations

from collections import defaultdict

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import duckanon._methods.boxes.blocks
from duckanon import spectral
from duckanon._core.common.people import NOBODY, count_people, find_cut_range, number_pairs, number_people
from duckanon._methods.boxes.nodes import Boxes
from duckanon._methods.boxes.shaping import Statistic
from duckanon._methods.swap.halving import count_rows_in_small_groups, halve_by_people, halve_rows, rhs
from tests.profiles import cheap, dear
from tests.release.bounded import bounded_boxes
from tests.release.coded import check_held

Connection = duckdb.DuckDBPyConnection


VISITS = """
    CREATE TABLE visits AS
    SELECT p AS patient, 20 + 3 * p + v % 2 AS age, (100 + 10 * p + v) / 2 AS weight, 'visit ' || (v % 3) AS reason,
           p * 100 + v AS visit
    FROM range(20) AS a(p), range(10) AS b(v)"""
"""Twenty people with ten visits each, whose values are alike: ten rows in a row are those of one person."""


def people_of(groups: list | np.ndarray, people: np.ndarray) -> dict:
    """The different people of each group, NULL being nobody."""
    found: dict = defaultdict(set)
    for group, person in zip(groups, people, strict=True):
        found[group] |= {person} - {NOBODY, None}
    return found


numbers = st.one_of(st.integers(0, 6).map(float), st.floats(-5, 5, width=32))


@st.composite
def visits(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, int]:
    """A table of one to three columns, whose each row is, and a k that it reaches."""
    width = draw(st.integers(1, 3))
    rows = draw(st.lists(st.tuples(*[numbers] * width), min_size=6, max_size=60))
    most = draw(st.sampled_from([2, 4, 8, 30]))
    people = draw(st.lists(st.integers(NOBODY, most), min_size=len(rows), max_size=len(rows)))
    people[:2] = 0, 1
    return np.array(rows), np.array(people), draw(st.integers(2, max(2, min(5, len(set(people) - {NOBODY})))))


@pytest.mark.thorough
@cheap
@given(visits())
def test_where_a_segment_can_be_cut(case: tuple[np.ndarray, np.ndarray, int]) -> None:
    _, people, k = case
    half = len(people) // 2
    segments = np.repeat([0, 1], [half, len(people) - half])
    starts, ends = np.array([0, half]), np.array([half, len(people)])
    first, last = find_cut_range(number_pairs(segments, people), starts, ends, k)
    for number, (start, end) in enumerate(zip(starts, ends, strict=True)):
        possible = [
            cut
            for cut in range(start + 1, end)
            if all(len(set(side) - {NOBODY}) >= k for side in (people[start:cut], people[cut:end]))
        ]
        assert list(range(first[number], last[number] + 1)) == possible
    counted = count_people(segments, people, 2)
    assert counted.tolist() == [len(people_of(segments, people)[segment]) for segment in (0, 1)]


def test_people_are_told_apart_as_sql_does() -> None:
    column = pa.chunked_array([[0.0, -0.0, None, 1.5, float("nan")], [None, 1.5, float("nan")]])
    assert count_people(np.zeros(8, np.int64), number_people(column), 1).tolist() == [3]
    texts = pa.chunked_array([pa.array(["a", None, "b"]).dictionary_encode(), pa.array(["b", "a"]).dictionary_encode()])
    assert number_people(texts).tolist() == [0, NOBODY, 1, 1, 0]
    assert number_people(pa.chunked_array([pa.nulls(3)])).tolist() == [NOBODY] * 3


def table(values: np.ndarray) -> dict[str, np.ndarray]:
    return {f"c{j}": column for j, column in enumerate(np.asarray(values, dtype=float).T)}


def check_boxes(boxes: Boxes, rows: np.ndarray, people: np.ndarray, k: int) -> None:
    """At least k people in every box, values inside, and no box that could be cut in two."""
    assert min(map(len, people_of(boxes.box, people).values())) >= k
    for kind in ("bounds", "cell", "rounded"):
        lower, upper = boxes.intervals(kind)
        assert (lower[boxes.box] <= rows).all()
        assert (rows <= upper[boxes.box]).all()
    for box in range(len(boxes.counts)):
        inside, whose = rows[boxes.box == box], people[boxes.box == box]
        for values in inside.T:
            for cut in np.unique(values)[1:]:
                assert min(len(set(whose[side]) - {NOBODY}) for side in (values < cut, values >= cut)) < k


@given(visits(), st.randoms(use_true_random=False), st.sampled_from(["default", "thorough"]))
def test_boxes_hold_k_people(case: tuple[np.ndarray, np.ndarray, int], random, effort: str) -> None:
    rows, people, k = case
    boxes = bounded_boxes(table(rows), k, effort=effort, seconds=0, people=people)
    check_boxes(boxes, rows, people, k)
    shuffled = random.sample(range(len(rows)), len(rows))
    again = bounded_boxes(table(rows[shuffled]), k, effort=effort, seconds=0, people=people[shuffled])
    np.testing.assert_array_equal(again.box, boxes.box[shuffled])


@pytest.mark.thorough
@given(visits())
def test_one_row_a_person_is_as_without_people(case: tuple[np.ndarray, np.ndarray, int]) -> None:
    rows, _, k = case
    plain, counted = bounded_boxes(table(rows), k), bounded_boxes(table(rows), k, people=np.arange(len(rows))[::-1])
    np.testing.assert_array_equal(plain.box, counted.box)
    np.testing.assert_array_equal(plain.cell, counted.cell)


@given(visits())
def test_diverse_boxes_hold_k_people(case: tuple[np.ndarray, np.ndarray, int]) -> None:
    rows, people, k = case
    if any(len(np.unique(values)) < 2 for values in rows.T):
        return
    boxes = bounded_boxes(table(rows), k, l=2, people=people)
    assert min(map(len, people_of(boxes.box, people).values())) >= k
    for box in range(len(boxes.counts)):
        assert all(len(np.unique(values)) >= 2 for values in rows[boxes.box == box].T)


@pytest.mark.thorough
@pytest.mark.parametrize("several", [1, 3, 40])
def test_people_of_large_tables(monkeypatch: pytest.MonkeyPatch, several: int) -> None:
    """Parts that are cut on a sample, by records first and by people where that does not do."""
    monkeypatch.setattr(duckanon._methods.boxes.blocks, "BLOCK", 300)
    monkeypatch.setattr(duckanon._methods.boxes.blocks, "_SAMPLE", 60)
    random = np.random.default_rng(several)
    people = np.sort(random.integers(0, 1200 // several, 1200))
    rows = np.column_stack((people // 3 + random.integers(0, 2, 1200), random.integers(0, 9, 1200)))
    boxes = bounded_boxes(table(rows), 8, [Statistic("mean", ("c0",)), Statistic("variance", ("c1",))], people=people)
    check_boxes(boxes, rows, people, 8)
    assert len(boxes.counts) > (1 if several == 40 else 10)


def test_one_person_with_most_rows_of_a_large_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """No quantile of the rows can be cut at, but the few places that leave enough people on both sides."""
    monkeypatch.setattr(duckanon._methods.boxes.blocks, "BLOCK", 300)
    monkeypatch.setattr(duckanon._methods.boxes.blocks, "_SAMPLE", 60)
    people = np.concatenate([np.zeros(2000, np.int64), np.arange(1, 20)])
    values = np.concatenate([np.arange(2000.0), 3000 + np.arange(19.0)])
    boxes = bounded_boxes({"x": values}, 10, people=people)
    assert sorted(boxes.counts.tolist()) == [10, 2009]


@given(visits())
def test_halves_have_k_people(case: tuple[np.ndarray, np.ndarray, int]) -> None:
    rows, people, k = case
    labels = halve_by_people(rows, people, k)
    assert sorted(set(labels)) == list(range(labels.max() + 1))
    assert min(map(len, people_of(labels, people).values())) >= k
    plain, counted = halve_rows(rows, k), halve_by_people(rows, np.arange(len(rows)), k)
    assert len(set(zip(plain, counted, strict=True))) == plain.max() + 1 == counted.max() + 1


@given(visits())
def test_groups_of_rhs_aim_at_people(case: tuple[np.ndarray, np.ndarray, int]) -> None:
    rows, people, k = case
    labels = rhs(rows, k, people)
    found = people_of(labels, people)
    small = sum(1 for label in labels if len(found[label]) < k)
    assert count_rows_in_small_groups(labels, k, people) == small
    np.testing.assert_array_equal(rhs(rows, k, np.arange(len(rows))), rhs(rows, k))


VISITS_RELEASED = {
    "boxes": "anon.boxes('visits', ['age', 'weight'], 10, person := 'Patient', keep := ['visit'],"
    " narrowing := ['visit'])",
    "spectral_rhs": "anon.spectral_rhs('visits', ['age', 'weight', 'reason'], 10, person := 'Patient')",
    "member": "anon.spectral_rhs('visits', ['age', 'weight'], 10, label := 'member', person := 'patient')",
    "rhs": "anon.rhs('visits', ['age', 'weight'], 10, person := 'patient')",
}


@pytest.mark.parametrize("name", ["spectral_rhs", "member", "rhs"])
def test_no_released_record_is_that_of_a_few_visitors(con: Connection, name: str) -> None:
    """Ten people of twenty: without `person`, a record shared by ten rows is one person's."""
    con.execute(VISITS).fetchall()
    release = f"FROM {VISITS_RELEASED[name]}"
    assert "patient" not in [column[0] for column in con.execute(f"DESCRIBE {release}").fetchall()]
    # Groups are cut along weight, in which people follow each other with ten rows each.
    ((least,),) = con.execute(f"SELECT min(n) FROM (SELECT count(*) AS n {release} GROUP BY ALL)").fetchall()
    assert least >= 91  # ten people, nine of them with all their rows


def test_no_box_is_that_of_a_few_visitors(con: Connection) -> None:
    con.execute(VISITS).fetchall()
    con.execute(f"CREATE TABLE boxed AS FROM {VISITS_RELEASED['boxes']}").fetchall()
    assert [column[0] for column in con.execute("DESCRIBE boxed").fetchall()] == ["box", "age", "weight", "visit"]
    people = con.execute("""
        SELECT count(DISTINCT patient) FROM boxed JOIN visits USING (visit) GROUP BY box""").fetchall()
    assert len(people) == 2
    assert min(people) >= (10,)
    outside = con.execute("""
        SELECT count(*) FROM boxed AS b JOIN visits AS v USING (visit)
        WHERE v.age NOT BETWEEN b.age.lo AND b.age.hi OR v.weight NOT BETWEEN b.weight.lo AND b.weight.hi""")
    assert outside.fetchall() == [(0,)]


@dear
@given(visits(), st.sampled_from(["parts", "cell", "rounded"]))
def test_boxes_in_sql_hold_k_people(shared: Connection, case: tuple[np.ndarray, np.ndarray, int], box: str) -> None:
    rows, people, k = case
    source = pa.table({**table(rows), "id": range(len(rows)), "who": pa.array(people, mask=people == NOBODY)})
    shared.register("source", source)
    shared.execute(f"""
        CREATE OR REPLACE TABLE boxed AS
        FROM anon.boxes('source', {list(table(rows))}, {k}, box := '{box}', person := 'WHO', keep := ['id'],
                        narrowing := ['id'])
        """).fetchall()
    least = "SELECT min(n) FROM (SELECT count(DISTINCT who) AS n FROM boxed JOIN source USING (id) GROUP BY box)"
    assert shared.execute(least).fetchall() >= [(k,)]
    for name in table(rows):
        query = f"SELECT s.{name}, b.{name}.lo, b.{name}.hi, who FROM boxed AS b JOIN source AS s USING (id)"
        values, low, high, whose = zip(*shared.execute(query).fetchall(), strict=True)
        check_held(values, low, high, whose, k)


@given(visits(), st.sampled_from(["mean", "member"]))
def test_released_records_stand_for_k_people(case: tuple[np.ndarray, np.ndarray, int], label: str) -> None:
    """The key travels along, so that the people of a released record can be counted from outside."""
    rows, people, k = case
    rows[0] = rows[1] + 1  # no column is constant
    columns = {**table(rows), "c": ["odd" if row % 2 else "even" for row in range(len(rows))], "id": range(len(rows))}
    source = pa.table({**columns, "who": pa.array(people, mask=people == NOBODY)})
    found = spectral.spectral_rhs(source, list(columns), k=k, label=label, key="id", person="who").read_all()
    assert found.column_names == list(columns)
    records = list(zip(*(found[name].to_pylist() for name in columns if name != "id"), strict=True))
    assert min(map(len, people_of(records, people[found["id"].to_numpy()]).values())) >= k

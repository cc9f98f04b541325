"""l-diversity and t-closeness that anon.generalize and anon.plan promise, against counting in plain Python."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckanon._core.common.diversity import DiversityRule
from duckanon._core.common.people import NOBODY
from duckanon._methods.generalize.recoding.classes import SensitiveEntries
from tests.profiles import cheap, dear

Connection = duckdb.DuckDBPyConnection

spreads = st.one_of(
    st.builds(DiversityRule, l=st.integers(1, 4)),
    st.builds(DiversityRule, l=st.sampled_from([1, 1.5, 2, 3]), l_kind=st.just("entropy")),
    st.builds(DiversityRule, l=st.integers(1, 3), l_kind=st.just("recursive"), c=st.sampled_from([0.5, 1, 3])),
    st.builds(DiversityRule, l=st.integers(1, 2), t=st.sampled_from([0.05, 0.2, 0.4]), is_ordered=st.booleans()),
)


def is_diverse(counts: Sequence[float], rule: DiversityRule) -> bool:
    """What is asked of l, of the counts of a class's values."""
    total, ranked = sum(counts), sorted(counts, reverse=True)
    if rule.l_kind == "distinct":
        return len(counts) >= rule.l
    if rule.l_kind == "entropy":
        return total > 0 and math.exp(-sum(n / total * math.log(n / total) for n in counts)) >= rule.l - 1e-9
    rest = sum(ranked[int(rule.l) - 1 :])
    return rest > 0 and ranked[0] < rule.c * rest


def farness(own: Counter[int], every: Counter[int], is_ordered: bool) -> float:
    """The distance between two distributions of values."""
    if not sum(own.values()):
        return 1.0
    values = sorted(value for value, n in every.items() if n)
    apart = [own[value] / sum(own.values()) - every[value] / sum(every.values()) for value in values]
    if is_ordered:
        return float(np.abs(np.cumsum(apart)).sum() / max(len(values) - 1, 1))
    return sum(map(abs, apart)) / 2


def value_counts(rows: Sequence[tuple[Hashable, int, int | None]]) -> dict[Hashable, Counter[int]]:
    """How many people have each value in each class: rows of class, value and person (None: each row is one)."""
    people = defaultdict(set)
    for number, (own, value, person) in enumerate(rows):
        people[own, value].add(-1 - number if person is None else person)
    counts: dict[Hashable, Counter[int]] = defaultdict(Counter)
    for (own, value), who in people.items():
        counts[own][value] = len(who)
    return counts


def value_totals(rows: Sequence[tuple[Hashable, int, int | None]]) -> Counter[int]:
    """How many people have each value in any of the classes: whoever is in several of them is one."""
    return value_counts([("all", value, person) for _, value, person in rows])["all"]


@cheap
@given(st.lists(st.lists(st.integers(0, 4), min_size=5, max_size=5), min_size=1, max_size=4), spreads)
def test_histograms_and_entries_are_judged_alike(histograms, rule):
    counts = np.array(histograms)
    own, value = np.nonzero(counts)
    expected = [is_diverse([count for count in of_class if count], rule) for of_class in histograms]
    assert rule.judge_histograms(counts).tolist() == expected
    assert rule.judge_entries(own, counts[own, value].astype(float), len(counts)).tolist() == expected
    every = Counter(dict(enumerate(counts.sum(axis=0).tolist())))
    occurs = counts.sum(axis=0) > 0
    if occurs.any():
        far = rule.distances(counts[:, occurs], counts.sum(axis=0)[occurs] / counts.sum())
        apart = [farness(Counter(dict(enumerate(of_class))), every, rule.is_ordered) for of_class in histograms]
        np.testing.assert_allclose(far, apart, atol=1e-12)
        assert rule.are_close(far).tolist() == [rule.t is None or each <= rule.t + 1e-9 for each in apart]


@cheap
@given(st.data(), spreads)
def test_classes_that_keep_it_are_those_that_counting_finds(data, rule):
    size = data.draw(st.integers(1, 40))
    draw = lambda most: np.array(data.draw(st.lists(st.integers(0, most), min_size=size, max_size=size)))  # noqa: E731
    combination, value, class_of = (
        draw(5),
        draw(4),
        np.array(data.draw(st.lists(st.integers(0, 2), min_size=6, max_size=6))),
    )
    person = draw(9) - 1 if data.draw(st.booleans()) else None  # -1: nobody
    sensitive = SensitiveEntries.of_entries(rule, value, np.ones(size, np.int64), person).merge(combination, 6)
    is_asked = np.array(data.draw(st.lists(st.booleans(), min_size=3, max_size=3)))
    rows = [
        (int(class_of[combination[row]]), int(value[row]), None if person is None else int(person[row]))
        for row in range(size)
        if person is None or person[row] != NOBODY
    ]
    counts = value_counts(rows)
    every = value_totals(rows)
    expected = [bool(asked) and is_diverse([*counts[own].values()], rule) for own, asked in enumerate(is_asked)]
    if rule.t is not None:
        expected = [
            kept and farness(counts[own], every, rule.is_ordered) <= rule.t + 1e-9 for own, kept in enumerate(expected)
        ]
        left = value_totals([row for row in rows if expected[row[0]]])
        if any(
            kept and farness(counts[own], left, rule.is_ordered) > rule.t + 1e-9 for own, kept in enumerate(expected)
        ):
            expected = [False] * 3
    assert sensitive.is_kept(class_of, is_asked).tolist() == expected


@pytest.mark.thorough
@pytest.mark.usefixtures("short_search")
@dear
@given(st.integers(0, 10**9), spreads, st.booleans())
def test_what_is_released_is_spread(con, seed, rule, has_person):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(20, 80))
    age, area = rng.integers(20, 60, size), rng.integers(0, 5, size)
    illness = np.where(rng.random(size) < 0.5, area, rng.integers(0, 6, size))  # areas have illnesses of their own
    columns = {"age": age, "area": [f"area {number}" for number in area]}
    is_number = rule.is_ordered or rule.t is None
    columns["illness"] = illness if is_number else [f"illness {number}" for number in illness]
    columns |= {"who": rng.integers(0, size // 2, size), "row": np.arange(size)}
    table = pa.table(columns)
    con.register("people", table)
    person = ", person := 'who'" if has_person else ""
    t = "NULL" if rule.t is None else rule.t
    asked = f"sensitive := 'illness', l := {rule.l}, l_kind := '{rule.l_kind}', c := {rule.c}, t := {t}"
    query = (
        f"FROM anon.generalize('people', ['age', 'area'], 3, {asked}{person}, keep := ['illness', 'who', 'row'], "
        "narrowing := ['illness', 'who', 'row'], max_suppressed_fraction := 0.2)"
    )
    persons = [int(who) if has_person else None for who in columns["who"]]
    every = value_totals([("all", value, who) for value, who in zip(illness.tolist(), persons, strict=True)])
    if not is_diverse([*every.values()], rule):
        with pytest.raises(duckdb.Error, match="asks for more than the sensitive values of the whole table have"):
            con.execute(query).fetchall()
        return
    released = con.execute(query).fetchall()
    assert len(released) >= 0.8 * size - 1e-9
    assert len({row for *_, row in released}) == len(released)
    rows = [((age, area), illness, who if has_person else None) for age, area, illness, who, _ in released]
    counts = value_counts(rows)
    left = value_totals(rows)
    for own in counts:
        assert len({who if has_person else row for age, area, _, who, row in released if (age, area) == own}) >= 3
        assert is_diverse([*counts[own].values()], rule)
        if rule.t is not None:
            assert farness(counts[own], left, rule.is_ordered) <= rule.t + 1e-8


def test_who_is_in_every_class_counts_once_in_the_table(con):
    """The ill have rows in every area: counted in each of them, the table would be as ill as its classes are."""
    rng = np.random.default_rng(0)
    rows = [(area, 0, who) for who, area in enumerate(rng.integers(0, 4, 21).tolist())]
    rows += [(area, 1, who) for who in range(21, 30) for area in range(4)]
    columns = dict(zip(("area", "is_ill", "who"), zip(*rows, strict=True), strict=True))
    con.register("visits", pa.table(columns))
    released = con.execute(
        "FROM anon.generalize('visits', ['area'], 3, sensitive := 'is_ill', t := 0.2, person := 'who', "
        "keep := ['is_ill', 'who'], narrowing := ['is_ill', 'who'])"
    ).fetchall()
    counts, every = value_counts(released), value_totals(released)
    assert max(farness(own, every, True) for own in counts.values()) <= 0.2


@pytest.mark.thorough
def test_who_is_known_to_be_in_a_class_is_not_known_to_be_ill(con):
    """Everybody in one area has the same illness: k people do not hide it, two illnesses do."""
    con.execute(
        "CREATE TABLE patients AS SELECT 20 + i % 40 AS age, 'area ' || i % 5 AS area, "
        "CASE WHEN i % 5 = 0 THEN 'flu' ELSE 'illness ' || i % 7 END AS illness FROM range(400) AS r(i)"
    )
    call = "anon.generalize('patients', ['age', 'area'], 5, keep := ['illness'], narrowing := ['illness'] {})"
    fewest = "SELECT min(n) FROM (SELECT count(DISTINCT illness) AS n FROM {} GROUP BY age, area)"
    assert con.execute(fewest.format(call.format(""))).fetchall() == [(1,)]
    assert con.execute(fewest.format(call.format(", sensitive := 'illness', l := 2"))).fetchall()[0][0] >= 2


@pytest.mark.thorough
def test_a_plan_leaves_out_as_many_rows_as_generalize_does(con):
    con.execute(
        "CREATE TABLE patients AS SELECT hash(i) % 60 AS age, hash(i, 1) % 9 AS illness FROM range(500) AS r(i)"
    )
    asked = "sensitive := 'illness', l := 4, max_suppressed_fraction := 0.1"
    (suppressed,) = con.execute(
        f"SELECT DISTINCT suppressed_rows FROM anon.plan('patients', ['age'], 5, {asked})"
    ).fetchall()
    (released,) = con.execute(f"SELECT count(*) FROM anon.generalize('patients', ['age'], 5, {asked})").fetchall()
    assert suppressed[0] + released[0] == 500


@pytest.mark.thorough
@pytest.mark.parametrize(("kind", "least"), [("distinct", 8), ("entropy", 7.5), ("recursive", 8)])
def test_more_than_the_table_has_is_refused(con, kind, least):
    con.execute("CREATE TABLE patients AS SELECT i % 60 AS age, i % 7 AS illness FROM range(500) AS r(i)")
    with pytest.raises(duckdb.Error, match="l asks for more than the sensitive values of the whole table have"):
        con.execute(
            f"FROM anon.generalize('patients', ['age'], 5, sensitive := 'illness', l := {least}, l_kind := '{kind}')"
        ).fetchall()

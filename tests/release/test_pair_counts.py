"""Exchanges of choices between new rows: counts of choices stay, what excludes each other is not made together."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckanon import spectral
from duckanon.release.pair_counts import Choices, exchange, wanted_counts

RELATIONS = ("Husband", "Wife", "Own-child", "Unmarried")


def family(rows: int, seed: int) -> pa.Table:
    """Make people whose relation excludes a sex and a marital status: no husband is female or single."""
    random = np.random.default_rng(seed)
    relation = random.choice(RELATIONS, rows, p=[0.4, 0.1, 0.2, 0.3])
    sex = np.where(relation == "Husband", "Male", np.where(relation == "Wife", "Female", "?"))
    sex = np.where(sex == "?", random.choice(["Male", "Female"], rows), sex)
    is_married = np.isin(relation, ["Husband", "Wife"])
    marital = np.where(is_married, "Married", random.choice(["Single", "Divorced", "Widowed"], rows, p=[0.6, 0.3, 0.1]))
    age = np.round(np.where(is_married, 45, 30) + random.normal(0, 9, rows))
    return pa.table({"relation": relation, "sex": sex, "marital": marital, "age": age})


def impossible(table: pa.Table) -> float:
    """Return the share of rows that nobody could be."""
    relation, sex, marital = (table.column(name).to_numpy() for name in ("relation", "sex", "marital"))
    wrong_sex = ((relation == "Husband") & (sex == "Female")) | ((relation == "Wife") & (sex == "Male"))
    return float(np.mean(wrong_sex | (np.isin(relation, ["Husband", "Wife"]) != (marital == "Married"))))


def test_pairs_that_nobody_has_vanish(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without exchanges, one row in ten is impossible."""
    table = family(1500, 1)
    assert impossible(table) == 0
    mended = spectral.spectral_release(table, cluster_size=10**9, seed=1).read_all()
    monkeypatch.setattr("duckanon.release.redrawing.exchange", lambda *_: None)
    plain = spectral.spectral_release(table, cluster_size=10**9, seed=1).read_all()
    assert impossible(plain) > 0.1
    assert impossible(mended) < 0.25 * impossible(plain)


@given(st.integers(0, 2**32), st.integers(2, 300), st.integers(2, 5), st.integers(2, 4))
def test_choices_are_made_as_often_as_before(seed: int, rows: int, values: int, width: int) -> None:
    """Whatever is exchanged: each choice stays as frequent, and what is fixed stays where it is."""
    random = np.random.default_rng(seed)
    columns = [
        Choices(random.integers(0, values, 50), random.integers(0, values, rows), values, is_fixed=index == 0)
        for index in range(width)
    ]
    before = [column.released.copy() for column in columns]
    exchange(columns, None, 3, random)
    for column, released in zip(columns, before, strict=True):
        assert (
            np.bincount(column.released, minlength=values).tolist() == np.bincount(released, minlength=values).tolist()
        )
    assert columns[0].released.tolist() == before[0].tolist()


@given(st.integers(0, 2**32), st.integers(2, 12))
def test_who_has_a_pair_that_few_have_does_not_matter(seed: int, k: int) -> None:
    """The wanted counts are the same for two tables that differ in which rare pairs their people have."""
    random = np.random.default_rng(seed)
    counts = random.poisson(6, (5, 5)).astype(float)
    rare = counts < k
    first, second = np.argwhere(rare)[:1], np.argwhere(rare)[-1:]
    wanted = wanted_counts(counts, rare, k)
    assert wanted[~rare].tolist() == counts[~rare].tolist()
    assert np.isclose(wanted.sum(), counts.sum()) or not rare.any()
    if rare.any() and (counts[tuple(first[0])] != counts[tuple(second[0])]):
        expected = np.outer(counts.sum(1), counts.sum(0)) / counts.sum()
        for is_common in (True, False):  # of equal expectation, equal wishes: not what each of them had
            cells = rare & ((expected >= k) == is_common)
            shares = np.minimum(expected[cells], k)
            ratios = wanted[cells][shares > 0] / shares[shares > 0]
            assert np.allclose(ratios, ratios[:1])


def test_pairs_of_one_person_with_many_rows_are_rare() -> None:
    """A pair that one person brings a hundred times is not wanted a hundred times in its cell."""
    first, second = np.repeat([0, 1, 0], [500, 500, 100]), np.repeat([0, 1, 1], [500, 500, 100])
    people = np.concatenate([np.arange(1000), np.full(100, 1000)])
    made = {}
    for whose in (None, people):
        random = np.random.default_rng(3)
        order = random.permutation(1100)
        columns = [Choices(first, first.copy(), 2), Choices(second, second[order].copy(), 2)]
        exchange(columns, whose, 10, random)
        made[whose is None] = int(np.count_nonzero((columns[0].released == 1) & (columns[1].released == 0)))
    assert made[True] <= 40
    assert made[False] >= made[True]

"""Pairs of wide choices: as frequent as they were where k people have them, and nothing about one person."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2_contingency

from duckanon import spectral
from duckanon._core.encoding.column_codecs import find_correspondences
from duckanon._methods.synthesize.pair_tables import Choices, build_pair_table, measure_relation, round_counts


def workers(rows: int, seed: int) -> tuple[Choices, Choices]:
    """Occupations and industries, most of which are those of the same sector."""
    random = np.random.default_rng(seed)
    sector = random.integers(0, 8, rows)
    occupation = 8 * np.minimum(random.geometric(0.25, rows) - 1, 7) + sector
    moved = np.where(random.random(rows) < 0.85, sector, random.integers(0, 8, rows))
    industry = 8 * np.minimum(random.geometric(0.3, rows) - 1, 6) + moved
    return Choices(occupation, 64), Choices(industry, 56)


def counted(one: Choices, other: Choices) -> np.ndarray:
    """Count pairs, one after the other."""
    table = np.zeros((one.count, other.count))
    np.add.at(table, (one.codes, other.codes), 1)
    return table


@given(st.integers(0, 2**32 - 1), st.integers(2, 30), st.integers(2, 30), st.integers(1, 400))
def test_relation_is_chi_squared(seed: int, ones: int, others: int, rows: int) -> None:
    """As scipy has it, of the values that occur."""
    random = np.random.default_rng(seed)
    one, other = (Choices(random.integers(0, count, rows), count) for count in (ones, others))
    table = counted(one, other)
    found = chi2_contingency(table[table.any(axis=1)][:, table.any(axis=0)], correction=False)
    assert measure_relation(one, other) == pytest.approx((found.statistic - found.dof) / rows, abs=1e-9)


@given(st.integers(0, 2**32 - 1), st.integers(1, 30), st.integers(1, 30), st.integers(0, 300))
def test_whole_numbers_have_the_sums_that_are_wanted(seed: int, ones: int, others: int, rows: int) -> None:
    """Whatever the table, zeros that do not allow the sums included."""
    random = np.random.default_rng(seed)
    wanted = [random.multinomial(rows, random.dirichlet(np.full(count, 0.5))) for count in (ones, others)]
    table = random.gamma(0.3, size=(ones, others)) * (random.random((ones, others)) < random.random())
    made = round_counts(table, *wanted, random)
    assert (made >= 0).all()
    assert made.sum(axis=1).tolist() == wanted[0].tolist()
    assert made.sum(axis=0).tolist() == wanted[1].tolist()


@pytest.mark.thorough
def test_whole_numbers_are_expected_ones_on_average() -> None:
    """Rounding up is chance, in proportion to what is left."""
    table = np.array([[1.5, 0.2, 0.3], [0.5, 2.8, 0.7]])
    random = np.random.default_rng(0)
    made = [round_counts(table, np.array([2, 4]), np.array([2, 3, 1]), random) for _ in range(500)]
    assert all((np.abs(one - table) < 1).all() for one in made)
    np.testing.assert_allclose(np.mean(made, axis=0), table, atol=0.15)


@given(st.integers(0, 2**32 - 1), st.integers(2, 20))
def test_a_shared_table_has_the_rows_of_each_value(seed: int, k: int) -> None:
    """And what k people have together stays, but for what fitting the rest moves: where it is one pair, a quarter."""
    one, other = workers(1500, seed)
    table, cells = build_pair_table(one, other, None, k), counted(one, other)
    assert table is not None
    assert (table >= 0).all()
    np.testing.assert_allclose(table.sum(axis=0), cells.sum(axis=0), atol=1e-6)
    np.testing.assert_allclose(table.sum(axis=1), cells.sum(axis=1), atol=0.01)
    is_kept = cells >= k
    assert np.abs(table[is_kept] - cells[is_kept]).sum() <= 0.5 * cells[is_kept].sum()


@pytest.mark.thorough
@pytest.mark.parametrize(("k", "most"), [(2, 0.06), (10, 0.12)])
def test_pairs_of_k_people_are_about_as_frequent_as_they_were(k: int, most: float) -> None:
    """Of thirty tables, on average."""
    moved = []
    for seed in range(30):
        one, other = workers(1500, seed)
        table, cells = build_pair_table(one, other, None, k), counted(one, other)
        assert table is not None
        moved.append(np.abs(table - cells)[cells >= k].sum() / cells[cells >= k].sum())
    assert np.mean(moved) <= most


def test_unrelated_choices_have_no_table() -> None:
    """What is between them is chance, which says more about the people than about the columns."""
    random = np.random.default_rng(0)
    one, other = (Choices(random.integers(0, 60, 3000), 60) for _ in range(2))
    assert find_correspondences(counted(one, other), 3000) is None
    assert build_pair_table(one, other, None, 10) is None


@pytest.mark.thorough
@pytest.mark.parametrize("rows_each", [1, 4])
def test_a_pair_of_one_person_is_as_frequent_as_without_them(rows_each: int) -> None:
    """The attack: does a pair that one person has come out more often than if the table were that of other people?

    Of a table that keeps every pair, or that counts rows for people, it does.
    """
    people = None if rows_each == 1 else np.repeat(np.arange(3000), rows_each)
    of_one = counted(*workers(3000, 1)) == 1
    frequent = []
    for whose, k in ((people, 10), (None, rows_each)):
        tables = []
        for seed in range(1, 6):
            held = [Choices(np.repeat(one.codes, rows_each), one.count) for one in workers(3000, seed)]
            table = build_pair_table(held[0], held[1], whose, k)
            assert table is not None
            tables.append(table[of_one].mean())
        frequent.append(tables[0] / np.mean(tables[1:]))
    assert frequent[0] <= 1.25
    assert frequent[1] > 2


def test_one_person_apart_from_all_others_is_not_told() -> None:
    """Of 999 people with pairs of many and one with a pair alone, that pair hardly comes out."""
    random = np.random.default_rng(0)
    codes = random.integers(0, 50, 999)
    one, other = Choices(np.append(codes, 3), 50), Choices(np.append(codes, 7), 50)
    table = build_pair_table(one, other, None, 10)
    assert table is not None
    assert table[3, 7] < 0.1
    assert np.diag(table).sum() > 990


def test_releases_keep_what_wide_columns_have_to_do_with_each_other() -> None:
    """Districts of home and work, the same for seven of ten, and occupations with their industries."""
    random = np.random.default_rng(0)
    occupation, industry = workers(4000, 3)
    home = random.integers(0, 50, 4000)
    work = np.where(random.random(4000) < 0.7, home, random.integers(0, 50, 4000))
    table = pa.table(
        {
            "wage": np.exp(random.normal(8 + occupation.codes % 8 / 8, 1)),
            **{
                name: [f"{name} {code}" for code in codes]
                for name, codes in [("o", occupation.codes), ("i", industry.codes), ("home", home), ("work", work)]
            },
        }
    )
    made = spectral.spectral_release(table, cluster_size=500, seed=1).read_all()
    same, pairs = [], []
    for people in (table, made):
        columns = {name: people.column(name).to_pylist() for name in people.column_names}
        same.append(np.mean([a[5:] == b[5:] for a, b in zip(columns["home"], columns["work"], strict=True)]))
        pairs.append(set(zip(columns["o"], columns["i"], strict=True)))
    assert same[1] == pytest.approx(same[0], abs=0.03)
    seen = np.mean([pair in pairs[0] for pair in zip(made["o"].to_pylist(), made["i"].to_pylist(), strict=True)])
    assert seen >= 0.81  # .837 to .867 with eight seeds, mean .854, standard deviation .013

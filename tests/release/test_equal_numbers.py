"""Numbers that are those of another column in many rows: the relation stays, and tells nothing about a few people."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import ks_2samp

from duckanon._core.encoding.column_split import SplitOptions, split_columns
from duckanon._methods.synthesize import equal_numbers
from duckanon._methods.synthesize.redrawing import Redrawing
from tests.release.surveys import columns_of
from tests.release.test_spectral_release import few_hold, released


def wage_survey(rows: int, seed: int, unit: float = 1.0) -> pa.Table:
    """Make incomes, which are the wages of most people and more than these of others; some have no wage."""
    random = np.random.default_rng(seed)
    age = random.integers(18, 70, rows)
    wage = np.round(np.exp(random.normal(7.5 + 0.02 * age, 0.6, rows)) / unit) * unit
    other = np.round(np.exp(random.normal(5 + 0.04 * age, 1.0, rows)) / unit) * unit + unit
    has_other = random.random(rows) < 0.01 * age - 0.1
    wage = np.where(random.random(rows) < 0.1, 0.0, wage)
    income = wage + np.where(has_other | (wage == 0), other, 0.0)
    sex = np.where(random.random(rows) < 0.5, "male", "female")
    return pa.table({"age": age, "sex": sex, "income": income, "wage": wage})


def equal_share(table: pa.Table) -> float:
    """Return the share of people whose wages are their income."""
    columns = columns_of(table)
    return float(np.mean(columns["income"] == columns["wage"]))


@pytest.mark.thorough
@pytest.mark.parametrize("unit", [1.0, 50.0])
@pytest.mark.parametrize("size", [200, 10**9])
def test_numbers_that_are_equal_stay_equal(unit: float, size: int) -> None:
    """As often as they were, with the distributions that both columns had, and incomes that are not below wages."""
    table = wage_survey(2000, 1, unit)
    made = released(table, cluster_size=size)
    assert 0.5 < equal_share(table) < 0.7
    assert abs(equal_share(made) - equal_share(table)) <= 0.01
    assert equal_share(released(table, cluster_size=size, derived="off")) < 0.3  # without the relation
    before, after = columns_of(table), columns_of(made)
    for name in ("age", "income", "wage"):
        assert ks_2samp(before[name], after[name]).statistic <= 0.015, name
    assert abs(np.mean(before["wage"] == 0) - np.mean(after["wage"] == 0)) <= 0.005
    assert np.mean(after["wage"] > after["income"]) <= 0.01
    ages = [one["age"][one["income"] == one["wage"]].mean() for one in (before, after)]
    assert abs(ages[0] - ages[1]) <= 1.5


def test_what_many_hold_in_one_column_is_not_given_to_the_other(monkeypatch) -> None:
    """A number that many have as income and one as wage would tell that one's wage."""
    table = wage_survey(2000, 2, 50.0)
    made = released(table)
    assert few_hold(table, made, 3) == {}
    placed = equal_numbers._place_rare

    def placed_of_incomes(numbers, grid):
        return placed(numbers, grid)[: None if numbers.is_regular.all() else 0]  # some have no wage

    monkeypatch.setattr(equal_numbers, "_place_rare", placed_of_incomes)
    with pytest.raises(ValueError, match=r'column "wage" would release a value of fewer than'):
        released(table)


def test_numbers_of_more_digits_than_most_do_not_lead_to_the_ends() -> None:
    """140 is read as 100, and the least wage in hundreds, which one person has, is 200: it does not come out for it."""
    columns = columns_of(wage_survey(3000, 6, 100.0))
    wage = np.where(columns["wage"] > 0, columns["wage"] + 1000, 0).astype(np.int64)
    income = columns["income"].astype(np.int64) + 1000
    has_wage, without = np.flatnonzero(wage > 0), np.flatnonzero(wage == 0)
    wage[has_wage[:30]] = income[has_wage[:30]] = 140
    wage[has_wage[30]] = income[has_wage[30]] = 200
    income[without[:30]] = 0
    table = pa.table({"age": columns["age"], "income": income, "wage": wage})
    assert few_hold(table, released(table), 3) == {}


@pytest.mark.parametrize("few", [1, 9])
def test_that_a_few_of_a_group_are_equal_does_not_come_out(few: int) -> None:
    """In a group where fewer than k have wages alone, nobody does; and where fewer have not, all do."""
    table = wage_survey(2000, 3)
    columns = columns_of(table)
    region = np.array(["north", "south", "west"])[np.arange(2000) % 3]
    is_equal = np.where(region == "north", np.cumsum(region == "north") <= few, np.arange(2000) % 2 == 0)
    is_equal |= (region == "south") & (np.cumsum(region == "south") > few)
    is_equal &= ~((region == "south") & (np.cumsum(region == "south") <= few))
    wage = np.maximum(columns["wage"], 100.0) + np.arange(2000) % 7
    income = np.where(is_equal, wage, wage + 100 + np.arange(2000) % 900)
    changed = pa.table({"age": columns["age"], "income": income, "wage": wage, "region": region})
    made = columns_of(released(changed, cols=["age", "income", "wage"], by=["region"]))
    shares = {name: np.mean((made["income"] == made["wage"])[made["region"] == name]) for name in np.unique(region)}
    assert shares["north"] <= 0.012  # by chance 0 to 5 of 665 with twelve seeds, fewer than k
    assert shares["south"] == 1
    assert abs(shares["west"] - 0.5) <= 0.03


def test_people_with_many_rows_are_one() -> None:
    """Nine people with all the equal rows are too few; twelve are enough."""
    table = wage_survey(2000, 4, 1000.0)
    columns = columns_of(table)
    is_equal = np.arange(2000) < 600
    wage = np.maximum(columns["wage"], 1000.0)
    changed = pa.table(
        {
            "age": columns["age"],
            "income": np.where(is_equal, wage, wage + 1000 * (1 + columns["age"] % 7)),
            "wage": wage,
        }
    )
    parts = split_columns(changed, None, SplitOptions(10, {}, None, "error"))
    random = np.random.default_rng(0)
    for people, count in ((9, 0), (12, 1)):
        person = np.where(is_equal, np.arange(2000) % people, np.arange(2000))
        assert len(Redrawing.of(parts, person, 10, "auto", random).equal) == count


def test_chance_is_no_relation() -> None:
    """Whole numbers of a short range are equal in one row of 15, whatever they mean."""
    random = np.random.default_rng(5)
    table = pa.table({"x": random.integers(0, 15, 3000), "y": random.integers(0, 15, 3000)})
    parts = split_columns(table, None, SplitOptions(10, {}, None, "error"))
    assert Redrawing.of(parts, None, 10, "auto", random).equal == []

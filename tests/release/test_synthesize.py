"""anon.synthesize: what may never be released, which rules new records keep, and what an attacker finds in them."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeRegressor

from duckanon import spectral
from duckanon._core.encoding.column_split import SplitOptions, split_columns
from duckanon._core.encoding.parts import read_doubles
from duckanon._methods.releasable.safe_numbers import SafeNumbers
from duckanon._methods.synthesize.binned_trees import grow_binned_tree
from duckanon._methods.synthesize.coded_table import _fill_numbers as fill
from duckanon._methods.synthesize.coded_table import is_usual, name_categories, weigh_rows
from duckanon._methods.synthesize.column_draw import divide_cells
from duckanon._methods.synthesize.implications import (
    AllowedRanges,
    Implications,
    RuleRows,
    find_implications,
    rows_of,
)
from duckanon._methods.synthesize.leaf_draws import (
    NO_NUMBER,
    draw_choices,
    draw_ranks,
    find_leaf_shares,
    restrict_shares,
)
from duckanon._methods.synthesize.leaf_learner import FEWEST_BINNED, Response, grow_tree
from duckanon._methods.synthesize.redrawing import _measure_gains as gains_of_moves
from tests.profiles import cheap
from tests.release import synthesis_quality
from tests.release.surveys import columns_of, income_survey, social_survey
from tests.release.test_spectral_release import few_hold


def released(table: pa.Table, **options: Any) -> pa.Table:
    """Release a table with a seed, unless told otherwise."""
    return spectral.synthesize(table, **{"seed": 1, **options}).read_all()


def household_survey(rows: int, seed: int) -> pa.Table:
    """Make people for whom rules hold: children have no wage, weddings come before divorces, scales go with sizes."""
    random = np.random.default_rng(seed)
    age = random.integers(0, 91, rows)
    wage = np.round(np.exp(random.normal(7, 0.6, rows)))
    status = np.where(age < 16, "child", np.where(age >= 60, "retired", random.choice(["works", "home"], rows)))
    is_married = (age >= 30) & (random.random(rows) < 0.6)
    wedding = 2020 - age + 18 + np.floor(random.random(rows) * (age - 18)).astype(int)
    divorce = np.minimum(2020, wedding + random.integers(0, 20, rows))
    is_divorced = is_married & (random.random(rows) < 0.4)
    size = random.integers(1, 7, rows)
    return pa.table(
        {
            "age": age,
            "status": status,
            "wage": pa.array(wage, mask=(age < 16) | (status == "retired")),
            "wedding": pa.array(wedding, mask=~is_married),
            "divorce": pa.array(divorce, mask=~is_divorced),
            "size": size,
            "scale": np.round(1 + 0.5 * np.minimum(size - 1, 2) + 0.3 * np.maximum(size - 3, 0), 1),
        }
    )


def contradictions(table: pa.Table) -> dict[str, int]:
    """Count the people for whom a rule of `household_survey` does not hold."""
    found: Counter[str] = Counter()
    for one in table.to_pylist():
        found["child with a wage"] += one["age"] < 16 and one["wage"] is not None
        found["retired with a wage"] += one["status"] == "retired" and one["wage"] is not None
        found["child that is none"] += (one["age"] < 15) != (one["status"] == "child") and one["age"] != 15
        found["divorce before wedding"] += bool(one["divorce"] and one["wedding"] and one["divorce"] < one["wedding"])
        found["divorce without wedding"] += one["divorce"] is not None and one["wedding"] is None
        found["scale"] += one["scale"] != round(1 + 0.5 * min(one["size"] - 1, 2) + 0.3 * max(one["size"] - 3, 0), 1)
    return {rule: count for rule, count in found.items() if count}


# What is promised


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_rules_of_the_original_hold_in_the_release(seed: int) -> None:
    table = household_survey(2000, seed)
    assert contradictions(table) == {}
    assert contradictions(released(table, nulls="category", seed=seed)) == {}


def test_without_rules_some_records_contradict_themselves() -> None:
    """The test above tests something: trees alone do not keep all rules."""
    table = household_survey(2000, 1)
    assert contradictions(released(table, nulls="category", derived="off")) != {}


@st.composite
def tables(draw: st.DrawFn) -> tuple[pa.Table, int]:
    """Tables of all types: skewed and whole numbers, zeros, categories, truth values, dates, NULLs; and a k."""
    rows = draw(st.integers(120, 400))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    common = random.normal(size=rows)
    days = (common * 200 + random.normal(0, 50, rows)).astype(int)
    made = {
        "amount": np.round(np.exp(common + random.normal(size=rows)), draw(st.integers(0, 3))),
        "whole": (common * draw(st.integers(2, 30))).astype(int),
        "zeros": np.where(random.random(rows) < draw(st.floats(0, 0.9)), 0.0, np.round(random.gamma(2, 9, rows), 1)),
        "text": random.choice(["a", "b", "c", "other", "e"], rows, p=[0.5, 0.3, 0.15, 0.02, 0.03]),
        "truth": common + random.normal(size=rows) > 0,
        "day": [datetime.date(2020, 1, 1) + datetime.timedelta(int(day)) for day in days],
    }
    table = pa.table(made)
    missing = draw(st.sampled_from(table.column_names))
    values = table.column(missing).to_pylist()
    is_null = random.random(rows) < draw(st.sampled_from([0.0, 0.02, 0.3]))
    column = pa.array([None if none else one for none, one in zip(is_null, values, strict=True)])
    place = table.column_names.index(missing)
    return table.set_column(place, missing, column.cast(table.schema.field(missing).type)), draw(st.integers(3, 12))


@pytest.mark.thorough
@cheap
@given(tables(), st.integers(1, 500), st.integers(0, 3))
def test_types_counts_and_values_are_as_promised(drawn: tuple[pa.Table, int], rows: int, seed: int) -> None:
    """Names, types and rows are those asked for; categories are shared by k people, numbers by three or by nobody."""
    table, k = drawn
    options: dict[str, Any] = {"k": k, "leaf": 10, "rows": rows, "nulls": "category", "keep_out": 10, "seed": seed}
    try:
        made = released(table, **options)
    except ValueError as refusal:
        assert "too few numbers" in str(refusal) or "no value shared" in str(refusal)  # noqa: PT017
        return
    assert made.schema.names == table.schema.names
    assert made.schema.types == table.schema.types
    assert made.num_rows == rows
    assert few_hold(table.select(["text", "truth"]), made, k) == {}
    assert few_hold(table.select(["amount", "whole", "zeros", "day"]), made, 3) == {}
    assert released(table, **options).equals(made)


def test_people_are_counted_not_rows() -> None:
    """A person with fifty rows makes neither a category nor a number common."""
    random = np.random.default_rng(5)
    person = np.concatenate([np.arange(900), np.full(50, 1000)])
    table = pa.table(
        {
            "person": person,
            "text": np.where(person == 1000, "only", random.choice(["a", "b"], 950)),
            "amount": np.where(person == 1000, 77.7, np.round(random.normal(size=950), 2)),
        }
    )
    made = released(table, person="person")
    assert "only" not in made.column("text").to_pylist()
    assert 77.7 not in made.column("amount").to_pylist()


def test_leaves_hold_so_many_people_where_people_have_several_rows() -> None:
    random = np.random.default_rng(6)
    people = random.integers(0, 300, 3000)
    features = random.normal(size=(3000, 3)).astype(np.float32)
    response = Response(np.zeros(3000, np.int64), 0, features[:, 0] + random.normal(size=3000))
    tree = grow_tree(features, response, 25, weigh_rows(people), random)
    leaves = tree.leaves(features)
    assert len(set(leaves)) > 1
    assert all(len(set(people[leaves == leaf])) >= 25 for leaf in set(leaves))


@pytest.mark.thorough
def test_trees_of_many_people_tell_as_much_in_bins() -> None:
    """Leaves hold enough people, and explain other people's numbers as those of scikit-learn's tree do."""
    random = np.random.default_rng(7)
    features = np.where(random.random((2 * FEWEST_BINNED, 3)) < 0.1, NO_NUMBER, random.random((2 * FEWEST_BINNED, 3)))
    features[:, 2] = random.integers(0, 40, 2 * FEWEST_BINNED)  # places of choices
    features = features.astype(np.float32)
    numbers = np.sin(9 * features[:, 0]) * features[:, 1] + (features[:, 2] % 7) / 7
    numbers = numbers + random.normal(0, 0.2, len(numbers))
    halves = np.arange(2 * FEWEST_BINNED) < FEWEST_BINNED
    made = grow_binned_tree(features[halves], numbers[halves], 25)
    inner = np.flatnonzero(made.left >= 0)
    assert (np.minimum(made.left, made.right)[inner] > inner).all()
    explained = []
    for tree in (
        made,
        DecisionTreeRegressor(min_samples_leaf=25, random_state=0).fit(features[halves], numbers[halves]),
    ):
        own, others = tree.apply(features[halves]), tree.apply(features[~halves])
        sizes = np.bincount(own)
        assert sizes[sizes > 0].min() >= 25
        rest = numbers[~halves] - (np.bincount(own, numbers[halves]) / np.maximum(sizes, 1))[others]
        explained.append(1 - rest.var() / numbers[~halves].var())
    assert explained[0] > explained[1] - 0.01 > 0.5
    whole = grow_tree(
        features[halves], Response(np.zeros(FEWEST_BINNED, np.int64), 0, numbers[halves]), 25, None, random
    )
    assert set(whole.leaves(features)) <= set(range(len(made.left)))


# Steps


def test_rare_choices_of_a_leaf_are_those_of_its_parent() -> None:
    counts = np.array([[60.0, 30, 10], [40, 5, 2], [20, 25, 8], [1, 1, 2]])
    shares = find_leaf_shares(counts, counts, np.array([0, 0, 0, 2]))
    assert np.allclose(shares[0], [0.6, 0.3, 0.1])
    assert np.allclose(shares[1], [40 / 47, 5 / 47, 2 / 47])  # one rare choice: it has the others' weight alone
    assert np.allclose(shares[3], shares[2])  # nobody's choice is common: all are the parent's


def test_a_part_of_the_people_has_the_rare_choices_of_the_whole_table() -> None:
    counts = np.array([[60.0, 2, 1], [40, 1, 0], [20, 1, 1]])
    shares = find_leaf_shares(counts, counts, np.array([0, 0, 0]), np.array([0.7, 0.2, 0.1]))
    assert np.allclose(shares[0], [0.7, 0.2, 0.1])
    assert np.allclose(shares[1], np.array([40, 2 / 3, 1 / 3]) / 41)  # one person of a rare choice: as 0.2 to 0.1
    assert np.allclose(shares[2], np.array([20, 4 / 3, 2 / 3]) / 22)


@cheap
@given(st.integers(0, 2**32), st.integers(2, 6), st.integers(1, 8))
def test_choices_are_drawn_as_often_as_wanted(seed: int, choices: int, cells: int) -> None:
    """Where every cell has every choice, counts are exact; no cell gets a choice that it has not."""
    random = np.random.default_rng(seed)
    of_row = random.integers(0, cells, 200)
    wanted = random.multinomial(200, np.full(choices, 1 / choices))
    shares = random.dirichlet(np.ones(choices), cells)
    assert np.bincount(draw_choices(shares, of_row, wanted, random), minlength=choices).tolist() == wanted.tolist()
    shares[:, 0] = 0.0
    assert 0 not in draw_choices(shares, of_row, wanted, random)


@cheap
@given(st.integers(0, 2**32), st.integers(1, 12))
def test_ranks_lie_between_means_of_three_neighbours(seed: int, people: int) -> None:
    """Without noise a leaf's ranks are spread evenly from the mean of its three lowest to that of its three highest."""
    random = np.random.default_rng(seed)
    leaves = random.permutation(np.repeat([3, 7], people))
    ranks, new_leaves = random.random(2 * people), random.choice([3, 7], 40)
    drawn = draw_ranks(leaves, ranks, new_leaves, None, 0.0, np.random.default_rng(seed))
    for leaf, place, rank in zip(new_leaves, np.random.default_rng(seed).random(40), drawn, strict=True):
        own = np.sort(ranks[leaves == leaf])
        means = [own[first : first + 3].mean() for first in range(max(people - 2, 1))]
        assert rank == pytest.approx(np.interp(place * (len(means) - 1), np.arange(len(means)), means))


def test_what_is_not_regular_is_filled_as_a_regression_says() -> None:
    """A column that the others decide gets what they say; the rest of one that they do not is drawn from its own."""
    random = np.random.default_rng(1)
    matrix = random.normal(size=(500, 3))
    matrix[:, 1] = 5 + 2 * matrix[:, 0] - 3 * matrix[:, 2]
    truth, is_regular = matrix.copy(), np.arange(500) >= 60
    matrix[~is_regular, 1] = 0.0
    fill(matrix, 1, is_regular, random)
    assert np.allclose(matrix, truth, atol=0.1)
    noise = random.normal(100, 1, 500)
    matrix[:, 1] = np.where(is_regular, noise, 0.0)
    fill(matrix, 1, is_regular, random)
    assert (matrix[:, 1] > noise.min() - 1).all()
    assert 0.5 < matrix[~is_regular, 1].std() < 1.5
    fill(matrix, 1, np.zeros(500, bool), random)  # nobody to learn from


@cheap
@given(st.integers(0, 2**32), st.integers(2, 9))
def test_what_an_exchange_gains_is_how_much_the_squares_fall(seed: int, bins: int) -> None:
    random = np.random.default_rng(seed)
    counts, shares = random.integers(1, 9, bins), random.dirichlet(np.ones(bins))
    before, after = random.integers(0, bins, (2, 30))

    def ahead(one: np.ndarray) -> np.ndarray:
        return np.cumsum(one / counts.sum() - shares)[:-1]

    gains = []
    for left, entered in zip(before, after, strict=True):
        moved = counts.copy()
        moved[left] -= 1
        moved[entered] += 1
        gains.append((ahead(counts) ** 2).sum() - (ahead(moved) ** 2).sum())
    assert np.allclose(gains_of_moves(ahead(counts), int(counts.sum()), before, after), gains)


@cheap
@given(st.integers(0, 2**32), st.floats(0, 0.9))
def test_ranks_stay_within_limits(seed: int, low: float) -> None:
    random = np.random.default_rng(seed)
    limits = np.full(100, low), np.minimum(low + random.random(100), 1.0)
    leaves = random.integers(0, 3, 60)
    leaves[:3] = [0, 1, 2]
    drawn = draw_ranks(leaves, random.random(60), random.integers(0, 3, 100), limits, 0.1, random)
    assert ((drawn >= limits[0]) & (drawn <= limits[1])).all()


def test_cells_divide_leaves_only_where_rules_do() -> None:
    leaves = np.array([1, 1, 2, 2])
    has_choice = np.array([[True, True], [True, True], [True, False]])
    limits = [(np.array([0, 1, 0, 1]), np.array([[True, True], [True, False]]))]
    nodes, cells, allowed = divide_cells(leaves, has_choice, limits)
    assert len(nodes) == 3  # leaf 2 has the first choice only, which both classes may have
    assert cells[2] == cells[3]
    assert allowed[cells[1]].tolist() == [True, False]
    shares, is_possible = restrict_shares(np.full((3, 2), 0.5), nodes, allowed, np.zeros(3, np.int64))
    assert is_possible.all()
    assert shares[cells[1]].tolist() == [0.5, 0.0]


def test_numbers_of_few_values_are_categories_where_people_share_them() -> None:
    """Each person has ten rows: a scale of values that nobody shares is none, however many rows have them."""
    rows = np.arange(1000)
    table = pa.table(
        {
            "sex": 1 + rows % 2,
            "scale": np.array([1.0, 1.3, 2.5])[rows % 3],
            "own": np.array([1.0, 1.3, 2.5])[rows % 3] + rows // 10 * 7.7,
            "amount": np.sqrt(rows),
            "nothing": pa.nulls(1000, pa.float64()),
            "text": ["a", "b"] * 500,
        }
    )
    assert name_categories(table, None, 10) == ["sex", "scale"]
    assert name_categories(table, rows // 10, 10) == ["sex", "scale"]
    assert name_categories(table.select(["scale"]), np.zeros(1000, np.int64), 10) == []


def test_limits_are_values_of_many_people() -> None:
    """The youngest with a wage is one person of 15 and a half: the rule ends at an age that many have."""
    table = household_survey(2000, 1)
    age = columns_of(table)["age"].astype(float)
    wage = np.where(age < 16, 0.0, 1000.0 + np.arange(2000) % 400)
    first = int(np.flatnonzero(age == 15)[0])
    age[first], wage[first] = 15.5, 1234.0
    columns = split_columns(pa.table({"age": age, "wage": wage}), None, SplitOptions(10, {}, None, "error"))
    for exceptions in (0, 2):
        (limits,) = find_implications(columns, [], None, 10, exceptions).ranges
        shared = {value for value, count in Counter(age.tolist()).items() if count >= 10}
        found = set(limits.low[np.isfinite(limits.low)]) | set(limits.high[np.isfinite(limits.high)])
        assert found <= shared
        assert 15.0 in found


@given(
    st.lists(
        st.tuples(st.sampled_from([-np.inf, -1.0, 0.0, 1e9]), st.sampled_from([0.0, 1.5, 1e9, np.inf])),
        min_size=1,
        max_size=4,
    )
)
def test_choices_beside_a_number_are_those_whose_limits_it_is_between(ends: list[tuple[float, float]]) -> None:
    """Limits are exclusive; no number, no limit."""
    low, high = np.array(ends).T
    near = [float(np.nextafter(edge, to)) for edge in (-1.0, 0.0, 1.5, 1e9) for to in (-np.inf, edge, np.inf)]
    numbers = np.array([-1e12, *near, 0.7, 1e12, np.nan])
    rules = Implications([], [AllowedRanges(0, 1, low, high)], [])
    rows = RuleRows({}, {0: numbers})
    for classes, allowed in rules.choice_limits(1, rows):
        expected = [[not (number <= one or number >= other) for one, other in ends] for number in numbers.tolist()]
        assert allowed[classes].tolist() == expected


def test_a_rule_holds_beside_codes_that_few_have() -> None:
    random = np.random.default_rng(3)
    job = random.choice([10, 20, 40, 50], 600)
    branch = np.where(job == 20, 1, random.integers(1, 6, 600))
    table = pa.table({"job": np.append(job, [21, 22, 23] * 8), "branch": np.append(branch, [2, 3, 4, 5] * 6)})
    made = released(table, categories=["job", "branch"])
    jobs = made.column("job").to_numpy()
    assert set(jobs.tolist()) == {10, 20, 40, 50}
    assert set(made.column("branch").to_numpy()[jobs == 20].tolist()) == {1}


def test_chance_makes_no_rules() -> None:
    """Columns that have nothing to do with each other have no rules, whatever the sample."""
    for seed in range(20):
        random = np.random.default_rng(seed)
        table = pa.table(
            {
                "text": random.choice(list("abcdefgh"), 1000),
                "other": random.choice(list("vwxyz"), 1000, p=[0.9, 0.04, 0.03, 0.02, 0.01]),
                "number": np.round(random.normal(size=1000), 2),
                "amount": np.round(random.normal(size=1000), 2),
            }
        )
        columns = split_columns(table, None, SplitOptions(10, None, None, "error"))
        found = find_implications(columns, [], None, 10, 2)
        assert not found.pairs
        assert not found.ranges
        assert not found.ordered
        assert not found.is_broken(rows_of(columns)).any()


# What an attacker finds


def isolated_person(points: np.ndarray) -> int:
    """Return one of the ten people farthest from their nearest neighbour."""
    distances = np.abs(points[:, None] - points[None]).sum(axis=2)
    np.fill_diagonal(distances, np.inf)
    return int(np.argsort(-distances.min(axis=1))[8])


def membership_advantage(release: Callable[[pa.Table, int], pa.Table], rounds: int = 12) -> float:
    """Return how often, of two releases with and without an isolated person, the one with them is nearer to them."""
    names = ["age", "wage", "pension"]
    wins = []
    for number in range(rounds):
        table = income_survey(400, number).select(names)
        points = np.column_stack(list(columns_of(table).values())).astype(float)
        scale = points.std(axis=0)
        target = isolated_person(points / scale)
        distances = []
        for place, rows in enumerate((np.arange(400), np.delete(np.arange(400), target))):
            made = columns_of(release(table.take(pa.array(rows)), 2 * number + place))
            new = np.column_stack([made[name] for name in names]).astype(float)
            distances.append(float(np.abs((new - points[target]) / scale).sum(axis=1).min()))
        wins.append(0.5 if distances[0] == distances[1] else float(distances[0] < distances[1]))
    return float(np.mean(wins))


def noisy_copy(table: pa.Table, seed: int) -> pa.Table:
    """Return the people themselves, each number moved by a hundredth of a deviation: a release that must be found."""
    random = np.random.default_rng(seed)
    return pa.table(
        {name: one + 0.01 * one.std() * random.normal(size=len(one)) for name, one in columns_of(table).items()}
    )


@pytest.mark.thorough
def test_an_isolated_person_is_found_in_noisy_copies_and_hardly_in_new_records() -> None:
    """Copies are found, new records hardly: .62 of 1,200 pairs (.61 with fixed limits), of 72 with an error of .06."""
    assert membership_advantage(noisy_copy, 24) > 0.9
    assert membership_advantage(lambda table, seed: released(table, seed=seed), 72) <= 0.75


@pytest.mark.thorough
def test_who_knows_everybody_but_one_does_not_count_the_last_one() -> None:
    """Without people kept out, shares are exact, and the last person follows from the others'."""
    table = income_survey(600, 3).select(["age", "sex", "wage"])
    sexes = columns_of(table)["sex"]
    for keep_out in (0, 25):
        learnt = []
        for person in range(12):
            made = columns_of(released(table, keep_out=keep_out, seed=person))["sex"]
            men = int((made == "male").sum()) - int((np.delete(sexes, person) == "male").sum())
            learnt.append(men == int(sexes[person] == "male"))
        assert np.mean(learnt) == 1.0 if keep_out == 0 else np.mean(learnt) < 0.6


# What an analyst keeps


def test_equal_numbers_stay_equal_where_they_were() -> None:
    random = np.random.default_rng(8)
    wage = np.round(np.exp(random.normal(7, 0.8, 2000)))
    income = np.where(random.random(2000) < 0.6, wage, wage + np.round(np.exp(random.normal(6, 1, 2000))))
    table = pa.table({"age": random.integers(20, 60, 2000), "wage": wage, "income": income})
    made = columns_of(released(table))
    assert abs(np.mean(made["wage"] == made["income"]) - 0.6) < 0.02
    assert (made["income"] >= made["wage"]).all()


def farms(rows: int, seed: int) -> pa.Table:
    """Make farms whose area is a sum, in a unit so small that few farms share an area; half of them have no cattle."""
    random = np.random.default_rng(seed)
    size = np.exp(random.normal(3.2, 1.2, rows))[:, None] * random.dirichlet([3, 2, 1], rows)
    arable, pasture, forest = np.round(size * (random.random((rows, 3)) < [2, 0.7, 0.5]), 1).T
    herds = {name: pa.array(random.poisson(40, rows), mask=random.random(rows) < 0.6) for name in ("cattle", "sheep")}
    parts = {"arable": arable, "pasture": pasture, "forest": forest}
    return pa.table(parts | {"area": np.round(arable + pasture + forest, 1)} | herds)


@pytest.mark.parametrize("rows", [300, 1000])
def test_sums_hold_in_small_tables_of_numbers_that_few_share(rows: int) -> None:
    table = farms(rows, 3)
    new = released(table, nulls="category")
    made = columns_of(new)
    assert np.allclose(made["area"], made["arable"] + made["pasture"] + made["forest"])
    assert not few_hold(table, new, 3)


@pytest.mark.thorough
def test_generated_surveys_are_hardly_told_from_other_people() -> None:
    for make in (income_survey, social_survey):
        both = make(3000, 1)
        members, others = both.slice(0, 1500), both.slice(1500)
        found = dict(
            zip(
                synthesis_quality.MEASURES,
                synthesis_quality.measured(members, others, released(members, nulls="category"), None),
                strict=False,
            )
        )
        assert found["KS, median"] <= 0.01
        assert found["KS, largest"] <= 0.03
        assert found["Cramer's V"] <= 0.03
        assert found["AUC"] <= 0.62
        assert found["few"] == 0


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["Adult", "NHANES", "ACS"])
def test_surveys_are_hardly_told_from_other_people(name: str) -> None:
    """Mean of two seeds of 3,000 members, against as many other people; ACS has two columns of hundreds of codes."""
    found = [survey for survey in synthesis_quality.surveys(3000, 1) if survey[0] == name]
    if not found:
        pytest.skip(f"the data of {name} is not there")
    _, members, others, codes = found[0]
    release = synthesis_quality.METHODS["synthesize"]
    measured = [synthesis_quality.measured(members, others, release(members, codes, seed), codes) for seed in (1, 2)]
    mean = dict(zip(synthesis_quality.MEASURES, np.mean(measured, axis=0).tolist(), strict=False))
    assert mean["KS, median"] <= 0.008
    assert mean["KS, largest"] <= 0.04
    assert mean["Cramer's V"] <= 0.03
    assert mean["AUC"] <= (0.70 if name == "ACS" else 0.65)
    assert mean["few"] == 0
    assert mean["copies"] == 0


def test_limits_are_drawn_so_that_one_person_more_seldom_decides() -> None:
    """A category of k people, and a number of three, come out in some releases only; of one or two people never."""
    random = np.random.default_rng(1)
    reading = SplitOptions(10, {}, None, "error", random)
    rare = np.array([reading.is_rare(np.array([9, 10, 11, 12, 400])) for _ in range(300)]).mean(axis=0)
    assert rare[0] == 1
    assert 0.55 < rare[1] < 0.78
    assert 0.2 < rare[2] < 0.45
    assert rare[3:].tolist() == [0, 0]
    assert reading.is_rare(np.array([10, 3])).tolist() == [False, True]  # or else nothing would be left
    ages = np.repeat(np.arange(60), np.tile([2, 3, 5, 8], 15))
    (column,) = split_columns(pa.table({"age": ages}), None, SplitOptions(10, {}, [], "error"))
    assert SafeNumbers.of(column, None, 10).least == 3
    shown = np.zeros(4)
    for _ in range(40):
        numbers = SafeNumbers.of(column, None, 10, random)
        assert set(SafeNumbers.of(column, None, 10).rare.tolist()) <= set(numbers.rare.tolist())
        values = np.rint(read_doubles(numbers.grid.array(numbers.rare, None))).astype(int)
        shown += 1 - np.bincount(values % 4, minlength=4) / 15
    assert shown[0] == 0  # of two people
    assert 0.15 < shown[1] / 40 < 0.35  # of three
    assert 0.65 < shown[2] / 40 < 0.85  # of five
    assert shown[3] == 40


def test_numbers_that_a_few_people_have_are_not_usual() -> None:
    table = pa.table({"rooms": [1] * 50 + [2] * 50 + [3] * 4, "height": np.random.default_rng(1).normal(size=104)})
    columns = split_columns(table, None, SplitOptions(10, {}, ["rooms"], "category"))
    assert is_usual(columns).tolist() == [True] * 100 + [False] * 4


def test_leaves_may_have_just_as_many_people_as_asked() -> None:
    """Five people with three rows each are a leaf, whatever the sum of fifteen thirds is; four are none."""
    for people, expected in ((5, 2), (4, 1)):
        of_person = np.repeat(np.arange(20), 3)
        weights = np.full(60, 1 / 3)
        features = (of_person < people).astype(np.float32)[:, None]
        response = Response(np.zeros(60, np.int64), 0, features[:, 0].astype(np.float64))
        tree = grow_tree(features, response, 5, weights, np.random.default_rng(1))
        assert len(np.unique(tree.leaves(features))) == expected

"""Numbers a constant apart, and at least a constant apart: found with enough people, kept exactly, counted."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from duckanon._core.encoding.column_split import SplitOptions, split_columns
from duckanon._core.encoding.formulas import find_offsets
from duckanon._measure.utility.contradictions import contradictions
from duckanon._methods.synthesize.implications import find_implications
from tests.release.test_synthesize import released

DAY = np.datetime64("2015-01-01")


def contracts(rows: int, seed: int) -> pa.Table:
    """Make contracts: service begins at fourteen, a review is due after thirty days, a bonus is 500 more."""
    random = np.random.default_rng(seed)
    age = np.clip(np.round(random.gamma(9, 5.5, rows)), 18, 95).astype(np.int64)
    start = random.integers(0, 2500, rows)
    income = np.round(np.exp(random.normal(10, 0.6, rows)), 2)
    return pa.table(
        {
            "bonus": pa.array(np.round(income + 500, 2), mask=random.random(rows) < 0.3),
            "income": income,
            "age": age,
            "service": np.minimum(np.round(random.gamma(2, 8, rows)), age - 14).astype(np.int64),
            "start": pa.array(DAY + start),
            "review": pa.array(DAY + start + 30, mask=random.random(rows) < 0.2),
            "closed": pa.array(DAY + start + 13 + random.geometric(0.05, rows)),
        }
    )


def columns(table: pa.Table) -> dict[str, np.ndarray]:
    found = {}
    for name in table.column_names:
        column = table.column(name)
        days = column.cast(pa.int32()) if pa.types.is_date(column.type) else column
        found[name] = np.array([np.nan if one is None else one for one in days.to_pylist()], float)
    return found


def counts(original: pa.Table, made: pa.Table) -> dict[str, tuple[int, int]]:
    options = {"k": 10, "person": None, "order_by": None, "special": "auto", "categories": None}
    return {
        row["rule"]: (row["released_rows"], row["released_broken"])
        for row in contradictions(original, made, **options).to_pylist()
    }


@pytest.mark.parametrize("seed", [1, 2])
def test_new_records_keep_what_is_a_constant_apart(seed: int) -> None:
    table = contracts(1500, seed)
    made = released(table, nulls="category", seed=seed)
    of = columns(made)
    for column, source, constant in (("bonus", "income", 500), ("review", "start", 30)):
        apart = of[column] - of[source]
        assert np.abs(apart[~np.isnan(apart)] - constant).max() < 1e-6
        assert 0.6 < np.mean(~np.isnan(apart)) < 0.9
    assert (of["age"] - of["service"]).min() == 14
    assert (of["closed"] - of["start"]).min() == 14
    before = columns(table)
    for name in ("bonus", "income"):
        holders = Counter(before[name].tolist())
        assert not [one for one in of[name] if 0 < holders[one] < 3]


def test_rules_with_a_constant_are_counted_as_a_plain_count_does() -> None:
    table = contracts(1500, 3)
    random = np.random.default_rng(3)
    made = pa.table({name: table.column(name).take(pa.array(random.permutation(1500))) for name in table.column_names})
    found = counts(table, made)
    of = columns(made)
    for rule, kept in (
        ("bonus is income + 500", np.abs(of["bonus"] - of["income"] - 500) < 0.02),
        ("review is start + 30 days", of["review"] == of["start"] + 30),
        ("service is at most age - 14", of["service"] <= of["age"] - 14),
        ("start is at most closed - 14 days", of["start"] <= of["closed"] - 14),
    ):
        names = [name for name in of if name in rule.split()]
        about = ~np.isnan(of[names[0]]) & ~np.isnan(of[names[1]])
        assert found[rule] == (np.count_nonzero(about), np.count_nonzero(about & ~kept))
        assert found[rule][1] > 50
    assert all(broken == 0 for _, broken in counts(table, table).values())


@pytest.mark.parametrize("people", [9, 10])
def test_a_constant_of_fewer_than_k_people_is_none(people: int) -> None:
    """The least difference is told where k people have it: one of nine would be that of a few."""
    random = np.random.default_rng(1)
    age = random.integers(30, 60, 1000)
    service = age - 20 - random.integers(0, 9, 1000)
    service[:people] = age[:people] - 15
    parts = split_columns(pa.table({"age": age, "service": service}), None, SplitOptions(10, {}, [], "category"))
    offsets = {(one.first, one.second): one.offset for one in find_implications(parts, [], None, 10, 0).ordered}
    assert offsets[1, 0] == (15 if people == 10 else 0)


@pytest.mark.parametrize("exceptions", [2, 3])
def test_two_people_hide_no_constant(exceptions: int) -> None:
    random = np.random.default_rng(2)
    first = random.integers(0, 500, 400)
    second = first + 7
    second[:exceptions] += 1
    parts = split_columns(pa.table({"first": first, "second": second}), None, SplitOptions(10, {}, [], "category"))
    found = find_offsets(parts, None, 10, 2)
    assert [(one.column, one.sources, one.constant) for one in found] == ([(1, (0,), 7.0)] if exceptions == 2 else [])


def test_of_people_with_several_rows_people_are_counted() -> None:
    """Ten rows of one person share no constant; ten people do."""
    random = np.random.default_rng(4)
    first = random.integers(0, 500, 400)
    parts = split_columns(pa.table({"first": first, "second": first + 7}), None, SplitOptions(10, {}, [], "category"))
    assert not find_offsets(parts, np.zeros(400, np.int64), 10, 0)
    assert find_offsets(parts, np.arange(400) // 4, 10, 0)


def test_choices_between_few_numbers_keep_limits_that_no_single_pair_shows() -> None:
    """Each pair of a size and a scale is rare by chance, all scales below a limit together are not."""
    random = np.random.default_rng(5)
    size = random.choice([1, 5], 600, p=[0.9, 0.1])
    scale = np.where(size == 5, random.choice([2.5, 2.7, 3.4], 600), np.round(random.integers(10, 24, 600) / 10, 1))
    parts = split_columns(
        pa.table({"size": size, "scale": scale}), None, SplitOptions(10, {}, ["size", "scale"], "category")
    )
    (rule,) = find_implications(parts, [], None, 10, 0).pairs
    scales = [float(one) for one in parts[1].outcomes]
    five = list(map(int, parts[0].outcomes)).index(5)
    assert [one for one, allowed in zip(scales, rule.allowed[five], strict=True) if allowed] == [2.5, 2.7, 3.4]

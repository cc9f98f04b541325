"""Exchange between neighbouring boxes: promises kept, never wider than before, nor than microaggregates on incomes."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from duckanon._core.common.arrays import Floats, Ints
from duckanon._core.numbers.parts import column_parts
from duckanon._core.numbers.support import Support, column_support
from duckanon._methods.boxes import exchange
from duckanon._methods.boxes.make import make_boxes
from duckanon._methods.boxes.nodes import Points, value_order
from duckanon._methods.boxes.shaping import sensitivities
from duckanon._methods.microaggregate.microaggregated_table import grouped
from tests.profiles import dear

ROWS = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 40)), min_size=12, max_size=60)


def cost(points: Points, group: Ints) -> float:
    """Sum what boxes cost, box by box."""
    total = 0.0
    for box in np.unique(group):
        members = np.flatnonzero(group == box)
        for column, weight in enumerate(points.weights):
            low, high = (ends[members] for ends in points.ends(column))
            weights = weight * len(members) if isinstance(weight, float) else weight[members].sum()
            total += float(weights * (high.max() - low.min()) / 2)
    return total


@given(ROWS, st.integers(2, 4), st.booleans(), st.booleans(), st.integers(0, 99))
def test_exchange_keeps_promises_and_costs_no_more(
    rows: list[tuple[int, int]], k: int, is_weighted: bool, has_strata: bool, seed: int
) -> None:
    random = np.random.default_rng(seed)
    values = np.array(rows, np.float64).T
    values = values[:, value_order(list(values))]
    run = np.unique(values, axis=1, return_inverse=True)[1].reshape(-1)
    strata = (run % 2) if has_strata else np.zeros(len(run), np.int64)
    group = np.empty(len(run), np.int64)
    for stratum in (0, 1):  # whole runs of equal records, in any order, boxes of at least k of them
        members = np.flatnonzero(strata == stratum)
        if 0 < len(members) < k:
            return
        box = 2 * len(run) * stratum
        chosen: list[int] = []
        for number in random.permutation(np.unique(run[members])):
            chosen += np.flatnonzero(run == number).tolist()
            group[np.flatnonzero(run == number)] = box
            if len(chosen) >= k:
                box, chosen = box + 1, []
        if chosen and len(chosen) < k:
            group[chosen] = box - 1
    group = np.unique(group, return_inverse=True)[1].reshape(-1)
    weights = [random.random(len(run)), 2.0] if is_weighted else [1.0, 0.25]
    points = Points(list(values), weights)
    found = exchange.exchanged(points, group, k, strata if has_strata else None)
    assert np.bincount(found).min() >= min(k, np.bincount(group).min())
    assert all(len(np.unique(found[run == number])) == 1 for number in np.unique(run))
    assert all(len(np.unique(strata[found == box])) == 1 for box in np.unique(found))
    assert cost(points, found) <= cost(points, group) * (1 + 1e-12)


@pytest.mark.rotating
@dear
@given(ROWS, st.integers(2, 4), st.randoms(use_true_random=False))
def test_boxes_do_not_depend_on_the_order_of_records(rows: list[tuple[int, int]], k: int, random: object) -> None:
    shuffled = random.sample(rows, len(rows))  # type: ignore[attr-defined]
    first, second = (
        make_boxes(dict(zip("ab", np.array(table, np.float64).T, strict=True)), k) for table in (rows, shuffled)
    )
    by_row = dict(zip(rows, first.box.tolist(), strict=True))
    assert [by_row[row] for row in shuffled] == second.box.tolist()


def incomes(rows: int, seed: int, columns: int) -> dict[str, Floats]:
    """Draw wages with a long tail and zeros, hours that many share, and ages."""
    random = np.random.default_rng(seed)
    wage = np.round(random.lognormal(10.5, 0.9, rows), -2) * (random.random(rows) > 0.08)
    hours = np.where(random.random(rows) < 0.5, 40.0, np.round(np.clip(random.normal(36, 12, rows), 1, 99)))
    age = np.round(np.clip(random.normal(43, 15, rows), 16, 94))
    return dict(list({"wage": wage, "age": age, "hours": hours}.items())[:columns])


def width(numbers: dict[str, Floats], supports: dict[str, Support], group: Ints, k: int) -> float:
    """Return the uncertainty of means, where groups are released as intervals of parts."""
    weights = sensitivities(numbers, None).at(list(numbers.values()))
    total = 0.0
    order, sizes = np.argsort(group, kind="stable"), np.bincount(group)
    starts = np.cumsum(sizes) - sizes
    for (name, values), weight in zip(numbers.items(), weights, strict=True):
        parts = column_parts(values, k, supports[name], None, None)
        number = parts.number[order]
        ends = parts.upper[np.maximum.reduceat(number, starts)] - parts.lower[np.minimum.reduceat(number, starts)]
        total += float(np.mean(weight) * (sizes * ends).sum())
    return total


@pytest.mark.rotating
@pytest.mark.parametrize(("rows", "k", "columns"), [(1000, 5, 2), (1000, 10, 3), (3000, 5, 3), (3000, 10, 2)])
def test_boxes_are_no_wider_than_microaggregates(rows: int, k: int, columns: int) -> None:
    """Intervals of the groups of microaggregate were up to 12 % narrower before boxes exchanged records."""
    numbers = incomes(rows, rows + k, columns)
    supports = {name: column_support(None, values, k, None) for name, values in numbers.items()}
    coded = {name: supports[name].coded(values) for name, values in numbers.items()}
    boxes = make_boxes(coded, k, supports=supports)
    fast = grouped(list(coded.values()), k, "fast", None)
    assert width(coded, supports, boxes.box, k) <= width(coded, supports, fast, k)

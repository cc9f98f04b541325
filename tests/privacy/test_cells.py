"""Cells that hold several values: what they hold, draws from them, whom they single out; against brute force."""

from __future__ import annotations

from collections import Counter
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from scipy import stats

from duckanon._core.privacy import cells as module
from duckanon._core.privacy.cells import MISSING, CellColumn, count_members, count_singled_out, make_value_column
from duckanon._core.privacy.prediction import measure_queries
from tests.profiles import cheap

NUMBERS = [*range(6), MISSING]
INTERVAL = st.tuples(st.sampled_from([-np.inf, 0, 1, 2.5, 3]), st.sampled_from([3, 4, 5, np.inf]))
LISTED = st.lists(st.sampled_from(NUMBERS), unique=True, max_size=4)
CELLS = st.lists(st.one_of(INTERVAL, LISTED), min_size=1, max_size=6)


def column(held: list[Any], codes: Any = None, step: float = 1.0, **more: Any) -> CellColumn:
    """Make a column of cells: a pair is an interval, a list is a list."""
    ends = np.array([cell if isinstance(cell, tuple) else (np.nan, np.nan) for cell in held], float)
    members = [cell if isinstance(cell, list) else [] for cell in held]
    starts = np.concatenate([[0], np.cumsum([len(listed) for listed in members])]).astype(int)
    flat = np.array([value for listed in members for value in listed], float)
    codes = np.arange(len(held)) if codes is None else np.asarray(codes)
    return CellColumn(codes, ends[:, 0], ends[:, 1], starts, flat, (0.0, 5.0), step, **more)


def holds(cell: Any, value: float) -> bool:
    return value in cell if isinstance(cell, list) else cell[0] <= value <= cell[1]


@cheap
@given(held=CELLS, values=st.lists(st.sampled_from(NUMBERS), min_size=1, max_size=8))
def test_holds(held: list[Any], values: list[float]) -> None:
    results = column(held).holds(np.arange(len(held)), np.array(values, float))
    assert results.tolist() == [[holds(cell, value) for value in values] for cell in held]


@cheap
@given(held=CELLS, seed=st.integers(0, 99))
def test_points_are_what_a_draw_may_be(held: list[Any], seed: int) -> None:
    held = [cell if isinstance(cell, list) else (np.ceil(cell[0]), cell[1]) for cell in held]
    points, counts = column(held).points()
    for cell, part in zip(held, np.split(points, np.cumsum(counts)[:-1]), strict=True):
        whole = [value for value in NUMBERS[:-1] if holds(cell, value)]
        assert sorted(part) == sorted((cell or [MISSING]) if isinstance(cell, list) else whole)
    rows = np.random.default_rng(seed).integers(0, len(held), 50)
    for code, value in zip(rows, column(held, rows).draw(np.random.default_rng(seed)), strict=True):
        assert holds(held[code], value) or held[code] == []


def test_every_value_is_equally_likely() -> None:
    rows = np.repeat([0, 1], 6000)
    drawn = column([(1, 4), [0.0, 5.0, MISSING]], rows).draw(np.random.default_rng(4))
    for part, kinds in ((drawn[:6000], 4), (drawn[6000:], 3)):
        frequency = Counter(part.tolist())
        assert len(frequency) == kinds
        assert stats.chisquare(list(frequency.values())).pvalue > 0.001
    numbers = column([(1.0, 4.0)], np.zeros(6000, int), step=0.0).draw(np.random.default_rng(4))
    assert stats.kstest(numbers, stats.uniform(1, 3).cdf).pvalue > 0.001
    rounded = column([(1.0, 4.0)], np.zeros(6000, int), step=0.0, decimals=1).draw(np.random.default_rng(4))
    assert np.array_equal(rounded, np.round(numbers, 1))


@st.composite
def releases(draw: Any) -> tuple[Any, ...]:
    """Draw people in two columns, and rows of cells for them."""
    held = [draw(CELLS), draw(CELLS)]
    rows = draw(st.lists(st.tuples(*(st.integers(0, len(cells) - 1) for cells in held)), min_size=1, max_size=12))
    person = st.tuples(st.sampled_from(NUMBERS), st.sampled_from(NUMBERS))
    return held, np.array(rows), draw(st.lists(person, min_size=1, max_size=12))


@pytest.mark.thorough
@pytest.mark.parametrize("at_once", [5_000, 3])
@cheap
@given(release=releases())
def test_singled_out_against_brute_force(at_once: int, release: tuple[Any, ...]) -> None:
    """Few records at once as in large tables: who is looked at first must not be singled out for that."""
    held, rows, people = release
    expected = set()
    for row in rows:
        inside = [person for person in people if all(holds(held[i][row[i]], person[i]) for i in range(2))]
        if len(inside) == 1:
            expected.add(inside[0])
    single = [person for person in people if people.count(person) == 1]
    columns = [column(held[i], rows[:, i]) for i in range(2)]
    table = np.array(people, float)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_RECORDS", at_once)
        hits, trials = count_singled_out(table, columns, np.random.default_rng(1))
    if at_once >= len(set(people)):
        assert (hits, trials) == (len(expected), len(single))
    else:  # of the first ones looked at only
        assert hits <= min(trials, len(expected))
        assert trials <= at_once
    counts, _ = count_members(np.column_stack([np.full(len(rows), -1), rows[:, 1]]), columns, table)
    assert counts.tolist() == [sum(holds(held[1][row[1]], person[1]) for person in people) for row in rows]


@pytest.mark.thorough
def test_distance_is_the_mean_over_what_cells_hold() -> None:
    """Against many draws, and against plain points where cells hold one value each."""
    random = np.random.default_rng(2)
    queries, centres = random.normal(size=(30, 3)), random.normal(size=(40, 3))
    variances = random.uniform(0, 1, (40, 3)) * (random.random((40, 1)) < 0.7)
    results = measure_queries(queries, centres, 4, variances=variances)
    drawn = centres + np.sqrt(variances) * random.normal(size=(20_000, 40, 3))
    squares = np.array([np.square(drawn - query).mean(axis=(0, 2)) for query in queries])
    assert np.allclose(results.distance, np.sqrt(squares.min(axis=1)), rtol=0.02)
    ordered = np.sqrt(np.sort(squares, axis=1))
    assert np.allclose(results.ambiguity, ordered[:, 0] / ordered[:, 3], rtol=0.03)
    nearest = np.argsort(np.square(queries[:, None] - centres).mean(axis=2) + variances.mean(axis=1), axis=1)[:, :4]
    spread = centres[nearest].var(axis=1, ddof=1) + variances[nearest].mean(axis=1)
    assert np.allclose(results.column_uncertainty, spread)
    plain = measure_queries(queries, centres, 4)
    points = measure_queries(queries, centres, 4, variances=np.zeros_like(centres))
    for name in ("distance", "ambiguity", "uncertainty"):
        assert np.allclose(getattr(plain, name), getattr(points, name))


def test_values_hold_themselves() -> None:
    values = np.array([3.0, 1.0, 3.0, MISSING])
    cells = make_value_column(values)
    assert np.array_equal(cells.draw(np.random.default_rng(0)), values)
    assert cells.holds(cells.codes, values).tolist() == [[a == b for a in values] for b in values]

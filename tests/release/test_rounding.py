"""Controlled rounding of counts: sums, bounds, and what an attacker who knows the code learns of the true counts."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from duckanon._methods.tables import rounding
from duckanon._methods.tables.rounding import NEAR, round_cells
from tests.profiles import cheap
from tests.release.tabulated import count_table, relation_matrix

KEY = "a key of the tests, {}"

Counts = dict[tuple[str, ...], int]


@st.composite
def tables(draw: st.DrawFn) -> Counts:
    """Draw the inner cells of a table of one to four columns."""
    sizes = draw(st.sampled_from([(5,), (2, 3), (4, 4), (2, 3, 3), (2, 2, 3, 2)]))
    inner = itertools.product(*("abcde"[:size] for size in sizes))
    return {cell: draw(st.sampled_from([0, 0, 1, 2, 4, 7, 9, 15, 40])) for cell in inner}


@pytest.mark.thorough
@cheap
@given(tables(), st.sampled_from([3, 5, 10]), st.integers(0, 10**6), st.booleans())
def test_margins_are_sums_and_no_number_deviates_by_more_than_is_told(
    counts: Counts, k: int, number: int, in_turn: bool
) -> None:
    """By linear programs, and cell after cell as large tables are rounded."""
    names = ["one", "two", "three", "four"][: len(next(iter(counts)))]
    tree = {value: ("x" if value < "c" else "y",) for value in "abcde"}
    cells = count_table({cell: count or 1 for cell, count in counts.items()}, names, {"one": [tree]})
    with pytest.MonkeyPatch.context() as patch:
        for name in ("MOST_PROGRAMMED", "MOST_IN_NETWORK") if in_turn else ():
            patch.setattr(rounding, name, -1)
        result = round_cells(cells, k, KEY.format(number))
    assert (result.people % k == 0).all()
    assert (relation_matrix(cells) @ result.people == 0).all()
    deviation = np.abs(result.people - cells.sums.people)
    assert (deviation <= result.deviation).all()
    assert (deviation[cells.is_inner] < k).all()
    assert (result.people[cells.sums.people == 0] == 0).all()
    assert (deviation < 3 * k).all()


@pytest.mark.thorough
@pytest.mark.parametrize("shape", [(2, 2), (2, 2, 2)])
def test_every_count_within_the_base_is_possible(shape: tuple[int, ...]) -> None:
    """Whatever is published, each cell may have any count that differs by less than k: 1 to k - 1 is not told from 0,
    nor from k, although margins are published and the code is known."""
    k, random = 4, np.random.default_rng(3)
    inner = list(itertools.product(*("ab"[:size] for size in shape)))
    names = ["one", "two", "three"][: len(shape)]
    counts = dict(zip(inner, random.choice([1, 2, 3, 5, 6, 9], len(inner)).tolist(), strict=True))
    cells = count_table(counts, names)
    published = round_cells(cells, k, KEY.format("published"))
    shown = dict(zip(inner, published.people[cells.is_inner].tolist(), strict=True))
    for cell, change in itertools.product(inner[:3], range(-k + 1, k)):
        other = {**shown, cell: shown[cell] + change}
        if other[cell] < 0:
            continue
        possible = count_table(other, names, with_empty=True)
        assert any(
            (round_cells(possible, k, KEY.format(number)).people[possible.is_inner] == list(shown.values())).all()
            for number in range(100)
        )


@pytest.mark.thorough
def test_repeated_releases_do_not_average_out() -> None:
    """The same key rounds the same table alike; other keys would give the counts away, as they have no bias."""
    counts = {("a", "x"): 3, ("a", "y"): 8, ("b", "x"): 12, ("b", "y"): 6}
    cells, k = count_table(counts, ["one", "two"]), 5
    again = {tuple(round_cells(cells, k, KEY.format(0)).people) for _ in range(5)}
    assert len(again) == 1
    swapped = count_table({cell[::-1]: count for cell, count in counts.items()}, ["TWO", "one"])
    inner = round_cells(swapped, k, KEY.format(0)).people[swapped.is_inner].reshape(2, 2)
    assert (inner.T.ravel() == round_cells(cells, k, KEY.format(0)).people[cells.is_inner]).all()
    drawn = [round_cells(cells, k, KEY.format(number)).people for number in range(150)]
    assert np.abs(np.mean(drawn, axis=0) - cells.sums.people)[cells.is_inner].max() < 1.2


@pytest.mark.thorough
def test_a_cell_that_did_not_change_keeps_its_number() -> None:
    """An attacker who sees two roundings of one count knows it better; a former release prevents that."""
    random, k = np.random.default_rng(0), 5
    inner = list(itertools.product("abcdefgh", "uvwxyz"))
    before = dict(zip(inner, random.integers(1, 20, len(inner)).tolist(), strict=True))
    after = {cell: count + int(random.random() < 0.3) * int(random.integers(1, 9)) for cell, count in before.items()}
    cells = [count_table(counts, ["one", "two"]) for counts in (before, after)]
    same = np.array([before[cell] == after[cell] for cell in inner])
    differ = {False: 0, True: 0}
    for number in range(10):
        first = round_cells(cells[0], k, KEY.format(number)).people
        for knows in differ:
            second = round_cells(cells[1], k, KEY.format(number), first.astype(float) if knows else None).people
            differ[knows] += int((first != second)[cells[0].is_inner][same].sum())
    assert differ[True] == 0
    assert differ[False] > 0


def test_some_cells_follow_their_secret_number_alone() -> None:
    """Whatever margins and all other cells are, both ways have a tenth of their probability, so none is excluded."""
    random = np.random.default_rng(1)
    number, share = random.random(40_000), random.choice([0.1, 0.5, 0.9], 40_000)
    cost = rounding._price_rounding(number, share, None)
    for item in (0.1, 0.5, 0.9):
        of_share = share == item
        assert (cost[of_share] == -rounding.FIXED).mean() == pytest.approx(item * (1 - NEAR), abs=0.01)
        assert (cost[of_share] == rounding.FIXED).mean() == pytest.approx((1 - item) * (1 - NEAR), abs=0.01)
        assert (cost[of_share] < 0).mean() == pytest.approx(item, abs=0.02)


def test_fixed_cells_are_rounded_as_they_must_be() -> None:
    """By the program and cell after cell, even where a margin deviates more because of it."""
    matrix = sparse.csr_matrix(np.ones((1, 3)))
    cost = np.array([-rounding.FIXED, -rounding.FIXED, 0.5])
    share = np.full(3, 0.2)
    assert rounding._solve_program(matrix, np.array([0.6]), cost).tolist() == [1, 1, 0]
    assert rounding._round_in_turn(matrix, share, cost).tolist() == [1, 1, 0]

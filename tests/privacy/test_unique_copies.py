"""Repeats of unique records that chance explains: drawn one by one they are distributed as Poisson counts of strata."""

from __future__ import annotations

import numpy as np
import pytest

from duckanon._core.common.arrays import Floats
from duckanon._core.privacy import copies, rarity

DRAWS = 40_000


@pytest.mark.parametrize(("total", "trials"), [(1.5, 1), (0.7, 4), (30.0, 1)])
def test_repeats_drawn_one_by_one_are_poisson_counts(
    monkeypatch: pytest.MonkeyPatch, total: float, trials: int
) -> None:
    """In the last case most records of the likeliest stratum are repeated several times, and count once."""
    random = np.random.default_rng(20)
    people = np.array([40, 39, 39, 3])
    per_person = np.array([0.001, 0.004, 0.01, 0.1])
    weights = np.array([5.0, 2.0, 1.0, 0.3])
    totals = np.full(DRAWS, total)

    def draw_rates(most: float) -> Floats:
        monkeypatch.setattr(copies, "_FEW", most)
        return copies._draw_weighted_counts(totals, trials, people, per_person, weights, random)

    rates = trials * people * -np.expm1(-total * per_person)
    mean, variance = weights @ rates, weights**2 @ rates
    for counts in (draw_rates(np.inf), draw_rates(0.0)):
        assert counts.mean() == pytest.approx(mean, abs=4.5 * np.sqrt(variance / DRAWS))
        assert counts.var() == pytest.approx(variance, rel=0.1)


def test_near_misses_are_fewer_where_columns_depend_on_each_other() -> None:
    """Each column lowers the others' odds: the fewer pairs differ in two columns, the fewer are expected in one."""
    odds = np.array([4.0, 9.0, 1.0])
    expected = [rarity._estimate_near_per_equal(odds, 1000.0, two_off) for two_off in (1e2, 1e3, 3e3, 1e4, 1e9)]
    assert expected == sorted(expected)
    assert expected[0] == 1.0
    assert expected[-1] == pytest.approx(odds.sum() / 1.25)  # independent, but for the margin

"""Repeats of unique records that chance explains: drawn one by one they are distributed as Poisson counts of strata."""

from __future__ import annotations

import numpy as np
import pytest

from duckanon._core.common.arrays import Floats
from duckanon._core.privacy import unique_copies

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

    def drawn(most: float) -> Floats:
        monkeypatch.setattr(unique_copies, "_FEW", most)
        return unique_copies._weighted_counts(totals, trials, people, per_person, weights, random)

    rates = trials * people * -np.expm1(-total * per_person)
    mean, variance = weights @ rates, weights**2 @ rates
    for counts in (drawn(np.inf), drawn(0.0)):
        assert counts.mean() == pytest.approx(mean, abs=4.5 * np.sqrt(variance / DRAWS))
        assert counts.var() == pytest.approx(variance, rel=0.1)

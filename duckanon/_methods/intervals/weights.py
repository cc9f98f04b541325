"""The choice of weights with which boxes count in a statistic.

The papers' objective and the one that counts the shift are both solved, and nothing is applied unasked.

References:
    Fuzzy Boxes, Section III; REFERENCES.md, Boxes, points 5, 8 and 10.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from duckanon._core.common import progress
from duckanon._core.common.arrays import Floats
from duckanon._core.common.imports import imported
from duckanon._methods.intervals.choices import Choice, Comparison, Pricing, checked_contributions
from duckanon._methods.intervals.dismissal import dismissal
from duckanon._methods.intervals.influence import influence

_STEPS = 100  # of the search for the multiplier of the shift, which needs about ten
_ROUNDS = 60  # of convex steps from one start; most need about ten
_SHORTEST = 1e-6  # share of a step that is not halved any more
_SETTLED = 1e-9  # share of the total that a step must gain to be followed by another


def optimal_weights(d: ArrayLike, multiplicity: ArrayLike, A: float) -> tuple[float, Floats, float]:  # noqa: N803
    """Find the weights, by the papers' objective: sum w d + A sqrt(sum w^2) over the records, sum w = 1, w >= 0.

    Exact by one sort: sum m (lambda - d)^2 over d < lambda is A^2, and grows with lambda (REFERENCES.md, Boxes, point
    8). Return lambda, the weight of each record of a box, proportional to lambda - d and 0 from there on, and the
    objective, which equals lambda.

    Examples:
        >>> limit, weights, _ = optimal_weights([0.1, 0.3], [10, 5], 0.5)
        >>> weights.round(3).tolist()
        [0.1, 0.0]
    """
    values, counts = checked_contributions(d, multiplicity, A)
    least = float(values.min())
    order = np.argsort(values, kind="stable")
    excess, records = values[order] - least, counts[order]
    size, first, second = np.cumsum(records), np.cumsum(records * excess), np.cumsum(records * excess * excess)
    reached = size * excess * excess - 2 * excess * first + second
    below = np.flatnonzero(reached < A * A)
    # With A = 0 only the least d count, all alike.
    last = int(below[-1]) if below.size else int(np.searchsorted(excess, 0.0, side="right")) - 1
    mean = first[last] / size[last]
    variance = max(second[last] / size[last] - mean**2, 0.0)
    limit = float(mean + np.sqrt(max(A * A / size[last] - variance, 0.0)))
    raw = np.maximum(limit - (values - least), 0.0)
    if not raw.any():
        raw = (values == least).astype(np.float64)
    weights = raw / np.sum(counts * raw)
    return limit + least, weights, float(np.sum(counts * weights * values) + A * np.sqrt(np.sum(counts * weights**2)))


def box_weights(statistic: str, lo: ArrayLike, hi: ArrayLike, multiplicity: ArrayLike) -> Comparison:
    """Choose the weights of boxes in a statistic, without and with the shift in the objective.

    The total is convex but for the shift |C(w) - C|, as C is not linear in the weights.  So C is replaced by its
    tangent at the weights at hand; the best weights for that are the papers' for d + mu psi, with the mu of [-1, 1] at
    which the shift vanishes, or an end.  Towards them the weights move as long as the true total falls.  It begins at
    equal weights, the papers' weights, and both choices of `dismissal.dismissal`, and the best that is met is the
    corrected choice: never above any of those.

    Examples:
        >>> box_weights("mean", [0, 1, 2, 0], [1, 2, 3, 90], [9, 9, 9, 9]).paper.weight.round(3).tolist()
        [0.037, 0.037, 0.037, 0.0]
    """
    pricing = Pricing(statistic, lo, hi, multiplicity)
    _, d, _, deviation = pricing.contributions
    limit, weight, _ = optimal_weights(d, pricing.counts, deviation)
    paper = pricing.choice(weight, limit)
    everything = pricing.choice(np.full(len(d), 1.0 / float(pricing.counts.sum())), np.inf)
    crisp = dismissal(statistic, lo, hi, multiplicity)
    starts = [everything, paper, crisp.corrected, crisp.paper]
    corrected = min((_descended(pricing, start) for start in starts), key=lambda choice: choice.total)
    return Comparison(everything, pricing.choice(weight, limit, shifts=False), corrected)


def _descended(pricing: Pricing, start: Choice) -> Choice:
    """Lower the total of weights by convex steps until that gains nothing."""
    best = start
    for _ in range(_ROUNDS):
        progress.check()
        target = _best_for_tangent(pricing, best)
        if target is None:
            break
        share, moved = 1.0, None
        while share > _SHORTEST and moved is None:
            weight = best.weight + share * (target.weight - best.weight)
            tried = pricing.choice(weight, target.threshold, multiplier=target.multiplier)
            moved = tried if tried.total < best.total else None
            share /= 2
        if moved is None:
            break
        gained, best = best.total - moved.total, moved
        if gained <= _SETTLED * best.total:
            break
    return best


class _Target(NamedTuple):
    """The best weights where the statistic is replaced by its tangent, and the limit and multiplier they come from."""

    weight: Floats
    threshold: float
    multiplier: float


def _best_for_tangent(pricing: Pricing, at: Choice) -> _Target | None:
    """Find the best weights for the statistic's tangent at some; None where it has none."""
    estimate, d, _, deviation = pricing.contributions
    counts = pricing.counts
    effect = influence(pricing.statistic, pricing.points.T, counts * at.weight)
    if not (np.isfinite(effect.estimate) and np.isfinite(effect.psi).all()):
        return None
    psi, offset = effect.psi, effect.estimate - estimate

    def weights(mu: float) -> _Target:
        limit, weight, _ = optimal_weights(d + mu * psi, counts, deviation)
        return _Target(weight, limit, mu)

    def shift(mu: float) -> float:
        return offset + float(np.sum(counts * weights(mu).weight * psi))

    # The shift falls with mu.  Where it does not vanish within [-1, 1], an end is best.
    if shift(-1.0) <= 0:
        return weights(-1.0)
    if shift(1.0) >= 0:
        return weights(1.0)
    return weights(imported("duckanon._methods.intervals.roots:root_of")(shift, _STEPS))

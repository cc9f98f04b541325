"""With which weights to count boxes in a statistic.

The papers' objective and the one that counts the shift are both solved, and nothing is applied unasked.

References
----------
Fuzzy Boxes, Section III; REFERENCES.md, Boxes, points 5, 8 and 10.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from duckanon.common.arrays import Floats, Ints
from duckanon.intervals.choices import Choice, Comparison, Contributions, Pricing, checked_contributions

_STEPS = 100  # of the search for the multiplier of the shift, which needs about ten


def optimal_weights(d: ArrayLike, multiplicity: ArrayLike, A: float) -> tuple[float, Floats, float]:  # noqa: N803
    """Find the weights, by the papers' objective: sum w d + A sqrt(sum w^2) over the records, sum w = 1, w >= 0.

    Parameters
    ----------
    d, multiplicity, A
        As for `dismissal.crisp_threshold`.

    Returns
    -------
    threshold : float
        Lambda: the weight is proportional to lambda - d, and 0 from there on.
    weights : float64, one per box
        Weight of each record of the box.
    objective : float
        The smallest value; it equals lambda.

    Raises
    ------
    ValueError
        If an argument is not as described.

    Notes
    -----
    Exact by one sort: sum m (lambda - d)^2 over d < lambda is A^2, and grows with lambda (REFERENCES.md, Boxes, point
    8).

    Examples
    --------
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

    Parameters
    ----------
    statistic, lo, hi, multiplicity
        As for `dismissal.dismissal`.

    Returns
    -------
    Comparison
        Both choices, and equal weights.

    Raises
    ------
    ValueError
        If an argument is not as described, or the statistic is undefined.

    Notes
    -----
    With the shift |sum w psi| (exact for the mean, linear in the weights for the others) the objective is convex, and
    equals the largest over -1 <= mu <= 1 of the papers' smallest objective for d + mu psi, a concave function of mu
    whose slope is the shift.  Its root is mu (Brent's method).  What is shown, and compared with equal
    weights and the papers' weights, is the statistic's real shift; the best of the three is the corrected choice.

    Examples
    --------
    >>> box_weights("mean", [0, 1, 2, 0], [1, 2, 3, 90], [9, 9, 9, 9]).paper.weight.round(3).tolist()
    [0.037, 0.037, 0.037, 0.0]
    """
    pricing = Pricing(statistic, lo, hi, multiplicity)
    _, d, psi, deviation = effects = pricing.contributions

    def with_multiplier(mu: float, shifts: bool = True) -> Choice:
        limit, weight, _ = optimal_weights(d + mu * psi, pricing.counts, deviation)
        return pricing.choice(weight, limit, multiplier=mu, shifts=shifts)

    everything = pricing.choice(np.full(len(d), 1.0 / float(pricing.counts.sum())), np.inf)
    shiftless = with_multiplier(_multiplier(effects, pricing.counts))
    corrected = min((shiftless, with_multiplier(0.0), everything), key=lambda choice: choice.total)
    return Comparison(everything, with_multiplier(0.0, shifts=False), corrected)


def _multiplier(effects: Contributions, counts: Ints) -> float:
    """Return the multiplier at which the shift vanishes, or the end of [-1, 1] towards which it shrinks."""
    _, d, psi, deviation = effects

    def shift(mu: float) -> float:
        return float(np.sum(counts * optimal_weights(d + mu * psi, counts, deviation)[1] * psi))

    low, high = -1.0, 1.0
    if shift(low) <= 0:
        return low
    if shift(high) >= 0:
        return high
    return float(brentq(shift, low, high, xtol=1e-13, rtol=1e-13, maxiter=_STEPS, disp=False))

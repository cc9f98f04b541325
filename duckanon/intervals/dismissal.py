"""Which boxes to leave out of a statistic, and with which weights to count them.

Both trade the width that large boxes bring (privacy part) for a larger standard error (statistical part).  The papers
forget a third part: the boxes that are left out are not like the others, and the statistic shifts.  Both objectives are
given here, without and with the shift, and nothing is applied unasked.

References
----------
"Data Anonymization that Leads to the Most Accurate Estimates of Statistical Characteristics" (000), Section III; "...
Fuzzy-Motivated Approach" (001), Sections II and III; `ERRATA.md`, "Boxes", points 4, 5, 8 and 10.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from duckanon.common.arrays import Floats
from duckanon.intervals.influence import check_statistic, influence, sensitivities
from duckanon.intervals.prefixes import prefix_statistics
from duckanon.intervals.scaled import checked_counts

_STEPS = 100  # of the search for the multiplier of the shift; some ten are used


@dataclass(frozen=True)
class Choice:
    """Boxes to keep, or weights, and what they cost.

    Attributes
    ----------
    weight : float64, one per box
        Share of each record of the box in the statistic; the shares of all records sum to 1, and 0 means left out.
    threshold : float
        The largest d that is kept (crisp), or lambda, from which d on the weight is 0 (weights).  For weights that
        count the shift the limit is on d + multiplier * psi.
    multiplier : float
        Of psi, within [-1, 1]; 0 where the shift does not count.
    privacy, statistical, shift, total : float
        Half-width from the boxes, standard error A sqrt(sum w^2), change |C_S - C| of the statistic, and their sum.
    objective : float
        What was made smallest: `total`, or `total` less `shift` in the papers' version.
    estimate : float
        The statistic of the midpoints with these weights, C_S.
    standard_error : float
        sqrt(sum w^2 psi^2), the statistical part when weights depend on x (ERRATA, point 10).
    kept_boxes, kept_records : int
        How many count.
    """

    weight: Floats
    threshold: float
    multiplier: float
    privacy: float
    statistical: float
    shift: float
    total: float
    objective: float
    estimate: float
    standard_error: float
    kept_boxes: int
    kept_records: int


@dataclass(frozen=True)
class Comparison:
    """The statistic of all records, the papers' choice, and the one that counts the shift."""

    everything: Choice
    paper: Choice
    corrected: Choice


def crisp_threshold(d: ArrayLike, multiplicity: ArrayLike, A: float) -> tuple[float, NDArray[np.bool_], float]:  # noqa: N803
    """Find the boxes to keep, by the papers' objective: mean d of the kept records plus A / sqrt(their number).

    Parameters
    ----------
    d : array of float, one per box
        Contribution of a record of the box to the half-width.
    multiplicity : array of int
        Records per box.
    A : float
        Standard error of one record.

    Returns
    -------
    threshold : float
        The largest d that is kept.
    keep : bool, one per box
        Whether d is at most that.
    objective : float
        The smallest value.

    Raises
    ------
    ValueError
        If an argument is not as described.
    """
    values, counts = _checked(d, multiplicity, A)
    order = np.argsort(values, kind="stable")
    size = np.cumsum(counts[order])
    cost = np.cumsum((counts * values)[order]) / size + A / np.sqrt(size)
    ends = _ends(values[order])
    best = ends[np.argmin(cost[ends])]
    threshold = float(values[order][best])
    return threshold, values <= threshold, float(cost[best])


def optimal_weights(d: ArrayLike, multiplicity: ArrayLike, A: float) -> tuple[float, Floats, float]:  # noqa: N803
    """Find the weights, by the papers' objective: sum w d + A sqrt(sum w^2) over the records, sum w = 1, w >= 0.

    Parameters
    ----------
    d, multiplicity, A
        As for `crisp_threshold`.

    Returns
    -------
    threshold : float
        Lambda: the weight is proportional to lambda - d, and 0 from there on.
    weights : float64, one per box
        Weight of each record of the box.
    objective : float
        The smallest value; it equals lambda.

    Notes
    -----
    Exact by one sort: sum m (lambda - d)^2 over d < lambda is A^2, and grows with lambda (ERRATA, point 8).
    """
    values, counts = _checked(d, multiplicity, A)
    least = float(values.min())
    order = np.argsort(values, kind="stable")
    e, m = values[order] - least, counts[order]
    size, first, second = np.cumsum(m), np.cumsum(m * e), np.cumsum(m * e * e)
    reached = size * e * e - 2 * e * first + second
    below = np.flatnonzero(reached < A * A)
    # With A = 0 only the least d count, all alike.
    last = int(below[-1]) if below.size else int(np.searchsorted(e, 0.0, side="right")) - 1
    mean = first[last] / size[last]
    variance = max(second[last] / size[last] - mean**2, 0.0)
    limit = float(mean + np.sqrt(max(A * A / size[last] - variance, 0.0)))
    raw = np.maximum(limit - (values - least), 0.0)
    if not raw.any():
        raw = (values == least).astype(np.float64)
    weights = raw / np.sum(counts * raw)
    return limit + least, weights, float(np.sum(counts * weights * values) + A * np.sqrt(np.sum(counts * weights**2)))


def dismissal(statistic: str, lo: ArrayLike, hi: ArrayLike, multiplicity: ArrayLike) -> Comparison:
    """Choose which boxes to leave out of a statistic, without and with the shift in the objective.

    Parameters
    ----------
    statistic : str
        'mean', 'variance', 'standard_deviation', 'covariance', 'correlation' or 'regression'.
    lo, hi : array of float, boxes x columns
        The boxes, in the columns of the statistic, in its order (for 'regression' the target first; the coefficient is
        that of the first predictor).
    multiplicity : array of int
        Records per box.

    Returns
    -------
    Comparison
        Both choices, and everything kept.  Every threshold on d is tried: the result is exact for sets of that kind.

    Raises
    ------
    ValueError
        If an argument is not as described, or the statistic is undefined.
    """
    points, half, counts = _boxes(statistic, lo, hi, multiplicity)
    estimate, d, psi, spread = sensitivities(statistic, points, counts, half)
    order = np.argsort(d, kind="stable")
    size = np.cumsum(counts[order])
    cost = np.cumsum((counts * d)[order]) / size + spread / np.sqrt(size)
    ends = _ends(d[order])
    moved = prefix_statistics(statistic, points[order].T, counts[order].astype(np.float64))[ends]
    total = np.where(np.isfinite(moved), cost[ends] + np.abs(moved - estimate), np.inf)
    total[-1] = cost[-1]  # nothing left out, nothing shifted

    def choice(at: int, shifts: bool) -> Choice:
        threshold = float(d[order][at])
        weight = (d <= threshold) / float(size[at])
        return _choice(statistic, points, counts, weight, threshold, 0.0, (estimate, d, psi, spread), shifts)

    return Comparison(
        everything=choice(len(d) - 1, True),
        paper=choice(int(ends[np.argmin(cost[ends])]), False),
        corrected=choice(int(ends[np.argmin(total)]), True),
    )


def box_weights(statistic: str, lo: ArrayLike, hi: ArrayLike, multiplicity: ArrayLike) -> Comparison:
    """Choose the weights of boxes in a statistic, without and with the shift in the objective.

    Parameters
    ----------
    statistic, lo, hi, multiplicity
        As for `dismissal`.

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
    """
    points, half, counts = _boxes(statistic, lo, hi, multiplicity)
    facts = sensitivities(statistic, points, counts, half)
    _, d, psi, spread = facts

    def at(mu: float, shifts: bool = True) -> Choice:
        limit, weight, _ = optimal_weights(d + mu * psi, counts, spread)
        return _choice(statistic, points, counts, weight, limit, mu, facts, shifts)

    equal = np.full(len(d), 1.0 / float(counts.sum()))
    everything = _choice(statistic, points, counts, equal, np.inf, 0.0, facts, True)
    found = at(_multiplier(d, psi, counts, spread))
    plain = at(0.0)
    corrected = min((found, plain, everything), key=lambda c: c.total)
    return Comparison(everything, at(0.0, False), corrected)


def _multiplier(d: Floats, psi: Floats, counts: NDArray[np.int64], spread: float) -> float:
    """Multiplier at which the shift vanishes, or the end of [-1, 1] towards which it shrinks."""

    def shift(mu: float) -> float:
        return float(np.sum(counts * optimal_weights(d + mu * psi, counts, spread)[1] * psi))

    low, high = -1.0, 1.0
    if shift(low) <= 0:
        return low
    if shift(high) >= 0:
        return high
    return float(brentq(shift, low, high, xtol=1e-13, rtol=1e-13, maxiter=_STEPS, disp=False))


def _choice(
    statistic: str,
    points: Floats,
    counts: NDArray[np.int64],
    weight: Floats,
    threshold: float,
    multiplier: float,
    facts: tuple[float, Floats, Floats, float],
    shifts: bool,
) -> Choice:
    estimate, d, psi, spread = facts
    kept = weight > 0
    moved = (
        influence(statistic, points[kept].T, (counts * weight)[kept]).estimate
        if not kept.all() or np.ptp(weight)
        else estimate
    )
    privacy = float(np.sum(counts * weight * d))
    statistical = spread * float(np.sqrt(np.sum(counts * weight**2)))
    shift = abs(moved - estimate) if np.isfinite(moved) else np.inf
    return Choice(
        weight=weight,
        threshold=threshold,
        multiplier=multiplier,
        privacy=privacy,
        statistical=statistical,
        shift=shift,
        total=privacy + statistical + shift,
        objective=privacy + statistical + (shift if shifts else 0.0),
        estimate=moved,
        standard_error=float(np.sqrt(np.sum(counts * weight**2 * psi**2))),
        kept_boxes=int(kept.sum()),
        kept_records=int(counts[kept].sum()),
    )


def _ends(values: Floats) -> NDArray[np.int64]:
    """Last index of every run of equal values: boxes alike are kept or left out together."""
    return np.flatnonzero(np.append(values[1:] != values[:-1], True))


def _boxes(
    statistic: str, lo: ArrayLike, hi: ArrayLike, multiplicity: ArrayLike
) -> tuple[Floats, Floats, NDArray[np.int64]]:
    low, high = np.asarray(lo, dtype=np.float64), np.asarray(hi, dtype=np.float64)
    low, high = (m[:, None] if m.ndim == 1 else m for m in (low, high))
    if low.shape != high.shape or low.ndim != 2:
        raise ValueError(f"There are {low.shape} lower ends but {high.shape} upper ends.")
    check_statistic(statistic, low.shape[1])
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low <= high).all()):
        raise ValueError("The ends of the boxes must be finite, and the lower ones not above the upper ones.")
    return 0.5 * low + 0.5 * high, 0.5 * high - 0.5 * low, checked_counts(multiplicity, len(low))


def _checked(d: ArrayLike, multiplicity: ArrayLike, spread: float) -> tuple[Floats, NDArray[np.int64]]:
    values = np.asarray(d, dtype=np.float64)
    if values.ndim != 1 or values.size == 0 or not np.isfinite(values).all():
        raise ValueError("The contributions d must be a list of at least one finite number.")
    if not (np.isfinite(spread) and spread >= 0):
        raise ValueError(f"A must be finite and at least 0, not {spread}.")
    return values, checked_counts(multiplicity, values.size)

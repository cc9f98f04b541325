"""The cost of counting boxes with given weights: width, standard error and shift.

Leaving out large boxes, or giving them small weights, trades the width that they bring (privacy part) for a larger
standard error (statistical part).  The papers forget a third part: the boxes that are left out are not like the others,
and the statistic shifts.

References:
    Accurate Boxes, Section III; Fuzzy Boxes, Sections II and III; REFERENCES.md, Boxes, points 4, 5 and 10.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from duckanon._core.common.arguments import refuse_unless
from duckanon._core.common.arrays import Floats, Ints
from duckanon._core.common.rules import Number
from duckanon._methods.intervals.influence import check_statistic, influence
from duckanon._methods.intervals.scaled import checked_counts, checked_ends, matrix


@dataclass(frozen=True)
class Choice:
    """Boxes to keep, or weights, and what they cost."""

    # one per box: share of each of its records in the statistic; those of all records sum to 1, and 0 means left out
    weight: Floats
    # the largest d that is kept (crisp), or lambda, from which d on the weight is 0 (weights). For weights that count
    # the shift the limit is on d + multiplier * psi of the last step, nearly.
    threshold: float
    multiplier: float  # of psi, within [-1, 1]; 0 where the shift does not count
    # privacy, statistical, shift, total: half-width from the boxes, standard error A sqrt(sum w^2), change |C_S - C| of
    # the statistic, and their sum
    privacy: float
    statistical: float
    shift: float
    total: float
    objective: float  # what was made smallest: `total`, or `total` less `shift` in the papers' version
    estimate: float  # the statistic of the midpoints with these weights, C_S
    # sqrt(sum w^2 psi^2), the statistical part when weights depend on x (REFERENCES.md, Boxes, point 10)
    standard_error: float
    # kept_boxes, kept_records: how many count
    kept_boxes: int
    kept_records: int


@dataclass(frozen=True)
class Comparison:
    """The statistic of all records, the papers' choice, and the one that counts the shift."""

    everything: Choice
    paper: Choice
    corrected: Choice


class Contributions(NamedTuple):
    """Contributions of boxes to a statistic when all records have the same weight."""

    estimate: float  # the statistic of the midpoints
    # one per box: sum |b_i| Delta_i, the contribution of a record of the box to the half-width; in the papers n c(x)
    d: Floats
    psi: Floats  # one per box: the influence function
    deviation: float  # A = sqrt(mean(psi^2)): A / sqrt(N) is the standard error of N records that count alike


def contributions(statistic: str, points: ArrayLike, multiplicity: ArrayLike, halfwidths: ArrayLike) -> Contributions:
    """Compute what each box contributes to a statistic, to its half-width and to its standard error.

    Points and half-widths are boxes x columns, in the order of the statistic; of a regression it is the coefficient of
    the first predictor. Where the statistic is undefined for these points, it is refused.

    Examples:
        >>> contributions("mean", [1.0, 3.0], [1, 1], [0.5, 0.25]).d
        array([0.5 , 0.25])
    """
    midpoints, half = matrix(points, "points"), matrix(halfwidths, "halfwidths")
    check_statistic(statistic, midpoints.shape[1])
    if midpoints.shape != half.shape:
        raise ValueError(f"halfwidths must have the shape of the points, {midpoints.shape}; got {half.shape}.")
    if not np.isfinite(midpoints).all():
        raise ValueError("points must be finite numbers; got others.")
    if not (np.isfinite(half).all() and (half >= 0).all()):
        raise ValueError("halfwidths must be finite numbers of at least 0; got others.")
    counts = checked_counts(multiplicity, len(midpoints)).astype(np.float64)
    share = counts / counts.sum()
    effect = influence(statistic, midpoints.T, share)
    if not (np.isfinite(effect.estimate) and np.isfinite(effect.psi).all()):
        raise ValueError(
            f"the {statistic.replace('_', ' ')} must exist for the midpoints; it does not, as columns are constant or "
            "depend on each other."
        )
    d = np.sum(np.abs(effect.slopes) * half.T, axis=0)
    return Contributions(effect.estimate, d, effect.psi, float(np.sqrt(np.sum(share * effect.psi**2))))


def checked_contributions(d: ArrayLike, multiplicity: ArrayLike, deviation: float) -> tuple[Floats, Ints]:
    """Return contributions to the half-width and records per box as arrays, or say what is wrong with them."""
    values = np.asarray(d, dtype=np.float64)
    if values.ndim != 1 or values.size == 0 or not np.isfinite(values).all():
        raise ValueError("d must be a list of at least one number, each of them finite; got another.")
    refuse_unless(Number(0), "A", deviation)
    return values, checked_counts(multiplicity, values.size)


class Pricing:
    """The cost of weights for the boxes of one table in one statistic, whose columns the boxes have in its order."""

    def __init__(self, statistic: str, lo: ArrayLike, hi: ArrayLike, multiplicity: ArrayLike) -> None:
        low, high = checked_ends(lo, hi)
        self.statistic = statistic
        self.points = 0.5 * low + 0.5 * high
        self.contributions = contributions(statistic, self.points, multiplicity, 0.5 * high - 0.5 * low)
        self.counts = checked_counts(multiplicity, len(low))

    def choice(self, weight: Floats, threshold: float, *, multiplier: float = 0.0, shifts: bool = True) -> Choice:
        """Return what weights cost; threshold and multiplier say how they were found, shifts if the shift counted."""
        estimate, d, psi, deviation = self.contributions
        counts, kept = self.counts, weight > 0
        moved = estimate
        if not kept.all() or np.ptp(weight):
            moved = influence(self.statistic, self.points[kept].T, (counts * weight)[kept]).estimate
        privacy = float(np.sum(counts * weight * d))
        statistical = deviation * float(np.sqrt(np.sum(counts * weight**2)))
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

"""The choice of boxes to leave out of a statistic.

The papers' objective and the one that counts the shift are both solved, and nothing is applied unasked.

References:
    Accurate Boxes, Section III; Fuzzy Boxes, Section II; REFERENCES.md, Boxes, points 4 and 5.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from duckanon._core.common.arrays import Bools, Floats, Ints, run_starts
from duckanon._methods.intervals.choices import Choice, Comparison, Pricing, checked_contributions
from duckanon._methods.intervals.influence import statistic_value

_SMALL = 1e-9  # running sums of squares carry about half the digits of a double: what is smaller is their rounding


def crisp_threshold(d: ArrayLike, multiplicity: ArrayLike, A: float) -> tuple[float, Bools, float]:  # noqa: N803
    """Find the boxes to keep, by the papers' objective: mean d of the kept records plus A / sqrt(their number).

    Of a record of each box d is its contribution to the half-width; A is the standard error of one record. Return the
    largest d that is kept, whether each box is, and the objective.

    Examples:
        >>> threshold, keep, _ = crisp_threshold([0.1, 0.2, 0.4, 1.0], [1, 1, 1, 1], 0.5)
        >>> threshold, keep.tolist()
        (0.2, [True, True, False, False])
    """
    values, counts = checked_contributions(d, multiplicity, A)
    order = np.argsort(values, kind="stable")
    ends, costs = _prefix_costs(values[order], counts[order], A)
    best = int(np.argmin(costs))
    threshold = float(values[order][ends[best]])
    return threshold, values <= threshold, float(costs[best])


def dismissal(statistic: str, lo: ArrayLike, hi: ArrayLike, multiplicity: ArrayLike) -> Comparison:
    """Choose which boxes to leave out of a statistic, without and with the shift in the objective.

    Every threshold on d is tried: the result is exact for sets of that kind. The boxes have the columns of the
    statistic in its order (for 'regression' the target first; the coefficient is that of the first predictor).

    Examples:
        >>> dismissal("mean", [0, 1, 2, 0], [1, 2, 3, 90], [9, 9, 9, 9]).paper.kept_boxes
        3
    """
    pricing = Pricing(statistic, lo, hi, multiplicity)
    estimate, d, _, deviation = pricing.contributions
    order = np.argsort(d, kind="stable")
    counts = pricing.counts[order]
    ends, costs = _prefix_costs(d[order], counts, deviation)
    moved = _prefix_statistics(statistic, pricing.points[order].T, counts.astype(np.float64))[ends]
    totals = np.where(np.isfinite(moved), costs + np.abs(moved - estimate), np.inf)
    totals[-1] = costs[-1]  # nothing left out, nothing shifted

    def choice(threshold: float, shifts: bool) -> Choice:
        keep = d <= threshold
        return pricing.choice(keep / float(pricing.counts[keep].sum()), threshold, shifts=shifts)

    return Comparison(
        everything=choice(float(d.max()), True),
        paper=choice(crisp_threshold(d, pricing.counts, deviation)[0], False),
        corrected=choice(float(d[order][ends[np.argmin(totals)]]), True),
    )


def _prefix_costs(sorted_d: Floats, counts: Ints, deviation: float) -> tuple[Ints, Floats]:
    """Return the papers' objective of every prefix that ends with a run of equal d, and where those end.

    Boxes that are alike are kept or left out together.
    """
    ends = np.append(run_starts(sorted_d)[1:], len(sorted_d)) - 1
    size = np.cumsum(counts)
    costs = np.cumsum(counts * sorted_d) / size + deviation / np.sqrt(size)
    return ends, costs[ends]


def _prefix_statistics(statistic: str, points: Floats, counts: Floats) -> Floats:
    """Compute a statistic of the first 1, 2, ... points (columns x points) by running sums; NaN if undefined."""
    origin = points @ counts / counts.sum()
    gaps = (points - origin[:, None]).T  # about the common mean, so that little cancels
    size = np.cumsum(counts)[:, None]
    mean = np.cumsum(counts[:, None] * gaps, axis=0) / size
    products = counts[:, None, None] * gaps[:, :, None] * gaps[:, None, :]
    covariance = np.cumsum(products, axis=0) / size[:, :, None] - mean[:, :, None] * mean[:, None, :]
    variances = np.einsum("pii->pi", covariance)  # a view: what is set here is set in the matrices
    variances[variances <= _SMALL**2 * variances[-1]] = 0.0
    return statistic_value(statistic, mean + origin, covariance, dependent=_SMALL)

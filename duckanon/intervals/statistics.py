"""Statistics of a table of boxes that tell the truth: an estimate, and a range that no table within the boxes leaves.

References
----------
"Data Anonymization that Leads to the Most Accurate Estimates of Statistical Characteristics" (000) and "...
Fuzzy-Motivated Approach" (001), Sections I to III; `ERRATA.md`, "Exact ranges over boxes".
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from duckanon.intervals.correlation import correlation_upper
from duckanon.intervals.covariance import covariance_forms, largest_covariance
from duckanon.intervals.influence import influence
from duckanon.intervals.moments import Range, mean_range, variance_range
from duckanon.intervals.scaled import EPS, Boxes, outward, scaled_boxes

#: What can be asked for; covariance and correlation come for all pairs of columns.
INTERVAL_STATISTICS = ("mean", "variance", "standard_deviation", "covariance", "correlation")
RELATIVE = 1e-4


@dataclass(frozen=True)
class IntervalStatistic:
    """One statistic over boxes.

    Attributes
    ----------
    statistic : str
        Its name.
    columns : tuple of int
        Indices of its columns.
    estimate : float
        Its value with every record at the midpoint of its box; NaN where it is undefined.
    lower, upper : float
        The statistic of every table within the boxes lies between, rounding included.
    lower_looseness, upper_looseness : float
        Some table within the boxes comes this near to the end, proven.
    linear_halfwidth : float
        Half the width of the range by the derivatives at the midpoints (000, Section II).  Right width, wrong place.
    standard_error : float
        sqrt(sum of squared shares times psi^2) over the records; A / sqrt(N) for equal weights (ERRATA, point 10).
    records : int
        Number of records (of weight above 0).
    """

    statistic: str
    columns: tuple[int, ...]
    estimate: float
    lower: float
    upper: float
    lower_looseness: float
    upper_looseness: float
    linear_halfwidth: float
    standard_error: float
    records: int


def interval_statistics(
    lo: ArrayLike,
    hi: ArrayLike,
    multiplicity: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    statistics: tuple[str, ...] = INTERVAL_STATISTICS,
    unbiased: bool = False,
    relative_accuracy: float = RELATIVE,
) -> list[IntervalStatistic]:
    """Compute statistics of all columns, and of all pairs, with guaranteed ranges.

    Parameters
    ----------
    lo, hi : array of float, boxes x columns
        Ends of the distinct boxes.
    multiplicity : array of int
        Records per box.
    weights : array of float, at least 0 each, optional
        Weight of each record of the box; equal weights when it is None.
    statistics : tuple of str
        Which of `INTERVAL_STATISTICS`.
    unbiased : bool
        Whether variance, standard deviation and covariance are multiplied by N / (N - 1) (its root), for weights by
        1 / (1 - sum of squared shares).
    relative_accuracy : float
        How near covariance and correlation ranges are brought to the exact ones, relative to the larger of the value
        and, for covariances, half the width of the range.

    Returns
    -------
    list of IntervalStatistic
        In the order of `statistics`, columns ascending.

    Raises
    ------
    ValueError
        If an argument is not as described.

    Notes
    -----
    Means are exact.  The variance's lower end is exact; its upper end too, but for ties, whose effect is the looseness.
    Covariance and correlation are found by bounding (see `interval_covariance` and `interval_correlation`).  A
    correlation may be undefined for some tables within the boxes; the range holds for all tables where it is defined,
    and is [-1, 1] where it is defined for none.
    """
    unknown = [s for s in statistics if s not in INTERVAL_STATISTICS]
    if unknown:
        raise ValueError(f"Unknown statistic '{unknown[0]}': use one of {', '.join(INTERVAL_STATISTICS)}.")
    if not 1e-12 <= relative_accuracy <= 0.5:
        raise ValueError(f"The relative accuracy must be between 1e-12 and 0.5, not {relative_accuracy}.")
    boxes = scaled_boxes(lo, hi, multiplicity, weights)
    factor = 1.0
    if unbiased:
        if boxes.total < 2:
            raise ValueError("Unbiased statistics need at least two records of weight above 0.")
        factor = boxes.total / (boxes.total - 1) if weights is None else 1 / (1 - boxes.squares)
    columns = range(len(boxes.lo))
    variances = [variance_range(boxes, i) for i in columns] if set(statistics) - {"mean", "covariance"} else []
    result = []
    for statistic in statistics:
        sets: list[tuple[int, ...]] = [(i,) for i in columns]
        for used in combinations(columns, 2) if statistic in ("covariance", "correlation") else sets:
            if statistic == "mean":
                found = mean_range(boxes, used[0])
            elif statistic == "variance":
                found = variances[used[0]]
            elif statistic == "standard_deviation":
                found = _root(variances[used[0]])
            elif statistic == "covariance":
                found = covariance_range(boxes, used[0], used[-1], relative_accuracy)
            else:
                found = correlation_range(boxes, used[0], used[-1], variances, relative_accuracy)
            result.append(_row(boxes, statistic, used, found, factor))
    return result


def covariance_range(boxes: Boxes, first: int, second: int, relative: float) -> Range:
    """Range of the covariance of two columns, in scaled units."""
    if not (boxes.lo[[first, second]].any(axis=1) | boxes.hi[[first, second]].any(axis=1)).all():
        return Range(0.0, 0.0, 0.0, 0.0)  # a constant column
    middle = boxes.middle
    estimate = float(np.sum(boxes.share * (middle[first] - np.sum(boxes.share * middle[first])) * middle[second]))
    half = boxes.half
    around = float(np.sum(boxes.share * (half[first] * np.abs(middle[second]) + half[second] * np.abs(middle[first]))))
    # Half the width of the range, about: what counts as not small when the covariance itself is near 0.
    scale = min(abs(estimate) + around, 1.0)
    top = largest_covariance(covariance_forms(boxes, first, second), relative, 0.1 * scale)
    bottom = largest_covariance(covariance_forms(boxes, first, second, -1.0), relative, 0.1 * scale)
    return Range(-bottom.upper, top.upper, bottom.upper - bottom.reached, top.upper - top.reached)


def correlation_range(boxes: Boxes, first: int, second: int, variances: list[Range], relative: float) -> Range:
    """Range of the correlation of two columns."""
    if min(variances[first].upper, variances[second].upper) == 0:
        return Range(-1.0, 1.0, np.nan, np.nan)
    top, top_reached = correlation_upper(boxes, first, second, variances, 1.0, relative)
    bottom, bottom_reached = correlation_upper(boxes, first, second, variances, -1.0, relative)
    rounding = 1e-9  # of the correlations that were reached
    return Range(-bottom, top, bottom - bottom_reached + rounding, top - top_reached + rounding)


def _root(variance: Range) -> Range:
    """Range of the standard deviation."""
    lower, upper = float(np.sqrt(variance.lower)) * (1 - 2 * EPS), float(np.sqrt(variance.upper)) * (1 + 2 * EPS)
    reached_low = float(np.sqrt(variance.lower + variance.lower_looseness)) * (1 + 4 * EPS)
    reached_high = float(np.sqrt(max(variance.upper - variance.upper_looseness, 0.0))) * (1 - 4 * EPS)
    return Range(lower, upper, reached_low - lower, upper - reached_high)


def _row(boxes: Boxes, statistic: str, used: tuple[int, ...], found: Range, factor: float) -> IntervalStatistic:
    """Bring a range back to the units of the data, with the estimate and its errors."""
    points, half = boxes.middle[list(used)], boxes.half[list(used)]
    midpoint = influence(statistic, points, boxes.share)
    linear = float(np.sum(boxes.share * np.sum(np.abs(midpoint.slopes) * half, axis=0))) if half.any() else 0.0
    error = float(np.sqrt(np.sum(boxes.share**2 / boxes.records * midpoint.psi**2)))
    exponent, grow, offset = 0, 1.0, 0.0
    if statistic != "correlation":
        exponent = boxes.scale(*used) * (2 if statistic == "variance" else 1)
        if statistic == "mean":
            offset = float(boxes.center[used[0]])
        else:
            grow = float(np.sqrt(factor)) if statistic == "standard_deviation" else factor
    lower, upper = found.lower * grow, found.upper * grow
    if grow != 1.0:
        lower, upper = lower - 4 * EPS * abs(lower), upper + 4 * EPS * abs(upper)

    def unit(value: float) -> float:
        with np.errstate(over="ignore", under="ignore"):
            return float(np.ldexp(value * grow, exponent))

    low, high = outward(lower, exponent, False, offset), outward(upper, exponent, True, offset)
    if statistic in ("variance", "standard_deviation"):
        low = max(low, 0.0)  # rounding outward may go below
    rounding = 4 * EPS * max(abs(low), abs(high)) if np.isfinite(low) and np.isfinite(high) else 0.0
    estimate = unit(midpoint.estimate) + offset
    return IntervalStatistic(
        statistic,
        used,
        # Rounding may put the estimate of an exact column outside its own range by an ulp.
        min(max(estimate, low), high) if np.isfinite(estimate) else estimate,
        low,
        high,
        unit(found.lower_looseness) + rounding,
        unit(found.upper_looseness) + rounding,
        unit(linear),
        unit(error),
        boxes.total,
    )

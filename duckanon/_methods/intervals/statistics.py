"""Statistics of a table of boxes that tell the truth: an estimate, and a range that no table within the boxes leaves.

Means and variances have exact ranges (`moments`); those of covariances and correlations are found by bounding
(`correlation`), to a ten-thousandth of the larger of the value and the width of the range. The estimate has every
record at the midpoint of its box. Each answer says how near some table comes to either end, its linear half-width and
its standard error. No scipy is imported here, which takes a second.

References:
    Accurate Boxes and Fuzzy Boxes, Sections I to III; REFERENCES.md, Boxes, "Exact ranges over boxes".
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from duckanon._core.common.arguments import check_arguments, refuse_unless
from duckanon._core.common.declare import report_rows
from duckanon._core.common.rules import Flag, Number, OneOf
from duckanon._methods.intervals.boxed_columns import ReportRows, answer_by_group, read_boxes
from duckanon._methods.intervals.correlation import (
    list_faces,
    make_covariance_forms,
    maximize_correlation,
    maximize_covariance,
)
from duckanon._methods.intervals.declared import INTERVAL_STATISTICS
from duckanon._methods.intervals.moments import (
    STATISTICS,
    Range,
    compute_influence,
    find_mean_range,
    find_variance_range,
)
from duckanon._methods.intervals.scaled import EPS, ScaledBoxes, scale_boxes, unscale_outward

MAIN_STATISTICS = tuple(name for name in STATISTICS if name != "regression")
RELATIVE = 1e-4  # of the ends of ranges to the exact ones: a tenth of the standard error of a million records
ACCURACY = Number(1e-12, 0.5)  # beyond the rounding of sums nothing is gained, and half the width says nothing


@dataclass(frozen=True, kw_only=True)
class Enclosure:
    """A number computed from boxes: an estimate, the range that it is enclosed by, and its errors."""

    estimate: float  # its value with every record at the midpoint of its box; NaN where it is undefined
    # lower, upper: the statistic of every table within the boxes lies between, rounding included
    lower: float
    upper: float
    # lower_looseness, upper_looseness: some table within the boxes comes this near to the end, proven
    lower_looseness: float
    upper_looseness: float
    # half the range by the derivatives at the midpoints (Accurate Boxes, Section II): right width, wrong place
    linear_halfwidth: float
    # sqrt(sum of squared shares times psi^2); A / sqrt(N) for equal weights (REFERENCES.md, Boxes, point 10)
    standard_error: float
    records: int  # number of records (of weight above 0)


@dataclass(frozen=True, kw_only=True)
class IntervalStatistic(Enclosure):
    """One statistic over boxes."""

    statistic: str  # its name
    columns: tuple[int, ...]  # indices of its columns


@check_arguments(unbiased=Flag(), relative_accuracy=ACCURACY)
def enclose_statistics(
    lo: ArrayLike,
    hi: ArrayLike,
    multiplicity: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    statistics: tuple[str, ...] = MAIN_STATISTICS,
    unbiased: bool = False,
    relative_accuracy: float = RELATIVE,
) -> list[IntervalStatistic]:
    """Compute statistics of all columns, and of all pairs, with guaranteed ranges.

    Means are exact.  The variance's lower end is exact; its upper end too, but for ties, whose effect is the looseness.
    Covariance and correlation are found by bounding (`correlation`).  A correlation
    may be undefined for some tables within the boxes; the range holds for all tables where it is defined, and is [-1,
    1] where it is defined for none.

    Args:
        lo, hi: Ends of the distinct boxes, boxes x columns.
        multiplicity: Records per box.
        weights: Weight of each record of the box, at least 0; equal weights when it is None.
        unbiased: Whether variance, standard deviation and covariance are multiplied by N / (N - 1) (its root), for
            weights by 1 / (1 - sum of squared shares).
        relative_accuracy: How near covariance and correlation ranges are brought to the exact ones, relative to the
            larger of the value and, for covariances, half the width of the range.

    Returns:
        In the order of `statistics`, columns ascending.

    Examples:
        Two boxes, [0, 1] of one record and [2, 4] of two:

        >>> mean = enclose_statistics([[0], [2]], [[1], [4]], [1, 2], statistics=("mean",))[0]
        >>> round(mean.lower, 3), round(mean.estimate, 3), round(mean.upper, 3)
        (1.333, 2.167, 3.0)
    """
    for statistic in statistics:
        refuse_unless(OneOf(*MAIN_STATISTICS), "statistics", statistic)
    boxes = scale_boxes(lo, hi, multiplicity, weights)
    factor = 1.0
    if unbiased:
        if boxes.total < 2:
            raise ValueError(f"unbiased must be false for fewer than two records of weight above 0; got {boxes.total}.")
        factor = boxes.total / (boxes.total - 1) if weights is None else 1 / (1 - boxes.squares)
    columns = range(len(boxes.lo))
    variances = [find_variance_range(boxes, i) for i in columns] if set(statistics) - {"mean", "covariance"} else []
    return [
        _scale_statistic(
            boxes, statistic, used, _find_range(boxes, statistic, used, variances, relative_accuracy), factor
        )
        for statistic in statistics
        for used in combinations(columns, STATISTICS[statistic] or 0)
    ]


def _find_range(
    boxes: ScaledBoxes, statistic: str, used: tuple[int, ...], variances: list[Range], relative: float
) -> Range:
    """Find the range of one statistic of one set of columns, in scaled units."""
    match statistic:
        case "mean":
            return find_mean_range(boxes, used[0])
        case "variance":
            return variances[used[0]]
        case "standard_deviation":
            # Rounded outward: the root of each end, and of the values that some table reaches near it.
            variance = variances[used[0]]
            low, high = np.sqrt([variance.lower, variance.upper]) * [1 - 2 * EPS, 1 + 2 * EPS]
            reached_low = float(np.sqrt(variance.lower + variance.lower_looseness)) * (1 + 4 * EPS)
            reached_high = float(np.sqrt(max(variance.upper - variance.upper_looseness, 0.0))) * (1 - 4 * EPS)
            return Range(float(low), float(high), reached_low - float(low), float(high) - reached_high)
        case "covariance":
            return _find_covariance_range(boxes, used[0], used[1], relative)
        case _:
            return _find_correlation_range(boxes, used[0], used[1], variances, relative)


def _find_covariance_range(boxes: ScaledBoxes, first: int, second: int, relative: float) -> Range:
    """Find the range of the covariance of two columns, in scaled units."""
    if not (boxes.lo[[first, second]].any(axis=1) | boxes.hi[[first, second]].any(axis=1)).all():
        return Range(0.0, 0.0, 0.0, 0.0)  # a constant column
    middle, half = boxes.middle, boxes.half
    estimate = float(np.sum(boxes.share * (middle[first] - np.sum(boxes.share * middle[first])) * middle[second]))
    around = float(np.sum(boxes.share * (half[first] * np.abs(middle[second]) + half[second] * np.abs(middle[first]))))
    # Half the width of the range, about: what counts as not small when the covariance itself is near 0.
    scale = min(abs(estimate) + around, 1.0)
    top = maximize_covariance(make_covariance_forms(boxes, first, second), relative, 0.1 * scale)
    bottom = maximize_covariance(make_covariance_forms(boxes, first, second, -1.0), relative, 0.1 * scale)
    return Range(-bottom.upper, top.upper, bottom.upper - bottom.reached, top.upper - top.reached)


def _find_correlation_range(
    boxes: ScaledBoxes, first: int, second: int, variances: list[Range], relative: float
) -> Range:
    """Find the range of the correlation of two columns."""
    if min(variances[first].upper, variances[second].upper) == 0:
        return Range(-1.0, 1.0, np.nan, np.nan)
    for column in (first, second):
        if faces := list_faces(boxes, column):
            # Every table of which the correlation is defined has that of a table in one of the faces.
            ranges = []
            for face in faces:
                of_face = [*variances]
                of_face[column] = find_variance_range(face, column)
                ranges.append(_find_correlation_range(face, first, second, of_face, relative))
            lower, upper = min(face.lower for face in ranges), max(face.upper for face in ranges)
            low_reached = min(face.lower + face.lower_looseness for face in ranges)
            high_reached = max(face.upper - face.upper_looseness for face in ranges)
            return Range(lower, upper, low_reached - lower, upper - high_reached)
    top, top_reached = maximize_correlation(boxes, first, second, variances, 1.0, relative)
    bottom, bottom_reached = maximize_correlation(boxes, first, second, variances, -1.0, relative)
    rounding = 1e-9  # of the correlations that were reached
    return Range(-bottom, top, bottom - bottom_reached + rounding, top - top_reached + rounding)


def _scale_statistic(
    boxes: ScaledBoxes, statistic: str, used: tuple[int, ...], ends: Range, factor: float
) -> IntervalStatistic:
    """Bring a range back to the units of the data, with the estimate and its errors."""
    points, half = boxes.middle[list(used)], boxes.half[list(used)]
    midpoint = compute_influence(statistic, points, boxes.share)
    linear = midpoint.linear_halfwidth(boxes.share, half) if half.any() else 0.0
    error = midpoint.standard_error(boxes.share, boxes.records)
    exponent, grow, offset = 0, 1.0, 0.0
    if statistic != "correlation":
        exponent = boxes.scale(*used) * (2 if statistic == "variance" else 1)
        if statistic == "mean":
            offset = float(boxes.center[used[0]])
        else:
            grow = float(np.sqrt(factor)) if statistic == "standard_deviation" else factor
    lower, upper = ends.lower * grow, ends.upper * grow
    if grow != 1.0:
        lower, upper = lower - 4 * EPS * abs(lower), upper + 4 * EPS * abs(upper)

    def unit(value: float) -> float:
        with np.errstate(over="ignore", under="ignore"):
            return float(np.ldexp(value * grow, exponent))

    low, high = unscale_outward(lower, exponent, False, offset), unscale_outward(upper, exponent, True, offset)
    if statistic in ("variance", "standard_deviation"):
        low = max(low, 0.0)  # rounding outward may go below
    rounding = 4 * EPS * max(abs(low), abs(high)) if np.isfinite(low) and np.isfinite(high) else 0.0
    estimate = unit(midpoint.estimate) + offset
    return IntervalStatistic(
        statistic=statistic,
        columns=used,
        # Rounding may put the estimate of an exact column outside its own range by an ulp.
        estimate=min(max(estimate, low), high) if np.isfinite(estimate) else estimate,
        lower=low,
        upper=high,
        lower_looseness=unit(ends.lower_looseness) + rounding,
        upper_looseness=unit(ends.upper_looseness) + rounding,
        linear_halfwidth=unit(linear),
        standard_error=unit(error),
        records=boxes.total,
    )


def interval_statistics(table: pa.Table | None, *, weights: str | None, unbiased: bool) -> pa.Table:
    """Report means, variances, standard deviations, covariances and correlations with guaranteed ranges."""

    def answer(boxes: pa.Table) -> ReportRows:
        names, lower, upper, counts, weight = read_boxes(boxes, weights)
        intervals = enclose_statistics(lower, upper, counts, weight, unbiased=unbiased)
        return [{**vars(interval), "columns": [names[index] for index in interval.columns]} for interval in intervals]

    return report_rows(answer_by_group(table, answer), INTERVAL_STATISTICS.schema)

"""Prediction distance, ambiguity and uncertainty: what an attacker can say about a record from a release.

Thesis, Section 3.1: the distance to the nearest released row, that distance as a share of the one to the k-th nearest,
and the variances among the k nearest. Cells of a coarse release count by their means and variances: one more coordinate
makes the distance to a cell that to a point. The cost is that of the nearest neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from duckanon._core.common.arguments import check_arguments
from duckanon._core.common.arrays import Ints, Matrix
from duckanon._core.common.rules import Whole
from duckanon._core.privacy.neighbours import find_nearest

_CELLS = 1 << 20  # numbers of neighbours held at once: eight megabytes


@dataclass(frozen=True)
class PredictionMeasures:
    """The measures of every query.

    Attributes:
        distance: To the nearest point.
        ambiguity: The distance to the nearest point as a share of that to the k-th nearest; 1 where both are 0.
        uncertainty, column_uncertainty: The variances among the k nearest points, of shape (queries, columns), and
            their mean.
    """

    distance: Matrix
    ambiguity: Matrix
    uncertainty: Matrix
    column_uncertainty: Matrix


@check_arguments(k=Whole(2))
def measure_queries(
    queries: npt.ArrayLike,
    points: npt.ArrayLike,
    k: int = 5,
    skip_self: bool | npt.ArrayLike = False,
    variances: Matrix | None = None,
) -> PredictionMeasures:
    """Measure what points, the means of cells where ``variances`` of these are given, tell about each query."""
    rows, centres = np.asarray(queries, np.float64), np.asarray(points, np.float64)
    compared = (rows, centres) if variances is None else (widen_rows(rows), widen_rows(centres, variances))
    distances, indices = find_nearest(*compared, k, skip_self=skip_self, is_watched=True)
    return measure_neighbours(distances, indices, centres, variances)


def widen_rows(rows: Matrix, variances: Matrix | None = None) -> Matrix:
    """Give rows one more column, so that distances to cells, of given variances, are those to points.

    The mean squared distance of a record to what a cell holds is that to the cell's mean, plus the cell's variance: the
    square of one more coordinate, in which records are 0. All columns are scaled up because distances are means over
    the columns, of which there is one more.
    """
    spread = np.zeros(len(rows)) if variances is None else np.sqrt(variances.sum(axis=1))
    return np.asarray(np.column_stack([rows, spread]) * np.sqrt(1 + 1 / rows.shape[1]))


def measure_neighbours(
    distances: Matrix, indices: Ints, points: Matrix, variances: Matrix | None = None
) -> PredictionMeasures:
    """Measure what the nearest points, as `neighbours.find_nearest` finds them, tell about each query.

    Thesis, Section 3.1. Variances are those of a sample (divided by k - 1). An ambiguity of 0/0 is 1: k equal copies
    are a tie among k, which the thesis calls an ambiguity of one. Where points are cells, the variance among k values
    drawn from them is that of their means plus the mean of their variances.
    """
    first, last = distances[:, 0], distances[:, -1]
    ambiguity = np.divide(first, last, out=np.ones(len(first)), where=last > 0)
    spread = np.empty((len(first), points.shape[1]))
    step = max(1, _CELLS // (indices.shape[1] * points.shape[1]))
    for start in range(0, len(first), step):
        neighbours = points[indices[start : start + step]]
        # Differences to the nearest of them: equal values then have a variance of exactly 0, however far from 0.
        spread[start : start + step] = (neighbours - neighbours[:, :1]).var(axis=1, ddof=1)
        if variances is not None:
            spread[start : start + step] += variances[indices[start : start + step]].mean(axis=1)
    return PredictionMeasures(first, ambiguity, spread.mean(axis=1), spread)

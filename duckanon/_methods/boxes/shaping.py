"""Sensitivities that shape boxes: how much requested statistics move when a value moves.

Each statistic is a function of means and covariances, so its derivative by a record's value is a linear function of the
record. A column's sensitivity at a record sums their absolute values over the statistics, each divided by its desired
accuracy and weighted by how often it is asked for. Boxes are narrow where the sensitivity is large. Moments suffice:
they may come from partitions of a table (`ColumnMoments.from_covariances`).

References:
    Fuzzy Boxes, Sections II and IV, equation 4; Accurate Boxes, Section II; REFERENCES.md, Boxes, points 1, 2 and 9.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from duckanon._core.common.arguments import refuse_unless
from duckanon._core.common.arrays import Floats
from duckanon._core.common.rules import Number, OneOf
from duckanon._core.numbers.parts import NumberParts
from duckanon._core.numbers.support import NumberSupport
from duckanon._methods.intervals.moments import STATISTICS, Gradient, check_statistic, differentiate

_FLOOR = 0.1  # a statistic counts as at least this share of its natural scale: no boxes keep a share of nearly 0


@dataclass(frozen=True)
class Statistic:
    """A statistic that the boxes should serve; of a regression, the coefficients without the constant."""

    kind: str  # one of STATISTICS
    columns: tuple[str, ...]  # one, or two for covariance and correlation, or the target and its predictors
    probability: float = 1.0  # how often it is asked for, relative to the others (p_C of Fuzzy Boxes, Section IV)
    accuracy: float = 0.1  # the desired one, as a share of the statistic's absolute value: 0.1 is 10 %


class Term(NamedTuple):
    """One statistic's part in the sensitivities.

    Its factor is p_C / Delta_0 of equation 4 (Fuzzy Boxes, Section IV): how often it is asked for, over its desired
    accuracy.
    """

    factor: float
    columns: tuple[int, ...]  # by their index in the data
    derivatives: Gradient  # how it moves with the records


@dataclass(frozen=True)
class Sensitivities:
    """The sensitivities a_i(x) of the columns, as functions of the record.

    Every derivative of the six statistics, times the number of records, is a linear function of the record; a_i(x) is
    the sum of their absolute values with the factors of equation 4 (Fuzzy Boxes, Section IV).
    """

    means: Floats
    terms: tuple[Term, ...]

    def at(self, columns: Sequence[Floats]) -> list[Floats | float]:
        """Return them at records, or at boxes' midpoints: an array, or one number where it is the same for all."""
        result: list[Floats | float] = [0.0] * len(self.means)
        for factor, used, derivatives in self.terms:

            def gap(position: int, used: tuple[int, ...] = used) -> Floats:
                distance: Floats = columns[used[position]] - self.means[used[position]]
                return distance

            for position, column in enumerate(used):
                result[column] = result[column] + factor * np.abs(derivatives.by_value(position, gap))
        return result


@dataclass(frozen=True)
class WholeTable:
    """Properties that all partitions of a table share: larger tables are boxed in partitions."""

    sensitivities: Sensitivities  # so that all partitions lose in the same unit
    supports: Mapping[str, NumberSupport] = field(
        default_factory=dict
    )  # of columns where k people of all partitions decide
    parts: Mapping[str, NumberParts] = field(default_factory=dict)  # of the same columns


def measure_sensitivities(
    columns: Mapping[str, Floats], statistics: Sequence[Statistic] | None = None
) -> Sensitivities:
    """Combine the derivatives of the requested statistics into one sensitivity for every column.

    The desired accuracy is a share of |C|, but |C| counts as at least a tenth of the statistic's natural scale: the
    standard deviation for a mean, the product of two for a covariance, 1 for a correlation, their ratio for a
    regression coefficient (REFERENCES.md, Boxes, point 9).  A constant column has sensitivity 0, as it has no width.
    Without statistics the means of all columns count, each to the same share of its standard deviation, so that
    neither the unit nor the origin of a column matters.

    Returns:
        a_i(x) of equation 4, so that the sum of a_i times half-width over records and columns, divided by the number of
        records, is the mean of inaccuracy over desired accuracy.

    Examples:
        A mean of 2 is wanted to within a tenth, so that a width of 0.2 counts as 1:

        >>> x = np.array([1.0, 3.0])
        >>> measure_sensitivities({"x": x}, [Statistic("mean", ("x",))]).at([x])[0].item()
        5.0
    """
    names = list(columns)
    return combine_sensitivities(ColumnMoments([columns[name] for name in names]), names, statistics)


def combine_sensitivities(
    moments: ColumnMoments, names: list[str], statistics: Sequence[Statistic] | None = None
) -> Sensitivities:
    """Combine the same from the moments alone, where the columns are not in memory."""
    if statistics is None:
        # The accuracy that is wanted of every mean is a tenth of the standard deviation.
        terms = [
            Term(1.0 / (0.1 * len(names) * deviation), (i,), moments.gradients("mean", (i,))[0])
            for i in range(len(names))
            if (deviation := moments.deviation(i))
        ]
        return Sensitivities(moments.means, tuple(terms))
    indices = [_find_columns(statistic, names) for statistic in statistics]
    total = sum(statistic.probability for statistic in statistics)
    if not total > 0:
        raise ValueError("statistics must have at least one with a probability above 0; got none.")
    terms = []
    for statistic, used in zip(statistics, indices, strict=True):
        gradients = moments.gradients(statistic.kind, used)
        for coefficient, derivatives in enumerate(gradients):
            if math.isnan(derivatives.value):
                raise ValueError(
                    f"statistics must exist for the data; the {_describe(statistic)} does not, as columns are "
                    "constant or depend on each other."
                )
            scale = moments.scale(statistic.kind, used, coefficient)
            desired = statistic.accuracy * max(abs(derivatives.value), _FLOOR * scale)
            if scale and desired > 0:
                factor = statistic.probability / (total * len(gradients) * desired)
                terms.append(Term(factor, used, derivatives))
    return Sensitivities(moments.means, tuple(terms))


class ColumnMoments:
    """Means and second moments of columns, computed when first asked for."""

    def __init__(self, data: Sequence[Floats]) -> None:
        self.data = data
        self.means = np.array([float(np.mean(values)) for values in data])
        self.covariances: dict[tuple[int, int], float] = {}

    def covariance(self, i: int, j: int) -> float:
        """Return the covariance of two columns."""
        pair = (min(i, j), max(i, j))
        if pair not in self.covariances:
            first, second = self.data[pair[0]], self.data[pair[1]]
            if pair[0] == pair[1] and first.min() == first.max():
                self.covariances[pair] = 0.0  # Exactly, where the mean of a constant column is rounded.
            else:
                products = (first - self.means[pair[0]]) * (second - self.means[pair[1]])
                self.covariances[pair] = float(np.mean(products))
        return self.covariances[pair]

    @classmethod
    def from_covariances(cls, means: Floats, covariances: Floats) -> ColumnMoments:
        """Take moments that were computed elsewhere; the covariances with the number of records as divisor."""
        moments = cls([])
        moments.means = means
        columns = range(len(means))
        moments.covariances = {(i, j): float(covariances[i, j]) for i in columns for j in columns}
        return moments

    def deviation(self, i: int) -> float:
        """Return the standard deviation of a column."""
        return math.sqrt(self.covariance(i, i))

    def gradients(self, statistic: str, used: tuple[int, ...]) -> list[Gradient]:
        """Differentiate a statistic; a regression has as many values as predictors (REFERENCES.md, Boxes, point 2)."""
        matrix = np.array([[self.covariance(i, j) for j in used] for i in used])
        coefficients = range(len(used) - 1) if statistic == "regression" else [0]
        return [differentiate(statistic, self.means[list(used)], matrix, coefficient) for coefficient in coefficients]

    def scale(self, statistic: str, used: tuple[int, ...], coefficient: int) -> float:
        """Return what counts as a value of usual size; 0 where a column is constant, so that nothing can be lost."""
        first = self.deviation(used[0])
        match statistic:
            case "mean" | "standard_deviation":
                return first
            case "variance":
                return self.covariance(used[0], used[0])
            case "covariance":
                return first * self.deviation(used[1])
            case "correlation":
                return 1.0
            case _:
                return first / self.deviation(used[1 + coefficient])


def _find_columns(statistic: Statistic, names: list[str]) -> tuple[int, ...]:
    """Return the indices of a statistic's columns, or say what is wrong with it."""
    refuse_unless(OneOf(*STATISTICS), "statistic", statistic.kind)
    for name in statistic.columns:
        if name not in names:
            raise ValueError(f"columns of a statistic must be among {', '.join(names)}; got '{name}'.")
    check_statistic(statistic.kind, len(statistic.columns))
    if len(set(statistic.columns)) < len(statistic.columns):
        raise ValueError(f"columns of a statistic must be different ones; got the {_describe(statistic)}.")
    refuse_unless(Number(0), "probability", statistic.probability)
    refuse_unless(Number(above=0), "accuracy", statistic.accuracy)
    return tuple(names.index(name) for name in statistic.columns)


def _describe(statistic: Statistic) -> str:
    return f"{statistic.kind.replace('_', ' ')} of {', '.join(statistic.columns)}"

"""How much requested statistics move when a value moves: the sensitivities that shape boxes.

References
----------
"Data Anonymization ... Fuzzy-Motivated Approach" (001), Sections II and IV, equation 4; "Data Anonymization that Leads
to the Most Accurate Estimates" (000), Section II; `ERRATA.md`, Boxes, points 1, 2 and 9.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float64]"

# How many columns each kind of statistic takes; None: two or more, the target first.
KINDS: dict[str, int | None] = {
    "mean": 1,
    "variance": 1,
    "sd": 1,
    "covariance": 2,
    "correlation": 2,
    "regression": None,
}
_FLOOR = 0.1  # a statistic counts as at least this share of its natural scale, so that one near 0 asks for no wonders


@dataclass(frozen=True)
class Statistic:
    """A statistic that the boxes should serve.

    Attributes
    ----------
    kind : {'mean', 'variance', 'sd', 'covariance', 'correlation', 'regression'}
        What is computed. 'regression': the coefficients of a linear regression, without the constant.
    columns : tuple of str
        One column, or two for covariance and correlation, or the target and its predictors.
    probability : float
        How often it is asked for, relative to the others (p_C of 001, Section IV).
    accuracy : float
        The desired accuracy, as a share of the statistic's absolute value: 0.1 is 10 %.
    """

    kind: str
    columns: tuple[str, ...]
    probability: float = 1.0
    accuracy: float = 0.1


class Term(NamedTuple):
    """One summand of a sensitivity: factor * abs(constant + sum of slope * (x - mean)) of one column."""

    column: int
    factor: float
    constant: float
    slopes: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Sensitivities:
    """The sensitivities a_i(x) of the columns, as functions of the record.

    Every derivative of the six kinds, times the number of records, is a linear function of the record; a_i(x) is the
    sum of their absolute values with the factors p_C / Delta_0 of equation 4 (001, Section IV).

    Attributes
    ----------
    means : float64, one a column
        The means of the columns.
    terms : tuple of Term
        The summands.
    """

    means: Floats
    terms: tuple[Term, ...]

    def at(self, columns: Sequence[Floats]) -> list[Floats | float]:
        """Evaluate the sensitivities.

        Parameters
        ----------
        columns : sequence of float64
            The records, or the midpoints of boxes, column by column.

        Returns
        -------
        list, one a column
            An array, one number a record; or a single number where it is the same for all records.
        """
        result: list[Floats | float] = [0.0] * len(self.means)
        for column, factor, constant, slopes in self.terms:
            part: Floats | float = float(constant)
            for other, slope in slopes:
                part = part + slope * (columns[other] - self.means[other])
            result[column] = result[column] + factor * (abs(part) if isinstance(part, float) else np.abs(part))
        return result


def sensitivities(columns: Mapping[str, Floats], statistics: Sequence[Statistic] | None = None) -> Sensitivities:
    """Combine the derivatives of the requested statistics into one sensitivity for every column.

    Parameters
    ----------
    columns : mapping of str to float64
        The data.
    statistics : sequence of Statistic, optional
        What the boxes should serve.  None: the means of all columns, each to the same share of its standard deviation,
        so that neither the unit nor the origin of a column matters.

    Returns
    -------
    Sensitivities
        a_i(x) of equation 4, so that the sum of a_i times half-width over records and columns, divided by the number of
        records, is the mean of inaccuracy over desired accuracy.

    Raises
    ------
    ValueError
        If a statistic is unknown, asks for an unknown column, or does not exist for these columns.

    Notes
    -----
    The desired accuracy is a share of |C|, but |C| counts as at least a tenth of the statistic's natural scale: the
    standard deviation for a mean, the product of two for a covariance, 1 for a correlation, their ratio for a
    regression coefficient (ERRATA, point 9).  A constant column has sensitivity 0, as it has no width.
    """
    names = list(columns)
    data = [columns[name] for name in names]
    means = np.array([float(np.mean(values)) for values in data])
    moments = _Moments(data, means)
    terms: list[Term] = []
    if statistics is None:
        for i in range(len(names)):
            if sd := moments.sd(i):
                terms.append(Term(i, 1.0 / (0.1 * len(names) * sd), 1.0, ()))
        return Sensitivities(means, tuple(terms))
    checked = [_checked(statistic, names) for statistic in statistics]
    total = sum(statistic.probability for statistic in statistics)
    if not checked or not total > 0:
        raise ValueError("At least one statistic must have a probability above 0.")
    for statistic, places in zip(statistics, checked, strict=True):
        parts = _derivatives(statistic, places, moments)
        for value, scale, derivative in parts:
            desired = statistic.accuracy * max(abs(value), _FLOOR * scale)
            if desired > 0:
                factor = statistic.probability / (total * len(parts) * desired)
                terms += [Term(i, factor, constant, slopes) for i, constant, slopes in derivative]
    return Sensitivities(means, tuple(terms))


Linear: TypeAlias = tuple[int, float, tuple[tuple[int, float], ...]]


class _Moments:
    """Second moments, computed when first asked for."""

    def __init__(self, data: Sequence[Floats], means: Floats) -> None:
        self.data, self.means = data, means
        self.known: dict[tuple[int, int], float] = {}

    def covariance(self, i: int, j: int) -> float:
        pair = (min(i, j), max(i, j))
        if pair not in self.known:
            first, second = self.data[pair[0]], self.data[pair[1]]
            if pair[0] == pair[1] and first.min() == first.max():
                self.known[pair] = 0.0  # Exactly, where the mean of a constant column is rounded.
            else:
                self.known[pair] = float(np.mean((first - self.means[pair[0]]) * (second - self.means[pair[1]])))
        return self.known[pair]

    def sd(self, i: int) -> float:
        return math.sqrt(self.covariance(i, i))


def _derivatives(statistic: Statistic, places: list[int], moments: _Moments) -> list[tuple[float, float, list[Linear]]]:
    """Return value, natural scale and N times the derivatives; a regression has several values."""
    i, j = places[0], places[-1]
    variance, sd = moments.covariance(i, i), moments.sd(i)
    match statistic.kind:
        case "mean":
            return [(float(moments.means[i]), sd, [(i, 1.0, ())] if sd else [])]
        case "variance":
            return [(variance, variance, [(i, 0.0, ((i, 2.0),))])]
        case "sd":
            return [(sd, sd, [(i, 0.0, ((i, 1.0 / sd),))] if sd else [])]
        case "covariance":
            both: list[Linear] = [(i, 0.0, ((j, 1.0),)), (j, 0.0, ((i, 1.0),))]
            return [(moments.covariance(i, j), sd * moments.sd(j), both)]
        case "correlation":
            return [_correlation(statistic, i, j, moments)]
        case _:
            return _regression(statistic, places, moments)


def _correlation(statistic: Statistic, i: int, j: int, moments: _Moments) -> tuple[float, float, list[Linear]]:
    product = moments.sd(i) * moments.sd(j)
    if not product:
        raise ValueError(f"The correlation of {_listed(statistic)} does not exist, as a column is constant.")
    shared = moments.covariance(i, j)
    both: list[Linear] = []
    for one, other in ((i, j), (j, i)):
        slope = -shared / moments.covariance(one, one) / product
        both.append((one, 0.0, ((other, 1.0 / product), (one, slope))))
    return shared / product, 1.0, both


def _regression(statistic: Statistic, places: list[int], moments: _Moments) -> list[tuple[float, float, list[Linear]]]:
    """Differentiate regression coefficients (ERRATA, point 2): b_y = h_q, b_xj = Sigma^-1_qj r - h_q beta_j."""
    target, predictors = places[0], places[1:]
    scales = np.array([moments.sd(i) for i in predictors])
    sigma = np.array([[moments.covariance(i, j) for j in predictors] for i in predictors])
    # The rank is that of the correlations, which has nothing to do with units.
    if not scales.all() or np.linalg.cond(sigma / np.outer(scales, scales)) > 1e12:
        raise ValueError(
            f"The regression on {_listed(statistic)} does not exist, as its predictors are constant or collinear."
        )
    inverse = np.linalg.inv(sigma / np.outer(scales, scales)) / np.outer(scales, scales)
    beta = inverse @ np.array([moments.covariance(target, i) for i in predictors])
    residual = {target: 1.0, **{i: -float(b) for i, b in zip(predictors, beta, strict=True)}}
    results = []
    for q in range(len(predictors)):
        h = {i: float(inverse[q, p]) for p, i in enumerate(predictors)}
        derivative: list[Linear] = [(target, 0.0, tuple(h.items()))]
        for p, column in enumerate(predictors):
            slopes = {i: float(inverse[q, p]) * r for i, r in residual.items()}
            for i, value in h.items():
                slopes[i] -= value * float(beta[p])
            derivative.append((column, 0.0, tuple(slopes.items())))
        results.append((float(beta[q]), moments.sd(target) / float(scales[q]), derivative))
    return results


def _checked(statistic: Statistic, names: list[str]) -> list[int]:
    """Return the places of a statistic's columns, or say what is wrong with it."""
    if statistic.kind not in KINDS:
        raise ValueError(f"Unknown statistic '{statistic.kind}': use one of {', '.join(KINDS)}.")
    for name in statistic.columns:
        if name not in names:
            raise ValueError(f"The {statistic.kind} asks for column '{name}', which is not among {', '.join(names)}.")
    wanted, got = KINDS[statistic.kind], len(statistic.columns)
    if got != wanted if wanted else got < 2:
        raise ValueError(f"A {statistic.kind} takes {wanted or 'at least 2'} columns, not {got}.")
    if len(set(statistic.columns)) < got:
        raise ValueError(f"The {statistic.kind} of {_listed(statistic)} names a column twice.")
    if not (0 <= statistic.probability < math.inf and 0 < statistic.accuracy < math.inf):
        raise ValueError(
            f"The {statistic.kind} of {_listed(statistic)} needs a probability of at least 0 and an accuracy above 0."
        )
    return [names.index(name) for name in statistic.columns]


def _listed(statistic: Statistic) -> str:
    return ", ".join(statistic.columns)

"""Numbers that are sums of others, or products of their powers: total income, body mass index."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Floats, is_number
from duckanon._core.encoding.parts import ColumnParts, doubles

_EXPLAINED = 0.9999  # the share of the variance that a formula explains at least
_FEWEST_VALUES = 20  # numbers of fewer values are codes or counts
_LOOKED_AT = 5_000  # rows in which formulas are looked for, before they are confirmed in all
_FEWEST_ROWS = 100  # in which all numbers are known
_NULLS = 0.05  # of the rows: where the column is NULL without its sources, or the other way round
_NEGLIGIBLE = 1e-3  # deviations of the result that a source adds: no part of the formula
_FARTHEST = 10  # ranges of nearly all numbers from their median: beyond, one person's number would decide a regression
_DIGITS, _AS_GOOD = 3, 1.02  # factors are rounded where what is not explained grows by no more than this


@dataclass(frozen=True)
class Formula:
    """A number that is a sum of others, or a product of their powers if it is logged: then a sum of logarithms."""

    column: int
    sources: tuple[int, ...]
    factors: tuple[float, ...]
    constant: float
    logged: bool

    def computed(self, numbers: Sequence[Floats]) -> Floats:
        """Compute the column from its sources; NaN where one of them is."""
        total = np.full(len(numbers[0]), self.constant)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            for factor, values in zip(self.factors, numbers, strict=True):
                total += factor * (np.log(values) if self.logged else values)
            return np.exp(total) if self.logged else total


def found_formulas(columns: Sequence[ColumnParts], left_out: Collection[int] = ()) -> list[Formula]:
    """Find numbers that follow from others; none of the others follows from others itself.

    The column of most values is tried first, of these the last: a sum has more than its terms. Regressions are on all
    other columns, then on those that matter. Columns that are computed otherwise are left out.
    """
    numbers = [
        index
        for index, column in enumerate(columns)
        if column.regular is not None and is_number(column.type) and index not in left_out
    ]
    step = max(1, len(columns[0].codes) // _LOOKED_AT)
    looked_at = pa.array(np.arange(0, len(columns[0].codes), step))
    sample = {index: _without_extremes(doubles(columns[index].array.take(looked_at))) for index in numbers}
    distinct = {index: len(np.unique(values[~np.isnan(values)])) for index, values in sample.items()}
    eligible = [index for index in numbers if distinct[index] > _FEWEST_VALUES]
    formulas: list[Formula] = []
    for column in sorted(eligible, key=lambda index: (-distinct[index], -index)):
        progress.check()
        computed = {formula.column for formula in formulas}
        if any(column in formula.sources for formula in formulas):
            continue
        others = [index for index in eligible if index != column and index not in computed]
        for logged in (False, True):
            formula = _formula(column, others, sample, logged)
            if formula is not None and step > 1:  # found in a sample: confirmed in all rows
                whole = {index: _without_extremes(columns[index].numbers()) for index in (column, *formula.sources)}
                formula = _formula(column, formula.sources, whole, logged)
            if formula is not None:
                formulas.append(formula)
                break
    return formulas


def _formula(column: int, others: Sequence[int], values: dict[int, Floats], logged: bool) -> Formula | None:
    if logged:
        others = [index for index in others if _positive(values[index])]
    # a column of many NULLs is no source, and would leave few rows to look at
    is_known, most = ~np.isnan(values[column]), _NULLS * len(values[column])
    others = [index for index in others if np.count_nonzero(is_known & np.isnan(values[index])) <= most]
    if not others or (logged and not _positive(values[column])):
        return None
    known = _known([values[index] for index in (column, *others)])
    if known.sum() < max(_FEWEST_ROWS, 2 * len(others)):
        return None
    target = _term(values[column], known, logged)
    terms = {index: _term(values[index], known, logged) for index in others}
    factors, _ = _regression(target, list(terms.values()))
    spread = [abs(factor) * terms[index].std() for factor, index in zip(factors, others, strict=True)]
    sources = [index for index, width in zip(others, spread, strict=True) if width > _NEGLIGIBLE * target.std()]
    if not sources:
        return None
    together = _known([values[index] for index in sources])
    if np.count_nonzero(together != ~np.isnan(values[column])) > _NULLS * len(together):
        return None
    known = together & ~np.isnan(values[column])
    target = _term(values[column], known, logged)
    chosen = [_term(values[index], known, logged) for index in sources]
    factors, explained = _regression(target, chosen)
    if explained <= _EXPLAINED:
        return None
    rounded = np.round(factors, _DIGITS)
    if 1 - _explained(target, chosen, rounded) <= _AS_GOOD * (1 - explained) + 1e-12:
        factors = rounded
    constant = float(np.median(target - sum(factor * term for factor, term in zip(factors, chosen, strict=True))))
    return Formula(column, tuple(sources), tuple(factors.tolist()), constant, logged)


def _without_extremes(values: Floats) -> Floats:
    """Return numbers with NaN in place of those that are far from nearly all others, as one fortune may be."""
    known = values[np.isfinite(values)]
    if not len(known):
        return values
    low, middle, high = np.quantile(known, [0.01, 0.5, 0.99])
    if low == high:
        return values
    return np.where(np.abs(values - middle) <= _FARTHEST * (high - low), values, np.nan)


def _positive(values: Floats) -> bool:
    return bool((values[~np.isnan(values)] > 0).all())


def _known(columns: Sequence[Floats]) -> Bools:
    return np.asarray(np.logical_and.reduce([~np.isnan(values) for values in columns]))


def _term(values: Floats, known: Bools, logged: bool) -> Floats:
    return np.log(values[known]) if logged else values[known]


def _regression(target: Floats, terms: Sequence[Floats]) -> tuple[Floats, float]:
    """Return the factors of a regression of terms of one scale, and the share of the variance that it explains."""
    matrix = np.column_stack(terms)
    matrix -= matrix.mean(axis=0)
    scale = matrix.std(axis=0)
    scale[scale == 0] = 1.0
    factors = np.linalg.lstsq(matrix / scale, target - target.mean(), rcond=1e-9)[0] / scale
    return factors, _explained(target, terms, factors)


def _explained(target: Floats, terms: Sequence[Floats], factors: Floats) -> float:
    rest = target - sum(factor * term for factor, term in zip(factors, terms, strict=True))
    variance = float(target.var())
    return 1 - float(np.var(rest)) / variance if variance > 0 else 0.0

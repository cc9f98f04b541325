"""Columns that follow from others: sums and products, choices that one column decides, constant offsets.

Numbers that are sums of others, or products of their powers (total income, body mass index), are found by regressions
on all other columns, then on those that matter. Choices that one column decides (age group by age, NULL by NULL) are
found by counting pairs of values, numbers deciding by intervals. Offsets (a review thirty days after the visit) are
medians of differences. All are looked for in a sample of the rows and confirmed in all of them, so that the cost is
that of a few passes; none may rest on one person.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Floats, Ints, is_number
from duckanon._core.common.people import count_people
from duckanon._core.encoding.parts import ColumnParts, read_doubles

_EXPLAINED = 0.9999  # the share of the variance that a formula explains at least
_FEWEST_VALUES = 20  # numbers of fewer values are codes or counts
_FORMULA_SAMPLE = 5_000  # rows in which formulas are looked for, before they are confirmed in all
_FEWEST_ROWS = 100  # in which all numbers are known
_NULLS = 0.05  # of the rows: where the column is NULL without its sources, or the other way round
_NEGLIGIBLE = 1e-3  # deviations of the result that a source adds: no part of the formula
_FARTHEST = 10  # ranges of nearly all numbers from their median: beyond, one person's number would decide a regression
_FACTOR_DIGITS, _AS_GOOD = 3, 1.02  # factors are rounded where what is not explained grows by no more than this


@dataclass(frozen=True)
class Formula:
    """A number that is a sum of others, or a product of their powers if it is logged: then a sum of logarithms."""

    column: int
    sources: tuple[int, ...]
    factors: tuple[float, ...]
    constant: float
    logged: bool

    def compute(self, numbers: Sequence[Floats]) -> Floats:
        """Compute the column from its sources; NaN where one of them is."""
        total = np.full(len(numbers[0]), self.constant)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            for factor, values in zip(self.factors, numbers, strict=True):
                total += factor * (np.log(values) if self.logged else values)
            return np.exp(total) if self.logged else total


def find_formulas(columns: Sequence[ColumnParts], left_out: Collection[int] = ()) -> list[Formula]:
    """Find numbers that follow from others; none of the others follows from others itself.

    The column of most values is tried first, of these the last: a sum has more than its terms. Regressions are on all
    other columns, then on those that matter. Columns that are computed otherwise are left out.
    """
    numbers = [
        index
        for index, column in enumerate(columns)
        if column.regular is not None and is_number(column.type) and index not in left_out
    ]
    step = max(1, len(columns[0].codes) // _FORMULA_SAMPLE)
    looked_at = pa.array(np.arange(0, len(columns[0].codes), step))
    sample = {index: _drop_extremes(read_doubles(columns[index].array.take(looked_at))) for index in numbers}
    distinct = {index: len(np.unique(values[~np.isnan(values)])) for index, values in sample.items()}
    eligible = [index for index in numbers if distinct[index] > _FEWEST_VALUES]
    formulas: list[Formula] = []
    for column in sorted(eligible, key=lambda index: (-distinct[index], -index)):
        progress.check()
        computed = {formula.column for formula in formulas}
        if any(column in formula.sources for formula in formulas):
            continue
        candidates = [index for index in eligible if index != column and index not in computed]
        for logged in (False, True):
            formula = _fit_formula(column, candidates, sample, logged)
            if formula is not None and step > 1:  # found in a sample: confirmed in all rows
                whole = {index: _drop_extremes(columns[index].numbers()) for index in (column, *formula.sources)}
                formula = _fit_formula(column, formula.sources, whole, logged)
            if formula is not None:
                formulas.append(formula)
                break
    return formulas


def _fit_formula(column: int, candidates: Sequence[int], values: dict[int, Floats], logged: bool) -> Formula | None:
    if logged:
        candidates = [index for index in candidates if _are_positive(values[index])]
    # a column of many NULLs is no source, and would leave few rows to look at
    is_known, most = ~np.isnan(values[column]), _NULLS * len(values[column])
    candidates = [index for index in candidates if np.count_nonzero(is_known & np.isnan(values[index])) <= most]
    if not candidates or (logged and not _are_positive(values[column])):
        return None
    known = _are_known([values[index] for index in (column, *candidates)])
    if known.sum() < max(_FEWEST_ROWS, 2 * len(candidates)):
        return None
    target = _make_term(values[column], known, logged)
    terms = {index: _make_term(values[index], known, logged) for index in candidates}
    factors, _ = _regress(target, list(terms.values()))
    spread = [abs(factor) * terms[index].std() for factor, index in zip(factors, candidates, strict=True)]
    sources = [index for index, width in zip(candidates, spread, strict=True) if width > _NEGLIGIBLE * target.std()]
    if not sources:
        return None
    together = _are_known([values[index] for index in sources])
    if np.count_nonzero(together != ~np.isnan(values[column])) > _NULLS * len(together):
        return None
    known = together & ~np.isnan(values[column])
    target = _make_term(values[column], known, logged)
    chosen = [_make_term(values[index], known, logged) for index in sources]
    factors, explained = _regress(target, chosen)
    if explained <= _EXPLAINED:
        return None
    rounded = np.round(factors, _FACTOR_DIGITS)
    if 1 - _explain_variance(target, chosen, rounded) <= _AS_GOOD * (1 - explained) + 1e-12:
        factors = rounded
    constant = float(np.median(target - sum(factor * term for factor, term in zip(factors, chosen, strict=True))))
    return Formula(column, tuple(sources), tuple(factors.tolist()), constant, logged)


def _drop_extremes(values: Floats) -> Floats:
    """Return numbers with NaN in place of those that are far from nearly all others, as one fortune may be."""
    known = values[np.isfinite(values)]
    if not len(known):
        return values
    low, middle, high = np.quantile(known, [0.01, 0.5, 0.99])
    if low == high:
        return values
    return np.where(np.abs(values - middle) <= _FARTHEST * (high - low), values, np.nan)


def _are_positive(values: Floats) -> bool:
    return bool((values[~np.isnan(values)] > 0).all())


def _are_known(columns: Sequence[Floats]) -> Bools:
    return np.asarray(np.logical_and.reduce([~np.isnan(values) for values in columns]))


def _make_term(values: Floats, known: Bools, logged: bool) -> Floats:
    return np.log(values[known]) if logged else values[known]


def _regress(target: Floats, terms: Sequence[Floats]) -> tuple[Floats, float]:
    """Return the factors of a regression of terms of one scale, and the share of the variance that it explains."""
    matrix = np.column_stack(terms)
    matrix -= matrix.mean(axis=0)
    scale = matrix.std(axis=0)
    scale[scale == 0] = 1.0
    factors = np.linalg.lstsq(matrix / scale, target - target.mean(), rcond=1e-9)[0] / scale
    return factors, _explain_variance(target, terms, factors)


def _explain_variance(target: Floats, terms: Sequence[Floats], factors: Floats) -> float:
    rest = target - sum(factor * term for factor, term in zip(factors, terms, strict=True))
    variance = float(target.var())
    return 1 - float(np.var(rest)) / variance if variance > 0 else 0.0


_VIOLATIONS = 0.002  # the share of the rows in which a choice may differ from what the other column says
_OF_MINORITY = 0.05  # of the rows without the commonest choice: one that nearly everybody makes is no function
_RECURRING, _HOLDERS = 0.95, 5  # the share of rows in values that so many rows hold: other choices say nothing
_DENSE = 4  # pairs of values a row that are counted in a table
_LOOKUP_SAMPLE = 20_000  # rows in which functions are looked for, before they are confirmed in all


@dataclass(frozen=True)
class Lookup:
    """A choice that another column decides.

    Attributes:
        keys: The numbers of the source, ascending, of which the nearest decides; None where its choices do.
        codes: The choice at each number, and at last that at NULL; or at each choice of the source.
    """

    column: int
    source: int
    keys: Floats | None
    codes: Ints

    def compute(self, choices: Ints, numbers: Floats) -> Ints:
        """Return the choices, from those of the source or from its numbers, NaN for NULL."""
        if self.keys is None:
            return self.codes[choices]
        is_known = ~np.isnan(numbers)
        middles = (self.keys[1:] + self.keys[:-1]) / 2
        index = np.searchsorted(middles, np.where(is_known, numbers, self.keys[0]))
        return self.codes[np.where(is_known, index, len(self.keys))]


@dataclass(frozen=True)
class _LookupSource:
    """A column that may decide others: its choices, or its numbers, whose last code is NULL's."""

    column: int
    codes: Ints
    count: int
    numbers: Floats | None

    @property
    def is_recurrent(self) -> bool:
        """Tell whether most rows have a value that others have, too."""
        held = np.bincount(self.codes, minlength=self.count)
        return bool(held[held >= _HOLDERS].sum() >= _RECURRING * len(self.codes))


class _Choices(NamedTuple):
    """The choices of a column, in all rows or in a sample."""

    codes: Ints
    choices: int


def find_lookups(columns: Sequence[ColumnParts], left_out: Sequence[int], random: np.random.Generator) -> list[Lookup]:
    """Find choices that one other column decides, in an order in which they can be computed.

    A column decides the choice of one that has no more values. Numbers decide by intervals, since released numbers are
    new ones: there are no more changes along the numbers than choices less one. Choices are asked first, numbers for
    what is left. (Otherwise the month of a marriage, NULL for the unmarried, would decide whether there is a year, and
    the year would decide nothing more.) A column that decides may itself be decided by one before. Columns that are
    computed otherwise are left out.
    """
    rows = len(columns[0].codes)
    sample = np.sort(random.choice(rows, min(rows, _LOOKUP_SAMPLE), replace=False))
    few = [_Choices(column.codes[sample], column.choices) for column in columns]
    sources = [
        source
        for index, column in enumerate(columns)
        if index not in left_out
        for source in _list_sources(index, column, few[index], sample if len(sample) < rows else None)
    ]
    lookups: dict[int, Lookup] = {}
    for source in sorted(sources, key=lambda source: (source.numbers is not None, -source.count)):
        if source.numbers is None and not source.is_recurrent:
            continue
        whole: _LookupSource | None = None
        for target, column in enumerate(few):
            progress.check()
            chain = _trace_sources(source.column, lookups)
            is_free = target not in lookups and target not in left_out and target not in chain
            if not is_free or not 2 <= column.choices <= source.count:
                continue
            if not _is_decided(source, column) or not _may_be_intervals(source, column):
                continue
            if whole is None:
                whole = _complete_source(source, columns)
            everybody = _Choices(columns[target].codes, column.choices)
            lookup = _make_lookup(target, whole, everybody) if _is_decided(whole, everybody) else None
            if lookup is not None:
                lookups[target] = lookup
    return sorted(lookups.values(), key=lambda lookup: len(_trace_sources(lookup.source, lookups)))


def _trace_sources(column: int, lookups: Mapping[int, Lookup]) -> list[int]:
    """Return a column, the one that decides it, and so on."""
    chain = [column]
    while chain[-1] in lookups:
        chain.append(lookups[chain[-1]].source)
    return chain


def list_decided_by_choices(lookups: Sequence[Lookup]) -> list[int]:
    """Name the columns that choices decide, in the end those of columns that nothing decides: not numbers."""
    decided = {lookup.column for lookup in lookups}
    settled: list[int] = []
    for lookup in lookups:  # in an order in which they can be computed
        if lookup.keys is None and (lookup.source not in decided or lookup.source in settled):
            settled.append(lookup.column)
    return settled


def _list_sources(index: int, column: ColumnParts, few: _Choices, sample: Ints | None) -> list[_LookupSource]:
    sources = [_LookupSource(index, few.codes, few.choices, None)] if few.choices > 1 else []
    if column.regular is not None:
        array = column.array if sample is None else column.array.take(pa.array(sample))
        sources.append(_number_source(index, read_doubles(array)))
    return sources


def _number_source(index: int, values: Floats) -> _LookupSource:
    is_known = ~np.isnan(values)
    numbers, inverse = np.unique(values[is_known], return_inverse=True)
    codes = np.full(len(values), len(numbers), np.int64)
    codes[is_known] = inverse
    return _LookupSource(index, codes, len(numbers) + (not is_known.all()), numbers)


def _complete_source(source: _LookupSource, columns: Sequence[ColumnParts]) -> _LookupSource:
    """Return the same source with all rows."""
    column = columns[source.column]
    if source.numbers is None:
        return _LookupSource(source.column, column.codes, column.choices, None)
    return _number_source(source.column, column.numbers())


def _is_decided(source: _LookupSource, column: _Choices) -> bool:
    minority = len(column.codes) - int(np.bincount(column.codes).max())
    violations = len(column.codes) - int(_find_commonest(source, column)[1].sum())
    return minority > 0 and violations <= min(_VIOLATIONS * len(column.codes), _OF_MINORITY * minority)


def _find_commonest(source: _LookupSource, column: _Choices) -> tuple[Ints, Ints]:
    """Return the choice that most rows make at each value of the source, and how many; -1 and 0 where there is none.

    Where there are many pairs, only those that occur are counted: a million numbers by 900 districts would not fit into
    memory.
    """
    size = len(source.numbers) + 1 if source.numbers is not None else source.count
    both = source.codes * column.choices + column.codes
    if size * column.choices <= _DENSE * len(both):
        table = np.bincount(both, minlength=size * column.choices).reshape(size, column.choices)
        most = table.max(axis=1)
        return np.where(most > 0, table.argmax(axis=1), -1), most
    pairs, counts = np.unique(both, return_counts=True)
    order = np.lexsort((-pairs, counts))  # what comes last stays: the largest count, the first choice among equals
    commonest, held = np.full(size, -1, np.int64), np.zeros(size, np.int64)
    values = pairs[order] // column.choices
    commonest[values], held[values] = pairs[order] % column.choices, counts[order]
    return commonest, held


def _make_lookup(target: int, source: _LookupSource, column: _Choices) -> Lookup | None:
    commonest, _ = _find_commonest(source, column)
    codes = np.where(commonest >= 0, commonest, int(np.bincount(column.codes).argmax()))
    if source.numbers is None:
        return Lookup(target, source.column, None, codes)
    least = _HOLDERS if source.is_recurrent else 1
    held = np.flatnonzero(np.bincount(source.codes, minlength=len(codes))[:-1] >= least)
    if len(held) == 0 or np.count_nonzero(np.diff(codes[held])) > column.choices - 1:
        return None
    return Lookup(target, source.column, source.numbers[held], np.append(codes[held], codes[-1]))


def _may_be_intervals(source: _LookupSource, column: _Choices) -> bool:
    """Tell whether numbers of a sample may decide by intervals: in all rows there are no fewer changes along them."""
    if source.numbers is None:
        return True
    changes = np.count_nonzero(np.diff(column.codes[np.argsort(source.codes, kind="stable")]))
    exceptions = 2 * _VIOLATIONS + 1 - _RECURRING  # of the rows, each of which makes two changes; about as in all rows
    return bool(changes <= column.choices + 2 * exceptions * len(column.codes))


_GLANCED_AT = 2_000  # rows that show most pairs of columns to have no constant difference
_OFFSET_DIGITS = 9  # of a difference of doubles that are told apart; singles have 6


def are_comparable(first: ColumnParts, second: ColumnParts) -> bool:
    """Tell whether the difference of two columns means something: numbers, or dates of one type."""
    return first.type == second.type or (is_number(first.type) and is_number(second.type))


def count_exact_digits(first: ColumnParts, second: ColumnParts) -> int:
    """Return the digits of a difference of two columns that are no rounding error."""
    return 6 if pa.float32() in (first.type, second.type) else _OFFSET_DIGITS


def limit_rounding_error(first: Floats, second: Floats, digits: int) -> float:
    """Return how far a difference of two columns may be off; 0 where all are whole."""
    if _is_whole(first) and _is_whole(second):
        return 0.0
    largest = max(end for values in (first, second) for end in (np.fmax.reduce(values), -np.fmin.reduce(values)))
    return float(largest * 10.0**-digits)


def _is_whole(values: Floats) -> bool:
    """Tell whether all numbers are whole, where there are any; a glance shows most that are not."""
    parts = (values[:_GLANCED_AT], values)
    return all(bool(((part == np.rint(part)) | np.isnan(part)).all()) for part in parts)


def count_people_at(is_here: Bools, people: Ints | None) -> int:
    """Count the people of some rows."""
    return int(count_people(is_here.astype(np.int64), people, 2)[1])


def find_offsets(
    columns: Sequence[ColumnParts], people: Ints | None, k: int, exceptions: int, not_sums: Collection[int] = ()
) -> list[Formula]:
    """Find columns that are another column plus a constant wherever both have a regular number.

    Of columns that are a constant apart, the one that most rows have is the source of the others. At least k people
    have the commonest number of the source, or one near it, and at least k another one: the constant is that of all.

    Args:
        columns, people: The columns, and the number of each row's person.
        k: The least number of people.
        exceptions: The people who may have another difference.
        not_sums: Columns that are no sums: they come first.
    """
    numbers = {
        index: np.where(column.is_regular, column.numbers(), np.nan)
        for index, column in enumerate(columns)
        if column.regular is not None
    }
    held = {index: int(np.count_nonzero(~np.isnan(values))) for index, values in numbers.items()}
    sources: list[int] = []
    offsets = []
    for column in sorted(numbers, key=lambda index: (index not in not_sums, -held[index], index)):
        for source in sources if column not in not_sums else []:
            progress.check()
            if are_comparable(columns[source], columns[column]):
                digits = count_exact_digits(columns[source], columns[column])
                constant = _find_constant(numbers[source], numbers[column], digits, people, k, exceptions)
                if constant is not None:
                    offsets.append(Formula(column, (source,), (1.0,), constant, False))
                    break
        else:
            sources.append(column)
    return offsets


def _find_constant(
    source: Floats, column: Floats, digits: int, people: Ints | None, k: int, exceptions: int
) -> float | None:
    """Return the difference that two columns have in all rows, None where they differ by none or by several."""
    for end in (_GLANCED_AT, len(source)):
        apart = column[:end] - source[:end]
        known = ~np.isnan(apart)
        if not known.any():
            continue
        constant = float(np.median(apart[known]))
        error = limit_rounding_error(source[:end], column[:end], digits)
        glanced = None if people is None else people[:end]
        if abs(constant) <= error or count_people_at(known & (np.abs(apart - constant) > error), glanced) > exceptions:
            return None
    if not known.any():
        return None
    is_usual = known & (source <= np.median(source[known]))
    if min(count_people_at(is_usual, people), count_people_at(known & ~is_usual, people)) < k:
        return None
    decimals = digits - int(np.ceil(np.log10(max(abs(constant), np.abs(source[known]).max(), 1e-300))))
    return round(constant, decimals)

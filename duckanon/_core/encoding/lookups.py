"""Choices that one other column decides: age group by age, "does not apply" by "does not smoke", NULL by NULL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from duckanon._core.common import progress
from duckanon._core.common.arrays import Floats, Ints
from duckanon._core.encoding.parts import ColumnParts, doubles

_VIOLATIONS = 0.002  # the share of the rows in which a choice may differ from what the other column says
_OF_MINORITY = 0.05  # of the rows without the commonest choice: one that nearly everybody makes is no function
_RECURRING, _HOLDERS = 0.95, 5  # the share of rows in values that so many rows hold: other choices say nothing
_DENSE = 4  # pairs of values a row that are counted in a table
_LOOKED_AT = 20_000  # rows in which functions are looked for, before they are confirmed in all


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

    def computed(self, choices: Ints, numbers: Floats) -> Ints:
        """Return the choices, from those of the source or from its numbers, NaN for NULL."""
        if self.keys is None:
            return self.codes[choices]
        is_known = ~np.isnan(numbers)
        middles = (self.keys[1:] + self.keys[:-1]) / 2
        index = np.searchsorted(middles, np.where(is_known, numbers, self.keys[0]))
        return self.codes[np.where(is_known, index, len(self.keys))]


@dataclass(frozen=True)
class _Source:
    """A column that may decide others: its choices, or its numbers, whose last code is NULL's."""

    column: int
    codes: Ints
    count: int
    numbers: Floats | None

    @property
    def recurs(self) -> bool:
        """Tell whether most rows have a value that others have, too."""
        held = np.bincount(self.codes, minlength=self.count)
        return bool(held[held >= _HOLDERS].sum() >= _RECURRING * len(self.codes))


class _Sampled(NamedTuple):
    """The choices of a column, in all rows or in a sample."""

    codes: Ints
    choices: int


def found_lookups(columns: Sequence[ColumnParts], left_out: Sequence[int], random: np.random.Generator) -> list[Lookup]:
    """Find choices that one other column decides, in an order in which they can be computed.

    A column decides the choice of one that has no more values. Numbers decide by intervals, since released numbers are
    new ones: there are no more changes along the numbers than choices less one. Choices are asked first, numbers for
    what is left: a month of marriage, which nobody unmarried has, decides whether there is a year, which decides
    nothing that the month does not. A column that decides may itself be decided by one before. Columns that are
    computed otherwise are left out.
    """
    rows = len(columns[0].codes)
    sample = np.sort(random.choice(rows, min(rows, _LOOKED_AT), replace=False))
    few = [_Sampled(column.codes[sample], column.choices) for column in columns]
    sources = [
        source
        for index, column in enumerate(columns)
        if index not in left_out
        for source in _sources(index, column, few[index], sample if len(sample) < rows else None)
    ]
    found: dict[int, Lookup] = {}
    for source in sorted(sources, key=lambda one: (one.numbers is not None, -one.count)):
        if source.numbers is None and not source.recurs:
            continue
        whole: _Source | None = None
        for target, column in enumerate(few):
            progress.check()
            is_free = target not in found and target not in left_out and target not in _above(source.column, found)
            if not is_free or not 2 <= column.choices <= source.count:
                continue
            if not _decided(source, column) or not _in_intervals(source, column):
                continue
            if whole is None:
                whole = _whole(source, columns)
            everybody = _Sampled(columns[target].codes, column.choices)
            lookup = _lookup(target, whole, everybody) if _decided(whole, everybody) else None
            if lookup is not None:
                found[target] = lookup
    return sorted(found.values(), key=lambda lookup: len(_above(lookup.source, found)))


def _above(column: int, found: Mapping[int, Lookup]) -> list[int]:
    """Return a column, the one that decides it, and so on."""
    chain = [column]
    while chain[-1] in found:
        chain.append(found[chain[-1]].source)
    return chain


def decided_by_choices(lookups: Sequence[Lookup]) -> list[int]:
    """Name the columns that choices decide, in the end those of columns that nothing decides: not numbers."""
    decided = {lookup.column for lookup in lookups}
    settled: list[int] = []
    for lookup in lookups:  # in an order in which they can be computed
        if lookup.keys is None and (lookup.source not in decided or lookup.source in settled):
            settled.append(lookup.column)
    return settled


def _sources(index: int, column: ColumnParts, few: _Sampled, sample: Ints | None) -> list[_Source]:
    found = [_Source(index, few.codes, few.choices, None)] if few.choices > 1 else []
    if column.regular is not None:
        array = column.array if sample is None else column.array.take(pa.array(sample))
        found.append(_numbered(index, doubles(array)))
    return found


def _numbered(index: int, values: Floats) -> _Source:
    is_known = ~np.isnan(values)
    numbers, inverse = np.unique(values[is_known], return_inverse=True)
    codes = np.full(len(values), len(numbers), np.int64)
    codes[is_known] = inverse
    return _Source(index, codes, len(numbers) + (not is_known.all()), numbers)


def _whole(source: _Source, columns: Sequence[ColumnParts]) -> _Source:
    """Return the same source with all rows."""
    column = columns[source.column]
    if source.numbers is None:
        return _Source(source.column, column.codes, column.choices, None)
    return _numbered(source.column, column.numbers())


def _decided(source: _Source, column: _Sampled) -> bool:
    minority = len(column.codes) - int(np.bincount(column.codes).max())
    violations = len(column.codes) - int(_commonest(source, column)[1].sum())
    return minority > 0 and violations <= min(_VIOLATIONS * len(column.codes), _OF_MINORITY * minority)


def _commonest(source: _Source, column: _Sampled) -> tuple[Ints, Ints]:
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


def _lookup(target: int, source: _Source, column: _Sampled) -> Lookup | None:
    commonest, _ = _commonest(source, column)
    codes = np.where(commonest >= 0, commonest, int(np.bincount(column.codes).argmax()))
    if source.numbers is None:
        return Lookup(target, source.column, None, codes)
    least = _HOLDERS if source.recurs else 1
    held = np.flatnonzero(np.bincount(source.codes, minlength=len(codes))[:-1] >= least)
    if len(held) == 0 or np.count_nonzero(np.diff(codes[held])) > column.choices - 1:
        return None
    return Lookup(target, source.column, source.numbers[held], np.append(codes[held], codes[-1]))


def _in_intervals(source: _Source, column: _Sampled) -> bool:
    """Tell whether numbers of a sample may decide by intervals: in all rows there are no fewer changes along them."""
    if source.numbers is None:
        return True
    changes = np.count_nonzero(np.diff(column.codes[np.argsort(source.codes, kind="stable")]))
    exceptions = 2 * _VIOLATIONS + 1 - _RECURRING  # of the rows, each of which makes two changes; about as in all rows
    return bool(changes <= column.choices + 2 * exceptions * len(column.codes))

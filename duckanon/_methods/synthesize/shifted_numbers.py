"""Numbers of a release that are those of another column plus a constant."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from duckanon._core.common.arrays import Bools, Floats, Ints
from duckanon._core.encoding.formulas import Formula
from duckanon._core.encoding.parts import ColumnParts, doubles, rounded
from duckanon._methods.releasable.safe_numbers import TOO_MUCH, SafeNumbers


def shifted_values(offsets: Sequence[Formula], index: int, numbers: Mapping[int, Floats], is_regular: Bools) -> Floats:
    """Return the numbers of a column that are those of another one plus a constant, NaN elsewhere.

    Args:
        offsets: The columns that are a constant apart.
        index: The column.
        numbers: The regular numbers that are known, NaN where there is none.
        is_regular: Where the column has a regular number.
    """
    values = np.full(len(is_regular), np.nan)
    for source, constant in _apart(offsets, index, numbers):
        values = np.where(np.isnan(values) & is_regular, numbers[source] + constant, values)
    return values


def rows_apart(
    offsets: Sequence[Formula],
    index: int,
    numbers: Mapping[int, SafeNumbers],
    drawn: Collection[int],
    rows: Ints,
) -> Ints:
    """Return the rows of which a number does not follow from a column that is drawn."""
    for source, _ in _apart(offsets, index, drawn):
        rows = rows[~numbers[source].is_regular[rows]]
    return rows


def placed_values(numbers: SafeNumbers, column: ColumnParts, values: Floats) -> tuple[Ints, Bools]:
    """Return the places of values, and which have none: their column has no such number, or only a rare one."""
    places = numbers.grid.places(rounded(column, values))
    return places, ~_is_exact(numbers, places, values) | np.isin(places, numbers.rare)


def _apart(offsets: Sequence[Formula], index: int, known: Collection[int]) -> Iterator[tuple[int, float]]:
    """Give the known columns that a column is a constant apart from, and the constants."""
    for one in offsets:
        (source,), constant = one.sources, one.constant
        if index == one.column and source in known:
            yield source, constant
        elif index == source and one.column in known:
            yield one.column, -constant


def _is_exact(numbers: SafeNumbers, places: Ints, values: Floats) -> Bools:
    """Tell which places have the values that they were found for."""
    return np.isclose(doubles(numbers.grid.array(places, None)), values, rtol=1e-9, atol=0.0)


def with_shared_rare(
    numbers: Mapping[int, SafeNumbers], columns: Sequence[ColumnParts], offsets: Sequence[Formula]
) -> dict[int, SafeNumbers]:
    """Let neither of two columns that are a constant apart have a number that is rare in the other.

    A column of which too little would be left keeps its own: then rows are replaced in which it would be rare.
    """
    found = dict(numbers)
    for one in (*offsets, *offsets):  # once to the source of all, once back
        (source,), constant = one.sources, one.constant
        for index, other, apart in ((source, one.column, -constant), (one.column, source, constant)):
            values = doubles(found[other].grid.array(found[other].rare, None)) + apart
            places = found[index].grid.places(rounded(columns[index], values))
            places = places[_is_exact(found[index], places, values)]
            with_more = replace(found[index], rare=np.union1d(found[index].rare, places))
            if with_more.shift <= max(TOO_MUCH, found[index].shift):
                found[index] = with_more
    return found

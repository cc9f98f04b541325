"""Numbers and dates that are those of another column plus a constant: a review thirty days after the visit."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Floats, Ints, is_number
from duckanon._core.common.people import people_in
from duckanon._core.encoding.formulas import Formula
from duckanon._core.encoding.parts import ColumnParts

_GLANCED_AT = 2_000  # rows that show most pairs of columns to have no constant difference
_DIGITS = 9  # of a difference of doubles that are told apart; singles have 6


def comparable(one: ColumnParts, other: ColumnParts) -> bool:
    """Tell whether the difference of two columns means something: numbers, or dates of one type."""
    return one.type == other.type or (is_number(one.type) and is_number(other.type))


def digits_of(one: ColumnParts, other: ColumnParts) -> int:
    """Return the digits of a difference of two columns that are no rounding error."""
    return 6 if pa.float32() in (one.type, other.type) else _DIGITS


def rounding_error(one: Floats, other: Floats, digits: int) -> float:
    """Return how far a difference of two columns may be off; 0 where all are whole."""
    if _is_whole(one) and _is_whole(other):
        return 0.0
    largest = max(end for values in (one, other) for end in (np.fmax.reduce(values), -np.fmin.reduce(values)))
    return float(largest * 10.0**-digits)


def _is_whole(values: Floats) -> bool:
    """Tell whether all numbers are whole, where there are any; a glance shows most that are not."""
    parts = (values[:_GLANCED_AT], values)
    return all(bool(((part == np.rint(part)) | np.isnan(part)).all()) for part in parts)


def people_at(is_here: Bools, people: Ints | None) -> int:
    """Count the people of some rows."""
    return int(people_in(is_here.astype(np.int64), people, 2)[1])


def found_offsets(
    columns: Sequence[ColumnParts], people: Ints | None, k: int, exceptions: int, given: Collection[int] = ()
) -> list[Formula]:
    """Find columns that are another column plus a constant wherever both have a regular number.

    Of columns that are a constant apart, the one that most rows have is the source of the others. At least k people
    have the commonest number of the source, or one near it, and at least k another one: the constant is that of all.

    Args:
        columns, people: The columns, and whose each row is.
        k: The least number of people.
        exceptions: The people who may have another difference.
        given: Columns that are no sums: they come first.
    """
    numbers = {
        index: np.where(column.is_regular, column.numbers(), np.nan)
        for index, column in enumerate(columns)
        if column.regular is not None
    }
    held = {index: int(np.count_nonzero(~np.isnan(values))) for index, values in numbers.items()}
    sources: list[int] = []
    found = []
    for column in sorted(numbers, key=lambda index: (index not in given, -held[index], index)):
        for source in sources if column not in given else []:
            progress.check()
            if comparable(columns[source], columns[column]):
                digits = digits_of(columns[source], columns[column])
                constant = _constant(numbers[source], numbers[column], digits, people, k, exceptions)
                if constant is not None:
                    found.append(Formula(column, (source,), (1.0,), constant, False))
                    break
        else:
            sources.append(column)
    return found


def _constant(
    source: Floats, column: Floats, digits: int, people: Ints | None, k: int, exceptions: int
) -> float | None:
    """Return the difference that two columns have in all rows, None where they differ by none or by several."""
    for end in (_GLANCED_AT, len(source)):
        apart = column[:end] - source[:end]
        known = ~np.isnan(apart)
        if not known.any():
            continue
        constant = float(np.median(apart[known]))
        error = rounding_error(source[:end], column[:end], digits)
        whose = None if people is None else people[:end]
        if abs(constant) <= error or people_at(known & (np.abs(apart - constant) > error), whose) > exceptions:
            return None
    if not known.any():
        return None
    is_usual = known & (source <= np.median(source[known]))
    if min(people_at(is_usual, people), people_at(known & ~is_usual, people)) < k:
        return None
    places = digits - int(np.ceil(np.log10(max(abs(constant), np.abs(source[known]).max(), 1e-300))))
    return round(constant, places)

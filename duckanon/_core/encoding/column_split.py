"""Split columns into choices and numbers: which numbers are special or categories, and which values are merged.

A category is a choice. A number is a choice between its special values (zeros that many have, codes such as -8 for
"does not apply"), NULL and "regular", and the regular number. No choice is held by fewer than k people: rare categories
become the rest, rare special values their nearest. Numbers are rounded to the digits that they are written with: those
that all have but for a computation's rounding, or those of most. Each column costs a sort.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from duckanon._core.common.arrays import Bools, Floats, Ints, Reals, find_run_starts, is_number, is_text
from duckanon._core.common.labels import label_rest
from duckanon._core.common.names import match_columns
from duckanon._core.common.people import count_people
from duckanon._core.encoding.arrow import (
    arrow_kind,
    buffer_type,
    find_valid,
    make_array,
    read_categories,
    read_codes,
    read_floats,
    zero_of,
)
from duckanon._core.encoding.column_codecs import NumberColumn
from duckanon._core.encoding.fit import (
    FEWEST_DECIMALS,
    MOST_DECIMALS,
    fit_columns,
    refuse_distinct_texts,
    refuse_identifier,
    refuse_many_categories,
    refuse_nulls,
)
from duckanon._core.encoding.parts import ColumnParts, read_doubles

_SHARE = 0.05  # the least share of the rows that hold a special value
_TIMES_NEIGHBOURS = 5  # how many times as many people hold it as the values beside it (their median)
_FEWEST_VALUES = 8  # in columns of fewer values none is told from the others
MOST_SPECIAL = 4
LOWEST_CODE = -99
"""Codes are whole negative numbers, at least this, at most `MOST_SPECIAL` of them, `CODES_SHARE` of the rows in all."""
CODES_SHARE = 0.01
_NEIGHBOURS = 3  # on each side


def find_special_values(values: Floats, counts: Ints) -> Floats:
    """Find the special values among the different ones of a column, ascending, given how many rows hold each.

    Examples:
        >>> find_special_values(np.arange(-1.0, 20.0), np.array([30, 400, *([50] * 19)])).tolist()
        [-1.0, 0.0]
    """
    rows = int(counts.sum())
    special: set[float] = set()
    if len(values) >= _FEWEST_VALUES:
        for index in np.argsort(-counts, kind="stable")[:MOST_SPECIAL].tolist():
            at_edge = index in (0, len(values) - 1) or values[index] <= 0
            if counts[index] < _SHARE * rows or not at_edge:
                continue
            beside = np.concatenate(
                [counts[max(0, index - _NEIGHBOURS) : index], counts[index + 1 : index + 1 + _NEIGHBOURS]]
            )
            if counts[index] >= _TIMES_NEIGHBOURS * max(float(np.median(beside)), 1.0):
                special.add(float(values[index]))
        special |= _find_negative_codes(values, counts)
    return np.array(sorted(special))


def _find_negative_codes(values: Floats, counts: Ints) -> set[float]:
    """Return the negative codes of a column whose other values are not negative."""
    is_negative = values < 0
    codes = values[is_negative]
    are_codes = (
        0 < len(codes) <= MOST_SPECIAL
        and codes.min() >= LOWEST_CODE
        and bool((codes == np.round(codes)).all())
        and counts[is_negative].sum() >= CODES_SHARE * counts.sum()
    )
    return set(codes.tolist()) if are_codes else set()


def read_special(special: Any, columns: Sequence[str]) -> Mapping[str, list[float]] | None:
    """Read the option `special`: the values of each column that it names, in the table's spelling.

    ``'auto'`` finds them, ``'off'`` has none (None is returned), and a map has those of the columns that it names.
    """
    if special == "off":
        return None
    if special == "auto":
        return {}
    sentence = "special must be 'auto', 'off' or a map such as MAP {'cigarettes': [-8, 0]}"
    spelled = {name.lower(): name for name in columns}
    try:
        pairs = list(special.items() if isinstance(special, dict) else special)
        read = {str(name): [float(value) for value in values] for name, values in pairs}
    except (TypeError, ValueError, AttributeError):
        raise ValueError(f"{sentence}; got {special!r}.") from None
    match_columns("special", read, columns)
    return {spelled[name.lower()]: values for name, values in read.items()}


USUAL = 0.95
"""The share of the rows that have no more digits than a release has."""
_FLOATS_OFF = 2  # neighbouring floats by which a rounded number may be off after a computation such as a mean of two
_SPARE_BITS = 7  # of a float, below the last decimal: with fewer, unrounded numbers would be as near by chance
_MOST_TELLING = 16  # decimals that are tried to tell unrounded numbers apart
_TOLD_APART = 0.99  # of the different numbers
_SAMPLE = 1024  # rows looked at first: most columns of many digits turn out there to have them


def clean_floats(array: pa.Array) -> pa.Array:
    """Round floats to the decimals that all of them have up to a computation's rounding, 26.500000000000004 to 26.5.

    Values that differ by such rounding alone are one value where people are counted, and so are 0.0 and -0.0. All else
    stays as it is.

    Examples:
        >>> clean_floats(pa.array([26.500000000000004, 26.5, 31.25])).to_pylist()
        [26.5, 26.5, 31.25]
    """
    if not pa.types.is_floating(array.type):
        return array
    floats = read_floats(array)
    if (np.signbit(floats) & (floats == 0)).any():
        array = make_array(floats + floats.dtype.type(0), array.type, find_valid(array))
    floats = read_floats(array.drop_null() if array.null_count else array)
    if not len(floats) or not np.isfinite(floats).all():
        return array
    largest = float(np.abs(floats).max())
    bits = np.finfo(buffer_type(array.type)).nmant - _SPARE_BITS
    for decimals in range(FEWEST_DECIMALS, MOST_DECIMALS + 1):
        if largest * 10.0**decimals > 2.0**bits:
            return array
        for part in (floats[:_SAMPLE], floats):
            rounded = _round_floats(part, decimals)
            if not (np.abs(rounded - part) <= _FLOATS_OFF * np.spacing(np.abs(part))).all():
                break
        else:
            if (rounded == floats).all():
                return array
            valid = find_valid(array)
            if valid is None:
                return make_array(rounded, array.type, None)
            whole = np.zeros(len(valid))
            whole[valid] = rounded
            return make_array(whole, array.type, valid)
    return array


def with_usual_digits(column: NumberColumn, array: pa.Array) -> NumberColumn:
    """Give a fitted column, without NULLs, the digits of most of its values: 98 of 100 weights have one decimal."""
    if not is_number(column.type):
        return column
    if isinstance(column.low, int):
        return _with_usual_steps(column, read_codes(column.name, array))
    floats = read_floats(array)
    most = MOST_DECIMALS + 1 if column.decimals is None else column.decimals
    for decimals in range(FEWEST_DECIMALS, most):
        if np.count_nonzero(_round_floats(floats, decimals) == floats) >= USUAL * len(floats):
            return replace(column, decimals=decimals)
    return column


def with_telling_digits(column: NumberColumn, array: pa.Array) -> NumberColumn:
    """Give a column of unrounded numbers the decimals that tell its values apart: others only say how it was computed.

    Two numbers that differ in their last bits alone would be counted as two values, of one person each.
    """
    if not pa.types.is_floating(column.type) or column.decimals is not None:
        return column
    floats = read_floats(array)
    ordered = np.sort(floats[~np.isnan(floats)])
    values = ordered[find_run_starts(ordered)]
    for decimals in range(FEWEST_DECIMALS, _MOST_TELLING):
        if len(find_run_starts(_round_floats(values, decimals))) >= _TOLD_APART * len(values):
            return replace(column, decimals=decimals)
    return column


def _with_usual_steps(column: NumberColumn, numbers: Ints) -> NumberColumn:
    """Give whole numbers and decimals the largest steps of ten, hundred ... that most have, and their range."""
    low, high, step = int(column.low), int(column.high), 1
    if zero_of(column.type) or high - low >= 2**62:  # codes that do not count from 0, and sums that would not fit
        return column
    while 20 * step <= high - low and np.count_nonzero(numbers % (10 * step) == 0) >= USUAL * len(numbers):
        step *= 10
    if step <= column.step:
        return column
    return replace(column, low=-(-low // step) * step, high=high // step * step, step=step)


def _round_floats(floats: Reals, decimals: int) -> Reals:
    return np.round(floats.astype(np.float64, copy=False), decimals).astype(floats.dtype, copy=False)


FEW_VALUES = 12  # whole numbers of at most as many values are categories


@dataclass(frozen=True)
class SplitOptions:
    """Options of splitting columns.

    Attributes:
        k: The least number of people that hold a choice.
        special: The special values of columns, where they are named; None: none at all.
        categories: The numbers that are categories; None: whole ones of at most twelve values.
        nulls: ``'error'`` or ``'category'``.
        chance: Draws, for each category, how many people more must share it than k, up to k / 4: where it is exactly k,
            whether the category comes out would tell whether one of them is there. None: none.
    """

    k: int
    special: Mapping[str, list[float]] | None
    categories: Sequence[str] | None
    nulls: str
    chance: np.random.Generator | None = None

    def is_rare(self, holders: Ints) -> Bools:
        """Tell which values too few people share; those of fewer than k only where it would be all of them."""
        is_rare = holders < self.k
        if self.chance is not None:
            more = self.chance.integers(0, self.k // 4 + 1, len(holders))
            is_rare = np.where((holders < self.k + more).all(), is_rare, holders < self.k + more)
        return np.asarray(is_rare)


def split_columns(table: pa.Table, people: Ints | None, reading: SplitOptions) -> list[ColumnParts]:
    """Split the columns of a table.

    Raises:
        ValueError: For NULLs (unless asked for), identifiers, too many categories, NaN and infinity, and types that are
            no number, text, boolean or time.
    """
    if reading.nulls == "error":
        refuse_nulls({name: column.null_count for name, column in zip(table.column_names, table.columns, strict=True)})
    return [
        _split_column(name, clean_floats(join_chunks(column)), people, reading)
        for name, column in zip(table.column_names, table.columns, strict=True)
    ]


def join_chunks(column: pa.ChunkedArray) -> pa.Array:
    """Join the chunks of a column."""
    if column.num_chunks > 1 and pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries()
    whole = column.combine_chunks()
    return whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole


def _split_column(name: str, array: pa.Array, people: Ints | None, reading: SplitOptions) -> ColumnParts:
    if arrow_kind(name, array.type) == "category":
        return _split_categories(name, array, people, reading)
    if not is_number(array.type) or array.null_count == len(array):
        return split_number(name, array, people, reading, np.zeros(0))
    values = read_doubles(array)
    known = values[~np.isnan(values)] if array.null_count else values
    distinct, counts = np.unique(known, return_counts=True)
    if not np.isfinite(distinct[[0, -1]]).all():
        raise ValueError(f'column "{name}" holds NaN or infinity; remove these rows or set them to NULL.')
    if is_category(name, distinct, reading):
        return _split_number_categories(name, array, values, distinct, people, reading)
    refuse_identifier(name, known, len(distinct))
    if reading.special is None:
        special = np.zeros(0)
    elif name in reading.special:
        special = np.intersect1d(distinct, reading.special[name])
    else:
        special = find_special_values(distinct, counts)
    return split_number(name, array, people, reading, special)


def is_category(name: str, distinct: Floats, reading: SplitOptions) -> bool:
    """Tell whether a number is a category: named as one or, where none is named, whole and of few values."""
    if reading.categories is not None:
        return name in reading.categories
    return len(distinct) <= FEW_VALUES and bool((distinct == np.rint(distinct)).all())


def _split_categories(name: str, array: pa.Array, people: Ints | None, reading: SplitOptions) -> ColumnParts:
    indices, listed = read_categories(array)
    order = sorted(range(len(listed)), key=lambda index: (listed[index] is None, str(listed[index])))
    rank = np.empty(len(listed) + 1, np.int64)
    rank[order] = np.arange(len(order))
    rank[-1] = len(listed)
    codes = rank.take(indices, mode="wrap")  # -1, NULL, is the last
    used = np.bincount(codes, minlength=len(rank)) > 0
    codes = (np.cumsum(used) - 1)[codes]
    sorted_values: list[Any] = [*(listed[index] for index in order), None]
    values = [sorted_values[index] for index in np.flatnonzero(used)]
    if not pa.types.is_boolean(array.type):
        refuse_distinct_texts(name, len(values) - (None in values), len(array))
        refuse_many_categories(name, len(values) - (None in values))
    return _merge_categories(name, array, codes, values, people, reading)


def _merge_categories(
    name: str, array: pa.Array, codes: Ints, values: list[Any], people: Ints | None, reading: SplitOptions
) -> ColumnParts:
    """Merge texts shared by fewer than k people (`rest_label`); where these are few, too, give them the commonest."""
    holders = count_people(codes, people, len(values))
    is_rare = reading.is_rare(holders)
    if not is_rare.any():
        return ColumnParts(name, array.type, codes, tuple(values), None, array)
    rare_people = count_people(is_rare[codes].astype(np.int64), people, 2)[1]
    if is_rare.all():
        raise make_unshared_error(name, reading.k)
    texts = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
    target, merged = int(np.argmax(holders)), None
    if is_text(texts) and rare_people >= reading.k:
        shared = [value for value, rare in zip(values, is_rare.tolist(), strict=True) if not rare]
        merged = label_rest(shared)
        while merged in shared:
            merged = "{" + merged + "}"
        target = len(values)
        values = [*values, merged]
    return replace(_renumber_values(name, array, np.where(is_rare[codes], target, codes), values), merged=merged)


def _renumber_values(name: str, array: pa.Array, codes: Ints, values: list[Any]) -> ColumnParts:
    """Give new numbers to the values that are left, NULL last."""
    left = sorted(np.unique(codes).tolist(), key=lambda code: values[code] is None)
    number = np.zeros(len(values), np.int64)
    number[left] = np.arange(len(left))
    return ColumnParts(name, array.type, number[codes], tuple(values[code] for code in left), None, array)


def _split_number_categories(
    name: str, array: pa.Array, values: Floats, distinct: Floats, people: Ints | None, reading: SplitOptions
) -> ColumnParts:
    """Take numbers as categories; those shared by fewer than k people become the nearest that more hold."""
    refuse_distinct_texts(name, len(distinct) if len(distinct) > FEW_VALUES else 1, len(array))
    refuse_many_categories(name, len(distinct))
    is_known = ~np.isnan(values)
    codes = np.searchsorted(distinct, np.where(is_known, values, distinct[0]))
    codes[~is_known] = len(distinct)
    holders = count_people(codes, people, len(distinct) + 1)
    is_rare = reading.is_rare(holders)
    if is_rare.all():
        raise make_unshared_error(name, reading.k)
    to = np.arange(len(distinct) + 1)
    held = np.flatnonzero(~is_rare[:-1])
    rare = np.flatnonzero(is_rare[:-1])
    if len(held):
        to[rare] = held[np.abs(distinct[held] - distinct[rare][:, None]).argmin(axis=1)]
    else:
        to[rare] = len(distinct)
    if is_rare[-1]:
        to[-1] = int(np.argmax(holders[:-1]))
    firsts = np.zeros(len(distinct) + 1, np.int64)
    firsts[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    listed = [*array.take(pa.array(firsts[:-1])).to_pylist(), None]
    return _renumber_values(name, array, to[codes], listed)


def make_unshared_error(name: str, k: int) -> ValueError:
    """Say that no value of a column may be released."""
    return ValueError(
        f'column "{name}" has no value shared by at least {k} people; generalize it, lower k or leave it out of cols.'
    )


def split_number(
    name: str, array: pa.Array, people: Ints | None, reading: SplitOptions, special: Floats
) -> ColumnParts:
    """Tell special values and NULL from regular numbers; where fewer than k people hold one, it goes to the nearest."""
    valid = find_valid(array)
    values = read_doubles(array) if len(special) else np.zeros(len(array))
    codes = np.full(len(array), len(special) + 1, np.int64)
    for code, value in enumerate(special.tolist()):
        codes[values == value] = code
    if valid is not None:
        codes[~valid] = len(special)
    holders = count_people(codes, people, len(special) + 2)
    to = np.arange(len(special) + 2)
    held = np.flatnonzero(holders[: len(special)] >= reading.k)
    for code in np.flatnonzero(holders[: len(special)] < reading.k).tolist():
        to[code] = held[np.abs(special[held] - special[code]).argmin()] if len(held) else len(special) + 1
    if holders[len(special)] < reading.k:  # NULLs of a few: a regular number takes their place
        to[len(special)] = len(special) + 1
    if count_people((to[codes] == len(special) + 1).astype(np.int64), people, 2)[1] < reading.k:
        return _merge_regular(name, array, to[codes], _take_values(special, values, array), reading.k)
    codes = to[codes]
    is_regular = codes == len(special) + 1
    if valid is not None:
        is_regular &= valid
    numbers = array.filter(pa.array(is_regular))
    encoding, _ = fit_columns(pa.table({name: numbers}), log=[], lenient=True)
    regular = encoding.columns[0]
    assert isinstance(regular, NumberColumn)
    left = [code for code in range(len(special) + 1) if to[code] == code and holders[code]]
    number = np.full(len(special) + 2, len(left))
    number[left] = np.arange(len(left))
    known = _take_values(special, values, array)
    outcomes = tuple([*known, None][code] for code in left)
    return ColumnParts(name, array.type, number[codes], outcomes, with_usual_digits(regular, numbers), array)


def _merge_regular(name: str, array: pa.Array, codes: Ints, special: list[Any], k: int) -> ColumnParts:
    """Give the special value that most hold to the few that have another number."""
    values: list[Any] = [*special, None, None]
    counts = np.bincount(codes, minlength=len(values))
    counts[-1] = 0
    if not counts.any():
        raise make_unshared_error(name, k)
    return _renumber_values(name, array, np.where(codes == len(special) + 1, int(np.argmax(counts)), codes), values)


def _take_values(numbers: Floats, values: Floats, array: pa.Array) -> list[Any]:
    """Return the values of a column, of its type, that were taken as these numbers."""
    firsts = [int(np.argmax(values == number)) for number in numbers.tolist()]
    return list(array.take(pa.array(firsts, pa.int64())).to_pylist())

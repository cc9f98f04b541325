"""Split columns into choices and numbers: which numbers are special or categories, and which values are merged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from duckanon._core.common.arrays import Bools, Floats, Ints, is_number, is_text
from duckanon._core.common.made_labels import rest_label
from duckanon._core.common.people import people_in
from duckanon._core.encoding.arrow import indices_of, kind_of, valid_of
from duckanon._core.encoding.column_codecs import NumberColumn
from duckanon._core.encoding.digits import cleaned, with_usual_digits
from duckanon._core.encoding.fit import fit, refuse_nulls
from duckanon._core.encoding.identifiers import refuse_distinct_texts, refuse_identifier, refuse_many_categories
from duckanon._core.encoding.parts import ColumnParts, doubles
from duckanon._core.encoding.special import special_values

FEW_VALUES = 12  # whole numbers of at most as many values are categories


@dataclass(frozen=True)
class Reading:
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


def split_columns(table: pa.Table, people: Ints | None, reading: Reading) -> list[ColumnParts]:
    """Split the columns of a table.

    Raises:
        ValueError: For NULLs (unless asked for), identifiers, too many categories, NaN and infinity, and types that are
            no number, text, boolean or time.
    """
    if reading.nulls == "error":
        refuse_nulls({name: column.null_count for name, column in zip(table.column_names, table.columns, strict=True)})
    return [
        _parts(name, cleaned(whole(column)), people, reading)
        for name, column in zip(table.column_names, table.columns, strict=True)
    ]


def whole(column: pa.ChunkedArray) -> pa.Array:
    """Join the chunks of a column."""
    if column.num_chunks > 1 and pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries()
    whole = column.combine_chunks()
    return whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole


def _parts(name: str, array: pa.Array, people: Ints | None, reading: Reading) -> ColumnParts:
    if kind_of(name, array.type) == "category":
        return _categories(name, array, people, reading)
    if not is_number(array.type) or array.null_count == len(array):
        return number_parts(name, array, people, reading, np.zeros(0))
    values = doubles(array)
    known = values[~np.isnan(values)] if array.null_count else values
    distinct, counts = np.unique(known, return_counts=True)
    if not np.isfinite(distinct[[0, -1]]).all():
        raise ValueError(f'column "{name}" holds NaN or infinity; remove these rows or set them to NULL.')
    if is_category(name, distinct, reading):
        return _number_categories(name, array, values, distinct, people, reading)
    refuse_identifier(name, known, len(distinct))
    if reading.special is None:
        special = np.zeros(0)
    elif name in reading.special:
        special = np.intersect1d(distinct, reading.special[name])
    else:
        special = special_values(distinct, counts)
    return number_parts(name, array, people, reading, special)


def is_category(name: str, distinct: Floats, reading: Reading) -> bool:
    """Tell whether a number is a category: named as one or, where none is named, whole and of few values."""
    if reading.categories is not None:
        return name in reading.categories
    return len(distinct) <= FEW_VALUES and bool((distinct == np.rint(distinct)).all())


def _categories(name: str, array: pa.Array, people: Ints | None, reading: Reading) -> ColumnParts:
    indices, listed = indices_of(array)
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
    return _merged_categories(name, array, codes, values, people, reading)


def _merged_categories(
    name: str, array: pa.Array, codes: Ints, values: list[Any], people: Ints | None, reading: Reading
) -> ColumnParts:
    """Merge texts shared by fewer than k people (`rest_label`); where these are few, too, give them the commonest."""
    holders = people_in(codes, people, len(values))
    is_rare = reading.is_rare(holders)
    if not is_rare.any():
        return ColumnParts(name, array.type, codes, tuple(values), None, array)
    rare_people = people_in(is_rare[codes].astype(np.int64), people, 2)[1]
    if is_rare.all():
        raise nothing_shared(name, reading.k)
    texts = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
    target, merged = int(np.argmax(holders)), None
    if is_text(texts) and rare_people >= reading.k:
        shared = [value for value, rare in zip(values, is_rare.tolist(), strict=True) if not rare]
        merged = rest_label(shared)
        while merged in shared:
            merged = "{" + merged + "}"
        target = len(values)
        values = [*values, merged]
    return replace(_recoded(name, array, np.where(is_rare[codes], target, codes), values), merged=merged)


def _recoded(name: str, array: pa.Array, codes: Ints, values: list[Any]) -> ColumnParts:
    """Give new numbers to the values that are left, NULL last."""
    left = sorted(np.unique(codes).tolist(), key=lambda code: values[code] is None)
    number = np.zeros(len(values), np.int64)
    number[left] = np.arange(len(left))
    return ColumnParts(name, array.type, number[codes], tuple(values[code] for code in left), None, array)


def _number_categories(
    name: str, array: pa.Array, values: Floats, distinct: Floats, people: Ints | None, reading: Reading
) -> ColumnParts:
    """Take numbers as categories; those shared by fewer than k people become the nearest that more hold."""
    refuse_distinct_texts(name, len(distinct) if len(distinct) > FEW_VALUES else 1, len(array))
    refuse_many_categories(name, len(distinct))
    is_known = ~np.isnan(values)
    codes = np.searchsorted(distinct, np.where(is_known, values, distinct[0]))
    codes[~is_known] = len(distinct)
    holders = people_in(codes, people, len(distinct) + 1)
    is_rare = reading.is_rare(holders)
    if is_rare.all():
        raise nothing_shared(name, reading.k)
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
    return _recoded(name, array, to[codes], listed)


def nothing_shared(name: str, k: int) -> ValueError:
    """Say that no value of a column may be released."""
    return ValueError(
        f'column "{name}" has no value shared by at least {k} people; generalize it, lower k or leave it out of cols.'
    )


def number_parts(name: str, array: pa.Array, people: Ints | None, reading: Reading, special: Floats) -> ColumnParts:
    """Tell special values and NULL from regular numbers; where fewer than k people hold one, it goes to the nearest."""
    valid = valid_of(array)
    values = doubles(array) if len(special) else np.zeros(len(array))
    codes = np.full(len(array), len(special) + 1, np.int64)
    for code, value in enumerate(special.tolist()):
        codes[values == value] = code
    if valid is not None:
        codes[~valid] = len(special)
    holders = people_in(codes, people, len(special) + 2)
    to = np.arange(len(special) + 2)
    held = np.flatnonzero(holders[: len(special)] >= reading.k)
    for code in np.flatnonzero(holders[: len(special)] < reading.k).tolist():
        to[code] = held[np.abs(special[held] - special[code]).argmin()] if len(held) else len(special) + 1
    if holders[len(special)] < reading.k:  # NULLs of a few: a regular number takes their place
        to[len(special)] = len(special) + 1
    if people_in((to[codes] == len(special) + 1).astype(np.int64), people, 2)[1] < reading.k:
        return _without_regular(name, array, to[codes], _values_at(special, values, array), reading.k)
    codes = to[codes]
    is_regular = codes == len(special) + 1
    if valid is not None:
        is_regular &= valid
    numbers = array.filter(pa.array(is_regular))
    encoding, _ = fit(pa.table({name: numbers}), log=[], lenient=True)
    regular = encoding.columns[0]
    assert isinstance(regular, NumberColumn)
    left = [code for code in range(len(special) + 1) if to[code] == code and holders[code]]
    number = np.full(len(special) + 2, len(left))
    number[left] = np.arange(len(left))
    known = _values_at(special, values, array)
    outcomes = tuple([*known, None][code] for code in left)
    return ColumnParts(name, array.type, number[codes], outcomes, with_usual_digits(regular, numbers), array)


def _without_regular(name: str, array: pa.Array, codes: Ints, special: list[Any], k: int) -> ColumnParts:
    """Give the special value that most hold to the few that have another number."""
    values: list[Any] = [*special, None, None]
    counts = np.bincount(codes, minlength=len(values))
    counts[-1] = 0
    if not counts.any():
        raise nothing_shared(name, k)
    return _recoded(name, array, np.where(codes == len(special) + 1, int(np.argmax(counts)), codes), values)


def _values_at(numbers: Floats, values: Floats, array: pa.Array) -> list[Any]:
    """Return the values of a column, of its type, that were taken as these numbers."""
    firsts = [int(np.argmax(values == number)) for number in numbers.tolist()]
    return list(array.take(pa.array(firsts, pa.int64())).to_pylist())

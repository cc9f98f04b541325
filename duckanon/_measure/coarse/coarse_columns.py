"""One column of an original and its release, whose cells may be labels or intervals, read as what they hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon._core.common.arrays import Floats, is_text, is_time
from duckanon._core.common.labels import MICROSECONDS_PER_DAY
from duckanon._core.common.made_labels import EVERYTHING, MARKED, NULL, OTHER, QUOTED_MARKS, QUOTED_VALUES
from duckanon._core.encoding.arrow import array_of
from duckanon._core.encoding.pairs import CategoryPair, kind_of, numbers_of, pair, plain, step_of
from duckanon._core.privacy.cells import MISSING, CellColumn, value_column
from duckanon._measure.queries import labels
from duckanon._measure.queries.labels import Meanings

_MOST_DECIMALS = 6  # numbers with more decimals count as unrounded


@dataclass(frozen=True)
class ReadColumn:
    """A column of both tables in plain numbers: numbers, days since 1970, codes of categories; NULL is `MISSING`."""

    name: str
    original: Floats
    cells: CellColumn  # of the released rows
    numbers: Callable[[pa.ChunkedArray], Floats]  # takes the column of another table in the same numbers
    array: Callable[[Floats], pa.Array]  # takes numbers back, as a column of the original's type


def is_coarse(original: pa.DataType, released: pa.DataType, meanings: Meanings) -> bool:
    """Tell whether a released column holds labels or intervals instead of values."""
    if kind_of(original) in ("number", "time"):
        return labels.is_text(released) or pa.types.is_struct(released)
    return labels.is_text(released) and (pa.types.is_boolean(original) or (labels.is_text(original) and bool(meanings)))


def read_column(name: str, original: pa.ChunkedArray, released: pa.ChunkedArray, meanings: Meanings) -> ReadColumn:
    """Read a column in both tables, with the meanings of released labels that are not simply values."""
    if kind_of(original.type) in ("number", "time"):
        return _numbers(name, original, released, meanings)
    return _categories(name, original, released, meanings)


def _numbers(name: str, original: pa.ChunkedArray, released: pa.ChunkedArray, meanings: Meanings) -> ReadColumn:
    kind = original.type

    def numbers(column: pa.ChunkedArray) -> Floats:
        plain_numbers = numbers_of(name, column)
        return np.where(np.isnan(plain_numbers), MISSING, plain_numbers)

    values = numbers(original)
    known = values[values < MISSING]
    limits = (float(known.min()), float(known.max())) if len(known) else (np.nan, np.nan)
    decimals = _decimals(known) if pa.types.is_floating(kind) else None
    if pa.types.is_struct(released.type):
        cells = _intervals(name, kind, released, limits, decimals, has_null=len(known) < len(values))
    elif labels.is_text(released.type):
        step = float(np.array_equal(known, np.floor(known)))  # 1 where the ends of labels are rounded to whole numbers
        scale = MICROSECONDS_PER_DAY if is_time(kind) else 1.0
        cells = _labels(name, released, meanings, limits, step, scale, decimals)
    else:
        cells = value_column(numbers(released))
    return ReadColumn(name, values, cells, numbers, lambda drawn: _typed(drawn, kind))


def _intervals(
    name: str,
    kind: pa.DataType,
    released: pa.ChunkedArray,
    limits: tuple[float, float],
    decimals: int | None,
    *,
    has_null: bool,
) -> CellColumn:
    """Take intervals; a NULL is a value where the original has some, and says nothing where it has none."""
    low, high = labels.interval_ends(name, kind, released)
    ends = np.column_stack([low, high])
    absent = np.isnan(low)
    ends[absent] = np.inf if has_null else (-np.inf, np.inf)
    different, codes = np.unique(ends, axis=0, return_inverse=True)
    is_null = np.isposinf(different[:, 0])
    low, high = np.where(is_null, np.nan, different[:, 0]), np.where(is_null, np.nan, different[:, 1])
    starts = np.concatenate([[0], np.cumsum(is_null)])
    members = np.full(int(is_null.sum()), MISSING)
    return CellColumn(codes.reshape(-1), low, high, starts, members, limits, step_of(kind), decimals)


def _labels(
    name: str,
    released: pa.ChunkedArray,
    meanings: Meanings,
    limits: tuple[float, float],
    step: float,
    scale: float,
    decimals: int | None,
) -> CellColumn:
    """Take labels of numbers or dates."""
    codes, texts = labels.different_labels(released)
    low, high = labels.intervals_of(name, texts, meanings, limits, scale)
    members: list[list[float]] = []
    for index, text in enumerate(texts):
        meaning = meanings.get(text) or labels.Meaning("value")
        if meaning.rule == "listed":
            members.append([MISSING if number is None else number / scale for _, number in meaning.values])
        else:
            members.append([MISSING] if text is None and meaning.rule == "value" else [])
        if meaning.rule == "everything":
            low[index], high[index] = -np.inf, np.inf
        elif meaning.rule == "interval" and not np.isnan(low[index]):
            low[index] = low[index] if np.isfinite(meaning.low) else -np.inf
            high[index] = high[index] if np.isfinite(meaning.high) else np.inf
    return _cells(codes.astype(np.int64), low, high, members, limits, step, decimals)


def _categories(name: str, original: pa.ChunkedArray, released: pa.ChunkedArray, meanings: Meanings) -> ReadColumn:
    kind = original.type
    as_text = pa.types.is_boolean(kind) and labels.is_text(released.type)
    both = pair(name, original.cast(pa.string()) if as_text else original, released)
    assert isinstance(both, CategoryPair)
    codes = {text: code if text is not None else MISSING for code, text in enumerate(both.texts)}
    present = np.flatnonzero(np.bincount(both.original, minlength=len(both.texts)))
    in_numbers = np.array([codes[text] for text in both.texts], np.float64)

    def numbers(column: pa.ChunkedArray) -> Floats:
        """Give categories that neither table has a number that no cell holds."""
        indices, texts = labels.different_labels(plain(column.cast(pa.string()) if as_text else column))
        written = [None if text is None else str(text) for text in texts]
        return np.array([codes.get(text, MISSING if text is None else -1.0) for text in written], np.float64)[indices]

    def array(drawn: Floats) -> pa.Array:
        indices = pa.array(np.where(drawn < MISSING, drawn, 0).astype(np.int64), mask=drawn == MISSING)
        values = pa.array(both.texts, pa.string()).take(indices)
        return values.cast(pa.bool_()) if as_text else values

    members = []
    for text in both.texts:
        meaning = meanings.get(text)
        if meaning is None:
            members.append([codes[text]])
        elif meaning.rule == "everything":
            members.append(in_numbers[present].tolist())
        else:
            members.append([codes.get(value, MISSING) for value, _ in meaning.values])
    none = np.full(len(members), np.nan)
    cells = _cells(both.released, none, none, members, (np.nan, np.nan), 0.0, None)
    return ReadColumn(name, in_numbers[both.original], cells, numbers, array)


def _cells(
    codes: pa.Array,
    low: Floats,
    high: Floats,
    members: list[list[float]],
    limits: tuple[float, float],
    step: float,
    decimals: int | None,
) -> CellColumn:
    starts = np.concatenate([[0], np.cumsum([len(listed) for listed in members])]).astype(np.int64)
    # Sorted, since meanings come in any order, and a seed promises the same draw.
    listed = np.array([value for part in members for value in sorted(part)], np.float64)
    return CellColumn(codes, low, high, starts, listed, limits, step, decimals)


def _decimals(known: Floats) -> int | None:
    """Return how many decimals numbers have, None where that is more than six."""
    enough = (places for places in range(_MOST_DECIMALS + 1) if np.array_equal(np.round(known, places), known))
    return next(enough, None)


def _typed(numbers: Floats, kind: pa.DataType) -> pa.Array:
    """Make a column of the original's type out of plain numbers."""
    valid = numbers < MISSING
    known = np.where(valid, numbers, 0.0)
    if is_time(kind):
        moments = np.rint(known * MICROSECONDS_PER_DAY).astype(np.int64)
        zone = kind.tz if pa.types.is_timestamp(kind) else None
        return pa.array(moments, pa.timestamp("us"), mask=~valid).cast(pa.timestamp("us", zone)).cast(kind, safe=False)
    if pa.types.is_decimal(kind):
        return array_of(np.rint(known * 10.0**kind.scale).astype(np.int64), kind, valid)
    if pa.types.is_integer(kind):
        return pa.array(np.rint(known), mask=~valid).cast(kind, safe=False)
    return pa.array(known, pa.float64(), mask=~valid)


def with_sets(table: pa.Table) -> pa.Table:
    """Return a table whose lists of texts are labels: the value where there is one, ``{a, b}`` where there are more."""
    for place, field in enumerate(table.schema):
        is_list = pa.types.is_list(field.type) or pa.types.is_large_list(field.type)
        if is_list and is_text(field.type.value_type):
            chunks = [_set_labels(chunk) for chunk in table.column(place).chunks]
            table = table.set_column(place, field.name, pa.chunked_array(chunks, pa.string()))
    return table


def _set_labels(lists: pa.Array) -> pa.Array:
    """Write lists as ``anon._list_text`` does, which gives these labels their meanings."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    values = lists.flatten().cast(pa.string())
    ends = np.concatenate([[0], np.cumsum(lengths)])
    # Values that would be read as something else stand in quotation marks (`common.made_labels`).
    in_marks = pc.binary_join_element_wise('"', pc.replace_substring(values, '"', '""'), '"', "")
    is_hard = pc.or_(pc.match_substring_regex(values, QUOTED_MARKS), pc.is_in(values, pa.array(QUOTED_VALUES)))
    is_hard = pc.or_(is_hard, pc.ends_with(values, EVERYTHING))
    is_marked = pc.match_substring_regex(values, f"^({MARKED}|{{{OTHER}}})$")  # {other} is no value
    members = pc.if_else(is_marked, pc.utf8_slice_codeunits(values, 1, -1), pc.if_else(is_hard, in_marks, values))
    named = pa.LargeListArray.from_arrays(pa.array(ends, pa.int64()), members.fill_null(NULL))
    sets = pc.binary_join_element_wise("{", pc.binary_join(named, ", "), "}", "")
    alone = values.take(pa.array(ends[:-1], mask=lengths != 1))
    is_like = pc.or_(pc.starts_with(alone, "{"), pc.ends_with(alone, EVERYTHING)).fill_null(False)
    labels = pc.if_else(pc.and_not(pa.array(lengths == 1), is_like), alone, sets)
    return pc.if_else(lists.is_null(), pa.scalar(None, pa.string()), labels)

"""An original, its release and other tables side by side, whatever the release's cells are: values, labels, boxes.

One column of an original and its release, whose cells may be labels or intervals, read as what they hold.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon._core.common.arrays import Floats, Matrix, is_text, is_time
from duckanon._core.common.labels import (
    EVERYTHING,
    MARKED,
    MICROSECONDS_PER_DAY,
    NULL,
    OTHER,
    QUOTED_MARKS,
    QUOTED_VALUES,
)
from duckanon._core.encoding.arrow import make_array
from duckanon._core.encoding.measurement_encoding import (
    CodingOptions,
    EncodedTables,
    align_release,
    align_tables,
    encode_tables,
)
from duckanon._core.encoding.pairs import (
    CategoryPair,
    decode_storage,
    pair_columns,
    pair_kind,
    read_column_numbers,
    step_of,
)
from duckanon._core.privacy.cells import MISSING, CellColumn, make_value_column
from duckanon._measure.coarse.label_meanings import HierarchyRows, label_meanings
from duckanon._measure.queries import labels
from duckanon._measure.queries.labels import Meanings, is_text_column

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
    if pair_kind(original) in ("number", "time"):
        return labels.is_text_column(released) or pa.types.is_struct(released)
    return labels.is_text_column(released) and (
        pa.types.is_boolean(original) or (labels.is_text_column(original) and bool(meanings))
    )


def read_column(name: str, original: pa.ChunkedArray, released: pa.ChunkedArray, meanings: Meanings) -> ReadColumn:
    """Read a column in both tables, with the meanings of released labels that are not simply values."""
    if pair_kind(original.type) in ("number", "time"):
        return _numbers(name, original, released, meanings)
    return _categories(name, original, released, meanings)


def _numbers(name: str, original: pa.ChunkedArray, released: pa.ChunkedArray, meanings: Meanings) -> ReadColumn:
    kind = original.type

    def numbers(column: pa.ChunkedArray) -> Floats:
        plain_numbers = read_column_numbers(name, column)
        return np.where(np.isnan(plain_numbers), MISSING, plain_numbers)

    values = numbers(original)
    known = values[values < MISSING]
    limits = (float(known.min()), float(known.max())) if len(known) else (np.nan, np.nan)
    decimals = _decimals(known) if pa.types.is_floating(kind) else None
    if pa.types.is_struct(released.type):
        cells = _intervals(name, kind, released, limits, decimals, has_null=len(known) < len(values))
    elif labels.is_text_column(released.type):
        step = float(np.array_equal(known, np.floor(known)))  # 1 where the ends of labels are rounded to whole numbers
        scale = MICROSECONDS_PER_DAY if is_time(kind) else 1.0
        cells = _labels(name, released, meanings, limits, step, scale, decimals)
    else:
        cells = make_value_column(numbers(released))
    return ReadColumn(name, values, cells, numbers, lambda drawn: _type_column(drawn, kind))


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
    as_text = pa.types.is_boolean(kind) and labels.is_text_column(released.type)
    both = pair_columns(name, original.cast(pa.string()) if as_text else original, released)
    assert isinstance(both, CategoryPair)
    codes = {text: code if text is not None else MISSING for code, text in enumerate(both.texts)}
    present = np.flatnonzero(np.bincount(both.original, minlength=len(both.texts)))
    in_numbers = np.array([codes[text] for text in both.texts], np.float64)

    def numbers(column: pa.ChunkedArray) -> Floats:
        """Give categories that neither table has a number that no cell holds."""
        indices, texts = labels.different_labels(decode_storage(column.cast(pa.string()) if as_text else column))
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


def _type_column(numbers: Floats, kind: pa.DataType) -> pa.Array:
    """Make a column of the original's type out of plain numbers."""
    valid = numbers < MISSING
    known = np.where(valid, numbers, 0.0)
    if is_time(kind):
        moments = np.rint(known * MICROSECONDS_PER_DAY).astype(np.int64)
        zone = kind.tz if pa.types.is_timestamp(kind) else None
        return pa.array(moments, pa.timestamp("us"), mask=~valid).cast(pa.timestamp("us", zone)).cast(kind, safe=False)
    if pa.types.is_decimal(kind):
        return make_array(np.rint(known * 10.0**kind.scale).astype(np.int64), kind, valid)
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


RELEASE = "_duckanon_release"
"""The column that names the release of a row where several are stacked (`duckanon._bridge.measured_tables`)."""


@dataclass(frozen=True)
class Judged:
    """Tables to compare."""

    original: pa.Table
    released: pa.Table  # as it is, under the original's names and in their order
    outsiders: list[pa.Table | None]
    coarse: Mapping[str, ReadColumn]  # by name, the released columns whose cells are no plain values
    meanings: Mapping[str, Meanings]

    def draw_values(self, random: np.random.Generator) -> pa.Table:
        """Return a table of values: in place of every coarse cell, one drawn from what it holds, all equally likely."""
        table = self.released
        for name, column in self.coarse.items():
            values = column.array(column.cells.draw(random))
            table = table.set_column(table.column_names.index(name), name, pa.chunked_array([values]))
        return table

    @functools.cached_property
    def columns(self) -> list[ReadColumn]:
        """All columns as what they hold; values hold themselves."""
        return [
            self.coarse.get(name) or read_column(name, self.original.column(name), self.released.column(name), {})
            for name in self.original.column_names
        ]

    def plain(self, table: pa.Table) -> Floats:
        """Take a table of values in the numbers of the columns, a column each."""
        return np.column_stack([column.numbers(table.column(column.name)) for column in self.columns])


def read_tables(
    original: pa.Table | None,
    released: pa.Table | None,
    hierarchies: HierarchyRows = None,
    *,
    whole: tuple[pa.Table, pa.Table] | None = None,
    **outsiders: pa.Table | None,
) -> Judged:
    """Put tables side by side and read the release; the first two are None where no row came.

    Where the two are samples, `whole` are the tables by which labels are read. An error calls `outsiders` by their
    names here. A ValueError refuses tables without rows, columns that hold different kinds of values, and labels that
    are not understood.
    """
    original, released = align_release(original, released)
    released = with_sets(released)
    labels = read_labels(*(whole or (original, released)), hierarchies)
    for name in original.column_names:
        if _is_zoned(original.schema.field(name).type) and is_text_column(released.schema.field(name).type):
            original = _local(original, name)  # labels tell the time of the session's zone
            outsiders = {role: None if table is None else _local(table, name) for role, table in outsiders.items()}
    coarse = {
        name: read_column(name, original.column(name), released.column(name), labels[name])
        for name in original.column_names
        if is_coarse(original.schema.field(name).type, released.schema.field(name).type, labels[name])
    }
    for name in original.column_names:
        if name not in coarse:
            _refuse_unknown_labels(name, original.column(name), released.column(name))
    values = released
    for name in coarse:  # read already: as far as kinds are compared, it is like the original
        values = values.set_column(
            values.column_names.index(name), name, pa.nulls(values.num_rows, original.schema.field(name).type)
        )
    original, _, more = align_tables(original, values, **outsiders)
    return Judged(original, released, more, coarse, labels)


def read_labels(original: pa.Table, released: pa.Table, hierarchies: HierarchyRows) -> dict[str, Meanings]:
    """Return the meanings of labels by column, under the names of the original's."""
    original, released = align_release(original, released)
    return label_meanings(original, with_sets(released), hierarchies)


def rows_of(stacked: pa.Table, name: str) -> pa.Table:
    """Return the rows of one of several stacked releases, each in a column of structs of its own, NULL elsewhere."""
    rows = stacked.filter(pc.equal(stacked[RELEASE], name)).drop_columns([RELEASE])
    filled = next(column for column in rows.columns if column.null_count < len(column))
    return pa.Table.from_struct_array(filled)


@dataclass(frozen=True)
class JudgedMatrices:
    """The tables as matrices with one encoding, fitted to the original."""

    values: EncodedTables  # of a coarse release, each row is the mean of the values that its cells hold
    variances: Matrix | None  # of these, for every released row and matrix column; None where cells are values


def matrices(tables: Judged, coding: CodingOptions) -> JudgedMatrices:
    """Code tables by the original; a coarse cell becomes the mean and variance of what it holds."""
    if not tables.coarse:
        return JudgedMatrices(encode_tables(tables.original, tables.released, tables.outsiders, coding), None)
    first = encode_tables(tables.original, _standing_in(tables), tables.outsiders, coding)
    released, variances = first.released, np.zeros_like(first.released)
    for column, group in zip(first.encoding.columns, first.encoding.groups, strict=True):
        name = column.name
        if name in tables.coarse:
            centre, spread = _moments(tables.coarse[name], column)
            codes = tables.coarse[name].cells.codes
            released[:, group], variances[:, group] = centre[codes], spread[codes]
    return JudgedMatrices(EncodedTables(first.encoding, first.original, released, first.outsiders), variances)


def code_linked_tables(
    tables: Judged, secret: Sequence[str], coding: CodingOptions, random: np.random.Generator
) -> tuple[EncodedTables, dict[str, tuple[str, slice]]]:
    """Code tables for an attacker who links people to released rows by some columns and reads others off these.

    Where cells of the `secret` columns are coarse, the attacker draws a value from them. Other coarse columns are the
    mean of the values that their cells hold, and one more column, in which people are 0 and cells the root of their
    variance: so the distance of a person to a cell is the root of the mean squared one. The second result has, by the
    name in lower case, a column's name and its part of the matrices.
    """
    coded = encode_tables(tables.original, tables.draw_values(random), tables.outsiders, coding)
    names, parts = coded.encoding.names, coded.encoding.groups
    if not tables.coarse:
        return coded, {name.lower(): (name, group) for name, group in zip(names, parts, strict=True)}
    cells = matrices(tables, coding)
    assert cells.variances is not None
    is_drawn = {name.lower() for name in secret}
    released, groups = np.array(coded.released), {}
    ends: list[int] = []
    spreads: list[Floats] = []
    for name, group in zip(names, parts, strict=True):
        is_linked = name in tables.coarse and name.lower() not in is_drawn
        groups[name.lower()] = (name, slice(group.start + len(ends), group.stop + len(ends) + is_linked))
        if is_linked:
            released[:, group] = cells.values.released[:, group]
            ends.append(group.stop)
            spreads.append(np.sqrt(cells.variances[:, group].sum(axis=1)))
    outsiders = [None if table is None else np.insert(table, ends, 0.0, axis=1) for table in coded.outsiders]
    if ends:
        released = np.insert(released, ends, np.column_stack(spreads), axis=1)
    return EncodedTables(coded.encoding, np.insert(coded.original, ends, 0.0, axis=1), released, outsiders), groups


def _moments(read: ReadColumn, column: Any) -> tuple[Matrix, Matrix]:
    """Return the mean and variance of what each cell holds, in the columns of the matrix."""
    points, counts = read.cells.points()
    coded = np.empty((column.width, len(points)))
    column.fill(read.array(points), coded)
    starts = np.cumsum(counts) - counts
    # Less the first of them: the mean of one value, or of equal ones, is then exactly that value.
    firsts = coded[:, starts]
    apart = coded - np.repeat(firsts, counts, axis=1)
    mean = np.add.reduceat(apart, starts, axis=1) / counts
    variance = np.add.reduceat(np.square(apart), starts, axis=1) / counts - np.square(mean)
    return (firsts + mean).T, np.maximum(variance, 0.0).T


def _standing_in(tables: Judged) -> pa.Table:
    """Return the release with the original's first value in place of coarse cells, so that it can be coded."""
    table = tables.released
    for name in tables.coarse:
        value = tables.original.column(name).slice(0, 1).combine_chunks()
        repeated = value.take(pa.array(np.zeros(table.num_rows, np.int64)))
        table = table.set_column(table.column_names.index(name), name, pa.chunked_array([repeated]))
    return table


def _refuse_unknown_labels(name: str, original: pa.ChunkedArray, released: pa.ChunkedArray) -> None:
    """Refuse texts of which none is a value: ancestors whose hierarchy was not named would seem far from everybody."""
    if not (is_text_column(original.type) and is_text_column(released.type)):
        return
    first, second = (pc.unique(decode_storage(column).drop_null()) for column in (original, released))
    if len(second) and not pc.any(pc.is_in(second, value_set=first)).as_py():
        raise ValueError(
            f'column "{name}" of the release has no value of the original but labels that are not understood; '
            "name their hierarchy in hierarchies."
        )


def _is_zoned(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) and kind.tz is not None)


def _local(table: pa.Table, name: str) -> pa.Table:
    place = [spelled.lower() for spelled in table.column_names].index(name.lower())
    if not _is_zoned(table.schema.field(place).type):
        return table
    return table.set_column(place, table.column_names[place], pc.local_timestamp(table.column(place)))

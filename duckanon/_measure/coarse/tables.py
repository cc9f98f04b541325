"""An original, its release and other tables side by side, whatever the release's cells are: values, labels, boxes."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon._core.common.arrays import Floats, Matrix
from duckanon._core.encoding.aligned import Coding, Measured, aligned, both_there, encoded
from duckanon._core.encoding.pairs import plain
from duckanon._measure.coarse.coarse_columns import ReadColumn, is_coarse, read_column, with_sets
from duckanon._measure.coarse.label_meanings import HierarchyRows, label_meanings
from duckanon._measure.queries.labels import Meanings, is_text

RELEASE = "_duckanon_release"
"""The column that names the release of a row where several are stacked (`duckanon._bridge.measured_tables`)."""


@dataclass(frozen=True)
class Judged:
    """Tables to compare."""

    original: pa.Table
    released: pa.Table  # as it is, under the original's names and in their order
    others: list[pa.Table | None]
    coarse: Mapping[str, ReadColumn]  # by name, the released columns whose cells are no plain values
    meanings: Mapping[str, Meanings]

    def drawn(self, random: np.random.Generator) -> pa.Table:
        """Return a table of values: in place of every coarse cell, one drawn from what it holds, all equally likely."""
        table = self.released
        for name, column in self.coarse.items():
            values = column.array(column.cells.drawn(random))
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


def judged(
    original: pa.Table | None,
    released: pa.Table | None,
    hierarchies: HierarchyRows = None,
    *,
    whole: tuple[pa.Table, pa.Table] | None = None,
    **others: pa.Table | None,
) -> Judged:
    """Put tables side by side and read the release; the first two are None where no row came.

    Where the two are samples, `whole` are the tables by which labels are read. An error calls `others` by their names
    here. A ValueError refuses tables without rows, columns that hold different kinds of values, and labels that are not
    understood.
    """
    original, released = both_there(original, released)
    released = with_sets(released)
    labels = read_labels(*(whole or (original, released)), hierarchies)
    for name in original.column_names:
        if _is_zoned(original.schema.field(name).type) and is_text(released.schema.field(name).type):
            original = _local(original, name)  # labels tell the time of the session's zone
            others = {role: None if table is None else _local(table, name) for role, table in others.items()}
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
    original, _, more = aligned(original, values, **others)
    return Judged(original, released, more, coarse, labels)


def read_labels(original: pa.Table, released: pa.Table, hierarchies: HierarchyRows) -> dict[str, Meanings]:
    """Return the meanings of labels by column, under the names of the original's."""
    original, released = both_there(original, released)
    return label_meanings(original, with_sets(released), hierarchies)


def rows_of(stacked: pa.Table, name: str) -> pa.Table:
    """Return the rows of one of several stacked releases, each in a column of structs of its own, NULL elsewhere."""
    rows = stacked.filter(pc.equal(stacked[RELEASE], name)).drop_columns([RELEASE])
    filled = next(column for column in rows.columns if column.null_count < len(column))
    return pa.Table.from_struct_array(filled)


@dataclass(frozen=True)
class JudgedMatrices:
    """The tables as matrices with one encoding, fitted to the original."""

    values: Measured  # of a coarse release, each row is the mean of the values that its cells hold
    variances: Matrix | None  # of these, for every released row and matrix column; None where cells are values


def matrices(tables: Judged, coding: Coding) -> JudgedMatrices:
    """Code tables by the original; a coarse cell becomes the mean and variance of what it holds."""
    if not tables.coarse:
        return JudgedMatrices(encoded(tables.original, tables.released, tables.others, coding), None)
    first = encoded(tables.original, _standing_in(tables), tables.others, coding)
    released, variances = first.released, np.zeros_like(first.released)
    for column, group in zip(first.encoding.columns, first.encoding.groups, strict=True):
        name = column.name
        if name in tables.coarse:
            centre, spread = _moments(tables.coarse[name], column)
            codes = tables.coarse[name].cells.codes
            released[:, group], variances[:, group] = centre[codes], spread[codes]
    return JudgedMatrices(Measured(first.encoding, first.original, released, first.others), variances)


def linked(
    tables: Judged, secret: Sequence[str], coding: Coding, random: np.random.Generator
) -> tuple[Measured, dict[str, tuple[str, slice]]]:
    """Code tables for an attacker who links people to released rows by some columns and reads others off these.

    Where cells of the `secret` columns are coarse, the attacker draws a value from them. Other coarse columns are the
    mean of the values that their cells hold, and one more column, in which people are 0 and cells the root of their
    variance: so the distance of a person to a cell is the root of the mean squared one. The second result has, by the
    name in lower case, a column's name and its part of the matrices.
    """
    coded = encoded(tables.original, tables.drawn(random), tables.others, coding)
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
    others = [None if table is None else np.insert(table, ends, 0.0, axis=1) for table in coded.others]
    if ends:
        released = np.insert(released, ends, np.column_stack(spreads), axis=1)
    return Measured(coded.encoding, np.insert(coded.original, ends, 0.0, axis=1), released, others), groups


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
    if not (is_text(original.type) and is_text(released.type)):
        return
    first, second = (pc.unique(plain(column).drop_null()) for column in (original, released))
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

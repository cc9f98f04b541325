"""The cells of a table with all margins: people, sums and largest contributions, computed from its inner cells.

A dimension is a column with the groups of its hierarchies and its total; the grid of all cells is numbered along the
dimensions, and only cells that something contributes to are held. Entries of different people are added up a dimension
at a time; people in several inner cells are added up by person first, so that a margin counts them once. The time is
that of sorting the entries once for each dimension.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy import sparse

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Floats, Ints, Matrix, find_run_starts
from duckanon._core.common.labels import TOTAL

Label = str | None
LabelTree = Mapping[Label, Sequence[Label]]
"""A hierarchy: ever coarser labels for each value of a column."""


@dataclass(frozen=True)
class Dimension:
    """A column of a table: values first, then groups of them, then their total."""

    name: str
    labels: tuple[Label, ...]
    values: int  # how many of the labels are values of the column
    relations: tuple[tuple[int, tuple[int, ...]], ...]  # a group and the parts that it is the sum of
    ancestors: tuple[Ints, ...]  # for each value, itself and all groups that contain it

    @property
    def total(self) -> int:
        """The index of the total, which is the last label."""
        return len(self.labels) - 1

    def list_layers(self) -> list[Ints]:
        """Return maps from parts to groups, in which a part has one group, -1 where it has none; all relations once."""
        layers: list[Ints] = []
        for group, parts in self.relations:
            children = np.array(parts)
            layer = next((layer for layer in layers if (layer[children] < 0).all() and group not in layer), None)
            if layer is None:
                layer = np.full(len(self.labels), -1, dtype=np.int64)
                layers.append(layer)
            layer[children] = group
        return layers


def make_dimension(
    name: str, values: Sequence[Label], trees: Sequence[LabelTree] = (), total: str = TOTAL
) -> Dimension:
    """Build the dimension of a column from its values and hierarchies.

    A label stands for the same values in every hierarchy, and a group of all values is the total.
    """
    codes: dict[Label, int] = {value: code for code, value in enumerate(values)}
    members: dict[int, frozenset[int]] = {code: frozenset((code,)) for code in codes.values()}
    everything, whole = frozenset(range(len(values))), -1
    relations: dict[tuple[int, tuple[int, ...]], None] = {}
    for tree in trees:
        absent = sum(value not in tree for value in values)
        if absent:
            raise ValueError(f'hierarchies must have a row for each value of "{name}"; {absent} values have none.')
        below = list(range(len(values)))
        for level in range(max((len(tree[value]) for value in values), default=0)):
            groups: dict[Label, set[int]] = {}
            for code, value in enumerate(values):
                groups.setdefault(tree[value][level], set()).add(code)
            above = below.copy()
            for label, group_codes in groups.items():
                group_values = frozenset(group_codes)
                group = whole if group_values == everything else codes.setdefault(label, len(codes))
                if members.setdefault(group, group_values) != group_values:
                    raise ValueError(f'hierarchies of "{name}" must use a label for one set of values only.')
                parts = {below[code] for code in group_values} - {group}
                if parts and frozenset().union(*(members[part] for part in parts)) != group_values:
                    raise ValueError(f'hierarchies of "{name}" must have levels that are ever coarser.')
                if parts:
                    relations[group, tuple(sorted(parts))] = None
                for code in group_values:
                    above[code] = group
            below = above
        if set(below) != {whole}:
            relations[whole, tuple(sorted(set(below)))] = None
    if total in codes:
        raise ValueError(
            f"hierarchies of \"{name}\" must not call a value or some of them '{total}', as its margin is."
        )
    if not trees:
        relations[whole, tuple(range(len(values)))] = None
    last = len(codes)
    groups_of_value: list[set[int]] = [{code, last} for code in range(len(values))]
    for group, group_values in members.items():
        for code in group_values:
            groups_of_value[code].add(last if group == whole else group)
    return Dimension(
        name=name,
        labels=(*codes, total),
        values=len(values),
        relations=tuple((last if group == whole else group, parts) for group, parts in relations),
        ancestors=tuple(np.array(sorted(groups_above)) for groups_above in groups_of_value),
    )


NOBODY = np.iinfo(np.int64).max
"""The owner of a cell to which nobody contributes."""

MOST_CELLS = 20_000_000
"""Cells of a table with its empty ones: two gigabytes for their numbers alone."""


@dataclass(frozen=True)
class CellSums:
    """Sums of groups of rows: of inner cells at first, of all cells in the end. Entries are parallel."""

    key: Ints  # the number of the cell in the grid of all cells
    entries: Ints  # rows that contribute
    people: Ints
    value: Floats
    absolute: Floats  # the sum of the sizes of what each person contributes
    largest: Matrix  # the sizes of the largest contributions, descending
    owner: Ints  # the smallest number of a person who contributes

    def take(self, rows: Ints) -> CellSums:
        """Return some of the entries."""
        return CellSums(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))

    def add_up(self) -> CellSums:
        """Return one entry for each key, ascending."""
        order = np.argsort(self.key, kind="stable")
        starts = find_run_starts(self.key[order])
        return CellSums(
            key=self.key[order][starts],
            entries=np.add.reduceat(self.entries[order], starts),
            people=np.add.reduceat(self.people[order], starts),
            value=np.add.reduceat(self.value[order], starts),
            absolute=np.add.reduceat(self.absolute[order], starts),
            largest=find_largest(self.largest[order], starts),
            owner=np.minimum.reduceat(self.owner[order], starts),
        )


def stack_sums(parts: Sequence[CellSums]) -> CellSums:
    """Put entries behind each other."""
    return CellSums(
        *(np.concatenate([getattr(part, name) for part in parts]) for name in CellSums.__dataclass_fields__)
    )


def find_largest(largest: Matrix, starts: Ints) -> Matrix:
    """Return the largest contributions of each run of entries, descending."""
    wanted, sizes = largest.shape[1], np.diff(np.append(starts, len(largest)))
    tops = np.zeros((len(starts), wanted))
    tops[sizes == 1] = largest[starts[sizes == 1]]
    in_many = np.repeat(sizes > 1, sizes)
    if wanted and in_many.any():
        run = np.repeat(np.repeat(np.arange(len(starts)), sizes)[in_many], wanted)
        values = largest[in_many].ravel()
        order = np.lexsort((-values, run))
        first = find_run_starts(run[order])
        for rank in range(wanted):  # a run has at least `wanted` values, since each of its entries has them
            tops[run[order][first], rank] = values[order][first + rank]
    return tops


@dataclass(frozen=True)
class TableCells:
    """All cells of a table, by ascending key."""

    dimensions: tuple[Dimension, ...]
    sums: CellSums
    is_shown: Bools  # whether one of the tables to publish has the cell
    counts_people: bool  # whether the table shows people, not a sum of a measure
    overlaps: bool  # whether somebody contributes to several inner cells, so that people do not add up
    coordinates: Ints = field(repr=False)  # cells by dimensions: which label

    def __len__(self) -> int:
        return len(self.sums.key)

    @property
    def value(self) -> Floats:
        """The number that a cell shows."""
        return self.sums.people.astype(np.float64) if self.counts_people else self.sums.value

    @property
    def is_nonnegative(self) -> bool:
        """Whether nothing that contributes is negative, which everybody may know."""
        return self.counts_people or bool((self.sums.value >= self.sums.absolute * (1 - 1e-9)).all())

    @property
    def is_inner(self) -> Bools:
        """Whether a cell is no margin."""
        return np.asarray((self.coordinates < [dimension.values for dimension in self.dimensions]).all(axis=1))

    @property
    def is_empty(self) -> Bools:
        """Whether nothing contributes to a cell: its number is zero, as everybody may know."""
        return np.asarray((self.sums.people if self.counts_people else self.sums.entries) == 0)

    def is_in_table(self, names: Sequence[str]) -> Bools:
        """Tell which cells a table of some of the columns has."""
        lower_names = {name.lower() for name in names}
        absent = [index for index, column in enumerate(self.dimensions) if column.name.lower() not in lower_names]
        totals = [self.dimensions[index].total for index in absent]
        return np.asarray((self.coordinates[:, absent] == totals).all(axis=1))


def find_memberships(cells: TableCells) -> sparse.csr_matrix:
    """Return which inner cells each cell is the sum of, as a matrix of cells by inner cells."""
    key = cells.sums.key[cells.is_inner]
    inner = np.arange(len(key))
    for index in range(len(cells.dimensions)):
        progress.check()
        rows, key = _repeat_in_groups(cells.dimensions, index, key)
        inner = inner[rows]
    entries = np.ones(len(key), dtype=np.int64), (np.searchsorted(cells.sums.key, key), inner)
    return sparse.csr_matrix(entries, shape=(len(cells), int(cells.is_inner.sum())))


def compute_strides(dimensions: Sequence[Dimension]) -> Ints:
    """Return the distance in the grid of all cells between neighbours along each dimension."""
    sizes = [len(dimension.labels) for dimension in dimensions]
    if np.prod([float(size) for size in sizes]) >= 2.0**62:
        raise ValueError("by must name columns with fewer values: their combinations cannot be numbered.")
    return np.cumprod([1, *sizes[:0:-1]], dtype=np.int64)[::-1].copy()


def make_cells(
    dimensions: Sequence[Dimension],
    inner: CellSums,
    person: Ints | None,
    *,
    counts_people: bool,
    with_empty: bool = False,
    tables: Sequence[Sequence[str]] = (),
    person_keys: Ints | None = None,
) -> TableCells:
    """Add up all margins.

    Args:
        dimensions: The columns of the table.
        inner: Entries of inner cells.
        person: The person of each entry, -1 for nobody, whose rows are one contribution; each person at most once for
            an inner cell. None: nobody contributes to two inner cells.
        counts_people: Whether the table shows people.
        with_empty: Whether cells without contributions belong to it.
        tables: The names of the columns of each table to publish, where there are several; else one of all columns.
        person_keys: Secret numbers of people by their number, which are added up in place of entries.
    """
    if person_keys is not None:
        assert person is not None
        inner = replace(inner, entries=np.where(person >= 0, person_keys[np.maximum(person, 0)], 0) * inner.people)
    is_once = np.ones(len(inner.key), dtype=bool)
    if person is not None:
        is_once = np.bincount(person + 1)[person + 1] == 1
    parts = [_add_margins(dimensions, inner.take(np.flatnonzero(is_once)).add_up())] if is_once.any() else []
    if not is_once.all():
        assert person is not None
        several = np.flatnonzero(~is_once)
        parts.append(_add_margins_by_person(dimensions, inner.take(several), person[several], person_keys))
    sums = stack_sums(parts).add_up() if len(parts) > 1 else parts[0]
    if with_empty:
        sums = stack_sums([sums, _make_empty_cells(dimensions, sums.largest.shape[1])]).add_up()
    steps = compute_strides(dimensions)
    sizes = np.array([len(dimension.labels) for dimension in dimensions])
    cells = TableCells(
        dimensions=tuple(dimensions),
        sums=sums,
        is_shown=np.ones(len(sums.key), dtype=bool),
        counts_people=counts_people,
        overlaps=person is not None and bool((~is_once & (person >= 0)).any()),
        coordinates=sums.key[:, None] // steps % sizes,
    )
    if len(tables) < 2:
        return cells
    return replace(cells, is_shown=np.any([cells.is_in_table(names) for names in tables], axis=0))


def _add_margins(dimensions: Sequence[Dimension], sums: CellSums) -> CellSums:
    """Add up the margins of entries that belong to different people, a dimension at a time."""
    for index in range(len(dimensions)):
        progress.check()
        rows, key = _repeat_in_groups(dimensions, index, sums.key)
        sums = replace(sums.take(rows), key=key).add_up()
    return sums


def _add_margins_by_person(
    dimensions: Sequence[Dimension], inner: CellSums, person: Ints, person_keys: Ints | None
) -> CellSums:
    """Add up what each person contributes to each cell, the margins included, and return these as entries of cells."""
    key, value, entries = inner.key, inner.value, inner.entries
    for index in range(len(dimensions)):
        progress.check()
        rows, key = _repeat_in_groups(dimensions, index, key)
        person, value, entries = person[rows], value[rows], entries[rows]
        order = np.lexsort((person, key))
        starts = find_run_starts(np.column_stack([key[order], person[order]]))
        key, person = key[order][starts], person[order][starts]
        value, entries = np.add.reduceat(value[order], starts), np.add.reduceat(entries[order], starts)
    largest = np.zeros((len(key), inner.largest.shape[1]))
    largest[:, :1] = np.abs(value)[:, None]
    is_person = person >= 0
    entries = entries if person_keys is None else np.where(is_person, person_keys[person], 0)
    owner = np.where(is_person, person, NOBODY)
    return CellSums(key, entries, is_person.astype(np.int64), value, np.abs(value), largest, owner).add_up()


def _repeat_in_groups(dimensions: Sequence[Dimension], index: int, key: Ints) -> tuple[Ints, Ints]:
    """Return entries once for each group of one dimension that contains them: which they are, and their new keys."""
    dimension, step = dimensions[index], compute_strides(dimensions)[index]
    value = key // step % len(dimension.labels)
    sizes = np.array([len(groups) for groups in dimension.ancestors])
    starts, groups = np.cumsum(sizes) - sizes, np.concatenate(dimension.ancestors)
    times = sizes[value]
    rows = np.repeat(np.arange(len(key)), times)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(times) - times, times)
    return rows, key[rows] + (groups[starts[value][rows] + within] - value[rows]) * step


def _make_empty_cells(dimensions: Sequence[Dimension], wanted: int) -> CellSums:
    """Return every cell of the grid without contributions."""
    count = int(np.prod([float(len(dimension.labels)) for dimension in dimensions]))
    if count > MOST_CELLS:
        raise ValueError(f"zeros must be 'public' for a table of {count} cells: empty cells are too many to protect.")
    none, zero = np.zeros(count, dtype=np.int64), np.zeros(count)
    return CellSums(np.arange(count), none, none, zero, zero, np.zeros((count, wanted)), np.full(count, NOBODY))

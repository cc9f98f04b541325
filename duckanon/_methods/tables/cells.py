"""The cells of a table with all margins: people, sums and largest contributions, computed from its inner cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy import sparse

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Floats, Ints, Matrix, run_starts
from duckanon._methods.tables.dimensions import Dimension

NOBODY = np.iinfo(np.int64).max
"""The owner of a cell to which nobody contributes."""

MOST_CELLS = 20_000_000
"""Cells of a table with its empty ones: two gigabytes for their numbers alone."""


@dataclass(frozen=True)
class Contributions:
    """Sums of groups of rows: of inner cells at first, of all cells in the end. Entries are parallel."""

    key: Ints  # the place of the cell in the grid of all cells
    entries: Ints  # rows that contribute
    people: Ints
    value: Floats
    absolute: Floats  # the sum of the sizes of what each person contributes
    largest: Matrix  # the sizes of the largest contributions, descending
    owner: Ints  # the smallest number of a person who contributes

    def take(self, rows: Ints) -> Contributions:
        """Return some of the entries."""
        return Contributions(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))

    def added(self) -> Contributions:
        """Return one entry for each key, ascending."""
        order = np.argsort(self.key, kind="stable")
        starts = run_starts(self.key[order])
        return Contributions(
            key=self.key[order][starts],
            entries=np.add.reduceat(self.entries[order], starts),
            people=np.add.reduceat(self.people[order], starts),
            value=np.add.reduceat(self.value[order], starts),
            absolute=np.add.reduceat(self.absolute[order], starts),
            largest=_largest(self.largest[order], starts),
            owner=np.minimum.reduceat(self.owner[order], starts),
        )


def stacked(parts: Sequence[Contributions]) -> Contributions:
    """Put entries behind each other."""
    return Contributions(
        *(np.concatenate([getattr(part, name) for part in parts]) for name in Contributions.__dataclass_fields__)
    )


def _largest(largest: Matrix, starts: Ints) -> Matrix:
    """Return the largest contributions of each run of entries, descending."""
    wanted, sizes = largest.shape[1], np.diff(np.append(starts, len(largest)))
    found = np.zeros((len(starts), wanted))
    found[sizes == 1] = largest[starts[sizes == 1]]
    in_many = np.repeat(sizes > 1, sizes)
    if wanted and in_many.any():
        run = np.repeat(np.repeat(np.arange(len(starts)), sizes)[in_many], wanted)
        values = largest[in_many].ravel()
        order = np.lexsort((-values, run))
        first = run_starts(run[order])
        for rank in range(wanted):  # a run has at least `wanted` values, since each of its entries has them
            found[run[order][first], rank] = values[order][first + rank]
    return found


@dataclass(frozen=True)
class Cells:
    """All cells of a table, by ascending key."""

    dimensions: tuple[Dimension, ...]
    sums: Contributions
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
        return np.asarray((self.coordinates < [one.values for one in self.dimensions]).all(axis=1))

    @property
    def is_empty(self) -> Bools:
        """Whether nothing contributes to a cell: its number is zero, as everybody may know."""
        return np.asarray((self.sums.people if self.counts_people else self.sums.entries) == 0)

    def in_table(self, names: Sequence[str]) -> Bools:
        """Tell which cells a table of some of the columns has."""
        other = [place for place, one in enumerate(self.dimensions) if one.name not in names]
        totals = [self.dimensions[place].total for place in other]
        return np.asarray((self.coordinates[:, other] == totals).all(axis=1))


def memberships(cells: Cells) -> sparse.csr_matrix:
    """Return which inner cells each cell is the sum of, as a matrix of cells by inner cells."""
    key = cells.sums.key[cells.is_inner]
    inner = np.arange(len(key))
    for place in range(len(cells.dimensions)):
        progress.check()
        rows, key = _in_groups(cells.dimensions, place, key)
        inner = inner[rows]
    entries = np.ones(len(key), dtype=np.int64), (np.searchsorted(cells.sums.key, key), inner)
    return sparse.csr_matrix(entries, shape=(len(cells), int(cells.is_inner.sum())))


def strides(dimensions: Sequence[Dimension]) -> Ints:
    """Return the distance in the grid of all cells between neighbours along each dimension."""
    sizes = [len(one.labels) for one in dimensions]
    if np.prod([float(size) for size in sizes]) >= 2.0**62:
        raise ValueError("by must name columns with fewer values: their combinations cannot be numbered.")
    return np.cumprod([1, *sizes[:0:-1]], dtype=np.int64)[::-1].copy()


def table_cells(
    dimensions: Sequence[Dimension],
    inner: Contributions,
    person: Ints | None,
    *,
    counts_people: bool,
    with_empty: bool = False,
    tables: Sequence[Sequence[str]] = (),
    person_keys: Ints | None = None,
) -> Cells:
    """Add up all margins.

    Args:
        dimensions: The columns of the table.
        inner: Entries of inner cells.
        person: Who each entry is from, -1 for nobody, whose rows are one contribution; each at most once for an inner
            cell. None: nobody contributes to two inner cells.
        counts_people: Whether the table shows people.
        with_empty: Whether cells without contributions belong to it.
        tables: The names of the columns of each table to publish; one of all columns, where there is none.
        person_keys: Secret numbers of people by their number, which are added up in place of entries.
    """
    if person_keys is not None:
        assert person is not None
        inner = replace(inner, entries=np.where(person >= 0, person_keys[np.maximum(person, 0)], 0) * inner.people)
    is_once = np.ones(len(inner.key), dtype=bool)
    if person is not None:
        is_once = np.bincount(person + 1)[person + 1] == 1
    parts = [_margins(dimensions, inner.take(np.flatnonzero(is_once)).added())] if is_once.any() else []
    if not is_once.all():
        assert person is not None
        several = np.flatnonzero(~is_once)
        parts.append(_margins_by_person(dimensions, inner.take(several), person[several], person_keys))
    sums = stacked(parts).added() if len(parts) > 1 else parts[0]
    if with_empty:
        sums = stacked([sums, _empty(dimensions, sums.largest.shape[1])]).added()
    steps = strides(dimensions)
    sizes = np.array([len(one.labels) for one in dimensions])
    cells = Cells(
        dimensions=tuple(dimensions),
        sums=sums,
        is_shown=np.ones(len(sums.key), dtype=bool),
        counts_people=counts_people,
        overlaps=person is not None and bool((~is_once & (person >= 0)).any()),
        coordinates=sums.key[:, None] // steps % sizes,
    )
    if not tables:
        return cells
    return replace(cells, is_shown=np.any([cells.in_table(names) for names in tables], axis=0))


def _margins(dimensions: Sequence[Dimension], sums: Contributions) -> Contributions:
    """Add up the margins of entries that belong to different people, a dimension at a time."""
    for place in range(len(dimensions)):
        progress.check()
        rows, key = _in_groups(dimensions, place, sums.key)
        sums = replace(sums.take(rows), key=key).added()
    return sums


def _margins_by_person(
    dimensions: Sequence[Dimension], inner: Contributions, person: Ints, person_keys: Ints | None
) -> Contributions:
    """Add up what each person contributes to each cell, the margins included, and return these as entries of cells."""
    key, value, entries = inner.key, inner.value, inner.entries
    for place in range(len(dimensions)):
        progress.check()
        rows, key = _in_groups(dimensions, place, key)
        person, value, entries = person[rows], value[rows], entries[rows]
        order = np.lexsort((person, key))
        starts = run_starts(np.column_stack([key[order], person[order]]))
        key, person = key[order][starts], person[order][starts]
        value, entries = np.add.reduceat(value[order], starts), np.add.reduceat(entries[order], starts)
    largest = np.zeros((len(key), inner.largest.shape[1]))
    largest[:, :1] = np.abs(value)[:, None]
    is_person = person >= 0
    entries = entries if person_keys is None else np.where(is_person, person_keys[person], 0)
    owner = np.where(is_person, person, NOBODY)
    return Contributions(key, entries, is_person.astype(np.int64), value, np.abs(value), largest, owner).added()


def _in_groups(dimensions: Sequence[Dimension], place: int, key: Ints) -> tuple[Ints, Ints]:
    """Return entries once for each group of one dimension that contains them: which they are, and their new keys."""
    one, step = dimensions[place], strides(dimensions)[place]
    value = key // step % len(one.labels)
    sizes = np.array([len(groups) for groups in one.ancestors])
    starts, groups = np.cumsum(sizes) - sizes, np.concatenate(one.ancestors)
    times = sizes[value]
    rows = np.repeat(np.arange(len(key)), times)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(times) - times, times)
    return rows, key[rows] + (groups[starts[value][rows] + within] - value[rows]) * step


def _empty(dimensions: Sequence[Dimension], wanted: int) -> Contributions:
    """Return every cell of the grid without contributions."""
    count = int(np.prod([float(len(one.labels)) for one in dimensions]))
    if count > MOST_CELLS:
        raise ValueError(f"zeros must be 'public' for a table of {count} cells: empty cells are too many to protect.")
    none, zero = np.zeros(count, dtype=np.int64), np.zeros(count)
    return Contributions(np.arange(count), none, none, zero, zero, np.zeros((count, wanted)), np.full(count, NOBODY))

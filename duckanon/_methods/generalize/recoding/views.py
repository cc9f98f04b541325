"""The grouped table as it is seen from one column, while all others keep their recoding.

A view has the rows of each class of the other columns with each atom of this one, sorted by class and atom. So a group
of neighbouring atoms is a run of entries in each class, and what all groups suppress, and lose by that, are differences
of running sums: the moves of a column cost a few passes over the entries that occur. From a column with a hierarchy the
view is a matrix where that is not much larger, and nodes are differences of rows of its running sum.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Array, Bools, Floats, Ints, find_run_starts, measure_runs
from duckanon._methods.generalize.recoding.people import Moving

# Entries up to which several cuts are looked at together: each call of numpy takes as long as a thousand entries.
_FEW_ENTRIES = 5_000
_FEW_CELLS = 5_000  # up to so many cells it costs more to look for classes that are too small as a whole than it saves


@dataclass
class TableView:
    """Base of all views of the table from one column."""

    marginal: Ints  # the rows of each atom
    price: Floats  # what suppressing one row of each class of the other columns costs beyond its loss there
    base: float  # the loss of all rows in the other columns
    k: float  # the size of classes
    weight: float  # of the column
    n_atoms: int  # of the column, without NULL
    has_null: bool
    # The cost and the suppressed rows of NULL as a group of its own, and of all values and NULL as one group.
    null_part: tuple[float, float] = field(init=False, default=(0.0, 0.0))
    root_part: tuple[float, float] = field(init=False, default=(0.0, 0.0))

    @abstractmethod
    def groups(self, group_of_atom: Ints, n_groups: int) -> tuple[Floats, Floats]:
        """Suppressed rows and their cost per group; the groups must be monotone in the atoms."""

    def cost(self, loss: Floats, rows: Floats | Ints, small: Floats, price: Floats) -> Floats:
        """Return what groups cost: their loss for the rows kept, the price of the rows suppressed."""
        result: Floats = self.weight * loss * (rows - small) + price
        return result


@dataclass
class EntryView(TableView):
    """The table seen from one column while all other columns keep their recoding."""

    # Distinct pairs of a class of the other columns and an atom of this column, sorted, with their rows and with what
    # they add to the size of a class: the same array where rows are people. Once made, there are none for NULL.
    other: Ints
    atom: Ints
    count: Ints
    size: Ints | Floats
    moving: Moving | None  # the people in several entries of a class, who do not add up: they are not in `size`
    n_other: int  # how many classes of the other columns there are
    marginal_size: Ints | Floats = field(init=False)  # the most that each atom adds to the size of a class

    def __post_init__(self) -> None:
        if self.has_null:
            whole = np.bincount(self.other, self.count, self.n_other)
            small, _ = self.suppress_small(self.sizes(self.other, self.n_other), whole, np.arange(self.n_other))
            rows = float(whole.sum())
            self.root_part = (float(small @ self.price + self.weight * (rows - small.sum())), float(small.sum()))
            null = self.atom == self.n_atoms
            small = np.where(null & (self.entry_size < self.k), self.count, 0)
            self.null_part = (float(small @ self.price[self.other]), float(small.sum()))
            keep = ~null
            same = self.size is self.count
            self.other, self.atom, self.count, self.size = (
                entries[keep] for entries in (self.other, self.atom, self.count, self.size)
            )
            self.size = self.count if same else self.size
            self.moving = self.moving and self.moving.select(keep)
        self.marginal_size = (
            self.marginal if self.size is self.count else sum_by_group(self.atom, self.entry_size, self.n_atoms)
        )

    @cached_property
    def entry_price(self) -> Floats:
        """The cost of suppressing one row of each entry, beyond its loss in the other columns."""
        return self.price[self.other]

    @property
    def entry_size(self) -> Ints | Floats:
        """The number of people of each entry."""
        return self.size if self.moving is None else self.size + self.moving.counts

    def sizes(self, groups: Ints, n_groups: int) -> Floats:
        """Count the people of each group of entries."""
        added = sum_by_group(groups, self.size, n_groups)
        return added if self.moving is None else added + self.moving.count_people(groups, n_groups)

    def suppress_small(
        self, sizes: Ints | Floats, rows: Ints | Floats, classes: Ints | None = None
    ) -> tuple[Floats, Floats]:
        """Rows suppressed, and what that costs, for class parts of these sizes and rows, one an entry or a class."""
        small: Floats = np.multiply(sizes < self.k, rows, dtype=np.float64)
        return small, small * (self.entry_price if classes is None else self.price[classes])

    def groups(self, group_of_atom: Ints, n_groups: int) -> tuple[Floats, Floats]:
        """Suppressed rows and their cost per group; the groups must be monotone in the atoms."""
        progress.check()
        group = group_of_atom[self.atom]
        starts = find_run_starts(self.other * n_groups + group)
        if not len(starts):
            return np.zeros(n_groups), np.zeros(n_groups)
        rows = np.add.reduceat(self.count, starts)
        if self.size is self.count:
            sizes = rows
        else:
            stretches = np.repeat(np.arange(len(starts)), measure_runs(starts, len(group)))
            sizes = self.sizes(stretches, len(starts))
        small, price = self.suppress_small(sizes, rows, self.other[starts])
        return sum_by_group(group[starts], small, n_groups), sum_by_group(group[starts], price, n_groups)

    def cost_levels(self, levels: Sequence[Ints], n_groups: int) -> Iterator[tuple[Floats, Floats]]:
        """Return `groups` of several levels, the groups of each made of whole groups of the level before."""
        if self.moving is not None:  # people who are in several groups do not add up
            yield from (self.groups(group_of_atom, n_groups) for group_of_atom in levels)
            return
        progress.check()
        other, atom, rows, sizes, price = self.other, self.atom, self.count, self.size, self.entry_price
        for group_of_atom in levels:
            group = group_of_atom[atom]
            starts = find_run_starts(other * n_groups + group)
            if len(starts) < len(group):
                same = sizes is rows
                rows = np.add.reduceat(rows, starts)
                sizes = rows if same else np.add.reduceat(sizes, starts)
                other, atom, price, group = other[starts], atom[starts], price[starts], group[starts]
            few = (sizes < self.k).nonzero()[0]
            suppressed = rows[few]
            yield (
                sum_by_group(group[few], suppressed, n_groups),
                sum_by_group(group[few], suppressed * price[few], n_groups),
            )

    @cached_property
    def _begins_class(self) -> Bools:
        """Whether each entry but the first is in another class of the other columns than the entry before it."""
        return np.not_equal(self.other[1:], self.other[:-1])

    def cost_prefixes(self, first: Ints, last: Ints) -> Floats:
        """Suppressed rows and cost of the atoms up to each atom, and of those after it, within its segment.

        Several ways to cut the atoms into segments are looked at together: ``first`` and ``last`` are the ends of the
        segment of each atom, cuts by atoms. Returns suppressed rows and cost up to it, and after it, by cuts by atoms.
        """
        progress.check()
        cuts, n_atoms = first.shape
        if cuts > 1 and len(self.atom) > _FEW_ENTRIES:
            return np.concatenate([self.cost_prefixes(first[[cut]], last[[cut]]) for cut in range(cuts)], axis=1)
        if not len(self.atom):
            return np.zeros((4, cuts, n_atoms))
        segment = first.take(self.atom, axis=1)
        is_start = np.ones(segment.shape, bool)
        np.not_equal(segment[:, 1:], segment[:, :-1], out=is_start[:, 1:])
        is_start[:, 1:] |= self._begins_class
        starts = is_start.ravel().nonzero()[0]
        lengths = measure_runs(starts, segment.size)
        count = self.count
        rows_up_to, rows_after = up_to, after = _sum_both_ways(count, starts, lengths, segment.shape)
        first_size = last_size = self.size
        if self.moving is not None:  # each person counts where the prefix, or what is after it, first holds him
            stretches = (is_start.ravel().cumsum() - 1).reshape(segment.shape)
            counted = np.array([self.moving.count_first_and_last(stretch) for stretch in stretches])
            first_size, last_size = self.size + counted[:, 0], self.size + counted[:, 1]
        if first_size is not count:
            up_to, after = _sum_both_ways(first_size, starts, lengths, segment.shape)
        if last_size is not first_size:
            after = _sum_both_ways(last_size, starts, lengths, segment.shape)[1]
        key = self.atom if cuts == 1 else (self.atom + n_atoms * np.arange(cuts)[:, None]).ravel()
        changes = np.empty((4, cuts, n_atoms))
        sides = (
            (self.suppress_small(up_to, rows_up_to), self.suppress_small(up_to - first_size, rows_up_to - count)),
            (self.suppress_small(after + last_size, rows_after + count), self.suppress_small(after, rows_after)),
        )
        for side, (grown, before) in enumerate(sides):
            for part in (0, 1):
                change = (grown[part] - before[part]).ravel()
                changes[2 * side + part] = np.bincount(key, change, first.size).reshape(first.shape)
        # Sums along the atoms, less what comes before the segment.
        sums = changes.cumsum(axis=2)
        offset = n_atoms * np.arange(cuts)[:, None]
        sums -= (sums - changes).reshape(4, -1).take(first + offset, axis=1)
        sums[2:] = sums[2:].reshape(2, -1).take(last + offset, axis=1) - sums[2:]
        return sums


@dataclass
class CellView(TableView):
    """The table seen from one column while all other columns keep their recoding: a `EntryView` as a matrix.

    Nodes of a hierarchy are then differences of running sums, with few and large steps. Rows are people.
    """

    rows: Floats  # the rows of each atom, NULL last where there is one, in each class of the other columns

    def __post_init__(self) -> None:
        if self.has_null:
            null, whole = self.rows[self.n_atoms], self.rows.sum(axis=0)
            self.null_part = self._suppress_group(null)[::-1]
            small, price = self._suppress_group(whole)
            self.root_part = price + self.weight * (float(whole.sum()) - small), small

    def _suppress_group(self, rows: Floats) -> tuple[float, float]:
        """Return the rows of one group that are suppressed, given those of each class, and what that costs."""
        small = np.where(rows < self.k, rows, 0.0)
        return float(small.sum()), float((small * self.price).sum())

    def cost_spans(self, first: Ints, end: Ints) -> tuple[Floats, Floats]:
        """Suppressed rows and their cost of groups that hold the atoms from first up to but without end."""
        progress.check()
        rows, price = self.rows[: self.n_atoms], self.price
        if rows.size <= _FEW_CELLS:
            return _suppress_spans(rows, price, self.k, first, end)
        # Classes that are too small even as a whole are so in every group: what they add is a sum over atoms.
        is_large = rows.sum(axis=0) >= self.k
        is_small = (~is_large).astype(np.float64)
        small, cost = _suppress_spans(rows.compress(is_large, axis=1), price[is_large], self.k, first, end)
        for total, weight in ((small, is_small), (cost, is_small * price)):
            running = np.append(0, np.cumsum(np.einsum("ao,o->a", rows, weight)))
            total += running[end] - running[first]
        return small, cost

    def groups(self, group_of_atom: Ints, n_groups: int) -> tuple[Floats, Floats]:
        """Suppressed rows and their cost per group; the groups must be monotone in the atoms."""
        first = find_run_starts(group_of_atom)
        sums = np.zeros((2, n_groups))
        sums[:, group_of_atom[first]] = self.cost_spans(first, np.append(first[1:], self.n_atoms))
        return sums[0], sums[1]


def _suppress_spans(rows: Floats, price: Floats, k: float, first: Ints, end: Ints) -> tuple[Floats, Floats]:
    """Return for groups of atoms the rows that are suppressed, and their cost, given atoms by classes."""
    running = np.zeros((len(rows) + 1, rows.shape[1]))
    np.cumsum(rows, axis=0, out=running[1:])
    grouped = running.take(end, axis=0)
    grouped -= running.take(first, axis=0)
    grouped *= grouped < k
    return grouped.sum(axis=1), np.einsum("go,o->g", grouped, price)


def _sum_both_ways(entries: Array, starts: Ints, lengths: Ints, shape: tuple[int, int]) -> tuple[Array, Array]:
    """Return the sums of whole numbers up to each of them, and after it, within the stretch that it is in.

    The stretches of each of several lines begin at the starts, in the flat array; the numbers of all lines may be one.
    """
    running = entries.cumsum(axis=-1)
    at = starts % running.size
    before = (running - entries).take(at)
    whole = running.take(at + lengths - 1)
    return running - before.repeat(lengths).reshape(shape), whole.repeat(lengths).reshape(shape) - running


def sum_up_to(entries: Array, starts: Ints) -> Array:
    """Return the sum of the entries up to each of them within the stretch that it is in."""
    running = entries.cumsum()
    first = running[starts] - entries[starts]
    return np.asarray(running - first.repeat(measure_runs(starts, len(entries))))


def sum_by_group(groups: Ints, values: Floats | Ints, n_groups: int) -> Floats:
    """Return the sum of the values of each group (bincount, which mypy believes to return integers)."""
    return np.asarray(np.bincount(groups, values, n_groups), dtype=np.float64)

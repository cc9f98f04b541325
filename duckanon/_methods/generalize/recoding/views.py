"""The grouped table as it is seen from one column, while all others keep their recoding.

A view lists the entries that occur; from a column with a hierarchy it is a matrix where that is not much larger.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Array, Bools, Floats, Ints, run_lengths, run_starts
from duckanon._methods.generalize.recoding.people import Moving

# Entries up to which several cuts are looked at together: each call of numpy takes as long as a thousand entries.
_FEW_ENTRIES = 5_000
_FEW_CELLS = 5_000  # up to so many cells it costs more to look for classes that are too small as a whole than it saves


@dataclass
class View:
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
class Slice(View):
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
            small, _ = self.below_k(self.sizes(self.other, self.n_other), whole, np.arange(self.n_other))
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
            self.moving = self.moving and self.moving.taken(keep)
        self.marginal_size = (
            self.marginal if self.size is self.count else weighted_count(self.atom, self.entry_size, self.n_atoms)
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
        added = weighted_count(groups, self.size, n_groups)
        return added if self.moving is None else added + self.moving.distinct(groups, n_groups)

    def below_k(self, sizes: Ints | Floats, rows: Ints | Floats, classes: Ints | None = None) -> tuple[Floats, Floats]:
        """Rows suppressed, and what that costs, for class parts of these sizes and rows, one an entry or a class."""
        small: Floats = np.multiply(sizes < self.k, rows, dtype=np.float64)
        return small, small * (self.entry_price if classes is None else self.price[classes])

    def groups(self, group_of_atom: Ints, n_groups: int) -> tuple[Floats, Floats]:
        """Suppressed rows and their cost per group; the groups must be monotone in the atoms."""
        progress.check()
        group = group_of_atom[self.atom]
        starts = run_starts(self.other * n_groups + group)
        if not len(starts):
            return np.zeros(n_groups), np.zeros(n_groups)
        rows = np.add.reduceat(self.count, starts)
        sizes = rows if self.size is self.count else self.sizes(_stretches(starts, len(group)), len(starts))
        small, price = self.below_k(sizes, rows, self.other[starts])
        return weighted_count(group[starts], small, n_groups), weighted_count(group[starts], price, n_groups)

    def nested_groups(self, levels: Sequence[Ints], n_groups: int) -> Iterator[tuple[Floats, Floats]]:
        """Return `groups` of several levels, the groups of each made of whole groups of the level before."""
        if self.moving is not None:  # people who are in several groups do not add up
            yield from (self.groups(group_of_atom, n_groups) for group_of_atom in levels)
            return
        progress.check()
        other, atom, rows, sizes, price = self.other, self.atom, self.count, self.size, self.entry_price
        for group_of_atom in levels:
            group = group_of_atom[atom]
            starts = run_starts(other * n_groups + group)
            if len(starts) < len(group):
                same = sizes is rows
                rows = np.add.reduceat(rows, starts)
                sizes = rows if same else np.add.reduceat(sizes, starts)
                other, atom, price, group = other[starts], atom[starts], price[starts], group[starts]
            few = (sizes < self.k).nonzero()[0]
            suppressed = rows[few]
            yield (
                weighted_count(group[few], suppressed, n_groups),
                weighted_count(group[few], suppressed * price[few], n_groups),
            )

    @cached_property
    def _begins_class(self) -> Bools:
        """Whether each entry but the first is in another class of the other columns than the entry before it."""
        return np.not_equal(self.other[1:], self.other[:-1])

    def prefixes(self, first: Ints, last: Ints) -> Floats:
        """Suppressed rows and cost of the atoms up to each atom, and of those after it, within its segment.

        Several ways to cut the atoms into segments are looked at together: ``first`` and ``last`` are the ends of the
        segment of each atom, cuts by atoms. Returns suppressed rows and cost up to it, and after it, by cuts by atoms.
        """
        progress.check()
        cuts, n_atoms = first.shape
        if cuts > 1 and len(self.atom) > _FEW_ENTRIES:
            return np.concatenate([self.prefixes(first[[cut]], last[[cut]]) for cut in range(cuts)], axis=1)
        if not len(self.atom):
            return np.zeros((4, cuts, n_atoms))
        segment = first.take(self.atom, axis=1)
        is_start = np.ones(segment.shape, bool)
        np.not_equal(segment[:, 1:], segment[:, :-1], out=is_start[:, 1:])
        is_start[:, 1:] |= self._begins_class
        starts = is_start.ravel().nonzero()[0]
        lengths = run_lengths(starts, segment.size)
        count = self.count
        rows_up_to, rows_after = up_to, after = _running(count, starts, lengths, segment.shape)
        own_first = own_last = self.size
        if self.moving is not None:  # each person counts where the prefix, or what is after it, first holds him
            stretches = (is_start.ravel().cumsum() - 1).reshape(segment.shape)
            counted = np.array([self.moving.first_and_last_counts(stretch) for stretch in stretches])
            own_first, own_last = self.size + counted[:, 0], self.size + counted[:, 1]
        if own_first is not count:
            up_to, after = _running(own_first, starts, lengths, segment.shape)
        if own_last is not own_first:
            after = _running(own_last, starts, lengths, segment.shape)[1]
        key = self.atom if cuts == 1 else (self.atom + n_atoms * np.arange(cuts)[:, None]).ravel()
        changes = np.empty((4, cuts, n_atoms))
        sides = (
            (self.below_k(up_to, rows_up_to), self.below_k(up_to - own_first, rows_up_to - count)),
            (self.below_k(after + own_last, rows_after + count), self.below_k(after, rows_after)),
        )
        for side, (grown, before) in enumerate(sides):
            for part in (0, 1):
                change = (grown[part] - before[part]).ravel()
                changes[2 * side + part] = np.bincount(key, change, first.size).reshape(first.shape)
        # Sums along the atoms, less what comes before the segment.
        sums = changes.cumsum(axis=2)
        place = n_atoms * np.arange(cuts)[:, None]
        sums -= (sums - changes).reshape(4, -1).take(first + place, axis=1)
        sums[2:] = sums[2:].reshape(2, -1).take(last + place, axis=1) - sums[2:]
        return sums


@dataclass
class Cells(View):
    """The table seen from one column while all other columns keep their recoding: a `Slice` as a matrix.

    Nodes of a hierarchy are then differences of running sums, with few and large steps. Rows are people.
    """

    rows: Floats  # the rows of each atom, NULL last where there is one, in each class of the other columns

    def __post_init__(self) -> None:
        if self.has_null:
            null, whole = self.rows[self.n_atoms], self.rows.sum(axis=0)
            self.null_part = self._suppressed(null)[::-1]
            small, price = self._suppressed(whole)
            self.root_part = price + self.weight * (float(whole.sum()) - small), small

    def _suppressed(self, rows: Floats) -> tuple[float, float]:
        """Return the rows of one group that are suppressed, given those of each class, and what that costs."""
        small = np.where(rows < self.k, rows, 0.0)
        return float(small.sum()), float((small * self.price).sum())

    def spans(self, first: Ints, end: Ints) -> tuple[Floats, Floats]:
        """Suppressed rows and their cost of groups that hold the atoms from first up to but without end."""
        progress.check()
        rows, price = self.rows[: self.n_atoms], self.price
        if rows.size <= _FEW_CELLS:
            return _suppressed(rows, price, self.k, first, end)
        # Classes that are too small even as a whole are so in every group: what they add is a sum over atoms.
        is_large = rows.sum(axis=0) >= self.k
        is_small = (~is_large).astype(np.float64)
        small, cost = _suppressed(rows.compress(is_large, axis=1), price[is_large], self.k, first, end)
        for total, weight in ((small, is_small), (cost, is_small * price)):
            running = np.append(0, np.cumsum(np.einsum("ao,o->a", rows, weight)))
            total += running[end] - running[first]
        return small, cost

    def groups(self, group_of_atom: Ints, n_groups: int) -> tuple[Floats, Floats]:
        """Suppressed rows and their cost per group; the groups must be monotone in the atoms."""
        first = run_starts(group_of_atom)
        sums = np.zeros((2, n_groups))
        sums[:, group_of_atom[first]] = self.spans(first, np.append(first[1:], self.n_atoms))
        return sums[0], sums[1]


def _suppressed(rows: Floats, price: Floats, k: float, first: Ints, end: Ints) -> tuple[Floats, Floats]:
    """Return for groups of atoms the rows that are suppressed, and their cost, given atoms by classes."""
    running = np.zeros((len(rows) + 1, rows.shape[1]))
    np.cumsum(rows, axis=0, out=running[1:])
    grouped = running.take(end, axis=0)
    grouped -= running.take(first, axis=0)
    grouped *= grouped < k
    return grouped.sum(axis=1), np.einsum("go,o->g", grouped, price)


def _stretches(starts: Ints, entries: int) -> Ints:
    """Return which of the stretches that begin at the starts each entry is in."""
    return np.repeat(np.arange(len(starts)), run_lengths(starts, entries))


def _running(entries: Array, starts: Ints, lengths: Ints, shape: tuple[int, int]) -> tuple[Array, Array]:
    """Return the sums of whole numbers up to each of them, and after it, within the stretch that it is in.

    The stretches of each of several lines begin at the starts, in the flat array; the numbers of all lines may be one.
    """
    running = entries.cumsum(axis=-1)
    at = starts % running.size
    before = (running - entries).take(at)
    whole = running.take(at + lengths - 1)
    return running - before.repeat(lengths).reshape(shape), whole.repeat(lengths).reshape(shape) - running


def sums_up_to(entries: Array, starts: Ints) -> Array:
    """Return the sum of the entries up to each of them within the stretch that it is in."""
    running = entries.cumsum()
    first = running[starts] - entries[starts]
    return np.asarray(running - first.repeat(run_lengths(starts, len(entries))))


def weighted_count(groups: Ints, values: Floats | Ints, n_groups: int) -> Floats:
    """Return the sum of the values of each group (bincount, which mypy believes to return integers)."""
    return np.asarray(np.bincount(groups, values, n_groups), dtype=np.float64)

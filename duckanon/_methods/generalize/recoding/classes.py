"""Classes of combinations, and the conditions on the sensitive values of each: l-diversity and t-closeness.

The groups of all columns are packed into one number, the key of a combination; equal keys are counted where few are
possible, and sorted where there are many. Where one column changes, the classes of all others are kept, so that a move
costs a pass over the classes and not over the columns. Sensitive values are counted as SQL counts them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Floats, Ints, find_run_starts, measure_runs, sort_distinct
from duckanon._core.common.diversity import DiversityRule
from duckanon._core.common.people import NOBODY
from duckanon._core.common.row_keys import LARGEST_KEY, order_keys, pack_columns
from duckanon._methods.generalize.recoding.views import sum_by_group

# Keys are counted one by one where there are at most so many possible ones for each entry; else they are sorted. (Not
# measured.)
_DENSE_SHARE = 6


def narrow(numbers: Ints, size: int) -> Ints:
    """Return numbers from 0 up to below `size` in as few bytes as they need; no sum or product of them is taken."""
    return numbers.astype(np.min_scalar_type(max(size - 1, 0)))


def is_dense(keys: int, entries: int) -> bool:
    """Tell whether there are so few possible keys that they are counted one by one."""
    return keys <= _DENSE_SHARE * entries + 1000


class Groups:
    """Entries grouped by keys, which are at least 0 and below a size; a group's rows are the sum of its entries'."""

    keys: Ints
    rows: Ints | Floats

    def __init__(self, key: Ints, size: int, rows: Floats | None = None) -> None:
        self._size, self._entries = size, len(key)
        self._order: Ints | None = None
        if is_dense(size, len(key)):
            self._key = key
            totals = np.bincount(key, rows, size)
            self.keys = (totals > 0).nonzero()[0]  # of truth values, which takes a third of the time
            self.rows = totals[self.keys]
            return
        self._order, ordered = order_keys(key)
        self._starts = find_run_starts(ordered)
        self.keys = ordered[self._starts]
        if rows is None:
            self.rows = measure_runs(self._starts, len(key))
        else:
            self.rows = np.add.reduceat(rows[self._order], self._starts)

    @cached_property
    def of_entry(self) -> Ints:
        """The group of each entry."""
        if self._order is None:
            number = np.empty(self._size, np.int64)
            number[self.keys] = np.arange(len(self.keys))
            return number[self._key]
        in_order = np.zeros(self._entries, np.int64)
        in_order[self._starts[1:]] = 1
        np.cumsum(in_order, out=in_order)
        group = np.empty_like(in_order)
        group[self._order] = in_order
        return group

    @cached_property
    def examples(self) -> Ints:
        """One entry of each group."""
        if self._order is not None:
            return self._order[self._starts]
        example = np.empty(self._size, np.int64)
        example[self._key] = np.arange(len(self._key))
        return example[self.keys]


@dataclass(frozen=True)
class PackedKeys:
    """Group numbers of several columns in one key, from which they can be read again."""

    # key, size: the key of each row, and a number above all keys
    key: Ints
    size: int
    # columns, bits: the columns; and how many bits of the key each has, or None where they do not fit
    columns: list[Ints]
    bits: list[int] | None

    @classmethod
    def of(cls, columns: list[Ints], sizes: list[int]) -> PackedKeys:
        """Take the columns, and how many groups each may have."""
        bits = [(size - 1).bit_length() for size in sizes]
        if 1 << sum(bits) >= LARGEST_KEY:
            return cls(*pack_columns(zip(columns, sizes, strict=True), len(columns[0])), columns, None)
        key = np.zeros(len(columns[0]), np.int64)
        for column, width in zip(columns, bits, strict=True):
            key <<= width
            key |= column
        return cls(key, 1 << sum(bits), columns, bits)

    def parts(self, groups: Groups) -> list[Ints]:
        """Return the columns of rows that were grouped by the key, one entry a group."""
        if self.bits is None:
            return [column[groups.examples] for column in self.columns]
        parts, key = [], groups.keys
        for width in reversed(self.bits):
            parts.append(narrow(key & ((1 << width) - 1), 1 << width))
            key = key >> width
        return parts[::-1]


@dataclass(frozen=True)
class Classes:
    """The classes of a state of the table."""

    of_combination: Ints  # the class of each combination
    example: Ints  # one combination of each class
    # rows, released: the rows of each class, and how many of them are released: all, or none where there are too few
    # people
    rows: Floats
    released: Floats


class OccupiedClasses:
    """Classes that hold combinations.

    Of each class it takes the group in each column, and what that loses there: columns by classes.
    """

    def __init__(self, groups: Groups, parts: Ints, losses: Floats, n_groups: list[int], rows: Ints | Floats) -> None:
        self._groups, self._parts, self._losses, self._n_groups = groups, parts, losses, n_groups
        self._rows_of_combination = rows
        self.rows = sum_by_group(groups.of_entry, rows, len(groups.keys))
        self._key, _ = pack_columns(zip(parts, n_groups, strict=True), len(self.rows))
        self._loss_of_class: Floats = losses.sum(axis=0)
        self._loss_of_column: list[float] = np.einsum("cg,g->c", losses, self.rows).tolist()
        self._outside: dict[int, Groups] = {}

    @classmethod
    def of(cls, parts: list[Ints], losses: list[Floats], rows: Ints | Floats) -> OccupiedClasses:
        """Take of each column the group of each combination, and what each group loses."""
        n_groups = [len(loss) for loss in losses]
        groups = Groups(*pack_columns(zip(parts, n_groups, strict=True), len(rows)))
        of_class = np.stack([part.take(groups.examples) for part in parts], dtype=np.int64)
        return cls(groups, of_class, np.stack(list(map(np.take, losses, of_class))), n_groups, rows)

    def change_column(self, column: int, part: Ints, losses: Floats) -> OccupiedClasses:
        """Return the classes where one column has other groups, as `of` takes them."""
        outside = self.group_outside(column)
        key = outside.of_entry.take(self.of_combination)
        key *= len(losses)
        key += part
        groups = Groups(key, len(outside.keys) * len(losses))
        other = groups.keys // len(losses)
        example = outside.examples.take(other)
        parts, class_losses = self._parts.take(example, axis=1), self._losses.take(example, axis=1)
        parts[column] = groups.keys - other * len(losses)
        class_losses[column] = losses.take(parts[column])
        n_groups = [*self._n_groups[:column], len(losses), *self._n_groups[column + 1 :]]
        return OccupiedClasses(groups, parts, class_losses, n_groups, self._rows_of_combination)

    @property
    def of_combination(self) -> Ints:
        """The class of each combination."""
        return self._groups.of_entry

    @property
    def examples(self) -> Ints:
        """One combination of each class."""
        return self._groups.examples

    def group_outside(self, column: int) -> Groups:
        """Return the classes grouped by those that differ in one column at most."""
        if column not in self._outside:
            size = math.prod(self._n_groups)
            if self._n_groups[column] == 1:
                groups = Groups(np.arange(len(self.rows)), len(self.rows))
            elif size < LARGEST_KEY:  # the key was not made shorter: the column's part can be taken out of it
                part = self._parts[column] * math.prod(self._n_groups[column + 1 :])
                groups = Groups(self._key - part, size)
            else:
                outside = [other for other in range(len(self._parts)) if other != column]
                columns = [(self._parts[other], self._n_groups[other]) for other in outside]
                groups = Groups(*pack_columns(columns, len(self.rows)))
            self._outside[column] = groups
        return self._outside[column]

    def sum_outside(self, column: int) -> tuple[Floats, float]:
        """Return what a row of each class of the other columns loses in these, and what all rows lose there."""
        losses = (self._loss_of_class - self._losses[column]).take(self.group_outside(column).examples)
        return losses, sum(self._loss_of_column[:column]) + sum(self._loss_of_column[column + 1 :])


_MOST_SHARES = 4_000_000  # shares of classes and values that are looked at at once: 32 MB


@dataclass(frozen=True)
class SensitiveEntries:
    """Sensitive values of people, by combination."""

    rule: DiversityRule
    values: int  # how many values there are
    # combination, value: one entry for each combination and value that occur together, and for each person where people
    # have several rows
    combination: Ints
    value: Ints
    count: Floats  # how many rows have them; 1 where people have several rows
    person: Ints | None  # the person of each entry; None where every row is a person

    @classmethod
    def of_entries(cls, rule: DiversityRule, value: Ints, counts: Ints, person: Ints | None) -> SensitiveEntries:
        """Take the sensitive value, the rows and the person of each entry of a table; those of nobody do not count."""
        known = np.arange(len(value)) if person is None else np.flatnonzero(person != NOBODY)
        count = counts[known].astype(np.float64) if person is None else np.ones(len(known))
        values = int(value.max()) + 1 if len(value) else 1
        return cls(rule, values, known, value[known], count, None if person is None else person[known])

    def merge(self, of_combination: Ints, combinations: int) -> SensitiveEntries:
        """Return the same values in merged combinations."""
        cell = of_combination[self.combination] * self.values + self.value
        if self.person is None:
            cells = Groups(cell, combinations * self.values, self.count)
            keys, count, person = cells.keys, np.asarray(cells.rows, np.float64), None
        else:
            people = int(self.person.max(initial=0)) + 1
            keys = sort_distinct(cell * people + self.person)
            keys, count, person = keys // people, np.ones(len(keys)), keys % people
        return replace(self, combination=keys // self.values, value=keys % self.values, count=count, person=person)

    def is_kept(self, class_of_combination: Ints, is_asked: Bools) -> Bools:
        """Tell which classes keep the rule, of those that are large enough to be released.

        Closeness is counted twice: to all, and to what is left then, since that is what a reader of the release sees. A
        release that breaks it there is none.
        """
        progress.check()
        classes = len(is_asked)
        members = self.merge(class_of_combination, classes)
        cells = members._count_cells(classes)
        is_kept = is_asked & self.rule.judge_entries(cells.combination, cells.count, classes)
        if self.rule.t is None or not is_kept.any():
            return is_kept
        is_kept &= self.rule.are_close(cells._measure_distances(members._count_totals(np.ones(classes, bool)), classes))
        if not is_kept.all() and is_kept.any():
            far = cells._measure_distances(members._count_totals(is_kept), classes)
            if not self.rule.are_close(far[is_kept]).all():
                return np.zeros(classes, bool)
        return is_kept

    def _count_cells(self, classes: int) -> SensitiveEntries:
        """Return one entry for each class and value; a person with several values counts for each."""
        if self.person is None:
            return self
        groups = Groups(self.combination * self.values + self.value, classes * self.values)
        combination, value = groups.keys // self.values, groups.keys % self.values
        return replace(self, combination=combination, value=value, count=groups.rows.astype(np.float64), person=None)

    def _count_totals(self, is_left: Bools) -> Floats:
        """Count the people of each value in all classes that are left: a person in several of them counts once."""
        inside = is_left[self.combination]
        value = self.value[inside]
        if self.person is None:
            return np.bincount(value, self.count[inside], self.values).astype(np.float64)
        people = int(self.person.max(initial=0)) + 1
        pairs = sort_distinct(value * people + self.person[inside])
        return np.bincount(pairs // people, minlength=self.values).astype(np.float64)

    def _measure_distances(self, everybody: Floats, classes: int) -> Floats:
        """Return how far the values of each class are from those of the people counted; 1 where it has none of them."""
        class_, value, count = self.combination, self.value, self.count
        occurs = np.flatnonzero(everybody > 0)
        number = np.zeros(self.values, np.int64)
        number[occurs] = np.arange(len(occurs))
        whole = (everybody / max(everybody.sum(), 1))[occurs]
        far = np.ones(classes)
        step = max(_MOST_SHARES // max(len(occurs), 1), 1)
        for first in range(0, classes, step):
            progress.check()
            last = min(first + step, classes)
            inside = (class_ >= first) & (class_ < last) & (everybody[value] > 0)
            histograms = np.zeros((last - first, len(occurs)))
            histograms[class_[inside] - first, number[value[inside]]] = count[inside]
            far[first:last] = self.rule.distances(histograms, whole)
        return far

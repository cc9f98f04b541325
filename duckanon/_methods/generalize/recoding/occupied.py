"""The classes of a state of the table that hold rows, made from those of the state before where one column changed."""

from __future__ import annotations

import math

import numpy as np

from duckanon._core.common.arrays import Floats, Ints
from duckanon._methods.generalize.recoding.classes import MOST_KEY, Groups, combine
from duckanon._methods.generalize.recoding.slices import weighted_count


class Occupied:
    """Classes that hold combinations.

    Args:
        groups: The combinations grouped by classes.
        parts, losses: The group of each class in each column, and what it loses there: columns by classes.
        n_groups: How many groups each column has.
        rows: The rows of each combination.

    Attributes:
        rows: The rows of each class.
    """

    def __init__(self, groups: Groups, parts: Ints, losses: Floats, n_groups: list[int], rows: Ints | Floats) -> None:
        self._groups, self._parts, self._losses, self._n_groups = groups, parts, losses, n_groups
        self._rows_of_combination = rows
        self.rows = weighted_count(groups.of_entry, rows, len(groups.keys))
        self._key = combine(list(parts), n_groups)[0]
        self._loss_of_class: Floats = losses.sum(axis=0)
        self._loss_of_column: list[float] = np.einsum("cg,g->c", losses, self.rows).tolist()
        self._others: dict[int, Groups] = {}

    @classmethod
    def of(cls, parts: list[Ints], losses: list[Floats], rows: Ints | Floats) -> Occupied:
        """Take of each column the group of each combination, and what each group loses."""
        n_groups = [len(loss) for loss in losses]
        groups = Groups(*combine(parts, n_groups))
        of_class = np.stack([part.take(groups.examples) for part in parts])
        return cls(groups, of_class, np.stack(list(map(np.take, losses, of_class))), n_groups, rows)

    def changed(self, column: int, part: Ints, losses: Floats) -> Occupied:
        """Return the classes where one column has other groups, as `of` takes them."""
        others = self.others(column)
        key = others.of_entry.take(self.of_combination)
        key *= len(losses)
        key += part
        groups = Groups(key, len(others.keys) * len(losses))
        other = groups.keys // len(losses)
        example = others.examples.take(other)
        parts, class_losses = self._parts.take(example, axis=1), self._losses.take(example, axis=1)
        parts[column] = groups.keys - other * len(losses)
        class_losses[column] = losses.take(parts[column])
        n_groups = [*self._n_groups[:column], len(losses), *self._n_groups[column + 1 :]]
        return Occupied(groups, parts, class_losses, n_groups, self._rows_of_combination)

    @property
    def of_combination(self) -> Ints:
        """The class of each combination."""
        return self._groups.of_entry

    @property
    def examples(self) -> Ints:
        """One combination of each class."""
        return self._groups.examples

    def others(self, column: int) -> Groups:
        """Return the classes grouped by those that differ in one column at most."""
        if column not in self._others:
            self._others[column] = self._without(column)
        return self._others[column]

    def losses_outside(self, column: int) -> tuple[Floats, float]:
        """Return what a row of each of the `others` loses in all other columns, and what all rows lose there."""
        losses = (self._loss_of_class - self._losses[column]).take(self.others(column).examples)
        return losses, sum(self._loss_of_column[:column]) + sum(self._loss_of_column[column + 1 :])

    def _without(self, column: int) -> Groups:
        if self._n_groups[column] == 1:
            return Groups(np.arange(len(self.rows)), len(self.rows))
        size = math.prod(self._n_groups)
        if size <= MOST_KEY:  # the key was not made shorter: the column's part can be taken out of it
            return Groups(self._key - self._parts[column] * math.prod(self._n_groups[column + 1 :]), size)
        others = [other for other in range(len(self._parts)) if other != column]
        return Groups(*combine([self._parts[other] for other in others], [self._n_groups[other] for other in others]))

"""The grouped table of a recoding: its combinations, the current state of each column, and what that state loses."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from duckanon.common import progress
from duckanon.common.arrays import Floats, Ints
from duckanon.common.runs import run_lengths, run_starts
from duckanon.generalize.recoding.axes import Axis
from duckanon.generalize.recoding.classes import MOST_KEY, Classes, classes_of, combine
from duckanon.generalize.recoding.columns import Closed, Slice, State, weighted_count
from duckanon.generalize.recoding.people import People

_MOST_KEPT_VIEW = 100_000
"""Combinations up to which the last view of each column is kept: some 5 MB each."""


@dataclass
class Score:
    """Loss (not yet divided by the rows) and suppressed rows of a state of the table."""

    loss: float
    suppressed: float


@dataclass(frozen=True)
class Entries:
    """What a table is made of: one entry for each combination of leaves, or several.

    Attributes
    ----------
    leaves
        For each column the leaf of each entry.
    counts
        The rows of each entry.
    sizes
        What each entry adds to the size of its class; None: its rows.
    people
        The people of the entries, where people have several rows.
    """

    leaves: list[Ints]
    counts: Ints
    sizes: Ints | None = None
    people: People | None = None


class Table:
    """The grouped table with a current state per column.

    Attributes
    ----------
    counts, sizes, atoms
        The rows of each distinct combination of atoms, what it adds to the size of its class (the same array where rows
        are people), and for each column its atoms.
    people
        The people of the combinations, where they have several rows: those who are in several of them are not in
        ``sizes``.
    groups, part, n_groups, group_loss
        For each column: the group of each atom with the loss of each group, the group of each combination, how many
        groups there are, what each loses times its weight.
    full_price
        What a suppressed row loses: all that there is to lose in every column.
    work
        How many combinations have been sorted or counted so far.
    """

    def __init__(self, entries: Entries, axes: list[Axis], weights: Floats, k: int) -> None:
        atoms = [axis.atom_of_leaf[codes] for axis, codes in zip(axes, entries.leaves, strict=True)]
        key, _ = combine(atoms, [axis.n_atoms + 1 for axis in axes])
        # Which of several equal keys comes first does not matter: only their sum and their atoms are kept.
        progress.check()
        order = np.argsort(key)
        starts = run_starts(key[order])
        progress.check()
        self.counts = np.add.reduceat(entries.counts[order], starts)
        self.sizes: Ints | Floats = (
            self.counts if entries.sizes is None else np.add.reduceat(entries.sizes[order], starts)
        )
        self.people: People | None = None
        if entries.people is not None:
            combination = np.empty(len(order), np.int64)
            combination[order] = np.repeat(np.arange(len(starts)), run_lengths(starts, len(order)))
            self.people = entries.people.merged(combination, len(starts))
            self.sizes = self.people.settled
        self.atoms = [part[order[starts]] for part in atoms]
        self.axes, self.weights, self.k = axes, weights, k
        self.full_price = float(weights.sum())
        self.states: list[State] = [(-1,)] * len(axes)
        self.part: list[Ints] = [np.empty(0, dtype=np.int64)] * len(axes)
        self.groups: list[tuple[Ints, Floats]] = [(np.empty(0, dtype=np.int64), np.empty(0))] * len(axes)
        self.n_groups = [1] * len(axes)
        self.group_loss: list[Floats] = [np.empty(0)] * len(axes)
        self.rows = int(self.counts.sum())
        self.work = 0
        self._key: Ints | None = None
        self._last_views: dict[int, tuple[list[State], Slice]] = {}
        self.set_states([axis.top for axis in axes])

    @property
    def entries(self) -> Entries:
        """The table's combinations, for a table with coarser atoms: any leaf of an atom stands for all of them."""
        leaves = [axis.leaf_of_atom[atoms] for axis, atoms in zip(self.axes, self.atoms, strict=True)]
        sizes = None if self.sizes is self.counts or self.people is not None else np.asarray(self.sizes, np.int64)
        return Entries(leaves, self.counts, sizes, self.people)

    @property
    def view_work(self) -> int:
        """What it takes to look at the table from one column, in combinations."""
        return len(self.counts) + (0 if self.people is None else len(self.people.person))

    def set_state(self, column: int, state: State) -> None:
        """Give one column another state."""
        if state == self.states[column]:
            return
        group, loss = self.axes[column].groups(state)
        self._key = None
        self.states[column] = state
        self.groups[column] = group, loss
        self.part[column] = group[self.atoms[column]]
        self.n_groups[column] = len(loss)
        self.group_loss[column] = self.weights[column] * loss

    def set_states(self, states: list[State]) -> None:
        """Give every column its state."""
        for column, state in enumerate(states):
            self.set_state(column, state)

    def view(self, column: int) -> Slice:
        """Return the table as seen from one column, which is the same as long as no other column changes."""
        progress.check()
        self.work += self.view_work
        if self.view_work > _MOST_KEPT_VIEW:
            return self._view(column)
        states = [*self.states[:column], *self.states[column + 1 :]]
        last_states, last_view = self._last_views.get(column, (None, None))
        if last_view is None or last_states != states:
            last_view = self._view(column)
            self._last_views[column] = states, last_view
        return last_view

    def _view(self, column: int) -> Slice:
        axis = self.axes[column]
        key, size = self._other_key(column)
        width = axis.n_atoms + axis.has_null
        if size > MOST_KEY // width:
            key = np.unique(key, return_inverse=True)[1]
        key = key * width + self.atoms[column]
        order = np.argsort(key)
        key = key[order]
        starts = run_starts(key)
        key = key[starts]
        count = np.add.reduceat(self.counts[order], starts)
        sizes = count if self.sizes is self.counts else np.add.reduceat(self.sizes[order], starts)
        moving = None
        if self.people is not None:
            entry_of_combination = np.empty(len(order), np.int64)
            entry_of_combination[order] = np.repeat(np.arange(len(starts)), run_lengths(starts, len(order)))
            moving = self.people.moving(entry_of_combination)
        atom = key % width
        other_key = key // width
        class_starts = run_starts(other_key)
        class_of_entry = np.repeat(np.arange(len(class_starts)), run_lengths(class_starts, len(key)))
        combination_of_class = order[starts[class_starts]]
        loss = np.zeros(len(class_starts))
        for other in range(len(self.axes)):
            if other != column:
                loss += self.group_loss[other][self.part[other][combination_of_class]]
        return Slice(
            other=class_of_entry,
            atom=atom,
            count=count,
            size=sizes,
            moving=moving,
            price=self.full_price - loss,
            base=float(loss @ np.add.reduceat(count, class_starts)),
            k=self.k,
            weight=float(self.weights[column]),
            n_other=len(class_starts),
            n_atoms=axis.n_atoms,
            has_null=axis.has_null,
        )

    def _other_key(self, column: int) -> tuple[Ints, int]:
        """Return a number below a limit for each combination, the same for those that differ in one column at most."""
        size = math.prod(self.n_groups)
        if size > MOST_KEY:
            others = [other for other in range(len(self.axes)) if other != column]
            return combine([self.part[other] for other in others], [self.n_groups[other] for other in others])
        if self._key is None:
            self._key, _ = combine(self.part, self.n_groups)
        if self.n_groups[column] == 1:
            return self._key, size
        return self._key - self.part[column] * math.prod(self.n_groups[column + 1 :]), size

    def score(self) -> Score:
        """Return the loss and the suppressed rows of the current state, as its moves are scored."""
        classes = self._classes()
        return self._score(classes, self._group_of_class(classes), self.group_loss)

    def closed_score(self) -> tuple[Score, list[Closed], list[Ints]]:
        """Return the score of the current state as it will be released, its groups then, and the released rows of each.

        People are counted, and groups of which no row is released merge with others: no label tells of them.
        """
        classes = self._classes()
        groups = self._group_of_class(classes)
        closed = []
        for axis, state, (of_atom, losses), group in zip(self.axes, self.states, self.groups, groups, strict=True):
            is_released = weighted_count(group, classes.released, len(losses)) > 0
            closed.append(axis.closed(state, of_atom, losses, is_released))
        if any(own.has_merged for own in closed):
            groups = [own.group[atoms[classes.example]] for own, atoms in zip(closed, self.atoms, strict=True)]
            classes, members = self._merged(classes, *combine(groups, [len(own.losses) for own in closed]))
            groups = [group[members] for group in groups]
        rows = [
            weighted_count(group, classes.released, len(own.losses)).astype(np.int64)
            for group, own in zip(groups, closed, strict=True)
        ]
        weighted = [weight * own.losses for own, weight in zip(closed, self.weights, strict=True)]
        return self._score(classes, groups, weighted), closed, rows

    def _group_of_class(self, classes: Classes) -> list[Ints]:
        """Return of each column the group of each class."""
        return [part[classes.example] for part in self.part]

    def _classes(self) -> Classes:
        """Return the classes of the current state."""
        key, size = classes_of(*combine(self.part, self.n_groups))
        self.work += len(key)
        example = np.full(size, -1)
        example[key] = np.arange(len(key))
        occupied = np.flatnonzero(example >= 0)
        if len(occupied) < size:
            number = np.empty(size, np.int64)
            number[occupied] = np.arange(len(occupied))
            key = number[key]
        return self._counted(key, example[occupied], weighted_count(key, self.counts, len(occupied)))

    def _merged(self, classes: Classes, key: Ints, size: int) -> tuple[Classes, Ints]:
        """Return classes made of others, given by a key for each of these, and one of them for each."""
        key, size = classes_of(key, size)
        _, members, number = np.unique(key, return_index=True, return_inverse=True)
        number = number.reshape(-1)
        rows = weighted_count(number, classes.rows, len(members))
        return self._counted(number[classes.of_combination], classes.example[members], rows), members

    def _counted(self, of_combination: Ints, example: Ints, rows: Floats) -> Classes:
        """Return classes with what is counted in them."""
        if self.people is not None:
            sizes = self.people.sizes(of_combination, len(example))
        elif self.sizes is self.counts:
            sizes = rows
        else:
            sizes = weighted_count(of_combination, self.sizes, len(example))
        return Classes(of_combination, example, rows, np.where(sizes < self.k, 0, rows))

    def _score(self, classes: Classes, groups: list[Ints], group_losses: list[Floats]) -> Score:
        """Return the score of classes, given the group of each of them in every column."""
        loss = np.zeros(len(classes.rows))
        for group, group_loss in zip(groups, group_losses, strict=True):
            loss += group_loss[group]
        suppressed = self.rows - float(classes.released.sum())
        # Not a product of vectors: the threads of a linear algebra library cost more than they save here.
        return Score(float((loss * classes.released).sum()) + self.full_price * suppressed, suppressed)

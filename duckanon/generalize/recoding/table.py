"""The grouped table of a recoding: its combinations, the current state of each column, and what that state loses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from duckanon.common import progress
from duckanon.common.arrays import Bools, Floats, Ints
from duckanon.common.runs import run_starts
from duckanon.generalize.recoding.axes import Axis
from duckanon.generalize.recoding.columns import Closed, Slice, State, weighted_count
from duckanon.generalize.recoding.people import People

_MOST_KEY = 2**61
"""Keys of combinations stay below this, so that int64 never overflows."""


def combine(parts: list[Ints], sizes: list[int]) -> tuple[Ints, int]:
    """Combine group numbers into one number per row; return it and the number of possible values."""
    key = np.zeros(len(parts[0]), dtype=np.int64) if parts else np.zeros(0, dtype=np.int64)
    size = 1
    for part, n in zip(parts, sizes, strict=True):
        if size > _MOST_KEY // max(n, 1):
            distinct, key = np.unique(key, return_inverse=True)
            size = len(distinct)
        key = key * n + part
        size *= n
    return key, size


def classes_of(key: Ints, size: int) -> tuple[Ints, int]:
    """Return the class of each combination, given the combinations' keys below ``size``, and the number of classes.

    Classes may be empty, as long as they are few.
    """
    if size > 4 * len(key) + 1000:  # too many possible keys to count them all
        distinct, key = np.unique(key, return_inverse=True)
        return key.reshape(-1), len(distinct)
    return key, size


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
    part, n_groups, group_loss
        For each column: the group of each combination, how many groups there are, what each loses times its weight.
    full_price
        What a suppressed row loses: all that there is to lose in every column.
    work
        How many combinations have been sorted or counted so far.
    """

    def __init__(self, entries: Entries, axes: list[Axis], weights: Floats, k: int) -> None:
        atoms = [axis.atom_of_leaf[codes] for axis, codes in zip(axes, entries.leaves, strict=True)]
        key, _ = combine(atoms, [axis.n_atoms + 1 for axis in axes])
        # Which of several equal keys comes first does not matter: only their sum and their atoms are kept.
        order = np.argsort(key)
        starts = run_starts(key[order])
        self.counts = np.add.reduceat(entries.counts[order], starts)
        self.sizes: Ints | Floats = (
            self.counts if entries.sizes is None else np.add.reduceat(entries.sizes[order], starts)
        )
        self.people: People | None = None
        if entries.people is not None:
            combination = np.empty(len(order), np.int64)
            combination[order] = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(order))))
            self.people = entries.people.merged(combination, len(starts))
            self.sizes = self.people.settled
        self.atoms = [part[order[starts]] for part in atoms]
        self.axes, self.weights, self.k = axes, weights, k
        self.full_price = float(weights.sum())
        self.states: list[State] = [(-1,)] * len(axes)
        self.part: list[Ints] = [np.empty(0, dtype=np.int64)] * len(axes)
        self.n_groups = [1] * len(axes)
        self.group_loss: list[Floats] = [np.empty(0)] * len(axes)
        self.rows = int(self.counts.sum())
        self.work = 0
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
        self.states[column] = state
        self.part[column] = group[self.atoms[column]]
        self.n_groups[column] = len(loss)
        self.group_loss[column] = self.weights[column] * loss

    def set_states(self, states: list[State]) -> None:
        """Give every column its state."""
        for column, state in enumerate(states):
            self.set_state(column, state)

    def view(self, column: int) -> Slice:
        """Return the table as seen from one column."""
        progress.check()
        others = [other for other in range(len(self.axes)) if other != column and self.n_groups[other] > 1]
        axis = self.axes[column]
        key, size = combine(
            [self.part[other] for other in others] or [np.zeros_like(self.counts)],
            [self.n_groups[other] for other in others] or [1],
        )
        width = axis.n_atoms + axis.has_null
        if size > _MOST_KEY // width:
            key = np.unique(key, return_inverse=True)[1]
        key = key * width + self.atoms[column]
        self.work += len(key)
        order = np.argsort(key)
        key = key[order]
        starts = run_starts(key)
        key = key[starts]
        count = np.add.reduceat(self.counts[order], starts)
        sizes = count if self.sizes is self.counts else np.add.reduceat(self.sizes[order], starts)
        moving = None
        if self.people is not None:
            entry_of_combination = np.empty(len(order), np.int64)
            entry_of_combination[order] = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(order))))
            moving = self.people.moving(entry_of_combination)
            self.work += len(self.people.person)
        atom = key % width
        other_key = key // width
        class_starts = run_starts(other_key)
        class_of_entry = np.repeat(np.arange(len(class_starts)), np.diff(np.append(class_starts, len(key))))
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

    def score(self) -> Score:
        """Return the loss and the suppressed rows of the current state, as its moves are scored."""
        return self._score(self.part, self.group_loss, self._is_small(self.part, self.n_groups))

    def closed_score(self) -> tuple[Score, list[Closed], list[Ints]]:
        """Return the score of the current state as it will be released, its groups then, and the released rows of each.

        People are counted, and groups of which no row is released merge with others: no label tells of them.
        """
        small = self._is_small(self.part, self.n_groups)
        closed = []
        for column, axis in enumerate(self.axes):
            released = weighted_count(self.part[column], np.where(small, 0, self.counts), self.n_groups[column])
            closed.append(axis.closed(self.states[column], released > 0))
        parts = [own.group[atoms] for own, atoms in zip(closed, self.atoms, strict=True)]
        if any(own.has_merged for own in closed):
            small = self._is_small(parts, [len(own.losses) for own in closed])
        losses = [weight * own.losses for own, weight in zip(closed, self.weights, strict=True)]
        released = np.where(small, 0, self.counts)
        rows = [
            weighted_count(part, released, len(own.losses)).astype(np.int64)
            for part, own in zip(parts, closed, strict=True)
        ]
        return self._score(parts, losses, small), closed, rows

    def _is_small(self, parts: list[Ints], n_groups: list[int]) -> Bools:
        """Tell of each combination whether its class is too small to be released."""
        classes, n_classes = classes_of(*combine(parts, n_groups))
        self.work += len(classes)
        if self.people is None:
            sizes = weighted_count(classes, self.sizes, n_classes)
        else:
            sizes = self.people.sizes(classes, n_classes)
        is_small: Bools = sizes[classes] < self.k
        return is_small

    def _score(self, parts: list[Ints], group_losses: list[Floats], small: Bools) -> Score:
        loss = np.zeros(len(self.counts))
        for part, group_loss in zip(parts, group_losses, strict=True):
            loss += group_loss[part]
        return Score(float(np.where(small, self.full_price, loss) @ self.counts), float(self.counts[small].sum()))

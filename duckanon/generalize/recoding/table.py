"""The grouped table of a recoding: its combinations, the current state of each column, and what that state loses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from duckanon.common.arrays import Floats, Ints
from duckanon.common.runs import run_starts
from duckanon.generalize.recoding.axes import Axis
from duckanon.generalize.recoding.columns import Slice, State, weighted_count

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


def rows_of_class(key: Ints, size: int, counts: Ints) -> Floats:
    """Return for each combination how many rows its class has, given the combinations' keys below ``size``."""
    if size > 4 * len(key) + 1000:  # too many possible keys to count them all
        key = np.unique(key, return_inverse=True)[1]
        size = 0
    return weighted_count(key, counts, size)[key]


@dataclass
class Score:
    """Loss (not yet divided by the rows) and suppressed rows of a state of the table."""

    loss: float
    suppressed: float


class Table:
    """The grouped table with a current state per column.

    Attributes
    ----------
    counts, atoms
        The rows of each distinct combination of atoms, and for each column its atoms.
    part, n_groups, group_loss
        For each column: the group of each combination, how many groups there are, what each loses times its weight.
    full_price
        What a suppressed row loses: all that there is to lose in every column.
    work
        How many combinations have been sorted or counted so far.
    """

    def __init__(self, counts: Ints, leaves: list[Ints], axes: list[Axis], weights: Floats, k: int) -> None:
        atoms = [axis.atom_of_leaf[codes] for axis, codes in zip(axes, leaves, strict=True)]
        key, _ = combine(atoms, [axis.n_atoms + 1 for axis in axes])
        # Which of several equal keys comes first does not matter: only their sum and their atoms are kept.
        order = np.argsort(key)
        starts = run_starts(key[order])
        self.counts = np.add.reduceat(counts[order], starts)
        self.atoms = [part[order[starts]] for part in atoms]
        self.axes, self.weights, self.k = axes, weights, k
        self.full_price = float(weights.sum())
        self.states: list[State] = [(-1,)] * len(axes)
        self.part: list[Ints] = [np.empty(0, dtype=np.int64)] * len(axes)
        self.n_groups = [1] * len(axes)
        self.group_loss: list[Floats] = [np.empty(0)] * len(axes)
        self.rows = int(counts.sum())
        self.work = 0
        self.set_states([axis.top for axis in axes])

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
            price=self.full_price - loss,
            base=float(loss @ np.add.reduceat(count, class_starts)),
            k=self.k,
            weight=float(self.weights[column]),
            n_other=len(class_starts),
            n_atoms=axis.n_atoms,
            has_null=axis.has_null,
        )

    def score(self) -> Score:
        """Return the loss and the suppressed rows of the current state."""
        key, size = combine(self.part, self.n_groups)
        loss = np.zeros(len(key))
        for part, group_loss in zip(self.part, self.group_loss, strict=True):
            loss += group_loss[part]
        self.work += len(key)
        small = rows_of_class(key, size, self.counts) < self.k
        return Score(float(np.where(small, self.full_price, loss) @ self.counts), float(self.counts[small].sum()))

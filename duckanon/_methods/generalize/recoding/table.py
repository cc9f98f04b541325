"""The grouped table of a recoding: its combinations, the current state of each column, and what that state loses.

Rows with the same atoms are one combination; codes are as narrow as they can be, which saves a gigabyte for a million
rows. A search asks for the same few views again and again, so that those of small tables are kept. A state is scored as
its moves are, or as it will be released: then groups of which no row is released merge with others, and people are
counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Floats, Ints
from duckanon._core.common.row_keys import pack_columns
from duckanon._methods.generalize.recoding.axes import Axis, ClosedGroups, ColumnState, tells_of_nobody
from duckanon._methods.generalize.recoding.classes import (
    Classes,
    Groups,
    OccupiedClasses,
    PackedKeys,
    SensitiveEntries,
    is_dense,
    narrow,
)
from duckanon._methods.generalize.recoding.people import People
from duckanon._methods.generalize.recoding.views import CellView, EntryView, sum_by_group

# Combinations up to which the last view of each column is kept, some 5 MB each, and pairs of them with people who are
# in several: their part of a view takes as much. Of smaller tables as many views are kept as that allows, since the
# search comes back to the same states: of a thousand rows with three columns it made one view in six again.
_MOST_KEPT_VIEW, _MOST_KEPT_PAIRS = 100_000, 300_000


@dataclass
class Score:
    """Loss (not yet divided by the rows) and suppressed rows of a state of the table."""

    loss: float
    suppressed: float


@dataclass(frozen=True)
class Entries:
    """The entries that a table is made of: one for each combination of leaves, or several."""

    leaves: list[Ints]  # for each column the leaf of each entry
    counts: Ints  # the rows of each entry
    sizes: Ints | None = None  # what each entry adds to the size of its class; None: its rows
    people: People | None = None  # the people of the entries, where people have several rows
    sensitive: SensitiveEntries | None = None  # their sensitive values, where a rule holds for these


class Sizes(NamedTuple):
    """The number of people that every class has as it is promised, and as the search seeks it.

    It seeks more where a rule holds for their sensitive values too, which larger classes keep more often.
    """

    promised: int
    sought: int


class PlanTable:
    """The grouped table with a current state per column."""

    def __init__(self, entries: Entries, axes: list[Axis], weights: Floats, k: Sizes) -> None:
        atoms = [
            narrow(axis.atom_of_leaf, axis.n_atoms + 1)[codes] for axis, codes in zip(axes, entries.leaves, strict=True)
        ]
        progress.check()
        packed = PackedKeys.of(atoms, [axis.n_atoms + 1 for axis in axes])
        combinations = Groups(packed.key, packed.size)
        progress.check()
        # The rows of each distinct combination of atoms, and what it adds to the size of its class: one array if rows
        # are people; where people have several rows, those who are in several combinations are not in it.
        counts = _sum_groups(combinations, entries.counts)
        self.counts = narrow(counts, int(counts.max(initial=0)) + 1)
        self.sizes: Ints | Floats = self.counts if entries.sizes is None else _sum_groups(combinations, entries.sizes)
        self.people: People | None = None
        if entries.people is not None:
            self.people = entries.people.merge(combinations.of_entry, len(combinations.keys))
            self.sizes = self.people.settled
        self.sensitive = entries.sensitive and entries.sensitive.merge(combinations.of_entry, len(combinations.keys))
        self.of_entry = narrow(combinations.of_entry, len(combinations.keys))
        self.atoms = packed.parts(combinations)  # as narrow as they can be: a gigabyte in a table of a million rows
        del packed, combinations, counts  # before more is made
        self._weights = self.counts.astype(np.float64)
        self._rows = self._weights if self.counts.all() else None
        self.axes, self.weights, self.k, self.promised_k = axes, weights, k.sought, k.promised
        self.full_price = float(weights.sum())  # a suppressed row loses all that there is to lose in every column
        self.states: list[ColumnState] = [(-1,)] * len(axes)
        # Of each column: the group of each combination; the group of each atom with the loss of each group; and what
        # each group loses times the column's weight.
        self.part: list[Ints] = [np.empty(0, dtype=np.int64)] * len(axes)
        self.groups: list[tuple[Ints, Floats]] = [(np.empty(0, dtype=np.int64), np.empty(0))] * len(axes)
        self.group_loss: list[Floats] = [np.empty(0)] * len(axes)
        self.rows = int(self.counts.sum())
        self.work = 0  # combinations that have been sorted or counted so far
        self._kept: list[tuple[list[ColumnState], OccupiedClasses]] = []
        pairs = 0 if self.people is None else len(self.people.person)
        self._keeps_views = len(self.counts) <= _MOST_KEPT_VIEW and pairs <= _MOST_KEPT_PAIRS
        self._most_kept = max(len(axes), _MOST_KEPT_VIEW // max(self.view_work, 1000))
        # The view that was asked for last comes last.
        self._views: dict[tuple[int, tuple[ColumnState, ...]], EntryView | CellView] = {}
        leaf_rows = (
            np.bincount(atoms, self.counts, axis.n_atoms + 1) for axis, atoms in zip(axes, self.atoms, strict=True)
        )
        self._marginals = [rows[: axis.n_atoms].astype(np.int64) for rows, axis in zip(leaf_rows, axes, strict=True)]
        self.set_states([axis.top for axis in axes])

    @property
    def entries(self) -> Entries:
        """The table's combinations, for a table with coarser atoms: any leaf of an atom stands for all of them."""
        leaves = [
            narrow(axis.leaf_of_atom, len(axis.atom_of_leaf))[atoms]
            for axis, atoms in zip(self.axes, self.atoms, strict=True)
        ]
        sizes = None if self.sizes is self.counts or self.people is not None else np.asarray(self.sizes, np.int64)
        return Entries(leaves, self.counts, sizes, self.people, self.sensitive)

    @property
    def view_work(self) -> int:
        """The cost of a view of the table from one column, in combinations."""
        return len(self.counts) + (0 if self.people is None else len(self.people.person))

    def set_state(self, column: int, state: ColumnState) -> None:
        """Give one column another state."""
        if state == self.states[column]:
            return
        group, loss = self.axes[column].groups(state)
        self.states[column] = state
        self.groups[column] = group, loss
        self.part[column] = narrow(group, len(loss))[self.atoms[column]]
        self.group_loss[column] = self.weights[column] * loss

    def set_states(self, states: list[ColumnState]) -> None:
        """Give every column its state."""
        for column, state in enumerate(states):
            self.set_state(column, state)

    def view(self, column: int) -> EntryView | CellView:
        """Return the table as seen from one column, which is the same as long as no other column changes."""
        progress.check()
        self.work += self.view_work
        if not self._keeps_views:
            return self._make_view(column)
        key = column, (*self.states[:column], *self.states[column + 1 :])
        view = self._views.pop(key, None) or self._make_view(column)
        self._views[key] = view
        if len(self._views) > self._most_kept:
            del self._views[next(iter(self._views))]
        return view

    def _make_view(self, column: int) -> EntryView | CellView:
        axis = self.axes[column]
        occupied = self._update_classes()
        outside = occupied.group_outside(column)
        loss, base = occupied.sum_outside(column)
        price, weight = self.full_price - loss, float(self.weights[column])
        common = self._marginals[column], price, base, self.k, weight, axis.n_atoms, axis.has_null
        atoms = axis.n_atoms + axis.has_null
        if axis.has_nodes and self.sizes is self.counts and is_dense(len(loss) * atoms, len(self.counts)):
            key = self.atoms[column].astype(np.int64) * len(loss)
            key += outside.of_entry.take(occupied.of_combination)
            cells = sum_by_group(key, self._weights, len(loss) * atoms).reshape(atoms, len(loss))
            return CellView(*common, cells)
        bits = int(atoms - 1).bit_length()  # shifts are quicker than products and divisions
        key = (outside.of_entry << bits).take(occupied.of_combination)
        key += self.atoms[column]
        entries = Groups(key, len(loss) << bits, self._rows)
        count = entries.rows.astype(np.int64) if self._rows is not None else _sum_groups(entries, self.counts)
        added = count if self.sizes is self.counts else sum_by_group(entries.of_entry, self.sizes, len(entries.keys))
        other, moving = entries.keys >> bits, None
        if self.people is not None:
            counted, moving = self.people.moving(entries.of_entry, other)
            added = added + counted
        return EntryView(
            *common,
            other=other,
            atom=entries.keys & ((1 << bits) - 1),
            count=count,
            size=added,
            moving=moving,
            n_other=len(loss),
        )

    def _update_classes(self) -> OccupiedClasses:
        """Return the classes of the current state, made from one of the last two where it differs in one column."""
        for states, kept in self._kept:
            changed = [column for column, state in enumerate(states) if state != self.states[column]]
            if not changed:
                return kept
            if len(changed) == 1:
                new = kept.change_column(changed[0], self.part[changed[0]], self.group_loss[changed[0]])
                break
        else:
            new = OccupiedClasses.of(self.part, self.group_loss, self._weights)
        self._kept = [(list(self.states), new), *self._kept[:1]]
        return new

    def score(self) -> Score:
        """Return the loss and the suppressed rows of the current state, as its moves are scored."""
        classes = self._count_classes()
        return self._score_classes(classes, self._list_groups(classes), self.group_loss)

    def score_release(self, is_promised: bool = False) -> tuple[Score, list[ClosedGroups], list[Ints], Classes]:
        """Return the current state as it will be released: score, groups with their released rows, and classes.

        People are counted, and groups of which no row is released merge with others, since they have no label. Classes
        are released that keep all that is promised, or that are large enough for a move.
        """
        classes = self._count_classes(is_promised)
        groups = self._list_groups(classes)
        closed = []
        for axis, state, (of_atom, losses), group in zip(self.axes, self.states, self.groups, groups, strict=True):
            is_released = sum_by_group(group, classes.released, len(losses)) > 0
            closed.append(axis.close(state, of_atom, losses, is_released))
        if any(column.has_merged for column in closed):
            groups = [column.group[atoms[classes.example]] for column, atoms in zip(closed, self.atoms, strict=True)]
            sizes = [len(column.losses) for column in closed]
            key, _ = pack_columns(zip(groups, sizes, strict=True), len(classes.example))
            classes, members = self._merge_classes(classes, key, is_promised)
            groups = [group[members] for group in groups]
        rows = [
            sum_by_group(group, classes.released, len(column.losses)).astype(np.int64)
            for group, column in zip(groups, closed, strict=True)
        ]
        weighted = [weight * column.losses for column, weight in zip(closed, self.weights, strict=True)]
        score = self._score_classes(classes, groups, weighted)
        if is_promised and self.sensitive is not None and tells_of_nobody(closed, groups, rows):
            score = Score(score.loss, float(self.rows))
        return score, closed, rows, classes

    def _list_groups(self, classes: Classes) -> list[Ints]:
        """Return of each column the group of each class."""
        return [part[classes.example] for part in self.part]

    def _count_classes(self, is_promised: bool = False) -> Classes:
        """Return the classes of the current state."""
        occupied = self._update_classes()
        self.work += len(self.counts)
        return self._measure_classes(occupied.of_combination, occupied.examples, occupied.rows, is_promised)

    def _merge_classes(self, classes: Classes, key: Ints, is_promised: bool) -> tuple[Classes, Ints]:
        """Return classes made of others, given by a key for each of these, and one of them for each."""
        _, members, number = np.unique(key, return_index=True, return_inverse=True)
        number = number.reshape(-1)
        rows = sum_by_group(number, classes.rows, len(members))
        return self._measure_classes(
            number[classes.of_combination], classes.example[members], rows, is_promised
        ), members

    def _measure_classes(self, of_combination: Ints, example: Ints, rows: Floats, is_promised: bool) -> Classes:
        """Return classes with what is counted in them."""
        if self.people is not None:
            sizes = self.people.sizes(of_combination, len(example))
        elif self.sizes is self.counts:
            sizes = rows
        else:
            sizes = sum_by_group(of_combination, self.sizes, len(example))
        is_kept = sizes >= (self.promised_k if is_promised else self.k)
        if is_promised and self.sensitive is not None:
            is_kept = self.sensitive.is_kept(of_combination, is_kept)
        return Classes(of_combination, example, rows, np.where(is_kept, rows, 0))

    def _score_classes(self, classes: Classes, groups: list[Ints], group_losses: list[Floats]) -> Score:
        """Return the score of classes, given the group of each of them in every column."""
        loss = np.zeros(len(classes.rows))
        for group, group_loss in zip(groups, group_losses, strict=True):
            loss += group_loss[group]
        suppressed = self.rows - float(classes.released.sum())
        # Not a product of vectors: the threads of a linear algebra library cost more than they save here.
        return Score(float((loss * classes.released).sum()) + self.full_price * suppressed, suppressed)


def _sum_groups(groups: Groups, values: Ints) -> Ints:
    """Return the sum of whole numbers of each group."""
    return sum_by_group(groups.of_entry, values, len(groups.keys)).astype(np.int64)

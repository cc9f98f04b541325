"""One column as the search sees it: atoms that are never split, and states made of groups of atoms."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from typing import Any, TypeAlias

import numpy as np

from duckanon._core.common.arrays import Array, Bools, Floats, Ints, run_lengths, run_starts
from duckanon._methods.generalize.recoding.column_moves import EDIT, ROOT, Closed, ColumnRecoding, Moves, Ordered, State
from duckanon._methods.generalize.recoding.views import Slice, View

# Loss, suppressed rows, kind, removed and added of moves: the fields of `Moves`, of which some may be one number.
Candidates: TypeAlias = tuple[Floats, Floats, int | Ints, int | Ints, int | Ints]


class Axis(ABC):
    """Base of all kinds of columns."""

    coarsest: tuple[int, ...]  # the state with one group, NULL apart
    rest_loss = 1.0  # of the group of all values that are told of nobody
    has_nodes = False  # whether all that it asks of a view is what nodes of a hierarchy would cost

    def __init__(self, atom_of_leaf: Ints, n_atoms: int, has_null: bool) -> None:
        self.n_atoms, self.has_null = n_atoms, has_null
        # NULL is the atom after all others, which n_atoms does not count.
        self.atom_of_leaf = np.append(atom_of_leaf, n_atoms) if has_null else atom_of_leaf

    @abstractmethod
    def _groups(self, state: tuple[int, ...]) -> tuple[Ints, Floats]:
        """Return the group of each atom that is not NULL and the loss of each group."""

    @abstractmethod
    def _candidates(self, state: tuple[int, ...], view: Any) -> list[Candidates]:
        """Return loss, suppressed rows, kind, removed and added of moves, in this column only."""

    @abstractmethod
    def _edit(self, state: tuple[int, ...], kind: int, removed: int, added: int) -> tuple[int, ...]:
        """Return the state after a move."""

    @abstractmethod
    def _portable(self, state: tuple[int, ...]) -> tuple[int, ...]:
        """Return the state in terms of leaves, nodes or levels."""

    @abstractmethod
    def _adopt(self, portable: tuple[int, ...]) -> tuple[int, ...]:
        """Return the state of this axis that is the same recoding."""

    def portable(self, state: State) -> State:
        """Return the state in terms of leaves, nodes or levels, which an axis with other atoms can adopt."""
        return None if state is None else self._portable(state)

    def adopted(self, portable: State) -> State:
        """Return the state of this axis that is the same recoding, which may be that of one group of everything."""
        return self.top if portable is None else self._adopt(portable)

    @property
    def leaf_of_atom(self) -> Ints:
        """The last leaf of each atom, NULL included."""
        leaf = np.empty(self.n_atoms + self.has_null, dtype=np.int64)
        leaf[self.atom_of_leaf] = np.arange(len(self.atom_of_leaf))
        return leaf

    @property
    def top(self) -> State:
        """The one group that holds everything."""
        return None if self.has_null else self.coarsest

    def groups(self, state: State) -> tuple[Ints, Floats]:
        """Return the group of each atom and the loss of each group."""
        if state is None:
            return np.zeros(self.n_atoms + 1, dtype=np.int64), np.ones(1)
        group, loss = self._groups(state)
        if self.has_null:
            group, loss = np.append(group, len(loss)), np.append(loss, 0.0)
        return group, loss

    def closed(self, state: State, group: Ints, losses: Floats, is_released: Bools) -> Closed:
        """Return the groups of a state as they are released: groups of which no row is merge with others."""
        if state is None or is_released.all():
            return Closed(group, losses, self._rest(state))
        return self._closed(state, is_released, group, losses)

    def recoding(self, state: State, closed: Closed, rows: Ints) -> ColumnRecoding:
        """Turn the groups of atoms, as they are released, with their released rows, into groups of leaves."""
        return ColumnRecoding(closed.group[self.atom_of_leaf], closed.losses, rows, closed.rest, self._level(state))

    def _level(self, state: State) -> int | None:
        """Return the level that a state takes, where there are levels."""
        return None

    def _rest(self, state: State) -> int:
        """Return the group that is called as what no other group says, while all groups are released."""
        return -1

    def _closed(self, state: tuple[int, ...], is_released: Bools, group: Ints, losses: Floats) -> Closed:
        """Put all groups of which no row is released into one that says nothing."""
        rest = len(losses)
        return Closed(np.where(is_released[group], group, rest), np.append(losses, self.rest_loss), rest, True)

    def moves(self, state: State, view: View) -> Moves:
        """Return the neighbours of a state, each with its loss and suppressed rows in the whole table."""
        if state is None:
            group, loss = self._groups(self.coarsest)
            small, price = view.groups(group, len(loss))
            cost = view.cost(loss, view.marginal.sum(keepdims=True), small, price)
            candidates: list[Candidates] = [(cost + view.null_part[0], small + view.null_part[1], ROOT, 0, 0)]
        else:
            candidates = [
                (cost + view.null_part[0], small + view.null_part[1], kind, removed, added)
                for cost, small, kind, removed, added in self._candidates(state, view)
            ]
            if self.has_null:
                candidates.append((np.array([view.root_part[0]]), np.array([view.root_part[1]]), ROOT, 0, 0))
        if not candidates:
            none = np.empty(0, dtype=np.int64)
            return Moves(np.empty(0), np.empty(0), none, none, none)

        def joined(field: int) -> Array:
            of_parts = ((part[field], len(part[0])) for part in candidates)
            parts = [np.full(moves, own) if isinstance(own, int) else own for own, moves in of_parts]
            return parts[0] if len(parts) == 1 else np.concatenate(parts)  # without a copy where there is one

        loss, suppressed, kind, removed, added = map(joined, range(5))
        return Moves(loss + view.base, suppressed, kind, removed, added)

    def apply(self, state: State, kind: int, removed: int, added: int) -> State:
        """Return the state after a move."""
        if kind == ROOT:
            return self.coarsest if state is None else None
        if state is None:
            raise ValueError("kind must be ROOT to leave the group that holds NULL.")
        return self._edit(state, kind, removed, added)


class OrderedAxis(Axis):
    """Runs of sorted numbers. A state is the first atom of each run."""

    coarsest = (0,)

    def __init__(self, structure: Ordered, leaf_rows: Ints, atom_rows: int, has_null: bool) -> None:
        positions = np.asarray(structure.positions, dtype=np.float64)
        leaves = len(positions)
        before = np.cumsum(leaf_rows[:leaves]) - leaf_rows[:leaves]
        first_leaf = run_starts(before // max(atom_rows, 1))
        if structure.ends is None:
            highs, lows = positions[first_leaf[1:] - 1], positions[first_leaf[1:]]
        else:
            highs, lows = structure.ends(first_leaf[1:])
        is_possible = ~np.isnan(lows)
        self.first_leaf = first_leaf[np.append(True, is_possible)]
        n_atoms = len(self.first_leaf)
        ends = np.append(self.first_leaf[1:], leaves)
        super().__init__(np.repeat(np.arange(n_atoms), ends - self.first_leaf), n_atoms, has_null)
        low, high = np.append(positions[0], lows[is_possible]), np.append(highs[is_possible], positions[-1])
        names_first, names_last = structure.names_ends
        if names_first and self.n_atoms > 1 and ends[0] == 1:
            high[0] = low[0]
        if names_last and self.n_atoms > 1 and ends[-1] - self.first_leaf[-1] == 1:
            low[-1] = high[-1]
        span = positions[-1] - positions[0]
        self.low, self.high = (np.clip((end - positions[0]) / (span if span > 0 else 1.0), 0, 1) for end in (low, high))

    def _portable(self, state: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(self.first_leaf[list(state)].tolist())

    def _adopt(self, portable: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(np.unique(self.atom_of_leaf[list(portable)]).tolist())

    def _groups(self, state: tuple[int, ...]) -> tuple[Ints, Floats]:
        starts = np.array(state, dtype=np.int64)
        lengths = run_lengths(starts, self.n_atoms)
        return np.arange(len(starts)).repeat(lengths), self.high[starts + lengths - 1] - self.low[starts]

    def _closed(self, state: tuple[int, ...], is_released: Bools, group: Ints, losses: Floats) -> Closed:
        """Let runs of which no row is released join a neighbour, so that no end tells where they were."""
        starts = np.array(state, dtype=np.int64)
        released = np.flatnonzero(is_released[: len(starts)])
        if not len(released):
            starts = starts[:1]
        else:
            # Between two runs that are released, the boundary that widens its run least stays.
            firsts = [0]
            for left, right in itertools.pairwise(released.tolist()):
                at = starts[left + 1 : right + 1]
                widened = (self.high[at - 1] - self.high[at[0] - 1]) + (self.low[at[-1]] - self.low[at])
                firsts.append(int(at[np.argmin(widened)]))
            starts = np.array(firsts, dtype=np.int64)
        runs, widths = self._groups(tuple(starts.tolist()))
        if not self.has_null:
            return Closed(runs, widths, has_merged=True)
        is_null_told = bool(is_released[-1])
        return Closed(
            np.append(runs, len(widths)),
            np.append(widths, 0.0 if is_null_told else 1.0),
            -1 if is_null_told else len(widths),
            True,
        )

    def _candidates(self, state: tuple[int, ...], view: Slice) -> list[Candidates]:
        starts = np.array(state, dtype=np.int64)
        run, loss = self._groups(state)
        run_small, run_price = view.groups(run, len(starts))
        run_cost = view.cost(loss, np.bincount(run, view.marginal, len(starts)), run_small, run_price)
        # Splits look at single runs; merges and moved boundaries at pairs, first 0-1, 2-3, ... then 1-2, 3-4, ...
        cuts = min(len(starts), 3)
        is_begin = np.zeros((cuts, self.n_atoms), bool)
        is_begin[:, 0] = is_begin[0, starts] = is_begin[1:2, starts[::2]] = is_begin[2:, starts[1::2]] = True
        begin = is_begin.ravel().nonzero()[0]
        size = run_lengths(begin, is_begin.size)
        begin %= self.n_atoms
        first = begin.repeat(size).reshape(is_begin.shape)
        last = (begin + size - 1).repeat(size).reshape(is_begin.shape)
        left_small, left_price, right_small, right_price = view.prefixes(first, last)
        rows, sizes, atoms = view.marginal.cumsum(), view.marginal_size.cumsum(), np.arange(self.n_atoms)
        following = np.minimum(atoms + 1, last)
        rows_before, size_before = rows - view.marginal, sizes - view.marginal_size
        cost = view.cost(self.high - self.low[first], rows - rows_before[first], left_small, left_price)
        cost += view.cost(self.high[last] - self.low[following], rows[last] - rows, right_small, right_price)
        run_last, own = run[last], np.array([run_cost, run_small])
        is_pair = starts[run_last] > first
        of_segment = own.take(run[first], axis=1) + np.where(is_pair, own.take(run_last, axis=1), 0.0)
        others_cost, others_small = own.sum(axis=1)[:, None, None] - of_segment
        # The boundary inside the pair: the start of the run that ends it, if the pair has two runs.
        removed = np.where(is_pair, starts[run_last], -1)
        is_inside = atoms < last
        added = np.where(is_inside, atoms + 1, -1)
        keep = is_pair & (atoms + 1 != removed)
        keep[0] = is_inside[0]
        # A run with too few people would be suppressed as a whole, and told of nobody.
        keep &= ~is_inside | ((sizes - size_before[first] >= view.k) & (sizes[last] - sizes >= view.k))
        small = left_small + right_small
        return [((others_cost + cost)[keep], (others_small + small)[keep], EDIT, removed[keep], added[keep])]

    def _edit(self, state: tuple[int, ...], kind: int, removed: int, added: int) -> tuple[int, ...]:
        starts = set(state) - {removed}
        return tuple(sorted(starts | {added} if added >= 0 else starts))

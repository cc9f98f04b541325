"""Search for the recoding of a grouped table that loses least."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from duckanon.common.arrays import Floats, Ints
from duckanon.common.runs import run_starts
from duckanon.generalize.recoding.axes import Axis
from duckanon.generalize.recoding.columns import Moves, Slice, State
from duckanon.generalize.recoding.refit import Refit, refit

_NOISE = 1e-7
_PRICE_FACTOR = 1.5
_PRICES = 12


def combine(parts: list[Ints], sizes: list[int]) -> tuple[Ints, int]:
    """Combine group numbers into one number per row; return it and the number of possible values."""
    key = np.zeros(len(parts[0]), dtype=np.int64) if parts else np.zeros(0, dtype=np.int64)
    size = 1
    for part, n in zip(parts, sizes, strict=True):
        if size > 2**61 // max(n, 1):
            distinct, key = np.unique(key, return_inverse=True)
            size = len(distinct)
        key = key * n + part
        size *= n
    return key, size


@dataclass
class Score:
    """Loss (not yet divided by the rows) and suppressed rows of a state of the table."""

    loss: float
    suppressed: float


class Table:
    """The grouped table with a current state per column."""

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
        """Give every column the state at its place."""
        for column, state in enumerate(states):
            self.set_state(column, state)

    def view(self, column: int) -> Slice:
        """Return the table as seen from one column."""
        others = [c for c in range(len(self.axes)) if c != column and self.n_groups[c] > 1]
        axis = self.axes[column]
        key, size = combine(
            [self.part[c] for c in others] or [np.zeros_like(self.counts)], [self.n_groups[c] for c in others] or [1]
        )
        width = axis.n_atoms + axis.has_null
        if size > 2**61 // width:
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
        other_starts = run_starts(other_key)
        other = np.repeat(np.arange(len(other_starts)), np.diff(np.append(other_starts, len(key))))
        rows = order[starts[other_starts]]
        loss = np.zeros(len(rows))
        for c in range(len(self.axes)):
            if c != column:
                loss += self.group_loss[c][self.part[c][rows]]
        base = float(loss @ np.add.reduceat(count, other_starts))
        return Slice(
            other,
            atom,
            count,
            self.full_price - loss,
            base,
            self.k,
            float(self.weights[column]),
            len(rows),
            axis.n_atoms,
            axis.has_null,
        )

    def score(self) -> Score:
        """Count the current state."""
        key, size = combine(self.part, self.n_groups)
        loss = np.zeros(len(key))
        for part, group_loss in zip(self.part, self.group_loss, strict=True):
            loss += group_loss[part]
        self.work += len(key)
        if size <= 4 * len(key) + 1000:
            sizes = np.bincount(key, self.counts, size)[key]
        else:
            _, which = np.unique(key, return_inverse=True)
            sizes = np.bincount(which, self.counts)[which]
        small = sizes < self.k
        return Score(float(np.where(small, self.full_price, loss) @ self.counts), float(self.counts[small].sum()))


@dataclass(frozen=True)
class Candidate:
    """A state of one column with the score of the whole table."""

    column: int
    state: State
    score: Score


class Search:
    """Local search over the states of a table.

    Parameters
    ----------
    table
        The table. Its current state is where the search starts.
    limit
        The largest number of rows that may be suppressed.

    Attributes
    ----------
    best
        The loss and the states of the best feasible recoding seen.
    """

    def __init__(self, table: Table, limit: int) -> None:
        self.table, self.limit = table, limit
        self.best: tuple[float, list[State]] = (np.inf, [])
        self.price = table.full_price * table.rows / 2 / max(limit, table.rows / 1000)
        self._note(table.score(), table.states)

    def _note(self, score: Score, states: list[State]) -> None:
        if score.suppressed <= self.limit and score.loss < self.best[0] - _NOISE:
            self.best = (score.loss, list(states))

    def _moves(self, column: int) -> Moves:
        """Return a column's moves; remember the best feasible one even if it will not be made."""
        table = self.table
        moves = table.axes[column].moves(table.states[column], table.view(column))
        feasible = np.where(moves.suppressed <= self.limit, moves.loss, np.inf)
        if len(feasible) and feasible.min() < self.best[0] - _NOISE:
            found = self._candidate(column, moves, int(np.argmin(feasible)))
            states = list(table.states)
            states[column] = found.state
            self._note(found.score, states)
        return moves

    def _candidate(self, column: int, moves: Moves, at: int) -> Candidate:
        axis, state = self.table.axes[column], self.table.states[column]
        new = axis.apply(state, int(moves.kind[at]), int(moves.removed[at]), int(moves.added[at]))
        return Candidate(column, new, Score(float(moves.loss[at]), float(moves.suppressed[at])))

    def descend(self, budget: int) -> None:
        """From the best state, make the best feasible move of all columns until none improves."""
        table, stop = self.table, self.table.work + budget
        while table.work < stop:
            table.set_states(self.best[1])
            before = self.best[0]
            for column in range(len(table.axes)):
                self._moves(column)
            if self.best[0] >= before:
                return

    def sweep(self, budget: int) -> None:
        """From the best state, make each column's best feasible move in turn until none improves."""
        table, stop, idle, column = self.table, self.table.work + budget, 0, 0
        while idle < len(table.axes) and table.work < stop:
            table.set_states(self.best[1])
            before = self.best[0]
            self._moves(column % len(table.axes))
            idle = 0 if self.best[0] < before else idle + 1
            column += idle > 0
        table.set_states(self.best[1])

    def refit(self, rounds: int = 3) -> None:
        """From the best state, give each column in turn its best state while the others stay, until none improves."""
        table, idle = self.table, 0
        for turn in range(rounds * len(table.axes)):
            column = turn % len(table.axes)
            table.set_states(self.best[1])
            before = self.best[0]
            best_at = refit(table.axes[column], table.view(column))
            if best_at is not None and table.states[column] is not None:
                self._refit(column, best_at)
            idle = 0 if self.best[0] < before else idle + 1
            if idle == len(table.axes):
                break
        table.set_states(self.best[1])

    def _refit(self, column: int, best_at: Refit) -> None:
        """Try prices for a suppressed row, from nothing to more than all is worth, closing in on the limit."""
        table = self.table
        low, high = 0.0, 2 * table.full_price * table.rows
        price = high
        for _ in range(_PRICES):
            table.set_state(column, best_at(price))
            score = table.score()
            self._note(score, table.states)
            if score.suppressed <= self.limit:
                high = price
            else:
                low = price
            price = np.sqrt(low * high) if low else high / 64

    def oscillate(self, steps: int, rest: int, tenure: int = 12, held: int | None = None) -> None:
        """From the best state, cross the limit on suppressed rows back and forth.

        Every step makes the move that is best when each suppressed row costs a price, even if it makes
        the table worse. The price rises while too many rows are suppressed and falls while they are not.

        Parameters
        ----------
        steps
            The number of moves.
        rest
            How many steps a column that was changed is left alone.
        tenure
            How many steps a column may not take a state again that it left.
        held
            A column that is fully generalized first and left so for the first half of the steps.
        """
        table = self.table
        table.set_states(self.best[1])
        barred: list[dict[State, int]] = [{} for _ in table.axes]
        resting = [-1] * len(table.axes)
        if held is not None:
            table.set_state(held, table.axes[held].top)
            resting[held] = steps // 2
        for step in range(steps):
            chosen: tuple[float, Candidate] | None = None
            for column in range(len(table.axes)):
                moves = self._moves(column)
                if resting[column] >= step:
                    continue
                # Rounding keeps the choice between equal moves free of floating-point noise.
                value = np.round(moves.loss + self.price * moves.suppressed, 6)
                for at in _smallest(value, tenure + 1):
                    if chosen is not None and value[at] >= chosen[0]:
                        break
                    candidate = self._candidate(column, moves, int(at))
                    if barred[column].get(candidate.state, -1) < step:
                        chosen = float(value[at]), candidate
                        break
            if chosen is None:
                continue
            column = chosen[1].column
            barred[column][table.states[column]] = step + tenure
            resting[column] = step + rest
            table.set_state(column, chosen[1].state)
            too_many = chosen[1].score.suppressed > self.limit
            # Below a fraction of what a suppressed row costs anyway, a price makes no difference.
            self.price = max(self.price * (_PRICE_FACTOR if too_many else 1 / _PRICE_FACTOR), table.full_price / 8)
        table.set_states(self.best[1])


def _smallest(values: Floats, n: int) -> Ints:
    """Return the places of the n smallest values, in order; equal values by place."""
    if len(values) > 4 * n:
        places = np.flatnonzero(values <= np.partition(values, n - 1)[n - 1])
        return places[np.argsort(values[places], kind="stable")][:n]
    return np.argsort(values, kind="stable")[:n]

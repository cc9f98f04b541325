"""The local search for the recoding of a grouped table that loses least."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from duckanon._core.common import progress
from duckanon._methods.generalize.recoding.axes import OrderedAxis
from duckanon._methods.generalize.recoding.column_moves import Moves, State, smallest
from duckanon._methods.generalize.recoding.refit import Refit, refit
from duckanon._methods.generalize.recoding.table import Score, Table

# What the numbers trade was measured as `generalize.recoding.recode` says: the ten columns lost 0.3395.
_NOISE = 1e-7  # a recoding counts as better only where it loses this much less, in rows: less is taken for rounding
_DIGITS = 6  # digits to which moves are compared, so that the choice between equal ones does not hang on rounding
_PRICE_FACTOR = 1.5  # of a suppressed row, in a step; with 1.1 the ten columns lost 0.3455, with 3 they lost 0.3399
# The lowest price, as a share of what a suppressed row loses anyway. It keeps the price from falling so far that it
# takes many steps to rise again; with 1/64 and with 1 the ten columns lost the same.
_LEAST_PRICE = 1 / 8
# Prices that a refit of one column tries: from all to nothing by bisection. No difference was seen with 4 or 24, in the
# ten columns and where groups must fit tightly (500 rows, k = 100): it may be more than is needed.
_PRICES = 12
# Divides the price until too many rows are suppressed; from there on it is bisected. With 4 and with 1024 the result
# was the same where groups must fit tightly.
_FIRST_PRICE_STEP = 64
# Refits of every column at most: they end as soon as none of them improves. The ten columns lost the same without, in
# half a second less; but 500 numbers with k = 100 lost 0.2255 without and 0.1992 with one round or more.
_REFIT_ROUNDS = 3
# Steps in which a column may not go back to a state that it left. With 3 the ten columns lost 0.3465, with 40 they lost
# 0.3406.
_TENURE = 12
# Moves that are kept for when the search comes back to the same states: 40 MB. In small tables it does so most of the
# time: two columns of 2,000 rows were asked for their moves 628 times, in 248 different states.
_MOST_KEPT_MOVES = 1_000_000
_TRIED_MOVES = 8  # moves of a column that are tried for whether they keep what is promised of sensitive values
# Combinations up to which states with too many suppressed rows are noted too: what merges when they are released may
# make them feasible. In larger tables it hardly ever does: of 400 such states of the Adult table three were the best.
_SMALL_TABLE = 2_000
# A walk ends if it found nothing better in a third of its steps, or in half of them where columns have runs of numbers,
# whose borders take many steps: with a third there, 20,000 people with four columns lost 8 percent more for k = 20.
# Measured over 37 releases of the Adult table and of ACS: the loss is the same on average as when all steps are made,
# from 3 percent less to 2 percent more, in two thirds of the time.
_IDLE_SHARES = (3, 2)
_LEAST_IDLE_STEPS = 6  # steps without anything better that every walk makes
# Combinations from which on walks end early. Smaller tables are searched in a second; there it lost up to 9 percent
# more (3,000 people with three columns).
_LEAST_HURRIED = 10_000


@dataclass(frozen=True)
class Candidate:
    """A state of one column with the score of the whole table."""

    column: int
    state: State
    score: Score


class Search:
    """Local search over the states of a table, from its current one, with a limit on the rows that are suppressed.

    ``best`` has the loss and the states of the best feasible recoding seen; ``promised`` the same of the best one that
    keeps all that is promised, where more is than the size of classes. ``known`` is a recoding that may keep it.
    """

    def __init__(self, table: Table, limit: int, known: list[State] | None = None) -> None:
        self.table, self.limit = table, limit
        self.best: tuple[float, list[State]] = (np.inf, [])
        self.promised: tuple[float, list[State]] = (np.inf, [])
        self._judged: set[tuple[State, ...]] = set()
        self._kept_moves: dict[tuple[State, ...], dict[int, Moves]] = {}
        self._n_kept_moves = 0
        # What half of all loss comes to for each row that may be suppressed; with a limit near 0, for a row in 1,000.
        self.price = table.full_price * table.rows / 2 / max(limit, table.rows / 1000)
        self._note()
        if known is not None:
            begin = list(table.states)
            table.set_states(known)
            self._note()
            table.set_states(begin)

    def _note(self) -> None:
        """Remember the table's current state if it is the best so far, by what is lost when it is released."""
        states = tuple(self.table.states)
        if states in self._judged:
            return
        self._judged.add(states)
        score, *_ = self.table.closed_score()
        if score.suppressed <= self.limit and score.loss < self.best[0] - _NOISE:
            self.best = (score.loss, list(states))
        if self.table.sensitive is None:
            self.promised = self.best
            return
        score, *_ = self.table.closed_score(is_promised=True)
        if score.suppressed <= self.limit and score.loss < self.promised[0] - _NOISE:
            self.promised = (score.loss, list(states))

    def consider(self, states: list[State]) -> None:
        """Go on from another recoding, if it is better than the best so far."""
        self.table.set_states(states)
        before = self.best[0]
        self._note()
        if self.best[0] < before:
            self.sweep(len(self.table.axes) * self.table.view_work)

    def _moves(self, column: int) -> Moves:
        """Return a column's moves; remember the best feasible one even if it will not be made."""
        table = self.table
        moves = self._all_moves(column)
        move = moves.best_within(self.limit)
        if move >= 0 and moves.loss[move] < self.best[0] - _NOISE:
            state = table.states[column]
            table.set_state(column, self._candidate(column, moves, move).state)
            self._note()
            table.set_state(column, state)
        return moves

    def _all_moves(self, column: int) -> Moves:
        """Return a column's moves, from those that are kept if all columns have been in these states before."""
        table, states = self.table, tuple(self.table.states)
        moves = self._kept_moves.get(states, {}).get(column)
        if moves is not None:
            table.work += table.view_work  # as if it were done: how far a search goes must not hang on what it keeps
            return moves
        moves = table.axes[column].moves(table.states[column], table.view(column))
        self._n_kept_moves += len(moves.loss)
        if self._n_kept_moves > _MOST_KEPT_MOVES:
            self._kept_moves.clear()
            self._n_kept_moves = len(moves.loss)
        self._kept_moves.setdefault(states, {})[column] = moves
        return moves

    def _candidate(self, column: int, moves: Moves, move: int) -> Candidate:
        axis, state = self.table.axes[column], self.table.states[column]
        new = axis.apply(state, int(moves.kind[move]), int(moves.removed[move]), int(moves.added[move]))
        return Candidate(column, new, Score(float(moves.loss[move]), float(moves.suppressed[move])))

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

    def settle(self) -> None:
        """From the best state that keeps all that is promised, make the best of a few moves that does, while any does.

        Moves are scored by the size of classes alone: of each column those that seem to lose least are tried.
        """
        table, idle, column = self.table, 0, 0
        while table.sensitive is not None and self.promised[1] and idle < len(table.axes):
            table.set_states(self.promised[1])
            before = self.promised[0]
            moves = self._all_moves(column)
            is_better = np.flatnonzero(moves.loss < before - _NOISE)
            state = table.states[column]
            for move in is_better[smallest(moves.loss[is_better], _TRIED_MOVES)]:
                table.set_state(column, self._candidate(column, moves, int(move)).state)
                self._note()
                table.set_state(column, state)
            idle = 0 if self.promised[0] < before else idle + 1
            column = (column + 1) % len(table.axes)

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

    def refit(self, rounds: int = _REFIT_ROUNDS) -> None:
        """From the best state, give each column in turn its best state while the others stay, until none improves."""
        table, idle = self.table, 0
        for turn in range(rounds * len(table.axes)):
            column = turn % len(table.axes)
            table.set_states(self.best[1])
            before = self.best[0]
            progress.check()
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
            self._note()
            if score.suppressed <= self.limit:
                high = price
            else:
                low = price
            price = np.sqrt(low * high) if low else high / _FIRST_PRICE_STEP

    def oscillate(self, steps: int, rest: int, tenure: int = _TENURE, held: int | None = None) -> None:
        """From the best state, cross the limit on suppressed rows back and forth.

        Every step makes the move that is best when each suppressed row costs a price, even if it makes the table worse.
        The price rises while too many rows are suppressed and falls while they are not. The walk ends early when
        nothing better was found in a share of its steps.

        Args:
            rest: How many steps a column that was changed is left alone.
            tenure: How many steps a column may not take a state again that it left.
            held: A column that is fully generalized first and left so for the first half of the steps.
        """
        table = self.table
        table.set_states(self.best[1])
        barred: list[dict[State, int]] = [{} for _ in table.axes]
        resting = [-1] * len(table.axes)
        is_small = table.view_work <= _SMALL_TABLE
        if held is not None:
            table.set_state(held, table.axes[held].top)
            resting[held] = steps // 2
        most_idle, last, best = _most_idle_steps(table, steps), 0, self.best[0]
        for step in range(steps):
            progress.at(step / steps)
            if self.best[0] < best:
                last, best = step, self.best[0]
            if step - last > most_idle:
                break
            chosen: tuple[float, Candidate] | None = None
            for column in range(len(table.axes)):
                moves = self._moves(column)
                if resting[column] >= step:
                    continue
                # Rounding keeps the choice between equal moves free of floating-point noise.
                value = (moves.loss + self.price * moves.suppressed).round(_DIGITS)
                if chosen is not None and value.min(initial=np.inf) >= chosen[0]:
                    continue
                for move in smallest(value, tenure + 1):  # at most so many are barred
                    if chosen is not None and value[move] >= chosen[0]:
                        break
                    candidate = self._candidate(column, moves, int(move))
                    if barred[column].get(candidate.state, -1) < step:
                        chosen = float(value[move]), candidate
                        break
            if chosen is None:
                continue
            column = chosen[1].column
            barred[column][table.states[column]] = step + tenure
            resting[column] = step + rest
            table.set_state(column, chosen[1].state)
            if is_small and chosen[1].score.loss < self.best[0] - _NOISE:
                self._note()
            too_many = chosen[1].score.suppressed > self.limit
            self.price = max(
                self.price * (_PRICE_FACTOR if too_many else 1 / _PRICE_FACTOR), table.full_price * _LEAST_PRICE
            )
        table.set_states(self.best[1])


def _most_idle_steps(table: Table, steps: int) -> int:
    """Return after how many steps without anything better a walk of so many steps ends."""
    if table.view_work < _LEAST_HURRIED:
        return steps
    has_runs = any(isinstance(axis, OrderedAxis) for axis in table.axes)
    return max(steps // _IDLE_SHARES[has_runs], _LEAST_IDLE_STEPS)

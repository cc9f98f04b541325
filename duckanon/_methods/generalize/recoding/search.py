"""The global recoding of a table: a local search for the k-anonymous one that loses least.

Every column's values are mapped to coarser groups by a function of the value alone; rows in classes of fewer than k
rows are suppressed, up to a limit. The search starts from the fully generalized table, takes the best feasible move
until none is left, and then crosses the limit back and forth, with a price for suppressed rows that rises and falls. A
large table is first searched with its rare values merged for good; these are opened again, stage by stage, around the
best recoding so far. Where sensitive values are to be spread, larger classes are tried too, since they keep it more
often.

What the constants trade was measured on the Adult table, k = 10, at most 1 percent suppressed: with seven columns
(12,700 combinations; loss 0.2061 in 2.8 s) and with ten, fnlwgt among them (32,500 combinations, nearly all rows; loss
0.3395 in 6.6 s). "The ten columns" below are the latter; the seven lost the same unless something is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arguments import check_arguments
from duckanon._core.common.arrays import Floats, Ints, sort_distinct
from duckanon._core.common.people import NOBODY
from duckanon._core.common.rules import Whole
from duckanon._methods.generalize.recoding.axes import (
    Axis,
    ColumnState,
    FlatStructure,
    Moves,
    OrderedAxis,
    OrderedStructure,
    PlanColumn,
    Recoding,
    TreeStructure,
    find_smallest,
)
from duckanon._methods.generalize.recoding.classes import SensitiveEntries
from duckanon._methods.generalize.recoding.people import People
from duckanon._methods.generalize.recoding.table import Entries, PlanTable, Score, Sizes
from duckanon._methods.generalize.recoding.trees import Refit, make_axis, make_refit
from duckanon._methods.generalize.recoding.views import sum_by_group

# What the numbers trade was measured as `recode` says: the ten columns lost 0.3395.
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
    state: ColumnState
    score: Score


class PlanSearch:
    """Local search over the states of a table, from its current one, with a limit on the rows that are suppressed.

    ``best`` has the loss and the states of the best feasible recoding seen; ``promised`` the same of the best one that
    keeps all that is promised, where more is than the size of classes. ``known`` is a recoding that may keep it.
    """

    def __init__(self, table: PlanTable, limit: int, known: list[ColumnState] | None = None) -> None:
        self.table, self.limit = table, limit
        self.best: tuple[float, list[ColumnState]] = (np.inf, [])
        self.promised: tuple[float, list[ColumnState]] = (np.inf, [])
        self._judged: set[tuple[ColumnState, ...]] = set()
        self._kept_moves: dict[tuple[ColumnState, ...], dict[int, Moves]] = {}
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
        score, *_ = self.table.score_release()
        if score.suppressed <= self.limit and score.loss < self.best[0] - _NOISE:
            self.best = (score.loss, list(states))
        if self.table.sensitive is None:
            self.promised = self.best
            return
        score, *_ = self.table.score_release(is_promised=True)
        if score.suppressed <= self.limit and score.loss < self.promised[0] - _NOISE:
            self.promised = (score.loss, list(states))

    def consider(self, states: list[ColumnState]) -> None:
        """Go on from another recoding, if it is better than the best so far."""
        self.table.set_states(states)
        before = self.best[0]
        self._note()
        if self.best[0] < before:
            self.sweep(len(self.table.axes) * self.table.view_work)

    def _note_moves(self, column: int) -> Moves:
        """Return a column's moves; remember the best feasible one even if it will not be made."""
        table = self.table
        moves = self._list_moves(column)
        move = moves.best_within(self.limit)
        if move >= 0 and moves.loss[move] < self.best[0] - _NOISE:
            state = table.states[column]
            table.set_state(column, self._make_candidate(column, moves, move).state)
            self._note()
            table.set_state(column, state)
        return moves

    def _list_moves(self, column: int) -> Moves:
        """Return a column's moves, from those that are kept if all columns have been in these states before."""
        table, states = self.table, tuple(self.table.states)
        moves = self._kept_moves.get(states, {}).get(column)
        if moves is not None:
            table.work += table.view_work  # as if it were done: how far a search goes must not hang on what it keeps
            return moves
        moves = table.axes[column].list_moves(table.states[column], table.view(column))
        self._n_kept_moves += len(moves.loss)
        if self._n_kept_moves > _MOST_KEPT_MOVES:
            self._kept_moves.clear()
            self._n_kept_moves = len(moves.loss)
        self._kept_moves.setdefault(states, {})[column] = moves
        return moves

    def _make_candidate(self, column: int, moves: Moves, move: int) -> Candidate:
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
                self._note_moves(column)
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
            moves = self._list_moves(column)
            is_better = np.flatnonzero(moves.loss < before - _NOISE)
            state = table.states[column]
            for move in is_better[find_smallest(moves.loss[is_better], _TRIED_MOVES)]:
                table.set_state(column, self._make_candidate(column, moves, int(move)).state)
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
            self._note_moves(column % len(table.axes))
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
            best_at = make_refit(table.axes[column], table.view(column))
            if best_at is not None and table.states[column] is not None:
                self._refit_column(column, best_at)
            idle = 0 if self.best[0] < before else idle + 1
            if idle == len(table.axes):
                break
        table.set_states(self.best[1])

    def _refit_column(self, column: int, best_at: Refit) -> None:
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
        barred: list[dict[ColumnState, int]] = [{} for _ in table.axes]
        resting = [-1] * len(table.axes)
        is_small = table.view_work <= _SMALL_TABLE
        if held is not None:
            table.set_state(held, table.axes[held].top)
            resting[held] = steps // 2
        most_idle, last, best = _count_idle_steps(table, steps), 0, self.best[0]
        for step in range(steps):
            progress.advance(step / steps)
            if self.best[0] < best:
                last, best = step, self.best[0]
            if step - last > most_idle:
                break
            chosen: tuple[float, Candidate] | None = None
            for column in range(len(table.axes)):
                moves = self._note_moves(column)
                if resting[column] >= step:
                    continue
                # Rounding keeps the choice between equal moves free of floating-point noise.
                value = (moves.loss + self.price * moves.suppressed).round(_DIGITS)
                if chosen is not None and value.min(initial=np.inf) >= chosen[0]:
                    continue
                for move in find_smallest(value, tenure + 1):  # at most so many are barred
                    if chosen is not None and value[move] >= chosen[0]:
                        break
                    candidate = self._make_candidate(column, moves, int(move))
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


def _count_idle_steps(table: PlanTable, steps: int) -> int:
    """Return after how many steps without anything better a walk of so many steps ends."""
    if table.view_work < _LEAST_HURRIED:
        return steps
    has_runs = any(isinstance(axis, OrderedAxis) for axis in table.axes)
    return max(steps // _IDLE_SHARES[has_runs], _LEAST_IDLE_STEPS)


# Combinations with which the first search is done: a view of so many takes a millisecond, and the search hundreds of
# views. With 5,000 the ten columns lost 0.3456 in 5.0 s; without any merging first, 0.3378 in 6.7 s, but that time
# grows with the table.
_FIRST_COMBOS = 20_000
# Combinations that the first search may sort: 1,200 views of `_FIRST_COMBOS`. With a quarter the ten columns lost
# 0.3460 in 5.0 s; four times as many made no difference, since `_STEPS` end the search.
_FIRST_WORK = 24_000_000
# Combinations that each later stage may sort: a table of a million combinations is looked at 60 times. With a sixth the
# ten columns lost 0.3457, with four times as many the same.
_STAGE_WORK = 60_000_000
# Steps across the limit in the first search. Without any the seven columns lost 0.2188 and the ten 0.3665 in 1.9 s;
# with 75 the ten lost 0.3498 in 4.1 s, with 300 they lost 0.3398 in 9.7 s.
_STEPS = 150
# Steps at least with each column held: in half of them the others move, in the other half it may come back. (Not
# measured.)
_LEAST_HELD_STEPS = 6
# Stage 0 has all values. In stage s, values with fewer than 2 ** (s - 1) / 4096 of the rows are merged. With 1,024 and
# with 16,384 the ten columns lost the same.
_SMALLEST_SHARE = 4096
# In the last stage, values with fewer than half of the rows are merged: hardly any are left. With one stage the ten
# columns lost 0.3378 in 8.2 s, with six 0.3381 in 6.8 s.
_STAGES = 12
# A stage with more combinations than this share of the stage two before it takes the place of the one between, so that
# no stage is searched that differs little from its neighbours. (The share was not measured.)
_STAGE_SHRINK = 0.6
# Runs of numbers that an ordered column starts from: cuts at every fifth of a percent of the rows. With 128 the ten
# columns lost the same, with 2,048 they lost 0.3406 in more time.
_MOST_ORDERED_ATOMS = 512


@dataclass(frozen=True)
class LeafSizes:
    """The rows of each leaf of a column, and the people who have it."""

    rows: Ints
    sizes: Ints | Floats


@dataclass(frozen=True)
class PlanTask:
    """A table to recode."""

    entries: Entries
    columns: list[PlanColumn]
    leaves: list[LeafSizes]  # by column
    weights: Floats  # by column
    limit: int  # on the rows that are suppressed
    start: list[ColumnState] | None  # a recoding to try too


def _make_axes(task: PlanTask, stage: int, k: int) -> list[Axis]:
    """Return the axes of a stage; the atoms of a later stage are made of those of an earlier one."""
    axes = []
    for column, column_leaves in zip(task.columns, task.leaves, strict=True):
        rows = column_leaves.rows
        unit = -(-int(rows.sum()) // _SMALLEST_SHARE)
        atom_rows = unit << (stage - 1) if stage else 0
        if isinstance(column.structure, OrderedStructure) and len(rows) > _MOST_ORDERED_ATOMS:
            atom_rows = max(atom_rows, unit * _SMALLEST_SHARE // _MOST_ORDERED_ATOMS)
        if isinstance(column.structure, FlatStructure):
            # A value of too few people could only be kept by suppressing its rows, and has no label then: it is
            # one of the others from the start.
            rows, atom_rows = np.where(column_leaves.sizes < k, 0, rows), max(atom_rows, 1)
        axes.append(make_axis(column, rows, atom_rows))
    return axes


def _make_tables(task: PlanTask, k: Sizes) -> list[PlanTable]:
    """Return the table with all values, then coarser ones until one is small."""
    tables = [PlanTable(task.entries, _make_axes(task, 0, k.promised), task.weights, k)]
    for stage in range(1, _STAGES + 1):
        last = tables[-1]
        if len(last.counts) <= _FIRST_COMBOS:
            break
        table = PlanTable(last.entries, _make_axes(task, stage, k.promised), task.weights, k)
        if len(tables) > 1 and len(table.counts) > _STAGE_SHRINK * len(tables[-2].counts):
            tables.pop()
        tables.append(table)
    return tables


def search_stages(task: PlanTask, k: Sizes) -> tuple[PlanTable, tuple[float, list[ColumnState]]]:
    """Search the coarsest table, then the finer ones from there; return the last of them, its best loss and states."""
    columns, limit = task.columns, task.limit
    tables = _make_tables(task, k)
    table = tables.pop()
    search = PlanSearch(table, limit)
    with progress.step(0.0, 0.1):
        search.descend(_FIRST_WORK)
        search.refit()
    # Different ways to wander: with every column free, with each of them held in turn so that the others must make up
    # for it, with longer rests so that all columns get their turn, and without rests.
    steps = min(_STEPS, _FIRST_WORK // (table.view_work * len(columns)))
    with progress.step(0.1, 0.25):
        search.oscillate(steps // 2, 1)
    for column in range(len(columns)):
        with progress.step(0.25 + 0.15 * column / len(columns), 0.25 + 0.15 * (column + 1) / len(columns)):
            search.oscillate(max(steps // 2 // len(columns), _LEAST_HELD_STEPS), 1, held=column)
    with progress.step(0.4, 0.5):
        search.oscillate(steps // 4, 2)
    with progress.step(0.5, 0.6):
        search.oscillate(steps // 4, 0)
    search.refit()
    finer_tables = len(tables)
    # Open the merged values again; the last stage has all of them.
    while tables:
        finer = tables.pop()
        finer.set_states(_adopt_states(table, finer, search.best[1]))
        promised = _adopt_states(table, finer, search.promised[1]) if search.promised[1] else None
        table, price = finer, search.price
        search = PlanSearch(table, limit, promised)
        search.price = price
        search.sweep(_STAGE_WORK)
        steps = (_STAGE_WORK - table.work) // (table.view_work * len(columns))
        with progress.step(1 - 0.4 * (len(tables) + 1) / finer_tables, 1 - 0.4 * len(tables) / finer_tables):
            search.oscillate(min(max(steps, 0), _STEPS // 4), 1)
    if task.start is not None:
        search.consider([axis.adopt(state) for axis, state in zip(table.axes, task.start, strict=True)])
    search.settle()
    return table, search.promised


def _adopt_states(table: PlanTable, finer: PlanTable, states: list[ColumnState]) -> list[ColumnState]:
    """Return the states of a finer table that are the same recoding."""
    return [new.adopt(old.export(state)) for old, new, state in zip(table.axes, finer.axes, states, strict=True)]


# By how much classes grow from one size to the next that is tried for the sake of their sensitive values.
_SIZE_STEP = 1.6
_MOST_SIZES = 10  # sizes that are tried at most: the last is 70 times k
_WORSE_SIZES = 2  # after so many sizes that brought nothing no more are tried


@check_arguments(k=Whole(1), max_suppressed=Whole(0))
def recode(
    counts: Ints,
    columns: Sequence[PlanColumn],
    k: int,
    max_suppressed: int,
    *,
    sizes: Ints | None = None,
    persons: Ints | None = None,
    start: Sequence[ColumnState] | None = None,
    sensitive: SensitiveEntries | None = None,
) -> Recoding:
    """Find a k-anonymous recoding with little loss.

    The same table gives the same recoding, in whatever order its combinations come.

    Args:
        counts: The number of rows of each combination. A combination may come several times.
        columns: The columns; their codes are parallel to ``counts``.
        k: The smallest class that is not suppressed.
        max_suppressed: The largest number of rows that may be suppressed.
        sizes: What each combination adds to the size of its class, where that is not its rows: people of a population.
        persons: The person of each combination, where people have several rows: classes then have k different people.
            `NOBODY` is not counted.
        start: A recoding to try too: of each column its first leaf of each run, its nodes, its merged leaves, its
            level, or None for one group of everything.
        sensitive: What every class that is not suppressed must keep of its sensitive values.

    Examples:
        >>> ages = PlanColumn(np.array([0, 1, 2, 3]), OrderedStructure(np.array([20.0, 22.0, 50.0, 52.0])))
        >>> recoding = recode(np.array([1, 1, 1, 1]), [ages], k=2, max_suppressed=0)
        >>> recoding.columns[0].group_of_leaf.tolist(), recoding.gcp
        ([0, 0, 1, 1], 0.0625)
    """
    counts = np.asarray(counts, dtype=np.int64)
    weights = np.array([column.weight for column in columns], dtype=np.float64)
    if not len(columns) or (weights < 0).any() or not weights.sum() > 0:
        raise ValueError("columns must have weights of at least 0, not all of them 0.")
    if sizes is None and persons is None and (total := int(counts.sum())) < k:
        raise ValueError(f"k must be at most the number of rows, {total}; got {k}.")
    people = None
    if persons is not None:
        people = People.of_entries(np.arange(len(counts)), persons, len(counts))
        if (known := len(sort_distinct(persons[persons != NOBODY]))) < k:
            raise ValueError(f"k must be at most the number of people, {known}; got {k}.")
    leaf_rows = [_count_leaf_rows(counts, column) for column in columns]
    # A fixed order of the columns, so that the caller's order decides ties only between equal columns: the order of
    # columns and combinations changes no rank.
    ranks = [
        (type(column.structure).__name__, len(rows), column.weight, np.sort(rows).tolist())
        for column, rows in zip(columns, leaf_rows, strict=True)
    ]
    order = sorted(range(len(columns)), key=ranks.__getitem__)
    ordered = [columns[index] for index in order]
    entries = Entries([column.codes for column in ordered], counts, sizes, people, sensitive)
    leaves = []
    for index in order:  # how large the class of each leaf would be in a table with one column
        codes, rows = columns[index].codes, leaf_rows[index]
        leaf_people = None if people is None else people.sizes(codes, len(rows))
        if leaf_people is None:
            leaf_people = sum_by_group(codes, counts if sizes is None else sizes, len(rows))
        leaves.append(LeafSizes(rows, leaf_people))
    begin = None if start is None else [start[index] for index in order]
    task = PlanTask(entries, ordered, leaves, weights[order], max_suppressed, begin)
    table, states = _search_sizes(task, k)
    table.set_states(states)
    score, closed, released, classes = table.score_release(is_promised=True)
    if score.suppressed > max_suppressed:
        raise AssertionError(f"the recoding suppresses {score.suppressed} rows, more than {max_suppressed}")
    recodings = tuple(
        table.axes[index].recoding(states[index], closed[index], released[index])
        for index in np.argsort(order).tolist()
    )
    is_released = (classes.released > 0)[classes.of_combination][table.of_entry]
    gcp = score.loss / (table.full_price * max(table.rows, 1))
    return Recoding(recodings, is_released, int(score.suppressed), gcp)


def _count_leaf_rows(counts: Ints, column: PlanColumn) -> Ints:
    """Return the rows of each leaf, or say what does not fit together."""
    structure = column.structure
    if isinstance(structure, OrderedStructure):
        leaves = len(structure.positions)
    elif isinstance(structure, TreeStructure):
        parents = np.asarray(structure.parents)
        leaves = len(parents) - len(np.unique(parents[parents >= 0]))
        if (parents < 0).sum() != 1 or (parents[parents >= 0] < leaves).any():
            raise ValueError("parents must have one root, and number the leaves before all other nodes.")
    elif isinstance(structure, FlatStructure):
        leaves = structure.leaves
    else:
        leaves = len(structure.maps[0])
        if len(structure.losses[-1]) != 1:
            raise ValueError("losses must end in a level with one group.")
    leaves += column.has_null
    if len(column.codes) != len(counts) or (len(counts) and not 0 <= column.codes.min() <= column.codes.max() < leaves):
        raise ValueError(f"codes must be parallel to the counts and lie between 0 and {leaves - 1}.")
    return np.bincount(column.codes, counts, leaves).astype(np.int64)


def _search_sizes(task: PlanTask, k: int) -> tuple[PlanTable, list[ColumnState]]:
    """Search with classes of k people and, where sensitive values must be spread, with larger ones too."""
    sizes, rows = [k], int(task.entries.counts.sum())
    while task.entries.sensitive is not None and len(sizes) < _MOST_SIZES and sizes[-1] * _SIZE_STEP <= rows:
        sizes.append(int(np.ceil(sizes[-1] * _SIZE_STEP)))
    best: tuple[float, list[ColumnState], PlanTable] | None = None
    worse = 0
    for number, size in enumerate(sizes):
        with progress.step(number / len(sizes), (number + 1) / len(sizes)):
            table, (loss, states) = search_stages(task, Sizes(k, size))
        if states and (best is None or loss < best[0]):
            best, worse = (loss, states, table), 0
        elif (worse := worse + 1) == _WORSE_SIZES:
            break
    if best is None:
        raise ValueError("l asks for more than the sensitive values of the whole table have; ask for less.")
    return best[2], best[1]

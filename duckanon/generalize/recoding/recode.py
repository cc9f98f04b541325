"""Find a k-anonymous global recoding of a table that loses as little as possible.

Every column's values are mapped to coarser groups by a function of the value alone. Rows in classes of fewer than k
rows are suppressed, up to a limit. The search starts from the fully generalized table, takes the best feasible move
until none is left, and then crosses the limit back and forth. A large table is first searched with its rare values
merged for good; these are opened again, stage by stage, around the recoding found so far.

What the constants of the search trade was measured on the Adult table, k = 10, at most 1 percent suppressed: with seven
columns (12,700 combinations; loss 0.2061 in 2.8 s) and with ten, fnlwgt among them (32,500 combinations, nearly all
rows; loss 0.3395 in 6.6 s). "The ten columns" below are the latter; the seven lost the same unless something is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from duckanon.common import progress
from duckanon.common.arguments import Whole, checked
from duckanon.common.arrays import Floats, Ints
from duckanon.generalize.recoding.axes import Axis
from duckanon.generalize.recoding.columns import Column, Flat, Ordered, State, Tree, weighted_count
from duckanon.generalize.recoding.outcome import Recoding, described
from duckanon.generalize.recoding.people import NOBODY, People
from duckanon.generalize.recoding.search import Search
from duckanon.generalize.recoding.table import Entries, Table
from duckanon.generalize.recoding.trees import make_axis

_FIRST_COMBOS = 20_000
"""Combinations with which the first search is done: a view of so many takes a millisecond, and the search hundreds of
views. With 5,000 the ten columns lost 0.3456 in 5.0 s; without any merging first, 0.3378 in 6.7 s, but that time grows
with the table."""

_FIRST_WORK = 24_000_000
"""Combinations that the first search may sort: 1,200 views of `_FIRST_COMBOS`. With a quarter the ten columns lost
0.3460 in 5.0 s; four times as many made no difference, since `_STEPS` end the search."""

_STAGE_WORK = 60_000_000
"""Combinations that each later stage may sort: a table of a million combinations is looked at 60 times. With a sixth
the ten columns lost 0.3457, with four times as many the same."""

_STEPS = 150
"""Steps across the limit in the first search. Without any the seven columns lost 0.2188 and the ten 0.3665 in 1.9 s;
with 75 the ten lost 0.3498 in 4.1 s, with 300 they lost 0.3398 in 9.7 s."""

_LEAST_HELD_STEPS = 6
"""Steps at least with each column held: in half of them the others move, in the other half it may come back. (Not
measured.)"""

_SMALLEST_SHARE = 4096
"""Stage 0 has all values. In stage s, values with fewer than 2 ** (s - 1) / 4096 of the rows are merged. With 1,024 and
with 16,384 the ten columns lost the same."""

_STAGES = 12
"""In the last stage, values with fewer than half of the rows are merged: hardly any are left. With one stage the ten
columns lost 0.3378 in 8.2 s, with six 0.3381 in 6.8 s."""

_STAGE_SHRINK = 0.6
"""A stage with more combinations than this share of the stage two before it takes the place of the one between, so that
no stage is searched that differs little from its neighbours. (The share was not measured.)"""

_MOST_ORDERED_ATOMS = 512
"""Runs of numbers that an ordered column starts from: cuts at every fifth of a percent of the rows. With 128 the ten
columns lost the same, with 2,048 they lost 0.3406 in more time."""


@checked(k=Whole(1), max_suppressed=Whole(0))
def recode(
    counts: Ints,
    columns: Sequence[Column],
    k: int,
    max_suppressed: int,
    *,
    sizes: Ints | None = None,
    persons: Ints | None = None,
    start: Sequence[State] | None = None,
) -> Recoding:
    """Find a k-anonymous recoding with little loss.

    Parameters
    ----------
    counts
        The number of rows of each combination. A combination may come several times.
    columns
        The columns; their codes are parallel to ``counts``.
    k
        The smallest class that is not suppressed.
    max_suppressed
        The largest number of rows that may be suppressed.
    sizes
        What each combination adds to the size of its class, where that is not its rows: people of a population.
    persons
        Whose rows these are, where people have several: classes then have k different people. `NOBODY` is not counted.
    start
        A recoding to try too: of each column its first leaf of each run, its nodes, its merged leaves, its level, or
        None for one group of everything.

    Returns
    -------
    Recoding
        The best recoding found. The same table gives the same recoding, in whatever order its combinations come.

    Raises
    ------
    ValueError
        If the table has fewer than k rows or people, or the input does not fit together.

    Examples
    --------
    >>> ages = Column(np.array([0, 1, 2, 3]), Ordered(np.array([20.0, 22.0, 50.0, 52.0])))
    >>> recoding = recode(np.array([1, 1, 1, 1]), [ages], k=2, max_suppressed=0)
    >>> recoding.columns[0].group_of_leaf.tolist(), recoding.gcp
    ([0, 0, 1, 1], 0.0625)
    """
    counts = np.asarray(counts, dtype=np.int64)
    weights = np.array([column.weight for column in columns], dtype=np.float64)
    if not len(columns) or (weights < 0).any() or not weights.sum() > 0:
        raise ValueError("columns must have weights of at least 0, not all of them 0.")
    if sizes is None and persons is None and (rows := int(counts.sum())) < k:
        raise ValueError(f"k must be at most the number of rows, {rows}; got {k}.")
    people = None
    if persons is not None:
        people = People.of_entries(np.arange(len(counts)), persons, len(counts))
        if (known := len(np.unique(persons[persons != NOBODY]))) < k:
            raise ValueError(f"k must be at most the number of people, {known}; got {k}.")
    leaf_rows = [_leaf_rows(counts, column) for column in columns]
    # A fixed order of the columns, so that the caller's order decides ties only between equal columns.
    order = sorted(range(len(columns)), key=lambda column: _rank(columns[column], leaf_rows[column]))
    ordered = [columns[column] for column in order]
    entries = Entries([column.codes for column in ordered], counts, sizes, people)
    leaf_sizes = [_leaf_sizes(entries, place, len(leaf_rows[column])) for place, column in enumerate(order)]
    leaves = [_Leaves(leaf_rows[column], leaf_sizes[place]) for place, column in enumerate(order)]
    begin = None if start is None else [start[column] for column in order]
    table, states = _search(entries, ordered, leaves, weights[order], k, max_suppressed, begin)
    table.set_states(states)
    score, closed, released = table.closed_score()
    if score.suppressed > max_suppressed:
        raise AssertionError(f"the recoding suppresses {score.suppressed} rows, more than {max_suppressed}")
    by_column = {
        column: described(table.axes[place], states[place], closed[place], released[place], columns[column])
        for place, column in enumerate(order)
    }
    recodings = tuple(by_column[column] for column in range(len(columns)))
    return Recoding(recodings, int(score.suppressed), score.loss / (table.full_price * max(table.rows, 1)))


@dataclass(frozen=True)
class _Leaves:
    """The rows of each leaf of a column, and the people who have it."""

    rows: Ints
    sizes: Ints | Floats


def _leaf_sizes(entries: Entries, column: int, leaves: int) -> Ints | Floats:
    """Return how large the class of each leaf would be in a table with one column."""
    if entries.people is not None:
        return entries.people.sizes(entries.leaves[column], leaves)
    return weighted_count(entries.leaves[column], entries.counts if entries.sizes is None else entries.sizes, leaves)


def _leaf_rows(counts: Ints, column: Column) -> Ints:
    """Return the rows of each leaf, or say what does not fit together."""
    structure = column.structure
    if isinstance(structure, Ordered):
        leaves = len(structure.positions)
    elif isinstance(structure, Tree):
        parents = np.asarray(structure.parents)
        leaves = len(parents) - len(np.unique(parents[parents >= 0]))
        if (parents < 0).sum() != 1 or (parents[parents >= 0] < leaves).any():
            raise ValueError("parents must have one root, and number the leaves before all other nodes.")
    elif isinstance(structure, Flat):
        leaves = structure.leaves
    else:
        leaves = len(structure.maps[0])
        if len(structure.losses[-1]) != 1:
            raise ValueError("losses must end in a level with one group.")
    leaves += column.has_null
    if len(column.codes) != len(counts) or (len(counts) and not 0 <= column.codes.min() <= column.codes.max() < leaves):
        raise ValueError(f"codes must be parallel to the counts and lie between 0 and {leaves - 1}.")
    return np.bincount(column.codes, counts, leaves).astype(np.int64)


def _rank(column: Column, leaf_rows: Ints) -> tuple[str, int, float, list[int]]:
    """Return what a column is sorted by: nothing that depends on the order in which columns or combinations come."""
    return type(column.structure).__name__, len(leaf_rows), column.weight, np.sort(leaf_rows).tolist()


def _axes(columns: Sequence[Column], leaves: list[_Leaves], stage: int, k: int) -> list[Axis]:
    """Return the axes of a stage; the atoms of a later stage are made of those of an earlier one."""
    axes = []
    for column, column_leaves in zip(columns, leaves, strict=True):
        rows = column_leaves.rows
        unit = -(-int(rows.sum()) // _SMALLEST_SHARE)
        atom_rows = unit << (stage - 1) if stage else 0
        if isinstance(column.structure, Ordered) and len(rows) > _MOST_ORDERED_ATOMS:
            atom_rows = max(atom_rows, unit * _SMALLEST_SHARE // _MOST_ORDERED_ATOMS)
        if isinstance(column.structure, Flat):
            # A value of too few people could only be kept by suppressing its rows, and is then told of nobody: it is
            # one of the others from the start.
            rows, atom_rows = np.where(column_leaves.sizes < k, 0, rows), max(atom_rows, 1)
        axes.append(make_axis(column, rows, atom_rows))
    return axes


def _tables(entries: Entries, columns: Sequence[Column], leaves: list[_Leaves], weights: Floats, k: int) -> list[Table]:
    """Return the table with all values, then coarser ones until one is small."""
    tables = [Table(entries, _axes(columns, leaves, 0, k), weights, k)]
    for stage in range(1, _STAGES + 1):
        last = tables[-1]
        if len(last.counts) <= _FIRST_COMBOS:
            break
        table = Table(last.entries, _axes(columns, leaves, stage, k), weights, k)
        if len(tables) > 1 and len(table.counts) > _STAGE_SHRINK * len(tables[-2].counts):
            tables.pop()
        tables.append(table)
    return tables


def _search(
    entries: Entries,
    columns: Sequence[Column],
    leaves: list[_Leaves],
    weights: Floats,
    k: int,
    limit: int,
    start: Sequence[State] | None,
) -> tuple[Table, list[State]]:
    """Search the coarsest table, then the finer ones from there; return the last of them and its best states."""
    tables = _tables(entries, columns, leaves, weights, k)
    table = tables.pop()
    search = Search(table, limit)
    with progress.part(0.0, 0.1):
        search.descend(_FIRST_WORK)
        search.refit()
    # Different ways to wander: with every column free, with each of them held in turn so that the others must make up
    # for it, with longer rests so that all columns get their turn, and without rests.
    steps = min(_STEPS, _FIRST_WORK // (table.view_work * len(columns)))
    with progress.part(0.1, 0.25):
        search.oscillate(steps // 2, 1)
    for column in range(len(columns)):
        with progress.part(0.25 + 0.15 * column / len(columns), 0.25 + 0.15 * (column + 1) / len(columns)):
            search.oscillate(max(steps // 2 // len(columns), _LEAST_HELD_STEPS), 1, held=column)
    with progress.part(0.4, 0.5):
        search.oscillate(steps // 4, 2)
    with progress.part(0.5, 0.6):
        search.oscillate(steps // 4, 0)
    search.refit()
    finer_tables = len(tables)
    # Open the merged values again; the last stage has all of them.
    while tables:
        finer = tables.pop()
        finer.set_states(
            [
                new.adopted(None if state is None else old.portable(state))
                for old, new, state in zip(table.axes, finer.axes, search.best[1], strict=True)
            ]
        )
        table, price = finer, search.price
        search = Search(table, limit)
        search.price = price
        search.sweep(_STAGE_WORK)
        steps = (_STAGE_WORK - table.work) // (table.view_work * len(columns))
        with progress.part(1 - 0.4 * (len(tables) + 1) / finer_tables, 1 - 0.4 * len(tables) / finer_tables):
            search.oscillate(min(max(steps, 0), _STEPS // 4), 1)
    if start is not None:
        search.consider([axis.adopted(state) for axis, state in zip(table.axes, start, strict=True)])
    return table, search.best[1]

"""The search in stages: first with rare values merged for good, then with ever more of them opened again.

What the constants trade was measured as `duckanon._methods.generalize.recoding.recode` says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Floats, Ints
from duckanon._methods.generalize.recoding.axes import Axis
from duckanon._methods.generalize.recoding.column_moves import Column, Flat, Ordered, State
from duckanon._methods.generalize.recoding.search import Search
from duckanon._methods.generalize.recoding.table import Entries, Sizes, Table
from duckanon._methods.generalize.recoding.trees import make_axis

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
class Leaves:
    """The rows of each leaf of a column, and the people who have it."""

    rows: Ints
    sizes: Ints | Floats


def _axes(columns: Sequence[Column], leaves: list[Leaves], stage: int, k: int) -> list[Axis]:
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


def _tables(
    entries: Entries, columns: Sequence[Column], leaves: list[Leaves], weights: Floats, k: Sizes
) -> list[Table]:
    """Return the table with all values, then coarser ones until one is small."""
    tables = [Table(entries, _axes(columns, leaves, 0, k.promised), weights, k)]
    for stage in range(1, _STAGES + 1):
        last = tables[-1]
        if len(last.counts) <= _FIRST_COMBOS:
            break
        table = Table(last.entries, _axes(columns, leaves, stage, k.promised), weights, k)
        if len(tables) > 1 and len(table.counts) > _STAGE_SHRINK * len(tables[-2].counts):
            tables.pop()
        tables.append(table)
    return tables


def search_stages(
    entries: Entries,
    columns: Sequence[Column],
    leaves: list[Leaves],
    weights: Floats,
    k: Sizes,
    limit: int,
    start: Sequence[State] | None,
) -> tuple[Table, tuple[float, list[State]]]:
    """Search the coarsest table, then the finer ones from there; return the last of them, its best loss and states."""
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
        finer.set_states(_adopted(table, finer, search.best[1]))
        promised = _adopted(table, finer, search.promised[1]) if search.promised[1] else None
        table, price = finer, search.price
        search = Search(table, limit, promised)
        search.price = price
        search.sweep(_STAGE_WORK)
        steps = (_STAGE_WORK - table.work) // (table.view_work * len(columns))
        with progress.part(1 - 0.4 * (len(tables) + 1) / finer_tables, 1 - 0.4 * len(tables) / finer_tables):
            search.oscillate(min(max(steps, 0), _STEPS // 4), 1)
    if start is not None:
        search.consider([axis.adopted(state) for axis, state in zip(table.axes, start, strict=True)])
    search.settle()
    return table, search.promised


def _adopted(table: Table, finer: Table, states: list[State]) -> list[State]:
    """Return the states of a finer table that are the same recoding."""
    return [new.adopted(old.portable(state)) for old, new, state in zip(table.axes, finer.axes, states, strict=True)]

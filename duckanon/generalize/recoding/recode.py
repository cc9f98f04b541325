"""Find a k-anonymous global recoding of a table that loses as little as possible.

Every column's values are mapped to coarser groups by a function of the value alone. Rows in classes of
fewer than k rows are suppressed, up to a limit. The search starts from the fully generalized table,
takes the best feasible move until none is left, and then crosses the limit back and forth. A large table
is first searched with its rare values merged for good; these are opened again, stage by stage, around
the recoding found so far.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from duckanon.common.arrays import Floats, Ints
from duckanon.generalize.recoding.axes import Axis
from duckanon.generalize.recoding.columns import Column, Flat, Levels, Ordered, State, Tree
from duckanon.generalize.recoding.search import Search, Table, combine
from duckanon.generalize.recoding.trees import TreeAxis, make_axis

#: Distinct combinations with which the first search is done; a view of a table of this size takes a millisecond.
_FIRST_COMBOS = 20_000
#: Sorted combinations, over all views, that one stage may cost.
_FIRST_WORK = 24_000_000
_STAGE_WORK = 60_000_000
_STEPS = 150
#: Stage 0 has all values; in stage s, values with fewer than 2 ** (s - 1) / 4096 of the rows are merged.
_STAGES = 12
_SMALLEST_SHARE = 4096
_MOST_ORDERED_ATOMS = 512
_MANY_LEAVES = 2000


@dataclass(frozen=True)
class ColumnRecoding:
    """The recoding of one column.

    Attributes
    ----------
    group_of_leaf
        The group of each leaf, NULL included.
    losses
        The loss of each group, from 0 to 1.
    nodes
        For a tree, the node of each group; -1 for NULL. Else None.
    level
        For levels, the level taken. Else None.
    """

    group_of_leaf: Ints
    losses: Floats
    nodes: Ints | None = None
    level: int | None = None


@dataclass(frozen=True)
class Recoding:
    """A recoding of a table.

    Attributes
    ----------
    columns
        One recoding per column, in the order of the input.
    suppressed
        The number of rows in classes of fewer than k rows.
    gcp
        The weighted mean loss over rows and columns; a suppressed row loses 1 in every column.
    """

    columns: tuple[ColumnRecoding, ...]
    suppressed: int
    gcp: float


def recode(counts: Ints, columns: Sequence[Column], k: int, max_suppressed: int) -> Recoding:
    """Find a k-anonymous recoding with little loss.

    Parameters
    ----------
    counts
        The number of rows of each distinct combination.
    columns
        The columns; their codes are parallel to ``counts``.
    k
        The smallest class that is not suppressed.
    max_suppressed
        The largest number of rows that may be suppressed.

    Returns
    -------
    Recoding
        The best recoding found. The same table gives the same recoding, in whatever order its
        combinations come.

    Raises
    ------
    ValueError
        If the table has fewer than k rows, or the input does not fit together.
    """
    counts = np.asarray(counts, dtype=np.int64)
    leaf_rows = [_leaf_rows(counts, column) for column in columns]
    weights = np.array([column.weight for column in columns], dtype=np.float64)
    if not len(columns) or (weights < 0).any() or not weights.sum() > 0:
        raise ValueError("a recoding needs at least one column, weights of at least 0, and one above 0")
    if int(counts.sum()) < max(k, 1):
        raise ValueError(f"the table has {int(counts.sum())} rows, fewer than k = {k}")
    # A fixed order of the columns, so that the caller's order decides ties only between equal columns.
    order = sorted(range(len(columns)), key=lambda c: _rank(columns[c], leaf_rows[c]))
    ordered = [columns[c] for c in order]
    axes, states = _search(counts, ordered, [leaf_rows[c] for c in order], weights[order], k, max_suppressed)
    found: list[ColumnRecoding | None] = [None] * len(columns)
    for place, axis, state in zip(order, axes, states, strict=True):
        found[place] = _describe(axis, state, columns[place])
    result = tuple(part for part in found if part is not None)
    suppressed, gcp = measure(counts, columns, result, k)
    if suppressed > max_suppressed:
        raise AssertionError(f"the recoding suppresses {suppressed} rows, more than {max_suppressed}")
    return Recoding(result, suppressed, gcp)


def measure(counts: Ints, columns: Sequence[Column], recodings: Sequence[ColumnRecoding], k: int) -> tuple[int, float]:
    """Count the suppressed rows and the loss (GCP) of a recoding from scratch."""
    groups = [part.group_of_leaf[column.codes] for part, column in zip(recodings, columns, strict=True)]
    key, size = combine(groups, [len(part.losses) for part in recodings])
    if size > 4 * len(key) + 1000:
        distinct, key = np.unique(key, return_inverse=True)
        size = len(distinct)
    small = np.bincount(key, counts, size)[key] < k
    loss = np.zeros(len(counts))
    for part, group, column in zip(recodings, groups, columns, strict=True):
        loss += column.weight * np.where(small, 1.0, part.losses[group])
    weight = sum(column.weight for column in columns)
    return int(counts[small].sum()), float(loss @ counts) / (weight * int(counts.sum()))


def _leaf_rows(counts: Ints, column: Column) -> Ints:
    structure = column.structure
    if isinstance(structure, Ordered):
        leaves = len(structure.positions)
    elif isinstance(structure, Tree):
        parents = np.asarray(structure.parents)
        leaves = len(parents) - len(np.unique(parents[parents >= 0]))
        if (parents < 0).sum() != 1 or (parents[parents >= 0] < leaves).any():
            raise ValueError("a tree has one root, and its leaves are numbered before all other nodes")
    elif isinstance(structure, Flat):
        leaves = structure.leaves
    else:
        leaves = len(structure.maps[0])
        if len(structure.losses[-1]) != 1:
            raise ValueError("the last of the levels must have one group")
    leaves += column.has_null
    if len(column.codes) != len(counts) or (len(counts) and not 0 <= column.codes.min() <= column.codes.max() < leaves):
        raise ValueError(f"a column's codes must be parallel to the counts and lie between 0 and {leaves - 1}")
    return np.bincount(column.codes, counts, leaves).astype(np.int64)


def _rank(column: Column, leaf_rows: Ints) -> tuple[str, int, float, list[int]]:
    return type(column.structure).__name__, len(leaf_rows), column.weight, np.sort(leaf_rows).tolist()


def _axes(columns: Sequence[Column], leaf_rows: list[Ints], stage: int, k: int) -> list[Axis]:
    """Return the axes of a stage; the atoms of a later stage are made of those of an earlier one."""
    axes = []
    for column, rows in zip(columns, leaf_rows, strict=True):
        unit = -(-int(rows.sum()) // _SMALLEST_SHARE)
        atom_rows = unit << (stage - 1) if stage else 0
        if isinstance(column.structure, Ordered) and len(rows) > _MOST_ORDERED_ATOMS:
            atom_rows = max(atom_rows, unit * _SMALLEST_SHARE // _MOST_ORDERED_ATOMS)
        if isinstance(column.structure, Flat) and len(rows) > _MANY_LEAVES:
            atom_rows = max(atom_rows, k)
        axes.append(make_axis(column, rows, atom_rows))
    return axes


def _tables(counts: Ints, columns: Sequence[Column], leaf_rows: list[Ints], weights: Floats, k: int) -> list[Table]:
    """Return the table with all values, then coarser ones until one is small."""
    tables = [Table(counts, [column.codes for column in columns], _axes(columns, leaf_rows, 0, k), weights, k)]
    for stage in range(1, _STAGES + 1):
        last = tables[-1]
        if len(last.counts) <= _FIRST_COMBOS:
            break
        # Any leaf of an atom stands for all of them.
        leaves = [axis.leaf_of_atom[atoms] for axis, atoms in zip(last.axes, last.atoms, strict=True)]
        table = Table(last.counts, leaves, _axes(columns, leaf_rows, stage, k), weights, k)
        if len(tables) > 1 and len(table.counts) > 0.6 * len(tables[-2].counts):
            tables.pop()
        tables.append(table)
    return tables


def _search(
    counts: Ints, columns: Sequence[Column], leaf_rows: list[Ints], weights: Floats, k: int, limit: int
) -> tuple[list[Axis], list[State]]:
    tables = _tables(counts, columns, leaf_rows, weights, k)
    table = tables.pop()
    search = Search(table, limit)
    search.descend(_FIRST_WORK)
    search.refit()
    steps = min(_STEPS, _FIRST_WORK // (len(table.counts) * len(columns)))
    search.oscillate(steps // 2, 1)
    for column in range(len(columns)):
        search.oscillate(max(steps // 2 // len(columns), 6), 1, held=column)
    search.oscillate(steps // 4, 2)
    search.oscillate(steps // 4, 0)
    search.refit()
    # Open the merged values again; the last stage has all of them.
    while tables:
        finer = tables.pop()
        finer.set_states(
            [
                None if state is None else new.adopt(old.portable(state))
                for old, new, state in zip(table.axes, finer.axes, search.best[1], strict=True)
            ]
        )
        table, price = finer, search.price
        search = Search(table, limit)
        search.price = price
        search.sweep(_STAGE_WORK)
        steps = (_STAGE_WORK - table.work) // (len(table.counts) * len(columns))
        search.oscillate(min(max(steps, 0), _STEPS // 4), 1)
    return table.axes, search.best[1]


def _describe(axis: Axis, state: State, column: Column) -> ColumnRecoding:
    group, losses = axis.groups(state)
    group_of_leaf = group[axis.atom_of_leaf]
    nodes, level = None, None
    if isinstance(axis, TreeAxis):
        labels = axis.portable(axis.coarsest if state is None else state)
        nodes = np.array(labels + ((-1,) if axis.has_null and state is not None else ()), dtype=np.int64)
    if isinstance(column.structure, Levels):
        level = axis.coarsest[0] if state is None else state[0]
    return ColumnRecoding(group_of_leaf, losses, nodes, level)

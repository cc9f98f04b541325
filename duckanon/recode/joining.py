"""Which joins the columns of a table have: small columns are looked up together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from duckanon.common.arrays import Array, Ints
from duckanon.recode.columns import Column, Numbers, Tree, Values
from duckanon.recode.joins import GroupJoin, Join, RangeJoin, SetJoin, SpanJoin, TableJoin

_MOST_ENTRIES = 2**15
"""Entries of a table that still answers from the processor's cache."""

_LARGEST_TABLE = 2**18
"""Entries of a table that is better than computing: beyond that, values are compared."""

_SUBSET_VALUES = 9
"""Columns of so many values have a state for each of their subsets."""


def joins_of(columns: Sequence[Column], codes: Sequence[Array], groups: Array | None) -> list[Join]:
    """Return the joins of all columns, small ones together.

    Parameters
    ----------
    columns, codes
        The columns, and the code of each row in each.
    groups
        The group of each row, where classes must not mix several; None: all rows are one group.
    """
    tables: list[TableJoin] = []
    others: list[Join] = [] if groups is None else [GroupJoin(groups)]
    for column, of_rows in zip(columns, codes, strict=True):
        if isinstance(column, Numbers):
            others.append(RangeJoin(column, of_rows))
        elif isinstance(column, Tree):
            nodes = column.nodes()
            is_small = len(nodes) * column.size <= _LARGEST_TABLE
            if is_small:
                tables.append(_tree_table(column, nodes, of_rows))
            else:
                others.append(SpanJoin(column, of_rows))
        elif isinstance(column, Values):
            if column.size <= _SUBSET_VALUES:
                tables.append(_subset_table(column, of_rows))
            else:
                others.append(SetJoin(column, of_rows))
    return [*others, *_packed(tables)]


def _packed(tables: list[TableJoin]) -> list[TableJoin]:
    """Put small tables together, the smallest first, as long as the common one is small."""
    packed: list[TableJoin] = []
    for table in sorted(tables, key=lambda each: each.entries):
        if packed and packed[-1].entries * table.entries <= _MOST_ENTRIES:
            packed[-1] = packed[-1].with_other(table)
        else:
            packed.append(table)
    return packed


def _tree_table(column: Tree, nodes: Ints, codes: Array) -> TableJoin:
    """Make the table of a tree: its states are the nodes, of which the leaves come first."""
    first, last = nodes.T
    values = np.arange(column.size)
    low, high = np.minimum(first[:, None], values), np.maximum(last[:, None], values)
    # a node is known by the values below it
    keys = first * column.size + last
    order = np.argsort(keys)
    ancestors = column.ancestors(low.ravel(), high.ravel())
    places = np.searchsorted(keys[order], ancestors[0] * column.size + ancestors[1])
    next_states = order[places].reshape(low.shape)
    return TableJoin(codes.astype(np.int64), next_states, values, column.span_losses(first, last))


def _subset_table(column: Values, codes: Array) -> TableJoin:
    """Make the table of all subsets of few values."""
    subsets, values = np.arange(2**column.size), np.arange(column.size)
    held = (subsets[:, None] >> values) & 1
    losses = column.set_losses(held @ column.counts)
    return TableJoin(codes.astype(np.int64), subsets[:, None] | (1 << values), 1 << values, losses)

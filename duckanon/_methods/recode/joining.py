"""Which joins the columns of a table have: small columns are looked up together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from duckanon._core.common.arrays import Array, Ints
from duckanon._methods.recode.column_losses import Column, Numbers, Tree, Values
from duckanon._methods.recode.joins import GroupJoin, Join, RangeJoin, SpanJoin, TableJoin
from duckanon._methods.recode.value_sets import SetsJoin, sets_joins

_MOST_ENTRIES = 2**15
"""Entries of a table that still answers from the processor's cache."""

_LARGEST_TABLE = 2**18
"""Entries of a table that is better than computing: beyond that, values are compared."""


class Joins(NamedTuple):
    """What the search asks about all columns.

    Attributes
    ----------
    ordered
        Those of numbers and trees, and of groups.
    sets
        Those of the columns of which classes publish sets.
    """

    ordered: list[Join]
    sets: list[SetsJoin]

    @property
    def every(self) -> list[Join]:
        """All joins: together they make the state of a class."""
        return [*self.ordered, *self.sets]


def joins_of(columns: Sequence[Column], codes: Sequence[Array], groups: Array | None) -> Joins:
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
    of_sets: list[tuple[Values, Array]] = []
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
            of_sets.append((column, of_rows))
    sets = sets_joins([column for column, _ in of_sets], [of_rows for _, of_rows in of_sets])
    return Joins([*others, *_packed(tables)], sets)


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

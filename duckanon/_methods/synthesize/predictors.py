"""The columns drawn so far as predictors of the next one: ranks of numbers, choices in the order of the response."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Array, Floats, Ints, Reals
from duckanon._methods.synthesize.cut_tree import Tree

NO_NUMBER = -1.0
"""The rank of a row that has no regular number: below all others, so that one split sets it apart."""
_MOST_INDICATORS = 16  # choices of more values are only ordered: indicators of rare ones seldom help
_BLOCK = 65_536  # rows that are encoded at a time
_LEVELS = 1_024  # of ranks in trees of many people, whose leaves are as wide: trees grow in four fifths of the time
_MANY = 10 * _LEVELS


class _Predictor(NamedTuple):
    """A column: codes or ranks of people and of new rows; `choices` is 0 for ranks."""

    original: Array
    new: Array
    choices: int


@dataclass
class Predictors:
    """Columns that are drawn, of the people and of new rows."""

    columns: list[_Predictor] = field(default_factory=list)

    def add_choice(self, original: Ints, new: Ints, choices: int) -> None:
        """Add the choices of a column, unless there is only one."""
        if choices > 1:
            self.columns.append(_Predictor(original, new, choices))

    def add_ranks(self, original: Floats, new: Floats) -> None:
        """Add the ranks of a column, `NO_NUMBER` where there is no regular number."""
        if len(original) > _MANY:
            original, new = (np.floor(ranks * _LEVELS) / _LEVELS for ranks in (original, new))
        self.columns.append(_Predictor(original.astype(np.float32), new.astype(np.float32), 0))

    def orders(self, response: Floats, rows: Ints) -> list[Floats]:
        """Return, for each column of choices, the place of each choice in the order of its mean response.

        Args:
            response: One number for each row.
            rows: The people whose response it is.
        """
        found = []
        for column in self.columns:
            if column.choices <= 2:
                found.append(np.arange(float(column.choices)))
                continue
            codes = column.original[rows]
            sums = np.bincount(codes, response, column.choices)
            means = (sums + response.mean()) / (np.bincount(codes, minlength=column.choices) + 1.0)
            places = np.empty(column.choices)
            places[np.argsort(means, kind="stable")] = np.arange(column.choices)
            found.append(places)
        return found

    def matrix(self, orders: list[Floats], rows: Ints, *, new: bool) -> Reals:
        """Encode rows of the people, or new rows: ranks, places in an order, and indicators of few choices."""
        features = []
        for column, places in zip(self.columns, orders, strict=True):
            values = (column.new if new else column.original)[rows]
            features.append(places[values] if column.choices else values)
            if 2 < column.choices <= _MOST_INDICATORS:
                features.extend(values == code for code in range(column.choices))
        return np.stack(features, axis=1, dtype=np.float32, casting="unsafe")

    def leaves(self, tree: Tree, orders: list[Floats], rows: Ints, *, new: bool) -> Ints:
        """Return the leaf of each row, block by block."""
        found = [tree.leaves(self.matrix(orders, block, new=new)) for block in _blocks(rows)]
        return np.concatenate(found) if found else np.zeros(0, np.int64)


def _blocks(rows: Ints) -> Iterator[Ints]:
    for start in range(0, len(rows), _BLOCK):
        progress.check()
        yield rows[start : start + _BLOCK]


def first_component(counts: Ints) -> Floats:
    """Return the coordinates of choices along the first principal component of their indicators."""
    if len(counts) == 2:
        return np.arange(2.0)
    shares = counts / counts.sum()
    return np.asarray(np.linalg.eigh(np.diag(shares) - np.outer(shares, shares))[1][:, -1])

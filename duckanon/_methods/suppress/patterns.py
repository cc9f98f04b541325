"""Patterns, sets of columns that are made NULL together, and the groups of classes that agree in all others."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from duckanon._core.common.arrays import Bools, Floats, Ints
from duckanon._core.common.people import people_in

_MOST = 300  # patterns of one size that are tried, those of cheap columns first: all of ten columns are fewer
_LARGEST_KEY = 2**62  # numbers for the values of several columns together stay below this


def tried_patterns(costs: Floats, columns: Bools) -> Iterator[Bools]:
    """Give sets of the columns that may be used, smaller ones first, among equal ones the cheapest."""
    usable = np.flatnonzero(columns)
    by_cost = usable[np.argsort(costs[usable], kind="stable")]
    for size in range(1, len(usable) + 1):
        chosen = list(itertools.islice(itertools.combinations(by_cost.tolist(), size), _MOST))
        for names in sorted(chosen, key=lambda names: float(costs[list(names)].sum())):
            pattern = np.zeros(len(costs), np.bool_)
            pattern[list(names)] = True
            yield pattern


def group_numbers(codes: Ints, used: Bools) -> Ints:
    """Give numbers from 0 to lines of codes that are equal in the columns that are used."""
    key, width = np.zeros(len(codes), np.int64), 1
    for column in np.flatnonzero(used):
        base = int(codes[:, column].max(initial=0)) + 1
        if width > _LARGEST_KEY // base:
            key = _dense(key, width)
            width = int(key.max()) + 1
        key = key * base + codes[:, column]
        width *= base
    return _dense(key, width)


def _dense(key: Ints, width: int) -> Ints:
    """Give numbers from 0 to the keys that occur, which are below the width."""
    if width > 4 * len(key):
        return np.asarray(pa.array(key).dictionary_encode().indices).astype(np.int64)
    numbers: Ints = (np.cumsum(np.bincount(key, minlength=width) > 0) - 1)[key]
    return numbers


class Classes:
    """Records that are equal in all columns."""

    def __init__(self, codes: Ints, people: Ints | None) -> None:
        number = group_numbers(codes, np.ones(codes.shape[1], np.bool_))
        self.of_record, self._people = number, people  # the class of each record, and whose it is
        self._records = np.bincount(number)
        one_of_each = np.empty(len(self._records), np.int64)
        one_of_each[number] = np.arange(len(number))
        self.codes = codes[one_of_each]  # classes by columns
        self.sizes = self.people_of(np.arange(len(self.codes)))  # records of each class, or its people

    def people_of(self, group: Ints) -> Ints:
        """Count the records, or people, of groups of classes, given the group of each class."""
        count = int(group.max()) + 1
        if self._people is None:
            return np.bincount(group, self._records, minlength=count).astype(np.int64)
        return people_in(group[self.of_record], self._people, count)

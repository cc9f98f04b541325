"""Where NULL agrees with anything: each record keeps as much as k people agree with."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Floats, Ints
from duckanon._methods.suppress.patterns import Classes, group_numbers, tried_patterns


def matching_cells(classes: Classes, nulls: Bools, k: int, costs: Floats) -> Bools:
    """Choose the cells that become NULL, classes by columns, so that k people agree with what is left.

    Every class of fewer than k gets the cheapest set of NULLs with which k people of the original table agree: pattern
    by pattern, the cheapest first, groups that are equal in the other columns are counted, until all classes have one.
    What other records lose does not count: otherwise k - 1 records of NULLs alone, with which everybody agrees, would
    be the best answer, and no protection. ``nulls`` says which cells of the classes are NULL already.
    """
    cells = np.zeros(nulls.shape, np.bool_)
    for missing, with_these in _by_nulls(nulls):
        short = _still_short(classes, with_these, missing, k)
        for pattern in tried_patterns(costs, ~missing):
            if not len(short):
                break
            progress.check()
            left = _still_short(classes, short, missing | pattern, k)
            cells[np.setdiff1d(short, left, assume_unique=True)] = pattern
            short = left
    return cells


def refuse_unmatched(classes: Classes, nulls: Bools, k: int) -> None:
    """Count again, from the result alone, how many people agree with each class."""
    for missing, with_these in _by_nulls(nulls):
        if len(_still_short(classes, with_these, missing, k)):
            raise AssertionError(f"a record agrees with fewer than {k} people.")


def _still_short(classes: Classes, short: Ints, missing: Bools, k: int) -> Ints:
    """Return those of some classes with which fewer than k people agree, apart from the columns that are missing."""
    group = group_numbers(classes.codes, ~missing)
    return short[classes.people_of(group)[group[short]] < k]


def _by_nulls(nulls: Bools) -> Iterator[tuple[Bools, Ints]]:
    """Give each set of columns that are NULL together, and the classes of which they are."""
    number = group_numbers(nulls.astype(np.int64), np.ones(nulls.shape[1], np.bool_))
    sizes = np.bincount(number)
    for lines in np.split(np.argsort(number, kind="stable"), np.cumsum(sizes)[:-1]):
        yield nulls[lines[0]], lines

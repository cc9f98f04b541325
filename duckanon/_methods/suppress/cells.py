"""The cells that become NULL: for records of k people where NULL agrees with anything, or where it is a value."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Floats, Ints
from duckanon._core.common.people import people_in
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


def strict_cells(classes: Classes, people: Ints | None, k: int, costs: Floats) -> Bools:
    """Choose the cells that become NULL, records by columns, so that k people have each record, NULLs included.

    Pattern by pattern, the cheapest first: records that are too few lose the columns of the pattern where k people
    among them agree without these. Whoever is left loses everything, and as many of the smallest classes with them as
    it takes. It did not help to let records of large classes join a pattern that lacks some: the survey Adult lost as
    many cells, sdcMicro's testdata 458 instead of 406 at k = 3 and 789 instead of 768 at k = 5.
    """
    number, count = classes.of_record, classes.sizes
    cells = np.zeros((len(number), len(costs)), np.bool_)
    short = np.flatnonzero(count[number] < k)
    for pattern in tried_patterns(costs, np.ones(len(costs), np.bool_)):
        if not len(short):
            return cells
        progress.check()
        group = group_numbers(classes.codes, ~pattern)[number]
        lost = people_in(group[short], None if people is None else people[short], int(group.max()) + 1)
        is_enough = lost[group[short]] >= k
        cells[short[is_enough]] = pattern
        short = short[~is_enough]
    if len(short):
        cells[_rest(short, np.where(cells, 0, classes.codes[number] + 1), people, k)] = True
    return cells


def refuse_unequal(codes: Ints, cells: Bools, people: Ints | None, k: int) -> None:
    """Count again, from the result alone, how many people have the same record."""
    released = Classes(np.where(cells, 0, codes + 1), people)
    if released.sizes.min() < k:
        raise AssertionError(f"a record is that of fewer than {k} people.")


def _rest(short: Ints, released: Ints, people: Ints | None, k: int) -> Ints:
    """Return the records that lose everything: those that are left, and the smallest classes until they are k.

    ``released`` has the codes of all records as they would be released, 0 for NULL.
    """
    number = group_numbers(released, np.ones(released.shape[1], np.bool_))
    is_other = np.ones(len(released), np.bool_)
    is_other[short] = False
    rows = short
    for smallest in np.argsort(np.bincount(number), kind="stable"):
        known = None if people is None else people[rows]
        if people_in(np.zeros(len(rows), np.int64), known, 1)[0] >= k:
            break
        rows = np.concatenate([rows, np.flatnonzero(is_other & (number == smallest))])
    return rows

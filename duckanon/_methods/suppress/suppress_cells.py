"""The table that ``anon.suppress_cells`` releases: single cells are NULL, everything else is as it was.

Records that are equal in all columns are a class. For classes of fewer than k people, sets of columns are tried as
NULL, the cheapest first, until k people agree with what the record still shows. Where NULL agrees with any value,
these people are counted among the original records; where NULL is a value, among the records that lose the same
columns, and whoever is left loses everything. Each set costs one grouping of the classes, at most 300 sets of one size
are tried, and the promise is counted again on the result.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon._core.common import progress
from duckanon._core.common.arguments import make_generator, spell_columns
from duckanon._core.common.arrays import Bools, Floats, Ints
from duckanon._core.common.codes import encode_columns, rank_values
from duckanon._core.common.parameters import Kept
from duckanon._core.common.people import count_people, find_person_column, number_people, refuse_large_k
from duckanon._core.privacy.narrowing import MOST_ASKED, MOST_ROWS, NarrowPairs, describe_pairs, find_narrow_pairs

_MOST = 300  # patterns of one size that are tried, those of cheap columns first: all of ten columns are fewer
_LARGEST_KEY = 2**62  # numbers for the values of several columns together stay below this


def list_patterns(costs: Floats, columns: Bools) -> Iterator[Bools]:
    """Give sets of the columns that may be used, smaller ones first, among equal ones the cheapest."""
    usable = np.flatnonzero(columns)
    by_cost = usable[np.argsort(costs[usable], kind="stable")]
    for size in range(1, len(usable) + 1):
        chosen = list(itertools.islice(itertools.combinations(by_cost.tolist(), size), _MOST))
        for names in sorted(chosen, key=lambda names: float(costs[list(names)].sum())):
            pattern = np.zeros(len(costs), np.bool_)
            pattern[list(names)] = True
            yield pattern


def number_groups(codes: Ints, used: Bools) -> Ints:
    """Give numbers from 0 to lines of codes that are equal in the columns that are used."""
    key, width = np.zeros(len(codes), np.int64), 1
    for column in np.flatnonzero(used):
        base = int(codes[:, column].max(initial=0)) + 1
        if width > _LARGEST_KEY // base:
            key = _number_keys(key, width)
            width = int(key.max()) + 1
        key = key * base + codes[:, column]
        width *= base
    return _number_keys(key, width)


def _number_keys(key: Ints, width: int) -> Ints:
    """Give numbers from 0 to the keys that occur, which are below the width."""
    if width > 4 * len(key):
        return np.asarray(pa.array(key).dictionary_encode().indices).astype(np.int64)
    numbers: Ints = (np.cumsum(np.bincount(key, minlength=width) > 0) - 1)[key]
    return numbers


class RecordClasses:
    """Records that are equal in all columns."""

    def __init__(self, codes: Ints, people: Ints | None) -> None:
        number = number_groups(codes, np.ones(codes.shape[1], np.bool_))
        self.class_of_record, self._people = number, people  # of each record: its class, and its person
        self._records = np.bincount(number)
        record_of_class = np.empty(len(self._records), np.int64)
        record_of_class[number] = np.arange(len(number))
        self.codes = codes[record_of_class]  # classes by columns
        self.sizes = self.count_people(np.arange(len(self.codes)))  # records of each class, or its people

    def count_people(self, group: Ints) -> Ints:
        """Count the records, or people, of groups of classes, given the group of each class."""
        count = int(group.max()) + 1
        if self._people is None:
            return np.bincount(group, self._records, minlength=count).astype(np.int64)
        return count_people(group[self.class_of_record], self._people, count)


def choose_matching_cells(classes: RecordClasses, nulls: Bools, k: int, costs: Floats) -> Bools:
    """Choose the cells that become NULL, classes by columns, so that k people agree with what is left.

    Every class of fewer than k gets the cheapest set of NULLs with which k people of the original table agree. What
    other records lose does not count: otherwise k - 1 records of NULLs alone, with which everybody agrees, would
    be the best answer, and no protection. ``nulls`` says which cells of the classes are NULL already.
    """
    cells = np.zeros(nulls.shape, np.bool_)
    for missing, with_these in _group_by_nulls(nulls):
        short = _find_short(classes, with_these, missing, k)
        for pattern in list_patterns(costs, ~missing):
            if not len(short):
                break
            progress.check()
            left = _find_short(classes, short, missing | pattern, k)
            cells[np.setdiff1d(short, left, assume_unique=True)] = pattern
            short = left
    return cells


def _find_short(classes: RecordClasses, short: Ints, missing: Bools, k: int) -> Ints:
    """Return the classes with which fewer than k people agree in the columns that are not missing."""
    group = number_groups(classes.codes, ~missing)
    return short[classes.count_people(group)[group[short]] < k]


def _group_by_nulls(nulls: Bools) -> Iterator[tuple[Bools, Ints]]:
    """Give each set of columns that are NULL together, and the classes of which they are."""
    number = number_groups(nulls.astype(np.int64), np.ones(nulls.shape[1], np.bool_))
    sizes = np.bincount(number)
    for lines in np.split(np.argsort(number, kind="stable"), np.cumsum(sizes)[:-1]):
        yield nulls[lines[0]], lines


def choose_strict_cells(classes: RecordClasses, people: Ints | None, k: int, costs: Floats) -> Bools:
    """Choose the cells that become NULL, records by columns, so that k people have each record, NULLs included.

    Records that are too few lose the columns of a pattern where k people among them agree without these. The rest lose
    everything, with as many of the smallest classes as it takes. It did not help to let records of large classes join a
    pattern that lacks some: the survey Adult lost as many cells, sdcMicro's testdata 458 instead of 406 at k = 3 and
    789 instead of 768 at k = 5.
    """
    number, count = classes.class_of_record, classes.sizes
    cells = np.zeros((len(number), len(costs)), np.bool_)
    short = np.flatnonzero(count[number] < k)
    for pattern in list_patterns(costs, np.ones(len(costs), np.bool_)):
        if not len(short):
            return cells
        progress.check()
        group = number_groups(classes.codes, ~pattern)[number]
        lost = count_people(group[short], None if people is None else people[short], int(group.max()) + 1)
        is_enough = lost[group[short]] >= k
        cells[short[is_enough]] = pattern
        short = short[~is_enough]
    if len(short):
        cells[_find_rest(short, np.where(cells, 0, classes.codes[number] + 1), people, k)] = True
    return cells


def _find_rest(short: Ints, released: Ints, people: Ints | None, k: int) -> Ints:
    """Return the records that lose everything: those that are left, and the smallest classes until they are k.

    ``released`` has the codes of all records as they would be released, 0 for NULL.
    """
    number = number_groups(released, np.ones(released.shape[1], np.bool_))
    is_other = np.ones(len(released), np.bool_)
    is_other[short] = False
    rows = short
    for smallest in np.argsort(np.bincount(number), kind="stable"):
        known = None if people is None else people[rows]
        if count_people(np.zeros(len(rows), np.int64), known, 1)[0] >= k:
            break
        rows = np.concatenate([rows, np.flatnonzero(is_other & (number == smallest))])
    return rows


def suppress_cells(
    table: pa.Table,
    *,
    cols: Sequence[str],
    k: int,
    importance: Sequence[str] | None,
    person: str | None,
    keep: Sequence[str] | None,
    nulls: str,
    narrowing: Sequence[str] | None,
) -> pa.Table:
    """Make single cells NULL, and return the rows in a random order. Options are as `SUPPRESS_CELLS` declares them."""
    names = spell_columns("cols", cols, table.column_names) or []
    people, allowed = None, {name.lower() for name in narrowing or []}
    if person is not None:
        index = find_person_column(person, table.column_names, names)
        people = number_people(table.column(index))
        allowed.add(person.lower())
        table = table if Kept(keep).has(person) else table.remove_column(index)
    refuse_large_k(k, table.num_rows, people, "records")
    order = make_generator(None).permutation(table.num_rows)
    table, people = table.take(pa.array(order)), None if people is None else people[order]
    encoded = encode_columns(table.select(names))
    codes = np.stack([column.astype(np.int64) for column, _ in encoded], axis=1)
    costs = weigh_columns(names, [count for _, count in encoded], spell_columns("importance", importance, names) or [])
    is_null = np.stack([np.asarray(table.column(name).is_null()) for name in names], axis=1)
    cells = choose_cells(codes, is_null, people, k, costs, nulls)
    _refuse_narrowing(table, dict(zip(names, cells.T, strict=True)), allowed)
    for column_index, name in enumerate(names):
        column = table.column(name)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        column = pc.if_else(pa.array(cells[:, column_index]), pa.scalar(None, column.type), column)
        table = table.set_column(table.column_names.index(name), name, column)
    return table


def _refuse_narrowing(table: pa.Table, gone: Mapping[str, Bools], allowed: set[str]) -> None:
    """Refuse a kept column that narrows down what a suppressed cell was.

    Only a part of the rows is looked at, and ranked; rows are in a random order.
    """
    kept = [name for name in table.column_names if name not in gone and name.lower() not in allowed]
    pairs = NarrowPairs([], [])
    for name, is_gone in gone.items():
        if kept and is_gone.any():
            rows = np.union1d(np.arange(min(MOST_ROWS, table.num_rows)), np.flatnonzero(is_gone)[:MOST_ASKED])
            part, alike = table.select([name, *kept]).take(pa.array(rows)), np.zeros(len(rows), np.int64)
            columns = {other: part.column(other) for other in kept}
            ranks = rank_values(part.column(name))
            for all_pairs, new_pairs in zip(
                pairs,
                find_narrow_pairs({name: ranks}, {name: alike}, columns, alike, make_generator(None), is_gone[rows]),
                strict=True,
            ):
                all_pairs += new_pairs
    if refused := describe_pairs(pairs):
        raise ValueError(refused)


def choose_cells(codes: Ints, is_null: Bools, people: Ints | None, k: int, costs: Floats, nulls: str) -> Bools:
    """Choose the cells that become NULL, records by columns; what is promised is counted again from the result."""
    classes = RecordClasses(codes, people)
    if nulls == "value":
        cells = choose_strict_cells(classes, people, k, costs) & ~is_null
        released = RecordClasses(np.where(cells | is_null, 0, codes + 1), people)
        if released.sizes.min() < k:
            raise AssertionError(f"a record is that of fewer than {k} people.")
        return cells
    missing = np.zeros(classes.codes.shape, np.bool_)
    missing[classes.class_of_record] = is_null
    by_class = choose_matching_cells(classes, missing, k, costs)
    for nulls_of_set, of_set in _group_by_nulls(missing | by_class):
        if len(_find_short(classes, of_set, nulls_of_set, k)):
            raise AssertionError(f"a record agrees with fewer than {k} people.")
    return by_class[classes.class_of_record]


def weigh_columns(names: Sequence[str], counts: Sequence[int], important: Sequence[str]) -> Floats:
    """Return what a NULL costs in each column: nearly 1, more where the column matters more.

    Columns of more values matter less, but the important ones, the first of all first, more than all others.
    """
    rank = {name: position for position, name in enumerate(important)}
    least_first = sorted(range(len(names)), key=lambda column: (-rank.get(names[column], len(rank)), -counts[column]))
    costs = np.ones(len(names))
    # All of these together are less than one cell: few cells come first.
    costs[least_first] += np.arange(len(names)) / len(names) ** 2
    return costs

"""Strata: groups of records by labels that are released as they are, each large enough for boxes of its own.

A group that is too small loses its last label and joins its siblings without one, level by level; if these are too few,
larger siblings lend the records that are nearest to them, or join as a whole, whichever costs fewer labels. The loop
over records is only over candidates of too small groups.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon._core.common.arrays import Bools, Floats, Ints, Matrix
from duckanon._core.common.codes import rank_values
from duckanon._core.common.people import NOBODY, count_people
from duckanon._core.common.row_keys import group_keys, pack_columns
from duckanon._methods.boxes.nodes import is_diverse

_NO_LABEL = 0

Holds = Callable[[Ints, Ints, int], tuple[Bools, Ints]]
"""Takes records, the group of each and the number of groups; tells which groups are large enough for a box, and how
many people they have more than they need (below 0: how many they lack)."""


def form_strata(
    table: pa.Table,
    labels: Sequence[str],
    numbers: Mapping[str, Floats],
    k: int,
    people: Ints | None,
    l: int = 1,  # noqa: E741 - the papers' name
    epsilon: Mapping[str, float] | None = None,
) -> tuple[pa.Table, Ints]:
    """Group records by columns of labels into strata of k people; with l above 1 their `numbers` are diverse, too.

    Returns the table with NULL where a label is lost, and the stratum of each record, from 0.
    """
    apart = [(epsilon or {}).get(name, 0.0) for name in numbers]

    def holds(rows: Ints, group: Ints, count: int) -> tuple[Bools, Ints]:
        sizes = count_people(group, None if people is None else people[rows], count)
        enough: Bools = sizes >= k
        if l > 1:
            columns = [column[rows] for column in numbers.values()]
            orders = [np.lexsort((column, group)) for column in columns]
            records = np.bincount(group, minlength=count)
            enough &= is_diverse(columns, orders, np.cumsum(records) - records, records, l, apart)
        return enough, sizes - k

    strata, lost = _pool_groups([table.column(name) for name in labels], holds, list(numbers.values()), people)
    for name, is_lost in zip(labels, lost, strict=True):
        column = table.column(name)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        left = pc.if_else(pa.array(is_lost), pa.scalar(None, column.type), column)
        table = table.set_column(table.column_names.index(name), name, left)
    return table, strata


def _pool_groups(
    labels: Sequence[pa.ChunkedArray], holds: Holds, columns: Sequence[Floats], people: Ints | None
) -> tuple[Ints, Bools]:
    """Group records by their labels, and take labels from groups that are too small, the last label first.

    A group that is too small loses its last label and so joins its siblings that do, and those without one.  If these
    are still too few, larger siblings lend as many people as they lack, who lose that label, too; where no sibling has
    people to spare, the smallest joins as a whole, or all of them lose the label before, whatever costs fewer labels.

    NULL is a label, the same that a record has which lost its own.  The records most similar in `columns` lose their
    labels with those that have to.  Returns groups that all hold enough, provided that the whole table does, and for
    each column which labels are lost.
    """
    # by rank, so that ties between groups do not depend on the order of the records
    codes = np.stack([np.where(np.asarray(column.is_null()), _NO_LABEL, rank_values(column)) for column in labels])
    original = codes.copy()
    points = np.stack([column / (column.std() or 1.0) for column in columns], axis=1)
    everybody = np.arange(codes.shape[1])
    for depth in range(len(codes) - 1, -1, -1):
        group, count = _number_groups(codes)
        is_enough, _ = holds(everybody, group, count)
        codes[depth:, ~is_enough[group]] = _NO_LABEL
        group, count = _number_groups(codes)
        is_enough, _ = holds(everybody, group, count)
        is_short = ~is_enough[group]
        for prefix in np.unique(codes[:depth, is_short], axis=1).T:
            rows = np.flatnonzero((codes[:depth] == prefix[:, np.newaxis]).all(axis=0))
            person_of_row = None if people is None else people[rows]
            codes[:, rows] = _fill_group(codes[:, rows], depth, rows, holds, points[rows], person_of_row)
    while True:
        group, count = _number_groups(codes)
        is_enough, spare = holds(everybody, group, count)
        if is_enough.all() or count == 1:
            break
        has_label = np.zeros(count, np.bool_)
        has_label[group] = (codes != _NO_LABEL).any(axis=0)
        joins = np.flatnonzero(has_label)[spare[has_label].argmin()]
        codes[:, (group == joins) | ~is_enough[group]] = _NO_LABEL
    return group, codes != original


def _fill_group(codes: Ints, depth: int, rows: Ints, holds: Holds, points: Matrix, people: Ints | None) -> Ints:
    """Return the labels of records that agree before `depth`, with enough of them without labels from there on."""
    group, count = _number_groups(codes)
    is_enough, spare = holds(rows, group, count)
    is_short = ~is_enough[group]  # one group, which has lost all labels from `depth` on
    candidates = np.flatnonzero(~is_short)
    if not is_short.any() or not len(candidates):
        return codes
    away = np.square(points[candidates] - points[is_short].mean(axis=0)).sum(axis=1)
    candidates = candidates[np.argsort(away, kind="stable")]
    wanted = max(-int(spare[group[is_short]].min()), 1)
    available = wanted
    while available == wanted:
        moved, available = _choose_nearest(candidates, group, spare, wanted, people, is_short)
        tried = codes.copy()
        tried[depth:, moved] = _NO_LABEL
        if available == wanted and holds(rows, *_number_groups(tried))[0].all():
            return tried
        wanted, available = 2 * wanted, 2 * available  # diversity may need more
    siblings = np.unique(group[candidates])
    sizes = np.bincount(group, minlength=count)[siblings]
    lost = len(codes) - depth
    if not depth or sizes.min() * lost <= is_short.sum() + wanted * (lost + 1):
        codes[depth:, group == siblings[sizes.argmin()]] = _NO_LABEL
    return codes


def _choose_nearest(
    candidates: Ints, group: Ints, spare: Ints, wanted: int, people: Ints | None, short: Bools
) -> tuple[Ints, int]:
    """Choose records of the first people among candidates that their groups can spare; return these, and how many."""
    left, there = spare.copy(), set() if people is None else set(people[short].tolist())
    moved: list[Ints] = []
    chosen = 0
    for record in candidates.tolist():
        if chosen == wanted:
            break
        person = record if people is None else int(people[record])
        if left[group[record]] <= 0 or person in there or person == NOBODY:
            continue
        there.add(person)
        left[group[record]] -= 1
        chosen += 1
        is_of_person = None if people is None else (group == group[record]) & (people == person)
        moved.append(np.array([record]) if is_of_person is None else np.flatnonzero(is_of_person))
    return np.concatenate([*moved, np.zeros(0, np.int64)]), chosen


def _number_groups(codes: Ints) -> tuple[Ints, int]:
    """Give numbers to groups of records with the same codes, in the order of these."""
    groups = group_keys(pack_columns([(column, int(column.max()) + 1) for column in codes], codes.shape[1])[0])
    return groups.codes, len(groups.counts)

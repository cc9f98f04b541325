"""Strata: groups of records by labels that are released as they are, each large enough for boxes of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon._core.common.arrays import Bools, Floats, Ints, Matrix
from duckanon._core.common.codes import ranks_of
from duckanon._core.common.people import NOBODY, people_in
from duckanon._methods.boxes.diversity import diverse

_NO_LABEL = 0

Holds = Callable[[Ints, Ints, int], tuple[Bools, Ints]]
"""Takes records, the group of each and the number of groups; tells which groups are large enough for a box, and how
many people they have more than they need (below 0: how many they lack)."""


def with_strata(
    table: pa.Table,
    labels: Sequence[str],
    numbers: Mapping[str, Floats],
    k: int,
    people: Ints | None,
    l: int = 1,  # noqa: E741 - the papers' name
    epsilon: Mapping[str, float] | None = None,
) -> tuple[pa.Table, Ints]:
    """Group records by columns of labels into strata of k people, whose `numbers` are diverse if that is asked for.

    Returns the table with NULL where a label is lost, and the stratum of each record, from 0.
    """
    apart = [(epsilon or {}).get(name, 0.0) for name in numbers]

    def holds(rows: Ints, group: Ints, count: int) -> tuple[Bools, Ints]:
        sizes = people_in(group, None if people is None else people[rows], count)
        enough: Bools = sizes >= k
        if l > 1:
            columns = [column[rows] for column in numbers.values()]
            orders = [np.lexsort((column, group)) for column in columns]
            records = np.bincount(group, minlength=count)
            enough &= diverse(columns, orders, np.cumsum(records) - records, records, l, apart)
        return enough, sizes - k

    strata, lost = _pooled([table.column(name) for name in labels], holds, list(numbers.values()), people)
    for name, is_lost in zip(labels, lost, strict=True):
        column = table.column(name)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        left = pc.if_else(pa.array(is_lost), pa.scalar(None, column.type), column)
        table = table.set_column(table.column_names.index(name), name, left)
    return table, strata


def _pooled(
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
    codes = np.stack([np.where(np.asarray(column.is_null()), _NO_LABEL, ranks_of(column)) for column in labels])
    own = codes.copy()
    points = np.stack([column / (column.std() or 1.0) for column in columns], axis=1)
    everybody = np.arange(codes.shape[1])
    for depth in range(len(codes) - 1, -1, -1):
        group, count = _groups(codes)
        is_enough, _ = holds(everybody, group, count)
        codes[depth:, ~is_enough[group]] = _NO_LABEL
        group, count = _groups(codes)
        is_enough, _ = holds(everybody, group, count)
        is_short = ~is_enough[group]
        for prefix in np.unique(codes[:depth, is_short], axis=1).T:
            rows = np.flatnonzero((codes[:depth] == prefix[:, np.newaxis]).all(axis=0))
            whose = None if people is None else people[rows]
            codes[:, rows] = _filled(codes[:, rows], depth, rows, holds, points[rows], whose)
    while True:
        group, count = _groups(codes)
        is_enough, spare = holds(everybody, group, count)
        if is_enough.all() or count == 1:
            break
        has_label = np.zeros(count, np.bool_)
        has_label[group] = (codes != _NO_LABEL).any(axis=0)
        joins = np.flatnonzero(has_label)[spare[has_label].argmin()]
        codes[:, (group == joins) | ~is_enough[group]] = _NO_LABEL
    return group, codes != own


def _filled(codes: Ints, depth: int, rows: Ints, holds: Holds, points: Matrix, people: Ints | None) -> Ints:
    """Return the labels of records that have the same before `depth`: those without more, if too few, get company."""
    group, count = _groups(codes)
    is_enough, spare = holds(rows, group, count)
    is_short = ~is_enough[group]  # one group, which has lost all labels from `depth` on
    candidates = np.flatnonzero(~is_short)
    if not is_short.any() or not len(candidates):
        return codes
    away = np.square(points[candidates] - points[is_short].mean(axis=0)).sum(axis=1)
    candidates = candidates[np.argsort(away, kind="stable")]
    wanted = max(-int(spare[group[is_short]].min()), 1)
    found = wanted
    while found == wanted:
        moved, found = _nearest(candidates, group, spare, wanted, people, is_short)
        tried = codes.copy()
        tried[depth:, moved] = _NO_LABEL
        if found == wanted and holds(rows, *_groups(tried))[0].all():
            return tried
        wanted, found = 2 * wanted, 2 * found  # diversity may need more
    siblings = np.unique(group[candidates])
    sizes = np.bincount(group, minlength=count)[siblings]
    lost = len(codes) - depth
    if not depth or sizes.min() * lost <= is_short.sum() + wanted * (lost + 1):
        codes[depth:, group == siblings[sizes.argmin()]] = _NO_LABEL
    return codes


def _nearest(
    candidates: Ints, group: Ints, spare: Ints, wanted: int, people: Ints | None, short: Bools
) -> tuple[Ints, int]:
    """Return the records of the first people among candidates whom their groups can spare, and how many people."""
    left, there = spare.copy(), set() if people is None else set(people[short].tolist())
    moved: list[Ints] = []
    found = 0
    for record in candidates.tolist():
        if found == wanted:
            break
        whose = record if people is None else int(people[record])
        if left[group[record]] <= 0 or whose in there or whose == NOBODY:
            continue
        there.add(whose)
        left[group[record]] -= 1
        found += 1
        is_own = None if people is None else (group == group[record]) & (people == whose)
        moved.append(np.array([record]) if is_own is None else np.flatnonzero(is_own))
    return np.concatenate([*moved, np.zeros(0, np.int64)]), found


def _groups(codes: Ints) -> tuple[Ints, int]:
    """Give numbers to groups of records with the same codes, in the order of these."""
    group = np.zeros(codes.shape[1], np.int64)
    count = 1
    for column in codes:
        keys, group = np.unique(group * (int(column.max()) + 1) + column, return_inverse=True)
        group, count = group.reshape(-1), len(keys)
    return group, count

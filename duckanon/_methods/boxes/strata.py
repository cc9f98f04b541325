"""Strata: groups of records by labels that are released as they are, each large enough for boxes of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon._core.common.arrays import Bools, Floats, Ints, Matrix
from duckanon._core.common.codes import ranks_of
from duckanon._core.common.people import NOBODY

_NO_LABEL = 0

Holds = Callable[[Ints, Ints, int], tuple[Bools, Ints]]


class Strata(NamedTuple):
    """Records by stratum.

    Attributes:
        number : int64, one per record: The stratum, from 0.
        lost : bool, labels by records: Which labels have to be NULL.
    """

    number: Ints
    lost: Bools


def pooled(labels: Sequence[pa.ChunkedArray], holds: Holds, columns: Sequence[Floats], people: Ints | None) -> Strata:
    """Group records by their labels, and take labels from groups that are too small, the last label first.

    A group that is too small loses its last label and so joins its siblings that do, and those without one.  If these
    are still too few, larger siblings lend as many people as they lack, who lose that label, too; where no sibling has
    people to spare, the smallest joins as a whole, or all of them lose the label before, whatever costs fewer labels.

    Args:
        labels : sequence of pa.ChunkedArray: Columns; NULL is a label, the same that a record has which lost its own.
        holds : callable: Takes records, the group of each and the number of groups; tells which groups are large enough
            for a box, and how many people they have more than they need (below 0: how many they lack).
        columns : sequence of float64: What is boxed: the most similar records lose their labels with those that have
            to.
        people : int64, one per record, optional: Whose each record is.

    Returns:
        Groups that all hold enough, provided that the whole table does.
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
    return Strata(group, codes != own)


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


def without_labels(column: pa.ChunkedArray, lost: Bools) -> pa.ChunkedArray:
    """Return a column with NULL where the label is lost."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return pc.if_else(pa.array(lost), pa.scalar(None, column.type), column)


def _groups(codes: Ints) -> tuple[Ints, int]:
    """Give numbers to groups of records with the same codes, in the order of these."""
    group = np.zeros(codes.shape[1], np.int64)
    count = 1
    for column in codes:
        keys, group = np.unique(group * (int(column.max()) + 1) + column, return_inverse=True)
        group, count = group.reshape(-1), len(keys)
    return group, count

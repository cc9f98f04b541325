"""Microaggregation of tables with several rows a person: groups of similar rows, each of at least k people."""

from __future__ import annotations

import numpy as np

from duckanon._core.common.arrays import Bools, Ints, Matrix
from duckanon._core.common.people import cut_range, numbered_pairs, refuse_too_few


def halved_by_people(coordinates: Matrix, people: Ints, k: int) -> Ints:
    """Cut groups of more than 2k rows in two, each of at least k people, as long as that is possible.

    The cut is the place nearest to the median that leaves enough people on both sides. Where the widest column has
    none, the next one is tried. Where every row is another person, the groups are those of `halved`.
    """
    refuse_too_few(k, len(coordinates), people)
    labels = np.empty(len(coordinates), dtype=np.int64)
    finished = 0
    rows, sizes = np.arange(len(coordinates)), np.array([len(coordinates)])
    while len(sizes):
        halves: list[Ints] = []
        half_sizes: list[Ints] = []
        is_large = sizes > 2 * k
        whole_rows, whole_sizes = [rows[np.repeat(~is_large, sizes)]], [sizes[~is_large]]
        rows, sizes = rows[np.repeat(is_large, sizes)], sizes[is_large]
        columns = _columns_by_width(coordinates, rows, sizes)
        while columns.shape[1] and len(sizes):
            rows, left_sizes, is_cut = _cut(coordinates, people, k, rows, sizes, columns[:, 0])
            halves.append(rows[np.repeat(is_cut, sizes)])
            half_sizes.append(np.stack([left_sizes, sizes - left_sizes], axis=1)[is_cut].ravel())
            rows, sizes, columns = rows[np.repeat(~is_cut, sizes)], sizes[~is_cut], columns[~is_cut, 1:]
        whole_rows.append(rows)
        whole_sizes.append(sizes)
        counts = np.concatenate(whole_sizes)
        labels[np.concatenate(whole_rows)] = np.repeat(np.arange(finished, finished + len(counts)), counts)
        finished += len(counts)
        rows = np.concatenate([np.arange(0), *halves])
        sizes = np.concatenate([np.arange(0), *half_sizes])
    return labels


def _columns_by_width(coordinates: Matrix, rows: Ints, sizes: Ints) -> Ints:
    """Sort the columns of every group by the width that the group has in them, the widest first."""
    if not len(sizes):
        return np.zeros((0, 0), dtype=np.int64)
    starts = np.cumsum(sizes) - sizes
    widths = np.stack(
        [
            np.maximum.reduceat(column[rows], starts) - np.minimum.reduceat(column[rows], starts)
            for column in coordinates.T
        ],
        axis=1,
    )
    return np.argsort(-widths, axis=1, kind="stable")


def _cut(coordinates: Matrix, people: Ints, k: int, rows: Ints, sizes: Ints, columns: Ints) -> tuple[Ints, Ints, Bools]:
    """Sort the rows of every group by the group's column, and say how many are to be cut off, and whether they can."""
    starts = np.cumsum(sizes) - sizes
    group = np.repeat(np.arange(len(sizes)), sizes)
    ordered = rows[np.lexsort((rows, coordinates[rows, columns[group]], group))]
    first, last = cut_range(numbered_pairs(group, people[ordered]), starts, starts + sizes, k)
    is_cut = first <= last
    cuts = np.clip(starts + sizes // 2, first, np.maximum(first, last))
    return ordered, cuts - starts, is_cut

"""Microaggregation by halving: groups of similar rows, each row replaced by one representative of its group.

Spectral-RHS (Thesis, Section 4.1.2, Figure 4-2) halves groups at the median of their widest principal component until
they have at most 2k rows; all groups of a level are cut in a few operations on arrays, at a cost of rows times columns
for each level. Where people have several rows, cuts are moved to where both halves have k people. RHS (Chawla et al.
2005) cuts all columns at once, and leaves most rows alone: it is here for comparison.
"""

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Ints, Matrix
from duckanon._core.common.people import count_people, find_cut_range, number_pairs, refuse_large_k
from duckanon._methods.swap.components import principal_coordinates

# Rows gathered at once: a block of tens of columns then stays within the processor's cache.
BLOCK_ROWS = 16_384


def spectral_rhs(matrix: Matrix, k: int, people: Ints | None = None) -> Ints:
    """Group rows by halving them along their principal axes, until no group has more than 2k rows.

    Thesis, Section 4.1.2, Figure 4-2, on T = U D of the centred matrix; the figure does not centre, and without
    centring the first axis is little more than the mean (REFERENCES.md, Thesis, point 1). Groups are numbered from 0
    and have k to 2k rows; with ``people``, more where fewer would not be k people.
    """
    coordinates = principal_coordinates(matrix)
    return halve_rows(coordinates, k) if people is None else halve_by_people(coordinates, people, k)


def halve_rows(coordinates: Matrix, k: int) -> Ints:
    """Halve groups of more than 2k rows at the median of their widest column, until there are none; number the groups.

    Halves are cut by rank, rows equal to the median going to the lower half in the order in which they come, so that
    ties never leave a half too small: a group of 2k + 1 rows becomes k and k + 1. All groups of one level have one of
    two sizes, so that each level is a few operations on arrays of shape (groups, size).
    """
    rows = len(coordinates)
    refuse_large_k(k, rows, None)
    labels = np.empty(rows, dtype=np.int64)
    groups = 0
    level = {rows: [np.arange(rows).reshape(1, rows)]}
    while level:
        below: dict[int, list[Ints]] = {}
        for size, members in level.items():
            group_rows = np.concatenate(members)
            if size <= 2 * k:
                labels[group_rows] = np.arange(groups, groups + len(group_rows))[:, np.newaxis]
                groups += len(group_rows)
                continue
            step = max(1, BLOCK_ROWS // size)
            for start in range(0, len(group_rows), step):
                progress.check()
                for half in _split_groups(coordinates, group_rows[start : start + step]):
                    below.setdefault(half.shape[1], []).append(half)
        level = below
    return labels


def _split_groups(coordinates: Matrix, group_rows: Ints) -> tuple[Ints, Ints]:
    """Split every group, a line of row numbers, at the median of the column in which it is widest."""
    groups, size = group_rows.shape
    points = coordinates[group_rows] if size < len(coordinates) else coordinates[np.newaxis]
    widest = (points.max(axis=1) - points.min(axis=1)).argmax(axis=1)
    values = np.take_along_axis(points, widest[:, np.newaxis, np.newaxis], axis=2)[:, :, 0]
    half = size // 2
    cut = np.partition(values, half - 1, axis=1)[:, half - 1 : half]
    lower = values < cut
    equal = values == cut
    room = half - lower.sum(axis=1, keepdims=True)
    lower |= equal & (equal.cumsum(axis=1) <= room)
    return group_rows[lower].reshape(groups, half), group_rows[~lower].reshape(groups, size - half)


def halve_by_people(coordinates: Matrix, people: Ints, k: int) -> Ints:
    """Cut groups of more than 2k rows in two, each of at least k people, as long as that is possible.

    The cut is the place nearest to the median that leaves enough people on both sides. Where the widest column has
    none, the next one is tried. Where every row is another person, the groups are those of `halve_rows`.
    """
    refuse_large_k(k, len(coordinates), people)
    labels = np.empty(len(coordinates), dtype=np.int64)
    finished = 0
    rows, sizes = np.arange(len(coordinates)), np.array([len(coordinates)])
    while len(sizes):
        halves: list[Ints] = []
        half_sizes: list[Ints] = []
        is_large = sizes > 2 * k
        whole_rows, whole_sizes = [rows[np.repeat(~is_large, sizes)]], [sizes[~is_large]]
        rows, sizes = rows[np.repeat(is_large, sizes)], sizes[is_large]
        columns = _sort_columns_by_width(coordinates, rows, sizes)
        while columns.shape[1] and len(sizes):
            rows, left_sizes, is_cut = _cut_groups(coordinates, people, k, rows, sizes, columns[:, 0])
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


def _sort_columns_by_width(coordinates: Matrix, rows: Ints, sizes: Ints) -> Ints:
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


def _cut_groups(
    coordinates: Matrix, people: Ints, k: int, rows: Ints, sizes: Ints, columns: Ints
) -> tuple[Ints, Ints, Bools]:
    """Sort the rows of every group by the group's column, and say how many are to be cut off, and whether they can."""
    starts = np.cumsum(sizes) - sizes
    group = np.repeat(np.arange(len(sizes)), sizes)
    ordered = rows[np.lexsort((rows, coordinates[rows, columns[group]], group))]
    first, last = find_cut_range(number_pairs(group, people[ordered]), starts, starts + sizes, k)
    is_cut = first <= last
    cuts = np.clip(starts + sizes // 2, first, np.maximum(first, last))
    return ordered, cuts - starts, is_cut


def rhs(matrix: Matrix, k: int, people: Ints | None = None) -> Ints:
    """Group rows by cutting all columns at their medians at once; cut groups of more than 2k rows, or people, again.

    Recursive histogram sanitization (Chawla et al. 2005; Thesis, Section 4.1.2), for comparison only: n columns make up
    to 2^n groups in one step, so that with 4 columns most rows already end in groups of fewer than k, and with some
    tens of columns nearly every row ends alone, which protects nothing. Nothing is done about it here: count those rows
    with `count_rows_in_small_groups`. Cells are regions of space, so that equal rows stay together: a row lies above
    the cut where its value is above the median, or equal to it where the group has nothing above. Groups of equal rows
    are not cut.
    """
    rows = len(matrix)
    refuse_large_k(k, rows, people)
    labels = np.zeros(rows, dtype=np.int64)
    groups = 1
    active = np.arange(rows) if count_people(labels, people, 1)[0] > 2 * k else np.arange(0)
    while active.size:
        cells = _number_cells(matrix[active], labels[active])
        _, cells, counts = np.unique(cells, return_inverse=True, return_counts=True)
        # A group that stays whole has equal rows: it would come back unchanged for ever.
        whole = np.bincount(labels[active])[labels[active]] == counts[cells]
        labels[active] = groups + cells
        groups += len(counts)
        if people is not None:
            counts = count_people(cells, people[active], len(counts))
        active = active[(counts[cells] > 2 * k) & ~whole]
    return np.unique(labels, return_inverse=True)[1].astype(np.int64).reshape(rows)


def _number_cells(matrix: Matrix, labels: Ints) -> Ints:
    """Give a number to each of the cells that the medians of every column cut out of every group."""
    _, cells, counts = np.unique(labels, return_inverse=True, return_counts=True)
    group = cells.reshape(-1).astype(np.int64)
    cells = group
    first = np.cumsum(counts) - counts
    for column in matrix.T:
        progress.check()
        ordered = column[np.lexsort((column, group))]
        low = ordered[first + (counts - 1) // 2]
        median = low + (ordered[first + counts // 2] - low) / 2
        top = ordered[first + counts - 1]
        cells = 2 * cells + ((column > median[group]) | ((median == top)[group] & (column == top[group])))
        if cells.max(initial=0) >= 2**61:
            cells = np.unique(cells, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return cells


def count_rows_in_small_groups(labels: Ints, k: int, people: Ints | None = None) -> int:
    """Count the rows whose group has fewer than k rows, or people: those that a release of `rhs` does not protect."""
    counts = np.bincount(labels)
    return int(counts[count_people(labels, people, len(counts)) < k].sum())


def mask_rows(matrix: Matrix, labels: Ints, random: np.random.Generator, label: str = "mean") -> Matrix:
    """Replace every row by the mean of its group (``'mean'``), or by the member nearest to that (``'member'``).

    Means keep the column means exactly and lose variance, and a mean of categories need not be a combination that
    occurs. A member is a possible record in every respect, decimals and combinations of categories included, but it is
    a real person's record, released as many times as the group has rows: k-anonymous, and yet everything about that
    person is told. Rows stay in their order: the caller shuffles them before they are released.
    """
    if label == "mean":
        return _average_groups(matrix, labels)[labels]
    return np.asarray(matrix[choose_members(matrix, labels, random)])


def choose_members(matrix: Matrix, labels: Ints, random: np.random.Generator) -> Ints:
    """Return for every row the member of its group nearest to the mean, by index; chance decides ties."""
    means = _average_groups(matrix, labels)
    distance = np.zeros(len(matrix))
    for column, mean in zip(matrix.T, means.T, strict=True):
        distance += (column - mean[labels]) ** 2
    order = np.lexsort((random.random(len(matrix)), distance, labels))
    nearest: Ints = order[np.searchsorted(labels[order], np.arange(len(means)))]
    return nearest[labels]


def _average_groups(matrix: Matrix, labels: Ints) -> Matrix:
    counts = np.bincount(labels)
    return np.stack([np.bincount(labels, column) / counts for column in matrix.T], axis=1)

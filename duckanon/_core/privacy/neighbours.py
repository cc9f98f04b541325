"""Exact nearest neighbours of rows of numbers, and all that are equally near.

The distance is the root of the mean squared difference over the columns (Thesis, Section 3.1). In single precision,
products of matrices give a lower bound of every pair's distance; only pairs whose bound is below the k-th distance so
far are computed in double precision, so the order is exact and of ties the first row comes first. A k-d tree serves
tables of at most six columns (20 times quicker at four), and its ties are compared with all rows; in wider tables it
looks at nearly all rows. Equal rows are looked at once. Releases have such ties: an attacker must guess among them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from duckanon._core.common import progress
from duckanon._core.common.arguments import refuse_unless
from duckanon._core.common.arrays import Bools, Floats, Ints, Matrix
from duckanon._core.common.imports import import_function
from duckanon._core.common.row_keys import find_distinct_rows, hash_rows
from duckanon._core.common.rules import Whole

FEW_ROWS = 256
"""Rows up to which all distances are computed: 50 took a millisecond and a half with bounds, and take a tenth of it."""

_REFINED = 1 << 16  # pairs of rows whose differences are held at once
_IN_ORDER = 8  # columns from which on NumPy adds up the numbers of a row in another order than one after the other
_SEVERAL = 5  # neighbours from which on sorting all is quicker than taking the nearest out, one by one


def compare_all(queries: Matrix, rows: Matrix, k: int, skipped: Ints) -> tuple[Matrix, Ints]:
    """Compute all distances of a few rows, which is quicker than preparing to compute few of them."""
    squares = square_all_distances(queries, rows)
    squares[np.flatnonzero(skipped >= 0), skipped[skipped >= 0]] = np.inf
    if k >= _SEVERAL:
        indices = np.argsort(squares, axis=1, kind="stable")[:, :k]
        return np.take_along_axis(squares, indices, axis=1), indices
    best, indices = np.empty((len(queries), k)), np.empty((len(queries), k), np.int64)
    query = np.arange(len(queries))
    for rank in range(k):
        indices[:, rank] = near = squares.argmin(axis=1)  # of equally near ones the first
        best[:, rank] = squares[query, near]
        squares[query, near] = np.inf
    return best, indices


def square_all_distances(queries: Matrix, rows: Matrix) -> Matrix:
    """Return the sums of squared differences of all pairs, to the last digit as `square_distances` computes them."""
    squares = np.empty((len(queries), len(rows)))
    if rows.shape[1] < _IN_ORDER:  # a column at a time takes half as long
        progress.check()
        for column in range(rows.shape[1]):
            difference = np.subtract.outer(queries[:, column], rows[:, column])
            np.square(difference, out=difference)
            np.add(squares, difference, out=squares) if column else np.copyto(squares, difference)
        return squares
    step = max(1, _REFINED * 32 // max(rows.size, 1))
    for start in range(0, len(queries), step):
        progress.check()
        difference = queries[start : start + step, None] - rows
        squares[start : start + step] = np.square(difference, out=difference).sum(axis=2)
    return squares


def square_distances(queries: Matrix, points: Matrix, query: Ints, point: Ints) -> Matrix:
    """Return the sums of squared differences of pairs of a query and a point, given their indexes."""
    result = np.empty(len(query))
    step = max(1, _REFINED * 32 // queries.shape[1])
    for start in range(0, len(query), step):
        progress.check()
        part = slice(start, start + step)
        difference = queries[query[part]]
        difference -= points[point[part]]
        result[part] = np.square(difference, out=difference).sum(axis=1)
    return result


_QUERIES = 256  # a block of 256 queries by 2,048 points stays in the processor's cache while it is compared
_POINTS = 2048
_STRETCH = 4 * _POINTS  # at most, between two updates of what has been found
_LARGEST = 1e150  # squares of larger numbers, summed, come near the largest double
_NARROW = 6  # columns up to which a tree is quicker than comparing all pairs: 20 times for four columns
TREE = "scipy.spatial:cKDTree"
_ASKED = 2048  # queries that a tree is asked for at a time
FEW_POINTS = 500  # rows below which a tree is not worth its making
_FEW_NEIGHBOURS = 16
_CROWDED = 0.02  # of the pairs are candidates: single precision no longer tells the points apart


def find_nearest(
    queries: npt.ArrayLike,
    points: npt.ArrayLike,
    k: int,
    *,
    skip_self: bool | npt.ArrayLike = False,
    is_watched: bool = False,
) -> tuple[Matrix, Ints]:
    """Find the k nearest points of every query: distances and indices of shape (queries, k), the nearest first.

    The distance, the root of the mean squared difference over the columns, is that of Thesis, Section 3.1, Equation
    3.1. Products of matrices in single precision give, for every pair, a lower bound of its distance: the rounding
    error is bounded by a term of rank one, so the bound costs one more column. Only pairs whose bound is below the k-th
    distance found so far are computed in double precision, as sums of squared differences; equal rows have distance 0,
    and the order is that of double precision whatever the data, of equally near ones the first point first. Equal
    points are looked at once where there are many. In narrow tables a tree finds the neighbours, and only queries with
    several points as near are compared with all.

    Args:
        skip_self: True where the points are the queries: no row is its own neighbour, rows equal to it are. Or, for
            each query, the point that is the query itself, -1 for none.
        is_watched: Whether progress is told.
    """
    query_rows, rows = _check_matrix(queries, "queries"), _check_matrix(points, "points")
    if query_rows.shape[1] != rows.shape[1]:
        raise ValueError(
            f"queries and points must be equally wide; got {query_rows.shape[1]} and {rows.shape[1]} columns."
        )
    skipped = _read_skip_self(skip_self, len(query_rows), len(rows))
    available = len(rows) - int((skipped >= 0).any())
    refuse_unless(Whole(1), "k", k)
    if k > available:
        raise ValueError(f"k must be at most the number of rows to choose from, {available}; got {k}.")
    sample = rows[:: -(-len(rows) // 4096)]
    if max(len(query_rows), len(rows)) <= FEW_ROWS:
        squares, indices = compare_all(query_rows, rows, int(k), skipped)
    else:
        search = _search if len(np.unique(hash_rows(sample))) >= 0.9 * len(sample) else _search_distinct
        with contextlib.nullcontext() if is_watched else progress.mute():
            squares, indices = search(query_rows, rows, int(k), skipped)
    return np.sqrt(squares / rows.shape[1]), indices


def find_pairs_within(queries: Matrix, points: Matrix, radii: Matrix) -> Iterator[tuple[Ints, Ints, Matrix]]:
    """Find the pairs of a query and a point nearer than the radius of the query, for one block of points after another.

    Yields queries, points and distances as `find_nearest` has them; among them may be pairs as far apart as the radius.
    """
    queries, points = _check_matrix(queries, "queries"), _check_matrix(points, "points")
    if not len(queries):
        return
    limit = np.square(radii) * (queries.shape[1] * (1 + 1e-9))
    scan = _Scan(queries, points, np.float32)
    for start in range(0, len(points), _STRETCH):
        stop = min(len(points), start + _STRETCH)
        query, point = scan.candidates(start, stop, limit)
        if scan.is_single and len(query) > len(queries) * _CROWDED * (stop - start):
            scan = _Scan(queries, points, np.float64)
            query, point = scan.candidates(start, stop, limit)
        yield query, point, np.sqrt(square_distances(queries, points, query, point) / queries.shape[1])


def _check_matrix(values: npt.ArrayLike, name: str) -> Matrix:
    rows = np.ascontiguousarray(values, dtype=np.float64)
    if rows.ndim != 2 or not rows.shape[1]:
        raise ValueError(f"{name} must be a matrix with at least one column; got the shape {rows.shape}.")
    if rows.size and not max(-rows.min(), rows.max()) <= _LARGEST:  # NaN fails too
        raise ValueError(f"{name} must hold finite numbers of at most {_LARGEST:g}; replace NaN, infinity and larger.")
    return rows


def _read_skip_self(skip_self: bool | npt.ArrayLike, queries: int, points: int) -> Ints:
    """Return the point that each query must not find, -1 for none."""
    if isinstance(skip_self, (bool, np.bool_)):
        if skip_self and queries != points:
            raise ValueError(f"with skip_self, the points must be the queries; got {points} and {queries} rows.")
        return np.arange(queries) if skip_self else np.full(queries, -1)
    skipped = np.asarray(skip_self, np.int64)
    if skipped.shape != (queries,) or (queries and not -1 <= skipped.min() <= skipped.max() < points):
        raise ValueError(f"skip_self must give, for each of {queries} queries, a point from 0 to {points - 1} or -1.")
    return skipped


def _search_distinct(queries: Matrix, rows: Matrix, k: int, skipped: Ints) -> tuple[Matrix, Ints]:
    """Search among distinct points, then put back the rows that are equal to them.

    The k nearest distinct points (one more, should the query be the only one of its kind) hold the k nearest rows, and
    of each at most k + 1 rows can be among them.
    """
    firsts, codes, sizes = find_distinct_rows(rows)
    order = np.argsort(codes, kind="stable")
    starts = np.cumsum(sizes) - sizes
    skipping = int((skipped >= 0).any())
    asked = min(k + skipping, len(sizes))
    squares, near = _search(queries, rows[firsts], asked, np.full(len(queries), -1))
    best, indices = np.empty((len(queries), k)), np.empty((len(queries), k), np.int64)
    offset = np.arange(k + skipping)
    step = max(1, (1 << 20) // (asked * len(offset)))
    for start in range(0, len(queries), step):
        part = slice(start, start + step)
        members = order[np.minimum(starts[near[part]][:, :, None] + offset, len(order) - 1)]
        is_member = offset < sizes[near[part]][:, :, None]
        is_member &= members != skipped[part, None, None]
        square = np.where(is_member, squares[part][:, :, None], np.inf).reshape(len(members), -1)
        candidates = members.reshape(len(members), -1)
        chosen = np.lexsort((candidates, square), axis=1)[:, :k]
        best[part] = np.take_along_axis(square, chosen, axis=1)
        indices[part] = np.take_along_axis(candidates, chosen, axis=1)
    return best, indices


def _search(queries: Matrix, points: Matrix, k: int, skipped: Ints) -> tuple[Matrix, Ints]:
    """Return the k smallest sums of squared differences of every query, and their points."""
    if points.shape[1] > _NARROW or min(len(queries), len(points)) < FEW_POINTS or k > _FEW_NEIGHBOURS:
        return _scan(queries, points, k, skipped)
    best, indices, is_certain = _search_tree(queries, points, k, skipped)
    rest = np.flatnonzero(~is_certain)
    best[rest], indices[rest] = _scan(queries[rest], points, k, skipped[rest])
    return best, indices


def _search_tree(queries: Matrix, points: Matrix, k: int, skipped: Ints) -> tuple[Matrix, Ints, Bools]:
    """Return the k smallest sums of squared differences of every query, and their points.

    Tell of which queries the answer is that of comparing all, and not one of several as near.
    """
    tree = import_function(TREE)(points)
    asked = min(k + 2, len(points))  # the query itself may be one of them, and one tells whether others are as near
    best, indices = np.empty((len(queries), k)), np.empty((len(queries), k), np.int64)
    is_certain = np.empty(len(queries), np.bool_)
    for start in range(0, len(queries), _ASKED):
        progress.check()
        part = slice(start, start + _ASKED)
        near = np.asarray(tree.query(queries[part], asked)[1], np.int64)
        query = np.repeat(np.arange(len(near)) + start, asked)
        squares = square_distances(queries, points, query, near.reshape(-1)).reshape(near.shape)
        beyond = squares.max(axis=1) * (1 - 1e-9)  # no point that was not found is nearer
        squares[near == skipped[part, None]] = np.inf
        chosen = np.lexsort((near, squares), axis=1)[:, :k]
        best[part] = np.take_along_axis(squares, chosen, axis=1)
        indices[part] = np.take_along_axis(near, chosen, axis=1)
        is_certain[part] = (best[part, -1] < beyond) | (asked == len(points))
    return best, indices, is_certain


def _scan(queries: Matrix, points: Matrix, k: int, skipped: Ints) -> tuple[Matrix, Ints]:
    """Search by comparing all queries with all points."""
    best = np.full((len(queries), k), np.inf)
    indices = np.full((len(queries), k), len(points), np.int64)
    if not len(queries):
        return best, indices
    scan = _Scan(queries, points, np.float32)
    limit = scan.first_limit(k, skipped)
    start, stretch = 0, _POINTS
    while start < len(points):
        stop = min(len(points), start + stretch)
        query, point = scan.candidates(start, stop, limit)
        if scan.is_single and len(query) > len(queries) * (_CROWDED * (stop - start) + k):
            scan = _Scan(queries, points, np.float64)
            query, point = scan.candidates(start, stop, limit)
        keep = point != skipped[query]
        _merge_candidates(best, indices, query[keep], point[keep], queries, points, limit)
        start, stretch = stop, min(2 * stretch, _STRETCH)
        progress.advance(start / len(points))
    return best, indices


class _Scan:
    """Bounds of the distances between all queries and one block of points after the other.

    With centred and scaled rows q and p, half the squared distance less half of the square of q is p.p / 2 - q.p. In a
    precision with unit e its error is below c (|q| |p| + p.p / 2) with c = (width + 8) e.
    """

    def __init__(self, queries: Matrix, points: Matrix, dtype: type[np.float32] | type[np.float64]) -> None:
        self.queries, self.points = queries, points
        self.is_single = dtype is np.float32
        # The median, not the mean: one far outlier must not move all others away from 0, where digits are lost.
        self.centre = np.median(points[:: -(-len(points) // 4096)], axis=0)
        spread = np.maximum(np.ptp(points, axis=0), np.abs(points[0] - self.centre))
        reach = max(float(np.abs(queries - self.centre).max()), float(spread.max()))
        self.scale = 1.0 / reach if reach > 0 else 1.0
        self.error = (queries.shape[1] + 8) * float(np.finfo(dtype).eps)
        centred = (queries - self.centre) * self.scale
        norms = np.einsum("ij,ij->i", centred, centred)
        self.half = norms / 2
        self.left = np.column_stack([-centred, np.ones(len(centred)), np.sqrt(norms)]).astype(dtype)
        self.slack = self.error * norms + 8 * queries.shape[1] * float(np.finfo(dtype).tiny)
        self.room = np.empty(_QUERIES * _POINTS, dtype)
        self.flags = np.empty(_QUERIES * _POINTS, bool)

    def right(self, block: Matrix) -> npt.NDArray[np.floating]:
        """Prepare points for the product."""
        centred = (block - self.centre) * self.scale
        norms = np.einsum("ij,ij->i", centred, centred)
        wide = np.empty((len(block), block.shape[1] + 2), self.left.dtype)
        wide[:, :-2] = centred
        wide[:, -2] = norms * (0.5 - self.error)
        wide[:, -1] = np.sqrt(norms) * -self.error
        return wide.T

    def first_limit(self, k: int, skipped: Ints) -> Matrix:
        """Return for each query a sum of squares that at least k points do not exceed, from a sample of the points."""
        asked = min(k + 1, len(self.points))
        size = max(asked, min(_POINTS, max(512, len(self.points) // 8)))
        sample = np.arange(0, len(self.points), max(1, len(self.points) // size))
        right = self.right(self.points[sample])
        limit = np.empty(len(self.queries))
        for start in range(0, len(self.queries), _QUERIES):
            progress.check()
            part = slice(start, start + _QUERIES)
            bounds = np.matmul(self.left[part], right)
            near = sample[np.argpartition(bounds, asked - 1, axis=1)[:, :asked]]
            query = np.repeat(np.arange(len(near)) + start, asked)
            squares = square_distances(self.queries, self.points, query, near.reshape(-1)).reshape(near.shape)
            squares[near == skipped[part, None]] = np.inf
            limit[part] = np.sort(squares, axis=1)[:, k - 1]
        return limit

    def candidates(self, start: int, stop: int, limit: Matrix) -> tuple[Ints, Ints]:
        """Return the pairs of queries and points of one block that may be nearer than the limit."""
        right = self.right(self.points[start:stop])
        # A limit below 0 says that nothing can come nearer: no bound is below minus infinity.
        threshold = np.where(limit < 0, -np.inf, limit * (self.scale**2 * (0.5 + self.error)) - self.half + self.slack)
        threshold = np.nextafter(threshold.astype(self.left.dtype), self.left.dtype.type(np.inf))
        queries, points = [], []
        for first in range(0, len(self.queries), _QUERIES):
            progress.check()
            left, low = self.left[first : first + _QUERIES], threshold[first : first + _QUERIES, None]
            for offset in range(0, right.shape[1], _POINTS):
                block = right[:, offset : offset + _POINTS]
                bounds = self.room[: len(left) * block.shape[1]].reshape(len(left), block.shape[1])
                below = self.flags[: len(left) * block.shape[1]].reshape(bounds.shape)
                np.less_equal(np.matmul(left, block, out=bounds), low, out=below)
                query, point = np.divmod(np.flatnonzero(below), block.shape[1])
                queries.append(query + first)
                points.append(point + (start + offset))
        return np.concatenate(queries), np.concatenate(points)


def _merge_candidates(
    best: Matrix, indices: Ints, query: Ints, point: Ints, queries: Matrix, points: Matrix, limit: Matrix
) -> None:
    """Put candidates of a later block of points among the k best, and lower the limits."""
    k = best.shape[1]
    squares = square_distances(queries, points, query, point)
    better = (squares < best[query, -1]) & (squares <= limit[query])  # an equally near one comes later in the order
    query, point, squares = query[better], point[better], squares[better]
    if not len(query):
        return
    touched, touched_index = np.unique(query, return_inverse=True)
    query = np.concatenate([np.repeat(np.arange(len(touched)), k), touched_index.reshape(-1)])
    point = np.concatenate([indices[touched].reshape(-1), point])
    squares = np.concatenate([best[touched].reshape(-1), squares])
    order = np.lexsort((point, squares, query))
    sizes = np.bincount(query)
    chosen = order[(np.cumsum(sizes) - sizes)[:, None] + np.arange(k)]
    best[touched], indices[touched] = squares[chosen], point[chosen]
    worst = best[touched, -1]
    limit[touched] = np.where(worst == 0, -1.0, np.minimum(limit[touched], worst))


SAME_FACTOR = 1 + 1e-9
"""Distances that differ by no more than this factor do so by rounding."""
_PAIRS = 4_000_000  # neighbours looked at in one go


def find_tied_nearest(queries: Floats, points: Floats) -> tuple[Floats, Ints, Ints]:
    """Find, for every query, the smallest distance, and all pairs of a query and a point at that distance, by query.

    Where all neighbours looked at are equally near, four times as many are, until one is farther: exact, and cheap
    where ties are few. Where points are equal, all of them come back. With no columns to compare, everything is
    nearest.
    """
    count = len(points)
    if queries.shape[1] == 0:
        every = np.repeat(np.arange(len(queries)), count), np.tile(np.arange(count), len(queries))
        return np.zeros(len(queries)), *every
    distances = np.empty(len(queries))
    owners, members = [], []
    pending, wanted = np.arange(len(queries)), min(2, count)
    while len(pending):
        unresolved = []
        for start in range(0, len(pending), max(1, _PAIRS // wanted)):
            block = pending[start : start + max(1, _PAIRS // wanted)]
            near, indices = find_nearest(queries[block], points, wanted)
            tied = near <= near[:, :1] * SAME_FACTOR
            is_whole = ~tied[:, -1] | (wanted == count)
            distances[block] = near[:, 0]
            pairs = np.nonzero(tied & is_whole[:, None])
            owners.append(block[pairs[0]])
            members.append(indices[pairs])
            unresolved.append(block[~is_whole])
        pending, wanted = np.concatenate(unresolved), min(4 * wanted, count)
    owner, member = np.concatenate([*owners, np.empty(0, np.int64)]), np.concatenate([*members, np.empty(0, np.int64)])
    order = np.lexsort((member, owner))
    return distances, owner[order], member[order].astype(np.int64)

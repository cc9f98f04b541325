"""Exact nearest neighbours of rows of numbers, and rows that are equal."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from duckanon.common.arrays import Ints, Matrix

Tell: TypeAlias = Callable[[float], None] | None

_QUERIES = 256  # a block of 256 queries by 2,048 points stays in the processor's cache while it is compared
_POINTS = 2048
_STRETCH = 4 * _POINTS  # at most, between two updates of what has been found
_REFINED = 1 << 16  # pairs of rows whose differences are held at once
_LARGEST = 1e150
_CROWDED = 0.02  # of the pairs are candidates: single precision no longer tells the points apart


def nearest(
    queries: npt.ArrayLike,
    points: npt.ArrayLike,
    k: int,
    *,
    skip_self: bool | npt.ArrayLike = False,
    tell: Tell = None,
) -> tuple[Matrix, Ints]:
    """Find the k nearest points of every query.

    Parameters
    ----------
    queries, points
        Rows of finite numbers, equally wide.
    k
        How many neighbours.
    skip_self
        True where the points are the queries: no row is its own neighbour, rows equal to it are. Or, for each query,
        the point that is the query itself, -1 for none.
    tell
        Is told the share of the work done.

    Returns
    -------
    distances, indices
        Of shape (queries, k), the nearest first, of equally near ones the first point first. The distance is the
        thesis's: the root of the mean, over the columns, of the squared differences.

    Raises
    ------
    ValueError
        Fewer points than neighbours, rows of different width, numbers that are not finite.

    Notes
    -----
    Section 3.1, equation 3.1. Products of matrices in single precision give, for every pair, a lower bound of its
    distance: the rounding error is bounded by a term of rank one, so the bound costs one more column. Only pairs whose
    bound is below the k-th distance found so far are computed in double precision, as sums of squared differences;
    equal rows have distance 0, and the order is that of double precision whatever the data. Equal points are looked at
    once where there are many.
    """
    wanted, rows = _checked(queries, "queries"), _checked(points, "points")
    if wanted.shape[1] != rows.shape[1]:
        raise ValueError(f"queries and points must be equally wide; got {wanted.shape[1]} and {rows.shape[1]} columns.")
    own = _own(skip_self, len(wanted), len(rows))
    available = len(rows) - int((own >= 0).any())
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or not 1 <= k <= available:
        raise ValueError(f"k must be an integer from 1 to the number of rows to choose from, {available}; got {k}.")
    groups = _copies(rows)
    if groups is None:
        squares, found = _search(wanted, rows, int(k), own, tell)
    else:
        squares, found = _search_distinct(wanted, rows, int(k), own, groups, tell)
    return np.sqrt(squares / rows.shape[1]), found


def row_hashes(rows: Matrix) -> npt.NDArray[np.uint64]:
    """Return a number of 64 bits for every row: the same for equal rows, -0.0 being 0.0."""
    hashes = np.zeros(len(rows), np.uint64)
    multiplier, shift = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)
    for start in range(0, len(rows), 1 << 16):
        part = hashes[start : start + (1 << 16)]
        for column in (rows[start : start + (1 << 16)] + 0.0).T:
            part ^= np.ascontiguousarray(column).view(np.uint64)
            part *= multiplier
            part ^= part >> shift
            part *= np.uint64(0xD6E8FEB86659FD93)
            part ^= part >> shift
    return hashes


def equal_rows(rows: Matrix) -> Ints:
    """Give equal rows the same number, from 0 in the order of their first rows."""
    _, first, inverse = np.unique(row_hashes(rows), return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    return rank[inverse.reshape(-1)]


def _checked(values: npt.ArrayLike, name: str) -> Matrix:
    rows = np.ascontiguousarray(values, dtype=np.float64)
    if rows.ndim != 2 or not rows.shape[1]:
        raise ValueError(f"{name} must be a matrix with at least one column; got the shape {rows.shape}.")
    if rows.size and not max(-rows.min(), rows.max()) <= _LARGEST:  # NaN fails too
        raise ValueError(f"{name} must hold finite numbers of at most {_LARGEST:g}; replace NaN, infinity and larger.")
    return rows


def _own(skip_self: bool | npt.ArrayLike, queries: int, points: int) -> Ints:
    if isinstance(skip_self, (bool, np.bool_)):
        if skip_self and queries != points:
            raise ValueError(f"with skip_self, the points must be the queries; got {points} and {queries} rows.")
        return np.arange(queries) if skip_self else np.full(queries, -1)
    own = np.asarray(skip_self, np.int64)
    if own.shape != (queries,) or (queries and not -1 <= own.min() <= own.max() < points):
        raise ValueError(f"skip_self must give, for each of {queries} queries, a point from 0 to {points - 1} or -1.")
    return own


def _copies(rows: Matrix) -> Ints | None:
    """Return groups of equal rows, or None where few rows are equal or, by a freak of the hash, a group is wrong."""
    some = rows[:: -(-len(rows) // 4096)]
    if len(np.unique(row_hashes(some))) >= 0.9 * len(some):
        return None
    groups = equal_rows(rows)
    firsts = rows[np.unique(groups, return_index=True)[1]]
    step = 1 << 16
    right = all((firsts[groups[i : i + step]] == rows[i : i + step]).all() for i in range(0, len(rows), step))
    return groups if right else None


def _search_distinct(queries: Matrix, rows: Matrix, k: int, own: Ints, groups: Ints, tell: Tell) -> tuple[Matrix, Ints]:
    """Search among distinct points, then put back the rows that are equal to them.

    The k nearest distinct points (one more, should the query be the only one of its kind) hold the k nearest rows, and
    of each at most k + 1 rows can be among them.
    """
    order = np.argsort(groups, kind="stable")
    sizes = np.bincount(groups)
    starts = np.cumsum(sizes) - sizes
    firsts = order[starts]
    skipping = int((own >= 0).any())
    asked = min(k + skipping, len(firsts))
    squares, near = _search(queries, rows[firsts], asked, np.full(len(queries), -1), tell)
    best, indices = np.empty((len(queries), k)), np.empty((len(queries), k), np.int64)
    offset = np.arange(k + skipping)
    step = max(1, (1 << 20) // (asked * len(offset)))
    for start in range(0, len(queries), step):
        part = slice(start, start + step)
        place = starts[near[part]][:, :, None] + offset
        here = offset < sizes[near[part]][:, :, None]
        rows_there = order[np.minimum(place, len(order) - 1)]
        here &= rows_there != own[part, None, None]
        square = np.where(here, squares[part][:, :, None], np.inf).reshape(len(here), -1)
        candidates = rows_there.reshape(len(here), -1)
        chosen = np.lexsort((candidates, square), axis=1)[:, :k]
        best[part] = np.take_along_axis(square, chosen, axis=1)
        indices[part] = np.take_along_axis(candidates, chosen, axis=1)
    return best, indices


def _search(queries: Matrix, points: Matrix, k: int, own: Ints, tell: Tell) -> tuple[Matrix, Ints]:
    """Return the k smallest sums of squared differences of every query, and their points."""
    best = np.full((len(queries), k), np.inf)
    found = np.full((len(queries), k), len(points), np.int64)
    if not len(queries):
        return best, found
    scan = _Scan(queries, points, np.float32)
    limit = scan.first_limit(k, own)
    start, stretch = 0, _POINTS
    while start < len(points):
        stop = min(len(points), start + stretch)
        query, point = scan.candidates(start, stop, limit)
        if scan.is_single and len(query) > len(queries) * (_CROWDED * (stop - start) + k):
            scan = _Scan(queries, points, np.float64)
            query, point = scan.candidates(start, stop, limit)
        keep = point != own[query]
        _merge(best, found, query[keep], point[keep], queries, points, limit)
        start, stretch = stop, min(2 * stretch, _STRETCH)
        if tell is not None:
            tell(start / len(points))
    return best, found


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

    def first_limit(self, k: int, own: Ints) -> Matrix:
        """Return for each query a sum of squares that at least k points do not exceed, from a sample of the points."""
        asked = min(k + 1, len(self.points))
        size = max(asked, min(_POINTS, max(512, len(self.points) // 8)))
        sample = np.arange(0, len(self.points), max(1, len(self.points) // size))
        right = self.right(self.points[sample])
        limit = np.empty(len(self.queries))
        for start in range(0, len(self.queries), _QUERIES):
            part = slice(start, start + _QUERIES)
            bounds = np.matmul(self.left[part], right)
            near = sample[np.argpartition(bounds, asked - 1, axis=1)[:, :asked]]
            query = np.repeat(np.arange(len(near)) + start, asked)
            squares = _squares(self.queries, self.points, query, near.reshape(-1)).reshape(near.shape)
            squares[near == own[part, None]] = np.inf
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


def _squares(queries: Matrix, points: Matrix, query: Ints, point: Ints) -> Matrix:
    result = np.empty(len(query))
    step = max(1, _REFINED * 32 // queries.shape[1])
    for start in range(0, len(query), step):
        part = slice(start, start + step)
        difference = queries[query[part]]
        difference -= points[point[part]]
        result[part] = np.square(difference, out=difference).sum(axis=1)
    return result


def _merge(best: Matrix, found: Ints, query: Ints, point: Ints, queries: Matrix, points: Matrix, limit: Matrix) -> None:
    """Put candidates of a later block of points among the k best, and lower the limits."""
    k = best.shape[1]
    squares = _squares(queries, points, query, point)
    better = (squares < best[query, -1]) & (squares <= limit[query])  # an equally near one comes later in the order
    query, point, squares = query[better], point[better], squares[better]
    if not len(query):
        return
    touched, place = np.unique(query, return_inverse=True)
    query = np.concatenate([np.repeat(np.arange(len(touched)), k), place.reshape(-1)])
    point = np.concatenate([found[touched].reshape(-1), point])
    squares = np.concatenate([best[touched].reshape(-1), squares])
    order = np.lexsort((point, squares, query))
    sizes = np.bincount(query)
    chosen = order[(np.cumsum(sizes) - sizes)[:, None] + np.arange(k)]
    best[touched], found[touched] = squares[chosen], point[chosen]
    worst = best[touched, -1]
    limit[touched] = np.where(worst == 0, -1.0, np.minimum(limit[touched], worst))

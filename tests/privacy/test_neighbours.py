"""Exact neighbours and the three measures: brute force, ties, duplicates, far from zero, golden cases."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckanon._core.common import progress
from duckanon._core.common.row_keys import find_distinct_rows, hash_rows
from duckanon._core.privacy import neighbours
from duckanon._core.privacy.neighbours import find_nearest
from duckanon._core.privacy.prediction import measure_queries
from tests.profiles import cheap


def by_force(queries, points, k, own=None):
    squares = np.square(queries[:, None, :] - points[None]).sum(axis=2)
    if own is not None:
        squares[np.flatnonzero(own >= 0), own[own >= 0]] = np.inf
    order = np.argsort(squares, axis=1, kind="stable")[:, :k]
    return np.sqrt(np.take_along_axis(squares, order, axis=1) / points.shape[1]), order


def same(queries, points, k, skip_self=False, own=None):
    distances, indices = find_nearest(queries, points, k, skip_self=skip_self)
    expected, order = by_force(queries, points, k, own)
    np.testing.assert_array_equal(distances, expected)
    np.testing.assert_array_equal(indices, order)


cell = st.one_of(st.integers(-2, 2).map(float), st.sampled_from([0.1, 1e-9, -0.0, 1e6, 12345.678]))
matrices = st.integers(1, 12).flatmap(
    lambda width: st.tuples(
        st.lists(st.lists(cell, min_size=width, max_size=width), min_size=1, max_size=20),
        st.lists(st.lists(cell, min_size=width, max_size=width), min_size=1, max_size=60),
    )
)


@given(matrices, st.integers(1, 7), st.sampled_from([0.0, 1e7, -3e3]), st.sampled_from([1.0, 1e-20, 1e60]))
def test_brute_force(rows, k, offset, scale):
    queries, points = (np.array(part) * scale + offset for part in rows)
    if k > len(points):
        with pytest.raises(
            ValueError, match=f"k must be at most the number of rows to choose from, {len(points)}; got {k}"
        ):
            find_nearest(queries, points, k)
    else:
        same(queries, points, k)
    if k < len(points):
        same(points, points, k, True, np.arange(len(points)))


@pytest.mark.parametrize("kind", ["normal", "far", "heavy tails", "categories", "two far clusters", "integers"])
def test_many_blocks(kind, monkeypatch):
    monkeypatch.setattr(neighbours, "_POINTS", 64)
    monkeypatch.setattr(neighbours, "_STRETCH", 256)
    monkeypatch.setattr(neighbours, "_QUERIES", 50)
    random = np.random.default_rng(1)
    rows = random.normal(size=(1500, 9))
    if kind == "far":
        rows = np.round(rows, 3) + 1e8
    elif kind == "heavy tails":
        rows = random.standard_cauchy((1500, 9)) ** 3
    elif kind == "categories":
        rows = np.where(random.random((1500, 9)) < 0.3, 1.0, -1.0)
    elif kind == "two far clusters":  # single precision cannot tell the rows of a cluster apart
        rows = rows * 1e-6 + random.integers(0, 2, (1500, 1)) * 1e4
    elif kind == "integers":
        rows = random.poisson(2, (1500, 9)).astype(float)
    queries = np.concatenate([rows[:40], random.permutation(rows)[:60] + (kind == "normal")])
    same(queries, rows, 5)
    indexes = np.where(np.arange(100) < 40, np.arange(100), -1)
    same(queries, rows, 4, indexes, indexes)
    distances, _ = find_nearest(rows[:40], rows, 1)
    assert (distances == 0).all()


def test_constant_rows():
    rows = np.full((3000, 4), 7.3)
    distances, indices = find_nearest(rows, rows, 3, skip_self=True)
    assert (distances == 0).all()
    assert indices[0].tolist() == [1, 2, 3]
    assert indices[2999].tolist() == [0, 1, 2]


def test_progress_is_told():
    shares = []
    points = np.random.default_rng(0).normal(size=(30_000, 2))
    with progress.watch(None, shares.append):
        find_nearest(np.zeros((1, 2)), points, 2)
        assert shares == []
        find_nearest(np.zeros((1, 2)), points, 2, is_watched=True)
    assert shares == sorted(shares)
    assert len(shares) > 2
    assert shares[-1] == 1


@pytest.mark.thorough
@cheap
@given(matrices)
def test_equal_rows(rows):
    points = np.array(rows[1])
    seen: dict[tuple[float, ...], int] = {}
    assert find_distinct_rows(points).codes.tolist() == [seen.setdefault(tuple(row), len(seen)) for row in points + 0.0]


def test_hashes_of_signs_differ():
    bits = (np.arange(1 << 16)[:, None] >> np.arange(16)) & 1
    assert len(np.unique(hash_rows(2.0 * bits - 1))) == 1 << 16


@pytest.mark.parametrize(
    ("queries", "points", "k", "skip", "said"),
    [
        ([[0.0]], [[0.0, 1.0]], 1, False, "equally wide; got 1 and 2 columns"),
        ([[0.0]], [[0.0]], 2, False, "at most the number of rows to choose from, 1; got 2"),
        ([[0.0], [1.0]], [[0.0], [1.0]], 2, True, "choose from, 1; got 2"),
        ([[0.0]], [[0.0]], 0, False, "got 0"),
        ([[0.0]], [[0.0]], True, False, "got true"),
        ([[np.nan]], [[0.0]], 1, False, "queries must hold finite numbers"),
        ([[0.0]], [[np.inf]], 1, False, "points must hold finite numbers"),
        ([0.0], [[0.0]], 1, False, "queries must be a matrix"),
        ([[0.0]], [[0.0], [1.0]], 1, True, "the points must be the queries; got 2 and 1"),
        ([[0.0]], [[0.0], [1.0]], 1, [2], "a point from 0 to 1 or -1"),
        ([[0.0]], np.empty((0, 1)), 1, False, "choose from, 0; got 1"),
    ],
)
def test_refused(queries, points, k, skip, said):
    with pytest.raises(ValueError, match=said):
        find_nearest(queries, points, k, skip_self=skip)


def test_golden_measures():
    results = measure_queries([[0, 0]], [[3, 4], [6, 8], [0, 5], [10, 0]], 3)
    assert results.distance[0] == np.sqrt(12.5)
    assert results.ambiguity[0] == 0.5
    assert results.uncertainty[0] == pytest.approx(20 / 3)
    np.testing.assert_allclose(results.column_uncertainty, [[9, 13 / 3]])
    rows = np.random.default_rng(0).normal(size=(50, 3))
    indexes = measure_queries(rows, rows)
    assert (indexes.distance == 0).all()
    assert (indexes.ambiguity == 0).all()
    assert (indexes.uncertainty > 0).all()
    copies = measure_queries([[1.1, 1e9]], [[1.1, 1e9]] * 5)
    assert (copies.distance[0], copies.ambiguity[0], copies.uncertainty[0]) == (0, 1, 0)
    with pytest.raises(ValueError, match="k must be a whole number of at least 2; got 1"):
        measure_queries(rows, rows, 1)


@given(matrices, st.integers(2, 5))
def test_measures_by_force(rows, k):
    queries, points = (np.array(part) for part in rows)
    if k > len(points):
        return
    results = measure_queries(queries, points, k)
    distances, order = by_force(queries, points, k)
    for i, row in enumerate(order):
        assert results.ambiguity[i] == (distances[i, 0] / distances[i, -1] if distances[i, -1] else 1.0)
        expected = np.var(points[row], axis=0, ddof=1)
        np.testing.assert_allclose(results.column_uncertainty[i], expected, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(results.uncertainty[i], expected.mean(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("width", [1, 4])
@pytest.mark.parametrize("digits", [0, 12])
def test_a_tree_finds_what_comparing_all_finds(width: int, digits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the last bit and in the same order, also where points are as near as others."""
    rows = np.round(np.random.default_rng(width).normal(size=(700, width)) * 3, digits)
    rows = np.unique(rows, axis=0) if digits else rows
    by_tree = neighbours.find_nearest(rows, rows, 3, skip_self=True)
    monkeypatch.setattr(neighbours, "_NARROW", 0)
    compared = neighbours.find_nearest(rows, rows, 3, skip_self=True)
    assert all(np.array_equal(entry, other) for entry, other in zip(by_tree, compared, strict=True))

"""Clusters of bounded size, swapping of components inside them, and the search of the size."""

import math
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kurtosis
from sklearn.cluster import BisectingKMeans
from sklearn.metrics import adjusted_rand_score

from duckanon import spectral
from duckanon._core.common import progress
from duckanon._methods.swap.clusters import find_clusters, find_independent_rotation, size_bounds, swap_in_clusters
from duckanon._methods.swap.pica import STEP, ClusterSwap, SizeSearch, Verdict, search_size
from duckanon._methods.swap.spectral_clusters import spectral_coordinates
from tests.profiles import cheap

METHODS = ("spectral", "bisect")


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def blobs(sizes: list[int], width: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    random = generator(seed)
    truth = random.permutation(np.repeat(np.arange(len(sizes)), sizes))
    centres = 12 * np.eye(len(sizes), width)
    return centres[truth] + random.normal(size=(len(truth), width)), truth


def mixed(rows: int, seed: int = 0) -> np.ndarray:
    """Four numbers of which one is the sum of two others, and a group of three categories: 7 columns, rank 5."""
    random = generator(seed)
    numbers = np.exp(0.5 * random.normal(size=(rows, 4)))
    numbers[:, 3] = numbers[:, 0] - numbers[:, 1]
    group = np.where(np.arange(3) == random.integers(0, 3, rows)[:, None], 1.0, -1.0)
    return np.hstack([(numbers - numbers.mean(axis=0)) / numbers.std(axis=0), group])


# Clusters.

matrices = st.one_of(
    st.tuples(st.integers(1, 250), st.integers(1, 5), st.integers(0, 99)).map(
        lambda a: generator(a[2]).normal(size=a[:2])
    ),
    st.tuples(st.integers(1, 250), st.integers(1, 3), st.integers(0, 99)).map(
        lambda a: generator(a[2]).integers(0, 2, size=a[:2]).astype(float)
    ),
    st.tuples(st.integers(1, 250), st.floats(-1e9, 1e9)).map(lambda a: np.full((a[0], 2), a[1])),
    st.integers(4, 250).map(lambda rows: np.where(np.arange(rows)[:, None] == 0, 1e30, np.zeros((rows, 2)))),
    st.integers(4, 250).map(lambda rows: np.cumprod(np.full((rows, 1), 1.3), axis=0)),
)


@given(matrices, st.one_of(st.integers(2, 60), st.floats(2, 60)), st.sampled_from(METHODS), st.booleans())
def test_sizes(matrix, size, method, narrow):
    if narrow:
        matrix = matrix.astype(np.float32)
    before = matrix.copy()
    labels = find_clusters(matrix, size, method, generator())
    counts = np.bincount(labels)
    np.testing.assert_array_equal(matrix, before)
    assert labels.dtype == np.int32
    assert labels.shape == (len(matrix),)
    if len(matrix) <= 1.5 * size:
        assert counts.tolist() == [len(matrix)]
    else:
        # 3 rows are more than 1.5 times any size below 2, and less than twice 2.
        assert counts.min() >= max(2, size / 2)
        assert counts.max() <= max(1.5 * size, 2 * math.ceil(size / 2) - 1)


@pytest.mark.parametrize("size", [2, 2.1, 3, 4.9, 5, 10.5, 100])
def test_bounds_leave_no_gap(size):
    least, most = size_bounds(size, 10_000)
    assert size / 2 <= least <= size / 2 + 1
    assert most >= 2 * least - 1
    assert size_bounds(size, int(1.5 * size)) == (int(1.5 * size),) * 2


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("rows", [40, 700])
def test_equal_rows(method, rows):
    counts = np.bincount(find_clusters(np.ones((rows, 3)), 10, method, generator()))
    assert counts.min() >= 5
    assert counts.max() <= 15


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("sizes", [[150] * 4, [120, 90, 140, 80, 100]])
def test_blobs_are_found(method, sizes):
    matrix, truth = blobs(sizes, 6, 1)
    labels = find_clusters(matrix, np.mean(sizes), method, generator(2))
    assert adjusted_rand_score(truth, labels) > 0.99
    assert np.bincount(labels).shape == (len(sizes),)


def test_a_cluster_too_small_is_merged_and_one_too_large_split():
    matrix, truth = blobs([5, 100, 395], 6, 3)
    labels = find_clusters(matrix, 100, "spectral", generator(1))
    counts = np.bincount(labels)
    assert counts.min() >= 50
    assert counts.max() <= 150
    assert len(set(labels[truth == 0])) == 1
    # No cluster takes rows of both large blobs.
    assert not set(labels[truth == 1]) & set(labels[truth == 2])


def test_spectral_coordinates_are_those_of_the_equations():
    matrix = blobs([30, 40], 3, 5)[0]
    squares = ((matrix[:, None] - matrix) ** 2).sum(axis=2)
    affinity = np.exp(-squares / (2 * np.median(np.sqrt(squares[np.triu_indices(70, 1)])) ** 2))
    np.fill_diagonal(affinity, 0)
    degree = np.diag(affinity.sum(axis=1) ** -0.5)
    vectors = np.linalg.eigh(degree @ affinity @ degree)[1][:, -2:]
    expected = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    found = spectral_coordinates(matrix, 2, generator())
    # Eigenvectors are told up to their sign: cosines between rows are not.
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-8)


def test_iterated_eigenvectors_span_what_the_direct_ones_do():
    matrix = blobs([200, 200, 200], 5, 6)[0]
    found = spectral_coordinates(matrix, 3, generator(1))
    again = spectral_coordinates(matrix[:450], 100, generator(1))
    assert again.shape == (450, 100)
    cosines = found @ found.T
    truth = blobs([200, 200, 200], 5, 6)[1]
    assert cosines[truth[:, None] == truth].min() > 0.9


@pytest.mark.thorough
@pytest.mark.parametrize("width", [1, 4, 20])
def test_bisecting_makes_clusters_as_narrow_as_an_unbounded_one_does(width):
    matrix = generator(3).normal(size=(10_000, width)) @ generator(4).normal(size=(width, width))
    labels = find_clusters(matrix, 100, "bisect", generator())
    count = int(labels.max()) + 1
    peer = BisectingKMeans(count, random_state=0, bisecting_strategy="largest_cluster").fit(matrix)

    def inside(labels):
        return ((matrix - means(matrix, labels)[labels]) ** 2).sum()

    assert inside(labels) < 1.05 * inside(peer.labels_)
    assert 80 < len(matrix) / count < 125


@pytest.mark.thorough
def test_clusters_are_repeatable_and_threads_do_not_matter(monkeypatch):
    matrix = generator(1).normal(size=(120_000, 3)).astype(np.float32)
    first = find_clusters(matrix, 500, "bisect", generator(7))
    np.testing.assert_array_equal(first, find_clusters(matrix, 500, "bisect", generator(7)))
    assert (first != find_clusters(matrix, 500, "bisect", generator(8))).any()
    monkeypatch.setattr("duckanon._methods.swap.clusters.ThreadPoolExecutor", lambda: ThreadPoolExecutor(1))
    np.testing.assert_array_equal(first, find_clusters(matrix, 500, "bisect", generator(7)))
    longer = matrix[:3_001]
    expected = find_clusters(longer, 100, "bisect", generator(7))
    np.testing.assert_array_equal(expected, find_clusters(longer, 100, "auto", generator(7)))
    small = matrix[:900]
    spectral = find_clusters(small, 100, "auto", generator(7))
    np.testing.assert_array_equal(spectral, find_clusters(small, 100, "spectral", generator(7)))


@pytest.mark.parametrize(
    ("rows", "size", "method", "said"),
    [
        (0, 5, "auto", "clusters need at least one row; got an empty table."),
        (6_001, 5, "spectral", "takes at most 6000 rows; got 6001, use clustering := 'bisect'."),
    ],
)
def test_wrong_arguments(rows, size, method, said):
    with pytest.raises(ValueError, match=r"\.$") as raised:
        find_clusters(np.zeros((rows, 2)), size, method, generator())
    assert said in str(raised.value)


# Swapping.


def means(matrix: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return np.stack([matrix[labels == number].mean(axis=0) for number in np.unique(labels)])


def in_order(released: np.ndarray, labels: np.ndarray, seed: int) -> np.ndarray:
    """Undo the shuffle at the end, as only who knows the seed can: cluster by cluster."""
    return released[generator(seed).permutation(len(labels))]


@pytest.mark.parametrize("basis", ["pca", "ica"])
def test_means_and_scores_of_each_cluster(basis):
    matrix = mixed(900)
    labels = find_clusters(matrix, 150, "bisect", generator())
    released = in_order(swap_in_clusters(matrix, labels, basis, generator(5)), np.sort(labels), 5)
    grouped = np.sort(labels)
    np.testing.assert_allclose(means(released, grouped), means(matrix, labels), atol=1e-10)
    for number in np.unique(labels):
        rows, new = matrix[labels == number], released[grouped == number]
        centre = rows.mean(axis=0)
        spread, directions = np.linalg.svd(rows - centre, full_matrices=False)[1:]
        rank = int((spread > 1e-9 * spread[0]).sum())
        assert 3 <= rank <= 5  # fewer where a cluster has one category only
        # Nothing leaves the space of the cluster: sums over groups and linear relations hold.
        np.testing.assert_allclose((new - centre) @ directions[rank:].T, 0, atol=1e-9)
        if basis == "pca":
            for direction in directions[:rank]:
                np.testing.assert_allclose(
                    np.sort((new - centre) @ direction), np.sort((rows - centre) @ direction), atol=1e-10
                )
        # Rows are new ones.
        assert np.abs(rows[:, None] - new).max(axis=2).min() > 1e-9
    np.testing.assert_allclose(released[:, 4:].sum(axis=1), 2 - 3, atol=1e-9)


def test_trace_of_the_covariance_stays():
    matrix = mixed(500)
    released = swap_in_clusters(matrix, np.zeros(500, int), "pca", generator())
    assert np.trace(np.cov(released.T)) == pytest.approx(np.trace(np.cov(matrix.T)), abs=1e-10)


@pytest.mark.parametrize("basis", ["pca", "ica"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "matrix",
    [
        np.ones((20, 3)),
        np.outer(np.arange(20.0), [1, -2, 0]),
        generator(1).normal(size=(6, 10)),
        generator(1).normal(size=(2, 4)),
        np.hstack([generator(1).normal(size=(30, 2)), np.full((30, 1), 1e6), np.zeros((30, 1))]),
        np.where(np.arange(50)[:, None] == 0, 5.0, np.zeros((50, 3))),
        np.repeat(generator(2).normal(size=(3, 5)), 7, axis=0),
        generator(3).normal(size=(40, 3)) * [1, 1e-3, 1e3],
    ],
    ids=["constant", "rank 1", "wide", "two rows", "constant columns", "one other row", "copies", "scales"],
)
def test_degenerate_clusters(matrix, dtype, basis):
    data = np.vstack([matrix, mixed(60)[:, : matrix.shape[1]]] if matrix.shape[1] <= 7 else [matrix, matrix + 50])
    data = data.astype(dtype)
    labels = np.repeat([3, 1], [len(matrix), len(data) - len(matrix)])
    before = data.copy()
    released = swap_in_clusters(data, labels, basis, generator(2))
    np.testing.assert_array_equal(data, before)
    assert released.dtype == dtype
    assert np.isfinite(released).all()
    ordered = in_order(released, labels, 2)
    scale = np.abs(data).max()
    tolerance = scale * (1e-10 if dtype == np.float64 else 1e-5)
    np.testing.assert_allclose(means(ordered, np.sort(labels)), means(data.astype(float), labels), atol=tolerance)
    cluster = data[labels == 3].astype(float)
    new = ordered[np.sort(labels) == 3]
    if basis == "pca":
        np.testing.assert_allclose(new.var(axis=0).sum(), cluster.var(axis=0).sum(), atol=tolerance * scale)
    if dtype == np.float64:
        # In units of the principal components, permuting either kind leaves the sum of the variances alone.
        _, spread, directions = np.linalg.svd(cluster - cluster.mean(axis=0), full_matrices=False)
        rank = np.linalg.matrix_rank(cluster - cluster.mean(axis=0))
        white = (new - cluster.mean(axis=0)) @ directions[:rank].T / spread[:rank]
        assert (white**2).sum() == pytest.approx(rank, abs=1e-6)
    constant = np.ptp(cluster, axis=0) == 0
    np.testing.assert_allclose(new[:, constant], cluster[: len(new), constant], atol=tolerance)


@pytest.mark.thorough
@pytest.mark.parametrize("basis", ["pca", "ica"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_do_not_matter_and_seeds_do(basis, dtype):
    matrix = mixed(50_000).astype(dtype)
    labels = find_clusters(matrix, 2_000, "bisect", generator())
    one = swap_in_clusters(matrix, labels, basis, generator(1), threads=1)
    np.testing.assert_array_equal(one, swap_in_clusters(matrix, labels, basis, generator(1), threads=3))
    assert not np.array_equal(one, swap_in_clusters(matrix, labels, basis, generator(2)))


def test_numbers_of_clusters_may_have_gaps_and_progress_is_told():
    matrix, told = mixed(40_000).astype(np.float32), []
    labels = generator(1).integers(0, 9, 40_000) * 7
    caller = threading.get_ident()

    def tell(share):
        assert threading.get_ident() == caller
        told.append(share)

    with progress.watch(None, tell):
        swap_in_clusters(matrix, labels, "pca", generator())
    assert told == sorted(told)
    assert len(told) > 1
    assert told[-1] == 1


def test_order_of_rows_links_nothing():
    matrix = np.sort(generator(1).normal(size=(4_000, 1)), axis=0) * [1, 2] + generator(2).normal(size=(4_000, 2)) / 9
    labels = (np.arange(4_000) // 200).astype(np.int32)
    released = swap_in_clusters(matrix, labels, "pca", generator(3))
    assert abs(np.corrcoef(released[:, 0], matrix[:, 0])[0, 1]) < 0.06
    assert np.corrcoef(np.sort(released[:, 0]), np.sort(matrix[:, 0]))[0, 1] > 0.999


def test_both_widths_keep_the_same_shape():
    matrix = mixed(3_000)
    labels = find_clusters(matrix, 300, "bisect", generator())
    wide, narrow = (swap_in_clusters(matrix.astype(t), labels, "pca", generator(1)) for t in (np.float64, np.float32))
    np.testing.assert_allclose(np.cov(narrow.T), np.cov(wide.T), atol=0.1)
    np.testing.assert_allclose(np.trace(np.cov(narrow.T)), np.trace(np.cov(wide.T)), rtol=1e-5)


def test_independent_components_are_found_and_kept():
    random = generator(4)
    sources = np.sqrt(12) * (random.random((4_000, 3)) - 0.5)
    mixing = np.linalg.qr(random.normal(size=(3, 3)))[0] * [3, 2.9, 3.1]
    matrix = sources @ mixing.T
    centred = matrix - matrix.mean(axis=0)
    left = np.linalg.svd(centred, full_matrices=False)[0]
    white = left * np.sqrt(len(left))
    rotation = find_independent_rotation(white, generator(1))
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(3), atol=1e-12)
    found = np.abs(np.corrcoef((white @ rotation.T).T, sources.T)[:3, 3:])
    assert found.max(axis=1).min() > 0.99
    assert sorted(found.argmax(axis=1)) == [0, 1, 2]
    # What is uniform in the sources is uniform in the release: its corners are kept by independent components only.
    labels = np.zeros(len(matrix), int)
    shapes = {}
    for basis in ("ica", "pca"):
        released = swap_in_clusters(matrix, labels, basis, generator(2))
        shapes[basis] = kurtosis(released @ np.linalg.inv(mixing.T))
    assert (shapes["ica"] < -1.1).all()  # -1.2 is that of a uniform distribution
    assert (shapes["pca"] > shapes["ica"] + 0.05).any()


@pytest.mark.thorough
def test_clusters_keep_a_curve_that_one_cluster_loses():
    random = generator(6)
    along = random.uniform(-2, 2, 2_000)
    matrix = np.stack([along, along**2 + random.normal(size=2_000) / 10], axis=1)
    one = swap_in_clusters(matrix, np.zeros(2_000, int), "ica", generator(1))
    many = swap_in_clusters(matrix, find_clusters(matrix, 100, "spectral", generator(1)), "ica", generator(1))
    assert np.abs(many[:, 1] - many[:, 0] ** 2).mean() < 0.2
    assert np.abs(one[:, 1] - one[:, 0] ** 2).mean() > 0.8


def test_refusals():
    for option, value, said in (
        ("basis", "svd", "one of 'ica', 'pca'; got 'svd'"),
        ("clustering", "kmeans", "one of 'auto', 'spectral', 'bisect'; got 'kmeans'"),
        ("cluster_size", 9, "None or a finite number of at least 10; got 9"),
        ("cluster_size", math.nan, "None or a finite number of at least 10; got nan"),
    ):
        with pytest.raises(ValueError, match=rf"^duckanon\.spectral\.pica: {option} must be {said}\.$"):
            spectral.pica(pa.table({"a": range(9), "b": range(9)}), **{option: value})
    with pytest.raises(ValueError, match=r"^every cluster needs at least 2 rows; got 2 of one row, use a larger"):
        swap_in_clusters(np.zeros((4, 2)), np.array([0, 1, 1, 4]), "pca", generator())


# Search.


def sizes(found: SizeSearch, stage: str) -> list[float]:
    return [step.cluster_size for step in found.steps if step.stage == stage]


@pytest.mark.parametrize("limit", [30, 57, 80, 123, 350, 999, 1_400, 1_999])
def test_search_brackets_the_limit(limit):
    found = search_size(lambda size: Verdict(size >= limit, {"shift": 1 / size}), 2_000, 25)
    assert found.cluster_size >= limit
    # Nothing lies between two thirds of the rows and all of them.
    assert found.cluster_size <= STEP * max(limit, 50) or limit > 2_000 / 1.5 / STEP
    assert sizes(found, "whole") == [2_000]
    assert len(sizes(found, "bisect")) <= 4
    confirmed = [step.draw for step in found.steps if step.stage == "confirm"]
    if found.cluster_size == 2_000:  # the safest there is needs no more
        assert confirmed == []
    else:
        assert sizes(found, "confirm") == [found.cluster_size] * 3
        assert confirmed == [2, 3, 4]  # the first draw of this size was made on the way
    assert all(step.verdict.numbers == {"shift": 1 / step.cluster_size} for step in found.steps)


@cheap
@given(st.integers(2, 10**7), st.integers(1, 200), st.floats(0, 1), st.integers(0, 1000))
def test_search_ends_with_three_passes_whatever_chance_does(rows, rank, chance, seed):
    random = generator(seed)

    def passes(size):
        assert 2 * rank <= size <= rows or size == rows
        return Verdict(bool(size == rows or random.random() < chance), {})

    found = search_size(passes, rows, rank)
    assert len(found.steps) < 250
    if found.cluster_size == rows:
        return
    last = found.steps[-3:]
    assert all(step.stage == "confirm" and step.verdict.passed for step in last)
    assert {step.cluster_size for step in last} == {found.cluster_size}
    assert [step.draw for step in last] == list(range(last[0].draw, last[0].draw + 3))
    assert found.cluster_size < rows / 1.5


def test_search_goes_up_where_a_draw_fails():
    draws: dict[float, int] = {}

    def passes(size):
        draws[size] = draws.get(size, 0) + 1
        return Verdict(size > 200 or (size > 100 and draws[size] < 3), {})

    found = search_size(passes, 10_000, 10)
    tried = sizes(found, "confirm")
    assert tried[:2] == [tried[0]] * 2
    assert tried[0] < 200 < found.cluster_size < 200 * STEP
    assert found.cluster_size == pytest.approx(tried[0] * STEP ** round(math.log(found.cluster_size / tried[0], STEP)))


def test_search_with_few_rows_tries_one_cluster_only():
    found = search_size(lambda size: Verdict(True, {}), 60, 25)
    assert (found.cluster_size, len(found.steps)) == (60, 1)


def test_search_refuses_where_nothing_passes():
    failed = search_size(lambda size: Verdict(False, {"shift": 0.25}), 500, 5)
    assert failed.cluster_size is None
    assert [step.stage for step in failed.steps] == ["whole"] * 3
    assert "not even all 500 rows as one cluster (shift = 0.25); release" in failed.refusal(500)
    answers = iter([False, False, True] + [False] * 100)  # by chance an honest release fails
    assert search_size(lambda size: Verdict(next(answers), {}), 500, 5).cluster_size == 500
    with pytest.raises(ValueError, match=r"rows must be a whole number of at least 2; got 1\.$"):
        search_size(lambda size: Verdict(True, {}), 1, 0)


@pytest.mark.parametrize(("checks", "has_copies"), [("error", True), ("repair", False)])
def test_a_search_leaves_copies_out_only_where_the_release_does(
    monkeypatch: pytest.MonkeyPatch, checks: str, has_copies: bool
) -> None:
    """A fifth of the rows is not swapped, then none is: what refuses copies must not be tried without them."""

    def swap(matrix: np.ndarray, labels: np.ndarray, basis: str, random: np.random.Generator) -> np.ndarray:
        swapped = np.column_stack([random.permutation(column) for column in matrix.T])
        swapped[: int(share * len(matrix))] = matrix[: int(share * len(matrix))]
        return swapped

    monkeypatch.setattr("duckanon._methods.swap.pica.swap_in_clusters", swap)
    monkeypatch.setattr("duckanon._methods.swap.pica.search_size", lambda passes, rows, rank: passes(rows))
    table = pa.table({f"x{index}": generator(index).normal(size=300) for index in range(3)})
    found = ClusterSwap.of(table, None, "error", "pca", "bisect", checks, generator())
    share = 0.2
    trial = found.search(None)
    assert (trial.numbers["exact_copies"] > 0.1) == has_copies
    share = 1.0
    trial = found.search(None)
    assert not trial.passed
    assert (trial.numbers.get("kept", 1) < 0.5) != has_copies  # too few rows are left

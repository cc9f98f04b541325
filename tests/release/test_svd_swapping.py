"""SVD swapping: what it keeps, what it breaks, ranks, tolerance, blocks, seeds, sources and refusals."""

import os

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckanon import spectral
from duckanon._core.common import progress
from duckanon._core.encoding.fit import fit_columns
from duckanon._methods.swap.components import permute_components, principal_components
from duckanon._methods.swap.declared import SVD_SWAP
from duckanon._methods.swap.svd import SwapOptions, swap_scores
from tests.profiles import cheap


def mixed(rows: int, seed: int = 0) -> pa.Table:
    random = np.random.default_rng(seed)
    common = random.normal(size=rows)
    names = pa.array([f"k{i}" for i in range(8)])
    return pa.table({
        "g": common + random.normal(size=rows),
        "h": np.round(100 + 10 * common + random.normal(size=rows), 1),
        "skewed": np.exp(common + random.normal(size=rows)),
        "i": pa.array(random.integers(0, 50, rows), pa.int16()),
        "s": names.take(pa.array(np.clip(np.rint(2 * common + 3), 0, 7).astype(int))),
        "t": names.take(pa.array(random.integers(0, 3, rows))),
        "day": pa.array((7 * random.integers(0, 999, rows)).astype(np.int32)).view(pa.date32()),
        "b": common + random.normal(size=rows) > 1,
        "n": pa.array(common + random.exponential(size=rows), mask=random.random(rows) < 0.2),
    })  # fmt: skip


def swap_matrix(matrix: np.ndarray, tolerance: float, random: np.random.Generator) -> np.ndarray:
    """Swap the principal components of a matrix in memory, in double precision and without any coding."""
    mean = matrix.mean(axis=0)
    centred = matrix - mean
    _, directions = principal_components(centred.T @ centred / max(len(matrix) - 1, 1))
    scores = np.ascontiguousarray(directions.T @ centred.T)
    permute_components(scores, tolerance, random)
    return scores.T @ directions.T + mean


def svd_swap(source: object, **options: object) -> pa.RecordBatchReader:
    given = {name: SVD_SWAP.defaults[name] for name in ("tolerance", "log", "nulls", "checks", "seed")}
    asked = {name: options.pop(name) for name in given.keys() & options.keys()}
    return swap_scores(source, SwapOptions(**given | asked), **options)


def released(source: object, **options: object) -> pa.Table:
    return svd_swap(source, **options).read_all()


@cheap
@given(st.integers(0, 2**32), st.integers(2, 12), st.integers(1, 12), st.sampled_from([20, 200, 1000]))
def test_golden_properties_of_a_matrix(seed: int, width: int, rank: int, rows: int) -> None:
    """Means, values of every component and total variance stay, whatever the rank; Thesis, Section 4.1."""
    random = np.random.default_rng(seed)
    rank = min(rank, width)
    matrix = random.normal(size=(rows, rank)) @ random.normal(size=(rank, width)) + 10 * random.normal(size=width)
    swapped = swap_matrix(matrix, 1.5, random)
    np.testing.assert_allclose(swapped.mean(axis=0), matrix.mean(axis=0), rtol=0, atol=1e-12)
    centred = matrix - matrix.mean(axis=0)
    directions = np.linalg.svd(centred, full_matrices=False)[2][:rank]
    before, after = centred @ directions.T, (swapped - matrix.mean(axis=0)) @ directions.T
    np.testing.assert_allclose(np.sort(after, axis=0), np.sort(before, axis=0), atol=1e-9)
    assert not np.allclose(after, before)
    np.testing.assert_allclose(np.trace(np.cov(swapped.T)), np.trace(np.cov(matrix.T)), rtol=1e-12)
    assert np.linalg.matrix_rank(swapped - swapped.mean(axis=0), tol=1e-8) == rank


def test_groups_keep_their_sum_before_the_largest_is_taken() -> None:
    table = mixed(2000)
    encoding, _ = fit_columns(table, nulls="category")
    swapped = swap_matrix(encoding.matrix(table), 1.5, np.random.default_rng(0))
    for column, group in zip(encoding.columns, encoding.groups, strict=True):
        values = getattr(column, "values", ())
        if len(values) > 2:
            np.testing.assert_allclose(swapped[:, group].sum(axis=1), 2 - len(values), atol=1e-9)


@pytest.mark.parametrize("rows", [1000, 200_000])
def test_rank_of_groups_copies_and_tiny_components(rows: int) -> None:
    """One dimension less for each group of more than two, none for copies, one for a millionth of a deviation."""
    random = np.random.default_rng(99)
    table = mixed(rows).drop_columns("n")
    a = table["g"].to_numpy()
    wide = table.append_column("copy", pa.array(3 * a + 7)).append_column(
        "tiny", pa.array(a + 3e-6 * random.normal(size=rows))
    )
    for each, more in ((table, 0), (wide, 1)):
        for ordered in (each, each.sort_by("s")):
            encoding, moments = fit_columns(ordered, log=[])
            deviations, directions = principal_components(moments.covariance)
            assert len(deviations) == directions.shape[1] == 5 + 7 + 2 + 1 + more
            if rows == 1000:
                matrix = encoding.matrix(ordered)
                singular = np.linalg.svd(matrix - matrix.mean(axis=0), compute_uv=False)
                assert len(deviations) == np.count_nonzero(singular > singular[0] * rows * np.finfo(float).eps)
                np.testing.assert_allclose(deviations, singular[: len(deviations)] / np.sqrt(rows - 1), rtol=1e-3)


@pytest.mark.parametrize(("rows", "rank"), [(300, 28), (2000, 28), (2000, 60), (30_000, 10)])
def test_components_correlate_within_the_tolerance(rows: int, rank: int) -> None:
    random = np.random.default_rng(rows)
    scores = random.normal(size=(rank, rows)).astype(np.float32)
    scores[: rank // 2] **= 3
    before = np.sort(scores, axis=1)
    permute_components(scores, 1.5, random)
    correlations = np.corrcoef(scores.astype(float)) - np.eye(rank)
    assert np.abs(correlations).max() <= 1.5 / np.sqrt(rows - 1) * 1.001
    np.testing.assert_array_equal(np.sort(scores, axis=1), before)


def test_components_that_cannot_be_mended_take_the_best_draw() -> None:
    random = np.random.default_rng(0)
    scores = (random.random((40, 1000)) < 0.05).astype(float)
    permute_components(scores, 1e-9, random)
    best = np.abs(np.corrcoef(scores) - np.eye(40)).max()
    plain = np.median([np.abs(np.corrcoef(random.permuted(scores, axis=1)) - np.eye(40)).max() for _ in range(30)])
    assert best < plain


@pytest.mark.thorough
def test_a_release_has_the_schema_the_range_and_nearly_the_covariance() -> None:
    table = mixed(20_000)
    result = released(table, seed=1, nulls="category")
    assert result.schema == table.schema
    assert result.num_rows == table.num_rows
    encoding, moments = fit_columns(table, nulls="category")
    again = encoding.matrix(result)
    np.testing.assert_allclose(again.mean(axis=0)[:2], moments.mean[:2], atol=0.02)
    np.testing.assert_allclose(np.cov(again.T)[:3, :3], moments.covariance[:3, :3], atol=0.03)
    for name in ("g", "h", "skewed", "i", "day"):
        before, after = table[name].to_pylist(), result[name].to_pylist()
        assert min(before) <= min(after) <= max(after) <= max(before)
    assert all(float(f"{v:.1f}") == v for v in result["h"].to_pylist())
    assert {day.toordinal() % 7 for day in result["day"].to_pylist()} == {719163 % 7}
    assert set(result["s"].to_pylist()) <= set(table["s"].to_pylist())
    assert 0.1 < result["n"].null_count / 20_000 < 0.3


@pytest.mark.thorough
@pytest.mark.parametrize("rows", [3000, 120_000])
def test_the_order_of_sorted_rows_links_nothing(rows: int) -> None:
    table = mixed(rows).sort_by("g")
    result = released(table, seed=2, nulls="category")
    position = np.arange(rows)
    for name in ("g", "h", "i"):
        assert abs(np.corrcoef(position, result[name].to_numpy())[0, 1]) < 5 / np.sqrt(rows)
    joint = np.corrcoef(result["g"].to_numpy(), result["h"].to_numpy())[0, 1]
    assert joint == pytest.approx(np.corrcoef(table["g"].to_numpy(), table["h"].to_numpy())[0, 1], abs=0.02)


@pytest.mark.thorough
@pytest.mark.parametrize("options", [{}, pytest.param({"memory_limit": 300_000}, marks=pytest.mark.thorough)])
def test_seeds(options: dict) -> None:
    table = mixed(20_000)
    first = released(table, seed=3, nulls="category", **options)
    assert first.equals(released(table, seed=3, nulls="category", **options))
    assert first.equals(released(table.to_reader(max_chunksize=777), seed=3, nulls="category", **options))
    assert not first.equals(released(table, seed=4, nulls="category", **options))
    assert not released(table, nulls="category", **options).equals(released(table, nulls="category", **options))


@pytest.mark.thorough
def test_blocks_of_a_memory_limit(tmp_path: os.PathLike, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sorted rows: contiguous blocks would keep the order, random ones spread each over the whole range."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    rows = 30_000
    table = mixed(rows).select(["g", "h", "i", "s"]).sort_by("g")
    reader = svd_swap(table, seed=5, memory_limit=300_000)
    files = len(os.listdir(os.path.join(tmp_path, os.listdir(tmp_path)[0])))
    assert files > 3
    result = reader.read_all()
    assert os.listdir(tmp_path) == []
    assert result.num_rows == rows
    sizes = np.array_split(result["g"].to_numpy(), files)
    assert max(abs(part.mean() - table["g"].to_numpy().mean()) for part in sizes) < 0.1
    whole = released(table, seed=5, memory_limit=10**9)
    for release in (whole, result):
        assert np.corrcoef(release["g"].to_numpy(), release["h"].to_numpy())[0, 1] == pytest.approx(0.7, abs=0.02)
        assert abs(np.corrcoef(np.arange(rows), release["g"].to_numpy())[0, 1]) < 5 / np.sqrt(rows)
    with pytest.raises(ValueError, match=r"memory must be at least 8,800 bytes for 10 components; got 8,799"):
        svd_swap(table, memory_limit=8799)
    unread = svd_swap(table, memory_limit=8800)
    assert len(os.listdir(tmp_path)) == 1
    del unread
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("options", [{}, {"memory_limit": 1100}])
def test_copies_are_refused_before_the_first_batch(options: dict) -> None:
    """One component, permuted, has the values that it had; a limit of memory parts the rows into two blocks."""
    amount = np.random.default_rng(1).permutation(500).astype(float)
    table = pa.table({"amount": amount, "twice": 2 * amount})
    batches = list(svd_swap(table, seed=1, checks="off", **options))
    assert len(batches) == 1 + len(options)
    assert {row for batch in batches for row in batch["amount"].to_pylist()} == set(amount)
    with pytest.raises(ValueError, match="original rows come back unchanged"):
        next(svd_swap(table, seed=1, checks="error", **options))


@pytest.mark.thorough
def test_the_share_of_the_work_done_is_told() -> None:
    for options in ({}, {"memory_limit": 300_000}):
        told: list[float] = []
        with progress.watch(None, told.append):
            svd_swap(mixed(20_000), nulls="category", **options).read_all()
        assert told == sorted(told)
        assert told[0] > 0
        assert told[-1] == 1
        assert len(told) > 5


def test_rows_that_change_between_the_readings_are_refused() -> None:
    table = mixed(3000).select(["g", "h"])
    for other in (2000, 3001):
        lengths = iter([3000, 3000, other])
        with pytest.raises(ValueError, match="the same rows each time that it is read; got 3,000, then other ones"):
            svd_swap(lambda lengths=lengths: mixed(next(lengths)).select(["g", "h"]))
    assert released(lambda: table, seed=1).equals(released(table, seed=1))


def test_refusals() -> None:
    with pytest.raises(ValueError, match="at least 200 rows are needed for 2 independent components; got 199"):
        svd_swap(mixed(199).select(["g", "h"]))
    random = np.random.default_rng(0)
    broad = pa.table({f"c{j}": row for j, row in enumerate(random.normal(size=(40, 300)))})
    with pytest.raises(ValueError, match="at least 320 rows are needed for 40 independent components; got 300"):
        svd_swap(broad)
    for tolerance in (0, -1, float("nan")):
        with pytest.raises(ValueError, match=f"tolerance must be a finite number above 0; got {tolerance}"):
            spectral.svd_swap(broad, tolerance=tolerance)
    with pytest.raises(ValueError, match="seed must be None or a whole number of at least 0; got -1"):
        spectral.svd_swap(broad, seed=-1)
    with pytest.raises(ValueError, match='column "zz" does not exist; the columns are c0, c1,'):
        spectral.svd_swap(broad, ["c0", "zz"])
    assert spectral.svd_swap(broad, ["c3", "c1"]).read_all().column_names == ["c3", "c1"]

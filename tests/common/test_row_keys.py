"""Keys of rows against NumPy's own sorting of the rows themselves."""

import numpy as np
import pytest

from duckanon._core.common.row_keys import LARGEST_KEY, group_keys, number_keys, order_keys, pack_columns, rank_keys


@pytest.mark.parametrize("rows", [0, 1, 500])
@pytest.mark.parametrize("kind", [np.uint8, np.int32, np.int64, np.uint64])
def test_the_order_is_stable(rows: int, kind: type) -> None:
    """Whether keys fit beside their rows or not, and whether some are equal or all are different."""
    random = np.random.default_rng(rows)
    for most in (7, min(np.iinfo(kind).max, 2**63 - 1)):
        keys = random.integers(0, most, rows).astype(kind)
        for some in (keys, keys[random.integers(0, max(rows // 3, 1), rows)] if rows else keys):
            order, ordered = order_keys(some)
            expected = np.argsort(some, kind="stable")
            assert (order == expected).all()
            assert (ordered == some[expected]).all()
            assert ordered.dtype == kind


@pytest.mark.parametrize("rows", [0, 1, 500])
@pytest.mark.parametrize("sizes", [[], [1], [3, 1, 200], [70_000] * 3, [70_000] * 12])
def test_columns_are_packed_in_the_order_of_their_rows(rows: int, sizes: list[int]) -> None:
    """Also where the product of their sizes is beyond any key."""
    random = np.random.default_rng(rows)
    repeated = random.integers(0, max(rows // 2, 1), rows)
    columns = [random.integers(0, size, max(rows, 1)).astype(np.min_scalar_type(size))[repeated] for size in sizes]
    keys, most = pack_columns(zip(columns, sizes, strict=True), rows)
    assert (keys < most).all()
    matrix = np.column_stack([np.zeros(rows, np.int64), *columns])
    _, first, number, counts = np.unique(matrix, axis=0, return_index=True, return_inverse=True, return_counts=True)
    for numbers in (rank_keys(keys), number_keys(keys), group_keys(keys).codes):
        assert (numbers == number.reshape(-1)).all()
    assert (group_keys(keys).firsts == first).all()
    assert (group_keys(keys).counts == counts).all()


def test_a_product_of_counts_stays_below_the_largest_key() -> None:
    """Just that many are too many: the first column is numbered anew."""
    codes = np.array([2**31 - 1, 0, 5])
    keys, most = pack_columns([(codes, 2**31), (codes, 2**31)], 3)
    assert most < LARGEST_KEY
    assert np.argsort(keys).tolist() == [1, 2, 0]

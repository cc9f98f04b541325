"""The limit on the threads of the linear algebra: set by the first that asks for it, and lifted by the last."""

from __future__ import annotations

import numpy as np
import threadpoolctl

from duckanon._core.common import resources


def blas_threads() -> set[int]:
    return {pool["num_threads"] for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"}


def test_the_limit_lasts_from_the_first_user_to_the_last() -> None:
    assert np.ones((2, 2)).dot(np.ones(2)).tolist() == [2, 2]  # the library is loaded
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        for _ in range(2):
            with resources.use_one_thread():
                assert blas_threads() == {1}
                with resources.limit_threads(1):
                    assert blas_threads() == {1}
                assert blas_threads() == {1}
            assert blas_threads() == before
        with resources.limit_threads(resources.SMALL_CELLS):
            assert blas_threads() == before

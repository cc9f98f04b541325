"""What arrays are counted and sorted with, against NumPy's own functions."""

from __future__ import annotations

import numpy as np
import pytest

from duckanon._core.common.arrays import accumulate_maxima


@pytest.mark.parametrize("width", [1, 299, 300, 1000])
@pytest.mark.parametrize("lines", [1, 2, 5])
def test_running_maxima_are_those_of_numpy(lines: int, width: int) -> None:
    numbers = np.random.default_rng(width).normal(size=(lines, width))
    assert np.array_equal(accumulate_maxima(numbers), np.maximum.accumulate(numbers, axis=0))

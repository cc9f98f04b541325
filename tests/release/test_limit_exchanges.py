"""Numbers exchanged until they are within limits: none is lost, and none of a row that may not move."""

from __future__ import annotations

import numpy as np

from duckanon._methods.synthesize.column_draw import exchange_within_limits


def test_numbers_are_exchanged_until_they_are_within_their_limits() -> None:
    random = np.random.default_rng(1)
    values = random.normal(size=1000)
    high = values + np.where(random.random(1000) < 0.1, -0.05, 0.5)
    low = np.full(1000, -np.inf)
    movable = random.random(1000) < 0.9
    taken_from, is_beyond = exchange_within_limits(values, low, high, movable, random)
    assert sorted(taken_from.tolist()) == list(range(1000))
    np.testing.assert_array_equal(taken_from[~movable], np.flatnonzero(~movable))
    after = values[taken_from]
    np.testing.assert_array_equal(is_beyond, movable & (after > high))
    assert np.count_nonzero(is_beyond) <= 3
    assert np.abs(after - values).max() < 2

"""The columns of sets of a local recoding: what rows add to growing classes is what the definition of the loss says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckanon._methods.recode.column_losses import SetColumn
from duckanon._methods.recode.joins import make_joins
from tests.profiles import cheap

COLUMNS = [SetColumn(4, 3), SetColumn(70), SetColumn(300, 2), *[SetColumn(5)] * 7]
POOLS, PLACES = 3, 6


@pytest.mark.thorough
@cheap
@given(seed=st.integers(0, 10**6))
def test_scores_of_sets_are_what_rows_add(seed: int) -> None:
    """A class takes rows of its pool; what each of the others would add is told by which values are held already."""
    generator = np.random.default_rng(seed)
    rows, pool = np.arange(POOLS * PLACES).reshape(PLACES, POOLS), np.arange(POOLS)
    codes = [generator.integers(0, min(column.size, 8), rows.size) for column in COLUMNS]
    codes[0][::2] = COLUMNS[0].size - 1
    codes[2][::3] = COLUMNS[2].size - 1
    sets = make_joins(COLUMNS, codes, None).sets
    assert len(sets) > 1  # eight bits are not enough for all
    held = [None] * len(sets)
    taken = np.stack([generator.permutation(PLACES) for _ in pool], axis=1)  # the order in which each pool's rows join
    for step in range(PLACES):
        members = rows[taken[: step + 1], pool]
        added = np.zeros(rows.shape)
        for number, join in enumerate(sets):
            own = join.codes(rows)
            held[number] = join.hold_values(held[number], own, taken[step] * POOLS + pool)
            added += join.counts(own) + join.sum_savings(held[number])
        before = [loss_of(codes, of_class) for of_class in members.T]
        for place, line in enumerate(rows):
            after = [loss_of(codes, [*of_class, row]) for of_class, row in zip(members.T, line, strict=True)]
            assert added[place] == pytest.approx(np.subtract(after, before), abs=1e-5)
        assert sum(join.fold(join.values(members))[0] for join in sets) == pytest.approx(before, abs=1e-5)


def loss_of(codes: list[np.ndarray], rows: list[int]) -> float:
    """What a class of rows loses, by the definition: the counts of its different values but one."""
    return sum(
        sum(float(column.counts[code]) for code in {int(of_rows[row]) for row in rows}) - float(column.share)
        for column, of_rows in zip(COLUMNS, codes, strict=True)
    )

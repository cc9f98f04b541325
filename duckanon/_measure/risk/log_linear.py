"""Log-linear models of the columns that interact: how many people each combination of values can be expected to have.

The columns that are in no interaction are independent of all others, which SQL computes from their shares. Those that
interact fall into parts that have no column in common, and each part is fitted on the grid of its values.

The fit is the maximum of the Poisson likelihood, which ``glm`` finds by iterated weighted least squares. Proportional
fitting (Deming and Stephan 1940) finds the same one without a matrix of all parameters, which for two columns of 500
and 50 values would have 25,000 columns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from duckanon._core.common import progress
from duckanon._core.common.arrays import Floats, Ints
from duckanon._core.common.declare import report
from duckanon._measure.risk.declared import EXPECTED_COUNTS_ROWS

LARGEST_GRID = 2**24  # combinations of values of columns that interact: 128 MB
_SWEEPS = 5_000
_TOLERANCE = 1e-12  # by which share of all people the sums of the fit may differ from those that were counted


def expected_counts(patterns: pa.Table | None, *, interactions: Sequence[Sequence[int]]) -> pa.Table:
    """Fit the model to the combinations that occur, and return the expected count of each.

    The patterns are ``pattern``, a number; ``codes``, a list with the code of each interacting column; ``size``, how
    many people. The interactions are sets of columns by their places in ``codes``, from 1; a set means all its subsets,
    too.
    """
    if patterns is None:
        return report({"pattern": [], "expected": []}, EXPECTED_COUNTS_ROWS)
    counts = patterns["size"].to_numpy().astype(np.float64)
    columns = np.array(patterns["codes"].to_pylist(), dtype=np.uint64).T
    levels = [np.unique(column, return_inverse=True)[1].reshape(-1) for column in columns]
    shares = np.ones(len(counts))
    for part in _parts([sorted({place - 1 for place in places}) for places in interactions]):
        shares *= _fitted_shares(levels, counts, part)
    return report({"pattern": patterns["pattern"].to_numpy(), "expected": shares * counts.sum()}, EXPECTED_COUNTS_ROWS)


def _parts(interactions: list[list[int]]) -> list[list[list[int]]]:
    """Sort interactions into parts that have no column in common."""
    parts: list[list[list[int]]] = []
    for places in interactions:
        connected = [part for part in parts if any(set(places) & set(other) for other in part)]
        parts = [part for part in parts if part not in connected]
        parts.append([places, *(other for part in connected for other in part)])
    return parts


def _fitted_shares(levels: list[Ints], counts: Floats, part: list[list[int]]) -> Floats:
    """Fit one part by scaling the grid to each counted sum in turn."""
    columns = sorted({place for places in part for place in places})
    shape = tuple(int(levels[place].max()) + 1 for place in columns)
    if np.prod([float(width) for width in shape]) > LARGEST_GRID:
        raise ValueError(
            f"interactions must lead to at most {LARGEST_GRID:,} combinations of values; got columns with "
            f"{' x '.join(map(str, shape))}."
        )
    places_in_grid = tuple(levels[place] for place in columns)
    counted = np.zeros(shape)
    np.add.at(counted, places_in_grid, counts)
    everybody = counts.sum()
    others = [tuple(axis for axis, place in enumerate(columns) if place not in places) for places in part]
    targets = [counted.sum(axis=axes, keepdims=True) for axes in others]
    fitted = np.full(shape, everybody / counted.size)
    for _ in range(_SWEEPS):
        largest_error = 0.0
        for axes, target in zip(others, targets, strict=True):
            progress.check()
            found = fitted.sum(axis=axes, keepdims=True)
            largest_error = max(largest_error, float(np.abs(found - target).max()))
            fitted *= np.divide(target, found, out=np.zeros_like(target), where=found > 0)
        if largest_error <= _TOLERANCE * everybody:
            break
    return np.asarray(fitted[places_in_grid] / everybody)

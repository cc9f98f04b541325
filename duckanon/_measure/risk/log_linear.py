"""Log-linear models of the values in a class: how many people each combination of values can be expected to have.

Columns that are in no interaction are independent of all others: a combination's share is the product of the values'.
Those that interact fall into parts that have no column in common, and each part is fitted on the grid of its values.

The fit is the maximum of the Poisson likelihood, which ``glm`` finds by iterated weighted least squares. Proportional
fitting (Deming and Stephan 1940) finds the same one without a matrix of all parameters, which for two columns of 500
and 50 values would have 25,000 columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from duckanon._core.common import progress
from duckanon._core.common.arrays import Floats, Ints
from duckanon._core.common.codes import encode

SIZE = "_duckanon_size"
"""The column that comes with those of the classes: the number of people in the class."""

LARGEST_GRID = 2**24  # combinations of values of columns that interact: 128 MB
_SWEEPS = 5_000
_TOLERANCE = 1e-12  # by which share of all people the sums of the fit may differ from those that were counted
_PLACES = 90  # binary ones, of probabilities that are summed as integers
_BLOCK = 2**15  # rows whose numbers are 256 KB
_NONE_UNSEEN = 1e-9  # others expected with the same values, below which (1 - exp(-x)) / x is 1


def log_linear(
    classes: pa.Table, sampled: float, interactions: Sequence[Sequence[str]], variant: str
) -> tuple[float, float]:
    """Return how many people of a sample are expected to be unique in its population, and the sum of their 1 / F.

    The classes have the hash of each column's value, NULL for NULL, and their people as `SIZE`. `sampled` is the
    sample's share of the population (Elamir and Skinner 2006); the `variant` ``'sdcmicro'`` does not divide by it.
    """
    counts = classes[SIZE].to_numpy().astype(np.float64)
    people, single = float(counts.sum()), np.flatnonzero(counts == 1)
    columns = {name.lower(): name for name in classes.column_names if name != SIZE}
    joint = sorted({name.lower() for names in interactions for name in names})
    logarithms = np.zeros(len(single))  # of the share of people who have the values, by the model
    for name in (own for lowered, own in columns.items() if lowered not in joint):
        progress.check()
        [(codes, distinct)] = encode(classes.select([name]))
        shares = np.log(np.bincount(codes, weights=counts, minlength=distinct) / people)
        for rows in _blocks(len(single)):
            logarithms[rows] += shares.take(codes.take(single[rows]), mode="clip")  # quicker than a check
    if joint:  # in the order of the values, so that sums do not depend on that of the rows
        values = [classes[columns[name]].fill_null(0).to_numpy() for name in joint]
        levels = [np.unique(column, return_inverse=True)[1].reshape(-1) for column in values]
        places = [[joint.index(name.lower()) for name in names] for names in interactions]
        logarithms += np.log(expected_counts(levels, counts, places).take(single) / people)
    times, alone, matches = 1 if variant == "sdcmicro" else sampled, 0, 0
    for rows in _blocks(len(single)):
        unseen = (1 - sampled) * people * np.exp(logarithms[rows]) / times
        unmatched = np.exp(-unseen)
        matched = np.ones(len(unseen))
        np.divide(1 - unmatched, unseen, out=matched, where=unseen >= _NONE_UNSEEN)
        alone, matches = alone + _in_binary_places(unmatched), matches + _in_binary_places(matched)
    return alone / 2**_PLACES, matches / 2**_PLACES


def _blocks(count: int) -> Iterator[slice]:
    """Split `count` rows into blocks that stay in the processor's cache: whole columns took a quarter longer."""
    for start in range(0, count, _BLOCK):
        progress.check()
        yield slice(start, start + _BLOCK)


def _in_binary_places(probabilities: Floats) -> int:
    """Sum numbers from 0 to 1 as integers of `_PLACES` binary places, so that the order of the rows does not matter.

    ``math.fsum`` has the same sums, and takes three times as long for a million. The numbers are overwritten.
    """
    total = 0
    for _ in range(_PLACES // 30):
        probabilities *= 2.0**30
        whole = probabilities.astype(np.int64)
        probabilities -= whole
        total = total * 2**30 + int(whole.sum())
    return total


def expected_counts(levels: Sequence[Ints], counts: Floats, interactions: Sequence[Sequence[int]]) -> Floats:
    """Fit the model to counted combinations, a code in each of `levels`, and return the expected count of each.

    The interactions are sets of columns by their places in `levels`; a set means all its subsets, too.
    """
    shares = np.ones(len(counts))
    for part in _parts([sorted(set(places)) for places in interactions]):
        shares *= _fitted_shares(levels, counts, part)
    return np.asarray(shares * counts.sum(), np.float64)


def _parts(interactions: list[list[int]]) -> list[list[list[int]]]:
    """Sort interactions into parts that have no column in common."""
    parts: list[list[list[int]]] = []
    for places in interactions:
        connected = [part for part in parts if any(set(places) & set(other) for other in part)]
        parts = [part for part in parts if part not in connected]
        parts.append([places, *(other for part in connected for other in part)])
    return parts


def _fitted_shares(levels: Sequence[Ints], counts: Floats, part: list[list[int]]) -> Floats:
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

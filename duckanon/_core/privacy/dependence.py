"""Whether the order of one column tells the order of another within classes: what a copy of it does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon._core.common.arrays import Array, Floats, Ints, is_number, is_time
from duckanon._core.common.codes import ranks_of

LIMIT = 0.85
"""The rank correlation within classes from which on a kept column narrows a coarse one.

Copies, scaled, turned around, as logarithms or as text, have 1. Of 3,660 pairs of real columns (Adult, NHANES and the
ACS; 300 and 3,000 rows; plans for k = 3, 10 and 40) wages beside incomes had the most, .62, where the freedom (the sum
of m - 1) was 100 or more, and none of fewer that was beyond chance had more than .80. Independent columns were refused
in 1 of 1,000 tables of 20 rows in pairs, in none of 32,000 others (12 to 1,000 rows, k = 2 to 50); normal columns with
a correlation of .9 over the whole table in at most 1 in 10 tables of 20 rows and in none of 50 rows or more where
classes are made of their order, and in a third to a half where one label covers all of it."""
_DEVIATIONS = 3.0
"""Standard deviations beyond chance: the correlation of a class of m rows has the variance 1 / (m - 1) over all
shuffles, whatever its values are, and the mean over classes, weighted by m - 1, has 1 / (the sum of m - 1)."""
FEWEST = 9
"""The sum of m - 1 below which no correlation is beyond chance: 3 / sqrt(9) = 1."""
_FEWEST_OF_LABEL = 4
"""The same sum of a label whose sign counts by itself: from there on the normal distribution tells how far from 0 its
correlation is by chance (.40 for five rows, as exact counting says)."""
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


class Dependence(NamedTuple):
    """Rank correlation of a kept column with a coarse one.

    Attributes:
        correlation: 0: as much as a shuffled column; 1: it is the same order, or the opposite one.
        is_beyond_chance: Whether it is at least `LIMIT`, and more than chance explains.
    """

    correlation: float
    is_beyond_chance: bool


def freedom(classes: Ints, ranks: Array) -> float:
    """Return the sum of m - 1 over the classes in which a column has different values, of m rows each."""
    number = np.unique(classes, return_inverse=True)[1].reshape(-1)
    sizes = np.bincount(number)
    low, high = np.full(len(sizes), np.inf), np.full(len(sizes), -np.inf)
    np.minimum.at(low, number, ranks)
    np.maximum.at(high, number, ranks)
    return float((sizes - 1)[high > low].sum())


def dependence(classes: Ints, labels: Ints, ranks: Array, column: pa.ChunkedArray) -> Dependence:
    """Return the largest rank correlation within classes, over the orders in which a kept column may be read.

    The coarse column is given by its ranks and labels.

    Examples:
        >>> income = np.random.default_rng(0).permutation(100)
        >>> tens = income // 10
        >>> dependence(tens, tens, income, pa.chunked_array([[f"{1.1 * x:.2f} EUR" for x in income]]))
        Dependence(correlation=1.0, is_beyond_chance=True)
    """
    found = [_correlation(classes, labels, ranks, keys) for keys in sort_keys(column)]
    return max(found, default=Dependence(0.0, False), key=lambda one: (one.is_beyond_chance, one.correlation))


def _correlation(classes: Ints, labels: Ints, ranks: Array, keys: Floats) -> Dependence:
    """Correlate within classes.

    Signs count over the whole table, or within a label of the coarse column each: the distance from the middle falls
    before it and rises behind.
    """
    is_known = ~np.isnan(keys)
    classes = np.unique(classes[is_known], return_inverse=True)[1].reshape(-1)
    if not len(classes):
        return Dependence(0.0, False)
    sizes = np.bincount(classes).astype(np.float64)
    own, other = _centered(classes, ranks[is_known], sizes), _centered(classes, keys[is_known], sizes)
    squares, squares_of_other = np.bincount(classes, own**2), np.bincount(classes, other**2)
    weights = np.where(squares > 0, sizes - 1, 0)
    scale = np.sqrt(squares * squares_of_other)
    moved = weights * np.bincount(classes, own * other) / np.where(scale > 0, scale, 1)
    label_of_class = np.empty(len(sizes), np.int64)
    label_of_class[classes] = labels[is_known]
    label_of_class = np.unique(label_of_class, return_inverse=True)[1].reshape(-1)
    together = _judged(abs(moved.sum()), weights.sum(), 0.0)
    of_label = np.bincount(label_of_class, weights)
    is_large = of_label >= _FEWEST_OF_LABEL
    by_chance = np.sqrt(2 * of_label[is_large] / np.pi).sum()
    signed = np.abs(np.bincount(label_of_class, moved))[is_large].sum()
    return max(together, _judged(signed, of_label[is_large].sum(), by_chance), key=lambda one: one.correlation)


def _judged(moved: float, weight: float, by_chance: float) -> Dependence:
    if weight < FEWEST or by_chance >= weight:
        return Dependence(0.0, False)
    correlation = round((moved - by_chance) / (weight - by_chance), 9)
    return Dependence(float(correlation), bool(correlation >= max(LIMIT, _DEVIATIONS / np.sqrt(weight))))


def _centered(classes: Ints, values: Array, sizes: Floats) -> Floats:
    """Return the rank of each value within its class, equal ones with equal ranks, less the mean of the class."""
    order = np.lexsort((values, classes))
    is_first = np.diff(classes[order], prepend=-1) > 0
    steps = np.cumsum(is_first | (np.diff(values[order], prepend=values[order[0]]) != 0))
    ranks = np.empty(len(order))
    ranks[order] = steps - np.maximum.accumulate(np.where(is_first, steps, 0))
    return np.asarray(ranks - (np.bincount(classes, ranks) / sizes)[classes])


def sort_keys(column: pa.ChunkedArray) -> Iterator[Floats]:
    """Yield the orders that a column may be read in, as numbers; NaN where there is none.

    Text is sorted as text, by the number that it writes, and by the date: year first, day first, or month first.
    ``anon._sort_keys`` is the same in SQL.
    """
    flat = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_dictionary(flat.type):
        flat = flat.cast(flat.type.value_type)
    if is_number(flat.type) or is_time(flat.type) or pa.types.is_boolean(flat.type):
        whole = flat.cast(pa.int64() if flat.type.bit_width == 64 else pa.int32()) if is_time(flat.type) else flat
        yield _floats(whole)
        return
    text = pa.array([None if one is None else str(one) for one in flat.to_pylist()], pa.string())
    ranks = ranks_of(pa.chunked_array([text])).astype(np.float64)
    yield np.where(np.asarray(text.is_null()), np.nan, ranks)
    digits = pc.replace_substring_regex(text, r"[^0-9.\-]", "")
    is_one = pc.match_substring_regex(digits, r"^-?[0-9]+(\.[0-9]+)?$")
    yield _floats(pc.if_else(is_one, digits, None))
    yield from _dates(text)


def _dates(text: pa.Array) -> Iterator[Floats]:
    parts = pc.extract_regex(text, r"^[^0-9]*(?P<a>[0-9]{1,4})[^0-9]+(?P<b>[0-9]{1,4})(?:[^0-9]+(?P<c>[0-9]{1,4}))?")
    texts = [pc.struct_field(parts, part) for part in "abc"]
    first, second, third = (_floats(pc.if_else(pc.equal(one, ""), None, one)) for one in texts)
    written = pc.extract_regex(pc.utf8_lower(text), rf"(?P<month>{'|'.join(_MONTHS)})")
    named = _floats(pc.index_in(pc.struct_field(written, "month"), pa.array(_MONTHS)))
    yield first * 10_000 + second * 100 + third
    yield third * 10_000 + second * 100 + first
    yield third * 10_000 + first * 100 + second
    yield second * 10_000 + named * 100 + first


def _floats(values: pa.Array) -> Floats:
    numbers = np.asarray(values.cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)
    return np.where(np.isfinite(numbers), numbers, np.nan)

"""Statistics of a release beside its original's: means, variances, correlations, rank correlations, distributions."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa

from duckanon._core.common import progress
from duckanon._core.common.arrays import Array, Floats, Ints, find_run_starts
from duckanon._core.common.declare import report_columns
from duckanon._core.encoding.measurement_encoding import code_pairs
from duckanon._core.encoding.pairs import CategoryPair, NumberPair, Pair, list_indicators, pair_tables
from duckanon._measure.utility.declared import UTILITY

_CHUNK = 16_384  # rows at a time: of tens of columns they stay in the processor's cache


def utility(
    original: pa.Table, released: pa.Table, special: Any = "off", categories: Sequence[str] | None = ()
) -> pa.Table:
    """Compare the statistics of a release with those of its original.

    As in Thesis, Section 4.2.1, Table 4.1: differences of means are divided by the original's standard deviation, those
    of variances by the original's variance; other differences are taken as they are. None of them depends on a column's
    unit. Where a column is constant in the original, a difference other than 0 is infinite. The correlation of a
    constant column is NULL and left out of the median, but 0 where only the release is constant. Variances have the
    divisor n - 1.

    In ``ks`` a NULL is larger than every number, so that another share of NULLs counts as a difference too; in
    ``total_variation`` it is one of the categories. Elsewhere NULL is the original's mean, and an indicator.

    For moments and correlations the tables become matrices, in which each number is itself and each category an
    indicator (`pairs.list_indicators`); `special` values and `categories` among numbers are those of
    `measurement_encoding.code_pairs`.

    Returns:
        ``mean`` and ``variance`` of every matrix column, ``correlation`` and ``rank_correlation`` of every pair, then
        of every column of the tables ``ks`` (numbers, dates) or ``total_variation`` (categories). ``difference`` is
        released minus original; ``median_difference`` the median of the absolute normalized differences.
    """
    pairs = code_pairs(pair_tables(original, released), original.schema, special, categories)
    # Single columns, because a matrix would be one more copy of everything.
    columns = [indicator for column in pairs for indicator in list_indicators(column)]
    names = [name for name, _, _ in columns]
    first, second = [values for _, values, _ in columns], [values for _, _, values in columns]
    parts = [*_moments(names, first, second), *_distributions(pairs)]
    filled = [part for part in parts if len(part["statistic"])]
    return report_columns({name: np.concatenate([part[name] for part in filled]) for name in filled[0]}, UTILITY.schema)


Part = dict[str, Array]  # the rows of a report on one statistic, by column


def _moments(names: Sequence[str], first: Sequence[Floats], second: Sequence[Floats]) -> list[Part]:
    shifts = np.array([column[0] for column in first])  # constant columns become exactly 0
    (mean, covariance), (new_mean, new_covariance) = (_covariance(columns, shifts) for columns in (first, second))
    variance, new_variance = np.diag(covariance).copy(), np.diag(new_covariance).copy()
    label = np.array(names, object)
    none = np.full(len(names), None, object)
    left, right = np.triu_indices(len(names), 1)
    linear, new_linear = (_correlation(matrix)[left, right] for matrix in (covariance, new_covariance))
    ranked, new_ranked = (_correlation(_rank_covariance(columns))[left, right] for columns in (first, second))
    for new in (new_linear, new_ranked):  # a column that became constant has lost its correlations, all of them
        new[np.isnan(new) & ~np.isnan(linear)] = 0.0
    return [
        _part("mean", label, none, mean + shifts, new_mean + shifts, new_mean - mean, np.sqrt(variance)),
        _part("variance", label, none, variance, new_variance, new_variance - variance, variance),
        _part("correlation", label[left], label[right], linear, new_linear, new_linear - linear),
        _part("rank_correlation", label[left], label[right], ranked, new_ranked, new_ranked - ranked),
    ]


def _distributions(pairs: Sequence[Pair]) -> list[Part]:
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        distances = np.array(list(pool.map(progress.share_watch(_distance), pairs)), np.float64)
    parts = []
    for statistic, kind in (("ks", NumberPair), ("total_variation", CategoryPair)):
        indices = [index for index, column in enumerate(pairs) if isinstance(column, kind)]
        unknown = np.full(len(indices), np.nan)
        label = np.array([pairs[index].name for index in indices], object)
        none = np.full(len(indices), None, object)
        parts.append(_part(statistic, label, none, unknown, unknown, distances[indices]))
    return parts


def _distance(column: Pair) -> float:
    if isinstance(column, CategoryPair):
        return total_variation(column.original, column.released, len(column.texts))
    ordered = [np.sort(values) for values in (column.original, column.released)]
    for values in ordered:
        values[np.isnan(values)] = np.inf  # NaN are sorted last already
    return ks_distance(*ordered)


def _part(
    statistic: str,
    column: Array,
    other: Array,
    original: Floats,
    released: Floats,
    difference: Floats,
    scale: Floats | None = None,
) -> Part:
    normalized = difference
    if scale is not None:
        with np.errstate(divide="ignore", invalid="ignore"):
            normalized = np.where(difference == 0, 0 * scale, difference / scale)
    known = np.abs(normalized[~np.isnan(normalized)])
    median = np.median(known) if len(known) else np.nan
    return {
        "statistic": np.full(len(column), statistic, object),
        "column_name": column,
        "other_column": other,
        "original": original,
        "released": released,
        "difference": difference,
        "normalized_difference": normalized,
        "median_difference": np.full(len(column), median),
    }


def _covariance(columns: Sequence[Floats], shifts: Floats) -> tuple[Floats, Floats]:
    """Return the means and covariances (divisor n - 1) of columns less their shifts; NaN for a single row."""
    rows = len(columns[0])
    mean = np.array([_mean(column, shift) for column, shift in zip(columns, shifts, strict=True)])
    gram = np.zeros((len(columns), len(columns)))
    for start in range(0, rows, _CHUNK):
        block = np.stack([column[start : start + _CHUNK] for column in columns]).astype(np.float64, copy=False)
        block -= shifts[:, None]
        block -= mean[:, None]
        gram += block @ block.T
    return mean, gram / (rows - 1) if rows > 1 else np.full_like(gram, np.nan)


def _mean(column: Floats, shift: float) -> float:
    total = sum(
        float((column[start : start + _CHUNK] - shift).sum(dtype=np.float64)) for start in range(0, len(column), _CHUNK)
    )
    return total / len(column)


def _correlation(covariance: Floats) -> Floats:
    spread = np.sqrt(np.diag(covariance))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.clip(covariance / spread[:, None] / spread, -1, 1))


def _rank_covariance(columns: Sequence[Floats]) -> Floats:
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # sorting leaves Python's lock to others
        ranks = list(pool.map(progress.share_watch(_ranks), columns))
    return _covariance(ranks, np.array([column[0] for column in ranks]))[1]


def _ranks(values: Floats) -> Floats:
    """Return the ranks 1 .. n of a column, for equal values their mean rank; correlations need no more."""
    least, largest = values.min(), values.max()
    if np.count_nonzero(values == least) + np.count_nonzero(values == largest) >= len(values):
        return np.asarray(values - least)  # the ranks of two values, up to unit and origin
    order = np.argsort(values)
    ordered = values[order]
    starts = find_run_starts(ordered)
    ends = np.append(starts[1:], len(values))
    ranks = np.empty(len(values))
    ranks[order] = np.repeat((starts + ends + 1) / 2, ends - starts)
    return ranks


def ks_distance(first: Array, second: Array) -> float:
    """Return the largest difference between the distribution functions of two sorted samples.

    F1 - F2 is largest at a value of the first sample, F2 - F1 just below one of them (or nowhere above 0).
    """
    at = np.searchsorted(second, first, side="right") / len(second)
    below = np.searchsorted(second, first, side="left") / len(second)
    steps = np.arange(len(first) + 1) / len(first)
    return float(max((steps[1:] - at).max(), (below - steps[:-1]).max(), 0.0))


def total_variation(first: Ints, second: Ints, categories: int) -> float:
    """Return half the sum of the differences between the shares of the categories 0 .. categories - 1."""
    shares = [np.bincount(codes, minlength=categories) / len(codes) for codes in (first, second)]
    return float(np.abs(shares[0] - shares[1]).sum() / 2)

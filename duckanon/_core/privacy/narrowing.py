"""Whether a column that a release keeps tells more about a coarse column than the coarse column's labels do.

Three signs count: fewer values are left to guess for people with the same label and kept value than shuffled columns
leave; their values are nearer to each other; or the order of the kept column tells that of the coarse one within
classes, as that of a copy does. Each is compared with chance: shuffles within classes, and the variance of a rank
correlation. Rows are drawn, ten times the root of the table's, so that the cost is that of sorting some ten thousand
rows. Limits were measured on surveys (Adult, NHANES, ACS).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon._core.common.arguments import make_generator as new_generator
from duckanon._core.common.arrays import Array, Bools, Floats, Ints, is_number, is_time
from duckanon._core.common.codes import rank_values

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


def count_freedom(classes: Ints, ranks: Array) -> float:
    """Return the sum of m - 1 over the classes in which a column has different values, of m rows each."""
    number = np.unique(classes, return_inverse=True)[1].reshape(-1)
    sizes = np.bincount(number)
    low, high = np.full(len(sizes), np.inf), np.full(len(sizes), -np.inf)
    np.minimum.at(low, number, ranks)
    np.maximum.at(high, number, ranks)
    return float((sizes - 1)[high > low].sum())


def measure_dependence(classes: Ints, labels: Ints, ranks: Array, column: pa.ChunkedArray) -> Dependence:
    """Return the largest rank correlation within classes, over the orders in which a kept column may be read.

    The coarse column is given by its ranks and labels.

    Examples:
        >>> income = np.random.default_rng(0).permutation(100)
        >>> tens = income // 10
        >>> measure_dependence(tens, tens, income, pa.chunked_array([[f"{1.1 * x:.2f} EUR" for x in income]]))
        Dependence(correlation=1.0, is_beyond_chance=True)
    """
    orders = [_correlate_within(classes, labels, ranks, keys) for keys in list_sort_keys(column)]
    return max(orders, default=Dependence(0.0, False), key=lambda order: (order.is_beyond_chance, order.correlation))


def _correlate_within(classes: Ints, labels: Ints, ranks: Array, keys: Floats) -> Dependence:
    """Correlate within classes.

    Signs count over the whole table, or within a label of the coarse column each: the distance from the middle falls
    before it and rises behind.
    """
    is_known = ~np.isnan(keys)
    classes = np.unique(classes[is_known], return_inverse=True)[1].reshape(-1)
    if not len(classes):
        return Dependence(0.0, False)
    sizes = np.bincount(classes).astype(np.float64)
    coarse, kept = _center_ranks(classes, ranks[is_known], sizes), _center_ranks(classes, keys[is_known], sizes)
    squares, squares_of_kept = np.bincount(classes, coarse**2), np.bincount(classes, kept**2)
    weights = np.where(squares > 0, sizes - 1, 0)
    scale = np.sqrt(squares * squares_of_kept)
    moved = weights * np.bincount(classes, coarse * kept) / np.where(scale > 0, scale, 1)
    label_of_class = np.empty(len(sizes), np.int64)
    label_of_class[classes] = labels[is_known]
    label_of_class = np.unique(label_of_class, return_inverse=True)[1].reshape(-1)
    together = _judge_correlation(abs(moved.sum()), weights.sum(), 0.0)
    of_label = np.bincount(label_of_class, weights)
    is_large = of_label >= _FEWEST_OF_LABEL
    by_chance = np.sqrt(2 * of_label[is_large] / np.pi).sum()
    signed = np.abs(np.bincount(label_of_class, moved))[is_large].sum()
    return max(
        together, _judge_correlation(signed, of_label[is_large].sum(), by_chance), key=lambda order: order.correlation
    )


def _judge_correlation(moved: float, weight: float, by_chance: float) -> Dependence:
    if weight < FEWEST or by_chance >= weight:
        return Dependence(0.0, False)
    correlation = round((moved - by_chance) / (weight - by_chance), 9)
    return Dependence(float(correlation), bool(correlation >= max(LIMIT, _DEVIATIONS / np.sqrt(weight))))


def _center_ranks(classes: Ints, values: Array, sizes: Floats) -> Floats:
    """Return the rank of each value within its class, equal ones with equal ranks, less the mean of the class."""
    order = np.lexsort((values, classes))
    is_first = np.diff(classes[order], prepend=-1) > 0
    steps = np.cumsum(is_first | (np.diff(values[order], prepend=values[order[0]]) != 0))
    ranks = np.empty(len(order))
    ranks[order] = steps - np.maximum.accumulate(np.where(is_first, steps, 0))
    return np.asarray(ranks - (np.bincount(classes, ranks) / sizes)[classes])


def list_sort_keys(column: pa.ChunkedArray) -> Iterator[Floats]:
    """Yield the orders that a column may be read in, as numbers; NaN where there is none.

    Text is sorted as text, by the number that it writes, and by the date: year first, day first, or month first.
    ``anon._sort_keys`` is the same in SQL.
    """
    flat = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_dictionary(flat.type):
        flat = flat.cast(flat.type.value_type)
    if is_number(flat.type) or is_time(flat.type) or pa.types.is_boolean(flat.type):
        whole = flat.cast(pa.int64() if flat.type.bit_width == 64 else pa.int32()) if is_time(flat.type) else flat
        yield _read_finite(whole)
        return
    text = pa.array([None if value is None else str(value) for value in flat.to_pylist()], pa.string())
    ranks = rank_values(pa.chunked_array([text])).astype(np.float64)
    yield np.where(np.asarray(text.is_null()), np.nan, ranks)
    digits = pc.replace_substring_regex(text, r"[^0-9.\-]", "")
    is_number_text = pc.match_substring_regex(digits, r"^-?[0-9]+(\.[0-9]+)?$")
    yield _read_finite(pc.if_else(is_number_text, digits, None))
    yield from _read_dates(text)


def _read_dates(text: pa.Array) -> Iterator[Floats]:
    parts = pc.extract_regex(text, r"^[^0-9]*(?P<a>[0-9]{1,4})[^0-9]+(?P<b>[0-9]{1,4})(?:[^0-9]+(?P<c>[0-9]{1,4}))?")
    texts = [pc.struct_field(parts, part) for part in "abc"]
    first, second, third = (_read_finite(pc.if_else(pc.equal(one, ""), None, one)) for one in texts)
    written = pc.extract_regex(pc.utf8_lower(text), rf"(?P<month>{'|'.join(_MONTHS)})")
    named = _read_finite(pc.index_in(pc.struct_field(written, "month"), pa.array(_MONTHS)))
    yield first * 10_000 + second * 100 + third
    yield third * 10_000 + second * 100 + first
    yield third * 10_000 + first * 100 + second
    yield second * 10_000 + named * 100 + first


def _read_finite(values: pa.Array) -> Floats:
    numbers = np.asarray(values.cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)
    return np.where(np.isfinite(numbers), numbers, np.nan)


FEW_VALUES, NEAR = 0.9, 0.7
"""A kept column narrows a coarse one where fewer than this share of the values are left to guess: ages beside dates of
birth leave .3 to .8, a year of marriage beside an age .83, incomes and columns that tell nothing .97 to 1. Or where
people with the same kept value are this near to each other, since counting tells nothing where nearly every value is
another one: ages beside dates of birth .2 to .6, incomes beside ages .85. Or where the order of the kept column tells
that of the coarse one within classes, as that of a copy does: `duckanon._core.privacy.narrowing`."""
_MANY_VALUES = 30  # the values of a column from which on distances in ranks tell anything
MOST_ROWS = 5_000
"""Rows that are looked at."""
MOST_ASKED = 1_000
"""Rows that are looked at besides, where only some are asked for."""
_MOST_OF_ROOT = 10
"""Rows that are looked at of larger tables, times the square root of theirs: of classes of k rows then 50 k pairs or
more have both their rows among them, however many classes there are."""
_SHUFFLES = 6  # times that the kept column is shuffled, to tell what chance does


class NarrowPairs(NamedTuple):
    """Kept columns with the coarse ones that they narrow, and those of which too few rows cannot tell."""

    narrowed: list[tuple[str, str]]
    unjudged: list[tuple[str, str]]


def describe_pairs(pairs: NarrowPairs, ways_out: str = "leave {it} out, or name {it} in narrowing") -> str | None:
    """Say what is wrong with pairs and what to do; None where nothing is.

    Examples:
        >>> print(describe_pairs(NarrowPairs([("age", "born")], [])))
        the column "age" in keep narrows down "born"; leave it out, or name it in narrowing.
        >>> print(describe_pairs(NarrowPairs([], [("copy", "born")]), "leave {it} out"))
        there are too few rows to tell whether the column "copy" in keep narrows down "born"; leave it out.
    """
    clauses = []
    for group, beginning in ((pairs.narrowed, ""), (pairs.unjudged, "there are too few rows to tell whether ")):
        if group:
            (kept, coarse), *rest = group
            clauses.append(f'{beginning}the column "{kept}" in keep narrows down "{coarse}"')
            clauses += [f'"{kept}" narrows down "{coarse}"' for kept, coarse in rest]
    it = "it" if len({kept for group in pairs for kept, _ in group}) == 1 else "them"
    return f"{', '.join(clauses)}; {ways_out.format(it=it)}." if clauses else None


COARSER_TOO = "leave {it} out, make {it} coarser too, or name {it} in narrowing"
"""The ways out where the same plan may have more columns."""


def describe_judgements(judged: Iterable[tuple[str, str, bool | None]], ways_out: str) -> str | None:
    """Say what is wrong with rows of ``anon.kept_column_risk``: kept_column, column_name, narrows; None if nothing."""
    pairs = NarrowPairs([], [])
    for kept, coarse, narrows in judged:
        if narrows is not False:
            (pairs.narrowed if narrows else pairs.unjudged).append((kept, coarse))
    return describe_pairs(pairs, ways_out)


def refuse_narrowing(
    originals: Mapping[str, Array],
    labels: Mapping[str, Ints],
    kept: Mapping[str, pa.ChunkedArray],
    classes: Ints,
    asked: Bools | None = None,
) -> None:
    """Raise a ValueError where kept columns narrow coarse ones; what is taken is that of `find_narrow_pairs`."""
    if not kept:
        return
    pairs = find_narrow_pairs(originals, labels, kept, classes, new_generator(None), asked)
    if sentence := describe_pairs(pairs):
        raise ValueError(sentence)


def find_narrow_pairs(
    originals: Mapping[str, Array],
    labels: Mapping[str, Ints],
    kept: Mapping[str, pa.ChunkedArray],
    classes: Ints,
    generator: np.random.Generator,
    asked: Bools | None = None,
) -> NarrowPairs:
    """Find the kept columns that narrow coarse ones, as ``anon.kept_column_risk`` does.

    Of a coarse column the original numbers and the number of each row's label are given. It is asked what is left to
    guess about the rows that are ``asked``, or all, among the values of all.

    Examples:
        >>> born = np.arange(1950.0, 1960.0).repeat(20)
        >>> decade = np.zeros(200, np.int64)
        >>> age = pa.chunked_array([2030 - born])
        >>> find_narrow_pairs({"born": born}, {"born": decade}, {"age": age}, decade, np.random.default_rng(0))
        NarrowPairs(narrowed=[('age', 'born')], unjudged=[])
    """
    most = max(MOST_ROWS, _MOST_OF_ROOT * math.isqrt(len(classes)))
    rows = np.sort(generator.permutation(len(classes))[:most])
    if asked is not None:
        rows = np.union1d(rows, generator.permutation(np.flatnonzero(asked))[:MOST_ASKED])
    counted = np.ones(len(rows), np.bool_) if asked is None else asked[rows]
    class_of_row = classes[rows]
    by_class = np.argsort(class_of_row, kind="stable")
    shuffles = []
    for _ in range(_SHUFFLES):
        mixed = generator.permutation(len(rows))
        taken = np.empty(len(rows), np.int64)
        taken[by_class] = mixed[np.argsort(class_of_row[mixed], kind="stable")]
        shuffles.append(taken)
    ranks = {name: np.unique(column[rows], return_inverse=True)[1].reshape(-1) for name, column in originals.items()}
    freedoms = {name: count_freedom(class_of_row, rank) for name, rank in ranks.items()}
    pairs = NarrowPairs([], [])
    for kept_name, kept_column in kept.items():
        column = kept_column.take(pa.array(rows))
        codes = _number_values(column)
        for name, rank in ranks.items():
            label = labels[name][rows]
            shuffled = np.array([_measure_guesses(label, codes[mixed], rank, counted) for mixed in shuffles])
            if (
                _narrows(_measure_guesses(label, codes, rank, counted), shuffled, int(rank.max()) + 1 >= _MANY_VALUES)
                or measure_dependence(class_of_row, label, rank, column).is_beyond_chance
            ):
                pairs.narrowed.append((kept_name, name))
            elif 0 < freedoms[name] < FEWEST and all(
                _is_mostly_different(class_of_row, values) for values in (codes, rank)
            ):
                pairs.unjudged.append((kept_name, name))
    return pairs


def _is_mostly_different(classes: Ints, codes: Ints) -> bool:
    """Tell whether more than half of the rows share their value with no other row of their class, if it has others."""
    number = np.unique(classes, return_inverse=True)[1].reshape(-1)
    (class_of, _), sizes = np.unique(np.stack([number, codes]), axis=1, return_counts=True)
    return bool(2 * ((sizes == 1) & (np.bincount(number)[class_of] > 1)).sum() > len(codes))


def _narrows(seen: Floats, shuffled: Floats, has_many_values: bool) -> bool:
    mean, noise = shuffled.mean(axis=0), shuffled.std(axis=0, ddof=1)
    is_less = (seen < np.array([FEW_VALUES, NEAR]) * mean) & (seen < mean - 3 * noise)
    return bool(is_less[0] or (has_many_values and is_less[1]))


def _number_values(column: pa.ChunkedArray) -> Ints:
    """Return a number for each value, NULL too."""
    flat = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_nested(flat.type):
        flat = pa.array([str(value) for value in flat.to_pylist()])
    if pa.types.is_dictionary(flat.type):
        flat = flat.cast(flat.type.value_type)
    indices = flat.dictionary_encode(null_encoding="encode").indices
    return np.asarray(indices.to_numpy(zero_copy_only=False), dtype=np.int64)


def _measure_guesses(label: Ints, kept: Ints, rank: Ints, counted: Bools) -> Floats:
    """Return what is left to guess: how many values occur with a row's label and kept value, and how far apart.

    Both are means over the rows that are counted; the distance is in ranks, from one row to the next with the same
    label and kept value.
    """
    meeting = np.unique(np.stack([label, kept]), axis=1, return_inverse=True)[1].reshape(-1)
    values = np.bincount(np.unique(np.stack([meeting, rank]), axis=1)[0])
    order = np.argsort(meeting, kind="stable")
    is_next = (np.diff(meeting[order]) == 0) & (counted[order][1:] | counted[order][:-1])
    steps = np.abs(np.diff(rank[order]))[is_next]
    return np.array([values[meeting][counted].mean(), steps.mean() if len(steps) else 0.0])

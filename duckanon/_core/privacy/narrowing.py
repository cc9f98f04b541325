"""Whether a column that a release keeps tells more about a coarse column than the coarse column's labels do."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from duckanon._core.common.arguments import generator as new_generator
from duckanon._core.common.arrays import Array, Bools, Floats, Ints
from duckanon._core.privacy.dependence import FEWEST, dependence, freedom

FEW_VALUES, NEAR = 0.9, 0.7
"""A kept column narrows a coarse one where fewer than this share of the values are left to guess: ages beside dates of
birth leave .3 to .8, a year of marriage beside an age .83, incomes and columns that tell nothing .97 to 1. Or where
people with the same kept value are this near to each other, since counting tells nothing where nearly every value is
another one: ages beside dates of birth .2 to .6, incomes beside ages .85. Or where the order of the kept column tells
that of the coarse one within classes, as that of a copy does: `duckanon._core.privacy.dependence`."""
_MANY_VALUES = 30  # the values of a column from which on distances in ranks tell anything
MOST_ROWS = 5_000
"""Rows that are looked at."""
MOST_ASKED = 1_000
"""Rows that are looked at besides, where only some are asked for."""
_MOST_OF_ROOT = 10
"""Rows that are looked at of larger tables, times the square root of theirs: of classes of k rows then 50 k pairs or
more have both their rows among them, however many classes there are."""
_SHUFFLES = 6  # times that the kept column is shuffled, to tell what chance does


class Pairs(NamedTuple):
    """Kept columns with the coarse ones that they narrow, and those of which too few rows cannot tell."""

    narrowed: list[tuple[str, str]]
    unjudged: list[tuple[str, str]]


def sentence(pairs: Pairs, ways_out: str = "leave {it} out, or name {it} in narrowing") -> str | None:
    """Say what is wrong with pairs and what to do; None where nothing is.

    Examples:
        >>> print(sentence(Pairs([("age", "born")], [])))
        the column "age" in keep narrows down "born"; leave it out, or name it in narrowing.
        >>> print(sentence(Pairs([], [("copy", "born")]), "leave {it} out"))
        there are too few rows to tell whether the column "copy" in keep narrows down "born"; leave it out.
    """
    told = []
    for found, beginning in ((pairs.narrowed, ""), (pairs.unjudged, "there are too few rows to tell whether ")):
        if found:
            (kept, coarse), *others = found
            told.append(f'{beginning}the column "{kept}" in keep narrows down "{coarse}"')
            told += [f'"{kept}" narrows down "{coarse}"' for kept, coarse in others]
    it = "it" if len({kept for found in pairs for kept, _ in found}) == 1 else "them"
    return f"{', '.join(told)}; {ways_out.format(it=it)}." if told else None


COARSER_TOO = "leave {it} out, make {it} coarser too, or name {it} in narrowing"
"""The ways out where the same plan may have more columns."""


def refusal(judged: Iterable[tuple[str, str, bool | None]], ways_out: str) -> str | None:
    """Say what is wrong with rows of ``anon.kept_column_risk``: kept_column, column_name, narrows; None if nothing."""
    pairs = Pairs([], [])
    for kept, coarse, narrows in judged:
        if narrows is not False:
            (pairs.narrowed if narrows else pairs.unjudged).append((kept, coarse))
    return sentence(pairs, ways_out)


def refuse_narrowing(
    originals: Mapping[str, Array],
    labels: Mapping[str, Ints],
    kept: Mapping[str, pa.ChunkedArray],
    classes: Ints,
    asked: Bools | None = None,
) -> None:
    """Raise a ValueError where kept columns narrow coarse ones; what is taken is that of `narrowed_pairs`."""
    if kept and (refusal := sentence(narrowed_pairs(originals, labels, kept, classes, new_generator(None), asked))):
        raise ValueError(refusal)


def narrowed_pairs(
    originals: Mapping[str, Array],
    labels: Mapping[str, Ints],
    kept: Mapping[str, pa.ChunkedArray],
    classes: Ints,
    generator: np.random.Generator,
    asked: Bools | None = None,
) -> Pairs:
    """Find the kept columns that narrow coarse ones, as ``anon.kept_column_risk`` does.

    Of a coarse column the original numbers and the number of each row's label are given. It is asked what is left to
    guess about the rows that are ``asked``, or all, among the values of all.

    Examples:
        >>> born = np.arange(1950.0, 1960.0).repeat(20)
        >>> decade = np.zeros(200, np.int64)
        >>> age = pa.chunked_array([2030 - born])
        >>> narrowed_pairs({"born": born}, {"born": decade}, {"age": age}, decade, np.random.default_rng(0))
        Pairs(narrowed=[('age', 'born')], unjudged=[])
    """
    most = max(MOST_ROWS, _MOST_OF_ROOT * math.isqrt(len(classes)))
    rows = np.sort(generator.permutation(len(classes))[:most])
    if asked is not None:
        rows = np.union1d(rows, generator.permutation(np.flatnonzero(asked))[:MOST_ASKED])
    counted = np.ones(len(rows), np.bool_) if asked is None else asked[rows]
    own_class = classes[rows]
    by_class = np.argsort(own_class, kind="stable")
    shuffles = []
    for _ in range(_SHUFFLES):
        mixed = generator.permutation(len(rows))
        taken = np.empty(len(rows), np.int64)
        taken[by_class] = mixed[np.argsort(own_class[mixed], kind="stable")]
        shuffles.append(taken)
    ranks = {name: np.unique(column[rows], return_inverse=True)[1].reshape(-1) for name, column in originals.items()}
    freedoms = {name: freedom(own_class, rank) for name, rank in ranks.items()}
    pairs = Pairs([], [])
    for kept_name, kept_column in kept.items():
        column = kept_column.take(pa.array(rows))
        codes = _codes(column)
        for name, rank in ranks.items():
            label = labels[name][rows]
            shuffled = np.array([_left(label, codes[mixed], rank, counted) for mixed in shuffles])
            if (
                _narrows(_left(label, codes, rank, counted), shuffled, int(rank.max()) + 1 >= _MANY_VALUES)
                or dependence(own_class, label, rank, column).is_beyond_chance
            ):
                pairs.narrowed.append((kept_name, name))
            elif 0 < freedoms[name] < FEWEST and all(_is_mostly_different(own_class, one) for one in (codes, rank)):
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


def _codes(column: pa.ChunkedArray) -> Ints:
    """Return a number for each value, NULL too."""
    flat = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_nested(flat.type):
        flat = pa.array([str(value) for value in flat.to_pylist()])
    if pa.types.is_dictionary(flat.type):
        flat = flat.cast(flat.type.value_type)
    indices = flat.dictionary_encode(null_encoding="encode").indices
    return np.asarray(indices.to_numpy(zero_copy_only=False), dtype=np.int64)


def _left(label: Ints, kept: Ints, rank: Ints, counted: Bools) -> Floats:
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

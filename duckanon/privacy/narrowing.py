"""Whether a column that a release keeps tells more about a coarse column than the coarse column's labels do."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon.common.arguments import generator as new_generator
from duckanon.common.arrays import Bools, Floats, Ints
from duckanon.common.codes import encode

FEW_VALUES, NEAR = 0.9, 0.7
"""A kept column narrows a coarse one where fewer than this share of the values are left to guess: ages beside dates of
birth leave .3 to .8, a year of marriage beside an age .83, incomes and columns that tell nothing .97 to 1. Or where
people with the same kept value are this near to each other, since counting tells nothing where nearly every value is
another one: ages beside dates of birth .2 to .6, incomes beside ages .85."""

_MANY_VALUES = 30
"""The values of a column from which on distances in ranks tell anything."""

MOST_ROWS = 5_000
"""Rows that are looked at."""

MOST_ASKED = 1_000
"""Rows that are looked at besides, where only some are asked for."""

_SHUFFLES = 6
"""Times that the kept column is shuffled, to tell what chance does."""


def refuse_narrowing(
    originals: Mapping[str, Floats],
    labels: Mapping[str, Ints],
    kept: Mapping[str, pa.ChunkedArray],
    classes: Ints,
    asked: Bools | None = None,
) -> None:
    """Raise a ValueError where a kept column narrows a coarse one; what is taken is that of `narrowed_pair`."""
    pair = narrowed_pair(originals, labels, kept, classes, new_generator(None), asked) if kept else None
    if pair is not None:
        raise ValueError(
            f'the column "{pair[0]}" in keep narrows down "{pair[1]}"; leave it out, or name it in narrowing.'
        )


def narrowed_pair(
    originals: Mapping[str, Floats],
    labels: Mapping[str, Ints],
    kept: Mapping[str, pa.ChunkedArray],
    classes: Ints,
    generator: np.random.Generator,
    asked: Bools | None = None,
) -> tuple[str, str] | None:
    """Find a kept column that narrows a coarse one, as ``anon.kept_column_risk`` does.

    Parameters
    ----------
    originals, labels
        By coarse column: its original numbers, and the number of each row's label.
    kept
        The columns that are kept, by name.
    classes
        The class of each row.
    generator
        Draws the rows that are looked at, and shuffles.
    asked
        The rows about which it is asked what is left to guess, among the values of all; None: all rows.

    Returns
    -------
    tuple or None
        The kept column and the coarse one; None where no kept column narrows any.

    Examples
    --------
    >>> born = np.arange(1950.0, 1960.0).repeat(20)
    >>> decade = np.zeros(200, np.int64)
    >>> age = pa.chunked_array([2030 - born])
    >>> narrowed_pair({"born": born}, {"born": decade}, {"age": age}, decade, np.random.default_rng(0))
    ('age', 'born')
    """
    rows = np.sort(generator.permutation(len(classes))[:MOST_ROWS])
    if asked is not None:
        rows = np.union1d(rows, generator.permutation(np.flatnonzero(asked))[:MOST_ASKED])
    counted = np.ones(len(rows), np.bool_) if asked is None else asked[rows]
    by_class = np.argsort(classes[rows], kind="stable")
    shuffles = []
    for _ in range(_SHUFFLES):
        mixed = generator.permutation(len(rows))
        taken = np.empty(len(rows), np.int64)
        taken[by_class] = mixed[np.argsort(classes[rows][mixed], kind="stable")]
        shuffles.append(taken)
    ranks = {name: np.unique(column[rows], return_inverse=True)[1].reshape(-1) for name, column in originals.items()}
    for kept_name, kept_column in kept.items():
        codes = _codes(kept_column.take(pa.array(rows)))
        for name, rank in ranks.items():
            label = labels[name][rows]
            shuffled = np.array([_left(label, codes[mixed], rank, counted) for mixed in shuffles])
            if _narrows(_left(label, codes, rank, counted), shuffled, int(rank.max()) + 1 >= _MANY_VALUES):
                return kept_name, name
    return None


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


def ranks_of(column: pa.ChunkedArray) -> Floats:
    """Return the rank of each value from 1, NULL behind all others."""
    ((codes, _),) = encode(pa.table({"value": column}))
    firsts = np.unique(codes, return_index=True)[1]
    different = column.take(pa.array(firsts))
    if pa.types.is_dictionary(different.type):
        different = different.cast(different.type.value_type)
    ranks = np.empty(len(firsts))
    ranks[np.asarray(pc.sort_indices(different))] = np.arange(1, len(firsts) + 1)
    return ranks[codes.astype(np.int64)]

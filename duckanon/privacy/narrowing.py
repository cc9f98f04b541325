"""Whether a column that a release keeps tells more about a coarse column than the coarse column's labels do."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from duckanon.common.arrays import Ints

NARROW = 0.9
"""A kept column narrows a coarse one where fewer than this share of the values are left to guess: ages beside dates of
birth leave .3 to .75, a year of marriage beside an age .83, incomes and other columns that tell nothing .97 to 1."""

MOST_ROWS = 20_000
"""Rows that are looked at."""


def narrowed_pair(
    originals: Mapping[str, pa.ChunkedArray],
    labels: Mapping[str, Ints],
    kept: Mapping[str, pa.ChunkedArray],
    classes: Ints,
    generator: np.random.Generator,
) -> tuple[str, str] | None:
    """Find a kept column that narrows a coarse one, as ``anon.kept_column_risk`` does.

    Parameters
    ----------
    originals, labels
        By coarse column: its original values, and the number of each row's label.
    kept
        The columns that are kept, by name.
    classes
        The class of each row.
    generator
        Draws the rows that are looked at, and shuffles.

    Returns
    -------
    tuple or None
        The kept column and the coarse one; None where no kept column narrows any.

    Examples
    --------
    >>> born = pa.chunked_array([[1950, 1951, 1952, 1953]])
    >>> decade = np.zeros(4, np.int64)
    >>> narrowed_pair({"born": born}, {"born": decade}, {"age": born}, decade, np.random.default_rng(0))
    ('age', 'born')
    """
    rows = np.sort(generator.permutation(len(classes))[:MOST_ROWS])
    coarse_codes = {name: _codes(column.take(pa.array(rows))) for name, column in originals.items()}
    # The rows in order of their classes, once in random order within them: the two are matched place by place.
    own, other = (rows_[np.argsort(classes[rows][rows_], kind="stable")] for rows_ in _two_orders(len(rows), generator))
    for kept_name, kept_column in kept.items():
        kept_codes = _codes(kept_column.take(pa.array(rows)))
        for name, codes in coarse_codes.items():
            label = labels[name][rows]
            within = _values_left(label[own], kept_codes[own], codes[own])
            shuffled = _values_left(label[own], kept_codes[other], codes[own])
            if within < NARROW * shuffled:
                return kept_name, name
    return None


def _two_orders(size: int, generator: np.random.Generator) -> tuple[Ints, Ints]:
    return np.arange(size), generator.permutation(size)


def _codes(column: pa.ChunkedArray) -> Ints:
    """Return a number for each value, NULL too."""
    flat = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_nested(flat.type):
        flat = pa.array([str(value) for value in flat.to_pylist()])
    if pa.types.is_dictionary(flat.type):
        flat = flat.cast(flat.type.value_type)
    indices = flat.dictionary_encode(null_encoding="encode").indices
    return np.asarray(indices.to_numpy(zero_copy_only=False), dtype=np.int64)


def _values_left(label: Ints, kept: Ints, original: Ints) -> float:
    """Return how many original values occur with a row's label and kept value, on average over the rows."""
    meeting = np.unique(np.stack([label, kept]), axis=1, return_inverse=True)[1].reshape(-1)
    pairs = np.unique(np.stack([meeting, original]), axis=1)
    values = np.bincount(pairs[0], minlength=int(meeting.max()) + 1)
    return float(values[meeting].mean())

"""One pass over a table: the encoding of its columns, and mean and covariance of the encoded matrix."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from duckanon._core.common.arguments import refuse_unless, spelled
from duckanon._core.common.arrays import Floats, is_number, sql_type
from duckanon._core.common.names import known_columns
from duckanon._core.common.rules import OneOf
from duckanon._core.encoding.arrow import kind_of
from duckanon._core.encoding.column_fit import CategoriesSeen, NumberSeen, PlacedSeen
from duckanon._core.encoding.coordinates import Places
from duckanon._core.encoding.sources import opened_source
from duckanon._core.encoding.table_encoding import Encoding
from duckanon._core.encoding.wide import Wide

_Seen: TypeAlias = NumberSeen | CategoriesSeen | PlacedSeen

_WIDE_CELLS = 2**19  # of the matrix of one step: four megabytes, which the caches of most machines hold
_MOST_ROWS = 2**16  # of a step: bounds what a narrow table holds at once
_FEWEST_ROWS = 2**10  # of a step: with fewer, a wide table spends its time on starting products


@dataclass(frozen=True)
class Moments:
    """Rows, column means and covariance (divided by rows - 1) of an encoded matrix."""

    rows: int
    mean: Floats
    covariance: Floats


def batch_rows(width: int) -> int:
    """Return how many rows are worked on at a time for a matrix of that many columns."""
    return min(_MOST_ROWS, max(_FEWEST_ROWS, _WIDE_CELLS // max(width, 1)))


def fit(
    source: object,
    cols: Sequence[str] | None = None,
    *,
    log: Sequence[str] | None = None,
    nulls: str = "error",
    lenient: bool = False,
    tell: Callable[[int], None] | None = None,
    places: Mapping[str, Places] | None = None,
) -> tuple[Encoding, Moments]:
    """Fit the encoding of a table and the moments of the encoded matrix in one pass.

    Whether a logarithm is taken, which categories there are and which mean fills NULLs is known only at the end. The
    pass therefore sums over a wide matrix of everything that may be needed (numbers and logarithms, both shifted by the
    first batch's mean against cancellation, 0/1 for NULL and for each category), of which the encoded matrix is an
    affine function: W -> W M' + c has covariance M C M'.

    Args:
        log: The columns whose logarithm is encoded. None: those with positive values only, a skewness above 2, and
            logarithms of a skewness closer to 0; never dates and times.
        nulls: ``'error'`` refuses NULLs, ``'category'`` encodes them, as a category, or as a number's mean with an
            indicator.
        lenient: For measuring, not for releasing: a single column, constant columns and identifiers of up to 1,000
            values are coded too, a constant number in its own unit.
        tell: Told the rows read so far.
        places: The coordinates of the values of columns that have many, which are the texts of 0, 1, and so on.
    """
    with opened_source(source, cols) as opened:
        schema = opened.schema
        log = spelled("log", log, schema.names)
        refuse_unless(OneOf("error", "category"), "nulls", nulls)
        if len(schema) < (1 if lenient else 2):
            raise ValueError(f"cols must name at least two columns; got {len(schema)}.")
        known_columns("log", log or [], schema.names)
        wide = Wide()
        seen = [_seen(column, log, wide, (places or {}).get(column.name)) for column in schema]
        rows = 0
        for batch in opened.batches(batch_rows(2 * len(seen))):
            step = batch_rows(wide.size)
            for start in range(0, batch.num_rows, step):
                piece = batch.slice(start, step)
                wide.start(piece.num_rows)
                for column, array in zip(seen, piece.columns, strict=True):
                    column.read(array)
                wide.finish()
                rows += piece.num_rows
            if tell is not None:
                tell(rows)
    if rows == 0:
        raise ValueError("the table has no rows; give one that has.")
    if nulls == "error":
        refuse_nulls({column.name: column.null_count for column in seen})
    return _finished(schema, seen, wide, rows, lenient)


def _seen(column: pa.Field, log: Sequence[str] | None, wide: Wide, places: Places | None) -> _Seen:
    if places is not None:
        return PlacedSeen(column.name, column.type, wide, places)
    kind = kind_of(column.name, column.type)
    named = None if log is None else column.name in log
    if named and not is_number(column.type):
        raise ValueError(f'column "{column.name}" has no logarithms: it holds no numbers; got {sql_type(column.type)}.')
    if kind == "category":
        return CategoriesSeen(column.name, column.type, wide)
    return NumberSeen(column.name, column.type, kind == "exact", named, wide)


def refuse_nulls(counts: Mapping[str, int]) -> None:
    """Refuse NULLs, those of all columns in one sentence."""
    found = {name: count for name, count in counts.items() if count}
    if not found:
        return
    listed = [f'column "{name}" has {count:,} NULLs' for name, count in found.items()]
    raise ValueError(f"{', '.join(listed)}; remove these rows or say nulls := 'category'.")


def _finished(
    schema: pa.Schema, seen: Sequence[_Seen], wide: Wide, rows: int, lenient: bool
) -> tuple[Encoding, Moments]:
    mean = wide.totals / rows
    wide_covariance = (wide.products - rows * np.outer(mean, mean)) / max(rows - 1, 1)
    columns, maps, constants = [], [], []
    for column_seen in seen:
        column, map_rows, constant = column_seen.finish(rows, lenient)
        columns.append(column)
        maps += map_rows
        constants.append(constant)
    affine = np.zeros((len(maps), len(mean)))
    for row, entries in enumerate(maps):
        for slot, coefficient in entries.items():
            affine[row, slot] = coefficient
    covariance = affine @ wide_covariance @ affine.T
    return (
        Encoding(tuple(columns), schema),
        Moments(rows, affine @ mean + np.concatenate(constants), (covariance + covariance.T) / 2),
    )

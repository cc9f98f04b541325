"""Values drawn for one column of a table: shared by at least k people, or by nobody."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from duckanon._core.common.arrays import Floats, Ints
from duckanon._core.common.people import people_in
from duckanon._core.encoding.arrow import categories_of
from duckanon._core.encoding.column_codecs import CategoryColumn, NumberColumn, SpectralColumn
from duckanon._methods.baselines.copula_columns import CopulaColumn
from duckanon._methods.releasable import marginals
from duckanon._methods.releasable.grids import finer, grid_of

_NOTICEABLE = 0.05
"""The share of a column's rows that may be moved past a number; beyond it floats get one more decimal."""
_TOO_MUCH = 0.25
"""Beyond it a column would no longer have its shape: the whole numbers of a small table, each of a few people."""


def drawn(
    column: SpectralColumn, values: pa.ChunkedArray, copula: CopulaColumn, people: Ints | None, k: int, levels: Floats
) -> pa.Array:
    """Draw values at levels, from 0 to 1, of a column's distribution; refuse a column without releasable values.

    At least k people share a released value, or NULL; numbers that nobody has may be released too. The codes of the
    copula order the levels.
    """
    if isinstance(column, NumberColumn):
        return drawn_numbers(column, values, people, k, levels)
    return drawn_categories(column, copula, people, k, levels)


def drawn_categories(
    column: CategoryColumn, copula: CopulaColumn, people: Ints | None, k: int, levels: Floats
) -> pa.Array:
    """Draw categories at levels: see `drawn`."""
    pieces = marginals.of_values(copula.codes.astype(np.int64), people, k)
    if not len(pieces.rows):
        raise _nothing_to_draw(column.name, k)
    assert copula.categories is not None
    kept = copula.categories[pieces.value]
    piece, _ = pieces.at(levels)
    # Only values that may be released: a dictionary lists them all.
    order = np.argsort(kept)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return categories_of(rank[piece], [column.values[index] for index in kept[order]], column.type)


def drawn_numbers(
    column: NumberColumn, values: pa.ChunkedArray, people: Ints | None, k: int, levels: Floats
) -> pa.Array:
    """Draw numbers at levels: see `drawn`."""
    array = values.combine_chunks()
    known = array.is_valid().to_numpy(zero_copy_only=False)
    whose = None if people is None else people[known]
    grid = grid_of(column)
    found = marginals.of_numbers(grid, grid.places(array)[known], whose, k)
    if found.shift > _NOTICEABLE and (more_places := finer(grid)) is not None:
        grid = more_places
        found = marginals.of_numbers(grid, grid.places(array)[known], whose, k)
    if found.shift > _TOO_MUCH and len(found.pieces.rows):
        raise ValueError(
            f'column "{column.name}" has too few numbers inside its range shared by {k} people or by nobody; '
            "make it coarser, lower k or leave it out of cols."
        )
    pieces = found.pieces
    null_rows = len(known) - int(known.sum())
    null_people = people_in((~known).astype(np.int64), people, 2)[1]
    null_share = null_rows if null_people >= k else 0
    if null_share:  # NULL comes after all numbers
        nothing = np.array([np.nan])
        last = marginals.Pieces(np.array([null_share]), np.array([found.lowest]), nothing, nothing)
        pieces = marginals.Pieces(*(np.concatenate(both) for both in zip(pieces, last, strict=True)))
    if not len(pieces.rows):
        raise _nothing_to_draw(column.name, k)
    piece, share = pieces.at(levels)
    is_number = piece < len(found.pieces.rows)
    places = np.full(len(piece), found.lowest)
    if is_number.any():
        places[is_number] = found.drawn(piece[is_number], share[is_number])
    return grid.array(places, is_number if null_rows else None)


def _nothing_to_draw(name: str, k: int) -> ValueError:
    return ValueError(
        f'column "{name}" has no value shared by at least {k} people; generalize it, lower k or leave it out of cols.'
    )

"""Releases by a normal copula: the table's own values in another order, or new records drawn from distributions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from duckanon._core.common.arguments import generator
from duckanon._core.common.arrays import Floats, Ints
from duckanon._core.common.people import people_in, refuse_too_few
from duckanon._core.encoding.arrow import categories_of
from duckanon._core.encoding.column_codecs import CategoryColumn, NumberColumn, SpectralColumn
from duckanon._core.encoding.column_split import nothing_shared
from duckanon._core.encoding.table_encoding import Encoding
from duckanon._core.encoding.whole_sources import read_whole, reader_of, refuse_identifiers
from duckanon._methods.baselines import copulas
from duckanon._methods.releasable import marginals
from duckanon._methods.releasable.grids import Grid, finer, grid_of
from duckanon._methods.releasable.moved_places import moved_share
from duckanon._methods.releasable.safe_numbers import NOTICEABLE, TOO_MUCH, too_few_numbers


def data_shuffle(source: object, *, nulls: str, seed: int | None) -> pa.RecordBatchReader:
    """Rearrange every column to the ranks of normal data with the same rank correlations: `copulas.data_shuffle`."""
    random = generator(seed)
    table, encoding, _, _, types = read_whole(source, None, [], nulls, is_exact=False)
    refuse_identifiers(table)
    columns = copula_columns(encoding, encoding.matrix(table))
    rows_of_columns = copulas.data_shuffle([column.codes for column in columns], random)
    rearranged = [column.take(pa.array(rows)) for column, rows in zip(table.columns, rows_of_columns, strict=True)]
    return reader_of(types.write(pa.table(rearranged, schema=table.schema)))


def copula_synthesize(
    source: object, *, rows: int | None, k: int, nulls: str, seed: int | None, person: str | None
) -> pa.RecordBatchReader:
    """Draw new records from a normal copula with the data's rank correlations and distributions.

    See `copulas.copula_levels` and `marginals.of_numbers`.
    """
    random = generator(seed)
    table, encoding, _, people, types = read_whole(source, None, None, nulls, person)
    refuse_too_few(k, table.num_rows, people)
    columns = copula_columns(encoding, encoding.matrix(table))
    drawn_rows = table.num_rows if rows is None else rows
    all_levels = copulas.copula_levels([column.codes for column in columns], drawn_rows, random)
    arrays = [
        drawn(column, values, copula, people, k, levels)
        for column, values, copula, levels in zip(encoding.columns, table.columns, columns, all_levels, strict=True)
    ]
    released = pa.table(arrays, schema=table.schema)
    marginals.refuse_rare(table, released, people, [k] * table.num_columns)
    return reader_of(types.write(released))


@dataclass(frozen=True)
class CopulaColumn:
    """One column: codes in the order of the values, NaN for a missing number, and the category of each code.

    Categories are given by their index in the encoding; numbers have none.
    """

    codes: Floats
    categories: Ints | None


def copula_columns(encoding: Encoding, matrix: Floats) -> list[CopulaColumn]:
    """Split the columns of an encoded table.

    Categories have no order, and a rank correlation needs one: they are put into the order in which they differ most in
    the other columns (`copulas.category_codes`).
    """
    columns = []
    for column, group in zip(encoding.columns, encoding.groups, strict=True):
        features = matrix[:, group]
        if isinstance(column, NumberColumn):
            missing = features[:, 1] > 0 if column.nullable else np.zeros(len(features), bool)
            columns.append(CopulaColumn(np.where(missing, np.nan, features[:, 0]), None))
            continue
        indices = (features[:, 0] > 0).astype(np.int64) if column.width == 1 else features.argmax(axis=1)
        codes = copulas.category_codes(indices, np.delete(matrix, group, axis=1))
        categories = np.zeros(len(column.values), np.int64)
        categories[codes.astype(np.int64)] = indices
        columns.append(CopulaColumn(codes, categories))
    return columns


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
        raise nothing_shared(column.name, k)
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
    found, shift = _distribution(grid, grid.places(array)[known], whose, k)
    if shift > NOTICEABLE and (more_places := finer(grid)) is not None:
        grid = more_places
        found, shift = _distribution(grid, grid.places(array)[known], whose, k)
    if shift > TOO_MUCH and len(found.pieces.rows):
        raise too_few_numbers(column.name, k)
    pieces = found.pieces
    null_rows = len(known) - int(known.sum())
    null_people = people_in((~known).astype(np.int64), people, 2)[1]
    null_share = null_rows if null_people >= k else 0
    if null_share:  # NULL comes after all numbers
        last = marginals.Pieces(np.array([null_share]), np.array([found.lowest]), *np.full((4, 1), np.nan))
        pieces = marginals.Pieces(*(np.concatenate(both) for both in zip(pieces, last, strict=True)))
    if not len(pieces.rows):
        raise nothing_shared(column.name, k)
    order = np.argsort(levels)  # ascending ones are found in a fifth of the time
    piece, share = pieces.at(levels[order])
    numbers = np.flatnonzero(piece < len(found.pieces.rows))
    places = np.full(len(levels), found.lowest)
    is_number = np.zeros(len(levels), bool)
    is_number[order[numbers]] = True
    if len(numbers):
        places[order[numbers]] = found.drawn(piece[numbers], share[numbers])
    return grid.array(places, is_number if null_rows else None)


def _distribution(grid: Grid, places: Ints, whose: Ints | None, k: int) -> tuple[marginals.Numbers, float]:
    """Return the distribution of places, and the share of the rows moved past a number where no rare one comes out."""
    found = marginals.of_numbers(grid, places, whose, k)
    return found, moved_share(np.sort(places), found.rare, grid.step)

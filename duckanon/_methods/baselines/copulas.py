"""Normal copulas: releases that keep each column's distribution and the rank correlations, and nothing else.

Either the table's own values in another order (data shuffling, Muralidhar and Sarathy 2006; Thesis, Section 2.3.3), or
new records drawn from the columns' distributions (Thesis, Equations 2.14 to 2.17, corrected). Cutting normal data into
few values weakens its rank correlations, so the correlations before the cut are found by a series of Hermite
polynomials (`find_latent_correlation`), at a cost of columns squared times 40 bisections of 60 terms. Categories are
put into the order in which they differ most in the other columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from scipy.special import ndtr, ndtri

from duckanon._core.common.arguments import make_generator
from duckanon._core.common.arrays import Floats, Ints, Matrix
from duckanon._core.common.people import count_people, refuse_large_k
from duckanon._core.encoding.arrow import make_categories
from duckanon._core.encoding.column_codecs import CategoryColumn, Encoding, NumberColumn, SpectralColumn
from duckanon._core.encoding.column_split import make_unshared_error
from duckanon._core.encoding.whole_sources import make_reader, read_whole, refuse_identifiers
from duckanon._methods.releasable import marginals
from duckanon._methods.releasable.grids import Grid, grid_of, refine_grid
from duckanon._methods.releasable.safe_numbers import NOTICEABLE, TOO_MUCH, measure_shift, too_few_numbers

_TERMS = 60
"""Terms of the series in `find_latent_correlation`. Of two halved columns, the worst case, it misses the rank
correlation by .0004 at a latent correlation of .95 and by .011 at .99; of continuous columns by 1e-5 everywhere."""
_STEPS = 400  # steps that a column's distribution is reduced to there; they are where that 1e-5 comes from
_BISECTIONS = 40  # halvings of an interval of length 2, of which they leave 2e-12


def shuffle_by_copula(codes: Sequence[Floats], random: np.random.Generator) -> list[Ints]:
    """Rearrange each column by the ranks of normal data with the same rank correlations.

    Data shuffling (Muralidhar and Sarathy 2006; Thesis, Section 2.3.3) without variables that stay as they are. Each
    column keeps exactly the values that it has; rank correlations are kept asymptotically. Released rows are in the
    order of independent draws, which links nothing to the original rows.

    A column has one code per row, equal for equal values and in their order, which values without one get from
    `order_categories`; NaN is one more value, above all others. Return for each column the original row whose value
    each released row gets.
    """
    rows = _count_rows(codes)
    orders = [np.argsort(column, kind="stable") for column in codes]
    latent = _draw_normal(find_latent_correlation(codes, orders), rows, random)
    sources = []
    for column, order in zip(latent.T, orders, strict=True):
        source = np.empty(rows, dtype=np.int64)
        source[np.argsort(column)] = order
        sources.append(source)
    return sources


def draw_levels(codes: Sequence[Floats], rows: int, random: np.random.Generator) -> list[Floats]:
    """Draw new rows from the normal copula with the data's rank correlations, as levels from 0 to 1 of each column.

    Thesis, Equations 2.14 to 2.17. The last one is corrected: going back takes the inverse of the distribution
    function, a = P^-1(Phi(b)), which `marginals` does. Normal scores (2.14) have mean 0 by construction, and ranks are
    all that is used of them.
    """
    _count_rows(codes)
    return [ndtr(scores) for scores in _draw_normal(find_latent_correlation(codes), rows, random).T]


def find_latent_correlation(codes: Sequence[Floats], orders: Sequence[Ints] | None = None) -> Matrix:
    """Find the correlations of normal data that have the columns' rank correlations once they are cut into values.

    Thesis, Equation 2.15, 2 sin(pi R / 6), holds for continuous columns only. Cutting normal data into few values
    weakens its rank correlations, so that a table with two-valued columns would come back with correlations that are
    too small. Here the rank g(z) that the normal score z ends with is expanded in Hermite polynomials: with normalized
    coefficients c, scores of correlation q have ranks of covariance sum_m c_im c_jm q^m, which is solved for q. Without
    ties it is equation 2.15 again.

    Solving pair by pair need not give a possible correlation matrix: eigenvalues below 0 are raised to 0, and the
    diagonal rescaled to 1. `orders` has the rows of each column in ascending order, where the caller has them.
    """
    if orders is None:
        orders = [np.argsort(column, kind="stable") for column in codes]
    rows = len(codes[0])
    ranks = np.empty((rows, len(codes)))
    series = np.zeros((len(codes), _TERMS))
    deviation = np.zeros(len(codes))
    for j, (column, order) in enumerate(zip(codes, orders, strict=True)):
        ordered = column[order]
        # NaN differs from itself, and is one value here.
        change = (ordered[1:] != ordered[:-1]) & ~np.isnan(ordered[:-1])
        ends = np.append(np.flatnonzero(change) + 1, rows)
        counts = np.diff(ends, prepend=0)
        ranks[order, j] = np.repeat((ends - counts / 2) / rows - 0.5, counts)
        series[j], deviation[j] = _expand_ranks(ends / rows)
    covariance = ranks.T @ ranks / rows
    # A column of one value has no rank correlation, and its series is 0 already: independent of all others.
    scale = np.where(deviation > 0, deviation, 1.0)
    series /= scale[:, np.newaxis]
    correlation = _solve_correlation(series, covariance / np.outer(scale, scale))
    root = _find_root((correlation + correlation.T) / 2)
    root /= np.sqrt((root**2).sum(axis=1, keepdims=True))
    return np.asarray(root @ root.T)


def _expand_ranks(levels: Floats) -> tuple[Floats, float]:
    """Expand the ranks of a column whose values end at these levels; and give the ranks' standard deviation."""
    steps = np.diff(levels, prepend=0.0)
    deviation = np.sqrt(max(0.0, 1.0 - np.sum(steps**3)) / 12)
    coefficients = np.zeros(_TERMS)
    inner = levels[:-1]
    if len(inner) > _STEPS:
        # Steps next to each other are joined; a value that many rows share keeps both its ends.
        grid = np.arange(1, _STEPS) / _STEPS
        after = np.searchsorted(inner, grid)
        inner = inner[np.unique(np.clip(np.concatenate((after - 1, after)), 0, len(inner) - 1))]
    if not inner.size:
        return coefficients, 0.0
    ends = np.concatenate(([0.0], inner, [1.0]))
    jumps = (ends[2:] - ends[:-2]) / 2
    cut = ndtri(inner)
    weight = jumps * np.exp(-(cut**2) / 2) / np.sqrt(2 * np.pi)
    before, current = np.zeros_like(cut), np.ones_like(cut)
    for m in range(_TERMS):
        coefficients[m] = np.sum(weight * current) / np.sqrt(m + 1)
        before, current = current, (cut * current - np.sqrt(m) * before) / np.sqrt(m + 1)
    return coefficients, float(deviation)


def _solve_correlation(series: Matrix, target: Matrix) -> Matrix:
    """Solve sum_m c_im c_jm q^m = target for q in [-1, 1] by bisection: the sum grows with q."""
    low, high = np.full(target.shape, -1.0), np.ones(target.shape)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        value = np.zeros(target.shape)
        for coefficients in series.T[::-1]:
            value = (value + np.outer(coefficients, coefficients)) * middle
        above = value > target
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    varied = np.abs(series).sum(axis=1) > 0
    solved: Matrix = np.where(np.outer(varied, varied), (low + high) / 2, 0.0)
    np.fill_diagonal(solved, 1.0)
    return solved


def _draw_normal(correlation: Matrix, rows: int, random: np.random.Generator) -> Matrix:
    """Draw normal rows of mean 0; the correlation may be singular."""
    return np.asarray(random.standard_normal((rows, len(correlation))) @ _find_root(correlation).T)


def _find_root(symmetric: Matrix) -> Matrix:
    """Return a matrix whose product with its transpose is the given one, eigenvalues below 0 taken for 0."""
    values, vectors = np.linalg.eigh(symmetric)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def order_categories(categories: Ints, other_features: Matrix) -> Floats:
    """Put values without an order into the order in which they differ most in the other columns; return ranks by row.

    A rank correlation needs an order, and most of what a category has to do with the other columns is lost if the order
    is arbitrary. The means of the other columns in each category, weighted by how many rows it has, are projected on
    their first principal axis: one order can carry no more than one such axis. Without other columns, categories are
    ordered by frequency.
    """
    counts = np.bincount(categories)
    present = np.maximum(counts, 1)
    if other_features.shape[1]:
        means = np.stack([np.bincount(categories, column) / present for column in other_features.T], axis=1)
        means = means - other_features.mean(axis=0)
        means[counts == 0] = 0.0
        _, _, axes = np.linalg.svd(means * np.sqrt(counts)[:, np.newaxis], full_matrices=False)
        scores = means @ (axes[0] * np.sign(axes[0][np.abs(axes[0]).argmax()]))
    else:
        scores = counts.astype(np.float64)
    rank = np.empty(len(counts))
    rank[np.argsort(scores, kind="stable")] = np.arange(len(counts))
    return np.asarray(rank[categories])


def _count_rows(codes: Sequence[Floats]) -> int:
    lengths = {len(column) for column in codes}
    if len(lengths) != 1 or 0 in lengths:
        raise ValueError(f"columns must have one code for each of at least 1 row; got lengths {sorted(lengths)}.")
    return lengths.pop()


def data_shuffle(source: object, *, nulls: str, seed: int | None) -> pa.RecordBatchReader:
    """Rearrange every column to the ranks of normal data with the same rank correlations: `data_shuffle`."""
    random = make_generator(seed)
    table, encoding, _, _, types = read_whole(source, None, [], nulls, is_exact=False)
    refuse_identifiers(table)
    columns = read_copula_columns(encoding, encoding.matrix(table))
    rows_of_columns = shuffle_by_copula([column.codes for column in columns], random)
    rearranged = [column.take(pa.array(rows)) for column, rows in zip(table.columns, rows_of_columns, strict=True)]
    return make_reader(types.write(pa.table(rearranged, schema=table.schema)))


def copula_synthesize(
    source: object, *, rows: int | None, k: int, nulls: str, seed: int | None, person: str | None
) -> pa.RecordBatchReader:
    """Draw new records from a normal copula with the data's rank correlations and distributions.

    See `draw_levels` and `marginals.of_numbers`.
    """
    random = make_generator(seed)
    table, encoding, _, people, types = read_whole(source, None, None, nulls, person)
    refuse_large_k(k, table.num_rows, people)
    columns = read_copula_columns(encoding, encoding.matrix(table))
    drawn_rows = table.num_rows if rows is None else rows
    all_levels = draw_levels([column.codes for column in columns], drawn_rows, random)
    arrays = [
        draw_values(column, values, copula, people, k, levels)
        for column, values, copula, levels in zip(encoding.columns, table.columns, columns, all_levels, strict=True)
    ]
    released = pa.table(arrays, schema=table.schema)
    marginals.refuse_rare(table, released, people, [k] * table.num_columns)
    return make_reader(types.write(released))


@dataclass(frozen=True)
class CopulaColumn:
    """One column: codes in the order of the values, NaN for a missing number, and the category of each code.

    Categories are given by their index in the encoding; numbers have none.
    """

    codes: Floats
    categories: Ints | None


def read_copula_columns(encoding: Encoding, matrix: Floats) -> list[CopulaColumn]:
    """Split the columns of an encoded table.

    Categories have no order, and a rank correlation needs one: they are put into the order in which they differ most in
    the other columns (`order_categories`).
    """
    columns = []
    for column, group in zip(encoding.columns, encoding.groups, strict=True):
        features = matrix[:, group]
        if isinstance(column, NumberColumn):
            missing = features[:, 1] > 0 if column.nullable else np.zeros(len(features), bool)
            columns.append(CopulaColumn(np.where(missing, np.nan, features[:, 0]), None))
            continue
        indices = (features[:, 0] > 0).astype(np.int64) if column.width == 1 else features.argmax(axis=1)
        codes = order_categories(indices, np.delete(matrix, group, axis=1))
        categories = np.zeros(len(column.values), np.int64)
        categories[codes.astype(np.int64)] = indices
        columns.append(CopulaColumn(codes, categories))
    return columns


def draw_values(
    column: SpectralColumn, values: pa.ChunkedArray, copula: CopulaColumn, people: Ints | None, k: int, levels: Floats
) -> pa.Array:
    """Draw values at levels, from 0 to 1, of a column's distribution; refuse a column without releasable values.

    At least k people share a released value, or NULL; numbers that nobody has may be released too. The codes of the
    copula order the levels.
    """
    if isinstance(column, NumberColumn):
        return draw_numbers(column, values, people, k, levels)
    return draw_categories(column, copula, people, k, levels)


def draw_categories(
    column: CategoryColumn, copula: CopulaColumn, people: Ints | None, k: int, levels: Floats
) -> pa.Array:
    """Draw categories at levels: see `draw_values`."""
    pieces = marginals.of_values(copula.codes.astype(np.int64), people, k)
    if not len(pieces.rows):
        raise make_unshared_error(column.name, k)
    assert copula.categories is not None
    kept = copula.categories[pieces.value]
    piece, _ = pieces.at(levels)
    # Only values that may be released: a dictionary lists them all.
    order = np.argsort(kept)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return make_categories(rank[piece], [column.values[index] for index in kept[order]], column.type)


def draw_numbers(
    column: NumberColumn, values: pa.ChunkedArray, people: Ints | None, k: int, levels: Floats
) -> pa.Array:
    """Draw numbers at levels: see `draw_values`."""
    array = values.combine_chunks()
    known = array.is_valid().to_numpy(zero_copy_only=False)
    person_of_row = None if people is None else people[known]
    grid = grid_of(column)
    distribution, shift = _learn_distribution(grid, grid.places(array)[known], person_of_row, k)
    if shift > NOTICEABLE and (more_places := refine_grid(grid)) is not None:
        grid = more_places
        distribution, shift = _learn_distribution(grid, grid.places(array)[known], person_of_row, k)
    if shift > TOO_MUCH and len(distribution.pieces.rows):
        raise too_few_numbers(column.name, k)
    pieces = distribution.pieces
    null_rows = len(known) - int(known.sum())
    null_people = count_people((~known).astype(np.int64), people, 2)[1]
    null_share = null_rows if null_people >= k else 0
    if null_share:  # NULL comes after all numbers
        last = marginals.Pieces(np.array([null_share]), np.array([distribution.lowest]), *np.full((4, 1), np.nan))
        pieces = marginals.Pieces(*(np.concatenate(both) for both in zip(pieces, last, strict=True)))
    if not len(pieces.rows):
        raise make_unshared_error(column.name, k)
    order = np.argsort(levels)  # ascending ones are found in a fifth of the time
    piece, share = pieces.at(levels[order])
    numbers = np.flatnonzero(piece < len(distribution.pieces.rows))
    places = np.full(len(levels), distribution.lowest)
    is_number = np.zeros(len(levels), bool)
    is_number[order[numbers]] = True
    if len(numbers):
        places[order[numbers]] = distribution.draw(piece[numbers], share[numbers])
    return grid.array(places, is_number if null_rows else None)


def _learn_distribution(
    grid: Grid, places: Ints, person_of_row: Ints | None, k: int
) -> tuple[marginals.Numbers, float]:
    """Return the distribution of places, and the share of the rows moved past a number where no rare one comes out."""
    distribution = marginals.of_numbers(grid, places, person_of_row, k)
    return distribution, measure_shift(np.sort(places), distribution.rare, grid.step)

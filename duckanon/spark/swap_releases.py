"""The thesis's methods for tables of people: `svd_swap` and `pica`.

A table made plain for the thesis's methods, with ends and categories that at least k people share, on a cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from duckanon._core.common.declare import Options
from duckanon._core.common.faces import face_of
from duckanon._core.encoding.column_codecs import (
    FEWEST_ROWS,
    ROWS_PER_COMPONENT,
    CoordinateColumn,
    Encoding,
    refuse_few_rows,
)
from duckanon._core.encoding.fit import Moments, fit_columns
from duckanon._core.encoding.formulas import find_formulas, find_lookups
from duckanon._core.encoding.number_types import NumberTypes
from duckanon._core.encoding.parts import ColumnParts
from duckanon._core.encoding.whole_sources import SplitScheme, apply_schemes
from duckanon._methods.releasable.safe_numbers import Bounds
from duckanon._methods.swap.components import principal_components
from duckanon._methods.swap.declared import PICA, SVD_SWAP
from duckanon._methods.swap.pica import SEARCHED_ROWS, ClusterSwap
from duckanon._methods.swap.svd import swap_block
from duckanon._methods.swap.thesis_columns import ThesisColumns, build_thesis_table, place_wide_choices
from duckanon.spark import blocks, schemes
from duckanon.spark.frames import column, find_ordered_columns, public
from duckanon.spark.schemes import Surveyed
from duckanon.spark.targets import Target, target_called

_ENDS = 3  # numbers of a column that its encoding must have seen: the ends, and one a step from an end


@dataclass(frozen=True)
class Plain:
    """The way of rows of a table to those of a matrix, and back."""

    schemes: Sequence[SplitScheme]  # how the columns are split
    bounds: Mapping[int, Bounds]  # by column, the ends of its numbers
    columns: ThesisColumns  # what puts the columns together again; its rows are none
    encoding: Encoding  # of the plain columns

    def table(self, rows: pa.Table, random: np.random.Generator) -> pa.Table:
        """Make rows plain."""
        followers = [formula.column for formula in self.columns.formulas]
        followers += [lookup.column for lookup in self.columns.lookups]
        return build_thesis_table(
            apply_schemes(self.schemes, self.columns.types.read(rows)), self.bounds, followers, rows.num_rows, random
        )

    def encoding_of(self, plain: pa.Table) -> Encoding:
        """Return the encoding by which choices between many values come back as often as some rows have them."""
        columns = []
        for codec in self.encoding.columns:
            if isinstance(codec, CoordinateColumn):
                codes = plain.column(codec.name).combine_chunks().indices.to_numpy()
                codec = replace(
                    codec, places=replace(codec.places, counts=np.bincount(codes, minlength=len(codec.values)))
                )
            columns.append(codec)
        return replace(self.encoding, columns=tuple(columns))

    def back(self, plain: pa.Table) -> pa.Table:
        """Recombine released rows."""
        batches = plain.combine_chunks().to_batches()
        return pa.Table.from_batches([self.columns.back(batch) for batch in batches], self.columns.schema)

    def refuse(self, draft: DataFrame) -> None:
        """Refuse what was written where a number is beyond the ends of k people, or a category is not among theirs.

        Numbers that are computed from others are as far as these are.
        """
        computed = [one.column for one in self.columns.formulas]
        parts = [scheme.column for scheme in self.schemes]
        checked = [(part, self.bounds.get(place)) for place, part in enumerate(parts) if place not in computed]
        row = draft.agg(*(F.max(~_is_allowed(part, ends, self.columns.types)) for part, ends in checked)).collect()[0]
        for (part, _), is_other in zip(checked, row, strict=True):
            if is_other:
                raise ValueError(f'column "{part.name}" would release values of too few people; nothing was released.')


def fit_encoding(
    survey: Surveyed, k: int, derived: str, log: Sequence[str] | None, random: np.random.Generator
) -> tuple[Plain, Moments]:
    """Fit the encoding of a table to a sample and the ends and categories of all rows, or refuse as `anon.svd_swap`."""
    for whole, _ in survey.whole:
        if whole.array.null_count < len(whole.array) and len(whole.array.unique()) == 1:
            raise ValueError(f'column "{whole.name}" has the same value in every row; leave it out of cols.')
    parts = apply_schemes(survey.schemes, survey.types.read(survey.sample))
    formulas = find_formulas(parts) if derived == "auto" else []
    computed = [formula.column for formula in formulas]
    lookups = find_lookups(parts, computed, random) if derived == "auto" else []
    followers = [*computed, *(lookup.column for lookup in lookups)]
    bounds = {
        index: Bounds.of(whole, len(whole.codes), k)
        for index, (whole, _) in enumerate(survey.whole)
        if whole.regular is not None and index not in computed
    }
    sample = build_thesis_table(parts, bounds, followers, survey.sample.num_rows, random)
    places = place_wide_choices(parts, sample)
    rowless = [scheme.column for scheme in survey.schemes]
    schema = survey.sample.select(survey.names).schema
    columns = ThesisColumns(schema, rowless, formulas, lookups, sample.slice(0, 0), None, places, survey.types)
    seen = pa.concat_tables([sample, _rows_of_choices(rowless, bounds, followers, random)])
    encoding, moments = fit_columns(seen, log=columns.log(log), places=places)
    return Plain(survey.schemes, bounds, columns, encoding), replace(moments, rows=survey.rows)


def gram(survey: Surveyed, plain: Plain) -> Moments:
    """Add up the encoded matrix and its products, where the rows are."""
    width = plain.encoding.width

    def sums(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        random = np.random.default_rng()
        rows, total, products = 0, np.zeros(width), np.zeros((width, width))
        for batch in batches:
            if batch.num_rows:
                table = plain.table(pa.Table.from_batches([batch]), random)
                matrix = plain.encoding.matrix(table)  # standardised by the sample: nearly centred
                rows += len(matrix)
                total += matrix.sum(axis=0)
                products += matrix.T @ matrix
        values = [pa.array([rows]), pa.array([total.tobytes()]), pa.array([products.tobytes()])]
        yield pa.record_batch(values, names=["rows", "total", "products"])

    results = survey.frame.mapInArrow(sums, "rows bigint, total binary, products binary").collect()
    rows = sum(row[0] for row in results)
    if rows != survey.rows:
        raise ValueError("the table has other rows than before; it may have changed in the meantime.")
    mean = np.sum([np.frombuffer(row[1]) for row in results], axis=0) / rows
    products = np.sum([np.frombuffer(row[2]) for row in results], axis=0).reshape(width, width)
    return Moments(rows, mean, (products - rows * np.outer(mean, mean)) / max(rows - 1, 1))


def _rows_of_choices(
    columns: Sequence[ColumnParts], bounds: Mapping[int, Bounds], followers: Sequence[int], random: np.random.Generator
) -> pa.Table:
    """Return rows that have every choice, and the ends of every number, whether or not the sample has them."""
    choices = max(part.choices for part in columns)
    parts = []
    for index, part in enumerate(columns):
        codes = np.concatenate([np.full(_ENDS, part.choices - 1), np.resize(np.arange(part.choices), choices)])
        array = pa.nulls(len(codes), part.type)
        if index in bounds:
            grid, lowest, highest = bounds[index]
            ends = [lowest, min(lowest + grid.step, highest), highest]
            array = grid.array(np.array([*ends, *([lowest] * choices)]), None)
        parts.append(replace(part, codes=codes, array=array))
    return build_thesis_table(parts, bounds, followers, _ENDS + choices, random)


def _is_allowed(part: ColumnParts, ends: Bounds | None, types: NumberTypes) -> Column:
    """Return whether a column has a value that may be released, as an expression."""
    field = column(part.name)
    known = [value for value in part.outcomes if value is not None]
    tests = [field.isNull() if None in part.outcomes else F.lit(False)]
    if known:
        if part.name in types.types:
            known = types.write_column(part.name, pa.array(known, part.type)).to_pylist()
        tests.append(F.coalesce(field.isin(known), F.lit(False)))
    if ends is not None:
        limits = ends.grid.array(np.array([ends.lowest, ends.highest]), None)
        low, high = types.write_column(part.name, limits).to_pylist()
        tests.append(F.coalesce(field.between(F.lit(low), F.lit(high)), F.lit(False)))
    return reduce(lambda first, second: first | second, tests)


PART_ROWS = {"svd_swap": 200_000, "pica": 50_000}
"""Rows of a part: what an executor works on at a time."""


@face_of(SVD_SWAP, "spark")
@public
def svd_swap(frame: DataFrame, options: Options, *, to: str) -> DataFrame:
    """Write new records with the same means, variances and correlations: each principal component is permuted.

    Components are those of the whole table; records are swapped inside blocks to which they are assigned at random, and
    each block is checked.

    Args:
        frame, to: As in `generalize`.

    Returns:
        What was written, after its ends and categories were checked.
    """
    tolerance, checks = options["tolerance"], options["checks"]
    with target_called(frame.sparkSession, to) as target:
        survey = _survey(frame, options)
        plain, _ = fit_encoding(survey, options["k"], options["derived"], options["log"], np.random.default_rng())
        moments = gram(survey, plain)
        rank = int(principal_components(moments.covariance)[1].shape[1])
        refuse_few_rows(survey.rows, rank)
        parted = blocks.send_to_parts(survey, 0, PART_ROWS["svd_swap"], _fewest(rank))

        def release(number: int, part: pa.Table, chance: np.random.Generator) -> pa.Table:
            table = plain.table(part, chance)
            return plain.back(swap_block(table, plain.encoding_of(table), moments, tolerance, checks, chance))

        return _write(survey, plain, blocks.release_parts(parted, survey.schema, release), checks, target)


@face_of(PICA, "spark")
@public
def pica(frame: DataFrame, options: Options, *, to: str) -> DataFrame:
    """Write new records that keep nonlinear structure too: the independent components of clusters are permuted.

    Clusters are inside parts of similar records, each of which is checked. The search for a size works with a sample.

    Args:
        frame, to: As in `generalize`.

    Returns:
        What was written, after its ends and categories were checked.
    """
    size, checks = options["cluster_size"], options["checks"]
    basis, clustering = options["basis"], options["clustering"]
    with target_called(frame.sparkSession, to) as target:
        survey = _survey(frame, options)
        random = np.random.default_rng()
        plain, moments = fit_encoding(survey, options["k"], options["derived"], options["log"], random)
        rank = int(principal_components(moments.covariance)[1].shape[1])
        refuse_few_rows(survey.rows, rank)
        if size is None:
            sample = plain.table(survey.sample, random)
            matrix = plain.encoding.matrix(sample, np.float32)
            encoding = plain.encoding_of(sample)
            result = ClusterSwap(encoding, matrix, rank, basis, clustering, checks, random).search(None)
            if result.cluster_size is None:
                raise ValueError(result.refusal(survey.rows))
            is_all = result.cluster_size >= min(len(matrix), SEARCHED_ROWS)
            size = float(survey.rows) if is_all else result.cluster_size
        part_rows = PART_ROWS["pica"]
        parted = blocks.send_to_parts(survey, blocks.tree_of(survey, part_rows), part_rows, _fewest(rank))

        def release(number: int, part: pa.Table, chance: np.random.Generator) -> pa.Table:
            table = plain.table(part, chance)
            encoding = plain.encoding_of(table)
            matrix = encoding.matrix(table, np.float32)
            swap = ClusterSwap(encoding, matrix, rank, basis, clustering, checks, chance)
            return plain.back(
                swap.release_enlarging(size) if options["cluster_size"] is None else swap.release(size, None)
            )

        return _write(survey, plain, blocks.release_parts(parted, survey.schema, release), checks, target)


def _survey(frame: DataFrame, options: Options) -> Surveyed:
    """Survey the columns of a call in the order of the table."""
    return schemes.survey_columns(
        frame, find_ordered_columns(frame, options["cols"], at_least=2), None, options["k"], options
    )


def _fewest(rank: int) -> int:
    return max(FEWEST_ROWS, ROWS_PER_COMPONENT * rank)


def _write(survey: Surveyed, plain: Plain, released: DataFrame, checks: str, target: Target) -> DataFrame:
    """Write a release; a repair may have left rows out, but no more than half."""
    fewest = survey.rows // 2 if checks == "repair" else survey.rows
    return blocks.write_release(released, fewest, survey.rows, target, plain.refuse)

"""A table made plain for the thesis's methods, with ends and categories that at least k people share, on a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from duckanon._core.encoding.column_codecs import PlacedColumn
from duckanon._core.encoding.fit import Moments, fit
from duckanon._core.encoding.formulas import found_formulas
from duckanon._core.encoding.lookups import found_lookups
from duckanon._core.encoding.number_types import NumberTypes
from duckanon._core.encoding.parts import ColumnParts
from duckanon._core.encoding.table_encoding import Encoding
from duckanon._core.encoding.whole_columns import Scheme, applied
from duckanon._methods.releasable.bounds import Bounds
from duckanon._methods.swap.plain_columns import PlainColumns, plain_table, wide_places
from duckanon.spark.frames import column
from duckanon.spark.schemes import Surveyed

_ENDS = 3  # numbers of a column that its encoding must have seen: the ends, and one a step from an end


@dataclass(frozen=True)
class Plain:
    """The way of rows of a table to those of a matrix, and back."""

    schemes: Sequence[Scheme]  # how the columns are split
    bounds: Mapping[int, Bounds]  # by column, the ends of its numbers
    columns: PlainColumns  # what puts the columns together again; its rows are none
    encoding: Encoding  # of the plain columns

    def table(self, rows: pa.Table, random: np.random.Generator) -> pa.Table:
        """Make rows plain."""
        followers = [formula.column for formula in self.columns.formulas]
        followers += [lookup.column for lookup in self.columns.lookups]
        return plain_table(
            applied(self.schemes, self.columns.types.read(rows)), self.bounds, followers, rows.num_rows, random
        )

    def encoding_of(self, plain: pa.Table) -> Encoding:
        """Return the encoding by which choices between many values come back as often as some rows have them."""
        columns = []
        for one in self.encoding.columns:
            if isinstance(one, PlacedColumn):
                codes = plain.column(one.name).combine_chunks().indices.to_numpy()
                one = replace(one, places=replace(one.places, counts=np.bincount(codes, minlength=len(one.values))))
            columns.append(one)
        return replace(self.encoding, columns=tuple(columns))

    def back(self, plain: pa.Table) -> pa.Table:
        """Recombine released rows."""
        batches = plain.combine_chunks().to_batches()
        return pa.Table.from_batches([self.columns.back(batch) for batch in batches], self.columns.schema)

    def refused(self, draft: DataFrame) -> None:
        """Refuse what was written where a number is beyond the ends of k people, or a category is not among theirs.

        Numbers that are computed from others are as far as these are.
        """
        computed = [one.column for one in self.columns.formulas]
        parts = [scheme.column for scheme in self.schemes]
        checked = [(one, self.bounds.get(place)) for place, one in enumerate(parts) if place not in computed]
        found = draft.agg(*(F.max(~_allowed(one, ends, self.columns.types)) for one, ends in checked)).collect()[0]
        for (one, _), is_other in zip(checked, found, strict=True):
            if is_other:
                raise ValueError(f'column "{one.name}" would release values of too few people; nothing was released.')


def fitted(
    survey: Surveyed, k: int, derived: str, log: Sequence[str] | None, random: np.random.Generator
) -> tuple[Plain, Moments]:
    """Fit the encoding of a table to a sample and the ends and categories of all rows, or refuse as `anon.svd_swap`."""
    for whole, _ in survey.whole:
        if whole.array.null_count < len(whole.array) and len(whole.array.unique()) == 1:
            raise ValueError(f'column "{whole.name}" has the same value in every row; leave it out of cols.')
    parts = applied(survey.schemes, survey.types.read(survey.sample))
    formulas = found_formulas(parts) if derived == "auto" else []
    computed = [formula.column for formula in formulas]
    lookups = found_lookups(parts, computed, random) if derived == "auto" else []
    followers = [*computed, *(lookup.column for lookup in lookups)]
    bounds = {
        index: Bounds.of(whole, len(whole.codes), k)
        for index, (whole, _) in enumerate(survey.whole)
        if whole.regular is not None and index not in computed
    }
    sample = plain_table(parts, bounds, followers, survey.sample.num_rows, random)
    places = wide_places(parts, sample)
    rowless = [scheme.column for scheme in survey.schemes]
    schema = survey.sample.select(survey.names).schema
    columns = PlainColumns(schema, rowless, formulas, lookups, sample.slice(0, 0), None, places, survey.types)
    seen = pa.concat_tables([sample, _seen(rowless, bounds, followers, random)])
    encoding, moments = fit(seen, log=columns.log(log), places=places)
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

    found = survey.frame.mapInArrow(sums, "rows bigint, total binary, products binary").collect()
    rows = sum(row[0] for row in found)
    if rows != survey.rows:
        raise ValueError("the table has other rows than before; it may have changed in the meantime.")
    mean = np.sum([np.frombuffer(row[1]) for row in found], axis=0) / rows
    products = np.sum([np.frombuffer(row[2]) for row in found], axis=0).reshape(width, width)
    return Moments(rows, mean, (products - rows * np.outer(mean, mean)) / max(rows - 1, 1))


def _seen(
    columns: Sequence[ColumnParts], bounds: Mapping[int, Bounds], followers: Sequence[int], random: np.random.Generator
) -> pa.Table:
    """Return rows that have every choice, and the ends of every number, whether or not the sample has them."""
    choices = max(one.choices for one in columns)
    parts = []
    for index, one in enumerate(columns):
        codes = np.concatenate([np.full(_ENDS, one.choices - 1), np.resize(np.arange(one.choices), choices)])
        array = pa.nulls(len(codes), one.type)
        if index in bounds:
            grid, lowest, highest = bounds[index]
            ends = [lowest, min(lowest + grid.step, highest), highest]
            array = grid.array(np.array([*ends, *([lowest] * choices)]), None)
        parts.append(replace(one, codes=codes, array=array))
    return plain_table(parts, bounds, followers, _ENDS + choices, random)


def _allowed(one: ColumnParts, ends: Bounds | None, types: NumberTypes) -> Column:
    """Return whether a column has a value that may be released, as an expression."""
    own = column(one.name)
    known = [value for value in one.outcomes if value is not None]
    tests = [own.isNull() if None in one.outcomes else F.lit(False)]
    if known:
        if one.name in types.types:
            known = types.write_column(one.name, pa.array(known, one.type)).to_pylist()
        tests.append(F.coalesce(own.isin(known), F.lit(False)))
    if ends is not None:
        limits = ends.grid.array(np.array([ends.lowest, ends.highest]), None)
        low, high = types.write_column(one.name, limits).to_pylist()
        tests.append(F.coalesce(own.between(F.lit(low), F.lit(high)), F.lit(False)))
    return reduce(lambda first, second: first | second, tests)

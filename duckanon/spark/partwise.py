"""Releases that are made part by part: a tree sends rows into parts, and each part is released as a table in memory is.

The tree is fitted on a sample on the driver and written as SQL (`large.split_tree`); parts of fewer than k people
are joined with a neighbour before anything is made of them. What is published of a part comes from its own rows, so
that neither the sample nor the tree is seen in it; which rows were a part is told by neither order, files nor numbers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from duckanon._core.common.arrays import Floats
from duckanon.large.split_tree import Split, Tree, case, merged
from duckanon.spark.frames import column, duckdb_type, is_number, key_names, keyed, people, person_hash, quoted
from duckanon.spark.targets import Target, shuffled

SAMPLE = 100_000
"""Rows that the tree is fitted on."""
BOX = "box"
PART = "_duckanon_part"
_MEMBER = "_duckanon_member"
_PEOPLE = "_duckanon_people"
_ROWS = "_duckanon_rows"


@dataclass(frozen=True)
class Asked:
    """Options of every release in partitions, with names as the table spells them."""

    frame: DataFrame
    cols: list[str]
    kept: list[str]
    person: str | None
    k: int

    @property
    def columns(self) -> list[str]:
        """The columns that a part needs."""
        whose = [] if self.person is None or self.person in self.kept else [self.person]
        return [*self.cols, *self.kept, *whose]


@dataclass(frozen=True)
class Survey:
    """A table in a few numbers: rows, means, covariances with the number of rows as divisor, and a sample."""

    rows: int
    means: Floats
    covariances: Floats
    sample: dict[str, Floats]


def number_of(frame: DataFrame, name: str) -> str | None:
    """Return the SQL expression of a column's number, for times in microseconds; None for what is neither."""
    own, known = quoted(name), duckdb_type(frame, name)
    if is_number(frame, name):
        return f"CAST({own} AS DOUBLE)"
    if known == "DATE":
        return f"CAST(unix_date({own}) AS DOUBLE) * 86400000000D"
    if known == "TIMESTAMPTZ":
        return f"CAST(unix_micros({own}) AS DOUBLE)"
    if known == "TIMESTAMP":
        return f"CAST(unix_micros(CAST({own} AS TIMESTAMP)) AS DOUBLE)"
    return None


def surveyed(frame: DataFrame, names: Sequence[str], has_nulls: bool) -> Survey:
    """Count, add up and draw from a table; columns with NULLs are refused unless they may have them."""
    numbers = frame.select(*(F.expr(str(number_of(frame, name))).alias(key) for name, key in _keyed(names)))
    keys = key_names(names)
    pairs = [(one, other) for place, one in enumerate(keys) for other in keys[place:]]
    found = numbers.agg(
        F.count("*"),
        *(F.count(key) for key in keys),
        *(F.avg(key) for key in keys),
        *(F.covar_pop(one, other) for one, other in pairs),
    ).collect()[0]
    rows, size = found[0], len(keys)
    if rows == 0:
        raise ValueError("the table has no rows to look at.")
    for name, known in zip(names, found[1 : 1 + size], strict=True):
        if known < rows and not has_nulls:
            raise ValueError(f'column "{name}" has {rows - known} NULLs, which no interval contains; remove them.')
    covariances = np.zeros((size, size))
    for (one, other), value in zip(pairs, found[1 + 2 * size :], strict=True):
        place = keys.index(one), keys.index(other)
        covariances[place] = covariances[place[::-1]] = np.nan if value is None else value
    fraction = min(1.0, SAMPLE / rows)
    drawn = numbers.dropna()
    sample = (drawn if fraction == 1.0 else drawn.sample(fraction)).toArrow()
    of_column = {name: sample.column(key).to_numpy() for name, key in _keyed(names)}
    means = np.array([np.nan if mean is None else mean for mean in found[1 + size : 1 + 2 * size]], np.float64)
    return Survey(rows, means, covariances, of_column)


def _keyed(names: Sequence[str]) -> list[tuple[str, str]]:
    return list(zip(names, key_names(names), strict=True))


def _routed(asked: Asked, tree: Tree) -> DataFrame:
    """Return the rows with the part of each, after parts of fewer than k people were joined with others."""
    frame = asked.frame
    expressions = {name: str(number_of(frame, name)) for name in asked.cols if number_of(frame, name)}
    chosen = [column(name) for name in asked.columns]
    rows = frame.select(*chosen, F.expr(case(tree, expressions)).alias(PART))
    counts = {row[0]: row[1] for row in rows.groupBy(PART).agg(people(asked.person)).collect()}
    if sum(counts.values()) < asked.k or max(counts.values(), default=0) < asked.k:
        of_what = "records" if asked.person is None else "people"
        raise ValueError(f"k must be at most the number of {of_what} that can be partitioned; got {asked.k}.")
    homes = merged(tree, counts, asked.k)
    return frame.select(*chosen, F.expr(case(renumbered(tree, homes), expressions)).alias(PART))


def renumbered(tree: Tree, homes: dict[int, int]) -> Tree:
    """Return a tree whose parts are those that they were joined with."""
    if isinstance(tree, int):
        return homes[tree]
    return Split(tree.column, tree.threshold, renumbered(tree.left, homes), renumbered(tree.right, homes))


def made(
    asked: Asked,
    tree: Tree,
    release: Callable[[pa.Table], pa.Table],
    fields: list[tuple[str, T.DataType]],
    has_box: bool,
) -> DataFrame:
    """Release each part where its rows are.

    `release` makes the release of a part; it is sent to the executors, which must have duckanon installed. `fields` are
    name and type of what becomes of each column. Numbers of classes become others, which do not tell the part.
    """
    frame = asked.frame
    others = [name for name in asked.columns if name not in asked.cols]
    schema = [T.StructField(name, kind) for name, kind in fields]
    schema += [T.StructField(name, frame.schema[name].dataType) for name in others]
    if has_box:
        schema.insert(0, T.StructField(BOX, T.LongType()))
    names = [field.name for field in schema]

    def of_part(part: int, table: pa.Table) -> pa.Table:
        result = release(table)
        if has_box:
            own = result.column_names.index("_duckanon_box")
            number = result.column(own).to_numpy() + (part << 40)
            result = result.set_column(own, BOX, pa.array(number))
        return result.select(names)

    released = apply_to_parts(_routed(asked, tree), of_part, T.StructType(schema))
    if has_box:
        salt = int.from_bytes(os.urandom(8), "big", signed=True)
        released = released.withColumn(BOX, F.xxhash64(F.lit(salt), F.col(BOX)))
    return released


def apply_to_parts(rows: DataFrame, of_part: Callable[[int, pa.Table], pa.Table], schema: T.StructType) -> DataFrame:
    """Call a function with the number of each part and its rows, and put together what it returns.

    Spark looks columns up by names in which a dot is no dot: it gets names of our own.
    """
    names = [name for name in rows.columns if name != PART]
    keys = key_names(names)

    def of_group(table: pa.Table) -> pa.Table:
        place = table.column_names.index(PART)
        return of_part(table.column(place)[0].as_py(), table.select(keys).rename_columns(names))

    of_group.__annotations__ = {"table": pa.Table, "return": pa.Table}
    return rows.select(*keyed(names), PART).groupBy(PART).applyInArrow(of_group, schema)


def written(asked: Asked, released: DataFrame, row_count: int, target: Target) -> DataFrame:
    """Write a release, count its classes on the written rows, and publish it.

    Whose the rows are is in a first draft only, unless the column is kept.
    """
    names = [name for name in released.columns if name in (BOX, *asked.cols, *asked.kept)]
    proof = [] if asked.person is None else [person_hash(asked.person).alias(_MEMBER)]
    first = target.draft(shuffled(released.select(*map(column, names), *proof)))
    keys = key_names(asked.cols)
    members = [_MEMBER] if proof else []
    sized = first.select(*keyed(asked.cols), *members).groupBy(*keys)
    classes = sized.agg(F.count("*").alias(_ROWS), people(_MEMBER if proof else None).alias(_PEOPLE))
    found = classes.agg(F.min(_PEOPLE), F.coalesce(F.sum(_ROWS), F.lit(0))).collect()[0]
    if found[1] != row_count:
        raise ValueError("the written rows differ from those of the table; it may have changed in the meantime.")
    if found[0] < asked.k:
        raise ValueError(f"the written release has a class of fewer than {asked.k} people; it is not released.")
    if proof:
        last = target.draft(shuffled(first.select(*map(column, names))))
        refuse_other_classes(first, last, asked.cols)
    return target.publish()


def refuse_other_classes(first: DataFrame, last: DataFrame, cols: list[str]) -> None:
    """Refuse a second draft whose classes are not those of the first, which were counted."""
    keys = key_names(cols)
    before, after = (rows.select(*keyed(cols)).groupBy(*keys).agg(F.count("*").alias(_ROWS)) for rows in (first, last))
    if before.exceptAll(after).limit(1).count() or after.exceptAll(before).limit(1).count():
        raise ValueError("the written rows differ from those that were counted.")


def interval_type(kind: T.DataType) -> T.StructType:
    """Return the type of an interval of a column."""
    return T.StructType([T.StructField("lo", kind), T.StructField("hi", kind)])


def plain(table: pa.Table) -> pa.Table:
    """Return a table without dictionaries."""
    for place, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(place, field.name, table.column(place).cast(field.type.value_type))
    return table


def paired(table: pa.Table, names: Sequence[str], high: str) -> pa.Table:
    """Return a table whose columns of lower and upper ends have become intervals."""
    for name in names:
        ends = [table.column(own).combine_chunks() for own in (name, high + name)]
        interval = pa.StructArray.from_arrays(ends, ["lo", "hi"])
        table = table.set_column(table.column_names.index(name), name, interval)
    return table

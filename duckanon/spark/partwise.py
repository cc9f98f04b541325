"""Releases that are made part by part: a tree sends rows into parts, and each part is released as a table in memory is.

The tree is fitted on a sample on the driver and written as SQL (`large.split_tree`); parts of fewer than k people
are joined with a neighbour before anything is made of them. What is published of a part comes from its own rows, so
that neither the sample nor the tree is seen in it; which rows were a part is told by neither order, files nor numbers.

Releases whose classes of at least k people are made part by part: `boxes`, `microaggregate` and `recode`.
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
from duckanon._core.common.declare import Options
from duckanon._core.common.faces import face_of
from duckanon._core.common.parameters import Kept, read_weights
from duckanon._core.common.rules import OneOf
from duckanon._core.numbers.ends import HIGH_PREFIX
from duckanon._methods.boxes import boxed_table as boxing
from duckanon._methods.boxes.declared import BOX, BOXES
from duckanon._methods.boxes.shaping import ColumnMoments, WholeTable, combine_sensitivities
from duckanon._methods.microaggregate import microaggregated_table as grouping
from duckanon._methods.microaggregate.declared import MICROAGGREGATE
from duckanon._methods.recode import local_recoding as recoding
from duckanon._methods.recode.declared import RECODE
from duckanon.large.split_tree import Split, Tree, case, fit_tree, merge_parts
from duckanon.spark.frames import (
    column,
    duckdb_type,
    find_columns,
    find_ordered_columns,
    is_number,
    key_columns,
    key_names,
    other_column,
    people,
    person_hash,
    public,
    quote,
)
from duckanon.spark.plans import find_kept_columns, hierarchy_rows
from duckanon.spark.targets import Target, shuffle, target_called

SAMPLE = 100_000
"""Rows that the tree is fitted on."""
BOX_COLUMN = "box"
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
        person = [] if self.person is None or self.person in self.kept else [self.person]
        return [*self.cols, *self.kept, *person]


@dataclass(frozen=True)
class Survey:
    """A table in a few numbers: rows, means, covariances with the number of rows as divisor, and a sample."""

    rows: int
    means: Floats
    covariances: Floats
    sample: dict[str, Floats]


def number_of(frame: DataFrame, name: str) -> str | None:
    """Return the SQL expression of a column's number, for times in microseconds; None for what is neither."""
    value, known = quote(name), duckdb_type(frame, name)
    if is_number(frame, name):
        return f"CAST({value} AS DOUBLE)"
    if known == "DATE":
        return f"CAST(unix_date({value}) AS DOUBLE) * 86400000000D"
    if known == "TIMESTAMPTZ":
        return f"CAST(unix_micros({value}) AS DOUBLE)"
    if known == "TIMESTAMP":
        return f"CAST(unix_micros(CAST({value} AS TIMESTAMP)) AS DOUBLE)"
    return None


def survey_table(frame: DataFrame, names: Sequence[str], has_nulls: bool) -> Survey:
    """Count, add up and draw from a table; columns with NULLs are refused unless they may have them."""
    numbers = frame.select(*(F.expr(str(number_of(frame, name))).alias(key) for name, key in _key_columns(names)))
    keys = key_names(names)
    pairs = [(key, other) for place, key in enumerate(keys) for other in keys[place:]]
    sums = numbers.agg(
        F.count("*"),
        *(F.count(key) for key in keys),
        *(F.avg(key) for key in keys),
        *(F.covar_pop(key, other) for key, other in pairs),
    ).collect()[0]
    rows, size = sums[0], len(keys)
    if rows == 0:
        raise ValueError("the table has no rows to look at.")
    for name, known in zip(names, sums[1 : 1 + size], strict=True):
        if known < rows and not has_nulls:
            raise ValueError(f'column "{name}" has {rows - known} NULLs, which no interval contains; remove them.')
    covariances = np.zeros((size, size))
    for (key, other), value in zip(pairs, sums[1 + 2 * size :], strict=True):
        place = keys.index(key), keys.index(other)
        covariances[place] = covariances[place[::-1]] = np.nan if value is None else value
    fraction = min(1.0, SAMPLE / rows)
    drawn = numbers.dropna()
    sample = (drawn if fraction == 1.0 else drawn.sample(fraction)).toArrow()
    of_column = {name: sample.column(key).to_numpy() for name, key in _key_columns(names)}
    means = np.array([np.nan if mean is None else mean for mean in sums[1 + size : 1 + 2 * size]], np.float64)
    return Survey(rows, means, covariances, of_column)


def _key_columns(names: Sequence[str]) -> list[tuple[str, str]]:
    return list(zip(names, key_names(names), strict=True))


def _route_rows(asked: Asked, tree: Tree) -> DataFrame:
    """Return the rows with the part of each, after parts of fewer than k people were joined with others."""
    frame = asked.frame
    expressions = {name: str(number_of(frame, name)) for name in asked.cols if number_of(frame, name)}
    chosen = [column(name) for name in asked.columns]
    rows = frame.select(*chosen, F.expr(case(tree, expressions)).alias(PART))
    counts = {row[0]: row[1] for row in rows.groupBy(PART).agg(people(asked.person)).collect()}
    if sum(counts.values()) < asked.k or max(counts.values(), default=0) < asked.k:
        of_what = "records" if asked.person is None else "people"
        raise ValueError(f"k must be at most the number of {of_what} that can be partitioned; got {asked.k}.")
    homes = merge_parts(tree, counts, asked.k)
    return frame.select(*chosen, F.expr(case(renumber_parts(tree, homes), expressions)).alias(PART))


def renumber_parts(tree: Tree, homes: dict[int, int]) -> Tree:
    """Return a tree whose parts are those that they were joined with."""
    if isinstance(tree, int):
        return homes[tree]
    return Split(tree.column, tree.threshold, renumber_parts(tree.left, homes), renumber_parts(tree.right, homes))


def release_parts(
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
    rest = [name for name in asked.columns if name not in asked.cols]
    schema = [T.StructField(name, kind) for name, kind in fields]
    schema += [T.StructField(name, frame.schema[name].dataType) for name in rest]
    if has_box:
        schema.insert(0, T.StructField(BOX_COLUMN, T.LongType()))
    names = [field.name for field in schema]

    def of_part(part: int, table: pa.Table) -> pa.Table:
        result = release(table)
        if has_box:
            position = result.column_names.index("_duckanon_box")
            number = result.column(position).to_numpy() + (part << 40)
            result = result.set_column(position, BOX_COLUMN, pa.array(number))
        return result.select(names)

    released = apply_to_parts(_route_rows(asked, tree), of_part, T.StructType(schema))
    if has_box:
        salt = int.from_bytes(os.urandom(8), "big", signed=True)
        released = released.withColumn(BOX_COLUMN, F.xxhash64(F.lit(salt), F.col(BOX_COLUMN)))
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
    return rows.select(*key_columns(names), PART).groupBy(PART).applyInArrow(of_group, schema)


def write_release(asked: Asked, released: DataFrame, row_count: int, target: Target) -> DataFrame:
    """Write a release, count its classes on the written rows, and publish it.

    Whose the rows are is in a first draft only, unless the column is kept.
    """
    names = [name for name in released.columns if name in (BOX_COLUMN, *asked.cols, *asked.kept)]
    proof = [] if asked.person is None else [person_hash(asked.person).alias(_MEMBER)]
    first = target.draft(shuffle(released.select(*map(column, names), *proof)))
    keys = key_names(asked.cols)
    members = [_MEMBER] if proof else []
    sized = first.select(*key_columns(asked.cols), *members).groupBy(*keys)
    classes = sized.agg(F.count("*").alias(_ROWS), people(_MEMBER if proof else None).alias(_PEOPLE))
    counts = classes.agg(F.min(_PEOPLE), F.coalesce(F.sum(_ROWS), F.lit(0))).collect()[0]
    if counts[1] != row_count:
        raise ValueError("the written rows differ from those of the table; it may have changed in the meantime.")
    if counts[0] < asked.k:
        raise ValueError(f"the written release has a class of fewer than {asked.k} people; it is not released.")
    if proof:
        last = target.draft(shuffle(first.select(*map(column, names))))
        refuse_other_classes(first, last, asked.cols)
    return target.publish()


def refuse_other_classes(first: DataFrame, last: DataFrame, cols: list[str]) -> None:
    """Refuse a second draft whose classes are not those of the first, which were counted."""
    keys = key_names(cols)
    before, after = (
        rows.select(*key_columns(cols)).groupBy(*keys).agg(F.count("*").alias(_ROWS)) for rows in (first, last)
    )
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


def pair_ends(table: pa.Table, names: Sequence[str], high: str) -> pa.Table:
    """Return a table whose columns of lower and upper ends have become intervals."""
    for name in names:
        ends = [table.column(own).combine_chunks() for own in (name, high + name)]
        interval = pa.StructArray.from_arrays(ends, ["lo", "hi"])
        table = table.set_column(table.column_names.index(name), name, interval)
    return table


PART_ROWS = {"boxes": 200_000, "fast": 100_000, "mdav": 10_000, "recode": 50_000}
"""Rows of a part: what an executor works on at a time. MDAV takes the square of them."""


@face_of(BOXES.having(BOX.having(rule=OneOf("parts", "rounded"))), "spark")
@public
def boxes(frame: DataFrame, options: Options, *, to: str) -> DataFrame:
    """Write a table whose numbers and dates are intervals shared by at least k people.

    Args:
        frame, to: As in `generalize`; ``keep`` names columns one by one.

    Returns:
        What was written, after its classes were counted.
    """
    asked, part_options = _read_arguments(frame, options, only_numbers=True)
    names = asked.cols
    with target_called(frame.sparkSession, to) as target:
        survey = survey_table(frame, names, has_nulls=False)
        moments = ColumnMoments.from_covariances(survey.means, survey.covariances)
        sensitivity = combine_sensitivities(moments, names, boxing.read_statistics(options["statistics"], names))
        empty = frame.select(*map(column, names)).limit(0).toArrow()
        distances = boxing.read_distances(empty, names, options["epsilon"])
        apart = [distances.get(name, 0.0) for name in names]
        weights = sensitivity.at(list(survey.sample.values()))
        tree = fit_tree(survey.sample, weights, survey.rows, asked.k, PART_ROWS["boxes"], options["l"], apart)

        def release(part: pa.Table) -> pa.Table:
            result = boxing.boxes(part, **part_options, whole=WholeTable(sensitivity))
            return plain(pair_ends(result, names, HIGH_PREFIX))

        fields = [(name, interval_type(frame.schema[name].dataType)) for name in names]
        released = release_parts(asked, tree, release, fields, has_box=True)
        return write_release(asked, released, survey.rows, target)


@face_of(MICROAGGREGATE, "spark")
@public
def microaggregate(frame: DataFrame, options: Options, *, to: str) -> DataFrame:
    """Write a table whose numbers and dates are what groups of at least k similar records have in common.

    Args:
        frame, to: As in `generalize`; the method works within parts of the table, and ``keep`` names columns one by
            one.

    Returns:
        What was written, after its classes were counted.
    """
    is_interval = options["label"] == "interval"
    asked, part_options = _read_arguments(frame, options, only_numbers=True)
    names = asked.cols
    with target_called(frame.sparkSession, to) as target:
        survey = survey_table(frame, names, has_nulls=False)
        variances = np.diag(survey.covariances) * (survey.rows / max(1, survey.rows - 1))
        deviations = [float(one) for one in np.sqrt(variances)]
        tree = fit_tree(survey.sample, _inverse(deviations), survey.rows, asked.k, PART_ROWS[options["method"]])

        def release(part: pa.Table) -> pa.Table:
            result = grouping.microaggregate(part, **part_options, deviations=deviations)
            return plain(pair_ends(result, names, HIGH_PREFIX) if is_interval else result)

        fields = [(name, frame.schema[name].dataType) for name in names]
        if is_interval:
            fields = [(name, interval_type(kind)) for name, kind in fields]
        else:  # means of numbers
            fields = [(name, T.DoubleType() if is_number(frame, name) else kind) for name, kind in fields]
        released = release_parts(asked, tree, release, fields, has_box=is_interval)
        return write_release(asked, released, survey.rows, target)


@face_of(RECODE, "spark")
@public
def recode(frame: DataFrame, options: Options, *, to: str) -> DataFrame:
    """Write a table whose columns are generalized class by class, such that every class has at least k people.

    Args:
        frame, to: As in `generalize`.

    Returns:
        What was written, after its classes were counted.
    """
    asked, part_options = _read_arguments(frame, options)
    weights = read_weights(options["weights"], asked.cols, find_columns(frame, "cols", options["cols"]))
    part_options = {
        **part_options,
        "hierarchies": hierarchy_rows(options["hierarchies"]),
        "weights": dict(zip(asked.cols, weights, strict=True)),
    }
    with target_called(frame.sparkSession, to) as target:
        tree, rows = _tree(asked)

        def release(part: pa.Table) -> pa.Table:  # sent to the executors: the frame, which is in `asked`, must not be
            return plain(recoding.recode([part], **part_options))

        released = release_parts(asked, tree, release, [(name, T.StringType()) for name in asked.cols], has_box=False)
        return write_release(asked, released, rows, target)


def _tree(asked: Asked) -> tuple[Tree, int]:
    """Fit a tree to the columns that hold numbers; tables of one part need none."""
    numeric = [name for name in asked.cols if number_of(asked.frame, name)]
    if not numeric:
        rows = asked.frame.count()
        if rows > PART_ROWS["recode"]:
            raise ValueError(
                f"cols must have a column of numbers or dates where there are more than {PART_ROWS['recode']:,} rows, "
                "to part them by; got none."
            )
        return 0, rows
    survey = survey_table(asked.frame, numeric, has_nulls=True)
    if not len(survey.sample[numeric[0]]):
        return 0, survey.rows
    sample = {name: _without_extremes(values, asked.k) for name, values in survey.sample.items()}
    weights = _inverse([float(np.std(values)) for values in sample.values()])
    return fit_tree(sample, weights, survey.rows, asked.k, PART_ROWS["recode"]), survey.rows


def _without_extremes(values: Floats, k: int) -> Floats:
    """Put the k-th least and the k-th largest number in the place of all beyond: nobody's value alone decides a cut."""
    if len(values) < 2 * k:
        return values
    ends = np.partition(values, [k - 1, len(values) - k])[[k - 1, len(values) - k]]
    return np.clip(values, *ends)


def _inverse(deviations: list[float]) -> list[float]:
    """Return the weights of columns by which all vary as much; a column of one value has none."""
    return [1.0 / one if one > 0 else 0.0 for one in deviations]


def _read_arguments(frame: DataFrame, options: Options, only_numbers: bool = False) -> tuple[Asked, Options]:
    """Find the columns of a release, and the options of its parts, which release the column of people too."""
    names = find_ordered_columns(frame, options["cols"])
    for name in names if only_numbers else ():
        if number_of(frame, name) is None:
            raise ValueError(f'cols must hold numbers, dates or timestamps; got "{name}".')
    person = other_column(frame, "person", options["person"], names)
    kept, allowed = (
        find_kept_columns(frame, columns, names) for columns in (options["kept"].keep, options["kept"].narrowing)
    )
    asked = Asked(frame, names, kept, person, options["k"])
    released = Kept([*kept, *([person] if person else [])], allowed)
    return asked, {**options, "cols": names, "person": person, "kept": released}

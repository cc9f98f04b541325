"""Parts of a table whose records are drawn or swapped among themselves, and the release that is put together of them.

A tree sends similar rows into a part; where it has nothing to cut by, and where rows should be as mixed as the table's
are, they are in a part at random. A part is sorted before anything is drawn, and its random numbers come from its
number and a secret of the call: a task that runs again makes the same rows.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from duckanon._core.common.arrays import Floats
from duckanon._core.encoding.arrow import is_moment
from duckanon._core.encoding.parts import read_doubles
from duckanon.large.split_tree import Tree, case, fit_tree, merge_parts
from duckanon.spark import partwise
from duckanon.spark.frames import people
from duckanon.spark.partwise import PART
from duckanon.spark.schemes import Surveyed, chance
from duckanon.spark.targets import Target, shuffle

_PEOPLE = "_duckanon_people"
_PIECES = 2**20  # numbers of the random pieces of a part


class Part(NamedTuple):
    """The rows and the people of a part."""

    rows: int
    people: int


class Parted(NamedTuple):
    """Rows with the number of the part of each, and the parts by number."""

    rows: DataFrame
    parts: dict[int, Part]


def tree_of(survey: Surveyed, part_rows: int) -> Tree:
    """Fit the tree that sends similar rows into parts, on the sample's numbers and dates."""
    expressions = _expressions(survey)
    if survey.rows <= part_rows or not expressions:
        return 0
    numbers = {name: _numbers(survey.sample.column(name)) for name in expressions}
    known = ~np.any([np.isnan(values) for values in numbers.values()], axis=0)
    columns = {name: values[known] for name, values in numbers.items()}
    weights: list[float] = [1.0 / float(values.std()) if values.std() > 0 else 0.0 for values in columns.values()]
    if known.sum() < 2 or not any(weights):
        return 0
    return fit_tree(columns, weights, survey.rows, 2, part_rows)


def send_to_parts(survey: Surveyed, tree: Tree, part_rows: int, fewest: int) -> Parted:
    """Send the rows into parts of at least so many people; parts of far too many rows are cut at random."""
    frame, person = survey.frame, survey.person
    homes = _count_rows(frame.withColumn(PART, F.expr(case(tree, _expressions(survey)))), person)
    if max(part.people for part in homes.values()) < fewest:
        tree, homes = 0, _count_rows(frame.withColumn(PART, F.lit(0)), person)
    if max(part.people for part in homes.values()) < fewest:
        largest = max(part.people for part in homes.values())
        raise ValueError(f"at least {fewest:,} {'rows' if person is None else 'people'} are needed; got {largest:,}.")
    home_of = merge_parts(tree, {number: part.people for number, part in homes.items()}, fewest)
    joined = partwise.renumber_parts(tree, home_of)
    sizes: dict[int, Part] = {}
    for number, part in homes.items():
        before = sizes.get(home_of[number], Part(0, 0))
        sizes[home_of[number]] = Part(before.rows + part.rows, max(before.people, part.people))
    pieces = {
        number: max(1, min(math.ceil(part.rows / (1.5 * part_rows)), part.people // (2 * fewest)))
        for number, part in sizes.items()
    }
    routed = frame.withColumn(PART, F.expr(case(joined, _expressions(survey))).cast("bigint") * _PIECES)
    if max(pieces.values()) > 1:
        count = F.lit(1)
        for number, several in pieces.items():
            if several > 1:
                count = F.when(F.col(PART) == number * _PIECES, F.lit(several)).otherwise(count)
        routed = routed.withColumn(PART, F.col(PART) + F.floor(chance(person) * count))
    parts = _count_rows(routed, person)
    if min(part.people for part in parts.values()) < fewest:
        raise ValueError("the table has other rows than before; it may have changed in the meantime.")
    return Parted(routed, parts)


def release_parts(
    parted: Parted, schema: T.StructType, release: Callable[[int, pa.Table, np.random.Generator], pa.Table]
) -> DataFrame:
    """Release each part where its rows are.

    `release` takes the number of a part, its rows and where chance comes from; it is sent to the executors, which must
    have duckanon installed.
    """
    secret = int.from_bytes(os.urandom(16), "big")
    rows_of = {number: part.rows for number, part in parted.parts.items()}

    def of_part(number: int, table: pa.Table) -> pa.Table:
        if table.num_rows != rows_of.get(number):
            raise ValueError("the table has other rows than before; it may have changed in the meantime.")
        keys = [str(place) for place in range(table.num_columns)]
        order = pc.sort_indices(table.rename_columns(keys), sort_keys=[(key, "ascending") for key in keys])
        random = np.random.default_rng([secret, number])
        result = partwise.plain(release(number, table.take(order), random))
        return result.take(pa.array(random.permutation(result.num_rows)))

    return partwise.apply_to_parts(parted.rows, of_part, schema)


def write_release(
    released: DataFrame, fewest: int, most: int, target: Target, refuse: Callable[[DataFrame], None]
) -> DataFrame:
    """Write a release of `fewest` to `most` rows, count it on what was written, and give it its name.

    `refuse` looks through what was written, and raises where it breaks a promise.
    """
    draft = target.draft(shuffle(released))
    if not fewest <= draft.count() <= most:
        raise ValueError("the written rows differ from those that were released.")
    refuse(draft)
    return target.publish()


def _expressions(survey: Surveyed) -> dict[str, str]:
    """Return the SQL of the columns that the tree may cut by, as the numbers that the sample has."""
    numbers = {name: partwise.number_of(survey.frame, name) for name in survey.names}
    return {name: sql for name, sql in numbers.items() if sql is not None}


def _numbers(values: pa.ChunkedArray) -> Floats:
    array = values.combine_chunks()
    micros = pa.types.is_date32(array.type)
    numbers = read_doubles(array)
    return numbers * 86_400_000_000.0 if micros and is_moment(array.type) else numbers


def _count_rows(rows: DataFrame, person: str | None) -> dict[int, Part]:
    counts = rows.groupBy(PART).agg(F.count("*"), people(person).alias(_PEOPLE)).collect()
    return {int(row[0]): Part(row[1], row[2]) for row in counts}

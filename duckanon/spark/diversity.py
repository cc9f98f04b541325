"""Diversity of sensitive values within classes, and their distance from the table: `l_diversity`, `t_closeness`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from duckanon._core.common.arguments import refuse_unless
from duckanon._core.common.rules import OneOf
from duckanon.spark import frames
from duckanon.spark.frames import column, equal, is_ordered, key_columns, key_names, people, public, without_nulls

VALUE = "_duckanon_value"
MEMBER = "_duckanon_member"
SIZE = "_duckanon_size"
TOTAL = "_duckanon_total"
FARNESS = "_duckanon_farness"
_SIZES = "_duckanon_sizes"
_SHOWN = 10
"""The largest l for which the c of recursive diversity is shown, as in SQL."""


@public
def l_diversity(
    frame: DataFrame, cols: Sequence[str], sensitive: str, nulls: str = "value", person: str | None = None
) -> DataFrame:
    """Return distinct, entropy and recursive l-diversity of a sensitive column, each with the class that is worst.

    Args:
        frame, cols, nulls, person: As in `k_anonymity`; in ``sensitive`` NULL is a value in any case.
        sensitive: The column that nobody should learn.

    Returns:
        One row for each measure, with the columns of `anon.l_diversity`.
    """
    members = _read_arguments(frame, cols, sensitive, nulls, person)
    classes = diversity(members).persist()
    try:
        lowest = classes.agg(F.min("distinct_l").alias("l"), F.min("entropy_l").alias("entropy_l")).collect()[0]
        if lowest["l"] is None:
            raise ValueError("the table has no rows to look at.")
        scores = {0: F.col("distinct_l").cast("double"), 1: F.round("entropy_l", 12)}
        for level in range(2, max(3, min(lowest["l"], _SHOWN) + 1)):
            rest = rest_from(level)
            scores[level] = -F.when(rest == 0, F.lit(float("inf"))).otherwise(F.col("largest") / rest)
        worst = classes.agg(*(F.min(score) for score in scores.values())).collect()[0]
        is_worst = {level: (score == worst[level], level > 1) for level, score in scores.items()}
        shown = _values_of_classes(members, classes, is_worst)
    finally:
        classes.unpersist()
    rows = []
    for level in scores:
        measure = "distinct" if level == 0 else "entropy" if level == 1 else "recursive"
        least = float(lowest["l"] if level == 0 else lowest["entropy_l"] if level == 1 else level)
        rows.append((measure, least, None if level < 2 else -worst[level], *shown[level]))
    return frame.sparkSession.createDataFrame(rows, _schema(frame, members.cols, "measure string, l double, c double"))


@public
def t_closeness(
    frame: DataFrame,
    cols: Sequence[str],
    sensitive: str,
    distance: str = "auto",
    nulls: str = "value",
    person: str | None = None,
) -> DataFrame:
    """Return how far the sensitive values of a class are from those of the table, and the class where it is farthest.

    Args:
        frame, cols, sensitive, nulls, person: As in `l_diversity`.
        distance: ``ordered``, ``equal``, or ``auto``: ordered for numbers, times and booleans.

    Returns:
        One row, with the columns of `anon.t_closeness`.
    """
    refuse_unless(OneOf("auto", "ordered", "equal"), "distance", distance)
    members = _read_arguments(frame, cols, sensitive, nulls, person)
    if distance == "auto":
        distance = "ordered" if is_ordered(members.rows, VALUE) else "equal"
    far = farness(members, distance == "ordered").persist()
    try:
        total = F.col(TOTAL)
        average = F.sum(F.col(FARNESS) * total) / F.when(F.sum(total) > 0, F.sum(total))
        summary = far.agg(F.max(FARNESS), average, F.count("*")).collect()[0]
        if summary[2] == 0:
            raise ValueError("the table has no rows to look at.")
        is_worst = F.round(FARNESS, 12) == F.round(F.lit(summary[0]), 12)
        named = _values_of_classes(members, far, {0: (is_worst, True)})[0]
    finally:
        far.unpersist()
    of_row = "distance string, t double, average_t double, classes bigint"
    return frame.sparkSession.createDataFrame([(distance, *summary, *named)], _schema(frame, members.cols, of_row))


def _read_arguments(frame: DataFrame, cols: Sequence[str], sensitive: object, nulls: object, person: object) -> Members:
    names = frames.find_columns(frame, "cols", cols)
    value = frames.other_column(frame, "sensitive", sensitive, names)
    if value is None:
        raise ValueError("sensitive must be the name of a column; got NULL.")
    person_column = frames.other_column(frame, "person", person, names)
    if person_column == value:
        raise ValueError(f'person must not be the sensitive column; got "{person}".')
    return members_of(without_nulls(frame, names, nulls), names, value, person_column)


def _values_of_classes(
    members: Members, classes: DataFrame, chosen: dict[int, tuple[Column, bool]]
) -> dict[int, tuple[tuple[object, ...], int]]:
    """Return the values of classes that are shown, and their sizes.

    Of several classes that are equally bad it is the one with the most, and of these the first or the last by its
    values, NULL after all others: `chosen` has, by a number of the caller's, which are bad, and whether it is the last.
    """
    keys = members.keys
    named = [part for key in keys for part in (F.col(key).isNull(), F.col(key).alias(key))]
    extremes = []
    for is_bad, is_last in chosen.values():
        place = F.when(is_bad, F.struct((F.col(TOTAL) if is_last else -F.col(TOTAL)), *named))
        extremes.append(F.max(place) if is_last else F.min(place))
    places = classes.agg(*extremes).collect()[0]
    class_keys = [tuple(place[key] for key in keys) for place in places]
    if not members.has_people:
        sizes = {key: abs(place[0]) for key, place in zip(class_keys, places, strict=True)}
    else:
        types = {field.name: field.dataType.simpleString() for field in members.rows.schema.fields}
        schema = ", ".join(f"{key}_shown {types[key]}" for key in keys)
        session = members.rows.sparkSession
        wanted = session.createDataFrame(list(dict.fromkeys(class_keys)), schema)
        rows = members.rows.join(wanted, equal(members.rows, wanted, keys, [f"{key}_shown" for key in keys]))
        sized = Members(rows, members.cols, True).class_sizes().collect()
        sizes = {tuple(row[key] for key in keys): row[SIZE] for row in sized}
    return {level: (key, sizes[key]) for level, key in zip(chosen, class_keys, strict=True)}


def _schema(frame: DataFrame, cols: list[str], first: str) -> str:
    """Return the columns of a measure, and the struct of the class that is worst."""
    fields = ", ".join(f"`{name.replace('`', '``')}`: {frame.schema[name].dataType.simpleString()}" for name in cols)
    return f"{first}, worst_class struct<{fields}>, worst_class_size bigint"


@dataclass(frozen=True)
class Members:
    """Sensitive values of people, by class."""

    rows: DataFrame  # a row of the table each: the class's columns under names of our own, the value, and whose it is
    cols: list[str]  # the class's columns as the table calls them
    has_people: bool  # whether people are counted, not rows; a row of nobody then counts as none

    @property
    def keys(self) -> list[str]:
        """The names of our own of the class's columns."""
        return key_names(self.cols)

    def class_sizes(self, *names: str) -> DataFrame:
        """Return how many rows or people each class has, or each combination with other columns."""
        return self.rows.groupBy(*self.keys, *names).agg(people(MEMBER if self.has_people else None).alias(SIZE))


def members_of(frame: DataFrame, cols: list[str], sensitive: str, person: str | None) -> Members:
    """Return who has which sensitive value in which class."""
    member = F.lit(None) if person is None else column(person)
    rows = frame.select(*key_columns(cols), column(sensitive).alias(VALUE), member.alias(MEMBER))
    return Members(rows, cols, person is not None)


def diversity(members: Members) -> DataFrame:
    """Return for each class the sum of its counts, its values, the largest counts, and exp of the entropy."""
    size = F.col(SIZE)
    counted = (
        members.class_sizes(VALUE)
        .groupBy(*members.keys)
        .agg(
            F.sum(size).alias(TOTAL),
            F.count(F.when(size > 0, 1)).alias("distinct_l"),
            F.max(size).alias("largest"),
            F.sum(size * F.log(F.greatest(size, F.lit(1)))).alias("logs"),
            F.sort_array(F.collect_list(size), asc=False).alias(_SIZES),
        )
    )
    entropy = F.greatest(F.exp(F.log(F.col(TOTAL)) - F.col("logs") / F.col(TOTAL)), F.lit(1.0))
    return counted.withColumn("entropy_l", F.when(F.col(TOTAL) == 0, 0.0).otherwise(entropy)).drop("logs")


def rest_from(level: int) -> Column:
    """Return the sum of a class's counts from the level-th largest on."""
    return F.col(TOTAL) - F.aggregate(
        F.slice(F.col(_SIZES), 1, level - 1), F.lit(0).cast("bigint"), lambda one, two: one + two
    )


def farness(members: Members, ordered: bool) -> DataFrame:
    """Return for each class the sum of its counts, and how far its values are from those of the whole table.

    The values of the whole table are counted on the cluster, of people once for each value that they have in any class,
    and their counts come to the driver: one number a value. A class of which no row says whose it is is as far away as
    can be, 1.
    """
    cells = members.class_sizes(VALUE)
    keys = members.keys
    counted = people(MEMBER if members.has_people else None).alias("people")
    totals = members.rows.groupBy(VALUE).agg(counted).where(F.col("people") > 0)
    by_value = Window.orderBy(F.col(VALUE).asc_nulls_last())
    running = totals.withColumn("place", F.row_number().over(by_value))
    counts = np.array([row[0] for row in running.orderBy("place").select("people").collect()], np.int64)
    values = running.withColumnRenamed(VALUE, "_duckanon_of_all")
    placed = cells.join(values, F.col(VALUE).eqNullSafe(F.col("_duckanon_of_all")), "left").drop("_duckanon_of_all")
    total = F.sum(SIZE).over(Window.partitionBy(*keys)).alias(TOTAL)
    placed = placed.select(*keys, SIZE, "people", "place", total)
    everybody = float(counts.sum())
    if ordered:
        distance = _move_distance(placed, keys, counts)
    else:
        excess = F.greatest(F.col(SIZE) * everybody - F.col("people") * F.col(TOTAL), F.lit(0.0))
        distance = placed.groupBy(*keys, TOTAL).agg(F.sum(F.when(F.col(SIZE) > 0, excess)).alias("moved"))
    far = F.when(F.col(TOTAL) == 0, 1.0).otherwise(F.col("moved") / (F.col(TOTAL) * everybody))
    return distance.select(*keys, TOTAL, far.alias(FARNESS))


def _move_distance(placed: DataFrame, keys: list[str], counts: DataFrame) -> DataFrame:
    """Return the earth mover's distance of each class, times its people and everybody.

    A class's own cumulative share changes only at its own values: from one to the next, that of all is below it up to a
    crossing and above it from there on. The sums on both sides are differences of running sums.
    """
    until = np.cumsum(counts)
    everybody, places = float(until[-1]) if len(until) else 0.0, len(until)
    reached = until / everybody if len(until) else until.astype(np.float64)
    areas = np.concatenate([[0.0], np.cumsum(until.astype(np.float64))])
    before = np.concatenate([[0], until])

    def find_crossings(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            place, following, own_sum, total = (
                batch.column(name).to_numpy(zero_copy_only=False) for name in ("place", "following", "own", TOTAL)
            )
            below = np.searchsorted(reached, own_sum / total, side="right")
            crossing = np.maximum(np.minimum(below, following - 1), place - 1)
            own_area = (own_sum * (2 * crossing - place - following + 2)).astype(np.float64)
            area = 2 * (areas[place] - (before[place]) - areas[crossing])
            yield pa.RecordBatch.from_arrays(
                [*(batch.column(key) for key in keys), batch.column(TOTAL), pa.array(own_area), pa.array(area)],
                [*keys, TOTAL, "own_area", "area"],
            )

    ranked = Window.partitionBy(*keys).orderBy("place")
    own_sum = F.sum(SIZE).over(ranked.rowsBetween(Window.unboundedPreceding, Window.currentRow))
    following = F.coalesce(F.lead("place").over(ranked), F.lit(places + 1))
    steps = placed.where(F.col(SIZE) > 0).select(
        *keys,
        TOTAL,
        F.col("place").cast("bigint").alias("place"),
        own_sum.cast("bigint").alias("own"),
        following.cast("bigint").alias("following"),
    )
    types = {field.name: field.dataType.simpleString() for field in steps.schema.fields}
    schema = ", ".join([*(f"{key} {types[key]}" for key in keys), f"{TOTAL} bigint, own_area double, area double"])
    sums = steps.mapInArrow(find_crossings, schema).groupBy(*keys, TOTAL).agg(F.sum("own_area"), F.sum("area"))
    sums = sums.toDF(*keys, TOTAL, "own_area", "area")
    moved = F.col("own_area") * everybody + (F.col("area") + float(areas[-1])) * F.col(TOTAL)
    known = sums.select(*keys, TOTAL, (moved / max(places - 1, 1)).alias("moved"))
    nobody = placed.where(F.col(TOTAL) == 0).select(*keys, TOTAL, F.lit(None).cast("double").alias("moved")).distinct()
    return known.unionAll(nobody)

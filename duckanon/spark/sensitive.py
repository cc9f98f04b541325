"""Sensitive values by class: people, number of different values, and distance from the whole table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812

from duckanon.spark.frames import column, key_names, keyed, people

VALUE = "_duckanon_value"
MEMBER = "_duckanon_member"
SIZE = "_duckanon_size"
TOTAL = "_duckanon_total"
FARNESS = "_duckanon_farness"
_SIZES = "_duckanon_sizes"


@dataclass(frozen=True)
class Members:
    """Sensitive values of people, by class."""

    rows: Any  # a row of the table each: the class's columns under names of our own, the value, and whose it is
    cols: list[str]  # the class's columns as the table calls them
    has_people: bool  # whether people are counted, not rows; a row of nobody then counts as none

    @property
    def keys(self) -> list[str]:
        """The names of our own of the class's columns."""
        return key_names(self.cols)

    def class_sizes(self, *others: str) -> Any:
        """Return how many rows or people each class has, or each combination with other columns."""
        return self.rows.groupBy(*self.keys, *others).agg(people(MEMBER if self.has_people else None).alias(SIZE))


def members_of(frame: Any, cols: list[str], sensitive: str, person: str | None) -> Members:
    """Return who has which sensitive value in which class."""
    whose = F.lit(None) if person is None else column(person)
    rows = frame.select(*keyed(cols), column(sensitive).alias(VALUE), whose.alias(MEMBER))
    return Members(rows, cols, person is not None)


def diversity(members: Members) -> Any:
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


def rest_from(level: int) -> Any:
    """Return the sum of a class's counts from the level-th largest on."""
    return F.col(TOTAL) - F.aggregate(
        F.slice(F.col(_SIZES), 1, level - 1), F.lit(0).cast("bigint"), lambda one, two: one + two
    )


def farness(members: Members, ordered: bool) -> Any:
    """Return for each class the sum of its counts, and how far its values are from those of the whole table.

    The values of the whole table are counted on the cluster, and their counts come to the driver: one number a value.
    A class of which no row says whose it is is as far away as can be, 1.
    """
    cells = members.class_sizes(VALUE)
    keys = members.keys
    totals = cells.where(F.col(SIZE) > 0).groupBy(VALUE).agg(F.sum(SIZE).alias("people"))
    by_value = Window.orderBy(F.col(VALUE).asc_nulls_last())
    running = totals.withColumn("place", F.row_number().over(by_value))
    counts = np.array([row[0] for row in running.orderBy("place").select("people").collect()], np.int64)
    values = running.withColumnRenamed(VALUE, "_duckanon_of_all")
    placed = cells.join(values, F.col(VALUE).eqNullSafe(F.col("_duckanon_of_all")), "left").drop("_duckanon_of_all")
    total = F.sum(SIZE).over(Window.partitionBy(*keys)).alias(TOTAL)
    placed = placed.select(*keys, SIZE, "people", "place", total)
    everybody = float(counts.sum())
    if ordered:
        distance = _moved(placed, keys, counts)
    else:
        excess = F.greatest(F.col(SIZE) * everybody - F.col("people") * F.col(TOTAL), F.lit(0.0))
        distance = placed.groupBy(*keys, TOTAL).agg(F.sum(F.when(F.col(SIZE) > 0, excess)).alias("moved"))
    far = F.when(F.col(TOTAL) == 0, 1.0).otherwise(F.col("moved") / (F.col(TOTAL) * everybody))
    return distance.select(*keys, TOTAL, far.alias(FARNESS))


def _moved(placed: Any, keys: list[str], counts: Any) -> Any:
    """Return the earth mover's distance of each class, times its people and everybody.

    A class's own cumulative share changes only at its own values: from one to the next, that of all is below it up to a
    crossing and above it from there on. The sums on both sides are differences of running sums.
    """
    until = np.cumsum(counts)
    everybody, places = float(until[-1]) if len(until) else 0.0, len(until)
    reached = until / everybody if len(until) else until.astype(np.float64)
    areas = np.concatenate([[0.0], np.cumsum(until.astype(np.float64))])
    before = np.concatenate([[0], until])

    def crossed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            place, following, own, total = (
                batch.column(name).to_numpy(zero_copy_only=False) for name in ("place", "following", "own", TOTAL)
            )
            below = np.searchsorted(reached, own / total, side="right")
            crossing = np.maximum(np.minimum(below, following - 1), place - 1)
            own_area = (own * (2 * crossing - place - following + 2)).astype(np.float64)
            area = 2 * (areas[place] - (before[place]) - areas[crossing])
            yield pa.RecordBatch.from_arrays(
                [*(batch.column(key) for key in keys), batch.column(TOTAL), pa.array(own_area), pa.array(area)],
                [*keys, TOTAL, "own_area", "area"],
            )

    ranked = Window.partitionBy(*keys).orderBy("place")
    own = F.sum(SIZE).over(ranked.rowsBetween(Window.unboundedPreceding, Window.currentRow))
    following = F.coalesce(F.lead("place").over(ranked), F.lit(places + 1))
    steps = placed.where(F.col(SIZE) > 0).select(
        *keys,
        TOTAL,
        F.col("place").cast("bigint").alias("place"),
        own.cast("bigint").alias("own"),
        following.cast("bigint").alias("following"),
    )
    types = {field.name: field.dataType.simpleString() for field in steps.schema.fields}
    schema = ", ".join([*(f"{key} {types[key]}" for key in keys), f"{TOTAL} bigint, own_area double, area double"])
    sums = steps.mapInArrow(crossed, schema).groupBy(*keys, TOTAL).agg(F.sum("own_area"), F.sum("area"))
    sums = sums.toDF(*keys, TOTAL, "own_area", "area")
    moved = F.col("own_area") * everybody + (F.col("area") + float(areas[-1])) * F.col(TOTAL)
    known = sums.select(*keys, TOTAL, (moved / max(places - 1, 1)).alias("moved"))
    nobody = placed.where(F.col(TOTAL) == 0).select(*keys, TOTAL, F.lit(None).cast("double").alias("moved")).distinct()
    return known.unionAll(nobody)

"""The number of people who share what is known of them: `k_anonymity` and `class_sizes`."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from duckanon.spark import frames
from duckanon.spark.frames import column, key_names, keyed, public, without_nulls

_LIMITS = (2, 3, 5, 10, 20)
_SIZE = "_duckanon_size"
_ROWS = "_duckanon_rows"
_MEMBER = "_duckanon_member"


@public
def k_anonymity(
    frame: DataFrame, cols: Sequence[str], nulls: str = "value", person: str | None = None, alpha: float = 1
) -> DataFrame:
    """Return the k of a table as one row: its smallest class, and how many rows are in small ones.

    Args:
        frame: The table.
        cols: The columns that an attacker may know.
        nulls: ``value``: NULL is a value; ``drop``: rows with a NULL in cols are left out.
        person: The column that says whose row it is; None: every row is a person.
        alpha: 1: it is for a way to look at NULLs that is not there on Spark.

    Returns:
        One row, with the columns of `anon.k_anonymity`.
    """
    cols, person = _asked(frame, cols, person, alpha)
    known = without_nulls(frame, cols, nulls)
    classes = _classes(known, cols, person)
    under = [
        F.coalesce(F.sum(F.when(F.col(_SIZE) < limit, F.col(_ROWS))), F.lit(0)).alias(f"rows_under_{limit}")
        for limit in _LIMITS
    ]
    summary = classes.agg(
        F.min(_SIZE).alias("k"),
        F.count("*").alias("classes"),
        F.sum(_ROWS).alias("rows"),
        F.count(F.when(F.col(_SIZE) == 1, 1)).alias("singletons"),
        *under,
    )
    if person is None:
        found = summary.select("*", F.col("rows").alias("people"), F.col("k").alias("linked_k"))
    else:
        members = known.select(*keyed(cols), column(person).alias(_MEMBER)).where(F.col(_MEMBER).isNotNull())
        linked = _linked(members.distinct(), key_names(cols))
        found = summary.crossJoin(
            linked.agg(
                F.coalesce(F.sum(_SIZE), F.lit(0)).alias("people"), F.coalesce(F.min(_SIZE), F.lit(0)).alias("linked_k")
            )
        )
    row = found.collect()[0]
    if row["classes"] == 0:
        raise ValueError("the table has no rows to look at.")
    return frame.sparkSession.createDataFrame([row], found.schema)


@public
def class_sizes(
    frame: DataFrame, cols: Sequence[str], nulls: str = "value", person: str | None = None, alpha: float = 1
) -> DataFrame:
    """Return the histogram of class sizes: classes and rows of each, and the share of the rows up to it.

    Args:
        frame, cols, nulls, person, alpha: As in `k_anonymity`.

    Returns:
        One row for each size, with the columns of `anon.class_sizes`, in the order of the sizes.
    """
    cols, person = _asked(frame, cols, person, alpha)
    classes = _classes(without_nulls(frame, cols, nulls), cols, person)
    sizes = classes.groupBy(F.col(_SIZE).alias("class_size")).agg(
        F.count("*").alias("classes"), F.sum(_ROWS).alias("rows")
    )
    until = Window.orderBy("class_size").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    everything = Window.orderBy("class_size").rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    share = F.sum("rows").over(until) / F.sum("rows").over(everything)
    return sizes.withColumn("cumulative_fraction", share).orderBy("class_size")


def _asked(frame: DataFrame, cols: Sequence[str], person: object, alpha: object) -> tuple[list[str], str | None]:
    found = frames.named_columns(frame, "cols", cols)
    frames.refuse_alpha(alpha)
    return found, frames.other_column(frame, "person", person, found)


def _classes(frame: DataFrame, cols: list[str], person: str | None) -> DataFrame:
    """Return the classes with their rows and people."""
    keys = key_names(cols)
    if person is None:
        counted = frame.select(*keyed(cols)).groupBy(*keys).agg(F.count("*").alias(_ROWS))
        return counted.withColumn(_SIZE, F.col(_ROWS))
    members = (
        frame.select(*keyed(cols), column(person).alias(_MEMBER)).groupBy(*keys, _MEMBER).agg(F.count("*").alias(_ROWS))
    )
    return members.groupBy(*keys).agg(F.count(_MEMBER).alias(_SIZE), F.sum(_ROWS).alias(_ROWS))


def _linked(members: DataFrame, keys: list[str]) -> DataFrame:
    """Return how many people have rows in the same set of classes, which is told by a number and a sum of hashes.

    Spark's hash of (NULL, 1) is that of (1, NULL), so that it must be told which are NULL.
    """
    told = [part for key in keys for part in (F.col(key), F.col(key).isNull())]
    hashed = F.xxhash64(F.xxhash64(*told)).cast("decimal(20,0)")
    sets = members.groupBy(_MEMBER).agg(F.count("*").alias("_duckanon_classes"), F.sum(hashed).alias("_duckanon_sum"))
    return sets.groupBy("_duckanon_classes", "_duckanon_sum").agg(F.count("*").alias(_SIZE))

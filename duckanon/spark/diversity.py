"""Diversity of sensitive values within classes: `l_diversity` and `t_closeness`."""

from __future__ import annotations

from typing import Any

from pyspark.sql import functions as F  # noqa: N812

from duckanon._core.common.arguments import refuse_unless
from duckanon._core.common.rules import OneOf
from duckanon.spark.frames import equal, is_ordered, named_columns, other_column, public, without_nulls
from duckanon.spark.sensitive import FARNESS, SIZE, TOTAL, VALUE, Members, diversity, farness, members_of, rest_from

_SHOWN = 10
"""The largest l for which the c of recursive diversity is shown, as in SQL."""


@public
def l_diversity(frame: Any, cols: Any, sensitive: str, nulls: str = "value", person: str | None = None) -> Any:
    """Return distinct, entropy and recursive l-diversity of a sensitive column, each with the class that is worst.

    Args:
        frame, cols, nulls, person: As in `k_anonymity`; in ``sensitive`` NULL is a value in any case.
        sensitive: The column that nobody should learn.

    Returns:
        One row for each measure, with the columns of `anon.l_diversity`.
    """
    members = _asked(frame, cols, sensitive, nulls, person)
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
        shown = _shown(members, classes, is_worst)
    finally:
        classes.unpersist()
    found = []
    for level in scores:
        what = "distinct" if level == 0 else "entropy" if level == 1 else "recursive"
        least = float(lowest["l"] if level == 0 else lowest["entropy_l"] if level == 1 else level)
        found.append((what, least, None if level < 2 else -worst[level], *shown[level]))
    return frame.sparkSession.createDataFrame(found, _schema(frame, members.cols, "measure string, l double, c double"))


@public
def t_closeness(
    frame: Any, cols: Any, sensitive: str, distance: str = "auto", nulls: str = "value", person: str | None = None
) -> Any:
    """Return how far the sensitive values of a class are from those of the table, and the class where it is farthest.

    Args:
        frame, cols, sensitive, nulls, person: As in `l_diversity`.
        distance: ``ordered``, ``equal``, or ``auto``: ordered for numbers, times and booleans.

    Returns:
        One row, with the columns of `anon.t_closeness`.
    """
    refuse_unless(OneOf("auto", "ordered", "equal"), "distance", distance)
    members = _asked(frame, cols, sensitive, nulls, person)
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
        named = _shown(members, far, {0: (is_worst, True)})[0]
    finally:
        far.unpersist()
    of_row = "distance string, t double, average_t double, classes bigint"
    return frame.sparkSession.createDataFrame([(distance, *summary, *named)], _schema(frame, members.cols, of_row))


def _asked(frame: Any, cols: Any, sensitive: Any, nulls: Any, person: Any) -> Members:
    found = named_columns(frame, "cols", cols)
    value = other_column(frame, "sensitive", sensitive, found)
    if value is None:
        raise ValueError("sensitive must be the name of a column; got NULL.")
    whose = other_column(frame, "person", person, found)
    if whose == value:
        raise ValueError(f'person must not be the sensitive column; got "{person}".')
    return members_of(without_nulls(frame, found, nulls), found, value, whose)


def _shown(members: Members, classes: Any, chosen: dict[int, tuple[Any, bool]]) -> dict[int, tuple[Any, int]]:
    """Return the values of classes that are shown, and their sizes.

    Of several classes that are equally bad it is the one with the most, and of these the first or the last by its
    values, NULL after all others: `chosen` has, by a number of the caller's, which are bad, and whether it is the last.
    """
    keys = members.keys
    named = [part for key in keys for part in (F.col(key).isNull(), F.col(key).alias(key))]
    told = []
    for is_bad, is_last in chosen.values():
        place = F.when(is_bad, F.struct((F.col(TOTAL) if is_last else -F.col(TOTAL)), *named))
        told.append(F.max(place) if is_last else F.min(place))
    places = classes.agg(*told).collect()[0]
    found = [tuple(place[key] for key in keys) for place in places]
    if not members.has_people:
        sizes = {key: abs(place[0]) for key, place in zip(found, places, strict=True)}
    else:
        types = {field.name: field.dataType.simpleString() for field in members.rows.schema.fields}
        schema = ", ".join(f"{key}_shown {types[key]}" for key in keys)
        session = members.rows.sparkSession
        wanted = session.createDataFrame(list(dict.fromkeys(found)), schema)
        rows = members.rows.join(wanted, equal(members.rows, wanted, keys, [f"{key}_shown" for key in keys]))
        sized = Members(rows, members.cols, True).class_sizes().collect()
        sizes = {tuple(row[key] for key in keys): row[SIZE] for row in sized}
    return {level: (key, sizes[key]) for level, key in zip(chosen, found, strict=True)}


def _schema(frame: Any, cols: list[str], first: str) -> Any:
    """Return the columns of a measure, and the struct of the class that is worst."""
    fields = ", ".join(f"`{name.replace('`', '``')}`: {frame.schema[name].dataType.simpleString()}" for name in cols)
    return f"{first}, worst_class struct<{fields}>, worst_class_size bigint"

"""Columns generalized until no one stands out: `generalize`."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from duckanon._bridge.catalog import connect
from duckanon._bridge.sql_text import literal
from duckanon._core.common.declare import Options
from duckanon._core.common.faces import face_of
from duckanon._core.privacy.narrowing import COARSER_TOO, describe_judgements
from duckanon._methods.generalize.declared import GENERALIZE
from duckanon._methods.generalize.sample_class_sizes import sample_class_size
from duckanon._render.plans import PlannedColumn, read_plan
from duckanon.spark.diversity import FARNESS, MEMBER, TOTAL, VALUE, Members, diversity, farness, rest_from
from duckanon.spark.frames import column, equal, is_ordered, key_columns, key_names, people, person_hash, public
from duckanon.spark.partwise import refuse_other_classes
from duckanon.spark.plans import PlanOptions, find_kept_columns, fit_plan, label_columns, read_plan_options
from duckanon.spark.targets import Target, shuffle, target_called

_PEOPLE = "_duckanon_people"
_ROWS = "_duckanon_rows"
_CELLS_LOOKED_AT = 2_000_000


@face_of(GENERALIZE, "spark")
@public
def generalize(frame: DataFrame, options: Options, *, to: str) -> DataFrame:
    """Write the columns of a table, generalized until every class has at least k people, and the columns to keep.

    Args:
        frame: As in `plan`; ``keep`` names columns one by one.
        to: A path, or the name of a table; it must be new. Over Spark Connect a table.

    Returns:
        What was written, after the promise was counted on it.
    """
    plan_options = read_plan_options(frame, options)
    kept = find_kept_columns(frame, options["kept"].keep, plan_options.cols)
    allowed = find_kept_columns(frame, options["kept"].narrowing, plan_options.cols)
    with target_called(frame.sparkSession, to) as target:
        plan = fit_plan(frame, plan_options, options)
        _refuse_narrowing(frame, plan_options, kept, allowed, plan)
        return _write_classes(frame, plan_options, read_plan(plan), kept, target)


def _write_classes(
    frame: DataFrame, options: PlanOptions, columns: Sequence[PlannedColumn], kept: list[str], target: Target
) -> DataFrame:
    """Leave out small classes, write the others, and count what was promised on what was written.

    What a promise is counted by and does not leave (whose row it is, the sensitive value) is in a first draft; the
    release is written from that one.
    """
    proof = _proof(options)
    coarse = label_columns(frame, columns, kept, proof)
    population = None if not options.has_population_table else label_columns(options.population, columns, [])
    least = _least(frame, options)
    classes = _classes(coarse, options, population).persist()
    try:
        is_small = F.col(_PEOPLE) < least
        counted = classes.agg(F.sum(_ROWS), F.coalesce(F.sum(F.when(is_small, F.col(_ROWS))), F.lit(0))).collect()[0]
        row_count, small_rows = counted
        if small_rows > options.max_suppressed_fraction * row_count + 1e-6:
            raise ValueError(
                f"{small_rows} rows are in classes of fewer than {least} people, more than may be suppressed."
            )
        keys = key_names(options.cols)
        large = classes.where(~is_small).select(*keys)
        left = coarse.join(large, equal(coarse, large, options.cols, keys), "left_semi")
        first = target.draft(shuffle(left))
    finally:
        classes.unpersist()
    _refuse_broken(first, options, population, least, row_count - small_rows)
    if proof:
        last = target.draft(shuffle(first.select(*map(column, [*options.cols, *kept]))))
        refuse_other_classes(first, last, options.cols)
    return target.publish()


def _proof(options: PlanOptions) -> list[Column]:
    """Return what a promise is counted by and does not leave; people by a hash, which may only count too few."""
    proof = []
    if options.person is not None:
        proof.append(person_hash(options.person).alias(MEMBER))
    if options.sensitive is not None:
        proof.append(column(options.sensitive).alias(VALUE))
    return proof


def _least(frame: DataFrame, options: PlanOptions) -> int:
    """Return how many people a class must have."""
    if options.population_size is None:
        return options.k
    sampled = frame.agg(people(options.person)).collect()[0][0]
    share = options.beta * (1 - options.max_suppressed_fraction)
    return sample_class_size(options.k, share, options.population_size, sampled) if sampled else options.k


def _members(coarse: DataFrame, options: PlanOptions) -> Members:
    member = F.lit(None) if options.person is None else F.col(MEMBER)
    value = F.lit(None) if options.sensitive is None else F.col(VALUE)
    rows = coarse.select(*key_columns(options.cols), value.alias(VALUE), member.alias(MEMBER))
    return Members(rows, options.cols, options.person is not None)


def _classes(coarse: DataFrame, options: PlanOptions, population: DataFrame) -> DataFrame:
    """Return the classes with their rows and people; nobody where too much would be known of them."""
    keys = key_names(options.cols)
    members = _members(coarse, options)
    counted = people(None if options.person is None else MEMBER).alias(_PEOPLE)
    classes = members.rows.groupBy(*keys).agg(F.count("*").alias(_ROWS), counted)
    if population is not None:
        names = [f"{key}_elsewhere" for key in keys]
        sided = population.toDF(*names).groupBy(*names).agg(F.count("*").alias("_duckanon_elsewhere"))
        classes = classes.drop(_PEOPLE).join(sided, equal(classes, sided, keys, names), "left")
        elsewhere = F.coalesce(F.col("_duckanon_elsewhere"), F.lit(0)).alias(_PEOPLE)
        classes = classes.select(*keys, _ROWS, elsewhere)
    if options.sensitive is None:
        return classes
    names = [f"{key}_spread" for key in keys]
    judged = _spread(members, options, is_ordered(coarse, VALUE)).toDF(*names, "_duckanon_is_spread")
    joined = classes.join(judged, equal(classes, judged, keys, names), "left")
    is_spread = F.coalesce(F.col("_duckanon_is_spread"), F.lit(False))
    return joined.select(*keys, _ROWS, F.when(is_spread, F.col(_PEOPLE)).otherwise(0).alias(_PEOPLE))


def _spread(members: Members, options: PlanOptions, ordered: bool) -> DataFrame:
    """Return for each class whether its sensitive values are spread as is asked; a sum of logarithms may be off."""
    keys, asked = members.keys, options.spread
    rest = rest_from(int(asked.l))
    of_kind = {
        "distinct": F.col("distinct_l") >= asked.l,
        "entropy": F.col("entropy_l") >= asked.l - 1e-9,
        "recursive": (rest > 0) & (F.col("largest") < asked.c * rest),
    }
    judged = diversity(members).select(*keys, of_kind[asked.l_kind].alias("_duckanon_is_spread"))
    if asked.t is None:
        return judged
    names = [f"{key}_far" for key in keys]
    far = farness(members, ordered).toDF(*names, TOTAL, FARNESS)
    joined = judged.join(far, equal(judged, far, keys, names), "left")
    is_near = F.coalesce(F.col(FARNESS) <= asked.t + 1e-9, F.lit(False))
    return joined.select(*keys, (F.col("_duckanon_is_spread") & is_near).alias("_duckanon_is_spread"))


def _refuse_broken(written: DataFrame, options: PlanOptions, population: DataFrame, least: int, row_count: int) -> None:
    """Count what was promised on what was written; a distance is that from the rows that are left."""
    counts = _classes(written, options, population).agg(F.min(_PEOPLE), F.coalesce(F.sum(_ROWS), F.lit(0))).collect()[0]
    if counts[1] != row_count:
        raise ValueError("the written rows differ from those of the table; it may have changed in the meantime.")
    if counts[0] is not None and counts[0] < least:
        raise ValueError("the written release does not keep l or t: its classes are not diverse enough.")


def _refuse_narrowing(
    frame: DataFrame, options: PlanOptions, kept: list[str], allowed: list[str], plan: pa.Table
) -> None:
    """Refuse columns to keep that tell more of the others than their labels do, as a sample of the rows shows."""
    looked_at = [name for name in kept if name not in allowed and name != options.person]
    if not looked_at:
        return
    row_count = frame.count()
    wanted = max(5_000, 10 * math.isqrt(row_count), _CELLS_LOOKED_AT // (7 * len(options.cols) * len(kept)))
    rows = frame.select(*map(column, [*options.cols, *kept]))
    fraction = min(1.0, 1.1 * wanted / max(1, row_count))
    sample = (rows if fraction == 1.0 else rows.sample(fraction)).toArrow()
    with connect() as connection:
        connection.register("_spark_sample", sample)
        connection.register("_spark_plan", plan)
        pairs = connection.execute(
            f"""SELECT kept_column, column_name, narrows
                FROM anon.kept_column_risk('_spark_sample', {literal(options.cols)}, {literal(looked_at)},
                                           plan := '_spark_plan')"""
        ).fetchall()
    if refused := describe_judgements(pairs, COARSER_TOO):
        raise ValueError(refused)

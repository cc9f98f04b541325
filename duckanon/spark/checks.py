"""The number of people who share what is known of them: `k_anonymity` and `class_sizes`.

The risk of every row to be found by somebody who knows its columns: `individual_risk`.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from duckanon._core.common.arguments import refuse_unless
from duckanon._core.common.rules import Number, OneOf
from duckanon.spark import frames
from duckanon.spark.frames import column, equal, key_columns, key_names, public, without_nulls

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
    cols, person = _read_arguments(frame, cols, person, alpha)
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
        report = summary.select("*", F.col("rows").alias("people"), F.col("k").alias("linked_k"))
    else:
        members = known.select(*key_columns(cols), column(person).alias(_MEMBER)).where(F.col(_MEMBER).isNotNull())
        linked = _count_linked(members.distinct(), key_names(cols))
        report = summary.crossJoin(
            linked.agg(
                F.coalesce(F.sum(_SIZE), F.lit(0)).alias("people"), F.coalesce(F.min(_SIZE), F.lit(0)).alias("linked_k")
            )
        )
    row = report.collect()[0]
    if row["classes"] == 0:
        raise ValueError("the table has no rows to look at.")
    return frame.sparkSession.createDataFrame([row], report.schema)


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
    cols, person = _read_arguments(frame, cols, person, alpha)
    classes = _classes(without_nulls(frame, cols, nulls), cols, person)
    sizes = classes.groupBy(F.col(_SIZE).alias("class_size")).agg(
        F.count("*").alias("classes"), F.sum(_ROWS).alias("rows")
    )
    until = Window.orderBy("class_size").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    everything = Window.orderBy("class_size").rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    share = F.sum("rows").over(until) / F.sum("rows").over(everything)
    return sizes.withColumn("cumulative_fraction", share).orderBy("class_size")


def _read_arguments(
    frame: DataFrame, cols: Sequence[str], person: object, alpha: object
) -> tuple[list[str], str | None]:
    names = frames.find_columns(frame, "cols", cols)
    frames.refuse_alpha(alpha)
    return names, frames.other_column(frame, "person", person, names)


def _classes(frame: DataFrame, cols: list[str], person: str | None) -> DataFrame:
    """Return the classes with their rows and people."""
    keys = key_names(cols)
    if person is None:
        counted = frame.select(*key_columns(cols)).groupBy(*keys).agg(F.count("*").alias(_ROWS))
        return counted.withColumn(_SIZE, F.col(_ROWS))
    members = (
        frame.select(*key_columns(cols), column(person).alias(_MEMBER))
        .groupBy(*keys, _MEMBER)
        .agg(F.count("*").alias(_ROWS))
    )
    return members.groupBy(*keys).agg(F.count(_MEMBER).alias(_SIZE), F.sum(_ROWS).alias(_ROWS))


def _count_linked(members: DataFrame, keys: list[str]) -> DataFrame:
    """Return how many people have rows in the same set of classes, which is told by a number and a sum of hashes.

    Spark's hash of (NULL, 1) is that of (1, NULL), so that it must be told which are NULL.
    """
    fields = [part for key in keys for part in (F.col(key), F.col(key).isNull())]
    hashed = F.xxhash64(F.xxhash64(*fields)).cast("decimal(20,0)")
    sets = members.groupBy(_MEMBER).agg(F.count("*").alias("_duckanon_classes"), F.sum(hashed).alias("_duckanon_sum"))
    return sets.groupBy("_duckanon_classes", "_duckanon_sum").agg(F.count("*").alias(_SIZE))


_RESULTS = ("sample_frequency", "population_frequency", "risk", "household_risk")
_RISK_MEMBER = "_duckanon_member"
_HOME = "_duckanon_home"
_WEIGHT = "_duckanon_weight"


@public
def individual_risk(
    frame: DataFrame,
    cols: Sequence[str],
    weight: str | None = None,
    population: float | None = None,
    household: str | None = None,
    person: str | None = None,
    method: str = "exact",
    nulls: str = "value",
    alpha: float = 1,
) -> DataFrame:
    """Return every row with the probability that somebody who knows its columns finds the right person.

    Args:
        frame, cols, nulls, person, alpha: As in `k_anonymity`.
        weight: The column that says how many people of the population a row stands for.
        population: How many people the table is a simple random sample of, where there are no weights.
        household: The column that says which people belong together.
        method: ``exact``, or ``approximate`` as sdcMicro has it.

    Returns:
        The table's rows, and the columns that `anon.individual_risk` adds.
    """
    cols = frames.find_columns(frame, "cols", cols)
    frames.refuse_alpha(alpha)
    refuse_unless(OneOf("exact", "approximate"), "method", method)
    refuse_unless(Number(above=0, null=True), "population", population)
    weight, household, person = (
        frames.other_column(frame, parameter, name, cols)
        for parameter, name in (("weight", weight), ("household", household), ("person", person))
    )
    if weight is not None and population is not None:
        raise ValueError(
            "population must be NULL where weight is given, since weights say how many people there are; "
            f"got {population}."
        )
    for name in frame.columns:
        if name.lower() in _RESULTS:
            raise ValueError(f'the table must be without a column called like a result; got "{name}": rename it first.')
    known = without_nulls(frame, cols, nulls)
    if known.isEmpty():
        raise ValueError("the table has no rows to look at.")
    _refuse_weights(known, weight)
    keys = key_names(cols)
    records = known.select(
        *key_columns(cols),
        (F.lit(None) if person is None else column(person)).alias(_RISK_MEMBER),
        (F.lit(None) if household is None else column(household)).alias(_HOME),
        (F.lit(None) if weight is None else column(weight)).cast("double").alias(_WEIGHT),
    )
    risks = _class_risks(records, keys, person is not None, population, method)
    result = known.join(risks, equal(known, risks, cols, keys)).drop(*keys)
    if household is None:
        return result.withColumn("household_risk", F.lit(None).cast("double"))
    homes = _household_risks(records, risks, keys, person is not None)
    joined = result.join(homes, column(household) == F.col(_HOME), "left").drop(_HOME)
    risk = F.coalesce(F.col("_duckanon_found"), F.col("risk"))
    return joined.withColumn("household_risk", risk).drop("_duckanon_found")


def _refuse_weights(known: DataFrame, weight: str | None) -> None:
    if weight is None:
        return
    value = column(weight).try_cast("double")
    is_fit = F.coalesce((value > 0) & (value < float("inf")), F.lit(False))
    if known.agg(F.count(F.when(~is_fit, 1))).collect()[0][0]:
        raise ValueError("weight must name a column of positive numbers; got one that holds NULL or something else.")


def _class_risks(
    records: DataFrame, keys: list[str], has_people: bool, population: float | None, method: str
) -> DataFrame:
    """Return each class with its people, those for whom they stand, and its risk."""
    if has_people:  # a person has one weight, the largest of the rows'
        people = records.groupBy(*keys, _RISK_MEMBER).agg(F.max(_WEIGHT).alias(_WEIGHT))
        counted, weighed = F.count(_RISK_MEMBER), F.sum(F.when(F.col(_RISK_MEMBER).isNotNull(), F.col(_WEIGHT)))
    else:
        people, counted, weighed = records, F.count("*"), F.sum(_WEIGHT)
    per_record = 1.0
    if population is not None:
        number = records.agg(frames.people(_RISK_MEMBER if has_people else None)).collect()[0][0]
        if population < number:
            of_what = "people" if has_people else "rows"
            raise ValueError(f"population must be at least the number of {of_what}, {number}; got {population}.")
        per_record = population / number if number else 1.0
    classes = people.groupBy(*keys).agg(
        counted.cast("double").alias("sample_frequency"), weighed.alias("population_frequency")
    )
    stands_for = F.coalesce(F.col("population_frequency"), F.col("sample_frequency") * per_record)
    return classes.withColumn("population_frequency", stands_for).withColumn("risk", F.expr(_RISK[method]))


def _household_risks(records: DataFrame, risks: DataFrame, keys: list[str], has_people: bool) -> DataFrame:
    """Return for each household the probability that at least one of its people is found.

    A person with several rows counts once, with the largest risk.
    """
    sided = risks.select(*(F.col(key).alias(f"{key}_of_risk") for key in keys), "risk")
    named = records.where(F.col(_HOME).isNotNull())
    joined = named.join(sided, equal(named, sided, keys, [f"{key}_of_risk" for key in keys]))
    if has_people:
        joined = (
            joined.where(F.col(_RISK_MEMBER).isNotNull()).groupBy(_HOME, _RISK_MEMBER).agg(F.max("risk").alias("risk"))
        )
    return joined.groupBy(_HOME).agg((1 - F.product(1 - F.col("risk"))).alias("_duckanon_found"))


# The expected 1/F of anon._expected_risk: its sums, of which each term is made from the one before, since Spark has no
# lgamma.
_P = "(sample_frequency / population_frequency)"
_FEW = f"""
    power({_P} / ({_P} - 1), sample_frequency - 1) * {_P} / (1 - {_P}) * -ln({_P})
    - aggregate(sequence(1, 5), 0D, (total, step) -> total + CASE
        WHEN step < sample_frequency THEN power({_P} / ({_P} - 1), sample_frequency - step) / step ELSE 0D END)"""
_MANY = f"""
    {_P} / sample_frequency * aggregate(
        sequence(1, least(400, greatest(24, cast(2400 / sample_frequency AS INT))) - 1),
        named_struct('term', 1D, 'total', 1D),
        (made, step) -> named_struct(
            'term', made.term * (1 - {_P}) * step / (sample_frequency + step),
            'total', made.total + made.term * (1 - {_P}) * step / (sample_frequency + step)),
        made -> made.total)"""
_EXPECTED = f"CASE WHEN {_P} < 0.5D AND sample_frequency < 6 THEN {_FEW} ELSE {_MANY} END"
_LARGE = f"{_P} / (sample_frequency - 1 + {_P})"
_NOBODY = "WHEN sample_frequency = 0 THEN 1D WHEN population_frequency <= sample_frequency THEN 1 / sample_frequency"
_RISK = {
    "exact": f"CASE {_NOBODY} ELSE {_EXPECTED} END",
    "approximate": f"CASE {_NOBODY} WHEN sample_frequency > 2 THEN {_LARGE} ELSE {_EXPECTED} END",
}

"""Plans: fitted on the driver to combinations that the cluster has counted, and applied by it: `plan`, `apply_plan`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from duckanon._core.common.declare import Options
from duckanon._core.common.faces import face_of
from duckanon._core.common.parameters import Sensitive
from duckanon._methods.generalize import plans as fitting
from duckanon._methods.generalize.declared import PLAN
from duckanon._methods.generalize.hierarchies import HierarchyRow
from duckanon._render import expressions
from duckanon._render.dialects import DIALECTS
from duckanon._render.expressions import Lookup, Recoder
from duckanon._render.plans import PlannedColumn, read_plan
from duckanon._render.queries import check_kind
from duckanon.spark.frames import (
    column,
    duckdb_type,
    find_column,
    find_columns,
    is_ordered,
    other_column,
    person_hash,
    public,
)

MOST_COMBINATIONS = 20_000_000
"""Different combinations of values that the driver plans for: some gigabytes."""
_SPARK = DIALECTS["spark"]
_SENSITIVE = "_duckanon_sensitive"
_PERSON = "_duckanon_person"
_SIZE = "_duckanon_size"


@dataclass(frozen=True)
class PlanOptions:
    """The options of `anon.plan` that are needed again, with names as the table spells them."""

    cols: list[str]  # in the order of the table, as SQL has them
    named: Sequence[str]  # in the order of the call, to which a list of weights is parallel
    k: int
    beta: float
    population: DataFrame
    max_suppressed_fraction: float
    person: str | None
    spread: Sensitive

    @property
    def sensitive(self) -> str | None:
        """The column whose values are to be diverse."""
        return self.spread.sensitive

    @property
    def population_size(self) -> float | None:
        """The number of people that the table is a sample of; None where they are at hand, or unspecified."""
        return None if self.population is None or self.has_population_table else float(self.population)

    @property
    def has_population_table(self) -> bool:
        """Whether the people of the population are at hand."""
        return hasattr(self.population, "columns")


def read_plan_options(frame: DataFrame, options: Options) -> PlanOptions:
    """Find the columns that a call names, or refuse it."""
    named = find_columns(frame, "cols", options["cols"])
    population, spread = options["population"], options["sensitive"]
    if hasattr(population, "columns"):
        find_columns(population, "population", named)
    return PlanOptions(
        [name for name in frame.columns if name in named],
        named,
        options["k"],
        options["beta"],
        population,
        options["max_suppressed_fraction"],
        other_column(frame, "person", options["person"], named),
        replace(spread, sensitive=other_column(frame, "sensitive", spread.sensitive, named)),
    )


@face_of(PLAN, "spark")
@public
def plan(frame: DataFrame, options: Options) -> DataFrame:
    """Return how each of the columns is to be generalized so that every class has at least k people: a row per bucket.

    The cluster counts the different combinations of values; the driver searches among them.

    Args:
        frame: The table. A population may be a DataFrame, one row a person, and a hierarchy is one: values, labels of
            level 1, of level 2, ...

    Returns:
        The plan, as `anon.plan` has it.
    """
    return frame.sparkSession.createDataFrame(fit_plan(frame, read_plan_options(frame, options), options))


def fit_plan(frame: DataFrame, plan_options: PlanOptions, options: Options) -> pa.Table:
    """Count combinations on the cluster and fit a plan on the driver."""
    for name in plan_options.cols:
        if duckdb_type(frame, name) == "OTHER":
            kind = frame.schema[name].dataType.simpleString()
            raise ValueError(
                f'column "{name}", {kind}, has a type that cannot be generalized; cast it to string first.'
            )
    secret = F.lit(None).cast("bigint") if plan_options.sensitive is None else column(plan_options.sensitive)
    person = F.lit(None).cast("bigint")
    if plan_options.person is not None:
        person = person_hash(plan_options.person)
    columns = [column(name).alias(name) for name in plan_options.cols]
    table = _count_combinations(frame.select(*columns, secret.alias(_SENSITIVE), person.alias(_PERSON)))
    if plan_options.sensitive is not None:
        table = table.set_column(len(plan_options.cols), _SENSITIVE, _ranks(table.column(_SENSITIVE)))
    population = (
        _count_combinations(plan_options.population.select(*columns)) if plan_options.has_population_table else None
    )
    plan = fitting.plan(
        [table if table.num_rows else None, population],
        **{
            name: options[name] for name in ("k", "beta", "population", "weights", "methods", "max_suppressed_fraction")
        },
        cols=list(plan_options.named),
        hierarchies=hierarchy_rows(options["hierarchies"]),
        person=plan_options.person,
        sensitive=plan_options.spread,
        is_ordered=plan_options.sensitive is not None and is_ordered(frame, plan_options.sensitive),
    )
    released = pa.nulls(plan.num_rows, pa.struct([(name, pa.string()) for name in plan_options.cols]))
    return plan.append_column("released", released)


def _count_combinations(rows: DataFrame) -> pa.Table:
    """Return the different combinations with their numbers, on the driver."""
    counted = rows.groupBy(*(column(name) for name in rows.columns)).agg(F.count("*").alias(_SIZE))
    table = counted.limit(MOST_COMBINATIONS + 1).toArrow()
    if table.num_rows > MOST_COMBINATIONS:
        raise ValueError(
            f"cols must have at most {MOST_COMBINATIONS:,} different combinations of values, since the driver plans "
            "for all of them; generalize the finest column first, such as a date to its month."
        )
    return table


def _ranks(values: pa.ChunkedArray) -> pa.Array:
    """Return the place of each value among all, from 1; NULL comes after all others."""
    coded = values.combine_chunks().dictionary_encode()
    known = coded.dictionary
    comparable = known.cast(pa.int8()) if pa.types.is_boolean(known.type) else known
    places = np.empty(len(known) + 1, np.int64)
    places[pc.sort_indices(comparable).to_numpy()] = np.arange(1, len(known) + 1)
    places[-1] = len(known) + 1
    return pa.array(places[coded.indices.fill_null(len(known)).to_numpy(zero_copy_only=False)])


def hierarchy_rows(hierarchies: Mapping[str, DataFrame] | None) -> list[HierarchyRow]:
    """Return the rows of all hierarchies: column in lower case, leaf, level, label."""
    if hierarchies is None:
        return []
    if not isinstance(hierarchies, Mapping) or not all(hasattr(tree, "toArrow") for tree in hierarchies.values()):
        raise ValueError("hierarchies must be a dictionary of columns and DataFrames such as {'zip': zip_hierarchy}.")
    rows: list[HierarchyRow] = []
    for name, tree in hierarchies.items():
        texts = tree.select(*(column(own).cast("string") for own in tree.columns)).collect()
        rows += [
            {"column_name": str(name).lower(), "leaf": labels[0], "level": level, "label": label}
            for labels in texts
            for level, label in enumerate(labels)
        ]
    return rows


@public
def apply_plan(frame: DataFrame, plan: DataFrame | pa.Table | str, keep: Sequence[str] | None = None) -> DataFrame:
    """Return the planned columns of a table, generalized as a stored plan says, and the columns to keep.

    Args:
        frame: The table.
        plan: A DataFrame, an Arrow table, or the path of a Parquet file that the driver can read.
        keep: Other columns to release as they are, one by one.

    Returns:
        The rows of `anon.apply_plan`: no row is dropped and no class counted.
    """
    table = plan.toArrow() if hasattr(plan, "toArrow") else plan
    columns = read_plan(table)
    for planned in columns:
        find_column(frame, "plan", planned.name)
    kept = find_kept_columns(frame, keep, [planned.name for planned in columns])
    return label_columns(frame, columns, kept)


def find_kept_columns(frame: DataFrame, keep: object, cols: Sequence[str]) -> list[str]:
    """Return the columns to keep in the order of the table, or refuse them."""
    if keep is None or keep == []:
        return []
    if isinstance(keep, list | tuple) and "*" in keep:
        raise ValueError("keep must name the columns one by one on Spark; got *.")
    named = find_columns(frame, "keep", keep)
    coarse = {name.lower() for name in cols}
    for name in named:
        if name.lower() in coarse:
            raise ValueError(f'keep must not name a column of cols; got "{name}".')
        if "map<" in frame.schema[name].dataType.simpleString():
            raise ValueError(f'keep must be without maps, which cannot be compared; got "{name}".')
    return [name for name in frame.columns if name in named]


def label_columns(
    frame: DataFrame, columns: Sequence[PlannedColumn], kept: Sequence[str], extra: Sequence[Column] = ()
) -> DataFrame:
    """Return the labels of the planned columns, the columns to keep, and what else is asked for."""
    types = {planned.name: duckdb_type(frame, planned.name) for planned in columns}
    kind_of_column = expressions.kinds_of_columns({name: kind for name, kind in types.items() if kind != "OTHER"})
    joined, labels = frame, []
    for place, planned in enumerate(columns, 1):
        kind = check_kind(planned, kind_of_column.get(planned.name.lower(), expressions.OTHER), _SPARK)
        recoder = Recoder(planned, kind, _SPARK, _SPARK.literal, place)
        for lookup in recoder.lookups():
            joined = _with_list(joined, lookup)
        labels.append(F.expr(recoder.expression().sql(dialect="spark")).cast("string").alias(planned.name))
    return joined.select(*labels, *(column(name) for name in kept), *extra)


def _with_list(frame: DataFrame, lookup: Lookup) -> DataFrame:
    entries = [(entry.lower, entry.label) for entry in lookup.entries]
    text, label = lookup.text.name, lookup.outcome.name
    listed = frame.sparkSession.createDataFrame(entries, f"{text} string, {label} string")
    return frame.join(F.broadcast(listed), F.expr(lookup.key.sql(dialect="spark")) == F.col(text), "left")

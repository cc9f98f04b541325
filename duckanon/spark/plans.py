"""Plans: fitted on the driver to combinations that the cluster has counted, applied by the cluster as expressions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812

from duckanon.common.arguments import Number, OneOf, Whole, refuse_unless
from duckanon.generalize import plans as fitting
from duckanon.rendered import kinds
from duckanon.rendered.dialects import DIALECTS
from duckanon.rendered.expressions import Lookup, Recoder
from duckanon.rendered.plans import PlannedColumn, read_plan
from duckanon.rendered.queries import known_kind
from duckanon.spark.frames import (
    column,
    duckdb_type,
    is_ordered,
    named_column,
    named_columns,
    other_column,
    public,
)

MOST_COMBINATIONS = 20_000_000
"""Different combinations of values that the driver plans for: some gigabytes."""
_SPARK = DIALECTS["spark"]
_SENSITIVE = "_duckanon_sensitive"
_PERSON = "_duckanon_person"
_SIZE = "_duckanon_size"


@dataclass(frozen=True)
class Wish:
    """What is asked of a plan: the options of `anon.plan`, checked, with names as the table spells them."""

    cols: list[str]
    named: Sequence[str]
    k: int
    beta: float
    population: Any
    weights: Any
    hierarchies: Any
    max_suppressed_fraction: float
    methods: Any
    person: str | None
    sensitive: str | None
    l: float  # noqa: E741 - the name that everyone knows it by
    l_kind: str
    c: float
    t: float | None

    @property
    def population_size(self) -> float | None:
        """How many people the table is a sample of; None where they are at hand, or nothing is said."""
        return None if self.population is None or self.has_population_table else float(self.population)

    @property
    def has_population_table(self) -> bool:
        """Whether the people of the population are at hand."""
        return hasattr(self.population, "columns")


def wish_of(
    frame: Any,
    cols: Any,
    k: int,
    beta: float,
    population: Any,
    weights: Any,
    hierarchies: Any,
    max_suppressed_fraction: float,
    methods: Any,
    person: Any,
    sensitive: Any,
    l: float,  # noqa: E741
    l_kind: str,
    c: float,
    t: float | None,
) -> Wish:
    """Look at the options of a plan, or refuse them."""
    named = named_columns(frame, "cols", cols)
    ordered = [name for name in frame.columns if name in named]  # as SQL has them: in the order of the table
    refuse_unless(Whole(2), "k", k)
    refuse_unless(Number(0, 1), "max_suppressed_fraction", max_suppressed_fraction)
    if not Number(above=0, most=1).holds(beta) or beta == 1:
        raise ValueError(f"beta must be a number above 0 and below 1; got {beta!r}.")
    if population is not None and not hasattr(population, "columns"):
        refuse_unless(Number(k), "population", population)
    if hasattr(population, "columns"):
        named_columns(population, "population", ordered)
    whose = other_column(frame, "person", person, named)
    secret = other_column(frame, "sensitive", sensitive, named)
    if secret is None and (t is not None or l != 1):
        raise ValueError("sensitive must be given where l or t is; got NULL.")
    if secret is not None and secret == whose:
        raise ValueError(f'sensitive must not be the person; got "{secret}".')
    refuse_unless(Number(0, 1, null=True), "t", t)
    refuse_unless(OneOf("distinct", "entropy", "recursive"), "l_kind", l_kind)
    refuse_unless(Number(above=0), "c", c)
    if not Number(1).holds(l) or (l_kind != "entropy" and l != round(l)):
        raise ValueError(f"l must be a number of at least 1, whole unless l_kind is entropy; got {l!r}.")
    return Wish(
        ordered,
        named,
        k,
        beta,
        population,
        weights,
        hierarchies,
        max_suppressed_fraction,
        methods,
        whose,
        secret,
        l,
        l_kind,
        c,
        t,
    )


@public
def plan(
    frame: Any,
    cols: Any,
    k: int,
    beta: float = 0.1,
    population: Any = None,
    weights: Any = None,
    hierarchies: Mapping[str, Any] | None = None,
    max_suppressed_fraction: float = 0.01,
    methods: Mapping[str, str] | None = None,
    person: str | None = None,
    sensitive: str | None = None,
    l: float = 1,  # noqa: E741
    l_kind: str = "distinct",
    c: float = 3,
    t: float | None = None,
) -> Any:
    """Return how each of the columns is to be made coarser so that no one stands out: one row per bucket.

    The cluster counts the different combinations of values; the driver searches among them.

    Parameters
    ----------
    frame, cols, k, beta, weights, max_suppressed_fraction, methods, person, sensitive, l, l_kind, c, t
        As in `anon.plan`; ``weights`` and ``methods`` are dictionaries.
    population
        How many people the table is a random sample of, or a DataFrame of them, one row a person.
    hierarchies
        Dictionary of columns and DataFrames: value, label of level 1, of level 2, ...

    Returns
    -------
    pyspark.sql.DataFrame
        The plan, as `anon.plan` has it.
    """
    wish = wish_of(
        frame,
        cols,
        k,
        beta,
        population,
        weights,
        hierarchies,
        max_suppressed_fraction,
        methods,
        person,
        sensitive,
        l,
        l_kind,
        c,
        t,
    )
    return frame.sparkSession.createDataFrame(fitted(frame, wish))


def fitted(frame: Any, wish: Wish) -> pa.Table:
    """Count combinations on the cluster and fit a plan on the driver."""
    secret = F.lit(None).cast("bigint") if wish.sensitive is None else column(wish.sensitive)
    whose = F.lit(None).cast("bigint")
    if wish.person is not None:  # two people with the same hash count as one, never the other way around
        whose = F.when(column(wish.person).isNotNull(), F.xxhash64(column(wish.person)))
    told = [column(name).alias(name) for name in wish.cols]
    table = _counted(frame.select(*told, secret.alias(_SENSITIVE), whose.alias(_PERSON)))
    if wish.sensitive is not None:
        table = table.set_column(len(wish.cols), _SENSITIVE, _ranks(table.column(_SENSITIVE)))
    others = None
    if wish.has_population_table:
        others = _counted(wish.population.select(*told))
    found = fitting.plan(
        table if table.num_rows else None,
        others,
        cols=list(wish.named),
        k=wish.k,
        beta=wish.beta,
        population=wish.population_size,
        weights=wish.weights,
        hierarchies=_hierarchy_rows(wish.hierarchies),
        methods=wish.methods,
        max_suppressed_fraction=wish.max_suppressed_fraction,
        has_person=wish.person is not None,
        has_sensitive=wish.sensitive is not None,
        l=float(wish.l),
        l_kind=wish.l_kind,
        c=float(wish.c),
        t=None if wish.t is None else float(wish.t),
        is_ordered=None if wish.sensitive is None else is_ordered(frame, wish.sensitive),
        refused=None,
        unfit=[f'"{name}", {frame.schema[name].dataType.simpleString()},' for name in _unfit(frame, wish.cols)],
    )
    released = pa.nulls(found.num_rows, pa.struct([(name, pa.string()) for name in wish.cols]))
    return found.append_column("released", released)


def _unfit(frame: Any, cols: Sequence[str]) -> list[str]:
    return [name for name in cols if duckdb_type(frame, name) == "OTHER"]


def _counted(rows: Any) -> pa.Table:
    """Return the different combinations with their numbers, on the driver."""
    counted = rows.groupBy(*(column(name) for name in rows.columns)).agg(F.count("*").alias(_SIZE))
    table = counted.limit(MOST_COMBINATIONS + 1).toArrow()
    if table.num_rows > MOST_COMBINATIONS:
        raise ValueError(
            f"cols must have at most {MOST_COMBINATIONS:,} different combinations of values, since the driver plans for "
            "all of them; make the finest column coarser first, such as a date a month."
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


def _hierarchy_rows(hierarchies: Any) -> list[dict[str, Any]]:
    """Return the rows of all hierarchies: column in lower case, leaf, level, label."""
    if hierarchies is None:
        return []
    if not isinstance(hierarchies, Mapping) or not all(hasattr(tree, "toArrow") for tree in hierarchies.values()):
        raise ValueError("hierarchies must be a dictionary of columns and DataFrames such as {'zip': zip_hierarchy}.")
    rows = []
    for name, tree in hierarchies.items():
        texts = tree.select(*(column(own).cast("string") for own in tree.columns)).collect()
        rows += [
            {"column_name": str(name).lower(), "leaf": labels[0], "level": level, "label": label}
            for labels in texts
            for level, label in enumerate(labels)
        ]
    return rows


@public
def apply_plan(frame: Any, plan: Any, keep: Any = None) -> Any:
    """Return the planned columns of a table, made coarser as a stored plan says, and the columns to keep.

    Parameters
    ----------
    frame
        The table.
    plan
        A DataFrame, an Arrow table, or the path of a Parquet file that the driver can read.
    keep
        Other columns to release as they are, one by one.

    Returns
    -------
    pyspark.sql.DataFrame
        The rows of `anon.apply_plan`: no row is dropped and no class counted.
    """
    table = plan.toArrow() if hasattr(plan, "toArrow") else plan
    columns = read_plan(table)
    for planned in columns:
        named_column(frame, "plan", planned.name)
    kept = kept_columns(frame, keep, [planned.name for planned in columns])
    return labelled(frame, columns, kept)


def kept_columns(frame: Any, keep: Any, cols: Sequence[str]) -> list[str]:
    """Return the columns to keep in the order of the table, or refuse them."""
    if keep is None or keep == []:
        return []
    if isinstance(keep, list | tuple) and "*" in keep:
        raise ValueError("keep must name the columns one by one on Spark; got *.")
    named = named_columns(frame, "keep", keep)
    coarse = {name.lower() for name in cols}
    for name in named:
        if name.lower() in coarse:
            raise ValueError(f'keep must not name a column of cols; got "{name}".')
        if "map<" in frame.schema[name].dataType.simpleString():
            raise ValueError(f'keep must be without maps, which cannot be compared; got "{name}".')
    return [name for name in frame.columns if name in named]


def labelled(frame: Any, columns: Sequence[PlannedColumn], kept: Sequence[str], extra: Sequence[Any] = ()) -> Any:
    """Return the labels of the planned columns, the columns to keep, and what else is asked for."""
    types = {
        planned.name: duckdb_type(frame, planned.name)
        for planned in columns
        if duckdb_type(frame, planned.name) != "OTHER"
    }
    kind_of_column = kinds.kinds_of_columns(types)
    recoders = [
        Recoder(
            planned,
            known_kind(planned, kind_of_column.get(planned.name.lower(), kinds.OTHER), _SPARK),
            _SPARK,
            _SPARK.literal,
            place,
        )
        for place, planned in enumerate(columns, 1)
    ]
    joined = frame
    for recoder in recoders:
        for lookup in recoder.lookups():
            joined = _with_list(joined, lookup)
    labels = [
        F.expr(recoder.expression().sql(dialect="spark")).cast("string").alias(recoder.planned.name)
        for recoder in recoders
    ]
    return joined.select(*labels, *(column(name) for name in kept), *extra)


def _with_list(frame: Any, lookup: Lookup) -> Any:
    entries = [(entry.lower, entry.label) for entry in lookup.entries]
    text, label = lookup.text.name, lookup.outcome.name
    listed = frame.sparkSession.createDataFrame(entries, f"{text} string, {label} string")
    return frame.join(F.broadcast(listed), F.expr(lookup.key.sql(dialect="spark")) == F.col(text), "left")

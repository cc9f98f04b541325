"""Stored plans, applied by the cluster as expressions: `apply_plan`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import functions as F  # noqa: N812

from duckanon._render import kinds
from duckanon._render.dialects import DIALECTS
from duckanon._render.expressions import Lookup, Recoder
from duckanon._render.plans import PlannedColumn, read_plan
from duckanon._render.queries import known_kind
from duckanon.spark.frames import column, duckdb_type, named_column, named_columns, public

_SPARK = DIALECTS["spark"]


@public
def apply_plan(frame: Any, plan: Any, keep: Any = None) -> Any:
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

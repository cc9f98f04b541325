"""Reports as Arrow tables of the type that DuckDB is told of: ``STRUCT(name TYPE, ...)[]`` is written once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy.typing as npt
import pyarrow as pa

_ARROW = {
    "VARCHAR": pa.string(),
    "DOUBLE": pa.float64(),
    "BIGINT": pa.int64(),
    "BOOLEAN": pa.bool_(),
    "VARCHAR[]": pa.list_(pa.string()),
    "BIGINT[]": pa.list_(pa.int64()),
}


def schema_of(sql_type: str) -> pa.Schema:
    """Read the fields of ``STRUCT(name TYPE, ...)[]``; a field may be such a list itself, a name may be quoted."""
    fields, depth, start = [], 0, 0
    body = sql_type.removeprefix("STRUCT(").removesuffix(")[]")
    for place, letter in enumerate(f"{body},"):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            name, kind = body[start:place].strip().split(" ", 1)
            nested = pa.list_(pa.struct(list(schema_of(kind)))) if kind.startswith("STRUCT(") else None
            fields.append((name.strip('"'), nested or _ARROW[kind]))
            start = place + 1
    return pa.schema(fields)


def report(columns: Mapping[str, Sequence[Any] | npt.NDArray[Any]], sql_type: str) -> pa.Table:
    """Make the table of a report from its columns; NaN becomes NULL."""
    schema = schema_of(sql_type)
    return pa.table([pa.array(columns[field.name], field.type, from_pandas=True) for field in schema], schema=schema)


def report_rows(rows: Sequence[Mapping[str, Any]], sql_type: str) -> pa.Table:
    """Make the table of a report from its rows; what a row does not have is NULL."""
    return pa.Table.from_pylist(list(rows), schema_of(sql_type))

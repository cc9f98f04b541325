"""Reports as Arrow tables of a declared schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy.typing as npt
import pyarrow as pa


def report(columns: Mapping[str, Sequence[Any] | npt.NDArray[Any]], schema: pa.Schema) -> pa.Table:
    """Make the table of a report from its columns; NaN becomes NULL."""
    return pa.table([pa.array(columns[field.name], field.type, from_pandas=True) for field in schema], schema=schema)


def report_rows(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    """Make the table of a report from its rows; what a row does not have is NULL."""
    return pa.Table.from_pylist(list(rows), schema)

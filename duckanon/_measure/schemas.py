"""Columns of reports."""

from __future__ import annotations

import pyarrow as pa


def columns(kind: pa.DataType, *names: str) -> list[tuple[str, pa.DataType]]:
    """Return columns of one type for the schema of a report."""
    return [(name, kind) for name in names]

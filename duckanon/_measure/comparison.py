"""Declarations of measures that compare a release with its original."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from duckanon._core.common.declare import Group, Parameter, Report
from duckanon._measure.parameters import PAIR


def columns(kind: pa.DataType, *names: str) -> list[tuple[str, pa.DataType]]:
    """Return columns of one type for the schema of a report."""
    return [(name, kind) for name in names]


def comparison(
    name: str,
    parameters: tuple[Parameter | Group, ...],
    schema: Sequence[tuple[str, pa.DataType]],
    other_tables: tuple[str, ...] = (),
    **declared: Any,
) -> Report:
    """Declare a report on an original, its release, whose labels are read, and perhaps other tables.

    The parameters follow those that name the original and the release.
    """
    return Report(
        name=name,
        stage="measure",
        parameters=(*PAIR, *parameters),
        schema=pa.schema(schema),
        tables=("original", "released", *other_tables),
        **declared,
    )

"""Original, release and other tables as matrices with one encoding, which is fitted to the original."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from duckanon._core.common.arrays import Array, sql_type
from duckanon._core.encoding.column_codecs import NumberColumn
from duckanon._core.encoding.measurement_encoding import MeasuredEncoding, SpecialColumn, measured_encoding
from duckanon._core.encoding.pairs import kind_of


@dataclass(frozen=True)
class Measured:
    """Matrices with one encoding, which is fitted to the original; `others` are further tables."""

    encoding: MeasuredEncoding
    original: Array
    released: Array
    others: list[Array | None]


def aligned(
    original: pa.Table | None, released: pa.Table | None, **others: pa.Table | None
) -> tuple[pa.Table, pa.Table, list[pa.Table | None]]:
    """Put the columns of other tables in the order of the original's, under its names.

    Tables are None where no row came; original and release are refused then, and so are columns that hold different
    kinds of values. More tables are given under the names that an error should call them.
    """
    original, released = both_there(original, released)
    more = [None if table is None else _spelled(original, table) for table in others.values()]
    for role, table in zip(("released", *others), (released, *more), strict=True):
        if table is not None:
            for name in original.column_names:
                _refuse_other_kind(name, role, original.schema.field(name).type, table.schema.field(name).type)
    return original, released, more


def both_there(original: pa.Table | None, released: pa.Table | None) -> tuple[pa.Table, pa.Table]:
    """Refuse tables without rows; give the released columns the names and the order of the original's."""
    for role, table in (("original", original), ("released", released)):
        if table is None:
            raise ValueError(f"the {role} table has no rows; give one that has.")
    return original, _spelled(original, released)


@dataclass(frozen=True)
class Coding:
    """Options of coding numbers for measuring, those of `measured_encoding`."""

    log: list[str] | None = None
    special: Any = "auto"
    categories: list[str] | None = None
    derived: str = "off"


def encoded(original: pa.Table, released: pa.Table, others: Sequence[pa.Table | None], coding: Coding) -> Measured:
    """Code tables by the original."""
    encoding = measured_encoding(original, coding.log, coding.special, coding.categories, coding.derived)
    first, second = (encoding.matrix(table) for table in (original, released))
    return Measured(encoding, first, second, [None if table is None else encoding.matrix(table) for table in others])


def unscaled(encoding: MeasuredEncoding, matrix: Array) -> Array:
    """Give numbers (their logarithms) their own scale and origin back; categories stay as they are."""
    result = np.array(matrix, np.float64)
    for column, group in zip(encoding.columns, encoding.groups, strict=True):
        number = column.regular if isinstance(column, SpecialColumn) else column
        if isinstance(number, NumberColumn):
            result[:, group.start] = result[:, group.start] * number.deviation + number.mean
    return result


def _spelled(original: pa.Table, table: pa.Table) -> pa.Table:
    indices = {name.lower(): index for index, name in enumerate(table.column_names)}
    return table.select([indices[name.lower()] for name in original.column_names]).rename_columns(original.column_names)


def _refuse_other_kind(name: str, role: str, first: pa.DataType, second: pa.DataType) -> None:
    kinds = {kind_of(first), kind_of(second)} - {"null"}
    booleans = any(test(first) != test(second) for test in (pa.types.is_boolean, pa.types.is_time))
    if len(kinds) > 1 or (booleans and "null" not in (kind_of(first), kind_of(second))):
        raise ValueError(
            f'column "{name}" holds {sql_type(first)} in the original and {sql_type(second)} in the {role} table; '
            "cast one of them."
        )

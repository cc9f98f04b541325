"""What a column of an Arrow type holds: text, numbers or moments."""

from __future__ import annotations

import pyarrow as pa


def is_text(arrow_type: pa.DataType) -> bool:
    """Tell whether an Arrow type holds text."""
    types = pa.types
    return bool(types.is_string(arrow_type) or types.is_large_string(arrow_type) or types.is_string_view(arrow_type))


def is_number(arrow_type: pa.DataType) -> bool:
    """Tell whether an Arrow type holds numbers: integers, floating-point numbers or decimals, but not booleans."""
    types = pa.types
    return bool(types.is_integer(arrow_type) or types.is_floating(arrow_type) or types.is_decimal(arrow_type))


def is_time(arrow_type: pa.DataType) -> bool:
    """Tell whether an Arrow type holds dates or timestamps."""
    return bool(pa.types.is_date(arrow_type) or pa.types.is_timestamp(arrow_type))

"""What Arrow types hold."""

from __future__ import annotations

import pyarrow as pa


def is_text(arrow_type: pa.DataType) -> bool:
    """Tell whether a type holds text, however it is stored."""
    is_ = pa.types
    return bool(is_.is_string(arrow_type) or is_.is_large_string(arrow_type) or is_.is_string_view(arrow_type))


def is_number(arrow_type: pa.DataType) -> bool:
    """Tell whether a type holds numbers; booleans are none."""
    is_ = pa.types
    return bool(is_.is_integer(arrow_type) or is_.is_floating(arrow_type) or is_.is_decimal(arrow_type))


def is_time(arrow_type: pa.DataType) -> bool:
    """Tell whether a type holds days or moments; times of day are neither."""
    return bool(pa.types.is_date(arrow_type) or pa.types.is_timestamp(arrow_type))

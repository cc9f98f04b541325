"""Types of Arrow in DuckDB's words, as messages name them and as functions are registered with them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

_NAMES = {
    pa.null(): "NULL",
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.uint8(): "UTINYINT",
    pa.uint16(): "USMALLINT",
    pa.uint32(): "UINTEGER",
    pa.uint64(): "UBIGINT",
    pa.float16(): "FLOAT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.date32(): "DATE",
    pa.date64(): "DATE",
    pa.month_day_nano_interval(): "INTERVAL",
}
_UNITS = {"s": "TIMESTAMP_S", "ms": "TIMESTAMP_MS", "us": "TIMESTAMP", "ns": "TIMESTAMP_NS"}
_EXTENSIONS = {"arrow.uuid": "UUID", "arrow.json": "JSON", "arrow.bool8": "BOOLEAN"}


def sql_type(arrow_type: pa.DataType) -> str:
    """Return the name of a type as DuckDB writes it; an ENUM's without its values.

    Examples:
        >>> sql_type(pa.list_(pa.string())), sql_type(pa.dictionary(pa.uint8(), pa.string())), sql_type(pa.time64("us"))
        ('VARCHAR[]', 'ENUM', 'TIME')
    """
    if name := _NAMES.get(arrow_type):
        return name
    return _nested_type(arrow_type) or _parametrized_type(arrow_type) or str(arrow_type).upper()


def _nested_type(arrow_type: Any) -> str:
    """Return the name of a type of other types; nothing for one that is not."""
    if pa.types.is_map(arrow_type):
        return f"MAP({sql_type(arrow_type.key_type)}, {sql_type(arrow_type.item_type)})"
    if pa.types.is_struct(arrow_type):
        fields = ", ".join(f'"{field.name}" {sql_type(field.type)}' for field in arrow_type)
        return f"STRUCT({fields})"
    if pa.types.is_fixed_size_list(arrow_type):
        return f"{sql_type(arrow_type.value_type)}[{arrow_type.list_size}]"
    if pa.types.is_list(arrow_type) or pa.types.is_large_list(arrow_type):
        return f"{sql_type(arrow_type.value_type)}[]"
    return "UNION" if pa.types.is_union(arrow_type) else ""


def _parametrized_type(arrow_type: Any) -> str:
    """Return the name of a type with a unit, a width or several encodings; nothing for others."""
    if isinstance(arrow_type, pa.BaseExtensionType):
        opaque = getattr(arrow_type, "type_name", "").upper()
        return _EXTENSIONS.get(arrow_type.extension_name) or opaque or sql_type(arrow_type.storage_type)
    if pa.types.is_timestamp(arrow_type):
        return _UNITS[arrow_type.unit] if arrow_type.tz is None else "TIMESTAMP WITH TIME ZONE"
    if pa.types.is_decimal(arrow_type):
        return f"DECIMAL({arrow_type.precision},{arrow_type.scale})"
    for is_kind, name in (
        (pa.types.is_dictionary, "ENUM"),
        (pa.types.is_time, "TIME"),
        (pa.types.is_duration, "INTERVAL"),
        (pa.types.is_string, "VARCHAR"),
        (pa.types.is_large_string, "VARCHAR"),
        (pa.types.is_string_view, "VARCHAR"),
        (pa.types.is_binary, "BLOB"),
        (pa.types.is_large_binary, "BLOB"),
        (pa.types.is_binary_view, "BLOB"),
        (pa.types.is_fixed_size_binary, "BLOB"),
    ):
        if is_kind(arrow_type):
            return name
    return ""

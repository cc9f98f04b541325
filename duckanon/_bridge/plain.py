"""Plain arrays: what a connection has set does not change the types in which its rows arrive.

DuckDB hands over the same column in other types of Arrow where ``arrow_output_version``, ``arrow_large_buffer_size``,
``arrow_lossless_conversion`` or ``produce_arrow_string_view`` say so. The algorithms know those of a connection on
which nothing is set.
"""

from __future__ import annotations

import functools
import uuid

import pyarrow as pa


def plain(array: pa.Array) -> pa.Array:
    """Turn an array into the type that it has by default; most arrays have it, and are returned as they are."""
    return array if _plain_type(array.type) is None else _converted(array)


@functools.lru_cache(maxsize=1024)
def _plain_type(kind: pa.DataType) -> pa.DataType | None:
    """Return the type that values of a type are turned into; None where they stay as they are."""
    if pa.types.is_struct(kind):
        fields = [pa.field(field.name, _plain_type(field.type) or field.type) for field in kind]
        return None if all(_plain_type(field.type) is None for field in kind) else pa.struct(fields)
    if isinstance(kind, pa.BaseExtensionType):
        return _EXTENSIONS.get(kind.extension_name)
    if str(kind).startswith(("decimal32", "decimal64")) and not hasattr(pa, "decimal32"):
        raise ValueError(
            f"anon: arrow_output_version asks for types that pyarrow {pa.__version__} does not know; "
            f"RESET arrow_output_version, or install a newer pyarrow."
        )
    if pa.types.is_large_string(kind) or str(kind) == "string_view":
        return pa.string()
    if pa.types.is_large_binary(kind) or str(kind) == "binary_view":
        return pa.binary()
    if pa.types.is_decimal(kind) and kind.bit_width < 128:
        return pa.decimal128(kind.precision, kind.scale)
    return None


_EXTENSIONS = {"arrow.bool8": pa.bool_(), "arrow.uuid": pa.string(), "arrow.json": pa.string()}
"""The types of DuckDB that Arrow has no plain ones for, and yet they travel in one."""


def _converted(array: pa.Array) -> pa.Array:
    kind = array.type
    if pa.types.is_struct(kind):
        parts = [plain(array.field(index)) for index in range(kind.num_fields)]
        fields = [pa.field(field.name, part.type) for field, part in zip(kind, parts, strict=True)]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(parts, fields=fields, mask=mask)
    if not isinstance(kind, pa.BaseExtensionType):
        return array.cast(_plain_type(kind))
    if kind.extension_name == "arrow.uuid":
        texts = [None if value is None else str(uuid.UUID(bytes=value)) for value in array.storage.to_pylist()]
        return pa.array(texts, pa.string())
    return array.storage.cast(_plain_type(kind))

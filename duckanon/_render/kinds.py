"""The type of a column: given by the caller, or guessed from the texts of a plan.

A plan says what its buckets hold, not the type of the column that it was made for. Most SQL is the same for all types;
where it is not, a guess may only lead to a refusal, which the caller answers by saying the type.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
from sqlglot import exp

from duckanon._core.common import arrays as arrow_types

UNKNOWN = "unknown"
SHORT = "short"
"""Numbers of which each is a double: comparing them needs no cast."""
NUMBER = "number"
DECIMAL = "decimal"
FLOAT = "float"
BOOLEAN = "boolean"
DATE = "date"
TIMESTAMP = "timestamp"
ZONED = "timestamp with time zone"
TEXT = "text"
OTHER = "other"

IS_NUMBER = {SHORT, NUMBER, DECIMAL, FLOAT}
IS_TIME = {DATE, TIMESTAMP, ZONED}

_TYPES_OF_KIND = {
    SHORT: "TINYINT SMALLINT INT MEDIUMINT UTINYINT USMALLINT UINT",
    NUMBER: "BIGINT UBIGINT INT128 UINT128 INT256 UINT256",
    DECIMAL: "DECIMAL BIGDECIMAL UDECIMAL MONEY SMALLMONEY",
    FLOAT: "FLOAT DOUBLE",
    BOOLEAN: "BOOLEAN BIT",
    DATE: "DATE DATE32",
    TIMESTAMP: "TIMESTAMP TIMESTAMP_S TIMESTAMP_MS TIMESTAMP_NS TIMESTAMPNTZ DATETIME DATETIME2 DATETIME64",
    ZONED: "TIMESTAMPTZ TIMESTAMPLTZ",
    TEXT: "TEXT VARCHAR CHAR NCHAR NVARCHAR BPCHAR ENUM NAME",
}
_KIND_OF_TYPE = {name: kind for kind, names in _TYPES_OF_KIND.items() for name in names.split()}


def kinds_of_columns(types: Any) -> dict[str, str]:
    """Return the kinds of columns, given their types as `duckanon.render` takes them, by their names in lower case."""
    if types is None:
        return {}
    if isinstance(types, pa.Schema):
        return {field.name.lower(): _arrow_kind(field.type) for field in types}
    if isinstance(types, Mapping) and all(isinstance(part, str) for pair in types.items() for part in pair):
        return {name.lower(): _named_kind(type_name) for name, type_name in types.items()}
    raise ValueError(f"types must be a pyarrow.Schema or a dictionary such as {{'age': 'INTEGER'}}; got {types!r}.")


def _arrow_kind(arrow_type: pa.DataType) -> str:
    is_ = pa.types
    if is_.is_dictionary(arrow_type):
        return _arrow_kind(arrow_type.value_type)
    if is_.is_timestamp(arrow_type):
        return TIMESTAMP if arrow_type.tz is None else ZONED
    if is_.is_integer(arrow_type):
        return SHORT if arrow_type.bit_width <= 32 else NUMBER
    tests = (
        (is_.is_decimal, DECIMAL),
        (is_.is_floating, FLOAT),
        (is_.is_boolean, BOOLEAN),
        (is_.is_date, DATE),
        (arrow_types.is_text, TEXT),
    )
    return next((kind for holds, kind in tests if holds(arrow_type)), OTHER)


def _named_kind(name: str) -> str:
    try:
        parsed = exp.DataType.build(name, dialect="duckdb")
    except Exception as error:
        raise ValueError(f"types must name types as DuckDB's DESCRIBE does, such as INTEGER; got {name!r}.") from error
    return _KIND_OF_TYPE.get(parsed.this.name, OTHER) if isinstance(parsed.this, exp.DataType.Type) else OTHER


_LOOKS = (
    (BOOLEAN, re.compile(r"true|false")),
    (FLOAT, re.compile(r"[+-]?(\d+\.\d*|\d*\.\d+|\d+(?=[eE]))([eE][+-]?\d+)?|[+-]?inf(inity)?|nan")),
    (TIMESTAMP, re.compile(r"\d{4,}-\d\d-\d\d \d\d:\d\d.*")),
)


def guessed(texts: Iterable[str]) -> str:
    """Guess the kind of a column whose values are these texts; one text that is of no kind makes all of them text."""
    known = list(texts)
    return next((kind for kind, look in _LOOKS if known and all(look.fullmatch(text) for text in known)), UNKNOWN)

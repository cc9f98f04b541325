"""Values as SQL, and the defaults of a signature as values."""

from __future__ import annotations

import functools
from typing import Any

import duckdb


class Expression(str):
    """SQL that stands in a call as it is, such as the name of a column."""


def sql_of(value: Any) -> str:
    """Write a value as SQL."""
    match value:
        case Expression():
            return str(value)
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case str():
            return "'" + value.replace("'", "''") + "'"
        case list():
            return f"[{', '.join(map(sql_of, value))}]"
        case dict() if "statistic" in value:  # one of a list of structs
            return "{" + ", ".join(f"{sql_of(key)}: {sql_of(one)}" for key, one in value.items()) + "}"
        case dict():
            return "MAP {" + ", ".join(f"{sql_of(key)}: {sql_of(one)}" for key, one in value.items()) + "}"
        case _:
            return repr(value)


@functools.cache
def value_of(sql: str) -> Any:
    """Read the default of a parameter."""
    ((value,),) = duckdb.sql(f"SELECT {sql}").fetchall()
    return float(value) if type(value).__name__ == "Decimal" else value

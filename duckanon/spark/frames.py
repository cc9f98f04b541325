"""Columns of a DataFrame as callers name them, and the shape in which what cannot be done is refused."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import ParamSpec, TypeVar

from pyspark.errors import PythonException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that everyone knows it by

from duckanon._core.common.names import refuse_unknown_options, unknown_column

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

_OWN = "_duckanon_"
_REFUSED = re.compile(r"^(?:ValueError|AssertionError): (.+)$", re.MULTILINE)
"""A sentence with which a part was refused, in the message of the executor's error."""
_NAMES_OF_TYPES = {
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMPTZ",
    "timestamp_ntz": "TIMESTAMP",
    "string": "VARCHAR",
}
"""DuckDB's names of Spark's types; a Spark timestamp is a moment, whatever the session's zone shows."""
_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(")
_ORDERED = (*_NUMBERS, "BOOLEAN", "DATE", "TIMESTAMP")  # beginnings of names


def public(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Put a function's name before the sentence with which it refuses something."""
    function = refuse_unknown_options("duckanon.spark")(function)

    @functools.wraps(function)
    def call(*arguments: Parameters.args, **options: Parameters.kwargs) -> Result:
        caller = f"duckanon.spark.{function.__name__}: "
        try:
            return function(*arguments, **options)
        except ValueError as error:
            sentence = str(error)
            raise ValueError(sentence if sentence.startswith("duckanon.spark.") else caller + sentence) from error
        except PythonException as error:
            sentences = _REFUSED.findall(str(error))
            if not sentences:
                raise
            raise ValueError(caller + sentences[-1]) from error

    return call


def column(name: str) -> Column:
    """Return a column by its name, in which a dot is a dot."""
    return F.col(quote(name))


def duckdb_type(frame: DataFrame, name: str) -> str:
    """Return what DuckDB calls the type of a column, OTHER for what neither of its types is."""
    simple = str(frame.schema[name].dataType.simpleString())
    if simple.startswith("decimal("):
        return simple.upper()
    if simple.startswith(("char(", "varchar(")):
        return "VARCHAR"
    return _NAMES_OF_TYPES.get(simple, "OTHER")


def is_number(frame: DataFrame, name: str) -> bool:
    """Tell whether a column holds numbers."""
    return duckdb_type(frame, name).startswith(_NUMBERS)


def is_ordered(frame: DataFrame, name: str) -> bool:
    """Tell whether neighbouring values of a column are near each other: numbers, times and booleans."""
    return duckdb_type(frame, name).startswith(_ORDERED)


def find_columns(frame: DataFrame, parameter: str, names: object, at_least: int = 1) -> list[str]:
    """Return names of columns as the DataFrame spells them, or refuse what it does not have."""
    if not isinstance(names, list | tuple) or len(names) < at_least or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{parameter} must be a list of column names such as ['age', 'zip']; got {names!r}.")
    columns = [find_column(frame, parameter, name) for name in names]
    for place, name in enumerate(columns):
        if name in columns[:place]:
            raise ValueError(f'{parameter} must name a column once; got "{name}" twice.')
    return columns


def find_ordered_columns(frame: DataFrame, cols: Sequence[str], at_least: int = 1) -> list[str]:
    """Return the columns that ``cols`` names in the order of the table."""
    named = find_columns(frame, "cols", cols, at_least)
    return [name for name in frame.columns if name in named]


def find_column(frame: DataFrame, parameter: str, name: object) -> str:
    """Return the name of a column as the DataFrame spells it, or refuse what it does not have."""
    if not isinstance(name, str):
        raise ValueError(f"{parameter} must be the name of a column; got {name!r}.")
    fitting = [own for own in frame.columns if own.lower() == name.lower()]
    if not fitting:
        raise ValueError(unknown_column(name, frame.columns, parameter))
    if len(fitting) > 1:
        raise ValueError(f'{parameter} must name one column of the table; it has several that are called "{name}".')
    if fitting[0].lower().startswith(_OWN):
        raise ValueError(f'{parameter} must not name a column that begins with {_OWN}; got "{name}": rename it first.')
    if " collate " in str(frame.schema[fitting[0]].dataType.simpleString()).lower():
        raise ValueError(
            f'column "{name}" has a collation, to which different texts may be equal; collate it to UTF8_BINARY first.'
        )
    return str(fitting[0])


def other_column(frame: DataFrame, parameter: str, name: object, cols: Sequence[str]) -> str | None:
    """Return the name of a column that must not be one of some others; None where none is named."""
    if name is None:
        return None
    column_name = find_column(frame, parameter, name)
    if column_name in cols:
        raise ValueError(f'{parameter} must not be one of cols; got "{column_name}".')
    return column_name


def refuse_alpha(alpha: object) -> None:
    """Refuse a weight of NULLs that match any value, which is not there on Spark."""
    if alpha != 1:
        raise ValueError(f"alpha must be 1 on Spark, where nothing else is there; got {alpha!r}.")


def people(person: str | None) -> Column:
    """Return the count of different people, or of rows where nobody tells people apart."""
    return F.count("*") if person is None else F.count_distinct(column(person))


def person_hash(person: str) -> Column:
    """Return a hash of whose row it is, NULL where it is nobody's; two people of one hash count as one, at worst."""
    return F.when(column(person).isNotNull(), F.xxhash64(column(person)))


def key_names(cols: Sequence[str]) -> list[str]:
    """Return names of our own for columns, which no column of the table has."""
    return [f"{_OWN}key_{place}" for place in range(1, len(cols) + 1)]


def key_columns(cols: Sequence[str]) -> list[Column]:
    """Return columns under names of our own."""
    return [column(name).alias(key) for name, key in zip(cols, key_names(cols), strict=True)]


def equal(left: DataFrame, right: DataFrame, left_names: Sequence[str], right_names: Sequence[str]) -> Column:
    """Return the condition under which rows of two DataFrames agree in some columns; NULL agrees with NULL."""
    tests = [
        left[left_name].eqNullSafe(right[right_name])
        for left_name, right_name in zip(map(quote, left_names), map(quote, right_names), strict=True)
    ]
    return functools.reduce(lambda one, other: one & other, tests)


def without_nulls(frame: DataFrame, cols: Sequence[str], nulls: object) -> DataFrame:
    """Return the rows that are looked at: all, or those without a NULL in some columns."""
    if nulls == "any":
        raise ValueError("nulls must be 'value' or 'drop' on Spark; got 'any': anon has it in DuckDB.")
    if nulls not in ("value", "drop"):
        raise ValueError(f"nulls must be 'value' or 'drop'; got {nulls!r}.")
    if nulls == "value":
        return frame
    return frame.where(functools.reduce(lambda one, other: one & other, [column(name).isNotNull() for name in cols]))


def quote(name: str) -> str:
    """Return a name as Spark SQL reads it."""
    return "`" + name.replace("`", "``") + "`"

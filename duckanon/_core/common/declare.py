"""How a package declares the functions that SQL can call, and returns a report with the declared columns.

A declaration says the name (``anon.pica`` calls ``_anon_pica``), which function computes it, which tables it takes and
what it returns. `duckanon._bridge.registry` makes DuckDB functions of them all. The function itself is named, not
imported: registering a database should not load the libraries of algorithms that nobody calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

if TYPE_CHECKING:
    import numpy.typing as npt  # registering a database does not load numpy for it


@dataclass(frozen=True)
class Release:
    """A function that returns a table like the first one it takes: the same columns under the same names and types.

    Attributes
    ----------
    name
        Its name in SQL, without ``anon.``.
    algorithm
        Module and function: ``duckanon._methods.swap.people_swaps:pica``. It takes the tables under the names in
        ``tables`` and the options under the names that the macro gives them; where it has a parameter ``tell``, that is
        called with the share of the work done.
    tables
        The names of its tables, of which all but the first may be None.
    hands_over
        Whether the algorithm is given its first table in a list, which it empties: the table's memory can then go while
        it is at work.
    coded
        Whether the columns that it returns as Arrow dictionaries travel as codes and a list of the different values,
        which the macro then puts together: a million labels take a tenth of the memory.
    """

    name: str
    algorithm: str
    tables: tuple[str, ...] = ("table",)
    hands_over: bool = False
    coded: bool = False


@dataclass(frozen=True)
class Report:
    """A function that returns rows with the same columns whatever it takes.

    Attributes
    ----------
    name, algorithm, tables
        As for a `Release`; every table may be None, where it has no rows.
    schema
        The columns of its rows.
    collector
        What the rows are collected in on their way, `duckanon._bridge.parcels.TableBuilder` where it is None; given to
        the algorithm as its first table.
    caller
        The function that an error names, where that is not ``anon.`` and the name.
    """

    name: str
    algorithm: str
    schema: pa.Schema
    tables: tuple[str, ...] = ("table",)
    collector: str | None = None
    caller: str | None = None


@dataclass(frozen=True)
class ColumnReport:
    """A report on one column, which the algorithm takes first, as an Arrow array, None where there are no rows."""

    name: str
    algorithm: str
    schema: pa.Schema


@dataclass(frozen=True)
class Scalar:
    """A function of single values, all given by name; its result is of one Arrow type."""

    name: str
    algorithm: str
    result: pa.DataType


Declaration: TypeAlias = Release | Report | ColumnReport | Scalar


def report(columns: Mapping[str, Sequence[Any] | npt.NDArray[Any]], schema: pa.Schema) -> pa.Table:
    """Make the table of a report from its columns; NaN becomes NULL."""
    return pa.table([pa.array(columns[field.name], field.type, from_pandas=True) for field in schema], schema=schema)


def report_rows(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    """Make the table of a report from its rows; what a row does not have is NULL."""
    return pa.Table.from_pylist(list(rows), schema)

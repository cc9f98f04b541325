"""The engine that functions are registered in: DuckDB's Python client, or a DuckDB that has loaded the extension.

Registering a database needs the names and types of functions. The registry, and with it pyarrow, is imported when the
first function is called.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from duckanon._core.common.imports import import_function


class Connection(Protocol):
    """The part of a connection that registering takes; `duckdb.DuckDBPyConnection` has it."""

    def execute(self, query: Any, /) -> Connection:
        """Run a statement."""

    def fetchall(self) -> list[Any]:
        """Return the rows of the last statement."""

    def create_function(self, *arguments: Any, **options: Any) -> Any:
        """Register a function that takes and returns Arrow arrays."""

    def cursor(self) -> Connection:
        """Open another connection to the same database."""

    def close(self) -> None:
        """Close the connection."""


class Engine(NamedTuple):
    """A version of DuckDB in this process."""

    version: str  # on which the format of its database files depends
    open: Callable[[], Connection]  # opens an empty database in memory
    parsed: Callable[[str], Sequence[Any]]  # splits a script into what `Connection.execute` takes
    type_of: Callable[[Connection, str], Any]  # turns a type's text into what `Connection.create_function` takes


def kind_of(error: BaseException) -> str:
    """Return the kind of an error of DuckDB's, in lower case; empty: it is none of DuckDB's.

    Examples:
        >>> kind_of(ValueError("Catalog Error: Table with name anon does not exist!"))
        'catalog'
    """
    prefix = re.match(r"((?:\w+ )+)Error: ", BaseException.__str__(error))
    return prefix[1].strip().lower() if prefix else ""


_ANY_ARGUMENTS = inspect.Signature([inspect.Parameter("arguments", inspect.Parameter.VAR_POSITIONAL)])


class LateFunction(NamedTuple):
    """A function: its name, the DuckDB type of its result, and whether DuckDB computes it while it binds a query."""

    name: str
    sql_type: str
    is_constant: bool

    @property
    def function(self) -> Callable[..., Any]:
        """The function, which imports the registry when it is called."""
        return _late(self.name)


@functools.cache
def _late(name: str) -> Callable[..., Any]:
    """Make a function once for the process: DuckDB's client lets go of it with the cursor that registered it."""

    def call(*arguments: Any) -> Any:
        return import_function("duckanon._bridge.registry:functions")()[name].function(*arguments)

    call.__signature__ = _ANY_ARGUMENTS  # type: ignore[attr-defined] # without annotations, which DuckDB would evaluate
    return call


def late_functions() -> list[LateFunction]:
    """List all functions of the registry, which is imported for it."""
    functions = import_function("duckanon._bridge.registry:functions")()
    return [LateFunction(name, one.sql_type, one.is_constant) for name, one in functions.items()]

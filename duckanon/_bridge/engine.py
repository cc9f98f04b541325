"""The engine that functions are registered in: DuckDB's Python client, or a DuckDB that has loaded the extension."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol


class Connection(Protocol):
    """What registering takes of a connection; `duckdb.DuckDBPyConnection` has it."""

    def execute(self, query: Any, /) -> Connection:
        """Run a statement."""

    def fetchall(self) -> list[Any]:
        """Return the rows of the last statement."""

    def create_function(
        self,
        name: str,
        function: Any,
        parameters: Any,
        return_type: Any,
        /,
        *,
        type: Any,
        null_handling: Any,
        side_effects: bool,
    ) -> Any:
        """Register a function that takes and returns Arrow arrays."""

    def cursor(self) -> Connection:
        """Open another connection to the same database."""

    def close(self) -> None:
        """Close the connection."""


class Engine(NamedTuple):
    """A version of DuckDB in this process."""

    version: str
    """Which format its database files have."""

    open: Callable[[], Connection]
    """Opens an empty database in memory."""

    parsed: Callable[[str], Sequence[Any]]
    """Splits a script into what `Connection.execute` takes."""

    type_of: Callable[[Connection, str], Any]
    """Turns the text of a type into what `Connection.create_function` takes."""


def kind_of(error: BaseException) -> str:
    """Return the kind of an error of DuckDB's, in lower case; empty: it is none of DuckDB's.

    Examples:
        >>> kind_of(ValueError("Catalog Error: Table with name anon does not exist!"))
        'catalog'
    """
    told = re.match(r"((?:\w+ )+)Error: ", BaseException.__str__(error))
    return told[1].strip().lower() if told else ""

"""Late functions: what DuckDB has to know of a function in order to register it, and no more.

Registering a database needs names and types. The registry, and with it pyarrow, is imported when the first function is
called.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from duckanon._core.common.imports import imported

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
        return imported("duckanon._bridge.registry:functions")()[name].function(*arguments)

    call.__signature__ = _ANY_ARGUMENTS  # type: ignore[attr-defined] # without annotations, which DuckDB would evaluate
    return call


def late_functions() -> list[LateFunction]:
    """List all functions of the registry, which is imported for it."""
    functions = imported("duckanon._bridge.registry:functions")()
    return [LateFunction(name, one.sql_type, one.is_constant) for name, one in functions.items()]

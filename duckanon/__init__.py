"""duckanon: assess, anonymize, check and release tables about people without leaving DuckDB's SQL."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from duckanon import large, plot, postgresql, report, spark, spectral
    from duckanon._bridge.catalog import connect, register
    from duckanon._render.checks import render_check
    from duckanon._render.queries import render
    from duckanon.job.run import release

__all__ = [
    "__version__",
    "connect",
    "large",
    "plot",
    "postgresql",
    "register",
    "release",
    "render",
    "render_check",
    "report",
    "spark",
    "spectral",
]
__version__ = "0.1.0"

_FUNCTIONS = {
    "connect": "duckanon._bridge.catalog",
    "register": "duckanon._bridge.catalog",
    "release": "duckanon.job.run",
    "render": "duckanon._render.queries",
    "render_check": "duckanon._render.checks",
}
"""The public functions, and the modules that have them."""


def load_ipython_extension(shell: Any) -> None:
    """Register everything in the connections that a notebook's SQL cells use: ``%load_ext duckanon``."""
    from duckanon import notebook

    notebook.load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Leave a notebook's connections alone from now on: ``%unload_ext duckanon``."""
    from duckanon import notebook

    notebook.unload(shell)


def __getattr__(name: str) -> Any:
    """Load DuckDB, sqlglot or a package when it is first asked for: `import duckanon` is quick."""
    if name in _FUNCTIONS:
        return getattr(import_module(_FUNCTIONS[name]), name)
    if name in __all__:
        return import_module(f"duckanon.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """List what is public."""
    return [*__all__, "load_ipython_extension", "unload_ipython_extension"]

"""duckanon: assess, anonymize, check and release tables about people without leaving DuckDB's SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from duckanon.bridge.catalog import connect, register
    from duckanon.rendered.checks import render_check
    from duckanon.rendered.queries import render

__all__ = ["__version__", "connect", "register", "render", "render_check"]
__version__ = "0.1.0"


def load_ipython_extension(shell: Any) -> None:
    """Register everything in the connections that a notebook's SQL cells use: ``%load_ext duckanon``."""
    from duckanon import notebook

    notebook.load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Leave a notebook's connections alone from now on: ``%unload_ext duckanon``."""
    from duckanon import notebook

    notebook.unload(shell)


def __getattr__(name: str) -> Any:
    """Load DuckDB and the catalog, or sqlglot, when they are first asked for: `import duckanon` is quick."""
    if name in ("connect", "register"):
        from duckanon.bridge import catalog

        return getattr(catalog, name)
    if name == "render":
        from duckanon.rendered import queries

        return queries.render
    if name == "render_check":
        from duckanon.rendered import checks

        return checks.render_check
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

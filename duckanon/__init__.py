"""duckanon: assess, anonymize, check and release tables about people without leaving DuckDB's SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from duckanon.bridge.catalog import connect, register

__all__ = ["__version__", "connect", "register"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Load DuckDB and the catalog when they are first asked for: `import duckanon` is quick."""
    if name in ("connect", "register"):
        from duckanon.bridge import catalog

        return getattr(catalog, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""duckanon: assess, anonymize, check and release tables about people without leaving DuckDB's SQL."""

from duckanon.bridge.catalog import connect, register

__all__ = ["__version__", "connect", "register"]
__version__ = "0.1.0"

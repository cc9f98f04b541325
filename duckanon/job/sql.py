"""Values written as SQL, and DuckDB's errors without what they quote."""

from duckanon.bridge.sql import columns, literal, name, names, one, structure, why

__all__ = ["columns", "literal", "name", "names", "one", "structure", "why"]

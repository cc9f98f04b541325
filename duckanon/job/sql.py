"""Values written as SQL, and DuckDB's errors without what they quote."""

from duckanon._bridge.sql import bare, columns, literal, name, names, one, structure, why

__all__ = ["bare", "columns", "literal", "name", "names", "one", "structure", "why"]

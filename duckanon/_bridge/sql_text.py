"""Names and values written as SQL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def name(text: str) -> str:
    """Write a name in quotes."""
    return '"' + text.replace('"', '""') + '"'


def literal(value: Any) -> str:
    """Write a value of a policy as SQL."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, Mapping):  # a call of map(), which can be qualified; MAP {'a': 1} cannot
        return f"map({literal(list(value))}, {literal(list(value.values()))})"
    return f"[{', '.join(structure(item) if isinstance(item, Mapping) else literal(item) for item in value)}]"


def structure(fields: Mapping[str, Any]) -> str:
    """Write a struct."""
    return f"{{{', '.join(f'{literal(key)}: {literal(value)}' for key, value in fields.items())}}}"


def names(texts: Iterable[str]) -> str:
    """Write names in quotes, with commas between them."""
    return ", ".join(map(name, texts))

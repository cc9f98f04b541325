"""Options as SQL passes them: names in any case, and one shape for what is wrong with a value."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def own_names(table: pa.Table, names: Any) -> list[str] | None:
    """Spell the names of the columns to log as the table does: their case does not matter in SQL."""
    if names is None:
        return None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"log must be NULL or a list of column names; got {names}.")
    known: dict[str, str] = {name.lower(): name for name in table.column_names}
    spelled: list[str] = [known.get(str(name).lower(), str(name)) for name in names]
    return spelled


def refuse_unknown(parameter: str, value: object, choices: tuple[str, ...]) -> None:
    """Refuse a value that is none of the choices."""
    if value not in choices:
        raise ValueError(f"{parameter} must be one of {', '.join(map(repr, choices))}; got {value!r}.")


def refuse_no_count(parameter: str, value: Any, least: int) -> None:
    """Refuse a value that is no whole number of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{parameter} must be a whole number of at least {least}; got {value}.")

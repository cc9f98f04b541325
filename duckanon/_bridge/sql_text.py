"""Names, values, and the releases that a measure compares written as SQL; the options of a call as one text."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any


def quote(text: str) -> str:
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


def quote_all(texts: Iterable[str]) -> str:
    """Write names in quotes, with commas between them."""
    return ", ".join(map(quote, texts))


def options_text(options: Mapping[str, Any]) -> str:
    """Write the options of a call as JSON, in which they travel from the query to the algorithm."""
    return json.dumps(options, default=_as_text)


def read_options(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a call as the algorithm takes them."""
    known = json.loads(options.pop("_written", "{}"), object_hook=_from_text)
    return {**known, **options}


def _as_text(value: object) -> dict[str, str]:
    """Write what JSON has no form for."""
    if isinstance(value, datetime.date | datetime.time):
        return {f"duckanon {type(value).__name__}": value.isoformat()}
    raise ValueError(f"options must be numbers, texts, dates, lists and maps; got a {type(value).__name__}.")


def _from_text(fields: dict[str, Any]) -> Any:
    if len(fields) == 1:
        ((name, text),) = fields.items()
        for kind in (datetime.datetime, datetime.date, datetime.time):
            if name == f"duckanon {kind.__name__}":
                return kind.fromisoformat(text)
    return fields


def stack_tables(
    tables: Mapping[str, str] | Sequence[str], chosen: Callable[[str], str], has_same_columns: bool = False
) -> str:
    """Write the rows of several tables below each other; ``_duckanon_release`` names or numbers the table of a row.

    Each table has a column of its own, in which its rows are structs: the same column may hold numbers in one table,
    labels or intervals in another. Tables that have the same columns need not: ``_duckanon_release`` is a number then.
    `chosen` writes the columns of a table, for ``COLUMNS()``.
    """
    if has_same_columns:
        return " UNION ALL BY NAME ".join(
            f"SELECT {place}::SMALLINT AS _duckanon_release, COLUMNS({chosen(table)}) "
            f"FROM query_table({literal(table)})"
            for place, table in enumerate(tables, 1)
        )
    named = tables.items() if isinstance(tables, Mapping) else enumerate(tables, 1)
    return " UNION ALL BY NAME ".join(
        f"SELECT {literal(str(name))} AS _duckanon_release, struct_pack(*COLUMNS({chosen(table)})) "
        f"AS _duckanon_row_{place} FROM query_table({literal(table)})"
        for place, (name, table) in enumerate(named, 1)
    )

"""SQL for measures that compare an original with its releases: what labels mean, and several releases as one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from duckanon._bridge import sql_text as sql
from duckanon._core.common.declare import Options


def label_meanings(caller: str, given: Options, columns: Sequence[str]) -> str:
    """Write how the labels of a release are read (``anon._label_meanings``), or those of several by their names."""

    def of(released: str) -> str:
        arguments = (caller, given["original"], released, columns, given["hierarchies"])
        return f"anon._label_meanings({', '.join(map(sql.literal, arguments))})"

    if "releases" not in given:
        return of(given["released"])
    each = [f"{{'release': {sql.literal(name)}, 'meanings': {of(table)}}}" for name, table in given["releases"].items()]
    return f"[{', '.join(each)}]"


def stacked_rows(tables: Mapping[str, str] | Sequence[str], chosen: Callable[[str], str]) -> str:
    """Write the rows of several tables below each other; ``_duckanon_release`` names or numbers the table of a row.

    Each table has a column of its own, in which its rows are structs: the same column may hold numbers in one table,
    labels or intervals in another. `chosen` writes the columns of a table, for ``COLUMNS()``.
    """
    named = tables.items() if isinstance(tables, Mapping) else enumerate(tables, 1)
    return " UNION ALL BY NAME ".join(
        f"SELECT {sql.literal(str(name))} AS _duckanon_release, struct_pack(*COLUMNS({chosen(table)})) "
        f"AS _duckanon_row_{place} FROM query_table({sql.literal(table)})"
        for place, (name, table) in enumerate(named, 1)
    )

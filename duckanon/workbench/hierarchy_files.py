"""Hierarchies built by clicking: prefixes of texts, ranges of numbers, groups of categories, saved as a CSV file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import duckdb

from duckanon._bridge import sql
from duckanon.job.errors import FileProblem
from duckanon.workbench.bench import Bench

ANYTHING = "*"
_MOST_LEVELS = 6
_LISTED = 40
"""Categories that the page lists, so that they can be put into groups."""


def prefixes(column: str, longest: int) -> list[str]:
    """Return the levels of texts of which ever fewer letters are shown: `021**`, `02***`."""
    text = f"{sql.name(column)}::VARCHAR"
    return [
        f"left({text}, {length}) || repeat('*', greatest(length({text}) - {length}, 0))"
        for length in range(longest, max(longest - _MOST_LEVELS, 0), -1)
    ]


def ranges(column: str, width: float) -> list[str]:
    """Return the levels of numbers in ranges of a width, then of twice that, and so on: `[20, 25)`."""
    number, levels = f"{sql.name(column)}::DOUBLE", []
    for power in range(_MOST_LEVELS - 2):
        step = width * 2**power
        low = f"floor({number} / {step!r}) * {step!r}"
        levels.append(f"format('[{{:g}}, {{:g}})', {low}, {low} + {step!r})")
    return levels


def groups(column: str, named: Mapping[str, str]) -> list[str]:
    """Return the level of categories in groups; what is in none is `other`."""
    text = f"{sql.name(column)}::VARCHAR"
    cases = " ".join(f"WHEN {text} = {sql.literal(value)} THEN {sql.literal(group)}" for value, group in named.items())
    return [f"CASE {cases} ELSE 'other' END"] if cases else ["'other'"]


def shared_values(bench: Bench, column: str, con: sql.Connection) -> list[tuple[str, int]]:
    """Return the categories that at least k people of the sample share, most people first."""
    table, quoted = bench.policy.table(), sql.name(column)
    size = f"count(DISTINCT {sql.name(table.person)})" if table.person else "count(*)"
    found: list[tuple[str, int]] = con.execute(
        f"SELECT {quoted}::VARCHAR, {size} FROM sample WHERE {quoted} IS NOT NULL GROUP BY {quoted} "
        f"HAVING {size} >= {max(table.promises.k or 10, 10)} ORDER BY 2 DESC, 1 LIMIT {_LISTED}"
    ).fetchall()
    return found


def save(bench: Bench, column: str, levels: list[str], con: sql.Connection) -> str:
    """Write a hierarchy of all values of a column beside the policy, and return the name of its file.

    A file of another origin is not overwritten.
    """
    folder, stem = bench.policy.path.parent, re.sub(r"\W+", "_", column)
    named = bench.policy.table().hierarchies.get(column, [])
    own = named[0] if len(named) == 1 else None  # several are of an aggregate table
    name = own or f"{stem}_hierarchy.csv"
    number = 1
    while own is None and (folder / name).exists():
        number += 1
        name = f"{stem}_hierarchy_{number}.csv"
    selected = ", ".join(f"{level} AS level_{place}" for place, level in enumerate(levels, 1))
    quoted, target = sql.name(column), sql.literal(str(folder / name))
    try:
        con.execute(
            f"COPY (SELECT DISTINCT {quoted}::VARCHAR AS value, {selected}, {sql.literal(ANYTHING)} AS everything "
            f"FROM people WHERE {quoted} IS NOT NULL ORDER BY ALL) TO {target} (FORMAT csv, HEADER)"
        ).fetchall()
    except (duckdb.Error, OSError) as error:
        raise FileProblem(f"{Path(name)}: the hierarchy cannot be written ({sql.why(error)}).") from None
    return name

"""Options of a large release, looked at by the macros that look at those of the same function in SQL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb

from duckanon._bridge import sql
from duckanon._core.common.names import known_columns
from duckanon._core.common.parameters import Kept
from duckanon.large.workspace import SOURCE


@dataclass(frozen=True)
class Checked:
    """The columns of a release, under the names that the table has for them.

    Attributes:
        names: The columns that are generalized.
        kept: Those that are released as they are.
        person: The one that tells which person a row belongs to.
        types: The types of all columns of the table.
    """

    names: list[str]
    kept: list[str]
    person: str | None
    types: dict[str, str]

    @property
    def columns(self) -> list[str]:
        """All that are needed, in the table's order."""
        wanted = {*self.names, *self.kept, *([self.person] if self.person else [])}
        return [name for name in self.types if name in wanted]

    @property
    def expressions(self) -> dict[str, str]:
        """For each column that is generalized, the SQL expression of its number."""
        return {name: _number(name, self.types[name]) for name in self.names}


def _number(name: str, kind: str) -> str:
    return f"epoch_us({sql.name(name)})::DOUBLE" if _is_time(kind) else f"{sql.name(name)}::DOUBLE"


def _is_time(kind: str) -> bool:
    return kind == "DATE" or kind.startswith("TIMESTAMP")


def has_numbers(con: duckdb.DuckDBPyConnection, kind: str) -> bool:
    """Tell whether a type has numbers in it; those of dates and timestamps are their microseconds."""
    return _is_time(kind) or bool(sql.one(con, f"SELECT anon._kind({sql.literal(kind)}) = 'numeric'")[0])


def rows_and_nulls(con: duckdb.DuckDBPyConnection, names: Sequence[str]) -> tuple[int, dict[str, int]]:
    """Count the rows of the source, and the NULLs of its columns."""
    counts = ", ".join(f"count({sql.name(name)})" for name in names)
    rows, *known = sql.one(con, f"SELECT count(*), {counts} FROM {SOURCE}")
    return rows, {name: rows - count for name, count in zip(names, known, strict=True)}


def resolve_columns(con: duckdb.DuckDBPyConnection, given: Mapping[str, Any]) -> Checked:
    """Find the columns that a call names in the source, and refuse those that it does not have or must not release.

    Args:
        con: A database with the source.
        given: The options of the call: ``cols``, and where the function has them ``kept`` and ``person``.
    """
    cols, person, kept = given["cols"], given.get("person"), given.get("kept", Kept())
    types = sql.columns(con, SOURCE)
    names = set(known_columns("cols", cols, types))
    people = known_columns("person", [] if person is None else [person], types)
    keep = [column for column in kept.keep or [] if column != "*"]
    known_columns("narrowing", kept.narrowing or [], types)
    released = set(known_columns("keep", keep, types))
    if "*" in (kept.keep or []):
        asked = ", ".join(map(sql.literal, (cols, kept.keep, person)))
        refused = sql.one(con, f"SELECT sentence FROM anon._refused_keep(NULL, '{SOURCE}', {asked})")[0]
        if refused:
            raise ValueError(refused)
        rows = con.execute(
            f"SELECT name FROM (SELECT unnest({sql.literal(list(types))}) AS name) WHERE anon._is_kept(name, {asked})"
        ).fetchall()
        released |= {name for (name,) in rows}
    changed, unchanged = ([name for name in types if name in some] for some in (names, released))
    return Checked(changed, unchanged, people[0] if people else None, types)


def kept_in_parts(what: Checked, given: Mapping[str, Any]) -> Kept:
    """Return what a part releases as it is: the column of people too, by which the whole release is counted."""
    return Kept([*what.kept, *([what.person] if what.person else [])], given["kept"].narrowing)


@contextmanager
def translate_errors(caller: str) -> Iterator[None]:
    """Put the name of the function before what it refuses."""
    try:
        yield
    except ValueError as error:
        text = str(error)
        raise ValueError(text if text.startswith(f"{caller}: ") else f"{caller}: {text}") from None

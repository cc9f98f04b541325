"""Options of a large release, looked at by the macros that look at those of the same function in SQL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np

from duckanon._bridge import sql
from duckanon._core.common.arguments import UNFIT_VALUES, sentence_of
from duckanon._core.common.declare import Options
from duckanon._core.common.names import match_columns
from duckanon._core.common.parameters import Kept
from duckanon.large.workspace import SOURCE, Place, Source, Target, Workspace, workspace


@dataclass(frozen=True)
class Checked:
    """The columns of a release, under the names that the table has for them."""

    names: list[str]  # that are generalized
    kept: list[str]  # that are released as they are
    person: str | None
    types: dict[str, str]  # of all columns of the table

    @property
    def columns(self) -> list[str]:
        """All that are needed, in the table's order."""
        wanted = {*self.names, *self.kept, *([self.person] if self.person else [])}
        return [name for name in self.types if name in wanted]

    @property
    def expressions(self) -> dict[str, str]:
        """For each column that is generalized, the SQL expression of its number."""
        numbers = {name: sql.quote(name) for name in self.names}
        numbers |= {name: f"epoch_us({numbers[name]})" for name in numbers if _is_time(self.types[name])}
        return {name: f"{number}::DOUBLE" for name, number in numbers.items()}


def _is_time(kind: str) -> bool:
    return kind == "DATE" or kind.startswith("TIMESTAMP")


def has_numbers(con: duckdb.DuckDBPyConnection, kind: str) -> bool:
    """Tell whether a type has numbers in it; those of dates and timestamps are their microseconds."""
    return _is_time(kind) or is_numeric(con, kind)


def is_numeric(con: duckdb.DuckDBPyConnection, kind: str) -> bool:
    """Tell whether the values of a type are numbers."""
    return bool(sql.fetch_row(con, f"SELECT anon._kind({sql.literal(kind)}) = 'numeric'")[0])


def rows_and_nulls(con: duckdb.DuckDBPyConnection, names: Sequence[str]) -> tuple[int, dict[str, int]]:
    """Count the rows of the source, and the NULLs of its columns."""
    counts = ", ".join(f"count({sql.quote(name)})" for name in names)
    rows, *known = sql.fetch_row(con, f"SELECT count(*), {counts} FROM {SOURCE}")
    return rows, {name: rows - count for name, count in zip(names, known, strict=True)}


def resolve_columns(con: duckdb.DuckDBPyConnection, options: Options) -> Checked:
    """Find the columns that a call names in the source, and refuse those that it does not have or must not release."""
    cols, person, kept = options["cols"], options.get("person"), options.get("kept", Kept())
    types = sql.columns(con, SOURCE)
    names = set(match_columns("cols", cols, types))
    people = match_columns("person", [] if person is None else [person], types)
    keep = [column for column in kept.keep or [] if column != "*"]
    match_columns("narrowing", kept.narrowing or [], types)
    released = set(match_columns("keep", keep, types))
    if "*" in (kept.keep or []):
        asked = ", ".join(map(sql.literal, (cols, kept.keep, person)))
        refused = sql.fetch_row(con, f"SELECT sentence FROM anon._refused_keep(NULL, '{SOURCE}', {asked})")[0]
        if refused:
            raise ValueError(refused)
        rows = con.execute(
            f"SELECT name FROM (SELECT unnest({sql.literal(list(types))}) AS name) WHERE anon._is_kept(name, {asked})"
        ).fetchall()
        released |= {name for (name,) in rows}
    changed, unchanged = ([name for name in types if name in some] for some in (names, released))
    return Checked(changed, unchanged, people[0] if people else None, types)


def refuse_columns(layout: Checked) -> None:
    """Refuse columns that no new records are made of: fewer than two, or texts in which rare values have no name."""
    if len(layout.names) < 2:
        raise ValueError(f"cols must name at least two columns; got {len(layout.names)}.")
    for name in layout.names:
        if layout.types[name] in ("UUID", "JSON"):
            raise ValueError(
                f'column "{name}" has the type {layout.types[name]}, which is no text here; cast it to VARCHAR.'
            )


def options_of_parts(layout: Checked, options: Options) -> dict[str, Any]:
    """Return the options for a part, which keeps the column of people too: the whole release is counted by it."""
    kept = Kept([*layout.kept, *([layout.person] if layout.person else [])], options["kept"].narrowing)
    return {**options, "cols": layout.names, "person": layout.person, "kept": kept}


@contextmanager
def open_workspace(
    caller: str,
    options: Options,
    source: Source,
    target: Target,
    memory: str,
    temporary: Place | None,
    replace: bool,
) -> Iterator[tuple[Workspace, Checked]]:
    """Open the workspace of a call and find its columns; the function's name is put before what it refuses.

    numpy warns nobody of infinities meanwhile.
    """
    try:
        with np.errstate(all="ignore"), workspace(source, target, memory, temporary, replace) as work:
            yield work, resolve_columns(work.con, options)
    except duckdb.InterruptException:
        raise
    except duckdb.Error as error:  # which may quote a value
        raise type(error)(f"{caller}: {sql.reason(error).removeprefix(f'{caller}: ')}.") from None
    except UNFIT_VALUES as error:
        text = sentence_of(error)
        raise ValueError(text if text.startswith(f"{caller}: ") else f"{caller}: {text}") from None

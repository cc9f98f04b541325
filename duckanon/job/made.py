"""A table of a job after it was released, and what the last release of it tells beside the new one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from duckanon.job import changes, sources, sql
from duckanon.job.errors import FileProblem
from duckanon.job.places import Places
from duckanon.job.policy import Table
from duckanon.job.promises import Promise, Tables
from duckanon.job.warehouse import Warehouse
from duckanon.job.written import Shape


@dataclass
class Made:
    """A table of the job, and what became of it."""

    table: Table
    original: sources.Original
    form: Shape
    tables: Tables
    promises: list[Promise]
    entry: dict[str, Any]
    warnings: list[str]


def last_release(
    con: duckdb.DuckDBPyConnection, name: str, previous: str | Path | None, warehouse: Warehouse, where: Places
) -> Path | str | None:
    """Return the last release: a file, or the query of a server's rows."""
    if previous or name in where.targets:
        return Path(previous) if previous else where.targets[name]
    return warehouse.previous(con, name, "previous_rows") if name in warehouse else None


def compare_with_last(
    con: duckdb.DuckDBPyConnection, made: Made, last: Path | str | None, run: dict[str, Any], is_asked: bool
) -> None:
    """Say what the difference to the last release tells; without a last one there is none."""
    is_there = last is not None and (is_asked or isinstance(last, str) or last.exists())
    if not made.table.method.makes_classes or last is None or not is_there:
        return
    try:
        change = changes.compared(con, made.table, made.form, made.tables, last)
    except (duckdb.Error, OSError) as error:
        if is_asked:
            raise FileProblem(f"{last}: the last release cannot be read ({sql.why(error)}).") from None
        change = None
    if change is None:
        last_name = made.table.target.table if isinstance(last, str) else last.name
        run["warnings"].append(f"{last_name}: the last release cannot be compared, its columns are others.")
        return
    made.entry["changes"] = change
    promise = changes.promise(made.table, change)
    if promise:
        made.promises.append(promise)
    elif change["small_changes"]:
        run["warnings"].append(changes.words(made.table, change))

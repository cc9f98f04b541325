"""One table of a job: released, written, read back and counted, and compared with its last release."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from duckanon._bridge import sql
from duckanon._core.common.amounts import counted
from duckanon._core.common.release_record import ChangesEntry, OutputEntry, Record, TableEntry
from duckanon.job import aggregates, backends, methods, plans, promises, readback, record, refusals, sources
from duckanon.job.errors import FileProblem
from duckanon.job.keys import Secret
from duckanon.job.places import Outbox, Places
from duckanon.job.policy import Table, source_format
from duckanon.job.policy_file import PolicyFile
from duckanon.job.promises import Promise, Tables
from duckanon.job.readback import Shape
from duckanon.job.warehouse import Warehouse

if TYPE_CHECKING:
    from duckanon.job.cohorts import Cohorts


@dataclass
class TableResult:
    """A table of the job, and what became of it."""

    table: Table
    form: Shape
    tables: Tables
    promises: list[Promise]
    entry: TableEntry
    warnings: list[str]


def last_release(
    con: sql.Connection, name: str, previous: str | Path | None, warehouse: Warehouse, where: Places
) -> Path | str | None:
    """Return the previous release: a file, or the query of a server's rows."""
    if previous or name in where.targets:
        return Path(previous) if previous else where.targets[name]
    return warehouse.previous(con, name, "previous_rows") if name in warehouse else None


def compare_with_last(
    con: sql.Connection, made: TableResult, last: Path | str | None, run: Record, is_asked: bool
) -> bool:
    """Record what the difference to the previous release reveals, and tell whether there is such a release."""
    is_there = last is not None and (is_asked or isinstance(last, str) or last.exists())
    if not made.table.method.makes_classes or last is None or not is_there:
        return False
    try:
        change = _compared(con, made.table, made.form, made.tables, last)
    except (duckdb.Error, OSError) as error:
        if is_asked:
            raise FileProblem(f"{last}: the previous release cannot be read ({sql.why(error)}).") from None
        change = None
    if change is None:
        last_name = made.table.target.table if isinstance(last, str) else last.name
        run["warnings"].append(f"{last_name}: the previous release has other columns and cannot be compared.")
        return True
    made.entry["changes"] = change
    asked, measured = made.table.promises.max_small_changes, change["small_changes"]
    by_few = f"from the previous release by fewer than {made.table.promises.k} {change['counted']}"
    words = (
        f"{counted(measured, 'class differs', 'classes differ')} {by_few}: an attacker who knows who came or left in "
        "between learns more than their class."
        if measured
        else f"No class differs {by_few}."
    )
    if asked is not None:
        helpful = "publishing less often, so that more people come and go at once, or a larger max_small_changes"
        made.promises.append(Promise("max_small_changes", asked, measured, measured <= asked, words, helpful))
    elif measured and "cohorts" not in made.entry:  # of which k people or more came and went, whatever is left of it
        run["warnings"].append(words)
    return True


def release_table(
    con: sql.Connection,
    file: PolicyFile,
    name: str,
    original: sources.Original,
    tables: Tables,
    outbox: Outbox | None,
    warehouse: Warehouse,
    where: Places,
    place: backends.Storage,
    say: Callable[[str], None],
    cohorts: Cohorts | None = None,
    key: Secret | None = None,
) -> TableResult:
    """Release a table, write it beside its target (without an outbox: a dry run), read it back, count its promises.

    Tables of events were released together before.
    """
    table, plan = file.policy.tables[name], where.plans.get(name)
    if cohorts:
        cohorts.prepare(con, table, tables.original)
    warehouse.refuse_sources(original.relations)
    backend, by_parts, planned = backends.Backend(place.memory), None, None
    if not table.is_linked:
        backend = backends.choose_backend(table, original.row_count, place, plan)
        say(f"{table.method.name} of {original.row_count} rows of {name}{backend.words}")
        with refusals.translate_errors(file, name):
            by_parts = backends.release(con, table, tables, backend, place.folder) if backend.is_by_parts else None
        if not by_parts:
            planned = make_in_memory(con, file, name, tables, where, place, key, cohorts)
    if planned and plan and outbox and not planned.is_reused:
        plans.write(con, outbox.beside(plan))
    form = readback.shape(con, name, table, tables.released)
    hidden: Path | str | None = None
    if outbox:
        say(f"writing {name}")
        with _named(where.shown(name)):
            if name in warehouse:
                hidden = readback.deliver(con, warehouse, name, table, form, original, tables.released)
            else:
                hidden = outbox.beside(where.targets[name])
                readback.write(con, form, tables.released, hidden)
    say(f"counting what is promised of {name}")
    with _named(where.shown(name)):
        readback.read_back(con, table, form, tables.released, hidden, tables.counted)
    parameters = backends.parameters(table, backend)
    with refusals.translate_errors(file, name):
        if table.method.makes_cells:
            parameters["overlapping"] = aggregates.overlaps(con, table, tables.original)
            kept = list(aggregates.promised(con, table, tables, parameters))
        else:
            kept = list(promises.promised(con, table, form, tables))
        rows, people = promises.people(con, table, tables.counted) if table.method.makes_classes else (None, None)
    output: OutputEntry = {
        "path": table.target.table if name in where.tables else where.targets[name].name,
        "format": form.kind,
        "rows": sql.one(con, f"SELECT count(*) FROM {tables.released}")[0] if rows is None else rows,
        "people": people,
        "sha256": sources.hash_of_release(con, hidden) if hidden else None,
        "columns": form.columns,
        "labels": readback.label_counts(con, tables.counted, form.labels),
    }
    entry = record.of_table(con, name, table, original, tables, output, parameters)
    if table.method.makes_cells:
        entry["cells"] = aggregates.entry(con, tables, parameters)
    if place.memory:
        entry["memory"] = backend.entry(by_parts)
    if planned and plan:
        entry["plan"] = planned.entry(plan)
        plans.set_aside(con, tables.plan)
    if cohorts and cohorts.entry:
        entry["cohorts"] = cohorts.entry
    warnings = planned.warnings(table.promises.k) if planned else []
    return TableResult(table, form, tables, kept, entry, warnings)


def make_in_memory(
    con: sql.Connection,
    file: PolicyFile,
    name: str,
    tables: Tables,
    where: Places,
    place: backends.Storage,
    key: Secret | None,
    cohorts: Cohorts | None = None,
) -> plans.Planned | None:
    """Make the release of a table; what the method refuses is said in the words of the policy, with its line."""
    table = file.policy.tables[name]
    with refusals.translate_errors(file, name):
        if not table.method.makes_cells:
            return _release(con, table, tables, where.plans.get(name), place, cohorts)
        _tabulate(con, file, name, tables, where, place, key)
    return None


def _tabulate(
    con: sql.Connection,
    file: PolicyFile,
    name: str,
    tables: Tables,
    where: Places,
    place: backends.Storage,
    key: Secret | None,
) -> None:
    """Make an aggregate table, with what was given away before in mind."""
    if place.memory:
        backends.widen(con, place.memory)
    table = file.policy.tables[name]
    given, previous = getattr(table.method, "previous", None), None
    if given is not None:
        path = file.place(given)
        previous = aggregates.load_previous(con, path, where.targets.get(name), f"previous_{tables.released}")
    con.execute(f"CREATE TABLE {tables.released} AS {aggregates.call(table, tables, previous, key)}").fetchall()


def _release(
    con: sql.Connection,
    table: Table,
    tables: Tables,
    plan: Path | None,
    place: backends.Storage,
    cohorts: Cohorts | None,
) -> plans.Planned | None:
    if place.memory:
        backends.widen(con, place.memory)
    if plan is not None:
        return plans.release(con, table, tables.original, tables.released, tables.hierarchies, plan, cohorts)
    call = methods.call(table, tables.original, tables.hierarchies)
    con.execute(f"CREATE TABLE {tables.released} AS {call}").fetchall()
    return None


@contextmanager
def _named(path: str) -> Iterator[None]:
    """Put the name of the target before what went wrong with its file."""
    try:
        yield
    except FileProblem as error:
        raise FileProblem(f"{path}: {error}") from None


def _compared(
    con: sql.Connection, table: Table, form: Shape, tables: Tables, previous: Path | str
) -> ChangesEntry | None:
    """Compare the classes of a release with those of the last one; None where these have other columns.

    A class of twelve that was one of eleven before tells that one person came: who knows of somebody new knows the
    class then, and the sensitive value too, as the difference of two counts.

    The last one is a file, or the query of a server's rows. Rows are counted; pseudonyms where both releases have them.
    """
    catalog = "previous_release"
    k = table.promises.k or 0
    try:
        rows = previous if isinstance(previous, str) else _rows(con, form, previous, catalog)
        present = {row[0] for row in con.execute(f"DESCRIBE {rows}").fetchall()}
        if not set(form.classes) <= present:
            return None
        person = next(iter(methods.linking(table)), None)
        person = person if person in present else None
        size = f"count(DISTINCT {sql.name('whose')})" if person else "count(*)"
        columns = ", ".join(f"{sql.name(name)}::VARCHAR AS c{place}" for place, name in enumerate(form.classes))
        whose = f"{sql.name(person)}::VARCHAR" if person else "NULL"
        classes, before, same, small, came, went = sql.one(
            con,
            f"WITH both_releases AS (SELECT true AS is_new, {whose} AS whose, {columns} FROM {tables.counted} "
            f"UNION ALL SELECT false, {whose}, {columns} FROM ({rows})), "
            f"sizes AS (SELECT {size} FILTER (is_new) AS n, {size} FILTER (NOT is_new) AS m FROM both_releases "
            f"GROUP BY {', '.join(f'c{place}' for place in range(len(form.classes)))}) "
            f"SELECT count(*) FILTER (n > 0), count(*) FILTER (m > 0), count(*) FILTER (n > 0 AND m > 0), "
            f"count(*) FILTER (abs(n - m) BETWEEN 1 AND {k - 1}), "
            f"coalesce(sum(n - m) FILTER (n - m BETWEEN 1 AND {k - 1}), 0)::BIGINT, "
            f"coalesce(sum(m - n) FILTER (m - n BETWEEN 1 AND {k - 1}), 0)::BIGINT FROM sizes",
        )
    finally:
        con.execute(f"DETACH DATABASE IF EXISTS {catalog}").fetchall()
    return {
        "previous_sha256": sources.hash_of_release(con, previous),
        "counted": "people" if person else "rows",
        "classes": classes,
        "classes_before": before,
        "classes_in_both": same,
        "small_changes": small,
        "came_in_small_changes": came,
        "went_in_small_changes": went,
    }


def _rows(con: sql.Connection, form: Shape, previous: Path, catalog: str) -> str:
    place, kind = sql.literal(str(previous)), source_format(str(previous))
    if kind == "duckdb":
        con.execute(f"ATTACH {place} AS {catalog} (READ_ONLY)").fetchall()
        return f"SELECT * FROM {catalog}.main.{sql.name(form.table)}"
    if kind == "csv":
        return readback.released_csv(previous)
    return f"SELECT * FROM read_parquet({place})"

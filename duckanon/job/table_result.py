"""One table of a job: released, written, read back and counted, and compared with its last release."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from duckanon._bridge import sql
from duckanon._core.common.arrays import spell_count
from duckanon._core.common.release_record import ChangesEntry, OutputEntry, Record, TableEntry
from duckanon.job import aggregates, backends, methods, plans, promises, readback, record, refusals, sources
from duckanon.job.errors import FileProblem, PolicyError
from duckanon.job.policy import Table, source_format
from duckanon.job.policy_file import PolicyFile
from duckanon.job.promises import Promise, Tables
from duckanon.job.readback import Shape

if TYPE_CHECKING:
    from duckanon.job.cohorts import Cohorts
    from duckanon.job.run import Run, TableInput


@dataclass
class TableResult:
    """A table of the job, and what became of it."""

    table: Table
    form: Shape
    tables: Tables
    promises: list[Promise]
    entry: TableEntry
    warnings: list[str]


def find_last_release(run: Run, name: str, previous: str | Path | None) -> Path | str | None:
    """Return the previous release: a file, or the query of a server's rows."""
    if previous or name in run.paths.targets:
        return Path(previous) if previous else run.paths.targets[name]
    return run.warehouse.previous(run.con, name, "previous_rows") if name in run.warehouse else None


def compare_with_last(
    con: sql.Connection, result: TableResult, last: Path | str | None, entry: Record, is_asked: bool
) -> bool:
    """Record what the difference to the previous release reveals, and tell whether there is such a release."""
    has_last = last is not None and (is_asked or isinstance(last, str) or last.exists())
    if not result.table.method.makes_classes or last is None or not has_last:
        return False
    try:
        change = _compare_classes(con, result.table, result.form, result.tables, last)
    except (duckdb.Error, OSError) as error:
        if is_asked:
            raise FileProblem(f"{last}: the previous release cannot be read ({sql.reason(error)}).") from None
        change = None
    if change is None:
        last_name = result.table.target.table if isinstance(last, str) else last.name
        entry["warnings"].append(f"{last_name}: the previous release has other columns and cannot be compared.")
        return True
    result.entry["changes"] = change
    most, measured = result.table.promises.max_small_changes, change["small_changes"]
    by_few = f"from the previous release by fewer than {result.table.promises.k} {change['counted']}"
    words = (
        f"{spell_count(measured, 'class differs', 'classes differ')} {by_few}: an attacker who knows who came or left "
        "in between learns more than their class."
        if measured
        else f"No class differs {by_few}."
    )
    if most is not None:
        helpful = "publishing less often, so that more people come and go at once, or a larger max_small_changes"
        result.promises.append(Promise("max_small_changes", most, measured, measured <= most, words, helpful))
    elif measured and "cohorts" not in result.entry:  # of which k people or more came and went, whatever is left of it
        entry["warnings"].append(words)
    return True


def release_table(run: Run, table_input: TableInput) -> TableResult:
    """Release a table, write it beside its target (without an outbox: a dry run), read it back, count its promises.

    Tables of events were released together before.
    """
    con, file, paths, storage, outbox = run.con, run.file, run.paths, run.storage, run.outbox
    name, original, tables, cohorts = table_input.name, table_input.original, table_input.tables, table_input.cohorts
    table, plan = file.policy.tables[name], paths.plans.get(name)
    if cohorts:
        cohorts.prepare(con, table, tables.original)
    run.warehouse.refuse_sources(original.relations)
    backend, partitions, planned = backends.Backend(storage.memory), None, None
    if not table.is_linked:
        backend = backends.choose_backend(table, original.row_count, storage, plan)
        run.say(f"{table.method.name} of {original.row_count} rows of {name}{backend.words}")
        if backend.is_by_parts:
            with refusals.translate_errors(file, name):
                partitions = backends.release(con, table, tables, backend, storage.folder)
        else:
            planned = make_in_memory(run, name, tables, cohorts)
    if planned and plan and outbox and not planned.is_reused:
        plans.write(con, outbox.beside(plan))
    form = file_shape(con, file, name, tables)
    written: Path | str | None = None
    if outbox:
        run.say(f"writing {name}")
        with _name_target(paths.show(name)):
            if name in run.warehouse:
                written = readback.deliver(con, run.warehouse, name, table, form, original, tables.released)
            else:
                written = outbox.beside(paths.targets[name])
                readback.write(con, form, tables.released, written)
    run.say(f"counting what is promised of {name}")
    with _name_target(paths.show(name)):
        readback.read_back(con, table, form, tables.released, written, tables.counted)
    parameters = backends.parameters(table, backend)
    with refusals.translate_errors(file, name):
        if table.method.makes_cells:
            parameters["overlapping"] = aggregates.overlaps(con, table, tables.original)
            counted_promises = list(aggregates.count_cell_promises(con, table, tables, parameters))
        else:
            counted_promises = list(promises.count_promises(con, table, form, tables))
        rows, people = promises.people(con, table, tables.counted) if table.method.makes_classes else (None, None)
    output: OutputEntry = {
        "path": table.target.table if name in paths.tables else paths.targets[name].name,
        "format": form.kind,
        "rows": sql.fetch_row(con, f"SELECT count(*) FROM {tables.released}")[0] if rows is None else rows,
        "people": people,
        "sha256": sources.hash_of_release(con, written) if written else None,
        "columns": form.columns,
        "labels": readback.label_counts(con, tables.counted, form.labels),
    }
    entry = record.of_table(con, name, table, original, tables, output, parameters)
    if table.method.makes_cells:
        entry["cells"] = aggregates.entry(con, tables, parameters)
    if storage.memory:
        entry["memory"] = backend.entry(partitions)
    if planned and plan:
        entry["plan"] = planned.entry(plan)
        plans.set_aside(con, tables.plan)
    if cohorts and cohorts.entry:
        entry["cohorts"] = cohorts.entry
    warnings = planned.warnings(table.promises.k) if planned else []
    return TableResult(table, form, tables, counted_promises, entry, warnings)


def file_shape(con: sql.Connection, file: PolicyFile, name: str, tables: Tables) -> readback.Shape:
    """Return the columns that the file of a release has, or refuse names that it would have twice."""
    try:
        return readback.shape(con, name, file.policy.tables[name], tables.released)
    except PolicyError as error:
        raise file.wrong(name, ("target", "path"), str(error)) from None


def make_in_memory(run: Run, name: str, tables: Tables, cohorts: Cohorts | None = None) -> plans.Planned | None:
    """Make the release of a table; what the method refuses is said in the words of the policy, with its line."""
    con, table = run.con, run.file.policy.tables[name]
    with refusals.translate_errors(run.file, name):
        if run.storage.memory:
            backends.widen(con, run.storage.memory)
        if (plan := run.paths.plans.get(name)) is not None and not table.method.makes_cells:
            return plans.release(con, table, tables.original, tables.released, tables.hierarchies, plan, cohorts)
        if table.method.makes_cells:  # with what was given away before in mind
            path, previous = getattr(table.method, "previous", None), None
            if path is not None:
                target = run.paths.targets.get(name)
                previous = aggregates.load_previous(con, run.file.place(path), target, f"previous_{tables.released}")
            call = aggregates.call(table, tables, previous, run.key)
        else:
            call = methods.call(table, tables.original, tables.hierarchies)
        con.execute(f"CREATE TABLE {tables.released} AS {call}").fetchall()
    return None


@contextmanager
def _name_target(path: str) -> Iterator[None]:
    """Put the name of the target before what went wrong with its file."""
    try:
        yield
    except FileProblem as error:
        raise FileProblem(f"{path}: {error}") from None


def _compare_classes(
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
        size = f"count(DISTINCT {sql.quote('whose')})" if person else "count(*)"
        columns = ", ".join(f"{sql.quote(name)}::VARCHAR AS c{place}" for place, name in enumerate(form.classes))
        owner = f"{sql.quote(person)}::VARCHAR" if person else "NULL"
        classes, before, same, small, came, went = sql.fetch_row(
            con,
            f"WITH both_releases AS (SELECT true AS is_new, {owner} AS whose, {columns} FROM {tables.counted} "
            f"UNION ALL SELECT false, {owner}, {columns} FROM ({rows})), "
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
        return f"SELECT * FROM {catalog}.main.{sql.quote(form.table)}"
    if kind == "csv":
        return readback.read_csv_release(previous)
    return f"SELECT * FROM read_parquet({place})"

"""A release from the policy to the file: read, released, written beside, read back, counted, and only then named."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

import duckanon
from duckanon.job import (
    beside,
    changes,
    consistency,
    keys,
    links,
    methods,
    plans,
    policy_file,
    promises,
    record,
    refusals,
    sources,
    sql,
    written,
)
from duckanon.job.errors import FileProblem, PromiseBroken
from duckanon.job.outbox import Outbox
from duckanon.job.places import Places, places
from duckanon.job.policy import Table
from duckanon.job.policy_file import PolicyFile
from duckanon.job.promises import Promise, Tables
from duckanon.job.written import Shape


@dataclass
class _Made:
    """A table of the job, and what became of it."""

    table: Table
    original: sources.Original
    form: Shape
    tables: Tables
    promises: list[Promise]
    entry: dict[str, Any]
    warnings: list[str]


def release(
    policy: str | Path,
    *,
    source: str | Path | None = None,
    table: str | None = None,
    query: str | None = None,
    target: str | Path | None = None,
    report: str | Path | None = None,
    plan: str | Path | None = None,
    previous: str | Path | None = None,
    dry_run: bool = False,
    show_progress: bool = False,
) -> dict[str, Any]:
    """Release the tables of a policy.

    Parameters
    ----------
    policy
        The TOML file.
    source, table, query, target, report, plan
        In place of what the policy says; paths are meant from the folder of the process.
    previous
        The last release, to say what the difference tells; the file that is in the target's place if it is not given.
    dry_run
        Do all but write.
    show_progress
        Say on standard error what is being done.

    Returns
    -------
    dict
        The record of the run.

    Raises
    ------
    PromiseBroken
        The release does not keep what the policy promises; the last release is still in its place.
    PolicyError
        The policy is wrong.
    FileProblem
        A source cannot be read or a target not be written.
    """
    con = connection()
    try:
        return released(
            con,
            policy,
            changes_of(source=source, table=table, query=query, target=target, report=report, plan=plan),
            previous=previous,
            dry_run=dry_run,
            show_progress=show_progress,
        )
    finally:
        con.close()


def connection() -> duckdb.DuckDBPyConnection:
    """Open the job's own database, in memory."""
    con = duckanon.connect()
    con.execute("SET python_enable_replacements = false").fetchall()
    con.execute("SET enable_progress_bar = false").fetchall()
    return con


def changes_of(**given: str | Path | None) -> dict[str, Any]:
    """Return what is given from outside, by the names of the policy."""
    source: dict[str, Any] = {}
    if given.get("source") is not None:
        source["path"] = _outside(given["source"])
    if given.get("table") is not None:
        source |= {"table": given["table"], "query": None}
    if given.get("query") is not None:
        source |= {"query": given["query"], "table": None}
    found: dict[str, Any] = {"source": source} if source else {}
    if given.get("target") is not None:
        found["target"] = {"path": _outside(given["target"])}
    for name in ("report", "plan"):
        if given.get(name) is not None:
            found[name] = _outside(given[name])
    return found


def _outside(path: str | Path | None) -> str:
    text = str(path)
    return text if "://" in text else str(Path.cwd() / Path(text).expanduser())


def released(
    con: duckdb.DuckDBPyConnection,
    policy: str | Path,
    given: dict[str, Any],
    *,
    previous: str | Path | None = None,
    dry_run: bool = False,
    show_progress: bool = False,
) -> dict[str, Any]:
    """Release the tables of a policy through a connection of `connection`, which can be interrupted."""
    say = _speaker(show_progress)
    file = policy_file.read(policy, given)
    consistency.check(file)
    key = keys.read(file)
    where = places(file)
    run = record.begun(file)
    with Outbox(() if dry_run else where.targets.values(), () if dry_run else where.others) as outbox:
        con.execute(f"SET file_search_path = {sql.literal(str(file.path.parent.resolve()))}").fetchall()
        con.execute(f"SET temp_directory = {sql.literal(str(outbox.spill))}").fetchall()
        made: dict[str, _Made] = {}
        for number, name in enumerate(file.policy.tables, 1):
            made[name] = _made(con, file, name, number, key, None if dry_run else outbox, where, say)
        for name, promise in links.linked(con, {n: (m.table, m.form, m.tables) for n, m in made.items()}).items():
            made[name].promises.append(promise)
        for name, one in made.items():
            _compare_with_last(con, one, Path(previous) if previous else where.targets[name], run, bool(previous))
            run["warnings"] += one.warnings
            one.entry["promises"] = [promise.entry() for promise in one.promises]
            run["tables"].append(one.entry)
        run["finished"] = record.now()
        _check(run, made)
        run["outcome"] = "dry run" if dry_run else "released"
        if where.report:
            say("measuring for the report")
            with refusals.explained(file.path):
                _report(con, run, made, where, None if dry_run else outbox)
        if not dry_run:
            outbox.write(where.record, record.text(run))
            outbox.publish()
    return run


def _made(
    con: duckdb.DuckDBPyConnection,
    file: PolicyFile,
    name: str,
    number: int,
    key: keys.Secret | None,
    outbox: Outbox | None,
    where: Places,
    say: Callable[[str], None],
) -> _Made:
    table = file.policy.tables[name]
    say(f"reading {name}")
    original = sources.read(con, file, name, number, key)
    tables = Tables(
        original.table,
        f"released_{number}",
        f"counted_{number}",
        beside.reference(con, file, table, number),
        beside.hierarchies(con, file, table, number),
    )
    say(f"{table.method.name} of {original.row_count} rows of {name}")
    with refusals.explained(file.path):
        planned = _release(con, table, tables, where.plan)
    if planned and where.plan and outbox and not planned.is_reused:
        plans.write(con, outbox.beside(where.plan))
    form = written.shape(con, name, table, tables.released)
    hidden = outbox.beside(where.targets[name]) if outbox else None
    if hidden:
        say(f"writing {name}")
        with _named(where.targets[name]):
            written.write(con, form, tables.released, hidden)
    say(f"counting what is promised of {name}")
    with _named(where.targets[name]):
        written.read_back(con, table, form, tables.released, hidden, tables.counted)
    with refusals.explained(file.path):
        kept = list(promises.promised(con, table, form, tables))
        rows, people = promises.people(con, table, tables.counted) if table.method.makes_classes else (None, None)
    output = {
        "path": where.targets[name].name,
        "format": form.kind,
        "rows": sql.one(con, f"SELECT count(*) FROM {tables.released}")[0] if rows is None else rows,
        "people": people,
        "sha256": sources.hash_of([hidden]) if hidden else None,
    }
    entry = record.of_table(con, name, table, original, tables, output)
    if planned and where.plan:
        entry["plan"] = planned.entry(where.plan)
    warnings = planned.warnings(table.promises.k) if planned else []
    return _Made(table, original, form, tables, kept, entry, warnings)


def _release(con: duckdb.DuckDBPyConnection, table: Table, tables: Tables, plan: Path | None) -> plans.Planned | None:
    if plan is not None:
        return plans.release(con, table, tables.original, tables.released, tables.hierarchies, plan)
    call = methods.call(table, tables.original, tables.hierarchies)
    con.execute(f"CREATE TABLE {tables.released} AS {call}").fetchall()
    return None


def _compare_with_last(
    con: duckdb.DuckDBPyConnection, made: _Made, last: Path, run: dict[str, Any], is_asked: bool
) -> None:
    """Say what the difference to the last release tells; without a last one there is none."""
    if not made.table.method.makes_classes or not (is_asked or last.exists()):
        return
    try:
        change = changes.compared(con, made.table, made.form, made.tables, last)
    except (duckdb.Error, OSError) as error:
        if is_asked:
            raise FileProblem(f"{last}: the last release cannot be read ({sql.why(error)}).") from None
        change = None
    if change is None:
        run["warnings"].append(f"{last.name}: the last release cannot be compared, its columns are others.")
        return
    made.entry["changes"] = change
    promise = changes.promise(made.table, change)
    if promise:
        made.promises.append(promise)
    elif change["small_changes"]:
        run["warnings"].append(changes.words(made.table, change))


def _check(run: dict[str, Any], made: dict[str, _Made]) -> None:
    if record.broken(run):
        run["outcome"] = "promise broken"
        raise PromiseBroken(record.broken_words({name: one.promises for name, one in made.items()}), run)


def _report(
    con: duckdb.DuckDBPyConnection, run: dict[str, Any], made: dict[str, _Made], where: Places, outbox: Outbox | None
) -> None:
    """Measure for the report, and write it."""
    assert where.report is not None
    from duckanon import report  # matplotlib takes a second to load

    figures = {}
    for name, one in made.items():
        arguments = (con, one.tables.original, one.tables.released, one.entry, one.tables.reference)
        hierarchies = one.tables.hierarchies or None
        plan = "plan" if where.plan else None
        one.entry["measures"] = report.measured(*arguments, plan=plan, hierarchies=hierarchies)
        figures[name] = report.figures(*arguments, hierarchies=hierarchies)
    if outbox:
        outbox.write(where.report, report.html(run, figures))


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Put the name of the target before what went wrong with its file."""
    try:
        yield
    except FileProblem as error:
        raise FileProblem(f"{path}: {error}") from None


def _speaker(show_progress: bool) -> Callable[[str], None]:
    return (lambda text: print(f"{text} ...", file=sys.stderr, flush=True)) if show_progress else (lambda _: None)

"""A release from the policy to the file, in four steps: read, make, check, publish.

Tables are read and made one after the other. What was written beside the targets is read back and counted; files are
renamed into place only when every promise was kept. All steps share one `Run`.
"""

from __future__ import annotations

import contextlib
import json
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckanon
from duckanon._bridge import sql
from duckanon._core.common import progress
from duckanon._core.common.names import refuse_unknown_options
from duckanon._core.common.release_record import Record
from duckanon.job import (
    account,
    backends,
    consistency,
    keys,
    linked_release,
    policy_file,
    record,
    refusals,
    signing,
    sources,
)
from duckanon.job.account import JobAccount
from duckanon.job.cohorts import Cohorts, cohorts_of
from duckanon.job.consistency import check_exact_events, refuse_uncounted
from duckanon.job.errors import Cancelled, PromiseBroken
from duckanon.job.places import Originals, Outbox, Places, check_owner, originals, places
from duckanon.job.policy_file import PolicyFile, changes_of
from duckanon.job.promises import Tables
from duckanon.job.table_result import TableResult, compare_with_last, find_last_release, release_table
from duckanon.job.warehouse import Warehouse

_LOOK_EVERY = 0.1
"""Seconds between two looks whether a job was cancelled."""


@dataclass(frozen=True)
class Request:
    """What a run is asked for; `changes` override the policy (`policy_file.changes_of`)."""

    policy: str | Path
    changes: Mapping[str, Any]
    previous: str | Path | None = None
    is_dry: bool = False  # everything is done except writing
    policy_text: str | None = None  # of the policy when the release was decided
    sign: str | Path | None = None  # the file of the key that signs the record


@dataclass
class Run:
    """What the steps of a run share.

    A trial of `duckanon policy check` has a connection, a policy, paths and a storage only, and writes nothing.
    """

    con: sql.Connection
    file: PolicyFile
    paths: Places
    storage: backends.Storage
    key: keys.Secret | None = None  # of pseudonyms
    say: Callable[[str], None] = lambda _: None  # called with each step
    outbox: Outbox | None = None  # None where nothing is written
    warehouse: Warehouse = field(default_factory=lambda: Warehouse({}))
    account: JobAccount | None = None
    results: dict[str, TableResult] = field(default_factory=dict)  # by the names of the tables, as they are made


@dataclass(frozen=True)
class TableInput:
    """A table that was read, and is to be released."""

    name: str
    original: sources.Original
    tables: Tables
    cohorts: Cohorts | None = None


@refuse_unknown_options("duckanon")
def release(
    policy: str | Path,
    *,
    source: str | Path | None = None,
    table: str | None = None,
    query: str | None = None,
    target: str | Path | None = None,
    report: str | Path | None = None,
    plan: str | Path | None = None,
    memory: str | None = None,
    no_formulas: bool = False,
    previous: str | Path | None = None,
    dry_run: bool = False,
    show_progress: bool = False,
    say: Callable[[str], None] | None = None,
    cancel: threading.Event | None = None,
    policy_text: str | None = None,
    sign: str | Path | None = None,
) -> Record:
    """Release the tables of a policy: `duckanon.release`, the job of the command ``duckanon release``.

    Args:
        policy: The TOML file.
        source, table, query, target, report, plan: Override the policy; paths are relative to the folder of the
            process.
        memory: The memory limit of the process, such as '2GB'; overrides the policy. A release that would take more is
            processed in partitions, or refused where that is not supported.
        no_formulas: Put an apostrophe before texts in CSV files that a spreadsheet would compute.
        previous: The previous release, to compare with; the file at the target if it is not given.
        dry_run: Do everything except write.
        show_progress: Show each step on standard error.
        say: Called with each step, such as ``reading patients``, in place of standard error.
        cancel: Stops the job when another thread sets it; the previous release stays in place.
        policy_text: The text of the policy when the release was decided, for programs that edit the file meanwhile.
        sign: The file of the key that signs the record, as ``duckanon keys`` makes it.

    Returns:
        The record of the run.

    Raises:
        PromiseBroken: The release breaks a promise of the policy; the previous release stays in place.
        PolicyError: The policy is wrong.
        FileProblem: A source cannot be read, or a target cannot be written.
        Cancelled: `cancel` was set before the release was published.
    """
    changes = changes_of(
        source=source,
        table=table,
        query=query,
        target=target,
        report=report,
        plan=plan,
        memory=memory,
        no_formulas=no_formulas,
    )
    request = Request(policy, changes, previous, dry_run, policy_text, sign)
    show_step = say or printer(show_progress)
    con = connection()
    try:
        with _watch_cancel(cancel, con) as stop_if_asked:

            def begin_step(text: str) -> None:
                show_step(text)
                stop_if_asked()

            return run_release(con, request, begin_step)
    finally:
        con.close()


@contextlib.contextmanager
def _watch_cancel(cancel: threading.Event | None, con: sql.Connection) -> Iterator[Callable[[], None]]:
    """Let an event stop the block, with `Cancelled` for whatever a step raises; give a function that stops here."""
    if cancel is None:
        yield lambda: None
        return
    is_over = threading.Event()

    def ask() -> None:
        if cancel.is_set():
            raise progress.StoppedError

    def watch() -> None:
        while not is_over.is_set():
            if cancel.wait(_LOOK_EVERY):
                con.interrupt()  # again and again: it is lost on a statement that has not begun yet
                is_over.wait(_LOOK_EVERY)

    watcher = threading.Thread(target=watch, name="duckanon-cancel", daemon=True)
    watcher.start()
    try:
        with progress.watch(ask):
            yield ask
    except (Exception, progress.StoppedError):
        if cancel.is_set():
            raise Cancelled("the job was cancelled; a file at the target, if any, passed all checks.") from None
        raise
    finally:
        is_over.set()
        watcher.join()


def connection() -> sql.Connection:
    """Open the job's own database, in memory."""
    con = duckanon.connect()
    con.execute("SET python_enable_replacements = false").fetchall()
    con.execute("SET enable_progress_bar = false").fetchall()
    return con


def run_release(con: sql.Connection, request: Request, say: Callable[[str], None]) -> Record:
    """Release the tables of a policy through a connection of `connection`, which can be interrupted."""
    file = policy_file.read(request.policy, request.changes, request.policy_text)
    consistency.check(file)
    key = keys.read(file)
    paths = places(file)
    key_file = Path(request.sign) if request.sign is not None else None
    signing_key = signing.read_key(key_file) if key_file else None
    files_read = originals(file, paths, request.previous)
    files_read.add([key_file] if key_file else [])
    entry = record.begin_record(file)
    entry["warnings"] += check_owner(file, paths)
    with (
        Warehouse({} if request.is_dry else paths.tables) as warehouse,
        account.open_account(file, paths, key, dry_run=request.is_dry) as ledger,
        Outbox([]) if request.is_dry else _open_outbox(paths, warehouse, ledger, files_read) as outbox,
        backends.open_storage(con, file.policy.memory, outbox.spill) as storage,
    ):
        warehouse.check()
        con.execute(f"SET file_search_path = {sql.literal(str(file.path.parent.resolve()))}").fetchall()
        con.execute(f"SET temp_directory = {sql.literal(str(outbox.spill))}").fetchall()
        run = Run(con, file, paths, storage, key, say, None if request.is_dry else outbox, warehouse, ledger)
        make_releases(run, read_tables(run, files_read, request.previous))
        check_releases(run, entry, request.previous)
        entry["outcome"] = "released" if run.outbox else "dry run"
        page = _write_page(run, entry) if paths.report else None
        entry["warnings"] += keys.warnings(file)  # in no report: it is for whoever has the key
        entry["warnings"] += signing.warnings(key_file) if key_file else []
        if run.outbox:
            publish(run, entry, page, signing_key)
            if paths.refusal:
                files_read.refuse(paths.refusal)
                paths.refusal.unlink(missing_ok=True)
    return entry


def read_tables(run: Run, files_read: Originals, previous: str | Path | None) -> Iterator[TableInput]:
    """Read the tables of the policy, each when it is asked for; `files_read` remembers all files that DuckDB opens."""
    con, file = run.con, run.file
    for number, name in enumerate(file.policy.tables, 1):
        run.say(f"reading {name}")
        with files_read.watch(con) as look:
            original = sources.read(con, file, name, number, run.key, look, run.storage.schema)
            reference = sources.reference(con, file, file.policy.tables[name], number)
            hierarchies = sources.hierarchies(con, file, name, number, original.table)
        cohorts = cohorts_of(run.account, file, name, Path(previous) if previous else run.paths.targets.get(name))
        names = (original.table, f"released_{number}", f"counted_{number}")
        tables = Tables(*names, reference, hierarchies, has_former_people=cohorts is not None)
        columns = sql.columns(con, original.table)
        if error := check_exact_events(con, file, name, columns, f"FROM {sql.quote(original.table)}"):
            raise error
        yield TableInput(name, original, tables, cohorts)


def make_releases(run: Run, inputs: Iterator[TableInput]) -> None:
    """Make the releases of all tables beside their targets; tables of events together, after those of people."""
    events: list[TableInput] = []
    for table_input in inputs:
        if run.file.policy.tables[table_input.name].is_linked:
            events.append(table_input)
            continue
        result = release_table(run, table_input)
        run.results[table_input.name] = result
        if run.account and table_input.cohorts:
            run.account.add(run.con, table_input.name, result)
    if events:
        linked_release.release_together(
            run,
            {name: result.tables for name, result in run.results.items()},
            {table_input.name: table_input.tables for table_input in events},
        )
    for table_input in events:
        run.results[table_input.name] = release_table(run, table_input)
    run.results = {name: run.results[name] for name in run.file.policy.tables}


def check_releases(run: Run, entry: Record, previous: str | Path | None) -> None:
    """Count what is promised of all tables together, complete the record, and stop where a promise is broken."""
    con, results = run.con, run.results
    linked_release.count(run, entry)
    if run.account:
        run.say("counting the releases of the account")
        entry["account"] = run.account.count(con, results)
    first_releases: list[str] = []
    for name, result in results.items():
        last = find_last_release(run, name, previous)
        if not compare_with_last(con, result, last, entry, bool(previous)):
            first_releases.append(name)
        entry["warnings"] += result.warnings
        result.entry["promises"] = [promise.entry() for promise in result.promises]
        entry["tables"].append(result.entry)
    entry["finished"] = record.now()
    promises = {name: result.promises for name, result in results.items()}
    if words := record.describe_broken(promises):
        entry["outcome"] = "promise broken"
        if run.outbox and run.paths.refusal:  # who asked for a report gets one, which says so
            run.outbox.put(run.paths.refusal, _page_of_refusal(entry))
            words += f"\nA report of it, which is not to be given away: {run.paths.refusal}."
        raise PromiseBroken(words, entry)
    refuse_uncounted(run.file, promises, first_releases)


def publish(run: Run, entry: Record, page: str | None, signing_key: Any) -> None:
    """Write the report and the record, enter the release into the account, and rename all files into place."""
    paths, outbox, ledger, warehouse = run.paths, run.outbox, run.account, run.warehouse
    assert outbox is not None
    if paths.report and page is not None:
        outbox.write(paths.report, page)
        entry["report"] = {"path": paths.report.name, "sha256": sources.hash_of([outbox.beside(paths.report)])}
    if signing_key:
        entry["signature"] = signing.sign(json.loads(record.text(entry)), signing_key)
    outbox.write(paths.record, record.text(entry))

    def commit(mark: str) -> None:
        """Make a decided release final: the entry into the account first, since it must not be missing."""
        if ledger:
            ledger.commit(mark)
        if paths.tables:
            warehouse.commit(mark)

    outbox.publish(commit if ledger or paths.tables else None, is_undone=not paths.tables)


def _open_outbox(paths: Places, warehouse: Warehouse, ledger: JobAccount | None, files_read: Originals) -> Outbox:
    """Open the outbox of a run, which first completes or removes what a killed run left."""

    def is_committed(mark: str) -> bool:
        return (ledger is None or ledger.has(mark)) and (warehouse.has(mark) if paths.tables else ledger is not None)

    return Outbox(paths.written, is_committed, files_read.refuse, only_read=paths.only_read)


def _write_page(run: Run, entry: Record) -> str:
    """Measure what was released, put the numbers into the record, and return the page of the report."""
    from duckanon import report  # matplotlib takes a second to load

    run.say("measuring for the report")
    figures: dict[str, list[report.Figure]] = {}
    with refusals.translate_errors(run.file):
        for table_entry in entry["tables"]:
            name = table_entry["name"]
            figures[name] = []
            if "cells" in table_entry:  # which say all that a report says of an aggregate table
                continue
            tables = run.results[name].tables
            arguments = (run.con, tables.original, tables.released, table_entry, tables.reference)
            hierarchies, plan = tables.hierarchies or None, tables.plan if "plan" in table_entry else None
            table_entry["measures"] = report.measured(*arguments, plan=plan, hierarchies=hierarchies)
            figures[name] = report.figures(*arguments, hierarchies=hierarchies)
        return report.html(json.loads(record.text(entry)), figures)  # what `verify` has to write the page again


def _page_of_refusal(entry: Record) -> str:
    """Return the page of a run that broke a promise, to stay at home.

    It has what the record has, numbers that were promised and measured, and no picture and no other number of a table
    that is not safe.
    """
    from duckanon import report

    tables = [{**table_entry, "output": None, "changes": None} for table_entry in entry["tables"]]
    return report.html({**entry, "tables": tables, "linked": None}, {})


def printer(show_progress: bool) -> Callable[[str], None]:
    """Return what shows the steps of a run on standard error, or nothing."""

    def say(text: str) -> None:
        with contextlib.suppress(OSError, ValueError):  # a log that cannot be written stops no release
            print(f"{text} ...", file=sys.stderr, flush=True)

    return say if show_progress else lambda _: None

"""A release from the policy to the file: read, released, written beside, read back, counted, and only then named."""

from __future__ import annotations

import contextlib
import json
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import duckanon
from duckanon._bridge import sql
from duckanon._core.common import progress
from duckanon._core.common.names import refuses_unknown_options
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
from duckanon.job.cohorts import cohorts_of
from duckanon.job.errors import Cancelled, PromiseBroken
from duckanon.job.former_files import check_owner
from duckanon.job.linked_consistency import uncounted
from duckanon.job.places import Originals, Outbox, Places, originals, places
from duckanon.job.policy_file import changes_of
from duckanon.job.promise_claims import refuse_uncounted
from duckanon.job.promises import Tables
from duckanon.job.table_result import TableResult, compare_with_last, last_release, release_table
from duckanon.job.warehouse import Warehouse

_LOOK_EVERY = 0.1
"""Seconds between two looks whether a job was cancelled."""


@refuses_unknown_options("duckanon")
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
    given = changes_of(
        source=source,
        table=table,
        query=query,
        target=target,
        report=report,
        plan=plan,
        memory=memory,
        no_formulas=no_formulas,
    )
    tell = say or printer(show_progress)
    con = connection()
    try:
        with _cancelled_by(cancel, con) as stop_if_asked:

            def step(text: str) -> None:
                tell(text)
                stop_if_asked()

            return released(
                con, policy, given, previous=previous, dry_run=dry_run, say=step, policy_text=policy_text, sign=sign
            )
    finally:
        con.close()


@contextlib.contextmanager
def _cancelled_by(cancel: threading.Event | None, con: sql.Connection) -> Iterator[Callable[[], None]]:
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
        with progress.watched_by(ask):
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


def released(
    con: sql.Connection,
    policy: str | Path,
    given: dict[str, Any],
    *,
    previous: str | Path | None,
    dry_run: bool,
    say: Callable[[str], None],
    policy_text: str | None = None,
    sign: str | Path | None = None,
) -> Record:
    """Release the tables of a policy through a connection of `connection`, which can be interrupted."""
    file = policy_file.read(policy, given, policy_text)
    consistency.check(file)
    key = keys.read(file)
    where = places(file)
    signing_key = signing.read_key(Path(sign)) if sign is not None else None
    read = originals(file, where, previous)
    read.add([Path(sign)] if sign is not None else [])
    run = record.begun(file)
    run["warnings"] += check_owner(file, where)
    with (
        Warehouse({} if dry_run else where.tables) as warehouse,
        account.opened(file, where, key, dry_run=dry_run) as ledger,
        _outbox(where, warehouse, ledger, read, dry_run) as outbox,
        backends.open_storage(con, file.policy.memory, outbox.spill) as place,
    ):
        warehouse.check()
        con.execute(f"SET file_search_path = {sql.literal(str(file.path.parent.resolve()))}").fetchall()
        con.execute(f"SET temp_directory = {sql.literal(str(outbox.spill))}").fetchall()
        made: dict[str, TableResult] = {}
        events: dict[str, tuple[sources.Original, Tables]] = {}
        for number, name in enumerate(file.policy.tables, 1):
            say(f"reading {name}")
            with read.watched(con) as look:
                original = sources.read(con, file, name, number, key, look, place.schema)
                reference = sources.reference(con, file, file.policy.tables[name], number)
                hierarchies = sources.hierarchies(con, file, name, number, original.table)
            box = None if dry_run else outbox
            cohorts = cohorts_of(ledger, file, name, Path(previous) if previous else where.targets.get(name))
            forms = (original.table, f"released_{number}", f"counted_{number}")
            tables = Tables(*forms, reference, hierarchies, has_former_people=cohorts is not None)
            columns = sql.columns(con, original.table)
            if tells_more := uncounted(con, file, name, columns, f"FROM {sql.name(original.table)}"):
                raise tells_more
            if file.policy.tables[name].is_linked:
                events[name] = original, tables
            else:
                made[name] = release_table(
                    con, file, name, original, tables, box, warehouse, where, place, say, cohorts, key
                )
                if ledger and cohorts:
                    ledger.add(con, name, made[name])
        if events:
            of_people = {name: one.tables for name, one in made.items()}
            of_events = {name: tables for name, (_, tables) in events.items()}
            linked_release.release_together(con, file, of_people, of_events, place, say)
        for name, (original, tables) in events.items():
            made[name] = release_table(con, file, name, original, tables, box, warehouse, where, place, say)
        made = {name: made[name] for name in file.policy.tables}
        linked_release.count(con, file, made, run, say)
        if ledger:
            say("counting the releases of the account")
            run["account"] = ledger.count(con, made)
        first_releases: list[str] = []
        for name, one in made.items():
            last = last_release(con, name, previous, warehouse, where)
            if not compare_with_last(con, one, last, run, bool(previous)):
                first_releases.append(name)
            run["warnings"] += one.warnings
            one.entry["promises"] = [promise.entry() for promise in one.promises]
            run["tables"].append(one.entry)
        run["finished"] = record.now()
        _check(run, made, None if dry_run else where.refusal, outbox)
        refuse_uncounted(file, {name: one.promises for name, one in made.items()}, first_releases)
        run["outcome"] = "dry run" if dry_run else "released"
        if where.report:
            say("measuring for the report")
            with refusals.translate_errors(file):
                named = {name: one.tables for name, one in made.items()}
                page = _page(con, run, named)
            if not dry_run:
                outbox.write(where.report, page)
                run["report"] = {"path": where.report.name, "sha256": sources.hash_of([outbox.beside(where.report)])}
        run["warnings"] += keys.warnings(file)  # in no report: it is for whoever has the key
        run["warnings"] += signing.warnings(Path(sign)) if sign is not None else []
        if not dry_run:
            if signing_key:
                run["signature"] = signing.sign(json.loads(record.text(run)), signing_key)
            outbox.write(where.record, record.text(run))
            outbox.publish(_commit(where, warehouse, ledger), is_undone=not where.tables)
            if where.refusal:
                read.refuse(where.refusal)
                where.refusal.unlink(missing_ok=True)
    return run


def _outbox(
    where: Places, warehouse: Warehouse, ledger: account.JobAccount | None, read: Originals, dry_run: bool
) -> Outbox:
    """Make the outbox of a run, which a dry run puts nothing into."""
    if dry_run:
        return Outbox([])

    def is_committed(mark: str) -> bool:
        return (ledger is None or ledger.has(mark)) and (warehouse.has(mark) if where.tables else ledger is not None)

    return Outbox(where.written, is_committed, read.refuse, only_read=where.only_read)


def _commit(where: Places, warehouse: Warehouse, ledger: account.JobAccount | None) -> Callable[[str], None] | None:
    """Return what makes a decided release final: the entry into the account first, since it must not be missing."""

    def commit(mark: str) -> None:
        if ledger:
            ledger.commit(mark)
        if where.tables:
            warehouse.commit(mark)

    return commit if ledger or where.tables else None


def _page(con: sql.Connection, run: Record, tables: Mapping[str, Tables]) -> str:
    """Measure what was released, put the numbers into the record, and return the page."""
    from duckanon import report  # matplotlib takes a second to load

    figures: dict[str, list[report.Figure]] = {}
    for entry in run["tables"]:
        if "cells" in entry:  # which say all that a report says of an aggregate table
            figures[entry["name"]] = []
            continue
        names = tables[entry["name"]]
        arguments = (con, names.original, names.released, entry, names.reference)
        hierarchies, plan = names.hierarchies or None, names.plan if "plan" in entry else None
        entry["measures"] = report.measured(*arguments, plan=plan, hierarchies=hierarchies)
        figures[entry["name"]] = report.figures(*arguments, hierarchies=hierarchies)
    return report.html(run, figures)


def _page_of_refusal(run: Record) -> str:
    """Return the page of a run that broke a promise, to stay at home.

    It has what the record has, numbers that were promised and measured, and no picture and no other number of a table
    that is not safe.
    """
    from duckanon import report

    tables = [{**entry, "output": None, "changes": None} for entry in run["tables"]]
    return report.html({**run, "tables": tables, "linked": None}, {})


def _check(run: Record, made: dict[str, TableResult], refusal: Path | None, outbox: Outbox) -> None:
    """Stop where a promise is broken; who asked for a report gets one, which says so."""
    words = record.broken_words({name: one.promises for name, one in made.items()})
    if not words:
        return
    run["outcome"] = "promise broken"
    if refusal:
        outbox.put(refusal, _page_of_refusal(run))
        words += f"\nA report of it, which is not to be given away: {refusal}."
    raise PromiseBroken(words, run)


def printer(show_progress: bool) -> Callable[[str], None]:
    """Return what shows the steps of a run on standard error, or nothing."""

    def say(text: str) -> None:
        with contextlib.suppress(OSError, ValueError):  # a log that cannot be written stops no release
            print(f"{text} ...", file=sys.stderr, flush=True)

    return say if show_progress else lambda _: None

"""A release from the policy to the file: read, released, written beside, read back, counted, and only then named."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb

import duckanon
from duckanon._bridge import sql
from duckanon._core.common.names import refuses_unknown_options
from duckanon.job import (
    auxiliary_tables,
    consistency,
    keys,
    linkage,
    pages,
    policy_file,
    record,
    refusals,
    sources,
    storage,
)
from duckanon.job.cancel import cancelled_by
from duckanon.job.errors import PromiseBroken
from duckanon.job.originals import Originals
from duckanon.job.overrides import changes_of
from duckanon.job.ownership import check_owner
from duckanon.job.places import Outbox, Places, originals, places
from duckanon.job.promises import Tables
from duckanon.job.table_result import TableResult, compare_with_last, last_release, release_table
from duckanon.job.warehouse import Warehouse


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
) -> dict[str, Any]:
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
    tell = say or _printer(show_progress)
    con = connection()
    try:
        with cancelled_by(cancel, con) as stop_if_asked:

            def step(text: str) -> None:
                tell(text)
                stop_if_asked()

            return released(con, policy, given, previous=previous, dry_run=dry_run, say=step)
    finally:
        con.close()


def connection() -> duckdb.DuckDBPyConnection:
    """Open the job's own database, in memory."""
    con = duckanon.connect()
    con.execute("SET python_enable_replacements = false").fetchall()
    con.execute("SET enable_progress_bar = false").fetchall()
    return con


def released(
    con: duckdb.DuckDBPyConnection,
    policy: str | Path,
    given: dict[str, Any],
    *,
    previous: str | Path | None = None,
    dry_run: bool = False,
    show_progress: bool = False,
    say: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Release the tables of a policy through a connection of `connection`, which can be interrupted."""
    say = say or _printer(show_progress)
    file = policy_file.read(policy, given)
    consistency.check(file)
    key = keys.read(file)
    where = places(file)
    read = originals(file, where, previous)
    run = record.begun(file)
    run["warnings"] += check_owner(file, where)
    with (
        Warehouse({} if dry_run else where.tables) as warehouse,
        _outbox(where, warehouse, read, dry_run) as outbox,
        storage.open_storage(con, file.policy.memory, outbox.spill) as place,
    ):
        warehouse.check()
        con.execute(f"SET file_search_path = {sql.literal(str(file.path.parent.resolve()))}").fetchall()
        con.execute(f"SET temp_directory = {sql.literal(str(outbox.spill))}").fetchall()
        made: dict[str, TableResult] = {}
        for number, name in enumerate(file.policy.tables, 1):
            say(f"reading {name}")
            with read.watched(con) as look:
                original = sources.read(con, file, name, number, key, look, place.schema)
                reference = auxiliary_tables.reference(con, file, file.policy.tables[name], number)
                hierarchies = auxiliary_tables.hierarchies(con, file, name, number, original.table)
            tables = Tables(original.table, f"released_{number}", f"counted_{number}", reference, hierarchies)
            made[name] = release_table(
                con, file, name, original, tables, None if dry_run else outbox, warehouse, where, place, say
            )
        for name, promise in linkage.linked(con, {n: (m.table, m.form, m.tables) for n, m in made.items()}).items():
            made[name].promises.append(promise)
        for name, one in made.items():
            compare_with_last(con, one, last_release(con, name, previous, warehouse, where), run, bool(previous))
            run["warnings"] += one.warnings
            one.entry["promises"] = [promise.entry() for promise in one.promises]
            run["tables"].append(one.entry)
        run["finished"] = record.now()
        _check(run, made, None if dry_run else where.refusal, outbox)
        run["outcome"] = "dry run" if dry_run else "released"
        if where.report:
            say("measuring for the report")
            with refusals.translate_errors(file):
                named = {name: one.tables for name, one in made.items()}
                page = pages.released(con, run, named, has_plan=where.plan is not None)
            if not dry_run:
                outbox.write(where.report, page)
        run["warnings"] += keys.warnings(file)  # in no report: it is for whoever has the key
        if not dry_run:
            outbox.write(where.record, record.text(run))
            outbox.publish(warehouse.commit if where.tables else None)
            if where.refusal:
                where.refusal.unlink(missing_ok=True)
    return run


def _outbox(where: Places, warehouse: Warehouse, read: Originals, dry_run: bool) -> Outbox:
    """Make the outbox of a run, which a dry run puts nothing into."""
    if dry_run:
        return Outbox([])
    only_read = [where.plan] if where.plan and where.plan not in where.written else []
    return Outbox(where.written, warehouse.has, read.refuse, only_read=only_read)


def _check(run: dict[str, Any], made: dict[str, TableResult], refusal: Path | None, outbox: Outbox) -> None:
    """Stop where a promise is broken; who asked for a report gets one, which says so."""
    if not record.broken(run):
        return
    run["outcome"] = "promise broken"
    words = record.broken_words({name: one.promises for name, one in made.items()})
    if refusal:
        outbox.put(refusal, pages.refused(run))
        words += f"\nA report of it, which is not to be given away: {refusal}."
    raise PromiseBroken(words, run)


def _printer(show_progress: bool) -> Callable[[str], None]:
    def say(text: str) -> None:
        with contextlib.suppress(OSError, ValueError):  # a log that cannot be written stops no release
            print(f"{text} ...", file=sys.stderr, flush=True)

    return say if show_progress else lambda _: None

"""A policy checked without a release: by itself, against its sources, and by its methods on a sample of the rows."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import duckdb

from duckanon._bridge import sql
from duckanon.job import backends, consistency, keys, linked_release, methods, policy_file, promises, refusals, sources
from duckanon.job.consistency import check_exact_events, list_promises
from duckanon.job.errors import FileProblem, PolicyError, PromiseBroken
from duckanon.job.keys import Secret
from duckanon.job.places import Originals, Outbox, Places, originals, places, target_name
from duckanon.job.policy import LEFT_OUT
from duckanon.job.policy_file import PolicyFile
from duckanon.job.promises import Tables
from duckanon.job.run import Run, connection
from duckanon.job.table_result import file_shape, make_in_memory

_MOST_NEW = 1_000
"""Rows of a sample of which new records are made, which takes longer: ten thousand took pica 50 seconds."""

_SURE = re.compile(r"must (hold|not|be)\b|NULLs|NaN|rename")
"""Words of refusals that more rows would not take back: of types, options, names and unfit values."""

_OF_ROWS = re.compile(r"(?<!leave these )\b(rows|people|records)\b")
"""Words of refusals about how many rows or people there are, which a sample does not tell."""


def check_policy(policy: str | Path, with_data: bool = True) -> list[str]:
    """Return what a policy would do, a line a table; raises the job's errors where it is wrong.

    With data, the methods are called on a sample of the rows, as the release will call them on all: what they refuse is
    said in the same sentence. A table of fewer than `refusals.MOST_ROWS` rows is its own sample. Without data, only the
    names and the types of columns are compared.
    """
    file = policy_file.read(policy)
    consistency.check(file)
    where = places(file)
    read = originals(file, where)
    outbox = Outbox([])
    for path in where.written:
        outbox.check_place(path)
    con = connection()
    try:
        refused = _try_methods(con, file, where, read) if with_data else _check_types(con, file, read)
    finally:
        con.close()
    if refused:
        raise PolicyError("\n".join(dict.fromkeys(map(str, refused))))
    lines = []
    for name, table in file.policy.tables.items():
        promised = ", ".join(list_promises(table))
        lines.append(f"{name}: {table.method.name} to {target_name(table.target)}; promises {promised}")
        if file.policy.memory and (needs := backends.missing_package(table)):
            lines[-1] += f"; {needs}"
    return lines + _absent_keys(file)


def _absent_keys(file: PolicyFile) -> list[str]:
    """Say which keys are not here: they may be where the release runs."""
    notes = []
    for read in (keys.read, keys.read_of_account):
        try:
            read(file)
        except FileProblem as problem:
            notes.append(f"the release will need a key that is not here: {problem}")
    return notes


def _check_types(con: sql.Connection, file: PolicyFile, read: Originals) -> list[PolicyError]:
    """Compare the columns of the sources with the policy; no row is read of a file whose types stand in it."""
    refused = []
    for name, table in file.policy.tables.items():
        try:
            with read.watch(con):
                files, unread = sources.files_of(file, table.source), table.with_roles(*LEFT_OUT)
                sources.check_types(con, file, name)
                query = sources.open_source(con, table.source, files, unread, 0).query
                types = sources.check_columns(con, file, name, query)
                refused += [error for error in [check_exact_events(con, file, name, types, None)] if error]
            con.execute("USE memory.main").fetchall()
        except duckdb.Error as error:
            raise sources.unreadable(table.source, error) from None
    return refused


def _try_methods(con: sql.Connection, file: PolicyFile, where: Places, read: Originals) -> list[PolicyError]:
    """Call the methods on samples, one table after the other, and return what they refuse of the policy."""
    refused: list[PolicyError] = []
    storage = backends.Storage("memory.main", Path(), None, 0)
    key = Secret(secrets.token_hex()) if file.policy.key else None  # as good as the real one, for a trial
    of_people: dict[str, Tables] = {}
    events: dict[str, Tables] = {}
    are_samples = False
    for number, (name, table) in enumerate(file.policy.tables.items(), 1):
        with read.watch(con) as look:
            original = f"original_{number}"
            is_new = not (table.method.makes_classes or table.method.makes_cells)
            most = _MOST_NEW if is_new else refusals.MOST_ROWS
            opened = sources.load(con, file, name, f"memory.main.{original}", key, look, most)
            (row_count,) = sql.fetch_row(con, f"SELECT count(*) FROM memory.main.{original}")
            is_whole = row_count < most
            are_samples |= not is_whole
            rows = f"FROM memory.main.{original}" if is_whole else opened.query
            trees = sources.hierarchies(con, file, name, number, f"({rows})")
            con.execute("USE memory.main").fetchall()
            reference = sources.reference(con, file, table, number)
        if row_count == 0:
            raise FileProblem(f"{table.source.path or 'query'}: the table has no rows.")
        tables = Tables(original, f"released_{number}", f"counted_{number}", reference, trees)
        if tells_more := check_exact_events(con, file, name, sql.columns(con, original), f"FROM {original}"):
            refused.append(tells_more)
            continue
        if table.is_linked:
            events[name] = tables
            continue
        if not is_whole and (narrowed := _check_narrowing(con, file, name, tables)):
            refused.append(narrowed)
            continue
        with _collect_errors(refused, is_whole):
            tried = file if is_whole else _without_narrowing(file, name)
            make_in_memory(Run(con, tried, where, storage, key), name, tables)
            file_shape(con, tried, name, tables)
            if is_new:
                with refusals.translate_errors(file, name):
                    list(promises.compare_new_records(con, table, tables))  # which may have no words for a type
            of_people[name] = tables
        for leftover in ("plan", "applied"):
            con.execute(f"DROP TABLE IF EXISTS {leftover}").fetchall()
    if events and not refused:
        with _collect_errors(refused, is_whole=not are_samples):
            linked_release.release_together(Run(con, file, where, storage, key), of_people, events)
    return refused


@contextmanager
def _collect_errors(refused: list[PolicyError], is_whole: bool) -> Iterator[None]:
    """Collect what is wrong with the policy; what a sample has too few rows, people or values for is not."""
    try:
        yield
    except PolicyError as error:
        if is_whole or (_SURE.search(str(error)) and not _OF_ROWS.search(str(error))):
            refused.append(error)
    except PromiseBroken:
        pass


def _without_narrowing(file: PolicyFile, name: str) -> PolicyFile:
    """Let a sample, whose classes are coarser than those of all rows, not be refused for what narrows them down."""
    table = file.policy.tables[name]
    if "narrowing" not in type(table.method).model_fields:
        return file
    method = table.method.model_copy(update={"narrowing": table.with_roles("sensitive", "free") or None})
    tables = {**file.policy.tables, name: table.model_copy(update={"method": method})}
    return replace(file, policy=file.policy.model_copy(update={"tables": tables}))


def _check_narrowing(con: sql.Connection, file: PolicyFile, name: str, tables: Tables) -> PolicyError | None:
    """Name the columns that the release would refuse, since they narrow down others."""
    table = file.policy.tables[name]
    kept = methods.columns_to_judge(table)
    if not table.method.makes_classes or not kept or table.promises.k is None:
        return None
    rows, protected = f"FROM {tables.original}", methods.columns_to_protect(table)
    judged = refusals.foreseen(con, rows, protected, kept, table.promises.k, tables.hierarchies)
    return refusals.narrowing_error(file, name, judged)

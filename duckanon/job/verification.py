"""A release checked by who received it: every number of its record that the file alone can tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import duckdb

from duckanon._bridge import sql
from duckanon._core.common.release_record import PromiseEntry, Record
from duckanon.job import aggregates
from duckanon.job.errors import FileProblem
from duckanon.job.linked_counts import LinkedPart, LinkedTables
from duckanon.job.policy import format_of
from duckanon.job.promises import linked_size
from duckanon.job.readback import label_counts
from duckanon.job.released_file import ReleasedFile, open_release
from duckanon.job.sources import hash_of

Outcome: TypeAlias = Literal["confirmed", "differs", "unknown"]


@dataclass(frozen=True)
class Finding:
    """A number of the record, and what the file says of it."""

    table: str
    name: str
    outcome: Outcome
    words: str


def verify(con: sql.Connection, record: Record, files: list[Path]) -> list[Finding]:
    """Compare released files with the record of their release.

    Each file is found in the record by its name, a single file of a record of one table whatever its name is.
    """
    entries = {entry["output"]["path"]: entry for entry in record["tables"]}
    findings: list[Finding] = []
    releases: list[ReleasedFile] = []
    for number, path in enumerate(files, 1):
        entry = entries.get(path.name)
        if entry is None and len(record["tables"]) == len(files) == 1:
            entry = record["tables"][0]
        if entry is None:
            raise FileProblem(f"{path}: the record has no release of that name.")
        release = open_release(con, entry, path, f"verified_{number}")
        releases.append(release)
        findings += _of_file(release)
    missing = [entry["name"] for entry in record["tables"] if entry not in [one.entry for one in releases]]
    findings += _linked(con, releases, missing)
    findings += _known_events(con, releases, missing)
    findings += [Finding(name, "file", "unknown", "the file was not given") for name in missing]
    return findings


def _of_file(release: ReleasedFile) -> Iterator[Finding]:
    """Compare the hash, the rows, the columns and the promises of one file."""
    entry = release.entry
    name, output = entry["name"], entry["output"]
    if output["sha256"]:
        is_same = hash_of([release.path]) == output["sha256"]
        words = "the file is the one that was recorded" if is_same else "the file is not the one that was recorded"
        yield Finding(name, "sha256", "confirmed" if is_same else "differs", words)
    rows = release.measured(f"SELECT count(*) FROM {release.rows}")
    yield _compared(name, "rows", rows, output["rows"])
    dropped = [
        column["name"]
        for column in entry["columns"]
        if column["treatment"] == "dropped" and release.in_file(column["name"])
    ]
    words = f"the file has {', '.join(dropped)}, which the record calls dropped" if dropped else "none is in the file"
    yield Finding(name, "dropped columns", "differs" if dropped else "confirmed", words)
    if recorded := output.get("labels"):
        yield _labels(release, recorded)
    for promise in entry["promises"]:
        if promise["name"] != "linked_k" and not _is_of_events(release, promise):
            yield _promised(release, promise)


def _labels(release: ReleasedFile, recorded: Mapping[str, int]) -> Finding:
    """Count the labels of each quasi-identifier again: a finer one tells more than was decided."""
    held = {column: release.in_file(column) for column in recorded}
    counted = label_counts(release.con, release.rows, {column: names for column, names in held.items() if names})
    table, wrong = release.entry["name"], {column for column in recorded if counted.get(column) != recorded[column]}
    if not wrong:
        return Finding(
            table, "labels", "confirmed", ", ".join(f"{column} {count}" for column, count in counted.items())
        )
    words = [f"{column} {counted.get(column, 'none')}, recorded as {recorded[column]}" for column in sorted(wrong)]
    return Finding(table, "labels", "differs", "; ".join(words))


def _compared(table: str, name: str, measured: float | None, recorded: float | int | None) -> Finding:
    is_same = measured == recorded or (
        measured is not None and recorded is not None and abs(measured - recorded) <= 1e-9 * max(1, abs(recorded))
    )
    shown = "nothing" if measured is None else f"{measured:.6g}"
    words = shown if is_same else f"{shown}, recorded as {'nothing' if recorded is None else f'{recorded:.6g}'}"
    return Finding(table, name, "confirmed" if is_same else "differs", words)


def _promised(release: ReleasedFile, promise: PromiseEntry) -> Finding:
    """Count a promise again, where the file tells enough."""
    table, name, recorded = release.entry["name"], promise["name"], promise["measured"]
    kind, _, column = name.rpartition(" of ")
    if release.entry["method"]["name"] == "protect_table":
        return _of_cells(release, promise)
    if name == "k":
        query = _k_query(release)
    elif kind in ("l", "t", "recursive l") and release.in_file(column):
        query = _spread_query(release, kind, column, promise)
    else:
        needs = "it counts all releases of an account" if kind.startswith("joint") or name == "joint_k" else None
        needs = needs or "it compares the release with the original"
        return Finding(table, name, "unknown", f"{needs}, which the file does not hold")
    if not release.classes:
        return Finding(table, name, "unknown", "the file has none of the columns that make classes")
    measured = release.measured(query)
    if release.tells_people:
        return _compared(table, name, measured, recorded)
    if name == "k" and measured is not None and recorded is not None and measured < recorded:
        return _compared(table, name, measured, recorded)  # there are no more people than rows
    words = "the record counts people, and the file does not tell whose a row is"
    if name == "k":
        words += f"; the smallest class has {measured:g} rows"
    return Finding(table, name, "unknown", words)


def _of_cells(release: ReleasedFile, promise: PromiseEntry) -> Finding:
    try:
        found = aggregates.counted_again(release.con, release.rows, promise["name"], release.entry)
    except duckdb.Error as error:  # the audit refuses what is no table with margins
        return Finding(release.entry["name"], promise["name"], "differs", f"it cannot be counted ({sql.why(error)})")
    return _compared(release.entry["name"], promise["name"], found, promise["measured"])


def _k_query(release: ReleasedFile) -> str:
    nulls = release.entry["method"]["parameters"].get("nulls") or "value"
    arguments = (release.rows, release.classes)
    return (
        f"SELECT k FROM anon.k_anonymity({', '.join(map(sql.literal, arguments))}, nulls := {sql.literal(nulls)}, "
        f"person := {sql.literal(release.whose)})"
    )


def _spread_query(release: ReleasedFile, kind: str, column: str, promise: PromiseEntry) -> str:
    """Write the query of l or t; numbers and dates of a CSV file are texts, and t asks how far apart they are."""
    (own,) = release.in_file(column)[:1]
    quoted, typed = sql.name(own), f"{release.rows}_typed"
    counts = [f"count(*) FILTER (TRY_CAST({quoted} AS {one}) IS NULL)" for one in ("DOUBLE", "DATE")]
    no_numbers, no_dates = sql.one(
        release.con, f"SELECT {', '.join(counts)} FROM {release.rows} WHERE {quoted} IS NOT NULL"
    )
    is_text = release.columns[own] == "VARCHAR" and format_of(str(release.path)) == "csv"
    type_name = "DOUBLE" if is_text and not no_numbers else "DATE" if is_text and not no_dates else release.columns[own]
    release.con.execute(
        f"CREATE OR REPLACE TEMP VIEW {typed} AS SELECT * REPLACE ({quoted}::{type_name} AS {quoted}) "
        f"FROM {release.rows}"
    ).fetchall()
    arguments = f"{sql.literal(typed)}, {sql.literal(release.classes)}, {sql.literal(own)}"
    arguments += f", person := {sql.literal(release.whose)}"
    if kind == "t":
        return f"SELECT t FROM anon.t_closeness({arguments})"
    if kind == "recursive l":
        level = release.entry["method"]["parameters"].get("l")
        chosen = f"measure = 'recursive' AND l = {sql.literal(level)}"
        return f"SELECT min(c) FROM anon.l_diversity({arguments}) WHERE {chosen}"
    measure = "entropy" if "entropy" in promise["words"] else "distinct"
    return f"SELECT l FROM anon.l_diversity({arguments}) WHERE measure = '{measure}'"


def _linked(con: sql.Connection, releases: list[ReleasedFile], missing: list[str]) -> Iterator[Finding]:
    """Count again how many people share every combination of classes, over all tables of the record."""
    recorded = {
        one.entry["name"]: promise["measured"]
        for one in releases
        for promise in one.entry["promises"]
        if promise["name"] == "linked_k"
    }
    parts = [(one.rows, name, one.classes) for one in releases if one.known is None for name in one.linking]
    for name, value in recorded.items():
        if missing:
            words = f"it is counted over all tables, and the file of {', '.join(missing)} was not given"
            yield Finding(name, "linked_k", "unknown", words)
        else:
            yield _compared(name, "linked_k", linked_size(con, parts), value)


def _is_of_events(release: ReleasedFile, promise: PromiseEntry) -> bool:
    """Tell whether known events of all tables are counted: l and t are then of those, too."""
    name = promise["name"].partition(" of ")[0]
    return name in ("known_events", "max_confidence") or (name in ("l", "t") and release.known is not None)


def _known_events(con: sql.Connection, releases: list[ReleasedFile], missing: list[str]) -> Iterator[Finding]:
    """Count again who holds any known events of a person, and what that tells about sensitive values."""
    parts = [
        LinkedPart(
            one.entry["name"],
            one.rows,
            name,
            one.classes,
            one.known,
            [found for column in one.with_role("sensitive") for found in one.in_file(column)],
        )
        for one in releases
        for name in one.linking
    ]
    tables: LinkedTables | None = None
    counted: dict[str, float] = {}
    for one in releases:
        for promise in (any_promise for any_promise in one.entry["promises"] if _is_of_events(one, any_promise)):
            name, _, column = promise["name"].partition(" of ")
            if missing:
                words = f"it is counted over all tables, and the file of {', '.join(missing)} was not given"
                yield Finding(one.entry["name"], promise["name"], "unknown", words)
                continue
            tables = tables or LinkedTables(con, parts)
            if promise["name"] not in counted:  # the same for all tables
                counted[promise["name"]] = tables.learned(column)[name] if column else tables.smallest()
            yield _compared(one.entry["name"], promise["name"], counted[promise["name"]], promise["measured"])


def summary(findings: list[Finding]) -> str:
    """Say what was found, for a terminal."""
    shown: Mapping[Outcome, str] = {"confirmed": "confirmed", "differs": "DIFFERS", "unknown": "not in the file"}
    return "".join(f"{one.table}: {one.name}: {shown[one.outcome]}: {one.words}.\n" for one in findings)

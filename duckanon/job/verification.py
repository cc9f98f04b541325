"""A release checked by who received it: every number of its record that the file alone can tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import duckdb

from duckanon._bridge import sql
from duckanon._core.common.release_record import PromiseEntry, Record, TableEntry
from duckanon._methods.linked.declared import RELEASE_LINKED, ROW_COUNT
from duckanon.job import aggregates
from duckanon.job.errors import FileProblem
from duckanon.job.linked_counts import LinkedPart, LinkedTables
from duckanon.job.policy import format_of
from duckanon.job.promises import linked_size
from duckanon.job.sources import hash_of

Outcome: TypeAlias = Literal["confirmed", "differs", "unknown"]
_CATALOG = "verified_file"


@dataclass(frozen=True)
class Finding:
    """A number of the record, and what the file says of it."""

    table: str
    name: str
    outcome: Outcome
    words: str


@dataclass(frozen=True)
class _Release:
    """A released file in the connection, and its entry in the record."""

    con: sql.Connection
    entry: TableEntry
    path: Path
    rows: str  # the name of its view
    columns: dict[str, str]  # the names and types of what it holds

    def in_file(self, column: str) -> list[str]:
        """Return the names of a column in the file, two where it holds the ends of intervals, none where it is gone."""
        for names in ([column], [f"'{column}"], [f"{column}_lo", f"{column}_hi"]):
            if all(name in self.columns for name in names):
                return names
        return []

    def with_role(self, role: str) -> list[str]:
        """Return the columns of a role in the policy."""
        return [column["name"] for column in self.entry["columns"] if column["role"] == role]

    @property
    def classes(self) -> list[str]:
        """The columns of the file that make classes."""
        names = self.with_role("quasi_identifier")
        names += [ROW_COUNT] if self.entry["method"]["parameters"].get("counts") else []
        return [name for column in names for name in self.in_file(column)]

    @property
    def known(self) -> int | None:
        """How many of its events somebody may know; None where it is no table of events."""
        found: int | None = self.entry["method"]["parameters"].get("known")
        return found if self.entry["method"]["name"] == RELEASE_LINKED.name else None

    @property
    def linking(self) -> list[str]:
        """The columns of the file by which rows of one person are found, here and in other files."""
        columns = [self.person] if self.person else self.with_role("pseudonym")
        return [name for column in columns for name in self.in_file(column)]

    @property
    def person(self) -> str | None:
        """The policy's column of people."""
        return next(iter(self.with_role("person")), None)

    @property
    def whose(self) -> str | None:
        """The column of the file that tells which rows are one person's."""
        return next(iter(self.in_file(self.person)), None) if self.person else None

    @property
    def tells_people(self) -> bool:
        """Whether people can be counted as the record counts them: rows, or people by a released pseudonym."""
        return self.person is None or self.whose is not None

    def measured(self, query: str) -> float | None:
        """Return the first number of a query about the view."""
        found: float | None = sql.one(self.con, query)[0]
        return found


def verify(con: sql.Connection, record: Record, files: list[Path]) -> list[Finding]:
    """Compare released files with the record of their release.

    Each file is found in the record by its name, a single file of a record of one table whatever its name is.
    """
    entries = {entry["output"]["path"]: entry for entry in record["tables"]}
    findings: list[Finding] = []
    releases: list[_Release] = []
    for number, path in enumerate(files, 1):
        entry = entries.get(path.name)
        if entry is None and len(record["tables"]) == len(files) == 1:
            entry = record["tables"][0]
        if entry is None:
            raise FileProblem(f"{path}: the record has no release of that name.")
        release = _opened(con, entry, path, f"verified_{number}")
        releases.append(release)
        findings += _of_file(release)
    missing = [entry["name"] for entry in record["tables"] if entry not in [one.entry for one in releases]]
    findings += _linked(con, releases, missing)
    findings += _known_events(con, releases, missing)
    findings += [Finding(name, "file", "unknown", "the file was not given") for name in missing]
    return findings


def _opened(con: sql.Connection, entry: TableEntry, path: Path, view: str) -> _Release:
    kind, place = format_of(str(path)), sql.literal(str(path))
    if not path.is_file():
        raise FileProblem(f"{path}: there is no such file.")
    try:
        if kind == "duckdb":
            catalog = f"{_CATALOG}_{view}"
            con.execute(f"DETACH DATABASE IF EXISTS {catalog}").fetchall()  # of another file that was verified
            con.execute(f"ATTACH {place} AS {catalog} (READ_ONLY)").fetchall()
            names = con.execute("SELECT table_name FROM duckdb_tables() WHERE database_name = ?", [catalog]).fetchall()
            if len(names) != 1:
                raise FileProblem(f"{path}: it has {len(names)} tables, and a release has one.")
            rows = f"{catalog}.main.{sql.name(names[0][0])}"
        elif kind == "csv":
            rows = f"read_csv({place}, all_varchar = true, header = true)"
        else:
            rows = f"read_parquet({place})"
        con.execute(f"CREATE OR REPLACE TEMP VIEW {view} AS FROM {rows}").fetchall()
        return _Release(con, entry, path, view, sql.columns(con, view))
    except duckdb.Error as error:
        raise FileProblem(f"{path}: the release cannot be read ({sql.why(error)}).") from None


def _of_file(release: _Release) -> Iterator[Finding]:
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
    for promise in entry["promises"]:
        if not _is_of_all_tables(promise):
            yield _promised(release, promise)


def _compared(table: str, name: str, measured: float | None, recorded: float | int | None) -> Finding:
    is_same = measured == recorded or (
        measured is not None and recorded is not None and abs(measured - recorded) <= 1e-9 * max(1, abs(recorded))
    )
    shown = "nothing" if measured is None else f"{measured:.6g}"
    words = shown if is_same else f"{shown}, recorded as {'nothing' if recorded is None else f'{recorded:.6g}'}"
    return Finding(table, name, "confirmed" if is_same else "differs", words)


def _promised(release: _Release, promise: PromiseEntry) -> Finding:
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


def _of_cells(release: _Release, promise: PromiseEntry) -> Finding:
    try:
        found = aggregates.counted_again(release.con, release.rows, promise["name"], release.entry)
    except duckdb.Error as error:  # the audit refuses what is no table with margins
        return Finding(release.entry["name"], promise["name"], "differs", f"it cannot be counted ({sql.why(error)})")
    return _compared(release.entry["name"], promise["name"], found, promise["measured"])


def _k_query(release: _Release) -> str:
    nulls = release.entry["method"]["parameters"].get("nulls") or "value"
    arguments = (release.rows, release.classes)
    return (
        f"SELECT k FROM anon.k_anonymity({', '.join(map(sql.literal, arguments))}, nulls := {sql.literal(nulls)}, "
        f"person := {sql.literal(release.whose)})"
    )


def _spread_query(release: _Release, kind: str, column: str, promise: PromiseEntry) -> str:
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


def _linked(con: sql.Connection, releases: list[_Release], missing: list[str]) -> Iterator[Finding]:
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


def _is_of_all_tables(promise: PromiseEntry) -> bool:
    return promise["name"] in ("linked_k", "known_events") or promise["name"].startswith("max_confidence of ")


def _known_events(con: sql.Connection, releases: list[_Release], missing: list[str]) -> Iterator[Finding]:
    """Count again who holds any known events of a person, and how sure a sensitive value is then."""
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
        for promise in one.entry["promises"]:
            name, _, column = promise["name"].partition(" of ")
            if name not in ("known_events", "max_confidence"):
                continue
            if missing:
                words = f"it is counted over all tables, and the file of {', '.join(missing)} was not given"
                yield Finding(one.entry["name"], promise["name"], "unknown", words)
                continue
            tables = tables or LinkedTables(con, parts)
            if promise["name"] not in counted:  # the same for all tables
                counted[promise["name"]] = tables.confidence(column) if column else tables.smallest()
            yield _compared(one.entry["name"], promise["name"], counted[promise["name"]], promise["measured"])


def summary(findings: list[Finding]) -> str:
    """Say what was found, for a terminal."""
    shown: Mapping[Outcome, str] = {"confirmed": "confirmed", "differs": "DIFFERS", "unknown": "not in the file"}
    return "".join(f"{one.table}: {one.name}: {shown[one.outcome]}: {one.words}.\n" for one in findings)

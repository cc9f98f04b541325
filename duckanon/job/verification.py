"""A release checked by who received it: every number of its record that the file alone can tell.

A released file in a connection, beside its entry in the record of the release.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import duckdb

from duckanon._bridge import sql
from duckanon._core.common.release_record import PromiseEntry, Record, TableEntry
from duckanon._methods.linked.declared import RELEASE_LINKED, ROW_COUNT
from duckanon.job import aggregates, readback, signing
from duckanon.job.errors import FileProblem
from duckanon.job.linked_counts import LinkedPart, LinkedTables
from duckanon.job.policy import format_of
from duckanon.job.policy_methods import MODELS
from duckanon.job.promises import count_linked_people
from duckanon.job.readback import label_counts
from duckanon.job.record_checks import contradictions
from duckanon.job.signing import Outcome
from duckanon.job.sources import hash_of

_CATALOG = "verified_file"
_OTHERS = (
    "duckdb_schemas() WHERE NOT internal",
    "duckdb_views() WHERE NOT internal",
    "duckdb_types() WHERE NOT internal",
    "duckdb_functions() WHERE NOT internal",
    "duckdb_sequences() WHERE true",
    "duckdb_indexes() WHERE true",
    "duckdb_constraints() WHERE true",
    "duckdb_tables() WHERE comment IS NOT NULL",
    "duckdb_columns() WHERE NOT internal AND (comment IS NOT NULL OR column_default IS NOT NULL)",
)
"""What a DuckDB file may hold beside the rows of its table."""


@dataclass(frozen=True)
class ReleasedFile:
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
        known: int | None = self.entry["method"]["parameters"].get("known")
        return known if self.entry["method"]["name"] == RELEASE_LINKED.name else None

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
    def person_column(self) -> str | None:
        """The column of the file that tells which rows are one person's."""
        return next(iter(self.in_file(self.person)), None) if self.person else None

    @property
    def tells_people(self) -> bool:
        """Whether people can be counted as the record counts them: rows, or people by a released pseudonym."""
        return self.person is None or self.person_column is not None

    def measure(self, query: str) -> float | None:
        """Return the first number of a query about the view."""
        number: float | None = sql.fetch_row(self.con, query)[0]
        return number


def _only_table(con: sql.Connection, path: Path, catalog: str) -> str:
    """Return the table of a DuckDB file, which has nothing else: a view, a type or a comment can hold values, too."""
    here = f"database_name = {sql.literal(catalog)}"
    extras = " + ".join(f"(SELECT count(*) FROM {query} AND {here})" for query in _OTHERS)
    tables, more = sql.fetch_row(con, f"SELECT (SELECT list(table_name) FROM duckdb_tables() WHERE {here}), {extras}")
    if len(tables or ()) != 1:
        raise FileProblem(f"{path}: it has {len(tables or ())} tables, and a release has one.")
    if more:
        raise FileProblem(f"{path}: it has views, types, macros or comments beside its table, which no release has.")
    return str(tables[0])


def open_release(con: sql.Connection, entry: TableEntry, path: Path, view: str) -> ReleasedFile:
    """Open a released file under the name of a view."""
    kind, place = format_of(str(path)), sql.literal(str(path))
    if not path.is_file():
        raise FileProblem(f"{path}: there is no such file.")
    try:
        if kind == "duckdb":
            catalog = f"{_CATALOG}_{view}"
            con.execute(f"DETACH DATABASE IF EXISTS {catalog}").fetchall()  # of another file that was verified
            con.execute(f"ATTACH {place} AS {catalog} (READ_ONLY)").fetchall()
            rows = f"{catalog}.main.{sql.quote(_only_table(con, path, catalog))}"
        elif kind == "csv":
            rows = f"({readback.read_csv_release(path)})"
        else:
            rows = f"read_parquet({place})"
        con.execute(f"CREATE OR REPLACE TEMP VIEW {view} AS FROM {rows}").fetchall()
        return ReleasedFile(con, entry, path, view, sql.columns(con, view))
    except duckdb.Error as error:
        raise FileProblem(f"{path}: the release cannot be read ({sql.reason(error)}).") from None


@dataclass(frozen=True)
class Finding:
    """A number of the record, and what the file says of it."""

    table: str
    name: str
    outcome: Outcome
    words: str


def verify(con: sql.Connection, record: Record, files: list[Path], trusted: Sequence[str] = ()) -> list[Finding]:
    """Compare released files, and their report, with the record of their release, and the record with itself.

    Each file is found in the record by its name, a single file of a record of one table whatever its name is. `trusted`
    are the public keys of which one must have signed the record.
    """
    entries = {entry["output"]["path"]: entry for entry in record["tables"]}
    findings = [Finding(table, name, "differs", words) for table, name, words in contradictions(record)]
    disbelieved = {one.table for one in findings}  # whose promises could not even be counted
    findings += [Finding("record", "signature", *found) for found in signing.check(record, trusted)]
    releases: list[ReleasedFile] = []
    report = record["report"]
    names = (report["path"], "report.html") if report else ()  # in a zip file of evidence it has the second
    reports = [path for path in files if path.name not in entries and path.name in names]
    released = [path for path in files if path not in reports]
    for number, path in enumerate(released, 1):
        entry = entries.get(path.name)
        if entry is None and len(record["tables"]) == len(released) == 1:
            entry = record["tables"][0]
        if entry is None:
            raise FileProblem(f"{path}: the record has no release of that name.")
        release = open_release(con, entry, path, f"verified_{number}")
        releases.append(release)
        try:
            findings += _of_file(release, is_believed=not disbelieved)
        except duckdb.Error as error:  # a damage that is not in the first rows
            raise FileProblem(f"{path}: the release cannot be read ({sql.reason(error)}).") from None
    releases.sort(key=lambda one: record["tables"].index(one.entry))
    missing = [entry["name"] for entry in record["tables"] if entry not in [one.entry for one in releases]]
    if not disbelieved:
        try:
            findings += [*_check_linked(con, releases, missing), *_check_known_events(con, record, releases, missing)]
        except duckdb.Error as error:
            findings.append(Finding("record", "linked", "differs", f"it cannot be counted ({sql.reason(error)})"))
    findings += [Finding(name, "file", "unknown", "the file was not given") for name in missing]
    findings += [Finding("report", *found) for path in reports for found in _of_report(record, path)]
    if report and not reports:
        findings.append(Finding("report", "sha256", "unknown", "the report was not given"))
    return findings


def _of_report(record: Record, path: Path) -> Iterator[tuple[str, Outcome, str]]:
    """Compare the hash of a report, and each number in it, with the record."""
    from duckanon.report.page import differing_numbers, is_page_of  # matplotlib takes a second to load

    assert record["report"] is not None
    yield _same_hash(path, record["report"]["sha256"])
    try:
        text = path.read_text(encoding="utf-8")
    except ValueError:
        text = ""
    wrong = differing_numbers(text, record)
    words = f"{', '.join(wrong[:3])}: the record has another" if wrong else "all are those of the record"
    yield "numbers", "differs" if wrong else "confirmed", words
    is_same = is_page_of(text, record)
    if is_same is None:
        words = "another version of duckanon wrote the page, or the copy of the record lacks numbers of the original"
        yield "text", "unknown", words
    else:
        words = "is" if is_same else "is not"
        yield "text", "confirmed" if is_same else "differs", f"it {words} what the job writes of the record"


def _same_hash(path: Path, recorded: str | None) -> tuple[str, Outcome, str]:
    try:
        is_same = hash_of([path]) == recorded
    except OSError as error:
        raise FileProblem(f"{path}: the file cannot be read ({error.strerror}).") from None
    words = "the file is the one that was recorded" if is_same else "the file is not the one that was recorded"
    return "sha256", "confirmed" if is_same else "differs", words


def _of_file(release: ReleasedFile, *, is_believed: bool) -> Iterator[Finding]:
    """Compare the hash, the rows, the columns and, where the record may be right, the other numbers of one file."""
    entry = release.entry
    name, output = entry["name"], entry["output"]
    yield Finding(name, *_same_hash(release.path, output["sha256"]))
    rows = release.measure(f"SELECT count(*) FROM {release.rows}")
    yield _compare_number(name, "rows", rows, output["rows"])
    yield _columns(release)
    if not is_believed:
        return
    if output["labels"]:
        yield _labels(release, output["labels"])
    if release.person and MODELS[entry["method"]["name"]].makes_classes:
        yield _people(release)
    if change := entry.get("changes"):
        classes = release.measure(
            f"SELECT count(*) FROM (SELECT DISTINCT {sql.quote_all(release.classes)} FROM {release.rows})"
        )
        if classes != change["classes"]:
            yield _compare_number(name, "classes", classes, change["classes"])
    counts: dict[str, Callable[[], Finding | None]] = {
        promise["name"]: partial(_recount_promise, release, promise)
        for promise in entry["promises"]
        if not _is_of_all_tables(release, promise)
    }
    counts["cells"] = partial(_cells, release)
    for part, count in counts.items():
        try:
            finding = count()
        except duckdb.Error as error:  # the audit refuses what is no table with margins
            finding = Finding(name, part, "differs", f"it cannot be counted ({sql.reason(error)})")
        yield from [finding] if finding else []


def _cells(release: ReleasedFile) -> Finding | None:
    """Count the cells of an aggregate table again."""
    wrong = aggregates.find_miscounts(release.con, release.rows, release.entry) if "cells" in release.entry else []
    words = f"the file has other {', '.join(wrong)}"
    return Finding(release.entry["name"], "cells", "differs", words) if wrong else None


def _columns(release: ReleasedFile) -> Finding:
    """Compare the names of all columns, in their order, with those that the record lists."""
    held, listed = list(release.columns), release.entry["output"]["columns"]
    more = [name for name in held if name not in listed]
    gone = [name for name in listed if name not in held]
    words = [f"the file has {', '.join(more)}, which the record does not have"] if more else []
    words += [f"the file does not have {', '.join(gone)}"] if gone else []
    words += ["they stand in another order"] if held != listed and not words else []
    shown = "; ".join(words) or f"the {len(held)} of the record, and no others"
    return Finding(release.entry["name"], "columns", "differs" if words else "confirmed", shown)


def _people(release: ReleasedFile) -> Finding:
    """Count the people where the file tells whose rows they are; there are never more than rows."""
    name, output = release.entry["name"], release.entry["output"]
    if release.person_column:
        people = release.measure(f"SELECT count(DISTINCT {sql.quote(release.person_column)}) FROM {release.rows}")
        return _compare_number(name, "people", people, output["people"])
    if output["people"] is None or output["people"] > output["rows"]:
        return Finding(name, "people", "differs", "the record has more people than rows, or none")
    return Finding(name, "people", "unknown", "the file does not tell whose a row is")


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


def _compare_number(table: str, name: str, measured: float | None, recorded: float | int | None) -> Finding:
    is_same = measured == recorded or (
        measured is not None and recorded is not None and abs(measured - recorded) <= 1e-9 * max(1, abs(recorded))
    )
    words = _show_number(measured) if is_same else f"{_show_number(measured)}, recorded as {_show_number(recorded)}"
    return Finding(table, name, "confirmed" if is_same else "differs", words)


def _show_number(number: float | None) -> str:
    """Write a number with six digits, whole ones with all: of a million rows, one more or less differs."""
    if number is None:
        return "nothing"
    return str(int(number)) if float(number).is_integer() else f"{number:.6g}"


def _recount_promise(release: ReleasedFile, promise: PromiseEntry) -> Finding:
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
    measured = release.measure(query)
    if release.tells_people:
        return _compare_number(table, name, measured, recorded)
    if name == "k" and measured is not None and recorded is not None and measured < recorded:
        return _compare_number(table, name, measured, recorded)  # there are no more people than rows
    words = "the record counts people, and the file does not tell whose a row is"
    if name == "k":
        words += f"; the smallest class has {_show_number(measured)} rows"
    return Finding(table, name, "unknown", words)


def _of_cells(release: ReleasedFile, promise: PromiseEntry) -> Finding:
    value = aggregates.recount_promise(release.con, release.rows, promise["name"], release.entry)
    return _compare_number(release.entry["name"], promise["name"], value, promise["measured"])


def _k_query(release: ReleasedFile) -> str:
    nulls = release.entry["method"]["parameters"].get("nulls") or "value"
    arguments = (release.rows, release.classes)
    return (
        f"SELECT k FROM anon.k_anonymity({', '.join(map(sql.literal, arguments))}, nulls := {sql.literal(nulls)}, "
        f"person := {sql.literal(release.person_column)})"
    )


def _spread_query(release: ReleasedFile, kind: str, column: str, promise: PromiseEntry) -> str:
    """Write the query of l or t; numbers and dates of a CSV file are texts, and t asks how far apart they are."""
    (col,) = release.in_file(column)[:1]
    quoted, typed = sql.quote(col), f"{release.rows}_typed"
    counts = [f"count(*) FILTER (TRY_CAST({quoted} AS {one}) IS NULL)" for one in ("DOUBLE", "DATE")]
    no_numbers, no_dates = sql.fetch_row(
        release.con, f"SELECT {', '.join(counts)} FROM {release.rows} WHERE {quoted} IS NOT NULL"
    )
    is_text = release.columns[col] == "VARCHAR" and format_of(str(release.path)) == "csv"
    type_name = "DOUBLE" if is_text and not no_numbers else "DATE" if is_text and not no_dates else release.columns[col]
    release.con.execute(
        f"CREATE OR REPLACE TEMP VIEW {typed} AS SELECT * REPLACE ({quoted}::{type_name} AS {quoted}) "
        f"FROM {release.rows}"
    ).fetchall()
    arguments = f"{sql.literal(typed)}, {sql.literal(release.classes)}, {sql.literal(col)}"
    arguments += f", person := {sql.literal(release.person_column)}"
    if kind == "t":
        return f"SELECT t FROM anon.t_closeness({arguments})"
    if kind == "recursive l":
        level = release.entry["method"]["parameters"].get("l")
        chosen = f"measure = 'recursive' AND l = {sql.literal(level)}"
        return f"SELECT min(c) FROM anon.l_diversity({arguments}) WHERE {chosen}"
    measure = "entropy" if "entropy" in promise["words"] else "distinct"
    return f"SELECT l FROM anon.l_diversity({arguments}) WHERE measure = '{measure}'"


def _check_linked(con: sql.Connection, releases: list[ReleasedFile], missing: list[str]) -> Iterator[Finding]:
    """Count again how many people share every combination of classes, over all tables of the record."""
    recorded = {
        file.entry["name"]: promise["measured"]
        for file in releases
        for promise in file.entry["promises"]
        if promise["name"] == "linked_k"
    }
    parts = [(file.rows, name, file.classes) for file in releases if file.known is None for name in file.linking]
    for name, value in recorded.items():
        if missing:
            words = f"it is counted over all tables, and the file of {', '.join(missing)} was not given"
            yield Finding(name, "linked_k", "unknown", words)
        else:
            yield _compare_number(name, "linked_k", count_linked_people(con, parts), value)


def _is_of_all_tables(release: ReleasedFile, promise: PromiseEntry) -> bool:
    return promise["name"] == "linked_k" or _is_of_events(release, promise)


def _is_of_events(release: ReleasedFile, promise: PromiseEntry) -> bool:
    """Tell whether known events of all tables are counted: l and t are then of those, too."""
    name = promise["name"].partition(" of ")[0]
    return name in ("known_events", "max_confidence") or (name in ("l", "t") and release.known is not None)


def _check_known_events(
    con: sql.Connection, record: Record, releases: list[ReleasedFile], missing: list[str]
) -> Iterator[Finding]:
    """Count again who holds any known events of a person, and what that tells about sensitive values."""
    parts = [
        LinkedPart(
            file.entry["name"],
            file.rows,
            name,
            file.classes,
            file.known,
            [col for column in file.with_role("sensitive") for col in file.in_file(column)],
        )
        for file in releases
        for name in file.linking
    ]
    tables: LinkedTables | None = None
    counted: dict[str, float] = {}
    for file in releases:
        for promise in (any_promise for any_promise in file.entry["promises"] if _is_of_events(file, any_promise)):
            name, _, column = promise["name"].partition(" of ")
            if missing:
                words = f"it is counted over all tables, and the file of {', '.join(missing)} was not given"
                yield Finding(file.entry["name"], promise["name"], "unknown", words)
                continue
            tables = tables or LinkedTables(con, parts)
            if promise["name"] not in counted:  # the same for all tables
                counted[promise["name"]] = tables.count_learned(column)[name] if column else tables.smallest()
            yield _compare_number(file.entry["name"], promise["name"], counted[promise["name"]], promise["measured"])
    linked = record.get("linked")
    if tables and linked and record["duckdb"] == duckdb.__version__:  # by whose hashes the attacked people are chosen
        is_same = linked["known"] == tables.known and linked["exposure"] == tables.exposure(linked["k"])
        words = "what attackers find is the same" if is_same else "attackers find another share of the people"
        yield Finding("record", "linked", "confirmed" if is_same else "differs", words)


def summary(findings: list[Finding]) -> str:
    """Say what was found, for a terminal."""
    shown: Mapping[Outcome, str] = {"confirmed": "confirmed", "differs": "DIFFERS", "unknown": "not in the file"}
    return "".join(f"{_line(f'{one.table}: {one.name}: {shown[one.outcome]}: {one.words}')}.\n" for one in findings)


def _line(text: str) -> str:
    """Write a text in one line, so that a name in a forged record cannot look like a finding."""
    return r"\n".join(text.splitlines())


def refusal(findings: list[Finding]) -> str | None:
    """Return the sentence about what differs; None where nothing does."""
    wrong = [one for one in findings if one.outcome == "differs"]
    if not wrong:
        return None
    names = list(dict.fromkeys(f"{one.table}: {one.name}" for one in wrong[1:]))
    too = f"; others that differ: {', '.join(names[:5])}{' and more' if len(names) > 5 else ''}" if names else ""
    return _line(f"{wrong[0].table}: {wrong[0].name} differs: {wrong[0].words}{too}.")

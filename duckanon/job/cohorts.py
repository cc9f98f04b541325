"""A release in cohorts: the account decides who enters, leaves and moves; others keep their records.

Records of people who are gone, or wait to move, are copied from the last release: the account knows whose row is whose,
and keeps no value itself.

The last release of a policy's table, of which cohorts keep records: found, checked, and read row by row.

The rows of a release in cohorts: new ones, new ones under coarser labels, and those that are kept.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from duckanon._bridge import sql
from duckanon._core.account.cohorts import POOL, CohortPeople, CohortRules, Decision, decide_cohorts
from duckanon._core.account.entries import Entry, KnownHashes, TableRelease, find_hashes, hash_values, join_hashes
from duckanon._core.account.joint import ABSENT, JointCounts
from duckanon._core.account.storage import HASH_SIZE
from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Ints, sort_distinct
from duckanon._core.common.release_record import CohortsEntry
from duckanon.job import account, readback, sources, warehouse
from duckanon.job.account import CodedTable, CohortState, JobAccount, Values, labels_hash, problems
from duckanon.job.coarser_labels import CoarserLabels, coarser_labels
from duckanon.job.errors import FileProblem
from duckanon.job.places import target_name
from duckanon.job.policy import Table, is_server, source_format
from duckanon.job.policy_file import PolicyFile

_CATALOG, _ROWS, _FETCHED = "last_cohorts", "last_cohorts_rows", "last_cohorts_rows_fetched"


@dataclass(frozen=True)
class LastRelease:
    """The last release of a table: what the account knows of it and of earlier ones, its rows, and whose they are.

    The rows have the columns of the new release, in its types; the person only where a pseudonym is released.
    """

    listed: TableRelease
    rows: str
    owners: Ints
    values: Mapping[str, Values]
    earlier: Sequence[TableRelease] = ()


@contextmanager
def last_release(
    con: sql.Connection, ledger: JobAccount, file: PolicyFile, name: str, previous: Path | None, applied: str
) -> Iterator[LastRelease | None]:
    """Find the last release of this policy's table, and refuse what is not that; None before the first."""
    table = file.policy.tables[name]
    is_on_server = previous is None and is_server(table.target.path)
    try:
        same = ledger.of_table(name, lambda: _hashes_if_there(con, table) if is_on_server else _hash_of(previous))
        if not same:
            yield None
        elif is_on_server:
            yield replace(_on_server(con, ledger, table, name, same, applied), earlier=same)
        else:
            yield replace(_in_file(con, ledger, table, name, same[-1], previous, applied), earlier=same)
    finally:
        con.execute(f"DETACH DATABASE IF EXISTS {_CATALOG}").fetchall()
        con.execute(f"DROP TABLE IF EXISTS {_ROWS}").fetchall()


def _in_file(
    con: sql.Connection,
    ledger: JobAccount,
    table: Table,
    name: str,
    listed: TableRelease,
    path: Path | None,
    applied: str,
) -> LastRelease:
    if path is None or listed.sha256 not in _hash_of(path):
        raise FileProblem(
            f"{path}: cohorts continue release {listed.release} of the account, and this is not its file; put it "
            "back there, or name it with --previous."
        )
    target = table.target.model_copy(update={"path": str(path)})
    form = readback.shape(con, name, table.model_copy(update={"target": target}), applied)
    form = replace(form, kind=source_format(str(path)) or form.kind)
    rows = readback.file_rows(con, form, path, _CATALOG)
    rows = f"SELECT {readback.restore_types(form, sql.columns(con, applied))} FROM ({rows})"
    return _read(con, ledger, table, listed, rows, str(path))


def _on_server(
    con: sql.Connection, ledger: JobAccount, table: Table, name: str, same: list[TableRelease], applied: str
) -> LastRelease:
    """Read the table that is on the server.

    It may be an earlier release than the account's last: a run that was killed between its entry and the commit of the
    server has published nothing. What it would have given away is counted all the same.
    """
    hashes = _hashes(con, table)
    query = f"SELECT * FROM {_FETCHED}"
    shown = target_name(table.target)
    listed = next((one for one in reversed(same) if one.sha256 in hashes), None)
    if listed is None:
        raise FileProblem(
            f"{shown}: cohorts continue release {same[-1].release} of the account, and this is not its table; restore "
            "it."
        )
    form = readback.shape(con, name, table, applied)
    con.execute(f"CREATE TEMP TABLE {_ROWS} AS {warehouse.in_order(con, query)}").fetchall()
    rows = f"SELECT {readback.restore_types(form, sql.columns(con, applied))} FROM {_ROWS}"
    return _read(con, ledger, table, listed, rows, shown)


def _hash_of(path: Path | None) -> set[str]:
    return {sources.hash_of([path])} if path and path.exists() else set()


def _hashes(con: sql.Connection, table: Table) -> set[str]:
    """Return the hashes of the table that is on the server, which is fetched."""
    query = warehouse.fetch_table(con, table.target, _FETCHED)
    # an earlier version entered the second one, which is the same with the same version of DuckDB
    return {warehouse.digest(con, query), warehouse.fingerprint(con, query)}


def _hashes_if_there(con: sql.Connection, table: Table) -> set[str]:
    try:
        return _hashes(con, table)
    except FileProblem:  # the first release of a policy, whose name another one has
        return set()


def _read(
    con: sql.Connection, ledger: JobAccount, table: Table, listed: TableRelease, rows: str, shown: str
) -> LastRelease:
    owners = ledger.releases.owners(listed.number)
    values = account.read_values(con, ledger.account, rows, table.with_roles("sensitive"))
    if sql.fetch_row(con, f"SELECT count(*) FROM ({rows})")[0] != len(owners):
        raise FileProblem(f"{shown}: release {listed.release} of the account was not made with cohorts.")
    return LastRelease(listed, rows, owners, values)


_VIEWS = ("fresh_people", "coarse_people", "ladders", "kept_rows")


@dataclass(frozen=True)
class CohortRecords:
    """The people of a release, by their numbers.

    Attributes:
        names: What the release calls each.
        decided: Who is in it.
        levels: Of each the level of their labels.
        labels: What labels are at each level.
    """

    names: list[str]
    decided: Decision
    levels: Ints
    labels: CoarserLabels


def write(
    con: sql.Connection, table: Table, applied: str, released: str, records: CohortRecords, last: LastRelease | None
) -> None:
    """Make the table of the release, in random order.

    Args:
        con: Where the tables are.
        table: The table of the policy.
        applied: The table whose rows have the plan's labels.
        released: The table to make.
        records: The people of the release.
        last: The last release, of which rows are kept.
    """
    person, types = sql.quote(table.person or ""), sql.columns(con, applied)
    names, decided, levels = records.names, records.decided, records.levels
    is_fresh = (decided.classes != ABSENT) & ~decided.is_old
    fresh, coarse = np.flatnonzero(is_fresh & (levels == 0)), np.flatnonzero(is_fresh & (levels > 0))
    try:
        con.register("fresh_people", pa.table({"whose": pa.array([names[place] for place in fresh], pa.string())}))
        parts = [
            f"SELECT applied.* FROM {applied} AS applied JOIN fresh_people ON applied.{person} = fresh_people.whose"
        ]
        parts.append(_coarse(con, applied, person, [names[place] for place in coarse], levels[coarse], records.labels))
        if last:
            is_kept = decided.is_old[last.owners]
            owners = [names[place] if kept else None for place, kept in zip(last.owners, is_kept, strict=True)]
            con.register("kept_rows", pa.table({"whose": pa.array(owners, pa.string())}))
            columns = ", ".join(f"file.{sql.quote(column)}" for column in types if column != table.person)
            parts.append(
                f"SELECT {columns}, kept_rows.whose AS {person} FROM ({last.rows}) AS file POSITIONAL JOIN kept_rows "
                "WHERE kept_rows.whose IS NOT NULL"
            )
        con.execute(
            f"CREATE TABLE {released} AS SELECT * FROM ({' UNION ALL BY NAME '.join(parts)}) "
            "ORDER BY anon._random() ASC NULLS LAST"
        ).fetchall()
    finally:
        for view in _VIEWS:
            con.execute(f"DROP VIEW IF EXISTS {view}").fetchall()


def _coarse(
    con: sql.Connection, applied: str, person: str, names: list[str], levels: Ints, labels: CoarserLabels
) -> str:
    """Return the query of rows whose labels are coarser than the plan's."""
    rungs = np.array(labels.levels)[levels]
    columns = {f"rung {place}": rungs[:, place] for place in range(len(labels.columns))}
    con.register("coarse_people", pa.table({"whose": pa.array(names, pa.string()), **columns}))
    steps = [
        {"place": place, "rung": number, "label": label, "coarser": coarser}
        for place, ladder in enumerate(labels.ladders)
        for number, rung in enumerate(ladder.rungs, 1)
        for label, coarser in rung.items()
    ]
    schema = pa.schema({"place": pa.int64(), "rung": pa.int64(), "label": pa.string(), "coarser": pa.string()})
    con.register("ladders", pa.Table.from_pylist(steps, schema))
    shown, joins = [], ""
    for place, (column, ladder) in enumerate(zip(labels.columns, labels.ladders, strict=True)):
        plan_label, rung = f"applied.{sql.quote(column)}", f"coarse_people.{sql.quote(f'rung {place}')}"
        cases = f"CASE {rung} WHEN 0 THEN {plan_label} "
        if ladder.rungs:
            joins += (
                f" LEFT JOIN ladders AS ladder_{place} ON ladder_{place}.place = {place} "
                f"AND ladder_{place}.rung = {rung} AND ladder_{place}.label = {plan_label}"
            )
            cases += f"WHEN {len(ladder.rungs) + 1} THEN NULL ELSE ladder_{place}.coarser "
        shown.append(f"{cases}END AS {sql.quote(column)}")
    return (
        f"SELECT applied.* REPLACE ({', '.join(shown)}) FROM {applied} AS applied "
        f"JOIN coarse_people ON applied.{person} = coarse_people.whose{joins}"
    )


_CLASS_SIZE = 30
"""Times k, people in every class of a plan. With 2 % joining and leaving and 1 % moving a month, and k = 10, 15 % of
the people of classes of 100 waited or were stale after a year, 9 % of classes of 400, 5.5 % of classes of 667."""


class Cohorts:
    """The cohorts of one table in one run.

    Args:
        ledger: The account.
        file, name: The policy and its table.
        previous: The file of the last release, if there is one.
    """

    def __init__(self, ledger: JobAccount, file: PolicyFile, name: str, previous: Path | None) -> None:
        self._ledger = ledger
        self._file = file
        self._name = name
        self._previous = previous
        self.entry: CohortsEntry | None = None

    def prepare(self, con: sql.Connection, table: Table, original: str) -> None:
        """Name people by text, since the last release has people of whom only the hash is known."""
        con.execute(f"ALTER TABLE {original} ALTER {sql.quote(table.person or '')} SET DATA TYPE VARCHAR").fetchall()

    def class_size(self, table: Table) -> int:
        """Return how many people every class of a new plan has."""
        cohorts = self._file.policy.cohorts
        assert cohorts is not None
        return cohorts.class_size or _CLASS_SIZE * self._rules(table, is_first=True).k

    def release(
        self, con: sql.Connection, table: Table, applied: str, released: str, hierarchies: Mapping[str, str]
    ) -> None:
        """Make the release from the labelled table and the last release."""
        _show_as_written(con, self._name, table, applied)
        labels = coarser_labels(con, table, hierarchies)
        with problems(), last_release(con, self._ledger, self._file, self._name, self._previous, applied) as last:
            self._release(con, table, applied, released, labels, last)

    def _release(
        self,
        con: sql.Connection,
        table: Table,
        applied: str,
        released: str,
        labels: CoarserLabels,
        last: LastRelease | None,
    ) -> None:
        ledger = self._ledger
        classes, sensitive = table.with_roles("quasi_identifier"), table.with_roles("sensitive")
        read = account.read_entry(con, ledger.account, applied, table.person or "", classes, sensitive)
        entry = ledger.entry(self._name, table, read, ledger.hash_people(self._name, read.names))
        known = ledger.releases.read_hashes([*ledger.entries.values(), entry])
        known = known.with_values({column: values.hashes for column, values in last.values.items()} if last else {})
        here = find_hashes(known.people, entry.people)
        people = self._people(con, table, read, entry, known, labels, last)
        rules = self._rules(table, is_first=last is None)
        decided = decide_cohorts(people, rules)
        names = _names(con, table, known, here, read.names, last)
        records = CohortRecords(names, decided, _levels(people, decided), labels)
        write(con, table, applied, released, records, last)
        numbers = _numbers(people, decided)
        gone = np.setdiff1d(np.flatnonzero(decided.is_old), here)
        state = np.union1d(here, np.flatnonzero(decided.classes != ABSENT))
        hashes = np.frombuffer(known.people, f"V{HASH_SIZE}")
        ledger.cohorts[self._name] = CohortState(
            {names[place]: hashes[place].tobytes() for place in gone},
            hashes[state].tobytes(),
            {name: of_people[state] for name, of_people in numbers.items()},
        )
        self.entry = _cohorts_entry(people, decided, numbers, rules.k)

    def _rules(self, table: Table, *, is_first: bool) -> CohortRules:
        cohorts = self._file.policy.cohorts
        assert cohorts is not None
        k = max(table.promises.joint_k or 2, table.promises.k or 2)
        asked = max(table.promises.joint_l or 1, int(np.ceil(table.promises.l or 1)))
        return CohortRules(k, asked, k if is_first else cohorts.size or 3 * k, cohorts.patience, cohorts.refresh)

    def _was_in(self, last: LastRelease | None, count: int) -> Bools:
        """Return who was in a release of this table."""
        is_member = np.zeros(count, np.bool_)
        for release in last.earlier if last else ():
            is_member |= self._ledger.releases.classes(release.number, count)[0] != ABSENT
        return is_member

    def _find_erased(self, con: sql.Connection, table: Table, known: KnownHashes) -> Ints:
        """Return the numbers of people who must not be in the release."""
        people = find_erased_people(con, self._file)
        names = self._ledger.names_in_release(con, table, people)
        return find_hashes(known.people, hash_values(self._ledger.account, "person", names, progress.check))

    def _people(
        self,
        con: sql.Connection,
        table: Table,
        read: CodedTable,
        entry: Entry,
        known: KnownHashes,
        labels: CoarserLabels,
        last: LastRelease | None,
    ) -> CohortPeople:
        """Return the people of the last release and of the table, by their numbers in the account."""
        ledger, here = self._ledger, find_hashes(known.people, entry.people)
        after = deque(ledger.releases.joint([*ledger.entries.values()], known), maxlen=1)
        counts = after[0][1] if after else JointCounts.of_nobody(known.count)
        before, before_labels = np.full(known.count, ABSENT), b""
        waited, stale = np.zeros(known.count, np.int64), np.zeros(known.count, np.int64)
        if last:
            before, before_labels = ledger.releases.classes(last.listed.number, known.count)
            waited, stale = (
                np.maximum(ledger.releases.state(last.listed.number, name, known.count), 0)
                for name in ("waited", "stale")
            )
        coarse = _coarser_hashes(ledger, read, labels)
        every = join_hashes(labels_hash(ledger.account, [(None,) * len(labels.columns)]), before_labels + coarse)
        coarser = find_hashes(every, coarse).reshape(-1, len(labels.levels))
        now = np.full(known.count, ABSENT)
        now[here] = coarser[read.classes, 0]
        by_class = np.full((len(every) // HASH_SIZE, len(labels.levels)), POOL)
        by_class[coarser[:, 0]] = coarser
        shown = {} if last is None else last.values
        widths = {column: known.width(column) for column in read.values}
        return CohortPeople(
            groups=counts.groups,
            before=np.append(find_hashes(every, before_labels), ABSENT)[before],
            now=now,
            is_seen=counts.is_seen,
            was_in=self._was_in(last, known.count),
            must_go=np.isin(np.arange(known.count), self._find_erased(con, table, known)),
            waited=waited,
            stale=stale,
            coarser=by_class,
            shown={} if last is None else {c: _pairs(values, last.owners, known, c) for c, values in shown.items()},
            new={column: _pairs(values, here[read.who], known, column) for column, values in read.values.items()},
            left={column: left for column, left in counts.left.items() if column in widths},
            widths=widths,
            paths={column: paths for column, paths in counts.paths.items() if column in widths},
        )


def find_erased_people(con: sql.Connection, file: PolicyFile) -> list[str]:
    """Return the people who must not be in a release, as the source names them."""
    path = file.policy.cohorts and file.policy.cohorts.erase
    if not path:
        return []
    try:
        rows = con.execute(sources.files_query([file.place(path)])).fetchall()
    except duckdb.Error as error:
        raise FileProblem(f"{path}: the people to erase cannot be read ({sql.reason(error)}).") from None
    return [str(row[0]) for row in rows]


def cohorts_of(ledger: JobAccount | None, file: PolicyFile, name: str, previous: Path | None) -> Cohorts | None:
    """Return the cohorts of a table, if the policy has them; they continue the previous release."""
    return None if ledger is None or file.policy.cohorts is None else Cohorts(ledger, file, name, previous)


def _show_as_written(con: sql.Connection, name: str, table: Table, applied: str) -> None:
    """Replace texts by what the target shows of them, so that they can be compared with the last release's."""
    form = readback.shape(con, name, table, applied)
    changed = [
        f"{form.expressions[column]} AS {sql.quote(column)}"
        for column in sql.columns(con, applied)
        if form.expressions.get(column) not in (None, sql.quote(column))
    ]
    if changed:
        con.execute(
            f"CREATE OR REPLACE TABLE {applied} AS SELECT * REPLACE ({', '.join(changed)}) FROM {applied}"
        ).fetchall()


def _coarser_hashes(ledger: JobAccount, read: CodedTable, labels: CoarserLabels) -> bytes:
    """Return the keyed hashes of each class at each level, class by class."""
    hash_of_labels: dict[frozenset[account.Labels], bytes] = {}
    hashes = []
    for rows in read.rows:
        progress.check()
        for level in range(len(labels.levels)):
            at_level = frozenset(labels.at(row, level) for row in rows)
            if at_level not in hash_of_labels:
                hash_of_labels[at_level] = labels_hash(ledger.account, at_level)
            hashes.append(hash_of_labels[at_level])
    return b"".join(hashes)


def _pairs(values: Values, owners: Ints, known: KnownHashes, column: str) -> Ints:
    """Return the different pairs of person and value, ascending."""
    return sort_distinct(owners * known.width(column) + find_hashes(known.values[column], values.hashes)[values.codes])


def _names(
    con: sql.Connection, table: Table, known: KnownHashes, here: Ints, names: list[str], last: LastRelease | None
) -> list[str]:
    """Return what the release calls each person.

    People who are gone have the pseudonym of the last release, or, where none is released, a name that nobody has.
    """
    mark = secrets.token_hex(8)
    name_of_person = [f"{mark} {number}" for number in range(known.count)]
    if last and table.columns[table.person or ""].is_pseudonym:
        rows = con.sql(f"SELECT {sql.quote(table.person or '')}::VARCHAR AS whose FROM ({last.rows})").to_arrow_table()
        for place, name in zip(last.owners, rows["whose"].to_pylist(), strict=True):
            name_of_person[place] = name
    for place, name in zip(here, names, strict=True):
        name_of_person[place] = name
    return name_of_person


def _levels(people: CohortPeople, decided: Decision) -> Ints:
    """Return of each person the level of their labels in the new release; 0 for people who keep their record."""
    levels = np.zeros(len(people.now), np.int64)
    is_coarse = (decided.classes != ABSENT) & ~decided.is_old & (decided.classes != people.now)
    rows = np.flatnonzero(is_coarse)
    levels[rows] = (people.coarser[people.now[rows]] == decided.classes[rows][:, None]).argmax(axis=1)
    return levels


def _numbers(people: CohortPeople, decided: Decision) -> dict[str, Ints]:
    """Return for how many releases each person has waited, and for how many their record is not true."""
    waits = (decided.classes == ABSENT) & (people.now != ABSENT) & ~people.must_go
    return {"waited": np.where(waits, people.waited + 1, 0), "stale": np.where(decided.is_stale, people.stale + 1, 0)}


def _cohorts_entry(people: CohortPeople, decided: Decision, numbers: Mapping[str, Ints], k: int) -> CohortsEntry:
    """Return what the record tells."""
    waited, stale = (numbers[name][numbers[name] > 0] for name in ("waited", "stale"))
    width = int(max(people.now.max(initial=0), decided.classes.max(initial=0))) + 1
    true, shown = (np.bincount(c[c != ABSENT], minlength=width) for c in (people.now, decided.classes))
    chosen = (true >= k) & (np.arange(width) != POOL)
    errors = np.abs(shown - true)[chosen] / true[chosen]
    is_pooled = decided.classes == POOL
    is_coarser = (decided.classes != ABSENT) & (decided.classes != people.now) & ~decided.is_stale & ~is_pooled
    return {
        "people": int((people.now != ABSENT).sum()),
        "waiting": len(waited),
        "mean_wait": float(waited.mean()) if len(waited) else 0.0,
        "longest_wait": int(waited.max(initial=0)),
        "stale": len(stale),
        "mean_stale": float(stale.mean()) if len(stale) else 0.0,
        "longest_stale": int(stale.max(initial=0)),
        "coarser": int(is_coarser.sum()),
        "pooled": int(is_pooled.sum()),
        "erased": int((people.must_go & (people.before != ABSENT)).sum()),
        "count_error": float(errors.mean()) if len(errors) else 0.0,
    }

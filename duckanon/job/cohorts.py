"""A release in cohorts: the account decides who enters, leaves and moves; others keep their records.

Records of people who are gone, or wait to move, are copied from the last release: the account knows whose row is whose,
and keeps no value itself.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from duckanon._bridge import sql
from duckanon._core.account.cohorts import POOL, Decision, People, Rules, decide
from duckanon._core.account.entries import Entry, Known, Listed, hashed, joined, places
from duckanon._core.account.joint import ABSENT, JointCounts, unique
from duckanon._core.account.storage import HASH_SIZE
from duckanon._core.common import progress
from duckanon._core.common.arrays import Ints
from duckanon._core.common.release_record import CohortsEntry
from duckanon.job import account_entries, sources
from duckanon.job.account import CohortState, JobAccount, problems
from duckanon.job.account_entries import CodedTable, Values
from duckanon.job.errors import FileProblem
from duckanon.job.policy import Table, source_format
from duckanon.job.policy_file import PolicyFile

_PREVIOUS = "last_cohorts"
_CLASS_SIZE = 30
"""Times k, people in every class of a plan. With 2 % joining and leaving and 1 % moving a month, and k = 10, 15 % of
the people of classes of 100 waited or were stale after a year, 9 % of classes of 400, 5.5 % of classes of 667."""
_FRESH, _POOLED = "fresh", "pooled"


@dataclass(frozen=True)
class _Last:
    """The last release of the policy: what the account knows of it, the query of its rows, and whose they are."""

    listed: Listed
    rows: str
    owners: Ints
    values: Mapping[str, Values]


class Cohorts:
    """The cohorts of one run.

    Args:
        ledger: The account.
        file, name: The policy and its table.
        previous: The last release, if there is one.
    """

    def __init__(self, ledger: JobAccount, file: PolicyFile, name: str, previous: Path | None) -> None:
        self._ledger = ledger
        self._file = file
        self._name = name
        self._previous = previous
        self.entry: CohortsEntry | None = None

    def prepare(self, con: sql.Connection, table: Table, original: str) -> None:
        """Name people by text, since the last release has people of whom only the hash is known."""
        con.execute(f"ALTER TABLE {original} ALTER {sql.name(table.person or '')} SET DATA TYPE VARCHAR").fetchall()

    def class_size(self, table: Table) -> int:
        """Return how many people every class of a new plan has."""
        cohorts = self._file.policy.cohorts
        assert cohorts is not None
        return cohorts.class_size or _CLASS_SIZE * self._rules(table, is_first=True).k

    def release(self, con: sql.Connection, table: Table, applied: str, released: str) -> None:
        """Make the release from the labelled table and the last release."""
        try:
            with problems():
                self._release(con, table, applied, released)
        finally:
            con.execute(f"DETACH DATABASE IF EXISTS {_PREVIOUS}").fetchall()

    def _release(self, con: sql.Connection, table: Table, applied: str, released: str) -> None:
        ledger = self._ledger
        classes, sensitive = table.named("quasi_identifier"), table.named("sensitive")
        read = account_entries.read(con, ledger.account, applied, table.person or "", classes, sensitive)
        entry = ledger.entry(self._name, table, read, ledger.hash_people(read.names))
        last = self._last(con, sensitive)
        known = ledger.releases.known([entry])
        known = known.with_values({column: values.hashes for column, values in last.values.items()} if last else {})
        here = places(known.people, entry.people)
        people = self._people(con, table, read, entry, known, last)
        rules = self._rules(table, is_first=last is None)
        decided = decide(people, rules)
        names = _names(known, here, read.names)
        _write(con, table, applied, released, names, decided, last)
        numbers = self._numbers(people, decided, known, last)
        gone = np.setdiff1d(np.flatnonzero(decided.is_old), here)
        state = np.union1d(here, np.flatnonzero(decided.classes != ABSENT))
        hashes = np.frombuffer(known.people, f"V{HASH_SIZE}")
        ledger.cohorts = CohortState(
            {names[place]: hashes[place].tobytes() for place in gone},
            hashes[state].tobytes(),
            {name: of_people[state] for name, of_people in numbers.items()},
        )
        self.entry = _told(people, decided, numbers, rules.k)

    def _rules(self, table: Table, *, is_first: bool) -> Rules:
        cohorts = self._file.policy.cohorts
        assert cohorts is not None
        k = max(table.promises.joint_k or 2, table.promises.k or 2)
        asked = max(table.promises.joint_l or 1, int(np.ceil(table.promises.l or 1)))
        return Rules(k, asked, k if is_first else cohorts.size or 3 * k, cohorts.patience, cohorts.refresh)

    def _last(self, con: sql.Connection, sensitive: list[str]) -> _Last | None:
        """Find the last release of this policy's table, and refuse a file that is not that."""
        ours = (self._file.path.name, self._name)
        same = [one for one in self._ledger.releases.listed() if (one.policy, one.name) == ours]
        if not same:
            return None
        listed, path = same[-1], self._previous
        if path is None or not path.exists() or sources.hash_of([path]) != listed.sha256:
            raise FileProblem(
                f"{path}: cohorts continue release {listed.number} of the account, and this is not its file; put it "
                "back there, or name it with --previous."
            )
        place = sql.literal(str(path))
        rows = f"SELECT * FROM read_parquet({place})"
        if source_format(str(path)) == "duckdb":
            con.execute(f"ATTACH {place} AS {_PREVIOUS} (READ_ONLY)").fetchall()
            in_file = self._file.policy.tables[self._name].target.table or self._name
            rows = f"SELECT * FROM {_PREVIOUS}.main.{sql.name(in_file)}"
        owners = self._ledger.releases.owners(listed.number)
        values = account_entries.read_values(con, self._ledger.account, rows, sensitive)
        if sql.one(con, f"SELECT count(*) FROM ({rows})")[0] != len(owners):
            raise FileProblem(f"{path}: release {listed.number} of the account was not made with cohorts.")
        return _Last(listed, rows, owners, values)

    def _erased(self, con: sql.Connection, known: Known) -> Ints:
        """Return the numbers of people who must not be in the release."""
        path = self._file.policy.cohorts and self._file.policy.cohorts.erase
        if not path:
            return np.empty(0, np.int64)
        try:
            rows = con.execute(sources.files_query([self._file.place(path)])).fetchall()
        except duckdb.Error as error:
            raise FileProblem(f"{path}: the people to erase cannot be read ({sql.why(error)}).") from None
        hashes = hashed(self._ledger.account, "person", [str(row[0]) for row in rows], progress.check)
        return places(known.people, hashes)

    def _people(
        self, con: sql.Connection, table: Table, read: CodedTable, entry: Entry, known: Known, last: _Last | None
    ) -> People:
        """Return the people of the last release and of the table, by their numbers in the account."""
        releases, here = self._ledger.releases, places(known.people, entry.people)
        after = deque(releases.joint(known=known), maxlen=1)
        counts = after[0][1] if after else JointCounts.of_nobody(known.count)
        before, labels, waited = np.full(known.count, ABSENT), b"", np.zeros(known.count, np.int64)
        if last:
            before, labels = releases.classes(last.listed.number, known.count)
            waited = np.maximum(releases.state(last.listed.number, "waited", known.count), 0)
        every = account_entries.unknown_labels(self._ledger.account, len(table.named("quasi_identifier")))
        every = joined(every, labels + entry.labels)
        now = np.full(known.count, ABSENT)
        now[here] = places(every, entry.labels)[read.classes]
        widths = {column: known.width(column) for column in read.values}
        shown = (
            {column: _pairs(values, last.owners, known, column) for column, values in last.values.items()}
            if last
            else {}
        )
        return People(
            groups=counts.groups,
            before=np.append(places(every, labels), ABSENT)[before],
            now=now,
            is_seen=counts.is_seen,
            must_go=np.isin(np.arange(known.count), self._erased(con, known)),
            waited=waited,
            shown=shown,
            new={column: _pairs(values, here[read.who], known, column) for column, values in read.values.items()},
            left={column: left for column, left in counts.left.items() if column in widths},
            widths=widths,
        )

    def _numbers(self, people: People, decided: Decision, known: Known, last: _Last | None) -> dict[str, Ints]:
        """Return for how many releases each person has waited, and for how many their record is not true."""
        stale = np.zeros(known.count, np.int64)
        if last:
            stale = np.maximum(self._ledger.releases.state(last.listed.number, "stale", known.count), 0)
        waits = (decided.classes == ABSENT) & (people.now != ABSENT) & ~people.must_go
        return {"waited": np.where(waits, people.waited + 1, 0), "stale": np.where(decided.is_stale, stale + 1, 0)}


def cohorts_of(ledger: JobAccount | None, file: PolicyFile, name: str, previous: Path | None) -> Cohorts | None:
    """Return the cohorts of a table, if the policy has them; they continue the previous release."""
    return None if ledger is None or file.policy.cohorts is None else Cohorts(ledger, file, name, previous)


def _pairs(values: Values, owners: Ints, known: Known, column: str) -> Ints:
    """Return the different pairs of person and value, ascending."""
    return unique(owners * known.width(column) + places(known.values[column], values.hashes)[values.codes])


def _names(known: Known, here: Ints, names: list[str]) -> list[str]:
    """Return what the release calls each person; people who are gone get a name that nobody has."""
    mark = secrets.token_hex(8)
    found = [f"{mark} {number}" for number in range(known.count)]
    for place, name in zip(here, names, strict=True):
        found[place] = name
    return found


def _write(
    con: sql.Connection,
    table: Table,
    applied: str,
    released: str,
    names: list[str],
    decided: Decision,
    last: _Last | None,
) -> None:
    """Make the table of the release, in random order."""
    person, types = sql.name(table.person or ""), sql.columns(con, applied)
    is_in = (decided.classes != ABSENT) & ~decided.is_old
    how = np.where(decided.classes == POOL, _POOLED, _FRESH)
    chosen = np.flatnonzero(is_in)
    con.register("decided_rows", pa.table({"whose": [names[place] for place in chosen], "how": how[chosen]}))
    unknown = ", ".join(f"NULL::{types[c]} AS {sql.name(c)}" for c in table.named("quasi_identifier"))
    rows = f"FROM {applied} AS applied JOIN decided_rows ON applied.{person} = decided_rows.whose"
    parts = [
        f"SELECT applied.* {rows} WHERE how = '{_FRESH}'",
        f"SELECT applied.* REPLACE ({unknown}) {rows} WHERE how = '{_POOLED}'",
    ]
    if last:
        is_kept = decided.is_old[last.owners]
        owners = [names[place] if kept else None for place, kept in zip(last.owners, is_kept, strict=True)]
        con.register("kept_rows", pa.table({"whose": pa.array(owners, pa.string())}))
        others = [column for column in types if column != table.person]
        kept = ", ".join(f"file.{sql.name(column)}::{types[column]} AS {sql.name(column)}" for column in others)
        parts.append(
            f"SELECT {kept}, whose AS {person} FROM ({last.rows}) AS file POSITIONAL JOIN kept_rows "
            "WHERE whose IS NOT NULL"
        )
    try:
        con.execute(
            f"CREATE TABLE {released} AS SELECT * FROM ({' UNION ALL BY NAME '.join(parts)}) "
            "ORDER BY anon._random() ASC NULLS LAST"
        ).fetchall()
    finally:
        con.execute("DROP VIEW IF EXISTS decided_rows").fetchall()
        con.execute("DROP VIEW IF EXISTS kept_rows").fetchall()


def _told(people: People, decided: Decision, numbers: Mapping[str, Ints], k: int) -> CohortsEntry:
    """Return what the record tells."""
    waited, stale = (numbers[name][numbers[name] > 0] for name in ("waited", "stale"))
    width = int(max(people.now.max(initial=0), decided.classes.max(initial=0))) + 1
    true, shown = (np.bincount(c[c != ABSENT], minlength=width) for c in (people.now, decided.classes))
    chosen = (true >= k) & (np.arange(width) != POOL)
    errors = np.abs(shown - true)[chosen] / true[chosen]
    return {
        "people": int((people.now != ABSENT).sum()),
        "waiting": len(waited),
        "mean_wait": float(waited.mean()) if len(waited) else 0.0,
        "longest_wait": int(waited.max(initial=0)),
        "stale": len(stale),
        "mean_stale": float(stale.mean()) if len(stale) else 0.0,
        "longest_stale": int(stale.max(initial=0)),
        "pooled": int((decided.classes == POOL).sum()),
        "erased": int((people.must_go & (people.before != ABSENT)).sum()),
        "count_error": float(errors.mean()) if len(errors) else 0.0,
    }

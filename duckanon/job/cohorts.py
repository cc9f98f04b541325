"""A release in cohorts: the account decides who enters, leaves and moves; others keep their records.

Records of people who are gone, or wait to move, are copied from the last release: the account knows whose row is whose,
and keeps no value itself.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Mapping
from pathlib import Path

import duckdb
import numpy as np

from duckanon._bridge import sql
from duckanon._core.account.cohort_people import POOL, People, Rules
from duckanon._core.account.cohorts import Decision, decide
from duckanon._core.account.entries import Entry, Known, hashed, joined, places
from duckanon._core.account.groups import ABSENT, unique
from duckanon._core.account.joint import JointCounts
from duckanon._core.account.storage import HASH_SIZE
from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Ints
from duckanon._core.common.release_record import CohortsEntry
from duckanon.job import account_entries, readback, sources
from duckanon.job.account import CohortState, JobAccount, problems
from duckanon.job.account_entries import CodedTable, Values, labels_hash
from duckanon.job.coarser_labels import CoarserLabels, coarser_labels
from duckanon.job.cohort_rows import write
from duckanon.job.errors import FileProblem
from duckanon.job.last_cohorts import LastRelease, last_release
from duckanon.job.policy import Table
from duckanon.job.policy_file import PolicyFile

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
        con.execute(f"ALTER TABLE {original} ALTER {sql.name(table.person or '')} SET DATA TYPE VARCHAR").fetchall()

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
        classes, sensitive = table.named("quasi_identifier"), table.named("sensitive")
        read = account_entries.read(con, ledger.account, applied, table.person or "", classes, sensitive)
        entry = ledger.entry(self._name, table, read, ledger.hash_people(self._name, read.names))
        known = ledger.releases.known([*ledger.entries.values(), entry])
        known = known.with_values({column: values.hashes for column, values in last.values.items()} if last else {})
        here = places(known.people, entry.people)
        people = self._people(con, table, read, entry, known, labels, last)
        rules = self._rules(table, is_first=last is None)
        decided = decide(people, rules)
        names = _names(con, table, known, here, read.names, last)
        write(con, table, applied, released, names, decided, _levels(people, decided), labels, last)
        numbers = _numbers(people, decided)
        gone = np.setdiff1d(np.flatnonzero(decided.is_old), here)
        state = np.union1d(here, np.flatnonzero(decided.classes != ABSENT))
        hashes = np.frombuffer(known.people, f"V{HASH_SIZE}")
        ledger.cohorts[self._name] = CohortState(
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

    def _was_in(self, last: LastRelease | None, count: int) -> Bools:
        """Return who was in a release of this table."""
        found = np.zeros(count, np.bool_)
        for one in last.earlier if last else ():
            found |= self._ledger.releases.classes(one.number, count)[0] != ABSENT
        return found

    def _erased(self, con: sql.Connection, table: Table, known: Known) -> Ints:
        """Return the numbers of people who must not be in the release."""
        people = erased_people(con, self._file)
        names = self._ledger.released_names(con, table, people)
        return places(known.people, hashed(self._ledger.account, "person", names, progress.check))

    def _people(
        self,
        con: sql.Connection,
        table: Table,
        read: CodedTable,
        entry: Entry,
        known: Known,
        labels: CoarserLabels,
        last: LastRelease | None,
    ) -> People:
        """Return the people of the last release and of the table, by their numbers in the account."""
        ledger, here = self._ledger, places(known.people, entry.people)
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
        every = joined(labels_hash(ledger.account, [(None,) * len(labels.columns)]), before_labels + coarse)
        coarser = places(every, coarse).reshape(-1, len(labels.levels))
        now = np.full(known.count, ABSENT)
        now[here] = coarser[read.classes, 0]
        by_class = np.full((len(every) // HASH_SIZE, len(labels.levels)), POOL)
        by_class[coarser[:, 0]] = coarser
        shown = {} if last is None else last.values
        widths = {column: known.width(column) for column in read.values}
        return People(
            groups=counts.groups,
            before=np.append(places(every, before_labels), ABSENT)[before],
            now=now,
            is_seen=counts.is_seen,
            was_in=self._was_in(last, known.count),
            must_go=np.isin(np.arange(known.count), self._erased(con, table, known)),
            waited=waited,
            stale=stale,
            coarser=by_class,
            shown={} if last is None else {c: _pairs(values, last.owners, known, c) for c, values in shown.items()},
            new={column: _pairs(values, here[read.who], known, column) for column, values in read.values.items()},
            left={column: left for column, left in counts.left.items() if column in widths},
            widths=widths,
            paths={column: paths for column, paths in counts.paths.items() if column in widths},
        )


def erased_people(con: sql.Connection, file: PolicyFile) -> list[str]:
    """Return the people who must not be in a release, as the source names them."""
    path = file.policy.cohorts and file.policy.cohorts.erase
    if not path:
        return []
    try:
        rows = con.execute(sources.files_query([file.place(path)])).fetchall()
    except duckdb.Error as error:
        raise FileProblem(f"{path}: the people to erase cannot be read ({sql.why(error)}).") from None
    return [str(row[0]) for row in rows]


def cohorts_of(ledger: JobAccount | None, file: PolicyFile, name: str, previous: Path | None) -> Cohorts | None:
    """Return the cohorts of a table, if the policy has them; they continue the previous release."""
    return None if ledger is None or file.policy.cohorts is None else Cohorts(ledger, file, name, previous)


def _show_as_written(con: sql.Connection, name: str, table: Table, applied: str) -> None:
    """Replace texts by what the target shows of them, so that they can be compared with the last release's."""
    form = readback.shape(con, name, table, applied)
    changed = [
        f"{form.expressions[column]} AS {sql.name(column)}"
        for column in sql.columns(con, applied)
        if form.expressions.get(column) not in (None, sql.name(column))
    ]
    if changed:
        con.execute(
            f"CREATE OR REPLACE TABLE {applied} AS SELECT * REPLACE ({', '.join(changed)}) FROM {applied}"
        ).fetchall()


def _coarser_hashes(ledger: JobAccount, read: CodedTable, labels: CoarserLabels) -> bytes:
    """Return the keyed hashes of each class at each level, class by class."""
    found: dict[frozenset[account_entries.Labels], bytes] = {}
    hashes = []
    for rows in read.rows:
        progress.check()
        for level in range(len(labels.levels)):
            at_level = frozenset(labels.at(row, level) for row in rows)
            if at_level not in found:
                found[at_level] = labels_hash(ledger.account, at_level)
            hashes.append(found[at_level])
    return b"".join(hashes)


def _pairs(values: Values, owners: Ints, known: Known, column: str) -> Ints:
    """Return the different pairs of person and value, ascending."""
    return unique(owners * known.width(column) + places(known.values[column], values.hashes)[values.codes])


def _names(
    con: sql.Connection, table: Table, known: Known, here: Ints, names: list[str], last: LastRelease | None
) -> list[str]:
    """Return what the release calls each person.

    People who are gone have the pseudonym of the last release, or, where none is released, a name that nobody has.
    """
    mark = secrets.token_hex(8)
    found = [f"{mark} {number}" for number in range(known.count)]
    if last and table.columns[table.person or ""].is_pseudonym:
        rows = con.sql(f"SELECT {sql.name(table.person or '')}::VARCHAR AS whose FROM ({last.rows})").to_arrow_table()
        for place, name in zip(last.owners, rows["whose"].to_pylist(), strict=True):
            found[place] = name
    for place, name in zip(here, names, strict=True):
        found[place] = name
    return found


def _levels(people: People, decided: Decision) -> Ints:
    """Return of each person the level of their labels in the new release; 0 for people who keep their record."""
    levels = np.zeros(len(people.now), np.int64)
    is_coarse = (decided.classes != ABSENT) & ~decided.is_old & (decided.classes != people.now)
    rows = np.flatnonzero(is_coarse)
    levels[rows] = (people.coarser[people.now[rows]] == decided.classes[rows][:, None]).argmax(axis=1)
    return levels


def _numbers(people: People, decided: Decision) -> dict[str, Ints]:
    """Return for how many releases each person has waited, and for how many their record is not true."""
    waits = (decided.classes == ABSENT) & (people.now != ABSENT) & ~people.must_go
    return {"waited": np.where(waits, people.waited + 1, 0), "stale": np.where(decided.is_stale, people.stale + 1, 0)}


def _told(people: People, decided: Decision, numbers: Mapping[str, Ints], k: int) -> CohortsEntry:
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

"""The account of a job: what its release, together with all before it, leaves to who knows a person in each.

The entry is made between the decision to publish and the first rename (`outbox.Outbox.publish`): a run that is killed
before it has published nothing, one that is killed after it is completed by the next run.
"""

from __future__ import annotations

import tempfile
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from duckanon._bridge import sql
from duckanon._core.account.entries import Entry, Listed, hashed, joined, places
from duckanon._core.account.groups import ABSENT
from duckanon._core.account.joint import JointCounts
from duckanon._core.account.releases import Releases
from duckanon._core.account.storage import HASH_SIZE, Account, AccountError, is_missing
from duckanon._core.common import progress
from duckanon._core.common.amounts import counted
from duckanon._core.common.arrays import Ints
from duckanon._core.common.release_record import AccountEntry
from duckanon.job import account_entries, account_witnesses, keys, readback, warehouse
from duckanon.job.account_entries import CodedTable
from duckanon.job.errors import FileProblem
from duckanon.job.keys import Secret
from duckanon.job.places import Places
from duckanon.job.policy import Table, is_server
from duckanon.job.policy_file import PolicyFile
from duckanon.job.promises import Promise
from duckanon.job.table_result import TableResult


@dataclass(frozen=True)
class CohortState:
    """What cohorts remember of people.

    Attributes:
        aliases: The keyed hashes of people of whom the table has no name, by the names that the release has for them.
        people: The keyed hashes of people, those who wait among them.
        numbers: By name, a number of each of these people.
    """

    aliases: Mapping[str, bytes]
    people: bytes
    numbers: Mapping[str, Ints]


class JobAccount:
    """The account of one run."""

    def __init__(self, account: Account, file: PolicyFile, key: Secret | None) -> None:
        self.account = account
        self.releases = Releases(account)
        self.cohorts: dict[str, CohortState] = {}  # of tables in cohorts
        self.entries: dict[str, Entry] = {}  # of tables that this run has released so far
        self._folders: dict[str, str] = {}  # of tables whose earlier releases were made in another folder
        self._file = file
        self._key = key
        self._latest = self.releases.latest()

    def of_table(self, name: str, last: Callable[[], Collection[str]]) -> list[Listed]:
        """Return the earlier releases of a table of this policy, which may have been in another folder then.

        Args:
            name: The table.
            last: Returns the hashes by which the last release is recognized; asked only where the folder is another.
        """
        listed = self.releases.listed()
        if found := [one for one in listed if account_witnesses.is_of_table(self._file, name, one, listed)]:
            return found
        others = [one for one in listed if (one.policy, one.name) == (self._file.path.name, name)]
        hashes = last() if others else ()
        folder = next((one.folder for one in reversed(others) if one.sha256 in hashes), None)
        if folder is None:
            return []
        self._folders[name] = folder
        return [one for one in others if one.folder == folder]

    def has(self, mark: str) -> bool:
        """Tell whether a run that was killed had entered its release."""
        with problems():
            return self.releases.has(mark)

    def count(self, con: sql.Connection, made: Mapping[str, TableResult]) -> AccountEntry:
        """Count all releases together with those of this run, and add the joint promises to these."""
        with problems():
            if not self.cohorts:
                self._latest = self.releases.latest()
            for name, one in made.items():
                self.add(con, name, one)
            last = deque(self.releases.joint([*self.entries.values()]), maxlen=1)
            counts = last[0][1] if last else JointCounts.of_nobody(0)
            for one in made.values():
                self._refuse_unknown_values(one.table, counts)
            listed, lost = self.releases.listed(), sum(lost for _, lost, _ in self.releases.adoptions())
        count = (listed[-1].release if listed else 0) + bool(self.entries)
        for one in made.values():
            one.promises += list(_promised(one, counts, _Counted(count, len(self.entries), lost)))
        assert self._file.policy.account is not None
        told: AccountEntry = {
            "path": Path(self._file.policy.account.path).name,
            "id": self.account.identity or "",
            "releases": count,
            "people": int(counts.is_seen.sum()),
            "joint_k": counts.k,
        }
        return {**told, "lost": lost} if lost else told

    def commit(self, mark: str) -> None:
        """Enter what was counted."""
        with problems():
            self.releases.enter([*self.entries.values()], mark, self._latest)

    def add(self, con: sql.Connection, name: str, made: TableResult) -> None:
        """Remember a table that was released: what is decided after it counts it."""
        if made.table.method.makes_classes and name not in self.entries:
            with problems():
                self.entries[name] = self._entry(con, name, made)

    def entry(self, name: str, table: Table, read: CodedTable, people: bytes, sha256: str | None = None) -> Entry:
        """Return the entry of a table that was read, given the keyed hashes of its people."""
        is_pseudonym = table.columns[table.person or ""].is_pseudonym
        naming = self._key.reveal() if self._key and is_pseudonym else None
        values, counts = read.values_of_classes()
        return Entry(
            policy=self._file.path.name,
            name=name,
            sha256=sha256,
            naming=self.account.keyed("key of pseudonyms", naming),
            people=people,
            classes=read.classes,
            values=values,
            counts=counts,
            sets=read.sets_of_values() if is_pseudonym or self._has_cohorts_of_tables else {},
            labels=read.labels,
            folder=self._folders.get(name) or account_witnesses.folder_of(self._file),
        )

    @property
    def _has_cohorts_of_tables(self) -> bool:
        """Whether several tables are released in cohorts, for whose people one table tells of another."""
        return self._file.policy.cohorts is not None and len(self._file.policy.tables) > 1

    def released_names(self, con: sql.Connection, table: Table, names: Sequence[str]) -> list[str]:
        """Return what the release calls people: as they are, or by their pseudonyms."""
        if not (self._key and table.columns[table.person or ""].is_pseudonym):
            return list(names)
        given = {"names": list(names), "key": self._key.reveal()}
        query = "SELECT anon.pseudonym(name, $key) FROM (SELECT unnest($names::VARCHAR[]) AS name)"
        return [str(row[0]) for row in con.execute(query, given).fetchall()]

    def hash_people(self, table: str, names: Sequence[str]) -> bytes:
        """Return the keyed hashes of people; those whom the table does not name have theirs already."""
        aliases = self.cohorts[table].aliases if table in self.cohorts else {}
        if not aliases:
            return hashed(self.account, "person", names, progress.check)
        return b"".join(aliases.get(name) or self.account.keyed("person", name) for name in names)

    def _refuse_unknown_values(self, table: Table, counts: JointCounts) -> None:
        promises = table.promises
        is_followed = bool(table.person) and table.columns[table.person or ""].is_pseudonym
        for column in table.named("sensitive") if promises.joint_l is not None or promises.joint_t is not None else ():
            if is_followed and self.releases.cannot_follow(column.lower()):
                raise AccountError(
                    f"{self.account.path}: joint_l and joint_t of {column} cannot be counted, since an earlier version "
                    "of duckanon entered releases with pseudonyms without whose values they are; begin a new account."
                )
        for column in table.named("sensitive") if promises.joint_t is not None else ():
            left = counts.left.get(column.lower())
            if left is not None and left.whole is None:
                raise AccountError(
                    f"{self.account.path}: joint_t of {column} cannot be counted, since an earlier version of duckanon "
                    "entered releases without the people of each value; promise joint_l, or begin a new account."
                )

    def _entry(self, con: sql.Connection, name: str, made: TableResult) -> Entry:
        table, counted = made.table, made.tables.counted
        read = account_entries.read(
            con, self.account, counted, table.person or "", made.form.classes, table.named("sensitive")
        )
        entry = self.entry(name, table, read, self.hash_people(name, read.names), made.entry["output"]["sha256"])
        if name not in self.cohorts:
            return entry
        is_on_server = is_server(table.target.path) and entry.sha256 is not None
        order = warehouse.places_in_order(con, readback.written_rows(made.tables.released)) if is_on_server else None
        return _with_state(entry, self.cohorts[name], read.who if order is None else read.who[order])


def _with_state(entry: Entry, state: CohortState, owners: Ints) -> Entry:
    """Add to an entry whose row is whose, and the people who wait."""
    people = joined(entry.people, state.people)
    classes = np.full(len(people) // HASH_SIZE, ABSENT)
    classes[: len(entry.classes)] = entry.classes
    place = places(people, state.people)
    missing = len(classes) - len(entry.classes)
    sets = {column: np.append(of_people, np.full(missing, ABSENT)) for column, of_people in entry.sets.items()}
    numbers = {}
    for name, of_people in state.numbers.items():
        numbers[name] = np.zeros(len(classes), np.int64)
        numbers[name][place] = of_people
    return replace(entry, people=people, classes=classes, sets=sets, state=numbers, owners=owners)


@contextmanager
def opened(file: PolicyFile, where: Places, key: Secret | None, *, dry_run: bool) -> Iterator[JobAccount | None]:
    """Open the account of a policy, if it has one; a dry run makes no file.

    An account that lacks releases is refused before it is changed.
    """
    if file.policy.account is None:
        yield None
        return
    path = file.place(file.policy.account.path)
    secret = keys.read_of_account(file)
    assert secret is not None
    with ExitStack() as stack:
        with problems():
            if is_missing(path):
                account_witnesses.refuse_lacking(file, where, None, None)
                if dry_run:
                    path = Path(stack.enter_context(tempfile.TemporaryDirectory())) / path.name
            account = stack.enter_context(Account(path, secret.reveal(), create=True))
            found = JobAccount(account, file, key)
            account_witnesses.refuse_lacking(file, where, found.releases, account.identity)
        yield found


@contextmanager
def problems() -> Iterator[None]:
    """Turn what is wrong with an account into the job's errors."""
    try:
        yield
    except AccountError as error:
        raise FileProblem(str(error)) from None


@dataclass(frozen=True)
class _Counted:
    """The releases that were counted, the tables of the last one, and the releases that were lost before."""

    releases: int
    tables: int
    lost: int

    @property
    def words(self) -> str:
        """What was counted."""
        without = f", without {self.lost} that {'was' if self.lost == 1 else 'were'} lost" if self.lost else ""
        return f"Over all releases of the account ({self.releases}{without}),"

    @property
    def help(self) -> str:
        """What may help where too little is left."""
        several = "fewer tables of the same people, " if self.tables > 1 else ""
        seldom = "publishing less often, " if self.releases > 1 else ""
        return f"cohorts, coarser quasi-identifiers, {several}{seldom}or a smaller promise"


def _promised(made: TableResult, counts: JointCounts, all_releases: _Counted) -> Iterator[Promise]:
    promises, over, helpful = made.table.promises, all_releases.words, all_releases.help
    if promises.joint_k is not None:
        measured = counts.k or 0
        words = (
            f"{over} at least {measured} people share every list of classes."
            if measured >= promises.joint_k
            else f"{over} the rarest list of classes is that of "
            f"{counted(measured, 'person', 'people')}; {promises.joint_k} were promised."
        )
        yield Promise("joint_k", promises.joint_k, measured, measured >= promises.joint_k, words, helpful)
    for column in made.table.named("sensitive") if promises.joint_l is not None else ():
        asked, left = promises.joint_l or 0, counts.values_left(column.lower()) or 0
        remain = f"1 value of {column} remains" if left == 1 else f"{left} values of {column} remain"
        words = f"{over} at least {remain} for everybody."
        yield Promise(f"joint_l of {column}", asked, left, left >= asked, words, helpful)
    for column in made.table.named("sensitive") if promises.joint_t is not None else ():
        found = counts.distance(column.lower())
        distance = 1.0 if found is None else found  # nobody has a value: nothing is known to be near
        words = (
            f"{over} the values of {column} that remain for anybody are distributed as in the whole, up to a distance "
            f"of {distance:.3g}."
        )
        passed = distance <= (promises.joint_t or 0)
        yield Promise(f"joint_t of {column}", promises.joint_t or 0, distance, passed, words, helpful)

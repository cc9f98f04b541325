"""The account of a job: what its release, together with all before it, leaves to who knows a person in each.

The entry is made between the decision to publish and the first rename (`outbox.Outbox.publish`): a run that is killed
before it has published nothing, one that is killed after it is completed by the next run.

Tables read as an account keeps them: people, classes, labels and sensitive values as numbers and keyed hashes.

What is known of an account's releases elsewhere: by its counter, and by the last release's record and report.

An account that lacks a release which one of them knows was deleted, emptied, set back to an older copy, or is another
one, and would count joint promises wrongly. The job stops then, until a person decides (`duckanon account adopt`).
"""

from __future__ import annotations

import hashlib
import html
import json
import os
import re
import tempfile
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from duckanon._bridge import sql
from duckanon._core.account.entries import Entry, TableRelease, find_hashes, hash_values, join_hashes
from duckanon._core.account.joint import (
    ABSENT,
    JointCounts,
    classify_people,
    classify_rows,
    count_people_by_value,
)
from duckanon._core.account.releases import Releases
from duckanon._core.account.storage import HASH_SIZE, Account, AccountError, counter_path, is_missing, read_counter
from duckanon._core.common import progress
from duckanon._core.common.arrays import Ints, sort_distinct, spell_count
from duckanon._core.common.release_record import AccountEntry
from duckanon.job import keys, readback, warehouse
from duckanon.job.errors import FileProblem
from duckanon.job.keys import Secret
from duckanon.job.places import Places
from duckanon.job.policy import Table, is_server
from duckanon.job.policy_file import PolicyFile
from duckanon.job.promises import Promise
from duckanon.job.table_result import TableResult

Labels = tuple[str | None, ...]
"""The labels of a row, one of each quasi-identifier."""


@dataclass(frozen=True)
class Values:
    """A sensitive column: of each row the place of its value, and the keyed hashes of the different values."""

    codes: Ints
    hashes: bytes

    @property
    def width(self) -> int:
        """The number of values, at least 1."""
        return max(len(self.hashes) // HASH_SIZE, 1)


@dataclass(frozen=True)
class CodedTable:
    """A table whose rows belong to people.

    Attributes:
        names: The people, as the table names them.
        who: Of each row, the place of its person.
        classes: Of each person, the class: the set of the labels of their rows.
        rows: Of each class, the labels of its rows.
        labels: The keyed hash of each class's labels.
        values: The sensitive columns.
    """

    names: list[str]
    who: Ints
    classes: Ints
    rows: list[list[Labels]]
    labels: bytes
    values: Mapping[str, Values]

    def sets_of_values(self) -> dict[str, Ints]:
        """Return by column a number for the set of each person's values."""
        count = len(self.names)
        return {column: classify_people(self.who, values.codes, count) for column, values in self.values.items()}

    def values_of_classes(self) -> tuple[dict[str, tuple[Ints, bytes]], dict[str, Ints]]:
        """Return by column the different pairs of class and value's hash, and by column the people of each pair."""
        pairs: dict[str, tuple[Ints, bytes]] = {}
        counts: dict[str, Ints] = {}
        for column, values in self.values.items():
            pair_codes, counts[column] = count_people_by_value(self.who, self.classes, values.codes, values.width)
            hashes = np.frombuffer(values.hashes, f"V{HASH_SIZE}")
            pairs[column] = pair_codes // values.width, hashes[pair_codes % values.width].tobytes()
        return pairs, counts


def read_entry(
    con: sql.Connection, account: Account, rows: str, person: str, classes: Sequence[str], sensitive: Sequence[str]
) -> CodedTable:
    """Read a table; rows without a person are nobody's."""
    columns = {"whose": person}
    columns |= {f"class {place}": column for place, column in enumerate(classes)}
    columns |= {f"sensitive {place}": column for place, column in enumerate(sensitive)}
    selected = ", ".join(f"{sql.quote(column)}::VARCHAR AS {sql.quote(name)}" for name, column in columns.items())
    table = con.sql(f"SELECT {selected} FROM {rows} WHERE {sql.quote(person)} IS NOT NULL").to_arrow_table()
    who, names = _encode_column(table["whose"])
    of_rows = classify_rows(table.select([f"class {place}" for place in range(len(classes))]))
    of_people = classify_people(who, of_rows, len(names))
    label_rows = _label_rows(table, len(classes), of_rows, of_people[who])
    labels = b"".join(labels_hash(account, rows) for rows in label_rows)
    values = {}
    for place, column in enumerate(sensitive):
        codes, different = _encode_column(table[f"sensitive {place}"])
        values[column.lower()] = Values(codes, hash_values(account, kind_of(column), different, progress.check))
    return CodedTable([str(name) for name in names], who, of_people, label_rows, labels, values)


def read_values(con: sql.Connection, account: Account, rows: str, sensitive: Sequence[str]) -> dict[str, Values]:
    """Read the sensitive columns of a query's rows."""
    values = {}
    for column in sensitive:
        table = con.sql(f"SELECT {sql.quote(column)}::VARCHAR AS value FROM ({rows})").to_arrow_table()
        codes, different = _encode_column(table["value"])
        values[column.lower()] = Values(codes, hash_values(account, kind_of(column), different, progress.check))
    return values


def kind_of(column: str) -> str:
    """Return the kind by which values of a sensitive column are hashed: the same in all tables that have it."""
    return f"value of {column.lower()}"


def labels_hash(account: Account, rows: Collection[Labels]) -> bytes:
    """Return the keyed hash of a class of people, given the labels of their rows."""
    hashes = (account.hash_value("label", json.dumps(list(row))) for row in set(rows))
    return account.hash_value("labels", b"".join(sorted(hashes)))


def _encode_column(column: pa.ChunkedArray) -> tuple[Ints, list[str | None]]:
    coded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    return coded.indices.to_numpy(zero_copy_only=False).astype(np.int64), coded.dictionary.to_pylist()


def _label_rows(table: pa.Table, columns: int, of_rows: Ints, of_people: Ints) -> list[list[Labels]]:
    """Return the labels of the rows of each class of people, given both classes of each row."""
    width = int(of_rows.max(initial=0)) + 1
    firsts = np.zeros(width, np.int64)
    firsts[of_rows[::-1]] = np.arange(len(of_rows))[::-1]
    if not len(of_rows):
        return []
    texts = table.select([f"class {place}" for place in range(columns)]).take(pa.array(firsts)).to_pylist()
    pairs = sort_distinct(of_people * width + of_rows)
    starts = np.flatnonzero(np.diff(pairs // width, prepend=-1))
    return [[tuple(texts[place % width].values()) for place in members] for members in np.split(pairs, starts)[1:]]


_NUMBER = re.compile(r'<data value="([^"]*)" data-path="/(account/releases|tables/\d+/output/(?:sha256|people))">')
"""Numbers of a report that stand in the record, too."""


@dataclass(frozen=True)
class Witness:
    """What knows of releases that the account should have."""

    words: str  # what is wrong with an account that lacks them
    releases: int = 0  # how many it knows; 0 where it does not say
    account: str | None = None  # the identity of their account; earlier versions did not record it
    marks: tuple[str, ...] = ()  # the mark of the last of them, or the hashes of what was written

    @property
    def key(self) -> str:
        """What an adoption recognizes it by."""
        return hashlib.sha256(json.dumps([self.releases, self.account, sorted(self.marks)]).encode()).hexdigest()

    @property
    def is_of_releases(self) -> bool:
        """Whether it knows releases; else it is a counter that is missing, or damaged."""
        return bool(self.releases or self.marks)

    def count_lost(self, listed: Sequence[TableRelease]) -> int:
        """Return how many releases the account lacks at least."""
        return max(self.releases - (listed[-1].release if listed else 0), 1) if self.is_of_releases else 0


def lacking(file: PolicyFile, where: Places, releases: Releases | None, identity: str | None) -> list[Witness]:
    """Return what knows of releases that the account lacks; the account may not be there."""
    listed = releases.list_tables() if releases else []
    known = {one.mark for one in listed} | {one.sha256 for one in listed}
    assert file.policy.account is not None
    witnesses = []
    for witness in _witnesses(file, where, file.place(file.policy.account.path), listed):
        # an earlier version counted tables, and recorded no identity
        count = 0 if not listed else listed[-1].release if witness.account else len(listed)
        is_other = witness.account is not None and witness.account != identity
        has_all = not is_other and witness.releases <= count and known.issuperset(witness.marks)
        is_adopted = releases is not None and releases.has_adopted(witness.key)
        if not (witness.is_of_releases and (has_all or is_adopted)):
            witnesses.append(witness)
    return witnesses


def refuse_lacking(file: PolicyFile, where: Places, releases: Releases | None, identity: str | None) -> None:
    """Raise FileProblem where the account lacks a release that is known elsewhere."""
    if witnesses := lacking(file, where, releases, identity):
        assert file.policy.account is not None
        raise FileProblem(
            f"{file.place(file.policy.account.path)}: the account {witnesses[0].words}, so that joint promises would "
            "be counted without what is lost; restore the account and its counter from a backup, or let a person "
            f"decide with duckanon account adopt {file.path.name}."
        )


def is_of_table(file: PolicyFile, name: str, release: TableRelease, listed: Sequence[TableRelease]) -> bool:
    """Tell whether an entry of the account is of a policy's table.

    Entries of earlier versions do not say in which folder the policy is: they are of the first policy of their name
    that enters a release since.
    """
    ours, folder = (file.path.name, name), folder_of(file)
    folders = [entry.folder for entry in listed if (entry.policy, entry.name) == ours and entry.folder]
    is_own = release.folder == folder or (release.folder is None and folder in (folders or [folder])[:1])
    return (release.policy, release.name) == ours and is_own


def folder_of(file: PolicyFile) -> str:
    """Return the folder of a policy, from that of its account: both may move together."""
    assert file.policy.account is not None
    folders = (os.path.realpath(path.parent) for path in (file.path, file.place(file.policy.account.path)))
    folder, of_account = map(Path, folders)
    try:
        return Path(os.path.relpath(folder, of_account)).as_posix()
    except ValueError:  # another drive of Windows
        return folder.as_posix()


def _witnesses(file: PolicyFile, where: Places, account: Path, listed: Sequence[TableRelease]) -> Iterator[Witness]:
    counter = None
    try:
        counter = read_counter(account)
        if not (counter and counter.account) and any(one.folder for one in listed):
            name = counter_path(account).name
            yield Witness(f"has an empty counter {name}" if counter else f"has no counter {name} beside it any more")
    except AccountError:
        yield Witness(f"has a counter {counter_path(account).name} that cannot be read")
    if counter and counter.last:
        yield Witness(_words(counter.releases, "its counter"), counter.releases, counter.account, (counter.last,))
    is_ours = any(is_of_table(file, name, entry, listed) for name in file.policy.tables for entry in listed)
    if where.record.exists() and (witness := _of_record(where.record, is_ours)):
        yield witness
    if where.report and where.report.exists() and (witness := _of_report(where.report)):
        yield witness


def _of_record(path: Path, is_ours: bool) -> Witness | None:
    """Return what a record knows; one without an account only where the account has releases of this policy."""
    try:
        record: Any = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):  # something else
        return None
    if not isinstance(record, dict) or not isinstance(record.get("tables"), list):
        return None
    account, joint = record.get("account"), [_is_joint(table) for table in record["tables"]]
    if record.get("outcome") != "released" or not (is_ours or isinstance(account, dict) or any(joint)):
        return None
    outputs = [table.get("output") if isinstance(table, dict) else None for table in record["tables"]]
    hashes = [
        output.get("sha256")
        for output, is_joint in zip(outputs, joint, strict=True)
        # the people are counted of what was entered
        if isinstance(output, dict) and (is_joint or output.get("people") is not None)
    ]
    account = account if isinstance(account, dict) else {}
    releases = account.get("releases") if isinstance(account.get("releases"), int) else 0
    return _of_release(f"the record {path.name}", releases or 0, account.get("id"), hashes)


def _is_joint(table: Any) -> bool:
    """Tell whether the entry of a table has a joint promise, which only a release of an account has."""
    promises = table.get("promises") if isinstance(table, dict) else None
    names = (
        [str(one.get("name")) for one in promises or () if isinstance(one, dict)] if isinstance(promises, list) else []
    )
    return any(name.startswith("joint_") for name in names)


def _of_report(path: Path) -> Witness | None:
    try:
        numbers = {name: json.loads(html.unescape(value)) for value, name in _NUMBER.findall(path.read_text("utf-8"))}
        releases = int(numbers["account/releases"])
    except (OSError, ValueError, TypeError, KeyError):  # something else, or of a policy without an account
        return None
    hashes = [numbers.get(name.replace("people", "sha256")) for name in numbers if name.endswith("people")]
    return _of_release(f"the report {path.name}", releases, None, hashes)


def _of_release(name: str, releases: int, account: str | None, hashes: Sequence[str | None]) -> Witness | None:
    marks = tuple(str(one) for one in hashes if one)
    return Witness(_words(releases, name), releases, account, marks) if releases or marks else None


def _words(releases: int, name: str) -> str:
    return f"lacks {f'the last of {releases} releases' if releases > 1 else 'a release'} that {name} knows"


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

    def of_table(self, name: str, last: Callable[[], Collection[str]]) -> list[TableRelease]:
        """Return the earlier releases of a table of this policy, which may have been in another folder then.

        Args:
            name: The table.
            last: Returns the hashes by which the last release is recognized; asked only where the folder is another.
        """
        listed = self.releases.list_tables()
        if entries := [entry for entry in listed if is_of_table(self._file, name, entry, listed)]:
            return entries
        namesakes = [entry for entry in listed if (entry.policy, entry.name) == (self._file.path.name, name)]
        hashes = last() if namesakes else ()
        folder = next((entry.folder for entry in reversed(namesakes) if entry.sha256 in hashes), None)
        if folder is None:
            return []
        self._folders[name] = folder
        return [entry for entry in namesakes if entry.folder == folder]

    def has(self, mark: str) -> bool:
        """Tell whether a run that was killed had entered its release."""
        with problems():
            return self.releases.has(mark)

    def count(self, con: sql.Connection, results: Mapping[str, TableResult]) -> AccountEntry:
        """Count all releases together with those of this run, and add the joint promises to these."""
        with problems():
            if not self.cohorts:
                self._latest = self.releases.latest()
            for name, result in results.items():
                self.add(con, name, result)
            last = deque(self.releases.joint([*self.entries.values()]), maxlen=1)
            counts = last[0][1] if last else JointCounts.of_nobody(0)
            for result in results.values():
                self._refuse_unknown_values(result.table, counts)
            listed, lost = self.releases.list_tables(), sum(lost for _, lost, _ in self.releases.list_adoptions())
        count = (listed[-1].release if listed else 0) + bool(self.entries)
        for result in results.values():
            result.promises += list(_joint_promises(result, counts, CountedReleases(count, len(self.entries), lost)))
        assert self._file.policy.account is not None
        entry: AccountEntry = {
            "path": Path(self._file.policy.account.path).name,
            "id": self.account.identity or "",
            "releases": count,
            "people": int(counts.is_seen.sum()),
            "joint_k": counts.k,
        }
        return {**entry, "lost": lost} if lost else entry

    def commit(self, mark: str) -> None:
        """Enter what was counted."""
        with problems():
            self.releases.enter([*self.entries.values()], mark, self._latest)

    def add(self, con: sql.Connection, name: str, result: TableResult) -> None:
        """Remember a table that was released: what is decided after it counts it."""
        if result.table.method.makes_classes and name not in self.entries:
            with problems():
                self.entries[name] = self._entry(con, name, result)

    def entry(self, name: str, table: Table, read: CodedTable, people: bytes, sha256: str | None = None) -> Entry:
        """Return the entry of a table that was read, given the keyed hashes of its people."""
        is_pseudonym = table.columns[table.person or ""].is_pseudonym
        naming = self._key.reveal() if self._key and is_pseudonym else None
        values, counts = read.values_of_classes()
        return Entry(
            policy=self._file.path.name,
            name=name,
            sha256=sha256,
            naming=self.account.hash_value("key of pseudonyms", naming),
            people=people,
            classes=read.classes,
            values=values,
            counts=counts,
            sets=read.sets_of_values() if is_pseudonym or self._has_cohorts_of_tables else {},
            labels=read.labels,
            folder=self._folders.get(name) or folder_of(self._file),
        )

    @property
    def _has_cohorts_of_tables(self) -> bool:
        """Whether several tables are released in cohorts, for whose people one table tells of another."""
        return self._file.policy.cohorts is not None and len(self._file.policy.tables) > 1

    def names_in_release(self, con: sql.Connection, table: Table, names: Sequence[str]) -> list[str]:
        """Return what the release calls people: as they are, or by their pseudonyms."""
        if not (self._key and table.columns[table.person or ""].is_pseudonym):
            return list(names)
        parameters = {"names": list(names), "key": self._key.reveal()}
        query = "SELECT anon.pseudonym(name, $key) FROM (SELECT unnest($names::VARCHAR[]) AS name)"
        return [str(row[0]) for row in con.execute(query, parameters).fetchall()]

    def hash_people(self, table: str, names: Sequence[str]) -> bytes:
        """Return the keyed hashes of people; those whom the table does not name have theirs already."""
        aliases = self.cohorts[table].aliases if table in self.cohorts else {}
        if not aliases:
            return hash_values(self.account, "person", names, progress.check)
        return b"".join(aliases.get(name) or self.account.hash_value("person", name) for name in names)

    def _refuse_unknown_values(self, table: Table, counts: JointCounts) -> None:
        promises = table.promises
        is_followed = bool(table.person) and table.columns[table.person or ""].is_pseudonym
        for column in (
            table.with_roles("sensitive") if promises.joint_l is not None or promises.joint_t is not None else ()
        ):
            if is_followed and self.releases.cannot_follow(column.lower()):
                raise AccountError(
                    f"{self.account.path}: joint_l and joint_t of {column} cannot be counted, since an earlier version "
                    "of duckanon entered releases with pseudonyms without whose values they are; begin a new account."
                )
        for column in table.with_roles("sensitive") if promises.joint_t is not None else ():
            left = counts.left.get(column.lower())
            if left is not None and left.whole is None:
                raise AccountError(
                    f"{self.account.path}: joint_t of {column} cannot be counted, since an earlier version of duckanon "
                    "entered releases without the people of each value; promise joint_l, or begin a new account."
                )

    def _entry(self, con: sql.Connection, name: str, result: TableResult) -> Entry:
        table, counted = result.table, result.tables.counted
        read = read_entry(
            con, self.account, counted, table.person or "", result.form.classes, table.with_roles("sensitive")
        )
        entry = self.entry(name, table, read, self.hash_people(name, read.names), result.entry["output"]["sha256"])
        if name not in self.cohorts:
            return entry
        is_on_server = is_server(table.target.path) and entry.sha256 is not None
        order = (
            warehouse.places_in_order(con, readback.rows_on_server(result.tables.released)) if is_on_server else None
        )
        return _with_state(entry, self.cohorts[name], read.who if order is None else read.who[order])


def _with_state(entry: Entry, state: CohortState, owners: Ints) -> Entry:
    """Add to an entry whose row is whose, and the people who wait."""
    people = join_hashes(entry.people, state.people)
    classes = np.full(len(people) // HASH_SIZE, ABSENT)
    classes[: len(entry.classes)] = entry.classes
    place = find_hashes(people, state.people)
    missing = len(classes) - len(entry.classes)
    sets = {column: np.append(of_people, np.full(missing, ABSENT)) for column, of_people in entry.sets.items()}
    numbers = {}
    for name, of_people in state.numbers.items():
        numbers[name] = np.zeros(len(classes), np.int64)
        numbers[name][place] = of_people
    return replace(entry, people=people, classes=classes, sets=sets, state=numbers, owners=owners)


@contextmanager
def open_account(file: PolicyFile, where: Places, key: Secret | None, *, dry_run: bool) -> Iterator[JobAccount | None]:
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
                refuse_lacking(file, where, None, None)
                if dry_run:
                    path = Path(stack.enter_context(tempfile.TemporaryDirectory())) / path.name
            account = stack.enter_context(Account(path, secret.reveal(), create=True))
            ledger = JobAccount(account, file, key)
            refuse_lacking(file, where, ledger.releases, account.identity)
        yield ledger


@contextmanager
def problems() -> Iterator[None]:
    """Turn what is wrong with an account into the job's errors."""
    try:
        yield
    except AccountError as error:
        raise FileProblem(str(error)) from None


@dataclass(frozen=True)
class CountedReleases:
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


def _joint_promises(result: TableResult, counts: JointCounts, all_releases: CountedReleases) -> Iterator[Promise]:
    promises, over, helpful = result.table.promises, all_releases.words, all_releases.help
    if promises.joint_k is not None:
        measured = counts.k or 0
        words = (
            f"{over} at least {spell_count(measured, 'person shares', 'people share')} every list of classes."
            if measured >= promises.joint_k
            else f"{over} the rarest list of classes is that of "
            f"{spell_count(measured, 'person', 'people')}; {promises.joint_k} were promised."
        )
        yield Promise("joint_k", promises.joint_k, measured, measured >= promises.joint_k, words, helpful)
    for column in result.table.with_roles("sensitive") if promises.joint_l is not None else ():
        asked, left = promises.joint_l or 0, counts.count_values_left(column.lower()) or 0
        remain = f"1 value of {column} remains" if left == 1 else f"{left} values of {column} remain"
        words = f"{over} at least {remain} for everybody."
        yield Promise(f"joint_l of {column}", asked, left, left >= asked, words, helpful)
    for column in result.table.with_roles("sensitive") if promises.joint_t is not None else ():
        joint_t = counts.distance(column.lower())
        distance = 1.0 if joint_t is None else joint_t  # nobody has a value: nothing is known to be near
        words = (
            f"{over} the values of {column} that remain for anybody are distributed as in the whole, up to a distance "
            f"of {distance:.3g}."
        )
        passed = distance <= (promises.joint_t or 0)
        yield Promise(f"joint_t of {column}", promises.joint_t or 0, distance, passed, words, helpful)

"""The releases of an account: of each, the classes of its people and the sensitive values of its classes.

People and values are keyed hashes, classes are numbers. Numbers of people and values are their places in the order in
which the account met them, so a release takes four bytes a person before it is compressed.
"""

from __future__ import annotations

import secrets
import sqlite3
import zlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

import numpy as np

from duckanon._core.account.entries import Entry, KnownHashes, TableRelease, find_hashes
from duckanon._core.account.joint import ABSENT, JointCounts, PeopleOfRelease
from duckanon._core.account.storage import HASH_SIZE, Account, AccountError, update_counter
from duckanon._core.common import progress
from duckanon._core.common.arrays import Ints

_PART = "releases"
_MIGRATIONS = [
    """
    CREATE TABLE releases (
        number INTEGER PRIMARY KEY, made TEXT NOT NULL, policy TEXT NOT NULL, name TEXT NOT NULL, sha256 TEXT,
        mark TEXT NOT NULL, naming BLOB NOT NULL, people INTEGER NOT NULL, classes INTEGER NOT NULL);
    CREATE TABLE arrays (
        release INTEGER NOT NULL REFERENCES releases, name TEXT NOT NULL, part INTEGER NOT NULL, data BLOB NOT NULL,
        PRIMARY KEY (release, name, part)) WITHOUT ROWID
    """,
    """
    ALTER TABLE releases ADD COLUMN folder TEXT;
    CREATE TABLE adoptions (number INTEGER PRIMARY KEY, made TEXT NOT NULL, lost INTEGER NOT NULL, words TEXT NOT NULL);
    CREATE TABLE adopted (witness TEXT PRIMARY KEY, adoption INTEGER NOT NULL REFERENCES adoptions)
    """,
]
_PEOPLE, _CLASSES, _LABELS, _OWNERS = "people", "classes", "labels", "owners"
_VALUES, _PAIRS, _COUNTS, _SETS, _STATE = "values of ", "pairs of ", "counts of ", "sets of ", "state: "
_PIECE = 1 << 26
"""Bytes of an array that are kept in one row: SQLite takes at most a thousand million."""


class Releases:
    """The releases of an account, in the order in which they were entered."""

    def __init__(self, account: Account) -> None:
        account.prepare(_PART, _MIGRATIONS)
        self._account = account

    def list_tables(self) -> list[TableRelease]:
        """Return what is known of each table that was released; those of one run are one release."""
        rows = self._account.query(
            "SELECT number, dense_rank() OVER (ORDER BY first), made, policy, name, sha256, people, classes, folder, "
            "mark FROM (SELECT *, min(number) OVER (PARTITION BY mark) AS first FROM releases) ORDER BY number"
        )
        return [TableRelease(*row) for row in rows]

    def list_adoptions(self) -> list[tuple[str, int, str]]:
        """Return when a person went on with an account that had lost releases, how many, and what was known of them."""
        return self._account.query("SELECT made, lost, words FROM adoptions ORDER BY number")

    def has_adopted(self, witness: str) -> bool:
        """Tell whether a person went on in spite of what a record or a report knows."""
        return bool(self._account.query("SELECT 1 FROM adopted WHERE witness = ?", (witness,)))

    def adopt(self, witnesses: Sequence[str], lost: int, words: str) -> None:
        """Go on without releases that were lost: enter how many, and what knows of them."""
        with self._account.transaction() as con:
            moment = datetime.now(UTC).isoformat(timespec="seconds")
            cursor = con.execute("INSERT INTO adoptions VALUES (NULL, ?, ?, ?)", (moment, lost, words))
            for witness in witnesses:
                con.execute("INSERT OR IGNORE INTO adopted VALUES (?, ?)", (witness, cursor.lastrowid))
        self.count()

    def latest(self) -> int:
        """Return the number of the latest release, 0 before the first."""
        return self.list_tables()[-1].number if self.list_tables() else 0

    def has(self, mark: str) -> bool:
        """Tell whether releases with a mark were entered."""
        return bool(self._account.query("SELECT 1 FROM releases WHERE mark = ?", (mark,)))

    def joint(
        self, new: Sequence[Entry] = (), known: KnownHashes | None = None
    ) -> Iterator[tuple[TableRelease | Entry, JointCounts]]:
        """Yield the joint counts after each release, in the end after those that are not entered yet.

        Args:
            new: Releases to be counted after those of the account.
            known: People and values to count by; those of all releases if not given.
        """
        known = known or self.read_hashes(new)
        counts = JointCounts.of_nobody(known.count)
        widths = {column: known.width(column) for column in known.values}
        tables: list[TableRelease | Entry] = [*self.list_tables(), *new]
        for number, table in enumerate(tables):
            progress.advance(number / len(tables))
            if isinstance(table, Entry):
                release = known.number_release(table)
            else:
                release = self._read(table.number, counts, widths)
            counts = counts.after(release, widths)
            yield table, counts

    def enter(self, new: Sequence[Entry], mark: str, latest: int) -> None:
        """Enter releases, all or none of them.

        Args:
            new: The releases.
            mark: What the run that publishes them is recognized by.
            latest: The latest release when they were counted.

        Raises:
            AccountError: Another process entered a release since.
        """
        if self.latest() == latest and not any(table.folder for table in self.list_tables()):
            self.count()  # once there are entries of this version, a counter that is missing was lost
        with self._account.transaction() as con:
            if self.latest() != latest:
                raise AccountError(
                    f"{self._account.path}: another job entered a release while this one was counted; run it again."
                )
            known = KnownHashes(self._read_hashes(_PEOPLE), {})
            for number, entry in enumerate(new, latest + 1):
                self._check_naming(entry)
                known = KnownHashes(
                    known.people, {column: self._read_hashes(_VALUES + column) for column in entry.values}
                )
                self._insert(con, number, entry, known.with_entry(entry), known, mark)
                known = known.with_entry(entry)
        self.count()

    def count(self) -> None:
        """Write how many releases there are, and which is the last, into the counter beside the account."""
        with self._account.transaction():  # of two processes, the later one counts both
            last = next(reversed(self.list_tables()), None)
            known = {"releases": last.release if last else 0, "last": last.mark if last else None}
            update_counter(self._account.path, account=self._account.identity or "", **known)

    def state(self, number: int, name: str, people: int) -> Ints:
        """Return numbers about people that were entered with a release; `ABSENT` for other people."""
        return self._read_padded(number, _STATE + name, people)

    def classes(self, number: int, people: int) -> tuple[Ints, bytes]:
        """Return the classes of people in a release, and the keyed hash of each class's labels."""
        return self._classes(number, people), self._read_data(number, _LABELS)

    def owners(self, number: int) -> Ints:
        """Return the number of the person of each row that was written with a release."""
        return np.frombuffer(self._read_data(number, _OWNERS), "<i4").astype(np.int64)

    def forget(self, person: bytes, *, returns: bool = True) -> bool:
        """Replace the keyed hash of a person by random bytes; tell whether the account knew the person.

        Their classes stay: they are a list that others share, and others' candidates would be counted wrongly without.

        Args:
            person: The keyed hash of the person.
            returns: Whether somebody who is in the last release of a table may be in the next one.

        Raises:
            AccountError: The person is in the last release of a table, and would be somebody new in the next one.
        """
        with self._account.transaction() as con:
            everybody = self._read_hashes(_PEOPLE)
            (number,) = find_hashes(everybody, person)
            last = {(table.policy, table.folder, table.name): table for table in self.list_tables()}
            for table in last.values() if returns and number != ABSENT else ():
                if self._classes(table.number, len(everybody) // HASH_SIZE)[number] != ABSENT:
                    raise AccountError(
                        f"{self._account.path}: the person is in the last release of {table.policy_path}, table "
                        f"{table.name}, and the next one would count them as somebody new; release it without them "
                        "first, or add --never-again if no release of any policy will have them."
                    )
            rows = con.execute(
                "SELECT release, part, data FROM arrays WHERE name = ? ORDER BY release, part", (_PEOPLE,)
            ).fetchall()
            for release, part, data in rows:
                hashes = self._decompress([(data,)])
                (index,) = find_hashes(hashes, person)
                if index != ABSENT:
                    start = int(index) * HASH_SIZE
                    changed = hashes[:start] + secrets.token_bytes(HASH_SIZE) + hashes[start + HASH_SIZE :]
                    con.execute(
                        "UPDATE arrays SET data = ? WHERE release = ? AND name = ? AND part = ?",
                        (zlib.compress(changed, 1), release, _PEOPLE, part),
                    )
                    return True
        return False

    def _check_naming(self, entry: Entry) -> None:
        if self._account.query("SELECT 1 FROM releases WHERE naming <> ?", (entry.naming,)):
            raise AccountError(
                f"{self._account.path}: the people of this account are named otherwise; policies that share an account "
                "must release the person as it is, or with the same key of pseudonyms."
            )

    def _insert(
        self, con: sqlite3.Connection, number: int, entry: Entry, known: KnownHashes, before: KnownHashes, mark: str
    ) -> None:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        present, classes = int((entry.classes != ABSENT).sum()), int(entry.classes.max(initial=ABSENT)) + 1
        con.execute(
            "INSERT INTO releases VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (number, now, entry.policy, entry.name, entry.sha256, mark, entry.naming, present, classes, entry.folder),
        )
        release = known.number_release(entry)
        arrays = {_PEOPLE: known.people[len(before.people) :], _CLASSES: _write_numbers(release.classes)}
        for column in entry.values:
            arrays[_VALUES + column] = known.values[column][len(before.values[column]) :]
            width = max(len(known.values[column]) // HASH_SIZE, 1)
            pairs = release.values[column]
            arrays[_PAIRS + column] = _write_numbers(np.concatenate([pairs // width, pairs % width]))
        arrays |= {_COUNTS + column: _write_numbers(counts) for column, counts in release.counts.items()}
        arrays |= {_SETS + column: _write_numbers(sets) for column, sets in release.sets.items()}
        arrays |= {
            _STATE + name: _write_numbers(known.spread_over_people(entry, numbers))
            for name, numbers in entry.state.items()
        }
        arrays[_LABELS] = entry.labels
        if entry.owners is not None:
            arrays[_OWNERS] = _write_numbers(find_hashes(known.people, entry.people)[entry.owners])
        for name, data in arrays.items():
            for part, start in enumerate(range(0, len(data), _PIECE)):
                piece = zlib.compress(data[start : start + _PIECE], 1)
                con.execute("INSERT INTO arrays VALUES (?, ?, ?, ?)", (number, name, part, piece))

    def read_hashes(self, new: Sequence[Entry] = ()) -> KnownHashes:
        """Return the people and values of all releases, with those of releases that are not entered yet."""
        rows = self._account.query("SELECT DISTINCT name FROM arrays WHERE name LIKE ? || '%'", (_VALUES,))
        columns = [str(name).removeprefix(_VALUES) for (name,) in rows]
        known = KnownHashes(
            self._read_hashes(_PEOPLE), {column: self._read_hashes(_VALUES + column) for column in columns}
        )
        last = self._read_numbers(self.latest(), _CLASSES)
        if last is not None and len(last) != known.count:  # the places of people would be those of others
            raise self._account.damage_error()
        for entry in new:
            self._check_naming(entry)
            known = known.with_entry(entry)
        return known

    def _read(self, number: int, counts: JointCounts, widths: Mapping[str, int]) -> PeopleOfRelease:
        values: dict[str, Ints] = {}
        of_values: dict[str, Ints] = {}
        sets: dict[str, Ints] = {}
        for column, width in widths.items():
            numbers = self._read_numbers(number, _PAIRS + column)
            if numbers is not None:
                half = len(numbers) // 2
                values[column] = numbers[:half] * width + numbers[half:]  # ascending by class, then value: any width
                people = self._read_numbers(number, _COUNTS + column)  # not there where an earlier version entered them
                of_values |= {} if people is None else {column: people}
                if self._has(number, _SETS + column):
                    sets[column] = self._read_padded(number, _SETS + column, len(counts.groups))
        return PeopleOfRelease(self._classes(number, len(counts.groups)), values, of_values, sets)

    def cannot_follow(self, column: str) -> bool:
        """Tell whether a release has values of a column, but not whose they are."""
        counts = [
            self._account.query("SELECT count(DISTINCT release) FROM arrays WHERE name = ?", (prefix + column,))[0][0]
            for prefix in (_PAIRS, _SETS)
        ]
        return bool(counts[0] > counts[1])

    def _has(self, number: int, name: str) -> bool:
        return bool(self._account.query("SELECT 1 FROM arrays WHERE release = ? AND name = ?", (number, name)))

    def _classes(self, number: int, people: int) -> Ints:
        """Return the classes of people in a release, as many of whom are in it as were entered."""
        classes = self._read_padded(number, _CLASSES, people)
        ((entered,),) = self._account.query("SELECT people FROM releases WHERE number = ?", (number,))
        if np.count_nonzero(classes != ABSENT) != entered:
            raise self._account.damage_error()
        return classes

    def _read_padded(self, number: int, name: str, people: int) -> Ints:
        numbers = self._read_numbers(number, name)
        if numbers is not None and len(numbers) > people:
            raise self._account.damage_error()
        padded = np.full(people, ABSENT, np.int64)
        if numbers is not None:
            padded[: len(numbers)] = numbers
        return padded

    def _read_numbers(self, number: int, name: str) -> Ints | None:
        data = self._read_data(number, name)
        return np.frombuffer(data, "<i4").astype(np.int64) if data else None

    def _read_data(self, number: int, name: str) -> bytes:
        rows = self._account.query(
            "SELECT data FROM arrays WHERE release = ? AND name = ? ORDER BY part", (number, name)
        )
        return self._decompress(rows)

    def _read_hashes(self, name: str) -> bytes:
        rows = self._account.query("SELECT data FROM arrays WHERE name = ? ORDER BY release, part", (name,))
        return self._decompress(rows)

    def _decompress(self, rows: Sequence[tuple[bytes]]) -> bytes:
        try:
            return b"".join(zlib.decompress(row[0]) for row in rows)
        except zlib.error:
            raise self._account.damage_error() from None


def _write_numbers(numbers: Ints) -> bytes:
    return numbers.astype("<i4").tobytes()

"""The releases of an account: of each, the classes of its people and the sensitive values of its classes.

People and values are keyed hashes, classes are numbers. Numbers of people and values are their places in the order in
which the account met them, so a release takes four bytes a person before it is compressed.
"""

from __future__ import annotations

import secrets
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon._core.account.joint import ABSENT, JointCounts, PeopleOfRelease
from duckanon._core.account.storage import HASH_SIZE, Account, AccountError
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
    """
]
_PEOPLE, _CLASSES, _VALUES, _PAIRS = "people", "classes", "values of ", "pairs of "
_PIECE = 1 << 26
"""Bytes of an array that are kept in one row: SQLite takes at most a thousand million."""


@dataclass(frozen=True)
class Entry:
    """A release to be entered.

    Attributes:
        policy, name, sha256: The policy's file, the table's name and the hash of what was written.
        naming: The keyed hash of what names people: accounts cannot count people under two names.
        people: The keyed hashes of the different people, one after the other.
        classes: The class of each of these people, from 0.
        values: By sensitive column, the different pairs: the class of each, and the keyed hashes of the values.
        state: Further numbers about each person, by name; `ABSENT` for people of other releases.
    """

    policy: str
    name: str
    sha256: str | None
    naming: bytes
    people: bytes
    classes: Ints
    values: Mapping[str, tuple[Ints, bytes]] = field(default_factory=dict)
    state: Mapping[str, Ints] = field(default_factory=dict)


@dataclass(frozen=True)
class Listed:
    """A release of the account, as it is shown."""

    number: int
    made: str
    policy: str
    name: str
    sha256: str | None
    people: int
    classes: int


class Releases:
    """The releases of an account, in the order in which they were entered."""

    def __init__(self, account: Account) -> None:
        account.prepare(_PART, _MIGRATIONS)
        self._account = account

    def listed(self) -> list[Listed]:
        """Return what is known of each release."""
        rows = self._account.query(
            "SELECT number, made, policy, name, sha256, people, classes FROM releases ORDER BY number"
        )
        return [Listed(*row) for row in rows]

    def latest(self) -> int:
        """Return the number of the latest release, 0 before the first."""
        return self.listed()[-1].number if self.listed() else 0

    def has(self, mark: str) -> bool:
        """Tell whether releases with a mark were entered."""
        return bool(self._account.query("SELECT 1 FROM releases WHERE mark = ?", (mark,)))

    def joint(self, new: Sequence[Entry] = ()) -> Iterator[tuple[Listed | Entry, JointCounts]]:
        """Yield the joint counts after each release, in the end after those that are not entered yet.

        Args:
            new: Releases to be counted after those of the account.
        """
        known = self._known(new)
        counts = JointCounts.of_nobody(len(known.people) // HASH_SIZE)
        widths = {column: max(len(hashes) // HASH_SIZE, 1) for column, hashes in known.values.items()}
        found: list[Listed | Entry] = [*self.listed(), *new]
        for place, one in enumerate(found):
            progress.at(place / len(found))
            release = known.read(one) if isinstance(one, Entry) else self._read(one.number, counts, widths)
            counts = counts.after(release, widths)
            yield one, counts

    def enter(self, new: Sequence[Entry], mark: str, latest: int) -> None:
        """Enter releases, all or none of them.

        Args:
            new: The releases.
            mark: What the run that publishes them is recognized by.
            latest: The latest release when they were counted.

        Raises:
            AccountError: Another process entered a release since.
        """
        with self._account.transaction() as con:
            if self.latest() != latest:
                raise AccountError(
                    f"{self._account.path}: another job entered a release while this one was counted; run it again."
                )
            known = _Known(self._hashes(_PEOPLE), {})
            for number, entry in enumerate(new, latest + 1):
                self._check_naming(entry)
                known = _Known(known.people, {column: self._hashes(_VALUES + column) for column in entry.values})
                self._insert(con, number, entry, known.with_entry(entry), known, mark)
                known = known.with_entry(entry)

    def state(self, number: int, name: str) -> Ints:
        """Return numbers about people that were entered with a release, for each person known by now."""
        return self._padded(number, name, len(self._hashes(_PEOPLE)) // HASH_SIZE)

    def places(self, people: bytes) -> Ints:
        """Return the places of people, given by their keyed hashes; `ABSENT` where the account does not know them."""
        return _places(self._hashes(_PEOPLE), people)

    def forget(self, person: bytes) -> bool:
        """Replace the keyed hash of a person by random bytes; tell whether the account knew the person.

        Their classes stay: they are a list that others share, and others' candidates would be counted wrongly without.
        """
        with self._account.transaction() as con:
            rows = con.execute(
                "SELECT release, part, data FROM arrays WHERE name = ? ORDER BY release, part", (_PEOPLE,)
            ).fetchall()
            for release, part, data in rows:
                hashes = zlib.decompress(data)
                (place,) = _places(hashes, person)
                if place != ABSENT:
                    start = int(place) * HASH_SIZE
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
        self, con: sqlite3.Connection, number: int, entry: Entry, known: _Known, before: _Known, mark: str
    ) -> None:
        made = datetime.now(UTC).isoformat(timespec="seconds")
        classes = int(entry.classes.max(initial=ABSENT)) + 1
        con.execute(
            "INSERT INTO releases VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (number, made, entry.policy, entry.name, entry.sha256, mark, entry.naming, len(entry.classes), classes),
        )
        release = known.read(entry)
        arrays = {_PEOPLE: known.people[len(before.people) :], _CLASSES: _bytes(release.classes)}
        for column in entry.values:
            arrays[_VALUES + column] = known.values[column][len(before.values[column]) :]
            width = max(len(known.values[column]) // HASH_SIZE, 1)
            pairs = release.values[column]
            arrays[_PAIRS + column] = _bytes(np.concatenate([pairs // width, pairs % width]))
        for name, numbers in entry.state.items():
            arrays[name] = _bytes(known.placed(entry, numbers))
        for name, data in arrays.items():
            for part, start in enumerate(range(0, len(data), _PIECE)):
                piece = zlib.compress(data[start : start + _PIECE], 1)
                con.execute("INSERT INTO arrays VALUES (?, ?, ?, ?)", (number, name, part, piece))

    def _known(self, new: Sequence[Entry]) -> _Known:
        rows = self._account.query("SELECT DISTINCT name FROM arrays WHERE name LIKE ? || '%'", (_VALUES,))
        columns = [str(name).removeprefix(_VALUES) for (name,) in rows]
        known = _Known(self._hashes(_PEOPLE), {column: self._hashes(_VALUES + column) for column in columns})
        for entry in new:
            self._check_naming(entry)
            known = known.with_entry(entry)
        return known

    def _read(self, number: int, counts: JointCounts, widths: Mapping[str, int]) -> PeopleOfRelease:
        values = {}
        for column, width in widths.items():
            numbers = self._numbers(number, _PAIRS + column)
            if numbers is not None:
                half = len(numbers) // 2
                values[column] = np.sort(numbers[:half] * width + numbers[half:])
        return PeopleOfRelease(self._padded(number, _CLASSES, len(counts.groups)), values)

    def _padded(self, number: int, name: str, people: int) -> Ints:
        numbers = self._numbers(number, name)
        padded = np.full(people, ABSENT, np.int64)
        if numbers is not None:
            padded[: len(numbers)] = numbers
        return padded

    def _numbers(self, number: int, name: str) -> Ints | None:
        rows = self._account.query(
            "SELECT data FROM arrays WHERE release = ? AND name = ? ORDER BY part", (number, name)
        )
        data = b"".join(zlib.decompress(row[0]) for row in rows)
        return np.frombuffer(data, "<i4").astype(np.int64) if rows else None

    def _hashes(self, name: str) -> bytes:
        rows = self._account.query("SELECT data FROM arrays WHERE name = ? ORDER BY release, part", (name,))
        return b"".join(zlib.decompress(row[0]) for row in rows)


@dataclass(frozen=True)
class _Known:
    """The hashes of the people, and by sensitive column of the values, in the order of their numbers."""

    people: bytes
    values: Mapping[str, bytes]

    def with_entry(self, entry: Entry) -> _Known:
        """Return the hashes with those of a release that are new."""
        values = {column: _joined(self.values.get(column, b""), hashes) for column, (_, hashes) in entry.values.items()}
        return _Known(_joined(self.people, entry.people), {**self.values, **values})

    def placed(self, entry: Entry, numbers: Ints) -> Ints:
        """Return numbers about the people of a release for all people."""
        placed = np.full(len(self.people) // HASH_SIZE, ABSENT, np.int64)
        placed[_places(self.people, entry.people)] = numbers
        return placed

    def read(self, entry: Entry) -> PeopleOfRelease:
        """Return a release by the numbers of its people and values."""
        values = {}
        for column, (classes, hashes) in entry.values.items():
            known = self.values[column]
            values[column] = np.sort(classes * max(len(known) // HASH_SIZE, 1) + _places(known, hashes))
        return PeopleOfRelease(self.placed(entry, entry.classes), values)


def _array(hashes: bytes) -> pa.Array:
    return pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(HASH_SIZE), len(hashes) // HASH_SIZE, [None, pa.py_buffer(hashes)]
    )


def _places(known: bytes, hashes: bytes) -> Ints:
    """Return the place of each hash among those known, `ABSENT` where it is not."""
    found = pc.index_in(_array(hashes), value_set=_array(known))
    return np.asarray(found.fill_null(ABSENT).to_numpy(zero_copy_only=False)).astype(np.int64)


def _joined(known: bytes, hashes: bytes) -> bytes:
    """Return hashes with the new ones after them, each once."""
    new = pc.unique(_array(hashes).filter(pa.array(_places(known, hashes) == ABSENT)))
    return known + b"".join(new.to_pylist())


def _bytes(numbers: Ints) -> bytes:
    return numbers.astype("<i4").tobytes()


def hashed(account: Account, kind: str, values: Sequence[str | None], check: Callable[[], None]) -> bytes:
    """Return the keyed hashes of values, one after the other."""
    pieces = []
    for start in range(0, len(values), 100_000):
        check()
        pieces.append(b"".join(account.keyed(kind, value) for value in values[start : start + 100_000]))
    return b"".join(pieces)

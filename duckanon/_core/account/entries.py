"""Releases as an account keeps them: keyed hashes of people and values, and the numbers that stand for them.

The number of a person or value is the index of its hash among all that the account met, in the order in which it met
them. An entry is a release on its way into the account; it becomes numbers when the hashes that are new are appended.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon._core.account.joint import ABSENT, PeopleOfRelease
from duckanon._core.account.storage import HASH_SIZE, Account
from duckanon._core.common.arrays import Ints


@dataclass(frozen=True)
class Entry:
    """A release to be entered.

    Attributes:
        policy, name, sha256: The policy's file, the table's name and the hash of what was written.
        naming: The keyed hash of what names people: accounts cannot count people under two names.
        people: The keyed hashes of the different people, one after the other.
        classes: The class of each of these people, from 0; `ABSENT` for people who are known, but not in the release.
        values: By sensitive column, the different pairs: the class of each, and the keyed hashes of the values.
        counts: By sensitive column, the people of each of these pairs.
        sets: By sensitive column, a number for the set of each person's values, where a pseudonym is released.
        labels: The keyed hash of the labels of each class, by which classes of other releases are recognized.
        state: Further numbers about each person, by name; `ABSENT` for people of other releases.
        owners: Of each row of what was written, the index of its person among `people`.
        folder: The folder of the policy, from that of the account: two policies may have one name.
    """

    policy: str
    name: str
    sha256: str | None
    naming: bytes
    people: bytes
    classes: Ints
    values: Mapping[str, tuple[Ints, bytes]] = field(default_factory=dict)
    counts: Mapping[str, Ints] = field(default_factory=dict)
    sets: Mapping[str, Ints] = field(default_factory=dict)
    labels: bytes = b""
    state: Mapping[str, Ints] = field(default_factory=dict)
    owners: Ints | None = None
    folder: str = "."


@dataclass(frozen=True)
class TableRelease:
    """A table that was released, as it is shown.

    Attributes:
        number: The number of the table among all that were released.
        release: The number of the release, which may have several tables.
        folder: The folder of the policy; None where an earlier version entered the table.
        mark: What the run is recognized by: the same for all tables of a release.
    """

    number: int
    release: int
    moment: str
    policy: str
    name: str
    sha256: str | None
    people: int
    classes: int
    folder: str | None
    mark: str

    @property
    def policy_path(self) -> str:
        """The policy as messages call it: with its folder, unless that is the account's."""
        return self.policy if self.folder in (None, ".") else f"{self.folder}/{self.policy}"


@dataclass(frozen=True)
class KnownHashes:
    """The hashes of the people, and by sensitive column of the values, in the order of their numbers."""

    people: bytes
    values: Mapping[str, bytes]

    @property
    def count(self) -> int:
        """The number of people."""
        return len(self.people) // HASH_SIZE

    def width(self, column: str) -> int:
        """Return the number of values of a sensitive column, at least 1."""
        return max(len(self.values.get(column, b"")) // HASH_SIZE, 1)

    def with_values(self, values: Mapping[str, bytes]) -> KnownHashes:
        """Return the hashes with those of further values."""
        both = {column: join_hashes(self.values.get(column, b""), hashes) for column, hashes in values.items()}
        return KnownHashes(self.people, {**self.values, **both})

    def with_entry(self, entry: Entry) -> KnownHashes:
        """Return the hashes with those of a release that are new."""
        known = KnownHashes(join_hashes(self.people, entry.people), self.values)
        return known.with_values({column: hashes for column, (_, hashes) in entry.values.items()})

    def spread_over_people(self, entry: Entry, numbers: Ints) -> Ints:
        """Return numbers about the people of a release for all people."""
        spread = np.full(len(self.people) // HASH_SIZE, ABSENT, np.int64)
        spread[find_hashes(self.people, entry.people)] = numbers
        return spread

    def number_release(self, entry: Entry) -> PeopleOfRelease:
        """Return a release by the numbers of its people and values."""
        values: dict[str, Ints] = {}
        counts: dict[str, Ints] = {}
        for column, (classes, hashes) in entry.values.items():
            pairs = classes * self.width(column) + find_hashes(self.values[column], hashes)
            order = np.argsort(pairs, kind="stable")
            values[column] = pairs[order]
            if column in entry.counts:
                counts[column] = entry.counts[column][order]
        sets = {column: self.spread_over_people(entry, numbers) for column, numbers in entry.sets.items()}
        return PeopleOfRelease(self.spread_over_people(entry, entry.classes), values, counts, sets)


def _view_hashes(hashes: bytes) -> pa.Array:
    return pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(HASH_SIZE), len(hashes) // HASH_SIZE, [None, pa.py_buffer(hashes)]
    )


def find_hashes(known: bytes, hashes: bytes) -> Ints:
    """Return the index of each hash among those known, `ABSENT` where it is not."""
    indexes = pc.index_in(_view_hashes(hashes), value_set=_view_hashes(known))
    return np.asarray(indexes.fill_null(ABSENT).to_numpy(zero_copy_only=False)).astype(np.int64)


def join_hashes(known: bytes, hashes: bytes) -> bytes:
    """Return hashes with the new ones after them, each once."""
    new = pc.unique(_view_hashes(hashes).filter(pa.array(find_hashes(known, hashes) == ABSENT)))
    return known + b"".join(new.to_pylist())


def hash_values(account: Account, kind: str, values: Sequence[str | None], check: Callable[[], None]) -> bytes:
    """Return the keyed hashes of values, one after the other."""
    pieces = []
    for start in range(0, len(values), 100_000):
        check()
        pieces.append(b"".join(account.hash_value(kind, value) for value in values[start : start + 100_000]))
    return b"".join(pieces)

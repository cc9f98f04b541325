"""Releases as an account keeps them: keyed hashes of people and values, and the numbers that stand for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon._core.account.groups import ABSENT
from duckanon._core.account.joint import PeopleOfRelease
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
        owners: Of each row of what was written, the place of its person among `people`.
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
class Listed:
    """A table that was released, as it is shown.

    Attributes:
        number: The number of the table among all that were released.
        release: The number of the release, which may have several tables.
        folder: The folder of the policy; None where an earlier version entered the table.
        mark: What the run is recognized by: the same for all tables of a release.
    """

    number: int
    release: int
    made: str
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
class Known:
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

    def with_values(self, values: Mapping[str, bytes]) -> Known:
        """Return the hashes with those of further values."""
        both = {column: joined(self.values.get(column, b""), hashes) for column, hashes in values.items()}
        return Known(self.people, {**self.values, **both})

    def with_entry(self, entry: Entry) -> Known:
        """Return the hashes with those of a release that are new."""
        known = Known(joined(self.people, entry.people), self.values)
        return known.with_values({column: hashes for column, (_, hashes) in entry.values.items()})

    def placed(self, entry: Entry, numbers: Ints) -> Ints:
        """Return numbers about the people of a release for all people."""
        placed = np.full(len(self.people) // HASH_SIZE, ABSENT, np.int64)
        placed[places(self.people, entry.people)] = numbers
        return placed

    def read(self, entry: Entry) -> PeopleOfRelease:
        """Return a release by the numbers of its people and values."""
        values: dict[str, Ints] = {}
        counts: dict[str, Ints] = {}
        for column, (classes, hashes) in entry.values.items():
            pairs = classes * self.width(column) + places(self.values[column], hashes)
            order = np.argsort(pairs, kind="stable")
            values[column] = pairs[order]
            if column in entry.counts:
                counts[column] = entry.counts[column][order]
        sets = {column: self.placed(entry, numbers) for column, numbers in entry.sets.items()}
        return PeopleOfRelease(self.placed(entry, entry.classes), values, counts, sets)


def _array(hashes: bytes) -> pa.Array:
    return pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(HASH_SIZE), len(hashes) // HASH_SIZE, [None, pa.py_buffer(hashes)]
    )


def places(known: bytes, hashes: bytes) -> Ints:
    """Return the place of each hash among those known, `ABSENT` where it is not."""
    found = pc.index_in(_array(hashes), value_set=_array(known))
    return np.asarray(found.fill_null(ABSENT).to_numpy(zero_copy_only=False)).astype(np.int64)


def joined(known: bytes, hashes: bytes) -> bytes:
    """Return hashes with the new ones after them, each once."""
    new = pc.unique(_array(hashes).filter(pa.array(places(known, hashes) == ABSENT)))
    return known + b"".join(new.to_pylist())


def hashed(account: Account, kind: str, values: Sequence[str | None], check: Callable[[], None]) -> bytes:
    """Return the keyed hashes of values, one after the other."""
    pieces = []
    for start in range(0, len(values), 100_000):
        check()
        pieces.append(b"".join(account.keyed(kind, value) for value in values[start : start + 100_000]))
    return b"".join(pieces)

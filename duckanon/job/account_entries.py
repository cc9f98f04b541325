"""Tables read as an account keeps them: people, classes, labels and sensitive values as numbers and keyed hashes."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from duckanon._bridge import sql
from duckanon._core.account.entries import hashed
from duckanon._core.account.groups import unique
from duckanon._core.account.joint import classes_of_people, people_by_value, row_classes
from duckanon._core.account.storage import HASH_SIZE, Account
from duckanon._core.common import progress
from duckanon._core.common.arrays import Ints

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
        return {column: classes_of_people(self.who, values.codes, count) for column, values in self.values.items()}

    def values_of_classes(self) -> tuple[dict[str, tuple[Ints, bytes]], dict[str, Ints]]:
        """Return by column the different pairs of class and value's hash, and by column the people of each pair."""
        pairs: dict[str, tuple[Ints, bytes]] = {}
        counts: dict[str, Ints] = {}
        for column, values in self.values.items():
            found, counts[column] = people_by_value(self.who, self.classes, values.codes, values.width)
            hashes = np.frombuffer(values.hashes, f"V{HASH_SIZE}")
            pairs[column] = found // values.width, hashes[found % values.width].tobytes()
        return pairs, counts


def read(
    con: sql.Connection, account: Account, rows: str, person: str, classes: Sequence[str], sensitive: Sequence[str]
) -> CodedTable:
    """Read a table; rows without a person are nobody's."""
    columns = {"whose": person}
    columns |= {f"class {place}": column for place, column in enumerate(classes)}
    columns |= {f"sensitive {place}": column for place, column in enumerate(sensitive)}
    selected = ", ".join(f"{sql.name(column)}::VARCHAR AS {sql.name(name)}" for name, column in columns.items())
    found = con.sql(f"SELECT {selected} FROM {rows} WHERE {sql.name(person)} IS NOT NULL").to_arrow_table()
    who, names = _coded(found["whose"])
    of_rows = row_classes(found.select([f"class {place}" for place in range(len(classes))]))
    of_people = classes_of_people(who, of_rows, len(names))
    label_rows = _label_rows(found, len(classes), of_rows, of_people[who])
    labels = b"".join(labels_hash(account, rows) for rows in label_rows)
    values = {}
    for place, column in enumerate(sensitive):
        codes, different = _coded(found[f"sensitive {place}"])
        values[column.lower()] = Values(codes, hashed(account, kind_of(column), different, progress.check))
    return CodedTable([str(name) for name in names], who, of_people, label_rows, labels, values)


def read_values(con: sql.Connection, account: Account, rows: str, sensitive: Sequence[str]) -> dict[str, Values]:
    """Read the sensitive columns of a query's rows."""
    found = {}
    for column in sensitive:
        table = con.sql(f"SELECT {sql.name(column)}::VARCHAR AS value FROM ({rows})").to_arrow_table()
        codes, different = _coded(table["value"])
        found[column.lower()] = Values(codes, hashed(account, kind_of(column), different, progress.check))
    return found


def kind_of(column: str) -> str:
    """Return the kind by which values of a sensitive column are hashed: the same in all tables that have it."""
    return f"value of {column.lower()}"


def labels_hash(account: Account, rows: Collection[Labels]) -> bytes:
    """Return the keyed hash of a class of people, given the labels of their rows."""
    hashes = (account.keyed("label", json.dumps(list(row))) for row in set(rows))
    return account.keyed("labels", b"".join(sorted(hashes)))


def _coded(column: pa.ChunkedArray) -> tuple[Ints, list[str | None]]:
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
    found = unique(of_people * width + of_rows)
    starts = np.flatnonzero(np.diff(found // width, prepend=-1))
    return [[tuple(texts[place % width].values()) for place in members] for members in np.split(found, starts)[1:]]

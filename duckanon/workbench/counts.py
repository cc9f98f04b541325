"""People who look the same in a set of columns, counted on codes that stay in memory."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from duckanon._bridge import sql
from duckanon._core.common.arrays import Ints, find_run_starts, measure_runs, sort_distinct
from duckanon._core.common.codes import CodedColumn, encode_columns
from duckanon._core.common.people import NOBODY, number_people
from duckanon._core.common.row_keys import pack_columns
from duckanon._methods.generalize.recoding.classes import is_dense

_COMPARABLE = re.compile(r"U?(TINY|SMALL|BIG)?INT(EGER)?|FLOAT|DOUBLE|DECIMAL.*|BOOLEAN|DATE|TIMESTAMP.*|VARCHAR")
"""Types whose Arrow values are compared as SQL does; others are compared as texts."""


@dataclass(frozen=True)
class Risk:
    """How many people look the same in some columns, counted as `anon.k_anonymity` counts them.

    Attributes:
        k: People in the smallest class; 0 where all rows of a class are nobody's.
        unique: People who are alone in at least one class.
        people: People in the table.
        nobody: Rows without a person, which count as nobody.
    """

    k: int
    unique: int
    people: int
    nobody: int = 0


class Counts:
    """The codes of a table's columns, each made when it is first asked for.

    Args:
        table: The name of the table, which does not change.
    """

    def __init__(self, table: str) -> None:
        self._table = table
        self._lock = threading.Lock()
        self._columns: dict[str, CodedColumn] = {}
        self._people: dict[str, Ints] = {}
        self._types: dict[str, str] = {}
        self._risks: dict[tuple[str | None, ...], Risk] = {}

    def risk(self, con: sql.Connection, columns: Sequence[str], person: str | None = None) -> Risk:
        """Count the people who look the same; remembered.

        Rows are people where no column says whose they are.
        """
        asked = (person, *sorted(columns))
        if asked not in self._risks:
            self._risks[asked] = self._risk(con, *self._key(con, columns), person)
        return self._risks[asked]

    def without_each(
        self, con: sql.Connection, columns: Sequence[str], person: str | None = None
    ) -> Iterator[tuple[str, Risk]]:
        """Yield each column with the risk of all others; remembered."""
        asked = {name: (person, *sorted(one for one in columns if one != name)) for name in columns}
        if not all(others in self._risks for others in asked.values()):
            for name, key, size in self._keys_without(con, columns, *self._key(con, [])):
                if asked[name] not in self._risks:
                    self._risks[asked[name]] = self._risk(con, key, size, person)
                yield name, self._risks[asked[name]]
            return
        yield from ((name, self._risks[others]) for name, others in asked.items())

    def prepare(self, con: sql.Connection, columns: Sequence[str]) -> None:
        """Make the codes of some columns."""
        for name in columns:
            self._column(con, name)

    def _keys_without(
        self, con: sql.Connection, columns: Sequence[str], key: Ints, size: int
    ) -> Iterator[tuple[str, Ints, int]]:
        """Yield the keys of `key` and all columns but one: each half is combined once for all columns of the other."""
        if len(columns) < 2:
            yield from ((name, key, size) for name in columns)
            return
        middle = len(columns) // 2
        for half, other_half in ((columns[:middle], columns[middle:]), (columns[middle:], columns[:middle])):
            yield from self._keys_without(con, half, *self._key(con, other_half, key, size))

    def _key(
        self, con: sql.Connection, columns: Sequence[str], key: Ints | None = None, size: int = 1
    ) -> tuple[Ints, int]:
        """Return a number for each row, equal where a former number and some columns are equal, and a bound of it."""
        if key is None:
            key = np.zeros(int(sql.fetch_row(con, f"SELECT count(*) FROM {self._table}")[0]), np.int64)
        return pack_columns([(key, size), *(self._column(con, name) for name in columns)], len(key))

    def _risk(self, con: sql.Connection, key: Ints, size: int, person: str | None) -> Risk:
        """Count people by a number of each row, which is sorted in place."""
        if person is None:
            sizes = _sizes(key, size)
            return Risk(int(sizes.min(initial=len(key))), int((sizes == 1).sum()), len(key))
        person_of_row = self._person(con, person)
        known, everybody = person_of_row != NOBODY, max(int(person_of_row.max(initial=0)) + 1, 1)
        pairs = sort_distinct(
            pack_columns([(key[known], size), (person_of_row[known], everybody)], int(known.sum()))[0]
        )
        members = pairs % everybody
        starts = find_run_starts(pairs // everybody)
        sizes = measure_runs(starts, len(pairs))
        unique = sort_distinct(members[starts[sizes == 1]])
        k, nobody = int(sizes.min(initial=len(pairs))), int((~known).sum())
        if nobody and len(_sizes(key, size)) > len(sizes):
            k = 0
        return Risk(k, len(unique), len(sort_distinct(members)), nobody)

    def _column(self, con: sql.Connection, name: str) -> CodedColumn:
        with self._lock:
            if name not in self._columns:
                (self._columns[name],) = encode_columns(self._values(con, name))
            return self._columns[name]

    def _person(self, con: sql.Connection, name: str) -> Ints:
        with self._lock:
            if name not in self._people:
                self._people[name] = number_people(self._values(con, name).column(0))
            return self._people[name]

    def _values(self, con: sql.Connection, name: str) -> pa.Table:
        """Read a column in the order of the rows, whatever order they come in."""
        self._types = self._types or sql.columns(con, self._table)
        as_type = "" if _COMPARABLE.fullmatch(self._types[name]) else "::VARCHAR"
        query = f"SELECT {sql.quote(name)}{as_type} AS value, rowid AS place FROM {self._table}"
        table: pa.Table = con.sql(query).to_arrow_table()
        places = table.column(1).to_numpy()
        is_ordered = bool((places[1:] > places[:-1]).all())
        return (table if is_ordered else table.take(np.argsort(places))).select([0])


def _sizes(key: Ints, size: int) -> Ints:
    """Return the number of entries of each key that occurs; sorts the keys in place where there may be many."""
    if is_dense(size, len(key)):
        counts = np.bincount(key)
        return counts[counts > 0]
    key.sort()
    return measure_runs(find_run_starts(key), len(key))

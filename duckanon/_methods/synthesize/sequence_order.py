"""Several rows a person: in which order they come, how many they are, and which columns are the person's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from duckanon._core.common.arrays import Floats, Ints
from duckanon._core.common.codes import encode
from duckanon._core.common.names import known_columns
from duckanon._core.encoding.arrow import is_moment, kind_of
from duckanon._core.encoding.column_split import whole
from duckanon._core.encoding.digits import cleaned
from duckanon._core.encoding.parts import ColumnParts, doubles
from duckanon._methods.synthesize.leaf_draws import FEWEST
from duckanon._methods.synthesize.orthogonal import apportioned


@dataclass(frozen=True)
class Sequences:
    """The rows of people, in order.

    Histories are cut off where fewer than k people go on: what comes later is never learnt from.

    Attributes:
        person: Whose each row is, numbered from 0.
        firsts: The first row of each person.
        later: The rows that come after another one of their person.
        before: The row before each of these.
        position: How many rows come before each of these.
        lengths: How many rows each person has, at most as many as k people have.
    """

    person: Ints
    firsts: Ints
    later: Ints
    before: Ints
    position: Ints
    lengths: Ints

    @classmethod
    def of(cls, people: Ints, order: Sequence[Floats], k: int, random: np.random.Generator) -> Sequences:
        """Sort the rows of each person by columns, NULL last, and at random where these do not differ."""
        person = np.unique(people, return_inverse=True)[1].astype(np.int64)
        chance = random.permutation(len(person))
        by_person = np.lexsort((chance, *reversed(order), person))
        lengths = np.bincount(person)
        starts = np.cumsum(lengths) - lengths
        position = np.arange(len(person)) - np.repeat(starts, lengths)
        longest = np.sort(lengths)[-k] if k <= len(lengths) else 1
        later = np.flatnonzero((position > 0) & (position < longest))
        return cls(
            person,
            by_person[starts],
            by_person[later],
            by_person[later - 1],
            position[later],
            np.minimum(lengths, longest),
        )

    @property
    def longest(self) -> int:
        """The largest number of rows: at least k people have as many."""
        return int(self.lengths.max())

    @property
    def learnt(self) -> Ints:
        """The rows that are learnt from."""
        return np.concatenate([self.firsts, self.later])


def personal_columns(table: pa.Table, person: Ints) -> list[str]:
    """Name the columns that are the same in all rows of a person.

    Up to two people may be exceptions, so that one of them never shows.
    """
    count = int(person.max(initial=-1)) + 1
    first = np.zeros(count, np.int64)
    first[person[::-1]] = np.arange(len(person) - 1, -1, -1)
    encoded = zip(table.column_names, encode(table), strict=True)
    return [name for name, (codes, _) in encoded if len(np.unique(person[codes != codes[first][person]])) < FEWEST]


def ordering_columns(table: pa.Table, personal: Sequence[str], order_by: str | None) -> list[str]:
    """Name the column that orders the rows of a person, and the dates that decide where it does not; [] for none.

    Args:
        table: The table.
        personal: The columns that are the same in all rows of a person.
        order_by: The column that is asked for. None: the first date or timestamp that differs between rows of a person.
    """
    moments = [field.name for field in table.schema if is_moment(field.type) and field.name not in personal]
    if order_by is None:
        return moments
    (name,) = known_columns("order_by", [order_by], table.column_names)
    if kind_of(name, table.schema.field(name).type) == "category":
        raise ValueError(f'order_by must be a column of dates, times or numbers; got "{name}".')
    if name in personal:
        raise ValueError(f'order_by must be a column that differs between the rows of a person; got "{name}".')
    return [name, *(one for one in moments if one != name)]


def order_values(table: pa.Table, names: Sequence[str]) -> list[Floats]:
    """Return the columns that order rows as numbers."""
    return [doubles(cleaned(whole(table.column(name)))) for name in names]


class Lengths(NamedTuple):
    """Numbers of rows in groups of at least k people.

    Attributes:
        column: The group of each person.
        numbers, shares: What each group stands for: the numbers that three of its people have or, where there are none,
            that nobody has.
    """

    column: ColumnParts
    numbers: list[Ints]
    shares: list[Ints]

    @classmethod
    def of(cls, lengths: Ints, k: int) -> Lengths:
        """Put neighbouring numbers together until k people have them."""
        counts = np.bincount(lengths)
        group = np.zeros(len(counts), np.int64)
        held = 0
        for number in range(1, len(counts)):
            starts_new = held >= k and int(counts[number:].sum()) >= k
            group[number] = group[number - 1] + starts_new
            held = int(counts[number]) + (0 if starts_new else held)
        numbers, shares = [], []
        everybody = np.arange(1, len(counts))
        for one in range(int(group[-1]) + 1):
            own = everybody[group[1:] == one]
            middle = int(np.median(np.repeat(own, counts[own])))
            for candidates in (own[counts[own] >= FEWEST], own[counts[own] == 0], everybody[counts[1:] >= FEWEST]):
                if len(candidates):
                    break
            chosen = candidates if candidates[0] in own else candidates[[np.abs(candidates - middle).argmin()]]
            numbers.append(chosen)
            shares.append(np.maximum(counts[chosen], 1))
        codes = group[lengths]
        return cls(
            ColumnParts("length", pa.int64(), codes, tuple(range(len(numbers))), None, pa.array(codes)), numbers, shares
        )

    def drawn(self, codes: Ints, random: np.random.Generator) -> Ints:
        """Draw numbers of rows, given the group of each person."""
        lengths = np.zeros(len(codes), np.int64)
        for group, (numbers, shares) in enumerate(zip(self.numbers, self.shares, strict=True)):
            here = np.flatnonzero(codes == group)
            lengths[random.permutation(here)] = np.repeat(numbers, apportioned(shares, len(here)))
        return lengths


def capped(name: str, values: Ints, most: int) -> ColumnParts:
    """Take small whole numbers as choices, the largest of which stands for all above."""
    codes = np.minimum(values, most)
    array = pa.array(codes)
    return ColumnParts(name, array.type, codes, tuple(range(most + 1)), None, array)

"""Sensitive values of people, and what somebody learns about them who knows a choice of a person's rows.

A choice discloses the distribution of the values among the people who hold it: the largest share of one value
(`max_confidence`), the number of different values (`l`), and its distance from the distribution among all people (`t`).
A person may have several values, those of all their rows, and is counted for each. Who has none counts for the value
NULL, as in `anon.l_diversity` and `anon.t_closeness`; being sure of NULL is no disclosure. One sort of the values of
the people of a class costs most.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from duckanon._core.common.arrays import Bools, Floats, Ints, Ints32, find_run_starts, measure_runs, sort_distinct
from duckanon._core.common.codes import encode_columns
from duckanon._methods.linked.declared import SensitiveLimits

_ROUNDING = 1e-9
_DISTANCE_ROUNDING = 1e-13
"""Less than the twelve digits to which promises of t are compared."""


class Disclosure(NamedTuple):
    """What each choice discloses."""

    choices: Ints  # their numbers, ascending
    shares: Floats  # the largest share of one value among the people who hold it
    values: Ints  # the different values that they have
    distances: Floats  # half the sum of the differences between the shares of values among them and among all people

    def is_over_limits(self, asked: SensitiveLimits) -> Bools:
        """Tell which choices disclose more than is allowed."""
        is_over: Bools = self.values < asked.l
        if asked.max_confidence is not None:
            is_over |= self.shares > asked.max_confidence + _ROUNDING
        if asked.t is not None:
            is_over |= self.distances > asked.t + _DISTANCE_ROUNDING
        return is_over


class ClassValues(NamedTuple):
    """The sensitive values of the people of a class."""

    starts: Ints  # where each person's values begin in `values`, and a last entry for their end
    values: Ints  # numbers from 0; everybody has one
    totals: Ints  # the people of all classes who have each value; the last one is that of people without any
    asked: SensitiveLimits
    also: ClassValues | None = None  # other values of the same people of which the same is asked

    def measure(self, held: Ints | Ints32, person: Ints) -> Disclosure:
        """Measure what choices disclose; `held` is the choice of each set, and a person holds one at most once."""
        counts = self.starts[person + 1] - self.starts[person]
        choice = np.repeat(held, counts)
        first = np.repeat(self.starts[person] - (np.cumsum(counts) - counts), counts)
        value = self.values[first + np.arange(len(first))]
        order = np.lexsort((value, choice))
        choice, value = choice[order], value[order]
        cells = find_run_starts(np.stack([choice, value], axis=1))
        having = measure_runs(cells, len(choice))
        choice, value = choice[cells], value[cells]
        starts = find_run_starts(choice)
        lengths = measure_runs(starts, len(choice))
        people = measure_runs(find_run_starts(np.sort(held)), len(held))
        none = len(self.totals) - 1
        answers = np.add.reduceat(having, starts) if len(starts) else having
        # in whole numbers, as anon.known_events counts
        excess = np.maximum(having * self.totals.sum() - self.totals[value] * np.repeat(answers, lengths), 0)
        return Disclosure(
            choice[starts].astype(np.int64),
            (np.maximum.reduceat(np.where(value == none, 0, having), starts) if len(starts) else having) / people,
            lengths,
            (np.add.reduceat(excess, starts) if len(starts) else excess) / (answers * float(self.totals.sum())),
        )

    def is_too_sure(self, held: Ints | Ints32, person: Ints) -> Bools:
        """Tell for each choice of a person whether it discloses more than is allowed."""
        disclosure = self.measure(held, person)
        is_bad = np.isin(held, disclosure.choices[disclosure.is_over_limits(self.asked)])
        return is_bad if self.also is None else is_bad | self.also.is_too_sure(held, person)


class SensitiveValues:
    """The sensitive values of all people, by all rows; after `in_rows` by the released rows, too."""

    def __init__(self, rows: Ints, codes: Ints, person_of: Ints, people: Ints, asked: SensitiveLimits) -> None:
        """Take the rows that have a value, its number, the person of every row, and all people."""
        self._rows, self._codes, self._person_of, self._asked = rows, codes, person_of, asked
        self._all: SensitiveValues | None = None
        self.people = people
        none = int(codes.max(initial=-1)) + 1
        base, most = none + 1, int(person_of.max(initial=-1)) + 1
        pairs = sort_distinct(person_of[rows] * base + codes)
        without = np.ones(most, np.bool_)
        without[pairs // base] = False
        pairs = np.sort(np.concatenate([pairs, people[without[people]] * base + none]))
        self._values = pairs % base
        self._starts = np.searchsorted(pairs // base, np.arange(most + 1))
        self._totals = np.bincount(self._values, minlength=base)

    @classmethod
    def of_column(cls, column: pa.ChunkedArray, person_of: Ints, asked: SensitiveLimits) -> SensitiveValues:
        """Read the values of all rows; those that are NULL tell nothing."""
        ((codes, _),) = encode_columns(pa.table({"value": column}))
        rows = np.flatnonzero(~np.asarray(column.is_null().to_numpy(), np.bool_))
        people = np.arange(int(person_of.max(initial=-1)) + 1)
        return cls(rows, codes[rows].astype(np.int64), person_of, people, asked)

    def in_rows(self, is_released: Bools) -> SensitiveValues:
        """Return the values of released rows, with the same limits; itself if no value and no person is lost."""
        stays = is_released[self._rows]
        people = np.flatnonzero(np.bincount(self._person_of[is_released], minlength=len(self._starts) - 1))
        if stays.all() and len(people) == len(self.people):
            return self
        remaining = SensitiveValues(self._rows[stays], self._codes[stays], self._person_of, people, self._asked)
        remaining._all = self._all or self
        return remaining

    def of(self, people: Ints) -> ClassValues:
        """Return the values of some people, numbered from 0 in their order."""
        counts = self._starts[people + 1] - self._starts[people]
        starts = np.append(0, np.cumsum(counts))
        indices = np.repeat(self._starts[people] - starts[:-1], counts) + np.arange(starts[-1])
        also = None if self._all is None else self._all.of(people)
        return ClassValues(starts, self._values[indices], self._totals, self._asked, also)

    def refuse_classes(self, class_of_person: Ints) -> None:
        """Refuse classes of people that disclose too much before any event is known: no label could change that."""
        disclosure = (
            self.of(self.people)._replace(also=None).measure(class_of_person[self.people], np.arange(len(self.people)))
        )
        if not disclosure.is_over_limits(self._asked).any():
            return
        if self._all is not None:
            raise ValueError(
                "the rows that would be left out for max_confidence, l or t leave classes of people that tell too much "
                f'about "{self._asked.sensitive}"; make class coarser, give cols hierarchies, or allow more.'
            )
        asked, named = self._asked, f'of "{self._asked.sensitive}" in a class of people.'
        if asked.max_confidence is not None and disclosure.shares.max() > asked.max_confidence:
            least, sentence = (
                disclosure.shares.max(),
                "max_confidence must be at least {}, the largest share of one value",
            )
        elif asked.t is not None and disclosure.distances.max() > asked.t:
            least, sentence = disclosure.distances.max(), "t must be at least {}, the largest distance"
        else:
            raise ValueError(f"l must be at most {int(disclosure.values.min())}, the fewest values {named}")
        rounded = f"{math.ceil(1000 * least) / 1000:.3f}"
        raise ValueError(f"{sentence.format(rounded)} {named}")

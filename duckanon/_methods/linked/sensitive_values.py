"""Sensitive values of people, and what somebody learns about them who knows a choice of a person's rows.

A person may have several values, those of all their rows, and is counted for each; who has none counts for the value
NULL, as in `anon.l_diversity` and `anon.t_closeness`, of which nobody can be too sure.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from duckanon._core.common.arrays import Bools, Floats, Ints, Ints32, distinct, run_lengths, run_starts
from duckanon._core.common.codes import encode
from duckanon._methods.linked.declared import SensitiveLimits

_ROUNDING = 1e-9
_DISTANCE_ROUNDING = 1e-13
"""Less than the twelve digits to which promises of t are compared."""


class Learned(NamedTuple):
    """What each choice tells."""

    choices: Ints  # their numbers, ascending
    shares: Floats  # the largest share of one value among the people who hold it
    values: Ints  # the different values that they have
    distances: Floats  # half the sum of the differences between the shares of values among them and among all people

    def violating(self, asked: SensitiveLimits) -> Bools:
        """Tell which choices tell more than is allowed."""
        found: Bools = self.values < asked.l
        if asked.max_confidence is not None:
            found |= self.shares > asked.max_confidence + _ROUNDING
        if asked.t is not None:
            found |= self.distances > asked.t + _DISTANCE_ROUNDING
        return found


class Told(NamedTuple):
    """The sensitive values of the people of a class."""

    starts: Ints  # where each person's values begin in `values`, and a last entry for their end
    values: Ints  # numbers from 0; everybody has one
    totals: Ints  # the people of all classes who have each value; the last one is that of people without any
    asked: SensitiveLimits
    also: Told | None = None  # other values of the same people of which the same is asked

    def learned(self, held: Ints | Ints32, person: Ints) -> Learned:
        """Measure what the choices tell that people hold; `held` numbers them, and a person holds one at most once."""
        counts = self.starts[person + 1] - self.starts[person]
        choice = np.repeat(held, counts)
        first = np.repeat(self.starts[person] - (np.cumsum(counts) - counts), counts)
        value = self.values[first + np.arange(len(first))]
        order = np.lexsort((value, choice))
        choice, value = choice[order], value[order]
        cells = run_starts(np.stack([choice, value], axis=1))
        having = run_lengths(cells, len(choice))
        choice, value = choice[cells], value[cells]
        starts = run_starts(choice)
        lengths = run_lengths(starts, len(choice))
        people = run_lengths(run_starts(np.sort(held)), len(held))
        none = len(self.totals) - 1
        answers = np.add.reduceat(having, starts) if len(starts) else having
        # in whole numbers, as anon.known_events counts
        excess = np.maximum(having * self.totals.sum() - self.totals[value] * np.repeat(answers, lengths), 0)
        return Learned(
            choice[starts].astype(np.int64),
            (np.maximum.reduceat(np.where(value == none, 0, having), starts) if len(starts) else having) / people,
            lengths,
            (np.add.reduceat(excess, starts) if len(starts) else excess) / (answers * float(self.totals.sum())),
        )

    def is_violated(self, held: Ints | Ints32, person: Ints) -> Bools:
        """Tell for each choice of a person whether the people who hold it tell too much."""
        found = self.learned(held, person)
        is_bad = np.isin(held, found.choices[found.violating(self.asked)])
        return is_bad if self.also is None else is_bad | self.also.is_violated(held, person)


class SensitiveValues:
    """The sensitive values of all people: those of all rows, or of the released ones too."""

    def __init__(self, rows: Ints, codes: Ints, person_of: Ints, people: Ints, asked: SensitiveLimits) -> None:
        """Take the rows that have a value, its number, the person of every row, and the people who are there."""
        self._rows, self._codes, self._person_of, self._asked = rows, codes, person_of, asked
        self._all: SensitiveValues | None = None
        self.people = people
        none = int(codes.max(initial=-1)) + 1
        base, most = none + 1, int(person_of.max(initial=-1)) + 1
        pairs = distinct(person_of[rows] * base + codes)
        without = np.ones(most, np.bool_)
        without[pairs // base] = False
        pairs = np.sort(np.concatenate([pairs, people[without[people]] * base + none]))
        self._values = pairs % base
        self._starts = np.searchsorted(pairs // base, np.arange(most + 1))
        self._totals = np.bincount(self._values, minlength=base)

    @classmethod
    def of_column(cls, column: pa.ChunkedArray, person_of: Ints, asked: SensitiveLimits) -> SensitiveValues:
        """Read the values of all rows; those that are NULL tell nothing."""
        ((codes, _),) = encode(pa.table({"value": column}))
        rows = np.flatnonzero(~np.asarray(column.is_null().to_numpy(), np.bool_))
        people = np.arange(int(person_of.max(initial=-1)) + 1)
        return cls(rows, codes[rows].astype(np.int64), person_of, people, asked)

    def in_rows(self, is_released: Bools) -> SensitiveValues:
        """Return the values that released rows tell, of which the same is asked as of all; itself if none is lost."""
        stays = is_released[self._rows]
        people = np.flatnonzero(np.bincount(self._person_of[is_released], minlength=len(self._starts) - 1))
        if stays.all() and len(people) == len(self.people):
            return self
        found = SensitiveValues(self._rows[stays], self._codes[stays], self._person_of, people, self._asked)
        found._all = self._all or self
        return found

    def of(self, people: Ints) -> Told:
        """Return the values of some people, numbered from 0 in their order."""
        counts = self._starts[people + 1] - self._starts[people]
        starts = np.append(0, np.cumsum(counts))
        places = np.repeat(self._starts[people] - starts[:-1], counts) + np.arange(starts[-1])
        also = None if self._all is None else self._all.of(people)
        return Told(starts, self._values[places], self._totals, self._asked, also)

    def refuse_classes(self, own_class: Ints) -> None:
        """Refuse classes of people that tell too much by themselves: no label of an event could change that."""
        found = self.of(self.people)._replace(also=None).learned(own_class[self.people], np.arange(len(self.people)))
        if not found.violating(self._asked).any():
            return
        if self._all is not None:
            raise ValueError(
                "the rows that would be left out for max_confidence, l or t leave classes of people that tell too much "
                f'about "{self._asked.sensitive}"; make class coarser, give cols hierarchies, or allow more.'
            )
        asked = self._asked
        if asked.max_confidence is not None and found.shares.max() > asked.max_confidence:
            least, what = found.shares.max(), "max_confidence must be at least {}, the largest share of one value"
        elif asked.t is not None and found.distances.max() > asked.t:
            least, what = found.distances.max(), "t must be at least {}, the largest distance"
        else:
            raise ValueError(
                f'l must be at most {int(found.values.min())}, the fewest values of "{asked.sensitive}" in a class of '
                "people."
            )
        rounded = f"{math.ceil(1000 * least) / 1000:.3f}"
        raise ValueError(f'{what.format(rounded)} of "{asked.sensitive}" in a class of people.')

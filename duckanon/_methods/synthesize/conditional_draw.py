"""New rows of which some columns are given: the rows of a person, given those before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from duckanon._core.common.arrays import Floats, Ints
from duckanon._core.common.progress import Tell, silent
from duckanon._methods.synthesize.coded_table import Parts
from duckanon._methods.synthesize.implication_rules import Rows
from duckanon._methods.synthesize.orthogonal import apportioned
from duckanon._methods.synthesize.sequential_draw import SequentialDraw

_AGAIN = 4  # draws of a number that differs from the last one: of three whole numbers, one in a hundred is left


@dataclass
class ConditionalDraw(SequentialDraw):
    """New rows, each of which continues something that is there already.

    Choices are drawn as often as the leaves say, not in the shares of the table: rows that continue few others need
    not be distributed as all are. For the same reason a drawn rank is the level of a number.

    Attributes:
        given: The parts of the columns that are not drawn.
        quantiles: The places of numbers at levels, by column.
        highest: The largest number that each new row may have, by column.
        same: For columns that stay as they were in some rows: the given column that says in which, and the given one
            that has what they were.
    """

    given: Parts = field(default_factory=lambda: Parts({}, {}, {}))
    quantiles: Mapping[int, Callable[[Floats], Ints]] = field(default_factory=dict)
    highest: Mapping[int, Floats] = field(default_factory=dict)
    same: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    ranks_are_even = False

    def run(self, tell: Tell = silent) -> Parts:
        """Take the columns that are given, and draw the others; rows that break a rule are `is_impossible`."""
        for index, codes in self.given.codes.items():
            self.parts.codes[index] = codes
            self._learner.predictors.add_choice(self.original.codes[index], codes, self.table.columns[index].choices)
            if index in self.table.numbers:
                self.parts.places[index] = self.given.places[index].copy()
                self._refresh(index)
                self._predict_by(index)
        return super().run(tell)

    def _wanted(self, index: int, shares: Floats, cells: Ints) -> Ints:
        sizes = np.bincount(cells, minlength=len(shares))
        return apportioned(sizes @ (shares / shares.sum(axis=1, keepdims=True)), self.count)

    def _continued(self, index: int, drawn: Ints, parts: dict[int, Ints]) -> Ints:
        if index not in self.same:
            return drawn
        is_same, last = self.same[index]
        return np.where(self.parts.codes[is_same] == 1, parts[last], drawn)

    def _settle(self, index: int, places: Ints) -> None:
        """Keep places; draw again where a number is by chance what it was, and should be another."""
        if index in self.same:
            is_same, last = self.same[index]
            differs = (self.parts.codes[is_same] == 0) & self._is_regular(index) & self._is_regular(last)
            for _ in range(_AGAIN):
                again = np.flatnonzero(differs & (places == self.parts.places[last]))
                ranks = self._drawn_ranks(index, self._has_number(index), again)
                places[again] = self._placed(index, ranks, self.rows)
        super()._settle(index, places)

    def _placed(self, index: int, ranks: Floats, rows: Ints) -> Ints:
        return self.quantiles[index](ranks) if index in self.quantiles else super()._placed(index, ranks, rows)

    def _limits(self, index: int, rows: Rows, among: Ints) -> tuple[Floats, Floats] | None:
        limits = super()._limits(index, rows, among)
        if index not in self.highest:
            return limits
        low, high = limits or (np.full(len(among), -np.inf), np.full(len(among), np.inf))
        return low, np.minimum(high, self.highest[index][among])

    def _replace_broken(self) -> None:
        """Mark the rows that break a rule: the values of another row would not continue what is given."""
        self._settle_sources()
        for index, highest in self.highest.items():
            self.is_impossible |= self.numbers[index] > highest
        self.is_impossible |= self.implications.broken(Rows(self.parts.codes, self.numbers))

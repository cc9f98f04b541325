"""New rows of which some columns are given: the rows of a person, given those before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from duckanon._core.common.arrays import Floats, Ints
from duckanon._core.common.progress import Tell, silent
from duckanon._methods.synthesize.coded_table import Parts
from duckanon._methods.synthesize.implication_rules import Rows
from duckanon._methods.synthesize.leaf_draws import rounded_by_chance
from duckanon._methods.synthesize.sequential_draw import SequentialDraw
from duckanon._methods.synthesize.transitions import drawn_transitions, transition_factors

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
        last: For columns whose choices follow those of the last row as often as in the table: the given column that has
            these.
    """

    given: Parts = field(default_factory=lambda: Parts({}, {}, {}))
    quantiles: Mapping[int, Callable[[Floats], Ints]] = field(default_factory=dict)
    highest: Mapping[int, Floats] = field(default_factory=dict)
    same: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    last: Mapping[int, int] = field(default_factory=dict)
    ranks_are_even = False

    def run(self, tell: Tell = silent) -> Parts:
        """Take the columns that are given, and draw the others; rows that break a rule are `is_impossible`."""
        for index, codes in self.given.codes.items():
            self.parts.codes[index] = codes
            self._learner.predictors.add_choice(self._codes(index), codes, self.table.columns[index].choices)
            if index in self.table.numbers:
                self.parts.places[index] = self.given.places[index].copy()
                self._refresh(index)
                self._predict_by(index)
        return super().run(tell)

    def _choice_cells(self, index: int) -> tuple[Floats, Ints]:
        shares, cells = super()._choice_cells(index)
        if index not in self.last:
            return shares, cells
        factors = self._factors(index)
        names, cells = np.unique(cells * len(factors) + self._last_choices(index), return_inverse=True)
        return shares[names // len(factors)] * factors[names % len(factors)], cells

    def _factors(self, index: int) -> Floats:
        """Return the factors of transitions, which are computed once for all rows drawn from the same trees."""
        factors = self._learner.factors
        if index not in factors:
            assert self.table.people is not None  # of whom some have several rows
            key, codes = ("choice", index), self._codes(index)
            shares = self._learner.shares(key, codes, self.table.columns[index].choices, np.arange(len(self.rows)))
            leaves, whose = self._learner.grown[key].leaves, self.table.people[self.rows]
            last = self._codes(self.last[index])
            factors[index] = transition_factors(last, codes, whose, leaves, shares, self.table.k, self.random)
        return factors[index]

    def _last_choices(self, index: int) -> Ints:
        """Return the choices that new rows follow; those that nobody learnt from has made count as the first."""
        last = self.parts.codes[self.last[index]]
        return np.where(last < len(self._factors(index)), last, 0)

    def _drawn_choices(self, index: int, shares: Floats, cells: Ints) -> Ints:
        if index not in self.last:
            return super()._drawn_choices(index, shares, cells)
        return drawn_transitions(shares, cells, self._last_choices(index), self.random)

    def _wanted(self, index: int, shares: Floats, cells: Ints) -> Ints:
        sizes = np.bincount(cells, minlength=len(shares))
        return rounded_by_chance(sizes @ (shares / shares.sum(axis=1, keepdims=True)), self.count, self.random)

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

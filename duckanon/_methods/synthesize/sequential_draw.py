"""New rows drawn one column after the other, each from a tree on the columns drawn before it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from duckanon._core.common.arrays import Bools, Ints
from duckanon._core.common.progress import Tell, silent
from duckanon._methods.synthesize.coded_table import Parts
from duckanon._methods.synthesize.column_draw import ColumnDraw
from duckanon._methods.synthesize.equal_numbers import EqualNumbers
from duckanon._methods.synthesize.implication_rules import Rows
from duckanon._methods.synthesize.sequential_trees import Response
from duckanon._methods.synthesize.shifted_numbers import rows_apart

_MOST_REPLACED = 0.01  # of the rows, because a computed number is rare; the digits of others are moved


@dataclass
class SequentialDraw(ColumnDraw):
    """New rows of a table, drawn column by column; what each column needs is in `ColumnDraw`."""

    def run(self, tell: Tell = silent) -> Parts:
        """Draw all columns: in the order of the table, those that others decide after these, computed ones last."""
        computed = {one.formula.column for one in self.table.computed}
        waiting = [
            index for index in range(len(self.table.columns)) if index not in computed and index not in self.parts.codes
        ]
        total = len(waiting)
        while waiting:
            drawn = self._draw(next((index for index in waiting if self._is_ready(index)), waiting[0]))
            waiting = [index for index in waiting if index not in drawn]
            if self.learner is None:
                for index in drawn:
                    self._learner.forget(index)
            tell(1 - len(waiting) / total)
        for one in self.table.computed:
            self.table.exchange(one, self.parts, self.rows, self.random, to_hold=True)
        for index in self.numbers if self.table.computed else ():
            self._refresh(index)
        self._replace_broken()
        return self.parts

    def _is_ready(self, index: int) -> bool:
        """Tell whether the columns that decide a column, and the one it is equal to, are drawn or drawn with it."""
        together = self._together(index)
        for one in together:
            lookup = self._lookups.get(one)
            if lookup and not self._is_known(lookup) and (lookup.keys is not None or lookup.source not in together):
                return False
        return all(one.sources[0] in self.numbers for one in self.table.offsets if one.column == index)

    def _draw(self, index: int) -> list[int]:
        """Draw a column, with the one that it is equal to in many rows; return which were drawn."""
        together = self._together(index)
        for one in together:
            self._draw_choice(one)
        pair = self._pairs.get(index)
        if pair is not None:
            self._draw_equal(pair)
        elif index in self.table.numbers:
            values = self._shifted(index)
            is_own = self._is_regular(index) & np.isnan(values)
            ranks = self._drawn_ranks(index, self._has_number(index), np.flatnonzero(is_own))
            places = np.full(self.count, self.table.numbers[index].ordered[0])
            places[is_own] = self._placed(
                index, ranks, rows_apart(self.table.offsets, index, self.table.numbers, self.numbers, self.rows)
            )
            self._place_shifted(index, places, values)
            self._settle(index, places)
        return together

    def _replace_broken(self) -> None:
        """Give new rows that break a rule numbers that do not or, where there are none, all values of another row.

        So are rows whose computed number is one of a few people's, which would have to be moved off the formula, where
        they are few: to replace many would change what is distributed how.
        """
        self._settle_sources()
        is_bad = self.is_impossible | self.implications.broken(Rows(self.parts.codes, self.numbers))
        for one in self.table.computed:
            is_rare = self.table.has_rare(one, self.parts)
            if is_rare.mean() <= _MOST_REPLACED:
                is_bad |= is_rare
        bad, good = np.flatnonzero(is_bad), np.flatnonzero(~is_bad)
        if len(bad) and len(good):
            donors = self.random.choice(good, len(bad))
            for arrays in (self.parts.codes, self.parts.places, self.parts.is_equal, self.numbers):
                for values in arrays.values():
                    values[bad] = values[donors]

    def _settle_sources(self) -> None:
        """Keep the numbers that others are computed from within limits, and those that are a constant apart so."""
        for index in {source for one in self.table.computed for source in one.formula.sources}:
            if index in self.numbers and index not in self.table.given:
                self._keep_limits(index)
        for one in self.table.offsets:
            if one.column in self.numbers and one.column not in self.table.given:
                self._place_shifted(one.column, self.parts.places[one.column], self._shifted(one.column))
                self._refresh(one.column)

    def _together(self, index: int) -> list[int]:
        pair = self._pairs.get(index)
        return [index] if pair is None else [index, pair.column if index == pair.source else pair.source]

    def _draw_equal(self, pair: EqualNumbers) -> None:
        """Draw two numbers that are equal in many rows: where they are, what both are there, and each elsewhere."""
        both = (pair.source, pair.column)
        can_be = self._is_regular(pair.source) & self._is_regular(pair.column)
        is_equal = self._drawn_equal(pair, can_be)
        self.parts.is_equal[pair.column] = is_equal
        self._learner.predictors.add_choice(pair.is_equal[self.rows].astype(np.int64), is_equal.astype(np.int64), 2)
        grids = [self.table.numbers[index].grid for index in both]
        groups = [self.rows[~pair.is_equal[self.rows] & (pair.can_be[self.rows] == one)] for one in (True, False)]
        shared: list[Ints] = []
        for index in both:
            is_own = self._is_regular(index)
            places = np.full(self.count, self.table.numbers[index].ordered[0])
            if index == pair.source:
                drawn = np.flatnonzero(is_own)
                ranks = np.zeros(self.count)
                ranks[drawn] = self._drawn_ranks(index, self._has_number(index), drawn)
                shared = pair.places(ranks[is_equal], self.rows, self.table.people, grids)
            else:
                drawn = np.flatnonzero(is_own & ~is_equal)
                held = self._has_number(index)
                ranks = np.zeros(self.count)
                ranks[drawn] = self._drawn_ranks(index, held[~pair.is_equal[self.rows][held]], drawn)
            for group, is_here in zip(groups, (can_be & ~is_equal, is_own & ~can_be), strict=True):
                places[is_here] = self._placed(index, ranks[is_here], group)
            places[is_equal] = shared[both.index(index)]
            if index == pair.column:
                new = np.flatnonzero(can_be & ~is_equal)
                source, column = self.numbers[pair.source][new], self.table.values_at(index, places[new])
                places[new] = places[new][pair.exchanged(source, column, self.random)]
            self._settle(index, places)

    def _drawn_equal(self, pair: EqualNumbers, can_be: Bools) -> Bools:
        """Draw in which new rows two numbers are equal, as often as in the table."""
        rows, new = np.flatnonzero(pair.can_be[self.rows]), np.flatnonzero(can_be)
        codes = pair.is_equal[self.rows][rows].astype(np.int64)
        scores = np.zeros(self.count)
        if len(rows) and len(new):
            numbers = codes.astype(np.float64)
            key = ("equal", pair.column)
            _, _, new_leaves = self._learner.leaves(key, rows, new, Response(codes, 2, numbers), numbers)
            shares = self._learner.shares(key, codes, 2, rows)[new_leaves]
            odds = np.log(np.maximum(shares[:, 1], 1e-9)) - np.log(np.maximum(shares[:, 0], 1e-9))
            scores[new] = odds + self.random.logistic(size=len(new))
        return pair.drawn(scores, can_be, self.rows, self.table.people, self.table.k)

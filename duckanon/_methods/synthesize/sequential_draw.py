"""New rows drawn one column after the other, each from a tree on the columns drawn before it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from scipy.special import ndtr

from duckanon._core.common.arrays import Bools, Floats, Ints
from duckanon._core.common.progress import Tell, silent
from duckanon._core.encoding.lookups import Lookup
from duckanon._methods.synthesize.allowed_cells import allowed_cells
from duckanon._methods.synthesize.coded_table import Parts
from duckanon._methods.synthesize.equal_numbers import EqualNumbers
from duckanon._methods.synthesize.implication_rules import Implications, Rows
from duckanon._methods.synthesize.leaf_draws import climbed, drawn_choices, drawn_ranks, noisy
from duckanon._methods.synthesize.leaf_learner import LeafLearner
from duckanon._methods.synthesize.orthogonal import apportioned
from duckanon._methods.synthesize.predictors import NO_NUMBER, first_component
from duckanon._methods.synthesize.redrawing import Redrawing
from duckanon._methods.synthesize.sequential_trees import Response

_MOST_REPLACED = 0.01  # of the rows, because a computed number is rare; the digits of others are moved
_NEAR = 20  # numbers inside of a limit, one of which replaces a number beyond it


@dataclass
class SequentialDraw:
    """New rows of a table, of which some columns are drawn.

    Attributes:
        rows: Those of its rows that the release may say something about.
        count: How many rows are drawn.
        implications: The rules that new rows keep.
        numbers: The regular numbers that are drawn, NaN where there is none.
        learner: Where trees come from; None: from these rows.
        is_impossible: The new rows of which a choice was drawn that breaks a rule, for want of one that does not.
    """

    table: Redrawing
    rows: Ints
    count: int
    leaf: int
    implications: Implications
    random: np.random.Generator
    parts: Parts = field(default_factory=lambda: Parts({}, {}, {}))
    numbers: dict[int, Floats] = field(default_factory=dict)
    learner: LeafLearner | None = None
    ranks_are_even: ClassVar[bool] = True  # whether only their order matters

    def __post_init__(self) -> None:
        """Split the rows that are learnt from."""
        self.original = self.table.original(self.rows)
        self.is_impossible: Bools = np.zeros(self.count, np.bool_)
        people = None if self.table.people is None else self.table.people[self.rows]
        self._learner = self.learner or LeafLearner(people, self.leaf, self.random)
        self._lookups = {lookup.column: lookup for lookup in self.table.lookups}
        self._pairs = {index: equal for equal in self.table.equal for index in (equal.source, equal.column)}

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
            tell(1 - len(waiting) / total)
        for one in self.table.computed:
            self.table.exchange(one, self.parts, self.rows, self.random)
        self._replace_broken()
        return self.parts

    def _is_ready(self, index: int) -> bool:
        """Tell whether the columns that decide a column, and the one it is equal to, are drawn or drawn with it."""
        together = self._together(index)
        for one in together:
            lookup = self._lookups.get(one)
            if lookup and not self._is_known(lookup) and (lookup.keys is not None or lookup.source not in together):
                return False
        return True

    def _draw(self, index: int) -> list[int]:
        """Draw a column, with the one that it is equal to in many rows; return which were drawn."""
        together = self._together(index)
        for one in together:
            self._draw_choice(one)
        pair = self._pairs.get(index)
        if pair is not None:
            self._draw_equal(pair)
        elif index in self.table.numbers:
            is_own = self._is_regular(index)
            ranks = self._drawn_ranks(index, self._has_number(index), np.flatnonzero(is_own))
            places = np.full(self.count, self.table.numbers[index].ordered[0])
            places[is_own] = self._placed(index, ranks, self.rows)
            self._settle(index, places)
        return together

    def _replace_broken(self) -> None:
        """Give new rows that break a rule numbers that do not or, where there are none, all values of another row.

        So are rows whose computed number is one of a few people's, which would have to be moved off the formula, where
        they are few: to replace many would change what is distributed how.
        """
        for index in {source for one in self.table.computed for source in one.formula.sources}:
            if index in self.numbers:
                self._keep_limits(index)
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

    def _refresh(self, index: int) -> None:
        """Read the numbers of a column again, after its places were exchanged."""
        values = self.table.values_at(index, self.parts.places[index])
        self.numbers[index] = np.where(self._is_regular(index), values, np.nan)

    def _together(self, index: int) -> list[int]:
        pair = self._pairs.get(index)
        return [index] if pair is None else [index, pair.column if index == pair.source else pair.source]

    def _is_known(self, lookup: Lookup) -> bool:
        is_number = lookup.keys is not None and lookup.source in self.table.numbers
        return lookup.source in (self.numbers if is_number else self.parts.codes)

    def _is_regular(self, index: int) -> Bools:
        return np.asarray(self.parts.codes[index] == len(self.table.columns[index].outcomes))

    def _has_number(self, index: int) -> Ints:
        return np.flatnonzero(self.table.numbers[index].is_regular[self.rows])

    def _draw_choice(self, index: int) -> None:
        """Draw the choices of a column, or look them up."""
        column, codes = self.table.columns[index], self.original.codes[index]
        lookup = self._lookups.get(index)
        if column.choices == 1:
            drawn: Ints = np.zeros(self.count, np.int64)
        elif lookup is not None and self._is_known(lookup):
            drawn = self.table.looked_up(lookup, self.parts)
        else:
            shares, cells = self._choice_cells(index)
            drawn = drawn_choices(shares, cells, self._wanted(index, shares, cells), self.random)
        drawn = self._continued(index, drawn, self.parts.codes)
        self.parts.codes[index] = drawn
        self._learner.predictors.add_choice(codes, drawn, column.choices)

    def _wanted(self, index: int, shares: Floats, cells: Ints) -> Ints:
        """Return how often each choice is to be drawn: in the shares of the table."""
        counts = np.bincount(self.original.codes[index], minlength=self.table.columns[index].choices)
        return apportioned(noisy(counts, self.table.k, self.random), self.count)

    def _choice_cells(self, index: int) -> tuple[Floats, Ints]:
        """Return the shares of choices by cell, and the cell of each new row: its leaf, and what rules allow there."""
        codes, choices = self.original.codes[index], self.table.columns[index].choices
        response = Response(codes, choices, codes.astype(np.float64))
        if index in self.table.wide:
            coordinates = self.table.wide[index].coordinates[codes]
            response, summary = Response(codes, 0, coordinates), coordinates[:, 0].astype(np.float64)
        else:
            summary = first_component(np.bincount(codes, minlength=choices))[codes]
        everybody = np.arange(len(self.rows))
        key = ("choice", index)
        tree, _, new = self._learner.leaves(key, everybody, np.arange(self.count), response, summary)
        parents = np.zeros(1, np.int64) if tree is None else tree.parents
        shares = self._learner.shares(key, codes, choices, everybody)
        limits = list(self.implications.choice_limits(index, Rows(self.parts.codes, self.numbers)))
        nodes, cells, allowed = allowed_cells(new, shares > 0, limits)
        found, is_possible = climbed(shares, nodes, allowed, parents)
        self.is_impossible |= ~is_possible[cells]
        return found, cells

    def _drawn_ranks(self, index: int, rows: Ints, new: Ints) -> Floats:
        """Draw ranks of a number for new rows, learnt from people who have one."""
        ranks = self._ranks(index)[rows]
        if len(rows) == 0 or len(new) == 0:
            return self.random.random(len(new))
        limits = self._limits(index, Rows(self.parts.codes, self.numbers), new)
        if limits is not None:
            values = self.table.values_at(index, self.table.numbers[index].ordered)  # as ranks are
            low, high = (np.searchsorted(values, limits[0], "left"), np.searchsorted(values, limits[1], "right"))
            limits = (low / len(values), np.maximum(low, high) / len(values))
        response = Response(np.zeros(len(rows), np.int64), 0, ranks)
        tree, leaves, new_leaves = self._learner.leaves(("number", index), rows, new, response, ranks)
        if tree is None and limits is None and self.ranks_are_even:
            return self.random.random(len(new))
        return drawn_ranks(leaves, ranks, new_leaves, limits, self.table.k / len(rows), self.random)

    def _continued(self, index: int, drawn: Ints, parts: dict[int, Ints]) -> Ints:
        """Return what was drawn, or what is known of a column."""
        return drawn

    def _limits(self, index: int, rows: Rows, among: Ints) -> tuple[Floats, Floats] | None:
        return self.implications.number_limits(index, rows, among)

    def _ranks(self, index: int) -> Floats:
        """Return the ranks of people's numbers, `NO_NUMBER` where there is none."""
        if index not in self._learner.ranks:
            held = self._has_number(index)
            ranks = np.full(len(self.rows), NO_NUMBER)
            ranks[held] = ndtr(self.table.numbers[index].normal_scores(self.original.places[index][held]))
            self._learner.ranks[index] = ranks
        return self._learner.ranks[index]

    def _placed(self, index: int, ranks: Floats, rows: Ints) -> Ints:
        return self.table.numbers[index].at_ranks(ranks, rows, self.table.people)

    def _settle(self, index: int, places: Ints) -> None:
        """Keep the places of a number, within the limits of rules, and make it a predictor."""
        self.parts.places[index] = self._continued(index, places, self.parts.places)
        self._refresh(index)
        self._keep_limits(index)
        self._predict_by(index)

    def _predict_by(self, index: int) -> None:
        """Make a number that is drawn a predictor."""
        scores = self.table.numbers[index].normal_scores(self.parts.places[index])
        self._learner.predictors.add_ranks(
            self._ranks(index), np.where(self._is_regular(index), ndtr(scores), NO_NUMBER)
        )

    def _keep_limits(self, index: int) -> None:
        """Replace numbers beyond the limits of rules by numbers of other new rows, near the limit."""
        self._refresh(index)
        others = {one: values for one, values in self.numbers.items() if one != index}
        own = np.flatnonzero(~np.isnan(self.numbers[index]))
        limits = self._limits(index, Rows(self.parts.codes, others), own)
        if limits is None:
            return
        values = self.numbers[index][own]
        is_low, is_high = values < limits[0], values > limits[1]
        for equal in self.table.equal:
            if index in (equal.source, equal.column) and equal.column in self.parts.is_equal:
                is_low &= ~self.parts.is_equal[equal.column][own]
                is_high &= ~self.parts.is_equal[equal.column][own]
        order = own[np.argsort(values, kind="stable")]
        ordered = self.numbers[index][order]
        start, end = np.searchsorted(ordered, limits[0], "left"), np.searchsorted(ordered, limits[1], "right")
        moved = np.flatnonzero((is_low | is_high) & (start < end))
        apart = self.random.integers(0, np.minimum(_NEAR, end[moved] - start[moved]))
        taken = order[np.where(is_low[moved], start[moved] + apart, end[moved] - 1 - apart)]
        places = self.parts.places[index].copy()
        self.parts.places[index][own[moved]] = places[taken]
        self._refresh(index)

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

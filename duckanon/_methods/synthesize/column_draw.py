"""What one column of new rows is drawn from: trees on the columns before it, rules, and numbers that many share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from scipy.special import ndtr

from duckanon._core.common.arrays import Bools, Floats, Ints
from duckanon._core.encoding.lookups import Lookup
from duckanon._methods.synthesize.allowed_cells import allowed_cells
from duckanon._methods.synthesize.coded_table import Parts
from duckanon._methods.synthesize.implication_rules import Implications, Rows
from duckanon._methods.synthesize.leaf_draws import climbed, drawn_choices, drawn_ranks, noisy
from duckanon._methods.synthesize.leaf_learner import LeafLearner
from duckanon._methods.synthesize.leaf_lines import leaf_lines
from duckanon._methods.synthesize.limit_exchanges import exchanged_within
from duckanon._methods.synthesize.orthogonal import apportioned
from duckanon._methods.synthesize.predictors import NO_NUMBER, first_component
from duckanon._methods.synthesize.redrawing import Redrawing
from duckanon._methods.synthesize.sequential_trees import Response
from duckanon._methods.synthesize.shifted_numbers import placed_values, shifted_values

_NEAR = 20  # numbers inside of a limit, one of which replaces a number beyond it


@dataclass
class ColumnDraw:
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
        """Look at whose rows are learnt from."""
        self.is_impossible: Bools = np.zeros(self.count, np.bool_)
        people = None if self.table.people is None else self.table.people[self.rows]
        self._learner = self.learner or LeafLearner(people, self.leaf, self.random)
        self._lookups = {lookup.column: lookup for lookup in self.table.lookups}
        self._pairs = {index: equal for equal in self.table.equal for index in (equal.source, equal.column)}

    def _shifted(self, index: int) -> Floats:
        """Return the numbers of a column that are those of another drawn one plus a constant, NaN elsewhere."""
        return shifted_values(self.table.offsets, index, self.numbers, self._is_regular(index))

    def _place_shifted(self, index: int, places: Ints, values: Floats) -> None:
        """Write the places of numbers that follow from another column; rows that have no such number are replaced."""
        known = np.flatnonzero(~np.isnan(values))
        if len(known):
            places[known], is_wrong = placed_values(self.table.numbers[index], self.table.columns[index], values[known])
            self.is_impossible[known] |= is_wrong

    def _refresh(self, index: int) -> None:
        """Read the numbers of a column again, after its places were exchanged."""
        values = self.table.values_at(index, self.parts.places[index])
        self.numbers[index] = np.where(self._is_regular(index), values, np.nan)

    def _is_known(self, lookup: Lookup) -> bool:
        is_number = lookup.keys is not None and lookup.source in self.table.numbers
        return lookup.source in (self.numbers if is_number else self.parts.codes)

    def _is_regular(self, index: int) -> Bools:
        return np.asarray(self.parts.codes[index] == len(self.table.columns[index].outcomes))

    def _has_number(self, index: int) -> Ints:
        return np.flatnonzero(self.table.numbers[index].is_regular[self.rows])

    def _codes(self, index: int) -> Ints:
        """Return the choices of people."""
        return self.table.columns[index].codes[self.rows]

    def _draw_choice(self, index: int) -> None:
        """Draw the choices of a column, or look them up."""
        column = self.table.columns[index]
        lookup = self._lookups.get(index)
        if column.choices == 1:
            drawn: Ints = np.zeros(self.count, np.int64)
        elif lookup is not None and self._is_known(lookup):
            drawn = self.table.looked_up(lookup, self.parts)
        else:
            drawn = self._drawn_choices(index, *self._choice_cells(index))
        drawn = self._continued(index, drawn, self.parts.codes)
        self.parts.codes[index] = drawn
        if column.choices > 1:
            self._learner.predictors.add_choice(self._codes(index), drawn, column.choices)

    def _drawn_choices(self, index: int, shares: Floats, cells: Ints) -> Ints:
        return drawn_choices(shares, cells, self._wanted(index, shares, cells), self.random)

    def _wanted(self, index: int, shares: Floats, cells: Ints) -> Ints:
        """Return how often each choice is to be drawn: in the shares of the table."""
        counts = np.bincount(self._codes(index), minlength=self.table.columns[index].choices)
        return apportioned(noisy(counts, self.table.k, self.random), self.count)

    def _choice_cells(self, index: int) -> tuple[Floats, Ints]:
        """Return the shares of choices by cell, and the cell of each new row: its leaf, and what rules allow there."""
        codes, choices = self._codes(index), self.table.columns[index].choices
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
        jitter = self.table.k / len(rows)
        fits = leaf_lines(self._learner.predictors, rows, new, leaves, new_leaves, ranks, jitter / 12**0.5)
        return drawn_ranks(leaves, ranks, new_leaves, limits, jitter, self.random, fits)

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
            numbers = self.table.numbers[index]
            ranks[held] = ndtr(numbers.normal_scores(numbers.places[self.rows[held]]))
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
        """Exchange numbers beyond the limits of rules; where that fails, take another row's near the limit."""
        self._refresh(index)
        others = {one: values for one, values in self.numbers.items() if one != index}
        own = np.flatnonzero(~np.isnan(self.numbers[index]))
        limits = self._limits(index, Rows(self.parts.codes, others), own)
        if limits is None:
            return
        is_free = np.isnan(self._shifted(index))[own]
        for equal in self.table.equal:
            if index in (equal.source, equal.column) and equal.column in self.parts.is_equal:
                is_free &= ~self.parts.is_equal[equal.column][own]
        taken_from, is_beyond = exchanged_within(self.numbers[index][own], *limits, is_free, self.random)
        self.parts.places[index][own] = self.parts.places[index][own[taken_from]]
        self._refresh(index)
        values = self.numbers[index][own]
        order = own[np.argsort(values, kind="stable")]
        ordered = self.numbers[index][order]
        start, end = np.searchsorted(ordered, limits[0], "left"), np.searchsorted(ordered, limits[1], "right")
        moved = np.flatnonzero(is_beyond & (start < end))
        apart = self.random.integers(0, np.minimum(_NEAR, end[moved] - start[moved]))
        is_low = values[moved] < limits[0][moved]
        taken = order[np.where(is_low, start[moved] + apart, end[moved] - 1 - apart)]
        self.parts.places[index][own[moved]] = self.parts.places[index][taken]
        self._refresh(index)

"""One column of new rows: a tree on the columns drawn before it, rules, and numbers that many people share.

`ColumnDraw` draws the choices of a column from the leaves of its tree, and the numbers by their ranks in the leaves.
Rules (`implications`) divide the leaves into cells, in each of which the same choices are allowed (`divide_cells`).
Numbers beyond the limit of a rule are exchanged with rows near the limit that may have them, so that the distribution
of the column stays (`exchange_within_limits`); drawing them again would move it. Rows that still break a rule are
marked, and replaced in the end by `SequentialDraw`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from scipy.special import ndtr

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Floats, Ints
from duckanon._core.encoding.formulas import Lookup
from duckanon._methods.synthesize.coded_table import Parts
from duckanon._methods.synthesize.equal_numbers import add_offsets, place_values
from duckanon._methods.synthesize.implications import Implications, RuleRows
from duckanon._methods.synthesize.leaf_draws import (
    NO_NUMBER,
    add_noise,
    draw_choices,
    draw_ranks,
    find_first_component,
    fit_lines,
    restrict_shares,
)
from duckanon._methods.synthesize.leaf_learner import LeafLearner, Response
from duckanon._methods.synthesize.orthogonal import apportion
from duckanon._methods.synthesize.redrawing import Redrawing

_MOST = 4_000_000  # cells times choices: where rules divide leaves further, rows that break one are replaced in the end


def divide_cells(leaves: Ints, has_choice: Bools, limits: Sequence[tuple[Ints, Bools]]) -> tuple[Ints, Ints, Bools]:
    """Divide the rows of each leaf by the choices that rules allow, as far as there is memory for them.

    Args:
        leaves: The leaf of each row, a node of the tree.
        has_choice: Which choices each node has: rules about others divide no leaf.
        limits: For each rule the class of each row, -1 for none, and the choices that each class may have.

    Returns:
        The node of each cell, the cell of each row, and the choices that each cell may have.
    """
    nodes, cells = np.unique(leaves, return_inverse=True)
    allowed = np.ones((len(nodes), has_choice.shape[1]), np.bool_)
    for classes, table in limits:
        tables, kind = np.unique(np.vstack([table, np.ones_like(table[:1])]), axis=0, return_inverse=True)
        kinds = kind.ravel()[classes]  # that of class -1 is the last, which may have any
        pairs, places = np.unique(cells * len(tables) + kinds, return_inverse=True)
        if len(pairs) * has_choice.shape[1] > _MOST:
            continue
        cells = places
        before, kinds = pairs // len(tables), pairs % len(tables)
        nodes, allowed = nodes[before], allowed[before] & tables[kinds]
        possible = allowed & has_choice[nodes]
        possible = np.where(possible.any(axis=1, keepdims=True), possible, allowed)
        keys = np.column_stack([nodes, np.packbits(possible, axis=1)])
        _, first, merged = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        nodes, allowed, cells = nodes[first], possible[first], merged.ravel()[cells]
    return nodes, cells, allowed


_ROUNDS = 40
_NEAR_LIMIT = 20  # numbers inside of a limit in the first round, more in each later one, one of which is exchanged


def exchange_within_limits(
    values: Floats, low: Floats, high: Floats, movable: Bools, random: np.random.Generator
) -> tuple[Ints, Bools]:
    """Exchange numbers beyond their row's limits for numbers of other rows, near the limit, that may have them.

    Args:
        values: The numbers of the rows.
        low, high: The lowest and the highest number that each row may have.
        movable: The rows whose numbers may be exchanged.
        random: Where chance comes from.

    Returns:
        The row whose number each row gets, and the movable rows that are beyond a limit still.
    """
    taken_from, holder = np.arange(len(values)), np.argsort(values, kind="stable")
    rank = np.empty_like(holder)
    rank[holder] = np.arange(len(holder))
    ordered = values[holder]
    start, end = np.searchsorted(ordered, low, "left"), np.searchsorted(ordered, high, "right")
    is_beyond = movable & ((rank < start) | (rank >= end))
    for number in range(1, _ROUNDS + 1):
        bad = np.flatnonzero(is_beyond & (start < end))
        if not len(bad):
            break
        progress.check()
        apart = random.integers(0, np.minimum(_NEAR_LIMIT * number, end[bad] - start[bad]))
        partners = holder[np.where(rank[bad] < start[bad], start[bad] + apart, end[bad] - 1 - apart)]
        partners, first = np.unique(partners, return_index=True)
        bad = bad[first]
        may = movable[partners] & ~is_beyond[partners] & (rank[bad] >= start[partners]) & (rank[bad] < end[partners])
        bad, partners = bad[may], partners[may]
        for array in (rank, taken_from):
            array[bad], array[partners] = array[partners], array[bad].copy()
        holder[rank[bad]], holder[rank[partners]] = bad, partners
        is_beyond[bad] = False
    return taken_from, is_beyond


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
        """Prepare what all columns need."""
        self.is_impossible: Bools = np.zeros(self.count, np.bool_)
        people = None if self.table.people is None else self.table.people[self.rows]
        self._learner = self.learner or LeafLearner(people, self.leaf, self.random)
        self._lookups = {lookup.column: lookup for lookup in self.table.lookups}
        self._pairs = {index: equal for equal in self.table.equal for index in (equal.source, equal.column)}

    def _add_offsets(self, index: int) -> Floats:
        """Return the numbers of a column that are those of another drawn one plus a constant, NaN elsewhere."""
        return add_offsets(self.table.offsets, index, self.numbers, self._is_regular(index))

    def _place_offsets(self, index: int, places: Ints, values: Floats) -> None:
        """Write the places of numbers that follow from another column; rows that have no such number are replaced."""
        known = np.flatnonzero(~np.isnan(values))
        if len(known):
            places[known], is_wrong = place_values(self.table.numbers[index], self.table.columns[index], values[known])
            self.is_impossible[known] |= is_wrong

    def _read_numbers(self, index: int) -> None:
        """Read the numbers of a column again, after its places were exchanged."""
        values = self.table.values_at(index, self.parts.places[index])
        self.numbers[index] = np.where(self._is_regular(index), values, np.nan)

    def _has_source(self, lookup: Lookup) -> bool:
        is_number = lookup.keys is not None and lookup.source in self.table.numbers
        return lookup.source in (self.numbers if is_number else self.parts.codes)

    def _is_regular(self, index: int) -> Bools:
        return np.asarray(self.parts.codes[index] == len(self.table.columns[index].outcomes))

    def _rows_with_number(self, index: int) -> Ints:
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
        elif lookup is not None and self._has_source(lookup):
            drawn = self.table.look_up(lookup, self.parts)
        else:
            drawn = self._draw_from_shares(index, *self._choice_cells(index))
        drawn = self._continue(index, drawn, self.parts.codes)
        self.parts.codes[index] = drawn
        if column.choices > 1:
            self._learner.predictors.add_choice(self._codes(index), drawn, column.choices)

    def _draw_from_shares(self, index: int, shares: Floats, cells: Ints) -> Ints:
        return draw_choices(shares, cells, self._count_choices(index, shares, cells), self.random)

    def _count_choices(self, index: int, shares: Floats, cells: Ints) -> Ints:
        """Return how often each choice is to be drawn: in the shares of the table."""
        counts = np.bincount(self._codes(index), minlength=self.table.columns[index].choices)
        return apportion(add_noise(counts, self.table.k, self.random), self.count)

    def _choice_cells(self, index: int) -> tuple[Floats, Ints]:
        """Return the shares of choices by cell, and the cell of each new row: its leaf, and what rules allow there."""
        codes, choices = self._codes(index), self.table.columns[index].choices
        response = Response(codes, choices, codes.astype(np.float64))
        if index in self.table.wide:
            coordinates = self.table.wide[index].coordinates[codes]
            response, summary = Response(codes, 0, coordinates), coordinates[:, 0].astype(np.float64)
        else:
            summary = find_first_component(np.bincount(codes, minlength=choices))[codes]
        everybody = np.arange(len(self.rows))
        key = ("choice", index)
        tree, _, new = self._learner.leaves(key, everybody, np.arange(self.count), response, summary)
        parents = np.zeros(1, np.int64) if tree is None else tree.parents
        shares = self._learner.shares(key, codes, choices, everybody)
        limits = list(self.implications.choice_limits(index, RuleRows(self.parts.codes, self.numbers)))
        nodes, cells, allowed = divide_cells(new, shares > 0, limits)
        of_cells, is_possible = restrict_shares(shares, nodes, allowed, parents)
        self.is_impossible |= ~is_possible[cells]
        return of_cells, cells

    def _draw_ranks(self, index: int, rows: Ints, new: Ints) -> Floats:
        """Draw ranks of a number for new rows, learnt from people who have one."""
        ranks = self._ranks(index)[rows]
        if len(rows) == 0 or len(new) == 0:
            return self.random.random(len(new))
        limits = self._limits(index, RuleRows(self.parts.codes, self.numbers), new)
        if limits is not None:
            values = self.table.values_at(index, self.table.numbers[index].ordered)  # as ranks are
            low, high = (np.searchsorted(values, limits[0], "left"), np.searchsorted(values, limits[1], "right"))
            limits = (low / len(values), np.maximum(low, high) / len(values))
        response = Response(np.zeros(len(rows), np.int64), 0, ranks)
        tree, leaves, new_leaves = self._learner.leaves(("number", index), rows, new, response, ranks)
        if tree is None and limits is None and self.ranks_are_even:
            return self.random.random(len(new))
        jitter = self.table.k / len(rows)
        fits = fit_lines(self._learner.predictors, rows, new, leaves, new_leaves, ranks, jitter / 12**0.5)
        return draw_ranks(leaves, ranks, new_leaves, limits, jitter, self.random, fits)

    def _continue(self, index: int, drawn: Ints, parts: dict[int, Ints]) -> Ints:
        """Return what was drawn, or what is known of a column."""
        return drawn

    def _limits(self, index: int, rows: RuleRows, among: Ints) -> tuple[Floats, Floats] | None:
        return self.implications.number_limits(index, rows, among)

    def _ranks(self, index: int) -> Floats:
        """Return the ranks of people's numbers, `NO_NUMBER` where there is none."""
        if index not in self._learner.ranks:
            held = self._rows_with_number(index)
            ranks = np.full(len(self.rows), NO_NUMBER)
            numbers = self.table.numbers[index]
            ranks[held] = ndtr(numbers.normal_scores(numbers.places[self.rows[held]]))
            self._learner.ranks[index] = ranks
        return self._learner.ranks[index]

    def _place_ranks(self, index: int, ranks: Floats, rows: Ints) -> Ints:
        return self.table.numbers[index].at_ranks(ranks, rows, self.table.people)

    def _settle(self, index: int, places: Ints) -> None:
        """Keep the places of a number, within the limits of rules, and make it a predictor."""
        self.parts.places[index] = self._continue(index, places, self.parts.places)
        self._read_numbers(index)
        self._keep_limits(index)
        self._add_predictor(index)

    def _add_predictor(self, index: int) -> None:
        """Make a number that is drawn a predictor."""
        scores = self.table.numbers[index].normal_scores(self.parts.places[index])
        self._learner.predictors.add_ranks(
            self._ranks(index), np.where(self._is_regular(index), ndtr(scores), NO_NUMBER)
        )

    def _keep_limits(self, index: int) -> None:
        """Exchange numbers beyond the limits of rules; where that fails, take another row's near the limit."""
        self._read_numbers(index)
        other_numbers = {one: values for one, values in self.numbers.items() if one != index}
        rows = np.flatnonzero(~np.isnan(self.numbers[index]))
        limits = self._limits(index, RuleRows(self.parts.codes, other_numbers), rows)
        if limits is None:
            return
        is_free = np.isnan(self._add_offsets(index))[rows]
        for equal in self.table.equal:
            if index in (equal.source, equal.column) and equal.column in self.parts.is_equal:
                is_free &= ~self.parts.is_equal[equal.column][rows]
        taken_from, is_beyond = exchange_within_limits(self.numbers[index][rows], *limits, is_free, self.random)
        self.parts.places[index][rows] = self.parts.places[index][rows[taken_from]]
        self._read_numbers(index)
        values = self.numbers[index][rows]
        order = rows[np.argsort(values, kind="stable")]
        ordered = self.numbers[index][order]
        start, end = np.searchsorted(ordered, limits[0], "left"), np.searchsorted(ordered, limits[1], "right")
        moved = np.flatnonzero(is_beyond & (start < end))
        apart = self.random.integers(0, np.minimum(_NEAR, end[moved] - start[moved]))
        is_low = values[moved] < limits[0][moved]
        taken = order[np.where(is_low, start[moved] + apart, end[moved] - 1 - apart)]
        self.parts.places[index][rows[moved]] = self.parts.places[index][taken]
        self._read_numbers(index)

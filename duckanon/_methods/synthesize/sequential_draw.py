"""New rows drawn one column after the other, each from a tree on the columns drawn before it.

`SequentialDraw` takes columns in the order of the table, those that others decide after these, computed ones last; in
the end it replaces rows that break a rule. `ConditionalDraw` draws columns beside others that are there already, as
often as the leaves say: rows that continue few others need not be distributed as all are. Choices that follow those of
the last row get each transition as often as the table has it, whatever the trees found worth a split
(`fit_transitions`). `Stage` is one step of this kind, for people or for their next row, with trees kept by group.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Floats, Ints
from duckanon._core.common.people import count_people
from duckanon._core.encoding.formulas import find_offsets
from duckanon._core.encoding.parts import ColumnParts
from duckanon._methods.releasable.safe_numbers import SafeNumbers
from duckanon._methods.synthesize.coded_table import Parts
from duckanon._methods.synthesize.column_draw import ColumnDraw
from duckanon._methods.synthesize.equal_numbers import EqualNumbers, find_rows_apart
from duckanon._methods.synthesize.implications import RuleRows
from duckanon._methods.synthesize.leaf_draws import FEWEST, add_noise, draw_choices, round_by_chance
from duckanon._methods.synthesize.leaf_learner import LeafLearner, Response
from duckanon._methods.synthesize.redrawing import Redrawing, WholeTable
from duckanon._methods.synthesize.sequence_columns import encode_numbers

_MOST_REPLACED = 0.01  # of the rows, because a computed number is rare; the digits of others are moved


@dataclass
class SequentialDraw(ColumnDraw):
    """New rows of a table, drawn column by column; what each column needs is in `ColumnDraw`."""

    def run(self) -> Parts:
        """Draw all columns: in the order of the table, those that others decide after these, computed ones last."""
        computed = {computed_column.formula.column for computed_column in self.table.computed}
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
            progress.advance(1 - len(waiting) / total)
        for computed_column in self.table.computed:
            self.table.exchange(computed_column, self.parts, self.rows, self.random, to_hold=True)
        for index in self.numbers if self.table.computed else ():
            self._read_numbers(index)
        self._mend_rows()
        return self.parts

    def _is_ready(self, index: int) -> bool:
        """Tell whether the columns that decide a column, and the one it is equal to, are drawn or drawn with it."""
        together = self._together(index)
        for column in together:
            lookup = self._lookups.get(column)
            if lookup and not self._has_source(lookup) and (lookup.keys is not None or lookup.source not in together):
                return False
        return all(column.sources[0] in self.numbers for column in self.table.offsets if column.column == index)

    def _draw(self, index: int) -> list[int]:
        """Draw a column, with the one that it is equal to in many rows; return which were drawn."""
        together = self._together(index)
        for column in together:
            self._draw_choice(column)
        pair = self._pairs.get(index)
        if pair is not None:
            self._draw_equal(pair)
        elif index in self.table.numbers:
            values = self._add_offsets(index)
            is_own = self._is_regular(index) & np.isnan(values)
            ranks = self._draw_ranks(index, self._rows_with_number(index), np.flatnonzero(is_own))
            places = np.full(self.count, self.table.numbers[index].ordered[0])
            places[is_own] = self._place_ranks(
                index, ranks, find_rows_apart(self.table.offsets, index, self.table.numbers, self.numbers, self.rows)
            )
            self._place_offsets(index, places, values)
            self._settle(index, places)
        return together

    def _mend_rows(self) -> None:
        """Give new rows that break a rule numbers that do not or, where there are none, all values of another row.

        So are rows whose computed number is one of a few people's, which would have to be moved off the formula, where
        they are few: to replace many would change what is distributed how.
        """
        self._settle_sources()
        is_bad = self.is_impossible | self.implications.is_broken(RuleRows(self.parts.codes, self.numbers))
        for computed_column in self.table.computed:
            is_rare = self.table.has_rare(computed_column, self.parts)
            if is_rare.mean() <= _MOST_REPLACED:
                is_bad |= is_rare
        bad, good = np.flatnonzero(is_bad), np.flatnonzero(~is_bad)
        if len(bad) and len(good):
            donors = self.random.choice(good, len(bad))
            for arrays in (self.parts.codes, self.parts.places, self.parts.is_equal, self.numbers):
                for values in arrays.values():
                    values[bad] = values[donors]

    def _settle_sources(self) -> None:
        """Bring the sources of computed numbers within their limits again, and restore constant offsets."""
        for index in {source for offset in self.table.computed for source in offset.formula.sources}:
            if index in self.numbers and index not in self.table.context:
                self._keep_limits(index)
        for offset in self.table.offsets:
            if offset.column in self.numbers and offset.column not in self.table.context:
                self._place_offsets(offset.column, self.parts.places[offset.column], self._add_offsets(offset.column))
                self._read_numbers(offset.column)

    def _together(self, index: int) -> list[int]:
        pair = self._pairs.get(index)
        return [index] if pair is None else [index, pair.column if index == pair.source else pair.source]

    def _draw_equal(self, pair: EqualNumbers) -> None:
        """Draw two numbers that are equal in many rows: where they are, what both are there, and each elsewhere."""
        both = (pair.source, pair.column)
        can_be = self._is_regular(pair.source) & self._is_regular(pair.column)
        is_equal = self._draw_equality(pair, can_be)
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
                ranks[drawn] = self._draw_ranks(index, self._rows_with_number(index), drawn)
                shared = pair.places(ranks[is_equal], self.rows, self.table.people, grids)
            else:
                drawn = np.flatnonzero(is_own & ~is_equal)
                held = self._rows_with_number(index)
                ranks = np.zeros(self.count)
                ranks[drawn] = self._draw_ranks(index, held[~pair.is_equal[self.rows][held]], drawn)
            for group, is_here in zip(groups, (can_be & ~is_equal, is_own & ~can_be), strict=True):
                places[is_here] = self._place_ranks(index, ranks[is_here], group)
            places[is_equal] = shared[both.index(index)]
            if index == pair.column:
                new = np.flatnonzero(can_be & ~is_equal)
                source, column = self.numbers[pair.source][new], self.table.values_at(index, places[new])
                places[new] = places[new][pair.exchange(source, column, self.random)]
            self._settle(index, places)

    def _draw_equality(self, pair: EqualNumbers, can_be: Bools) -> Bools:
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
        return pair.draw(scores, can_be, self.rows, self.table.people, self.table.k)


MOST_CHOICES = 16
"""Choices of a column up to which transitions are counted: of more, most are made by few people."""
_ROUNDS = 20
_WIDEST = 4.0  # times as often, or as seldom, as a tree says


def fit_transitions(
    last: Ints, following: Ints, people: Ints, leaves: Ints, shares: Floats, k: int, random: np.random.Generator
) -> Floats:
    """Return by how much the share of each choice is multiplied, given the choice of the last row.

    A tree leaves out what may be chance. Its shares times these factors give every transition as often as the table
    has it; where few people make it, with noise, and as the tree says where fewer than three do.

    Args:
        last, following: The choices of the last rows and of those that follow.
        people: The person of each row.
        leaves: The leaf of each row.
        shares: Those of choices, by leaf.
        k: Transitions of fewer than 3 k people get noise.
        random: Where chance comes from.
    """
    lasts, choices = int(last.max(initial=0)) + 1, shares.shape[1]
    pairs = last * choices + following
    counts = np.bincount(pairs, minlength=lasts * choices)
    is_few = count_people(pairs, people, lasts * choices).reshape(lasts, choices) < FEWEST
    wanted = add_noise(counts, k, random).reshape(lasts, choices).astype(np.float64)
    cells, cell_of_row = np.unique(leaves * lasts + last, return_inverse=True)
    sizes, of_leaf, of_last = np.bincount(cell_of_row), shares[cells // lasts], cells % lasts
    factors: Floats = np.ones((lasts, choices))
    for _ in range(_ROUNDS):
        expected = of_leaf * factors[of_last]
        expected *= (sizes / np.maximum(expected.sum(axis=1), 1e-12))[:, None]
        sums = np.zeros((lasts, choices))
        np.add.at(sums, of_last, expected)
        wider = factors * wanted / np.maximum(sums, 1e-12)
        factors = np.where(is_few | (sums <= 0), factors, np.clip(wider, 1 / _WIDEST, _WIDEST))
    return factors


def draw_transitions(shares: Floats, cells: Ints, last: Ints, random: np.random.Generator) -> Ints:
    """Draw a choice for every row, after each choice of the last row as often as is expected there.

    Args:
        shares: Of choices, by cell; at least one is positive in each.
        cells: The cell of each row.
        last: The choice of the last row.
        random: Where chance comes from.
    """
    codes: Ints = np.empty(len(cells), np.int64)
    for choice in np.unique(last).tolist():
        here = np.flatnonzero(last == choice)
        names, cell_of_row = np.unique(cells[here], return_inverse=True)
        shares_here = shares[names] / shares[names].sum(axis=1, keepdims=True)
        wanted = round_by_chance(np.bincount(cell_of_row) @ shares_here, len(here), random)
        codes[here] = draw_choices(shares_here, cell_of_row, wanted, random)
    return codes


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

    context: Parts = field(default_factory=lambda: Parts({}, {}, {}))
    quantiles: Mapping[int, Callable[[Floats], Ints]] = field(default_factory=dict)
    highest: Mapping[int, Floats] = field(default_factory=dict)
    same: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    last: Mapping[int, int] = field(default_factory=dict)
    ranks_are_even = False

    def run(self) -> Parts:
        """Take the columns that are given, and draw the others; rows that break a rule are `is_impossible`."""
        for index, codes in self.context.codes.items():
            self.parts.codes[index] = codes
            self._learner.predictors.add_choice(self._codes(index), codes, self.table.columns[index].choices)
            if index in self.table.numbers:
                self.parts.places[index] = self.context.places[index].copy()
                self._read_numbers(index)
                self._add_predictor(index)
        return super().run()

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
            leaves, person_of_row = self._learner.trees[key].leaves, self.table.people[self.rows]
            last = self._codes(self.last[index])
            factors[index] = fit_transitions(last, codes, person_of_row, leaves, shares, self.table.k, self.random)
        return factors[index]

    def _last_choices(self, index: int) -> Ints:
        """Return the choices of the last rows; choices that no source person made count as the first."""
        last = self.parts.codes[self.last[index]]
        return np.where(last < len(self._factors(index)), last, 0)

    def _draw_from_shares(self, index: int, shares: Floats, cells: Ints) -> Ints:
        if index not in self.last:
            return super()._draw_from_shares(index, shares, cells)
        return draw_transitions(shares, cells, self._last_choices(index), self.random)

    def _count_choices(self, index: int, shares: Floats, cells: Ints) -> Ints:
        sizes = np.bincount(cells, minlength=len(shares))
        return round_by_chance(sizes @ (shares / shares.sum(axis=1, keepdims=True)), self.count, self.random)

    def _continue(self, index: int, drawn: Ints, parts: dict[int, Ints]) -> Ints:
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
                ranks = self._draw_ranks(index, self._rows_with_number(index), again)
                places[again] = self._place_ranks(index, ranks, self.rows)
        super()._settle(index, places)

    def _place_ranks(self, index: int, ranks: Floats, rows: Ints) -> Ints:
        return self.quantiles[index](ranks) if index in self.quantiles else super()._place_ranks(index, ranks, rows)

    def _limits(self, index: int, rows: RuleRows, among: Ints) -> tuple[Floats, Floats] | None:
        limits = super()._limits(index, rows, among)
        if index not in self.highest:
            return limits
        low, high = limits or (np.full(len(among), -np.inf), np.full(len(among), np.inf))
        return low, np.minimum(high, self.highest[index][among])

    def _mend_rows(self) -> None:
        """Mark the rows that break a rule: the values of another row would not continue what is given."""
        self._settle_sources()
        for index, highest in self.highest.items():
            self.is_impossible |= self.numbers[index] > highest
        self.is_impossible |= self.implications.is_broken(RuleRows(self.parts.codes, self.numbers))


StageCells: TypeAlias = dict[str, tuple[Ints, Ints]]
"""The choices of new rows, and the places of their numbers, by the key of a column."""


class StageColumn(NamedTuple):
    """A column of a stage.

    Attributes:
        key: Its name among the columns of all stages.
        part: Its rows.
        whole: The column of the table that these are rows of.
        people: The person of each row of the table.
        numbers: Those of the table; None for a choice.
    """

    key: str
    part: ColumnParts
    whole: ColumnParts
    people: Ints | None
    numbers: SafeNumbers | None


class Repeats(NamedTuple):
    """What rows repeat of the rows before them, by key: `same` and `last` of `ConditionalDraw`."""

    same: Mapping[str, tuple[str, str]]
    last: Mapping[str, str]


class Stage:
    """Draws columns, given others."""

    def __init__(
        self,
        context: Sequence[StageColumn],
        drawn: Sequence[StageColumn],
        people: Ints | None,
        leaf: int,
        k: int,
        derived: str,
        random: np.random.Generator,
        repeats: Repeats | None = None,
    ) -> None:
        """Find out what follows from what, and which rules hold."""
        self._columns = [*context, *drawn]
        self._drawn = range(len(context), len(self._columns))
        self._context = range(len(context))
        self._index = {column.key: index for index, column in enumerate(self._columns)}
        same, last = repeats or Repeats({}, {})
        self._same = {
            self._index[key]: (self._index[flag], self._index[before]) for key, (flag, before) in same.items()
        }
        self._last = {self._index[key]: self._index[before] for key, before in last.items()}
        self._leaf, self._random = leaf, random
        parts = [one.part for one in self._columns]
        offsets = find_offsets(parts, people, k, FEWEST - 1, self._context) if derived == "auto" else []
        self.table = Redrawing.of(
            parts,
            people,
            k,
            derived,
            random,
            WholeTable(
                [(column.whole, column.people) for column in self._columns],
                {index: column.numbers for index, column in enumerate(self._columns) if column.numbers is not None},
                frozenset(self._context),
            ),
            offsets,
        )
        self._rules = self.table.find_rules(derived)
        self._learners: dict[int, LeafLearner] = {}

    @property
    def least(self) -> dict[str, int]:
        """The least number of people who share a released value, by the key of a column that is computed."""
        return {self._columns[one.formula.column].key: one.least for one in self.table.computed}

    def draw(
        self,
        group: int,
        rows: Ints,
        count: int,
        cells: Mapping[str, tuple[Ints, Ints]],
        quantiles: Mapping[str, Callable[[Floats], Ints]],
        highest: Mapping[str, Floats],
    ) -> tuple[StageCells, Bools]:
        """Draw new rows.

        Args:
            group: A number for the rows that are learnt from: trees are grown once for each.
            rows: These rows.
            count: How many rows are drawn.
            cells: The columns that are given.
            quantiles: The places of numbers at levels, where columns are given.
            highest: The largest number that each new row may have.

        Returns:
            The columns that are drawn, and the rows that break a rule.
        """
        index_of = self._index
        context = Parts({}, {}, {})
        for index in self._context:
            context.codes[index], context.places[index] = cells[self._columns[index].key]
        if len(self._context):
            if group not in self._learners:
                person_of_row = None if self.table.people is None else self.table.people[rows]
                self._learners[group] = LeafLearner(person_of_row, self._leaf, self._random)
            draw: SequentialDraw = ConditionalDraw(
                self.table,
                rows,
                count,
                self._leaf,
                self._rules,
                self._random,
                learner=self._learners[group].again(),
                context=context,
                quantiles={index_of[key]: one for key, one in quantiles.items() if key in index_of},
                highest={index_of[key]: one for key, one in highest.items() if key in index_of},
                same=self._same,
                last=self._last,
            )
        else:
            draw = SequentialDraw(self.table, rows, count, self._leaf, self._rules, self._random)
        parts = draw.run()
        arrays = self.table.arrays(parts, [one.formula.column for one in self.table.computed])
        drawn: StageCells = {}
        for index in self._drawn:
            column = self._columns[index]
            if index in arrays:
                assert column.numbers is not None
                drawn[column.key] = encode_numbers(column.part, column.numbers, arrays[index])
            else:
                drawn[column.key] = parts.codes[index], parts.places.get(index, parts.codes[index])
        return drawn, draw.is_impossible

"""A table redrawn: its parts as a matrix, new rows in clusters, and back to parts shared by at least k people.

`Redrawing.of` sorts the columns into what is drawn and what follows from it: numbers computed by formulas, choices
looked up from others, numbers equal to others. Numbers computed from drawn ones may be those of a few people; moving
them would break the formula, so the numbers of a source are exchanged between rows of near ranks until the computed
column has no rare value, and then until it is distributed as it was. `Redrawing.redraw` is the orthogonal variant of
spectral anonymization (Perkonoja and Virta 2024) in clusters; sequential trees use the same table (`sequential_draw`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Floats, Ints, Ints32, Reals, sort_distinct
from duckanon._core.common.people import count_people
from duckanon._core.encoding.column_codecs import WIDE, locate_choices, sum_features
from duckanon._core.encoding.formulas import Formula, Lookup, find_formulas, find_lookups, list_decided_by_choices
from duckanon._core.encoding.parts import ColumnParts, read_doubles, round_numbers
from duckanon._methods.releasable.grids import Grid, find_free_places, grid_of
from duckanon._methods.releasable.safe_numbers import SafeNumbers, find_rare_places
from duckanon._methods.swap.clusters import find_clusters
from duckanon._methods.synthesize.coded_table import CodedTable, Parts
from duckanon._methods.synthesize.equal_numbers import (
    EqualNumbers,
    find_equal_numbers,
    find_moving_columns,
    share_rare_places,
)
from duckanon._methods.synthesize.implications import Implications, find_implications
from duckanon._methods.synthesize.leaf_draws import FEWEST
from duckanon._methods.synthesize.orthogonal import apportion, draw_in_clusters
from duckanon._methods.synthesize.pair_tables import (
    Choices,
    Residuals,
    WideChoices,
    choose_by_score,
    measure_covariance,
    shrink_covariance,
)

_ROUNDS = 100
_SLIGHT = 0.005  # the share of rows moved past a number for k: half of what drawn ones have, that move freely
_MATCHING_ROUNDS = 200
_MATCHING_NEAR = 0.05  # as near, for the few rows that are exchanged to match the distribution
_MOST_BINS = 200  # in which distributions are compared
_TRIED = 50_000  # pairs of rows a round
_MATCHED = 0.003  # the share of rows past some number that is left as it is
NEAR = 0.02  # of the rows: how far away in rank the number is that takes a number's place
FAR = 0.1  # the same, where near ones were tried and rules are kept


@dataclass(frozen=True)
class Computed:
    """A column that is computed by a formula; ``rare`` are the places shared by fewer than ``least`` people."""

    formula: Formula
    column: ColumnParts
    grid: Grid
    rare: Ints
    least: int

    @classmethod
    def of(cls, formula: Formula, column: ColumnParts, people: Ints | None, k: int) -> Computed:
        """Learn which values must not be released."""
        assert column.regular is not None
        grid = grid_of(column.regular)
        return cls(formula, column, grid, *find_rare_places(grid, column, people, k, _SLIGHT))

    def array(self, sources: Sequence[Floats]) -> pa.Array:
        """Compute the column; a value of fewer people is moved to the nearest releasable one."""
        array = round_numbers(self.column, self.formula.compute(sources))
        is_rare = self.is_rare(sources)
        if not is_rare.any():
            return array
        places = self.grid.places(array)
        room = 2**40 * self.grid.step
        free = find_free_places(
            places[is_rare], self.rare, self.grid.step, int(self.rare[0]) - room, int(self.rare[-1]) + room
        )
        assert free is not None  # there is room outside of the range
        places[is_rare] = free
        return self.grid.array(places, array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else None)

    def numbers(self, sources: Sequence[Floats]) -> Floats:
        """Compute the column, rounded as it is."""
        return read_doubles(round_numbers(self.column, self.formula.compute(sources)))

    def is_rare(self, sources: Sequence[Floats]) -> Bools:
        """Tell in which rows the column has a value shared by fewer than k people."""
        array = round_numbers(self.column, self.formula.compute(sources))
        places = self.grid.places(array)
        if not len(self.rare):
            return np.zeros(len(places), np.bool_)
        index = np.minimum(np.searchsorted(self.rare, places), len(self.rare) - 1)
        is_valid = array.is_valid().to_numpy(zero_copy_only=False)
        return np.asarray((self.rare[index] == places) & is_valid)


def count_people_without(column: ColumnParts, people: Ints | None) -> int:
    """Count the people who have no value."""
    missing = column.array.is_null().to_numpy(zero_copy_only=False).astype(np.int64)
    return int(count_people(missing, people, 2)[1])


def exchange_rare(
    computed: Computed,
    sources: Sequence[Floats],
    source: int,
    movable: Bools,
    reach: float,
    random: np.random.Generator,
) -> Ints:
    """Exchange numbers of a source between rows of near ranks, until computed values are none of a few people's.

    Ranks are apart by no more than `reach`, a share of the rows. The source (an index into the sources) keeps its
    distribution, and nearly its relations. Only numbers of movable rows are exchanged, and not all that is rare can be
    avoided. Return the row whose number each row gets.
    """
    values = list(sources)
    values[source] = sources[source].copy()
    taken_from = np.arange(len(movable))
    rows = np.flatnonzero(movable)
    by_rank = rows[np.argsort(values[source][rows], kind="stable")]
    rank = np.full(len(movable), -1)
    rank[by_rank] = np.arange(len(by_rank))
    near = max(2, int(reach * len(by_rank)))
    for _ in range(_ROUNDS):
        bad = np.flatnonzero(computed.is_rare(values) & movable)
        if not len(bad) or len(by_rank) < 2:
            break
        partners = by_rank[np.clip(rank[bad] + random.integers(-near, near + 1, len(bad)), 0, len(by_rank) - 1)]
        _, first = np.unique(partners, return_index=True)
        bad, partners = bad[first], partners[first]
        apart = ~np.isin(partners, bad)
        bad, partners = bad[apart], partners[apart]
        both = np.concatenate([bad, partners])
        trial = [one[both] for one in values]
        trial[source] = values[source][np.concatenate([partners, bad])]
        still = computed.is_rare(trial)
        better = ~(still[: len(bad)] | still[len(bad) :])
        bad, partners = bad[better], partners[better]
        for array in (values[source], taken_from):
            array[bad], array[partners] = array[partners], array[bad].copy()
    return taken_from


def match_distribution(
    computed: Computed,
    sources: Sequence[Floats],
    source: int,
    movable: Bools,
    k: int,
    wanted: Floats,
    random: np.random.Generator,
) -> Ints:
    """Exchange numbers of a source as `exchange_rare` does, until the column is distributed as it was.

    Each source has the distribution that it had, but what is computed from several has one by chance, as far off as
    that of as many people drawn anew. Of random pairs those are exchanged that bring the two distributions nearest to
    each other, by the sum of squares of the difference, and make nothing that is rare. Distributions are compared at
    numbers at least k rows apart; `wanted` has the column's values in the table, NaN for NULL.
    """
    taken_from = np.arange(len(movable))
    wanted = wanted[~np.isnan(wanted)]
    bins = min(_MOST_BINS, len(wanted) // k)
    rows = np.flatnonzero(movable)
    if bins < 2 or len(rows) < 4:
        return taken_from
    edges = np.unique(np.quantile(wanted, np.arange(1, bins) / bins))
    values = [column.copy() if index == source else column for index, column in enumerate(sources)]
    numbers = computed.numbers(values)
    bin_of = np.searchsorted(edges, numbers)  # NaN comes last, and never moves
    is_known = ~np.isnan(numbers)
    shares = np.bincount(np.searchsorted(edges, wanted), minlength=len(edges) + 1) / len(wanted)
    counts = np.bincount(bin_of[is_known], minlength=len(edges) + 1)
    total = max(int(counts.sum()), 1)
    by_rank = rows[np.argsort(values[source][rows], kind="stable")]
    near = max(2, int(_MATCHING_NEAR * len(by_rank)))
    for _ in range(_MATCHING_ROUNDS):
        progress.check()
        ahead = np.cumsum(counts / total - shares)[:-1]
        if np.abs(ahead).max() <= _MATCHED:
            break
        first, second = _pair_rows(by_rank, int(random.integers(1, near + 1)), random)
        both = np.concatenate([first, second])
        trial = [column[both] for column in values]
        trial[source] = values[source][np.concatenate([second, first])]
        before, after = bin_of[both], np.searchsorted(edges, computed.numbers(trial))
        gains = np.where(
            is_known[both] & ~computed.is_rare(trial), _measure_gains(ahead, total, before, after), -np.inf
        )
        gain = gains[: len(first)] + gains[len(first) :]
        best = np.argsort(-gain, kind="stable")[: 1 + int(np.abs(ahead).max() * total / 2)]
        best = best[gain[best] > 0]
        moved = np.concatenate([best, best + len(first)])
        counts += np.bincount(after[moved], minlength=len(counts)) - np.bincount(before[moved], minlength=len(counts))
        bin_of[both[moved]] = after[moved]
        first_rows, second_rows = first[best], second[best]
        for array in (values[source], taken_from):
            array[first_rows], array[second_rows] = array[second_rows], array[first_rows].copy()
    return taken_from


def _pair_rows(by_rank: Ints, apart: int, random: np.random.Generator) -> tuple[Ints, Ints]:
    """Pair rows that are so many ranks apart, each row at most once."""
    start = int(random.integers(0, min(2 * apart, len(by_rank) - 1)))
    lower = np.arange(start, len(by_rank) - apart)
    lower = lower[(lower - start) // apart % 2 == 0]
    if len(lower) > _TRIED:
        lower = lower[random.choice(len(lower), _TRIED, replace=False)]
    return by_rank[lower], by_rank[lower + apart]


def _measure_gains(ahead: Floats, rows: int, before: Ints, after: Ints) -> Floats:
    """Return by how much the squares of the differences of two distributions fall if a row goes to another bin."""
    sums = np.concatenate([[0.0], np.cumsum(ahead)])
    return np.asarray(2 * (sums[after] - sums[before]) / rows - np.abs(after - before) / rows**2)


_BLOCK = 65_536  # rows that are coded at a time


class WholeTable(NamedTuple):
    """The table that some rows are a part of.

    Attributes:
        columns: Its columns, each with the person of each row.
        numbers: Their numbers, where these are known already.
        context: The columns that are not drawn.
    """

    columns: Sequence[tuple[ColumnParts, Ints | None]]
    numbers: dict[int, SafeNumbers] | None = None
    context: frozenset[int] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Redrawing(CodedTable):
    """A table that is about to be redrawn.

    Attributes:
        computed, lookups, offsets: What follows from the rest.
        context: The columns that are not drawn.
    """

    computed: Sequence[Computed]
    lookups: Sequence[Lookup]
    offsets: Sequence[Formula] = ()
    context: frozenset[int] = frozenset()

    @classmethod
    def of(
        cls,
        columns: Sequence[ColumnParts],
        people: Ints | None,
        k: int,
        derived: str,
        random: np.random.Generator,
        whole: WholeTable | None = None,
        offsets: Sequence[Formula] = (),
        chance: np.random.Generator | None = None,
    ) -> Redrawing:
        """Find out what is computed and what is drawn.

        Args:
            columns, people: The columns, and the person of each row.
            k, derived, random: As in `anon.synthesize`.
            whole: The table that these are rows of; None where they are all of it.
            offsets: The columns that are others plus a constant, where these are kept (`SequentialDraw`).
            chance: As for numbers (`SafeNumbers.of`).
        """
        known = [(column, people) for column in columns] if whole is None else whole.columns
        learnt, context = (None, frozenset[int]()) if whole is None else (whole.numbers, whole.context)
        shifted = [one.column for one in offsets]
        formulas = find_formulas(columns, shifted) if derived == "auto" else []
        # A computed column would show its NULLs: those of fewer than k people are drawn instead.
        formulas = [
            formula
            for formula in formulas
            if formula.column not in context and not 0 < count_people_without(*known[formula.column]) < k
        ]
        followers = [formula.column for formula in formulas]
        computed = [Computed.of(formula, *known[formula.column], k) for formula in formulas]
        lookups = find_lookups(columns, followers, random) if derived == "auto" else []
        lookups = [one for one in lookups if one.column not in context]
        looked_up = {lookup.column for lookup in lookups}
        drawn = [index for index in range(len(columns)) if index not in followers]
        numbered = [index for index in drawn if columns[index].regular is not None]
        numbers = {i: SafeNumbers.of(*known[i], k, chance) if learnt is None else learnt[i] for i in numbered}
        if whole is not None:
            numbers = {index: one.for_rows(columns[index]) for index, one in numbers.items()}
        offsets = [one for one in offsets if one.sources[0] in numbers]
        numbers = share_rare_places(numbers, columns, offsets)
        free = [index for index in drawn if index not in looked_up and index not in context]
        choices = [index for index in free if columns[index].choices > 1]
        narrow = [index for index in choices if columns[index].choices <= WIDE]
        settled = [index for index in drawn if index not in looked_up] + list_decided_by_choices(lookups)
        settled = [index for index in settled if index not in shifted]
        # Of a sample it is not known which rows of the table are equal.
        equal = find_equal_numbers(columns, numbers, settled, people, k) if derived == "auto" and whole is None else []
        redrawing = cls(
            columns=columns,
            people=people,
            numbers=numbers,
            choices=narrow,
            equal=equal,
            k=k,
            computed=computed,
            lookups=lookups,
            context=context,
            offsets=offsets,
        )
        wide = [index for index in choices if index not in narrow]
        if not wide:
            return redrawing
        codes, counts = [columns[index].codes for index in wide], [columns[index].choices for index in wide]
        sums = [np.zeros((count, 0)) for count in counts]
        if narrow or numbers:  # of which the wide ones' means are taken
            starts = range(0, redrawing.rows, _BLOCK)
            blocks = (redrawing.original(np.arange(start, min(start + _BLOCK, redrawing.rows))) for start in starts)
            sums = sum_features(codes, counts, (redrawing.matrix(block, None) for block in blocks))
        places = locate_choices(codes, counts, sums)
        return replace(redrawing, choices=choices, wide=dict(zip(wide, places, strict=True)))

    def find_rules(self, derived: str) -> Implications:
        """Find the rules that new rows keep, but for those about columns that follow from others."""
        if derived != "auto":
            return Implications([], [], [])
        computed = [one.formula.column for one in self.computed]
        follow = [offset.column for offset in self.offsets]
        return find_implications(self.columns, computed, self.people, self.k, FEWEST - 1, self.context, follow)

    @property
    def least(self) -> list[int]:
        """The least number of people who share a released value, by column."""
        computed = {one.formula.column: one.least for one in self.computed}
        drawn = {index: numbers.least for index, numbers in self.numbers.items()}
        return [(computed | drawn).get(index, self.k) for index in range(len(self.columns))]

    def redraw(self, rows: Ints, count: int, size: float | None, random: np.random.Generator) -> Parts:
        """Draw so many new rows from some of the table's, in clusters of a size; None for all as one."""
        original = self.original(rows)
        matrix = self.matrix(original, random)
        labels = self._find_clusters(matrix, rows, size, random)
        person_count = len(rows) if self.people is None else len(sort_distinct(self.people[rows]))
        shared = shrink_covariance(measure_covariance(matrix, labels), self.widths, person_count)
        features = draw_in_clusters(matrix, labels, count, random)
        wide = WideChoices(None if self.people is None else self.people[rows], self.k)
        codes = self._choose(Residuals(features, shared, len(self.numbers)), wide, original, count, random)
        start = sum(self.widths) - len(self.equal) - len(self.numbers)
        of_equal = features[:, start : start + len(self.equal)].T
        of_numbers = features[:, start + len(self.equal) :].T
        drawn = _Scores(dict(zip(self.numbers, of_numbers, strict=True)), list(of_equal))
        parts = self._draw_numbers(codes, drawn, rows, count, random)
        for computed in self.computed:
            self.exchange(computed, parts, rows, random)
        return parts

    def _choose(
        self, handing_on: Residuals, wide: WideChoices, original: Parts, count: int, random: np.random.Generator
    ) -> dict[int, Ints]:
        """Choose in one column after the other."""
        codes: dict[int, Ints] = {}
        start = 0
        for index in self.choices:
            end = start + self.choice_width(index)
            scores = handing_on.scores[:, start:end]
            held = Choices(original.codes[index], self.columns[index].choices)
            wanted = apportion(np.bincount(held.codes, minlength=held.count), count)
            if index in self.wide:
                drawn = wide.assign(self.wide[index], scores, held, wanted, random)
            else:
                drawn = choose_by_score(np.hstack([-scores, scores]) if end == start + 1 else scores, wanted)
            handing_on.settle(start, end, partial(self.encode_choice, index), drawn)
            codes[index] = drawn
            start = end
        return codes

    def _find_clusters(self, matrix: Reals, rows: Ints, size: float | None, random: np.random.Generator) -> Ints32:
        """Put rows into clusters of at least k people, larger ones where people have several rows."""
        while size is not None:
            labels = find_clusters(matrix, size, "bisect", random)
            person_of_row = None if self.people is None else self.people[rows]
            if count_people(labels.astype(np.int64), person_of_row, int(labels.max()) + 1).min() >= self.k:
                return labels
            size = 2 * size if 2 * size < len(rows) else None
        return np.zeros(len(rows), np.int32)

    def _draw_numbers(
        self, codes: dict[int, Ints], scores: _Scores, rows: Ints, count: int, random: np.random.Generator
    ) -> Parts:
        """Draw numbers and what they decide, in the order in which that can be computed."""
        decided = {lookup.column: lookup for lookup in self.lookups}
        drawn = [index for index in range(len(self.columns)) if index not in decided]
        for index in drawn:
            codes.setdefault(index, np.zeros(count, np.int64))
        parts = Parts(codes, {}, {})
        for index in list_decided_by_choices(self.lookups):
            codes[index] = self.look_up(decided[index], parts)
        for equal, likely in zip(self.equal, scores.equal, strict=True):
            self._draw_equal(equal, likely, parts, scores, rows, random)
        for index in (*drawn, *decided):
            if index not in codes:
                codes[index] = self.look_up(decided[index], parts)
            if index in self.numbers and index not in parts.places:
                is_regular = self._is_regular(index, codes)
                parts.places[index] = self._draw_by_rank(index, scores, is_regular, rows)
        return parts

    def _is_regular(self, index: int, codes: Mapping[int, Ints]) -> Bools:
        return np.asarray(codes[index] == len(self.columns[index].outcomes))

    def _draw_by_rank(self, index: int, scores: _Scores, drawn: Bools, rows: Ints) -> Ints:
        """Draw a column's numbers by the ranks of their scores."""
        numbers = self.numbers[index]
        places = np.full(len(drawn), numbers.ordered[0])
        places[drawn] = numbers.at_ranks(scores.numbers[index][drawn].astype(np.float64), rows, self.people)
        return places

    def values_at(self, index: int, places: Ints) -> Floats:
        """Return the numbers of a column at places."""
        return read_doubles(self.numbers[index].grid.array(places, None))

    def _draw_equal(
        self, equal: EqualNumbers, likely: Reals, parts: Parts, scores: _Scores, rows: Ints, random: np.random.Generator
    ) -> None:
        """Draw the numbers of two columns: where they are equal, different or only one has a number, as each was there.

        So both columns keep their distribution, and what one has says about the other what it said.
        """
        pair = (equal.source, equal.column)
        can_be = self._is_regular(equal.source, parts.codes) & self._is_regular(equal.column, parts.codes)
        is_equal = equal.draw(likely, can_be, rows, self.people, self.k)
        shared_scores = scores.numbers[equal.source][is_equal].astype(np.float64)
        shared = equal.places(shared_scores, rows, self.people, [self.numbers[index].grid for index in pair])
        different, only_one = (rows[~equal.is_equal[rows] & (equal.can_be[rows] == both)] for both in (True, False))
        for index, places in zip(pair, shared, strict=True):
            is_own = self._is_regular(index, parts.codes) & ~is_equal
            drawn = self._draw_by_rank(index, scores, is_own & can_be, different)
            parts.places[index] = np.where(can_be, drawn, self._draw_by_rank(index, scores, is_own & ~can_be, only_one))
            parts.places[index][is_equal] = places
        parts.is_equal[equal.column] = is_equal
        new = np.flatnonzero(can_be & ~is_equal)
        source, column = (self.values_at(index, parts.places[index][new]) for index in pair)
        places = parts.places[equal.column]
        places[new] = places[new][equal.exchange(source, column, random)]

    def look_up(self, lookup: Lookup, parts: Parts) -> Ints:
        """Return the choices that another column decides."""
        source = lookup.source
        numbers = (
            np.zeros(0) if lookup.keys is None else read_doubles(self._recombine(source, parts.codes, parts.places))
        )
        return lookup.compute(parts.codes[source], numbers)

    def _recombine(self, index: int, codes: dict[int, Ints], places: dict[int, Ints]) -> pa.Array:
        numbers = self.numbers[index].grid.array(places[index], None) if index in self.numbers else None
        return self.columns[index].join(codes[index], numbers)

    def exchange(
        self, computed: Computed, parts: Parts, rows: Ints, random: np.random.Generator, to_hold: bool = False
    ) -> None:
        """Exchange numbers between rows: what is computed is nobody's alone, and distributed as it was.

        A number that is equal to another in many rows is exchanged together with it. So that formulas hold where few
        people share a computed number, numbers of all sources are exchanged, and farther apart.
        """
        sources = computed.formula.sources
        deciding = {lookup.source for lookup in self.lookups if lookup.keys is not None}
        before = self.computed[: self.computed.index(computed)]
        used_before = {source for other in before for source in other.formula.sources}
        kept = deciding | used_before | self.context | {one.column for one in self.offsets}
        together = find_moving_columns(self.equal, [source for source in sources if source in self.numbers])
        free = [source for source in together if not kept & together[source]]
        free.sort(key=lambda index: -len(sort_distinct(parts.places[index])))
        if not free:
            return
        numbers = [read_doubles(self._recombine(index, parts.codes, parts.places)) for index in sources]
        wanted = read_doubles(computed.column.array.take(pa.array(rows)))
        trials = [(source, reach) for reach in (NEAR, FAR) for source in free] if to_hold else [(free[0], NEAR)]
        for source, reach in (*trials, (free[0], None)):
            movable = np.logical_and.reduce([self._is_regular(index, parts.codes) for index in together[source]])
            position = sources.index(source)
            if reach is None:
                taken_from = match_distribution(computed, numbers, position, movable, self.k, wanted, random)
            else:
                taken_from = exchange_rare(computed, numbers, position, movable, reach, random)
            numbers[position] = numbers[position][taken_from]
            parts.move(together[source], taken_from)

    def has_rare(self, computed: Computed, parts: Parts) -> Bools:
        """Tell in which rows a computed number is one of a few people's."""
        sources = computed.formula.sources
        return computed.is_rare([read_doubles(self._recombine(index, parts.codes, parts.places)) for index in sources])

    def table(self, parts: Parts, schema: pa.Schema) -> pa.Table:
        """Recombine the columns of new rows, and compute those that follow from others."""
        arrays = self.arrays(parts, range(len(self.columns)))
        return pa.table([arrays[index] for index in range(len(self.columns))], schema=schema)

    def arrays(self, parts: Parts, wanted: Collection[int]) -> dict[int, pa.Array]:
        """Recombine some columns of new rows."""
        computed = {
            computed_column.formula.column: computed_column
            for computed_column in self.computed
            if computed_column.formula.column in wanted
        }
        used = {source for computed_column in computed.values() for source in computed_column.formula.sources} | set(
            wanted
        )
        arrays = {index: self._recombine(index, parts.codes, parts.places) for index in used if index not in computed}
        for index, computed_column in computed.items():
            arrays[index] = computed_column.array(
                [read_doubles(arrays[source]) for source in computed_column.formula.sources]
            )
        return arrays


class _Scores(NamedTuple):
    """Scores of new rows: of each number, by column, and of each pair of columns being equal."""

    numbers: dict[int, Reals]
    equal: list[Reals]

"""A table redrawn: its parts as a matrix, new rows in clusters, and back to parts shared by at least k people."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from duckanon._core.common.arrays import Bools, Floats, Ints, Ints32, Reals, distinct
from duckanon._core.common.people import people_in
from duckanon._core.common.progress import Tell, silent
from duckanon._core.encoding.coordinates import WIDE, placed_choices, sums_of
from duckanon._core.encoding.formulas import Formula, found_formulas
from duckanon._core.encoding.lookups import Lookup, decided_by_choices, found_lookups
from duckanon._core.encoding.parts import ColumnParts, doubles
from duckanon._methods.releasable.safe_numbers import SafeNumbers
from duckanon._methods.swap.clusters import clusters
from duckanon._methods.synthesize.choices import Residuals, beyond_chance, chosen, covariance_within
from duckanon._methods.synthesize.coded_table import CodedTable, Parts
from duckanon._methods.synthesize.computed import FAR, NEAR, Computed, exchanged, matched, people_without
from duckanon._methods.synthesize.equal_numbers import EqualNumbers, exchanged_with, found_equal
from duckanon._methods.synthesize.orthogonal import apportioned, redrawn
from duckanon._methods.synthesize.pair_tables import Choices, WideChoices
from duckanon._methods.synthesize.shifted_numbers import with_shared_rare

_BLOCK = 65_536  # rows that are coded at a time


@dataclass(frozen=True, kw_only=True)
class Redrawing(CodedTable):
    """A table that is about to be redrawn: `computed`, `lookups`, `offsets` follow from the rest; `given` is there."""

    computed: Sequence[Computed]
    lookups: Sequence[Lookup]
    offsets: Sequence[Formula] = ()
    given: frozenset[int] = frozenset()

    @classmethod
    def of(
        cls,
        columns: Sequence[ColumnParts],
        people: Ints | None,
        k: int,
        derived: str,
        random: np.random.Generator,
        whole: Sequence[tuple[ColumnParts, Ints | None]] | None = None,
        learnt: dict[int, SafeNumbers] | None = None,
        given: Collection[int] = (),
        offsets: Sequence[Formula] = (),
        chance: np.random.Generator | None = None,
    ) -> Redrawing:
        """Find out what is computed and what is drawn.

        Args:
            columns, people, k, derived, random: The columns, whose each row is, and what is as everywhere.
            whole: The columns of the table that these are rows of.
            learnt: Their numbers, where these are known already.
            given: The columns that are not drawn.
            offsets: The columns that are others plus a constant, where these are kept (`SequentialDraw`).
            chance: As for numbers (`SafeNumbers.of`).
        """
        known = whole or [(column, people) for column in columns]
        shifted = [one.column for one in offsets]
        formulas = found_formulas(columns, shifted) if derived == "auto" else []
        formulas = [
            one for one in formulas if one.column not in given and not 0 < people_without(*known[one.column]) < k
        ]
        followers = [formula.column for formula in formulas]
        computed = [Computed.of(formula, *known[formula.column], k) for formula in formulas]
        lookups = found_lookups(columns, followers, random) if derived == "auto" else []
        lookups = [one for one in lookups if one.column not in given]
        looked_up = {lookup.column for lookup in lookups}
        drawn = [index for index in range(len(columns)) if index not in followers]
        numbered = [index for index in drawn if columns[index].regular is not None]
        numbers = {i: SafeNumbers.of(*known[i], k, chance) if learnt is None else learnt[i] for i in numbered}
        if whole is not None:
            numbers = {index: one.for_rows(columns[index]) for index, one in numbers.items()}
        offsets = [one for one in offsets if one.sources[0] in numbers]
        numbers = with_shared_rare(numbers, columns, offsets)
        free = [index for index in drawn if index not in looked_up and index not in given]
        choices = [index for index in free if columns[index].choices > 1]
        narrow = [index for index in choices if columns[index].choices <= WIDE]
        settled = [index for index in drawn if index not in looked_up] + decided_by_choices(lookups)
        settled = [index for index in settled if index not in shifted]
        # Of a sample it is not known which rows of the table are equal.
        equal = found_equal(columns, numbers, settled, people, k) if derived == "auto" and whole is None else []
        made = cls(
            columns=columns,
            people=people,
            numbers=numbers,
            choices=narrow,
            equal=equal,
            k=k,
            computed=computed,
            lookups=lookups,
            given=frozenset(given),
            offsets=offsets,
        )
        wide = [index for index in choices if index not in narrow]
        if not wide:
            return made
        codes, counts = [columns[index].codes for index in wide], [columns[index].choices for index in wide]
        sums = [np.zeros((count, 0)) for count in counts]
        if narrow or numbers:  # of which the wide ones' means are taken
            starts = range(0, made.rows, _BLOCK)
            blocks = (made.original(np.arange(start, min(start + _BLOCK, made.rows))) for start in starts)
            sums = sums_of(codes, counts, (made.matrix(block, None) for block in blocks))
        places = placed_choices(codes, counts, sums)
        return replace(made, choices=choices, wide=dict(zip(wide, places, strict=True)))

    @property
    def least(self) -> list[int]:
        """The least number of people who share a released value, by column."""
        computed = {one.formula.column: one.least for one in self.computed}
        drawn = {index: numbers.least for index, numbers in self.numbers.items()}
        return [(computed | drawn).get(index, self.k) for index in range(len(self.columns))]

    def redrawn(
        self, rows: Ints, count: int, size: float | None, random: np.random.Generator, tell: Tell = silent
    ) -> Parts:
        """Draw so many new rows from some of the table's, in clusters of a size; None for all as one."""
        original = self.original(rows)
        matrix = self.matrix(original, random)
        labels = self._clusters(matrix, rows, size, random)
        whose = len(rows) if self.people is None else len(distinct(self.people[rows]))
        shared = beyond_chance(covariance_within(matrix, labels), self.widths, whose)
        features = redrawn(matrix, labels, count, random, tell)
        wide = WideChoices(None if self.people is None else self.people[rows], self.k)
        codes = self._chosen(Residuals(features, shared, len(self.numbers)), wide, original, count, random)
        start = sum(self.widths) - len(self.equal) - len(self.numbers)
        of_equal = features[:, start : start + len(self.equal)].T
        of_numbers = features[:, start + len(self.equal) :].T
        drawn = _Scores(dict(zip(self.numbers, of_numbers, strict=True)), list(of_equal))
        parts = self._with_numbers(codes, drawn, rows, count, random)
        for computed in self.computed:
            self.exchange(computed, parts, rows, random)
        return parts

    def _chosen(
        self, handing_on: Residuals, wide: WideChoices, original: Parts, count: int, random: np.random.Generator
    ) -> dict[int, Ints]:
        """Choose in one column after the other."""
        codes: dict[int, Ints] = {}
        start = 0
        for index in self.choices:
            end = start + self.choice_width(index)
            scores = handing_on.scores[:, start:end]
            held = Choices(original.codes[index], self.columns[index].choices)
            wanted = apportioned(np.bincount(held.codes, minlength=held.count), count)
            if index in self.wide:
                made = wide.assigned(self.wide[index], scores, held, wanted, random)
            else:
                made = chosen(np.hstack([-scores, scores]) if end == start + 1 else scores, wanted)
            handing_on.settle(start, end, partial(self._coded, index, made))
            codes[index] = made
            start = end
        return codes

    def _coded(self, index: int, codes: Ints, first: int, end: int) -> Reals:
        return self.coded_choice(index, codes[first:end])

    def _clusters(self, matrix: Reals, rows: Ints, size: float | None, random: np.random.Generator) -> Ints32:
        """Put rows into clusters of at least k people, larger ones where people have several rows."""
        while size is not None:
            labels = clusters(matrix, size, "bisect", random)
            whose = None if self.people is None else self.people[rows]
            if people_in(labels.astype(np.int64), whose, int(labels.max()) + 1).min() >= self.k:
                return labels
            size = 2 * size if 2 * size < len(rows) else None
        return np.zeros(len(rows), np.int32)

    def _with_numbers(
        self, codes: dict[int, Ints], scores: _Scores, rows: Ints, count: int, random: np.random.Generator
    ) -> Parts:
        """Draw numbers and what they decide, in the order in which that can be computed."""
        decided = {lookup.column: lookup for lookup in self.lookups}
        drawn = [index for index in range(len(self.columns)) if index not in decided]
        for index in drawn:
            codes.setdefault(index, np.zeros(count, np.int64))
        parts = Parts(codes, {}, {})
        for index in decided_by_choices(self.lookups):
            codes[index] = self.looked_up(decided[index], parts)
        for equal, likely in zip(self.equal, scores.equal, strict=True):
            self._draw_equal(equal, likely, parts, scores, rows, random)
        for index in (*drawn, *decided):
            if index not in codes:
                codes[index] = self.looked_up(decided[index], parts)
            if index in self.numbers and index not in parts.places:
                is_regular = self._is_regular(index, codes)
                parts.places[index] = self._ranked(index, scores, is_regular, rows)
        return parts

    def _is_regular(self, index: int, codes: Mapping[int, Ints]) -> Bools:
        return np.asarray(codes[index] == len(self.columns[index].outcomes))

    def _ranked(self, index: int, scores: _Scores, drawn: Bools, rows: Ints) -> Ints:
        """Draw a column's numbers by the ranks of their scores."""
        numbers = self.numbers[index]
        places = np.full(len(drawn), numbers.ordered[0])
        places[drawn] = numbers.at_ranks(scores.numbers[index][drawn].astype(np.float64), rows, self.people)
        return places

    def values_at(self, index: int, places: Ints) -> Floats:
        """Return the numbers of a column at places."""
        return doubles(self.numbers[index].grid.array(places, None))

    def _draw_equal(
        self, equal: EqualNumbers, likely: Reals, parts: Parts, scores: _Scores, rows: Ints, random: np.random.Generator
    ) -> None:
        """Draw the numbers of two columns: where they are equal, different or only one has a number, as each was there.

        So both columns keep their distribution, and what one has says about the other what it said.
        """
        pair = (equal.source, equal.column)
        can_be = self._is_regular(equal.source, parts.codes) & self._is_regular(equal.column, parts.codes)
        is_equal = equal.drawn(likely, can_be, rows, self.people, self.k)
        shared_scores = scores.numbers[equal.source][is_equal].astype(np.float64)
        shared = equal.places(shared_scores, rows, self.people, [self.numbers[index].grid for index in pair])
        different, only_one = (rows[~equal.is_equal[rows] & (equal.can_be[rows] == both)] for both in (True, False))
        for index, places in zip(pair, shared, strict=True):
            is_own = self._is_regular(index, parts.codes) & ~is_equal
            drawn = self._ranked(index, scores, is_own & can_be, different)
            parts.places[index] = np.where(can_be, drawn, self._ranked(index, scores, is_own & ~can_be, only_one))
            parts.places[index][is_equal] = places
        parts.is_equal[equal.column] = is_equal
        new = np.flatnonzero(can_be & ~is_equal)
        source, column = (self.values_at(index, parts.places[index][new]) for index in pair)
        places = parts.places[equal.column]
        places[new] = places[new][equal.exchanged(source, column, random)]

    def looked_up(self, lookup: Lookup, parts: Parts) -> Ints:
        """Return the choices that another column decides."""
        source = lookup.source
        numbers = np.zeros(0) if lookup.keys is None else doubles(self._joined(source, parts.codes, parts.places))
        return lookup.computed(parts.codes[source], numbers)

    def _joined(self, index: int, codes: dict[int, Ints], places: dict[int, Ints]) -> pa.Array:
        numbers = self.numbers[index].grid.array(places[index], None) if index in self.numbers else None
        return self.columns[index].joined(codes[index], numbers)

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
        kept = deciding | used_before | self.given | {one.column for one in self.offsets}
        together = exchanged_with(self.equal, [source for source in sources if source in self.numbers])
        free = [source for source in together if not kept & together[source]]
        free.sort(key=lambda index: -len(distinct(parts.places[index])))
        if not free:
            return
        numbers = [doubles(self._joined(index, parts.codes, parts.places)) for index in sources]
        wanted = doubles(computed.column.array.take(pa.array(rows)))
        trials = [(source, reach) for reach in (NEAR, FAR) for source in free] if to_hold else [(free[0], NEAR)]
        for source, reach in (*trials, (free[0], None)):
            movable = np.logical_and.reduce([self._is_regular(index, parts.codes) for index in together[source]])
            place = sources.index(source)
            if reach is None:
                taken_from = matched(computed, numbers, place, movable, self.k, wanted, random)
            else:
                taken_from = exchanged(computed, numbers, place, movable, reach, random)
            numbers[place] = numbers[place][taken_from]
            parts.move(together[source], taken_from)

    def has_rare(self, computed: Computed, parts: Parts) -> Bools:
        """Tell in which rows a computed number is one of a few people's."""
        sources = computed.formula.sources
        return computed.is_rare([doubles(self._joined(index, parts.codes, parts.places)) for index in sources])

    def table(self, parts: Parts, schema: pa.Schema) -> pa.Table:
        """Recombine the columns of new rows, and compute those that follow from others."""
        arrays = self.arrays(parts, range(len(self.columns)))
        return pa.table([arrays[index] for index in range(len(self.columns))], schema=schema)

    def arrays(self, parts: Parts, wanted: Collection[int]) -> dict[int, pa.Array]:
        """Recombine some columns of new rows."""
        computed = {one.formula.column: one for one in self.computed if one.formula.column in wanted}
        used = {source for one in computed.values() for source in one.formula.sources} | set(wanted)
        arrays = {index: self._joined(index, parts.codes, parts.places) for index in used if index not in computed}
        for index, one in computed.items():
            arrays[index] = one.array([doubles(arrays[source]) for source in one.formula.sources])
        return arrays


class _Scores(NamedTuple):
    """Scores of new rows: of each number, by column, and of each pair of columns being equal."""

    numbers: dict[int, Reals]
    equal: list[Reals]

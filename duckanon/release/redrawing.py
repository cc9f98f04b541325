"""A table redrawn: its parts as a matrix, new rows in clusters, and back to parts that at least k people hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from duckanon.common.arrays import Ints, Ints32, Reals
from duckanon.common.people import people_in
from duckanon.common.progress import Tell, silent
from duckanon.matrix.coordinates import WIDE, Places, placed_choices, sums_of
from duckanon.matrix.formulas import found_formulas
from duckanon.matrix.lookups import Lookup, found_lookups
from duckanon.matrix.parts import ColumnParts, doubles
from duckanon.release.choices import chosen
from duckanon.release.clusters import clusters
from duckanon.release.computed import Computed, exchanged, matched
from duckanon.release.donors import filled
from duckanon.release.orthogonal import apportioned, redrawn
from duckanon.release.safe_numbers import SafeNumbers

_BLOCK = 65_536  # rows that are coded at a time


@dataclass(frozen=True)
class Parts:
    """Parts of rows, by column.

    Attributes
    ----------
    codes
        The choices.
    places
        The places of numbers, for those columns that have them; arbitrary where another choice is made.
    """

    codes: dict[int, Ints]
    places: dict[int, Ints]


@dataclass(frozen=True)
class Redrawing:
    """A table that is about to be redrawn.

    Attributes
    ----------
    columns
        Its columns, taken apart.
    people
        Whose each row is; None where every row is another person.
    computed, lookups
        What is computed from the rest.
    numbers
        The numbers that are drawn, by column.
    choices
        The columns whose choices are drawn.
    k
        The least number of people that hold what comes out.
    wide
        The coordinates of choices between many values, by column.
    """

    columns: Sequence[ColumnParts]
    people: Ints | None
    computed: Sequence[Computed]
    lookups: Sequence[Lookup]
    numbers: dict[int, SafeNumbers]
    choices: Sequence[int]
    k: int
    wide: Mapping[int, Places] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        columns: Sequence[ColumnParts],
        people: Ints | None,
        k: int,
        derived: str,
        random: np.random.Generator,
        whole: Sequence[tuple[ColumnParts, Ints | None]] | None = None,
    ) -> Redrawing:
        """Find out what is computed and what is drawn; `whole` has the columns of the table these are rows of."""
        known = whole or [(column, people) for column in columns]
        formulas = found_formulas(columns) if derived == "auto" else []
        formulas = [one for one in formulas if not 0 < _people_without(*known[one.column]) < k]
        followers = [formula.column for formula in formulas]
        computed = [Computed.of(formula, *known[formula.column], k) for formula in formulas]
        lookups = found_lookups(columns, followers, random) if derived == "auto" else []
        looked_up = {lookup.column for lookup in lookups}
        drawn = [index for index in range(len(columns)) if index not in followers]
        numbers = {i: SafeNumbers.of(*known[i], k) for i in drawn if columns[i].regular is not None}
        if whole is not None:
            numbers = {index: one.for_rows(columns[index]) for index, one in numbers.items()}
        choices = [index for index in drawn if columns[index].choices > 1 and index not in looked_up]
        narrow = [index for index in choices if columns[index].choices <= WIDE]
        made = cls(columns, people, computed, lookups, numbers, narrow, k)
        wide = [index for index in choices if index not in narrow]
        if not wide:
            return made
        codes, counts = [columns[index].codes for index in wide], [columns[index].choices for index in wide]
        sums = [np.zeros((count, 0)) for count in counts]
        if narrow or numbers:
            starts = range(0, made.rows, _BLOCK)
            blocks = (made.original(np.arange(start, min(start + _BLOCK, made.rows))) for start in starts)
            sums = sums_of(codes, counts, (made.matrix(block, None) for block in blocks))
        places = placed_choices(codes, counts, sums)
        return replace(made, choices=choices, wide=dict(zip(wide, places, strict=True)))

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.columns[0].codes)

    @property
    def rank(self) -> int:
        """The number of independent components."""
        narrow = [index for index in self.choices if index not in self.wide]
        wide = sum(int(places.coordinates.shape[1]) for places in self.wide.values())
        return len(self.numbers) + wide + sum(self.columns[index].choices - 1 for index in narrow)

    @property
    def least(self) -> list[int]:
        """How many people hold a value of each column that comes out, at least."""
        computed = {one.formula.column: one.least for one in self.computed}
        drawn = {index: numbers.least for index, numbers in self.numbers.items()}
        return [(computed | drawn).get(index, self.k) for index in range(len(self.columns))]

    def original(self, rows: Ints) -> Parts:
        """Return the parts of rows of the table."""
        return Parts(
            {index: self.columns[index].codes[rows] for index in range(len(self.columns))},
            {index: numbers.places[rows] for index, numbers in self.numbers.items()},
        )

    def matrix(self, parts: Parts, random: np.random.Generator | None) -> Reals:
        """Encode parts: normal scores, and -1 or 1 for choices.

        Parameters
        ----------
        parts
            Of the table or of a release.
        random
            Draws donors of numbers where there are none (`donors.filled`); None: the mean, for comparing rows with each
            other.
        """
        count = len(next(iter(parts.codes.values())))
        widths = [self._choice_width(index) for index in self.choices]
        matrix = np.empty((count, sum(widths) + len(self.numbers)), np.float32)
        ends = np.cumsum([0, *widths]).tolist()
        for index, start, end in zip(self.choices, ends[:-1], ends[1:], strict=True):
            codes = parts.codes[index]
            if index in self.wide:
                matrix[:, start:end] = self.wide[index].coordinates[codes]
            else:
                _write_indicators(codes, matrix[:, start:end])
        regular = []
        for number, (index, numbers) in enumerate(self.numbers.items()):
            scores = numbers.normal_scores(parts.places[index])
            is_regular = parts.codes[index] == len(self.columns[index].outcomes)
            others = np.flatnonzero(~is_regular)
            if len(others):
                donors = scores[is_regular]
                scores[others] = 0.0 if random is None or not len(donors) else random.choice(donors, len(others))
            regular.append(is_regular)
            matrix[:, ends[-1] + number] = scores
        if random is not None:
            for number, is_regular in enumerate(regular):
                filled(matrix, matrix.shape[1] - len(regular) + number, is_regular, random)
        return matrix

    def _choice_width(self, index: int) -> int:
        if index in self.wide:
            return int(self.wide[index].coordinates.shape[1])
        choices = self.columns[index].choices
        return 1 if choices == 2 else choices

    def redrawn(
        self, rows: Ints, count: int, size: float | None, random: np.random.Generator, tell: Tell = silent
    ) -> Parts:
        """Draw new rows from some of the table's.

        Parameters
        ----------
        rows
            Those that are released.
        count
            How many to draw.
        size
            The rows of a cluster; None for all as one.
        random
            Where chance comes from.
        tell
            Is told the share of the work done.
        """
        original = self.original(rows)
        matrix = self.matrix(original, random)
        features = redrawn(matrix, self._clusters(matrix, rows, size, random), count, random, tell)
        codes: dict[int, Ints] = {}
        start = 0
        for index in self.choices:
            width = self._choice_width(index)
            scores = features[:, start : start + width]
            start += width
            counts = np.bincount(original.codes[index], minlength=self.columns[index].choices)
            wanted = apportioned(counts, count)
            if index in self.wide:
                codes[index] = self.wide[index].assigned(scores, wanted)
            else:
                codes[index] = chosen(np.hstack([-scores, scores]) if width == 1 else scores, wanted)
        scores_of = dict(zip(self.numbers, features[:, start:].T, strict=True))
        parts = self._with_numbers(codes, scores_of, rows, count)
        for computed in self.computed:
            self._exchange(computed, parts, rows, random)
        return parts

    def _clusters(self, matrix: Reals, rows: Ints, size: float | None, random: np.random.Generator) -> Ints32:
        """Put rows into clusters of at least k people, larger ones where people have several rows."""
        while size is not None:
            labels = clusters(matrix, size, "bisect", random)
            whose = None if self.people is None else self.people[rows]
            if people_in(labels.astype(np.int64), whose, int(labels.max()) + 1).min() >= self.k:
                return labels
            size = 2 * size if 2 * size < len(rows) else None
        return np.zeros(len(rows), np.int32)

    def _with_numbers(self, codes: dict[int, Ints], scores_of: dict[int, Reals], rows: Ints, count: int) -> Parts:
        places: dict[int, Ints] = {}
        decided = {lookup.column: lookup for lookup in self.lookups}
        drawn = [index for index in range(len(self.columns)) if index not in decided]
        for index in (*drawn, *decided):  # in the order in which they can be computed
            if index in decided:
                codes[index] = self._looked_up(decided[index], codes, places)
            elif index not in codes:
                codes[index] = np.zeros(count, np.int64)
            if index in self.numbers:
                is_regular = codes[index] == len(self.columns[index].outcomes)
                places[index] = np.full(count, self.numbers[index].ordered[0])
                places[index][is_regular] = self.numbers[index].at_ranks(
                    scores_of[index][is_regular].astype(np.float64), rows, self.people
                )
        return Parts(codes, places)

    def _looked_up(self, lookup: Lookup, codes: dict[int, Ints], places: dict[int, Ints]) -> Ints:
        source = lookup.source
        numbers = np.zeros(0) if lookup.keys is None else doubles(self._joined(source, codes, places))
        return lookup.computed(codes[source], numbers)

    def _joined(self, index: int, codes: dict[int, Ints], places: dict[int, Ints]) -> pa.Array:
        numbers = self.numbers[index].grid.array(places[index], None) if index in self.numbers else None
        return self.columns[index].joined(codes[index], numbers)

    def _exchange(self, computed: Computed, parts: Parts, rows: Ints, random: np.random.Generator) -> None:
        """Exchange numbers between rows: what is computed is nobody's alone, and distributed as it was."""
        sources = computed.formula.sources
        deciding = {lookup.source for lookup in self.lookups if lookup.keys is not None}
        used_before = {
            source for other in self.computed[: self.computed.index(computed)] for source in other.formula.sources
        }
        free = [source for source in sources if source in self.numbers and source not in deciding | used_before]
        if not free:
            return
        source = max(free, key=lambda index: len(np.unique(parts.places[index])))
        numbers = [doubles(self._joined(index, parts.codes, parts.places)) for index in sources]
        is_regular = parts.codes[source] == len(self.columns[source].outcomes)
        place = sources.index(source)
        taken_from = exchanged(computed, numbers, place, is_regular, random)
        numbers[place] = numbers[place][taken_from]
        wanted = doubles(computed.column.array.take(pa.array(rows)))
        taken_from = taken_from[matched(computed, numbers, place, is_regular, self.k, wanted, random)]
        parts.places[source][:] = parts.places[source][taken_from]

    def table(self, parts: Parts, schema: pa.Schema) -> pa.Table:
        """Put the columns of new rows together, and compute those that follow from others."""
        computed = {one.formula.column: one for one in self.computed}
        arrays = {
            index: self._joined(index, parts.codes, parts.places)
            for index in range(len(self.columns))
            if index not in computed
        }
        for index, one in computed.items():
            arrays[index] = one.array([doubles(arrays[source]) for source in one.formula.sources])
        return pa.table([arrays[index] for index in range(len(self.columns))], schema=schema)


def _people_without(column: ColumnParts, people: Ints | None) -> int:
    """Count the people who have no value."""
    missing = column.array.is_null().to_numpy(zero_copy_only=False).astype(np.int64)
    return int(people_in(missing, people, 2)[1])


def _write_indicators(codes: Ints, out: Reals) -> None:
    """Write -1 and 1: one column for two choices, else one for each."""
    if out.shape[1] == 1:
        out[:, 0] = 2 * codes - 1
        return
    out[:] = -1.0
    out[np.arange(len(codes)), codes] = 1.0

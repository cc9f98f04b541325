"""A table that is drawn in parts: what is decided over all of it, and the rows drawn from one part.

Which numbers are releasable, and how often each choice is drawn, is decided over the whole table, whose columns are
known in small; trees and rules are those of a part. `Synthesis` does this for rows, `SequenceSynthesis` for people with
several rows. Counts get their noise once: the mean of noise that every part adds anew would be none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from duckanon._core.common.arrays import Floats, Ints
from duckanon._core.common.people import NOBODY, count_people
from duckanon._core.encoding.column_split import SplitOptions, clean_floats, split_number
from duckanon._core.encoding.formulas import find_offsets, list_decided_by_choices
from duckanon._core.encoding.parts import ColumnParts
from duckanon._core.encoding.whole_sources import ColumnCounts, SplitScheme, apply_schemes
from duckanon._methods.releasable.safe_numbers import SafeNumbers
from duckanon._methods.synthesize.coded_table import drop_unusual, is_categorical, is_usual
from duckanon._methods.synthesize.equal_numbers import find_equal_numbers
from duckanon._methods.synthesize.leaf_draws import FEWEST, add_noise, round_by_chance
from duckanon._methods.synthesize.redrawing import Redrawing, WholeTable
from duckanon._methods.synthesize.sequence_columns import (
    SequenceColumns,
    Sequences,
    WholeColumn,
    find_order_and_dates,
    read_order,
)
from duckanon._methods.synthesize.sequences import DrawOptions, learn_sequences
from duckanon._methods.synthesize.sequential_draw import SequentialDraw
from duckanon._methods.synthesize.table_groups import leave_out_people, with_digits

_MOST_RANKS = 100_000  # numbers of a column that are sent to the parts, to rank theirs
_LEVELS = 1_000  # of a column's distribution, for parts in which fewer than k people have a number


def name_category_numbers(counted: Sequence[ColumnCounts], k: int) -> list[str]:
    """Name the numbers that are categories, as `anon.synthesize` finds them."""
    return [one.name for one in counted if one.numbers is not None and is_categorical(*one.numbers, k)]


def fit_redrawing(
    columns: Sequence[ColumnParts],
    people: Ints | None,
    k: int,
    derived: str,
    random: np.random.Generator,
    whole: Sequence[tuple[ColumnParts, Ints | None]],
) -> Redrawing:
    """Fit what is drawn and what is computed on a sample, with the numbers that the whole table may give away."""
    offsets = find_offsets(columns, people, k, FEWEST - 1) if derived == "auto" else []
    redrawing = Redrawing.of(columns, people, k, derived, random, WholeTable(whole), offsets, random)
    numbers = {index: add_usual_places(one, *whole[index]) for index, one in redrawing.numbers.items()}
    return replace(redrawing, numbers=numbers)


def add_usual_places(numbers: SafeNumbers, whole: ColumnParts, people: Ints | None) -> SafeNumbers:
    """Add places that k people of the table share, and those at even levels, for parts where fewer than k have any."""
    everybody = numbers.for_rows(whole)
    places = everybody.at_ranks(np.arange(_LEVELS, dtype=np.float64), np.arange(len(whole.codes)), people)
    ordered = numbers.ordered
    if len(ordered) > _MOST_RANKS:
        ordered = ordered[np.linspace(0, len(ordered) - 1, _MOST_RANKS).astype(np.int64)]
    values, codes = np.unique(everybody.places[everybody.is_regular], return_inverse=True)
    person_of_row = None if people is None else people[everybody.is_regular]
    held = values[count_people(codes.astype(np.int64), person_of_row, len(values)) >= numbers.k]
    return replace(numbers, usual=places, ordered=ordered, held=held)


def drop_rows(redrawing: Redrawing) -> Redrawing:
    """Return what parts need to know: nothing of any row."""
    nobody = np.zeros(0, np.int64)
    columns = [replace(one, codes=nobody, array=one.array.slice(0, 0)) for one in redrawing.columns]
    return restrict_to_part(redrawing, columns, None)


def restrict_to_part(redrawing: Redrawing, columns: Sequence[ColumnParts], people: Ints | None) -> Redrawing:
    """Return what is known of the whole table for the rows of a part."""
    return replace(
        redrawing,
        columns=columns,
        people=people,
        computed=[replace(one, column=columns[one.formula.column]) for one in redrawing.computed],
        numbers={index: one.for_rows(columns[index]) for index, one in redrawing.numbers.items()},
    )


def _find_equal(part: Redrawing) -> Redrawing:
    """Find the numbers that are equal in many rows of a part; those rare in the whole table are not drawn."""
    decided = {lookup.column for lookup in part.lookups}
    settled = [index for index in part.numbers if index not in decided] + list_decided_by_choices(part.lookups)
    return replace(part, equal=find_equal_numbers(part.columns, part.numbers, settled, part.people, part.k))


def fewest_people(k: int, leaf: int, keep_out: int) -> int:
    """Return the least number of people in a part: two leaves, and at most a quarter of them kept out."""
    return max(k, 2 * leaf, 4 * keep_out)


@dataclass(frozen=True)
class Synthesis:
    """What every part of a table is drawn with.

    Attributes:
        redrawing: What is drawn and what is computed, without rows.
        counts: For each column, how many rows of the table have each choice, noisy where few people have it.
        leaf, keep_out, derived: The options of `anon.synthesize`.
    """

    redrawing: Redrawing
    counts: Sequence[Ints]
    leaf: int
    keep_out: int
    derived: str

    @classmethod
    def of(
        cls,
        redrawing: Redrawing,
        counts: Sequence[Ints],
        leaf: int,
        keep_out: int,
        derived: str,
        random: np.random.Generator,
    ) -> Synthesis:
        """Add noise to the counts once: the mean of noise that every part adds anew would be none."""
        shown = [add_noise(one, redrawing.k, random) for one in counts]
        return cls(drop_rows(redrawing), shown, leaf, keep_out, derived)

    def draw(
        self,
        columns: Sequence[ColumnParts],
        people: Ints | None,
        count: int,
        schema: pa.Schema,
        random: np.random.Generator,
    ) -> pa.Table:
        """Draw so many new rows from those of a part, as `anon.synthesize` does, of values that the table allows."""
        part = restrict_to_part(self.redrawing, columns, people)
        if self.derived == "auto":
            part = _find_equal(part)
        rules = part.find_rules(self.derived)
        used = leave_out_people(np.arange(part.rows), people, self.keep_out, random)
        used = drop_unusual(used, is_usual(columns))
        draw = _PartDraw(part, used, count, self.leaf, rules, random, whole_counts=self.counts)
        return part.table(draw.run(), schema)


@dataclass
class _PartDraw(SequentialDraw):
    """New rows of a part; choices are drawn as often as in the whole table, and those too rare in the part as there."""

    whole_counts: Sequence[Ints] = field(default_factory=list)

    def _draw_choice(self, index: int) -> None:
        counts = self.whole_counts[index]
        self._learner.root = counts / max(int(counts.sum()), 1)
        super()._draw_choice(index)
        self._learner.root = None

    def _count_choices(self, index: int, shares: Floats, cells: Ints) -> Ints:
        """Return how often each choice is to be drawn."""
        return round_by_chance(self.whole_counts[index], self.count, self.random)


class SequenceSynthesis(NamedTuple):
    """What every part of a table of people with several rows is drawn with.

    Attributes:
        whole: The columns of the table in small, by name.
        schemes: How each of them is split.
        personal: The columns that are the same in all rows of a person.
        ordering: The column that orders the rows of a person, and the dates that decide where it does not.
        reading, drawing: How columns are read, and how people are drawn.
    """

    whole: Mapping[str, WholeColumn]
    schemes: Sequence[SplitScheme]
    personal: Sequence[str]
    ordering: Sequence[str]
    reading: SplitOptions
    drawing: DrawOptions

    @classmethod
    def of(
        cls,
        counted: Sequence[ColumnCounts],
        columns: Sequence[tuple[ColumnParts, Ints | None]],
        schema: pa.Schema,
        personal: Sequence[str],
        ordering: Sequence[str],
        reading: SplitOptions,
        drawing: DrawOptions,
    ) -> SequenceSynthesis:
        """Decide over the whole table which numbers may be released.

        Args:
            counted, columns: Its columns in small, and as rows without an order split them.
            schema: Its types.
            personal, ordering, reading, drawing: As above.
        """
        order, dates = find_order_and_dates(schema, personal, next(iter(ordering), None))
        whole = {}
        for counted_column, (column, people) in zip(counted, columns, strict=True):
            if counted_column.name in (order, *dates):  # dates that many share are no special ones
                column = with_digits(
                    split_number(counted_column.name, clean_floats(counted_column.array), people, reading, np.zeros(0))
                )
            numbers = None
            if column.regular is not None:
                chance = None if counted_column.name in (order, *dates) else reading.chance
                numbers = add_usual_places(SafeNumbers.of(column, people, reading.k, chance), column, people)
            whole[counted_column.name] = WholeColumn(column, people, numbers)
        return cls(
            whole,
            [SplitScheme.of(counted_column.column) for counted_column in whole.values()],
            personal,
            ordering,
            reading,
            drawing,
        )

    def draw(self, part: pa.Table, people: Ints, count: int, random: np.random.Generator) -> tuple[pa.Table, Ints]:
        """Draw so many people from those of a part, with all their rows; return the rows, and the person of each."""
        known = np.flatnonzero(people != NOBODY)
        table, people = part.take(pa.array(known)).select(list(self.whole)), people[known]
        sequences = Sequences.of(people, read_order(table, self.ordering), self.reading.k, random)
        split = {one.name: one for one in apply_schemes(self.schemes, table)}
        order = next(iter(self.ordering), None)
        columns = SequenceColumns.of(table, people, self.reading, sequences, self.personal, order, split, self.whole)
        used = leave_out_people(np.arange(len(sequences.lengths)), None, self.drawing.keep_out, random)
        new = learn_sequences(columns, self.drawing, random).draw(0, used, count)
        return pa.table(new.arrays, schema=table.schema), new.person

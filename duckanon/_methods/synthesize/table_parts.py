"""A table that is drawn in parts: what is decided over the whole of it, and the rows drawn from one part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from duckanon._core.common.arrays import Floats, Ints
from duckanon._core.common.people import people_in
from duckanon._core.common.progress import Tell, silent
from duckanon._core.encoding.lookups import decided_by_choices
from duckanon._core.encoding.offsets import found_offsets
from duckanon._core.encoding.parts import ColumnParts
from duckanon._core.encoding.whole_columns import Counted
from duckanon._methods.releasable.safe_numbers import SafeNumbers
from duckanon._methods.synthesize.audited_size import without_some
from duckanon._methods.synthesize.equal_numbers import found_equal
from duckanon._methods.synthesize.few_valued import MOST_UNUSUAL, is_few_valued, is_usual
from duckanon._methods.synthesize.implication_rules import Implications
from duckanon._methods.synthesize.implications import found_implications
from duckanon._methods.synthesize.leaf_draws import FEWEST, noisy, rounded_by_chance
from duckanon._methods.synthesize.redrawing import Redrawing
from duckanon._methods.synthesize.sequential_draw import SequentialDraw

_MOST_RANKS = 100_000  # numbers of a column by which ranks are told in parts
_LEVELS = 1_000  # of a column's distribution, for parts in which fewer than k people have a number


def few_valued_columns(counted: Sequence[Counted], k: int) -> list[str]:
    """Name the numbers that are categories, as `anon.synthesize` finds them."""
    return [one.name for one in counted if one.numbers is not None and is_few_valued(*one.numbers, k)]


def whole_redrawing(
    columns: Sequence[ColumnParts],
    people: Ints | None,
    k: int,
    derived: str,
    random: np.random.Generator,
    whole: Sequence[tuple[ColumnParts, Ints | None]],
) -> Redrawing:
    """Fit what is drawn and what is computed on a sample, with the numbers that the whole table may give away."""
    offsets = found_offsets(columns, people, k, FEWEST - 1) if derived == "auto" else []
    redrawing = Redrawing.of(columns, people, k, derived, random, whole, offsets=offsets, chance=random)
    numbers = {index: with_usual(one, *whole[index]) for index, one in redrawing.numbers.items()}
    return replace(redrawing, numbers=numbers)


def with_usual(numbers: SafeNumbers, whole: ColumnParts, people: Ints | None) -> SafeNumbers:
    """Add places that k people of the table share, and those at even levels, for parts where fewer than k have any."""
    everybody = numbers.for_rows(whole)
    places = everybody.at_ranks(np.arange(_LEVELS, dtype=np.float64), np.arange(len(whole.codes)), people)
    ordered = numbers.ordered
    if len(ordered) > _MOST_RANKS:
        ordered = ordered[np.linspace(0, len(ordered) - 1, _MOST_RANKS).astype(np.int64)]
    values, codes = np.unique(everybody.places[everybody.is_regular], return_inverse=True)
    whose = None if people is None else people[everybody.is_regular]
    held = values[people_in(codes.astype(np.int64), whose, len(values)) >= numbers.k]
    return replace(numbers, usual=places, ordered=ordered, held=held)


def without_rows(redrawing: Redrawing) -> Redrawing:
    """Return what parts need to know: nothing of any row."""
    nobody = np.zeros(0, np.int64)
    columns = [replace(one, codes=nobody, array=one.array.slice(0, 0)) for one in redrawing.columns]
    return of_part(redrawing, columns, None)


def of_part(redrawing: Redrawing, columns: Sequence[ColumnParts], people: Ints | None) -> Redrawing:
    """Return what is known of the whole table for the rows of a part."""
    return replace(
        redrawing,
        columns=columns,
        people=people,
        computed=[replace(one, column=columns[one.formula.column]) for one in redrawing.computed],
        numbers={index: one.for_rows(columns[index]) for index, one in redrawing.numbers.items()},
    )


def _with_equal(part: Redrawing) -> Redrawing:
    """Find the numbers that are equal in many rows of a part; those rare in the whole table are not drawn."""
    decided = {lookup.column for lookup in part.lookups}
    settled = [index for index in part.numbers if index not in decided] + decided_by_choices(part.lookups)
    return replace(part, equal=found_equal(part.columns, part.numbers, settled, part.people, part.k))


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
        shown = [noisy(one, redrawing.k, random) for one in counts]
        return cls(without_rows(redrawing), shown, leaf, keep_out, derived)

    def drawn(
        self,
        columns: Sequence[ColumnParts],
        people: Ints | None,
        count: int,
        schema: pa.Schema,
        random: np.random.Generator,
        tell: Tell = silent,
    ) -> pa.Table:
        """Draw so many new rows from those of a part, as `anon.synthesize` does, of values that the table allows."""
        part = of_part(self.redrawing, columns, people)
        implications = Implications([], [], [])
        if self.derived == "auto":
            part = _with_equal(part)
            computed = [one.formula.column for one in part.computed]
            follow = [one.column for one in part.offsets]
            implications = found_implications(columns, computed, people, part.k, FEWEST - 1, follow=follow)
        used = without_some(np.arange(part.rows), people, self.keep_out, random)
        usual = is_usual(columns)
        if np.count_nonzero(~usual[used]) <= MOST_UNUSUAL * len(used):
            used = used[usual[used]]
        draw = _PartDraw(part, used, count, self.leaf, implications, random, whole_counts=self.counts)
        return part.table(draw.run(tell), schema)


@dataclass
class _PartDraw(SequentialDraw):
    """New rows of a part; choices are drawn as often as in the whole table, and those too rare in the part as there."""

    whole_counts: Sequence[Ints] = field(default_factory=list)

    def _draw_choice(self, index: int) -> None:
        counts = self.whole_counts[index]
        self._learner.root = counts / max(int(counts.sum()), 1)
        super()._draw_choice(index)
        self._learner.root = None

    def _wanted(self, index: int, shares: Floats, cells: Ints) -> Ints:
        """Return how often each choice is to be drawn."""
        return rounded_by_chance(self.whole_counts[index], self.count, self.random)

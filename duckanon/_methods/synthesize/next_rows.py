"""The rows of new people, one after the other, each drawn from the last row, the person, and how many rows come.

A next row takes three steps: how far its date is from the last one, which columns stay as they were, and all others.
Each step is a `Stage`, whose trees are grown once for all people and positions. A row that breaks a rule is drawn again
up to five times; then the history ends there. Trees tell apart up to twelve positions: later rows are too few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Floats, Ints
from duckanon._core.common.people import count_people
from duckanon._core.encoding.arrow import is_moment
from duckanon._core.encoding.parts import ColumnParts
from duckanon._methods.releasable.safe_numbers import SafeNumbers, too_few_numbers
from duckanon._methods.synthesize.sequence_columns import (
    Lengths,
    SequenceColumns,
    cap_numbers,
    rank_among,
    subtract_columns,
    take_rows,
)
from duckanon._methods.synthesize.sequential_draw import MOST_CHOICES, Repeats, Stage, StageCells, StageColumn

_MOST_COUNTED = 12  # rows before and after, in which trees tell positions apart
_SEEN, _MOST_SEEN = 3, 8  # how often a choice was made before is counted up to so many, for columns of so few choices
_STAYS = 0.1  # the share of rows in which a column of many choices stays as it was; of few, transitions tell
_TRIES = 5  # draws of a next row; after them a history without a row that keeps all rules ends, or a date is moved


class SourcePeople(NamedTuple):
    """What rows are learnt from.

    Attributes:
        group: The number of the group.
        is_used: Its people.
        quantiles: The places of numbers at levels, by column of the table.
    """

    group: int
    is_used: Bools
    quantiles: Mapping[int, Callable[[Floats], Ints]]


class HistoryLimits(NamedTuple):
    """What rows must not break, in the dates of the table.

    Attributes:
        highest: Returns the last place of the column that orders rows, or of a date, given people and the column.
        broken: Tells which rows break a rule, from the last row, the row, and its person.
    """

    highest: Callable[[Ints, int], Floats]
    is_broken: Callable[[StageCells, StageCells, Ints], Bools]


class NextRows:
    """Draws rows that follow others.

    The key of a column of people is ``person`` and its number in the table, of the last row ``last``, of the next
    ``own``.
    """

    def __init__(
        self,
        table: SequenceColumns,
        lengths: Lengths,
        leaf: int,
        derived: str,
        is_usual: Bools,
        random: np.random.Generator,
    ) -> None:
        """Learn how rows follow each other."""
        self._table, self._lengths, self._random = table, lengths, random
        rows = table.sequences
        self._person_of_row, self._person = table.people[rows.later], rows.person[rows.later]
        self._is_usual = is_usual[rows.later]
        is_dated = table.order is not None and is_moment(table.columns[table.order].type)
        few = [index for index in table.events if 2 <= table.columns[index].choices <= _MOST_SEEN]
        self._counted = [] if is_dated else [index for index in few if table.columns[index].regular is None]
        context = list(self._context())
        self._gap: Stage | None = None
        self._gaps: dict[int, dict[str, Callable[[Floats], Ints]]] = {}
        if table.order is not None:
            order = table.columns[table.order].array
            gap = subtract_columns(
                "gap", order.take(rows.before), order.take(rows.later), self._person_of_row, table.reading
            )
            everybody = np.arange(len(rows.later))
            self._numbers = None
            if gap.regular is not None:
                name, known = table.columns[table.order].name, self._person_of_row[gap.is_regular]
                if count_people(np.zeros(len(known), np.int64), known, 1)[0] < table.k:  # NULL for nearly everybody
                    raise too_few_numbers(name, table.k)
                numbers = SafeNumbers.of(replace(gap, name=name), self._person_of_row, table.k)
                self._numbers = rank_among(numbers, everybody)
            self._gap_parts = gap
            column = StageColumn("gap", gap, gap, self._person_of_row, self._numbers)
            self._gap = Stage(context, [column], self._person_of_row, leaf, table.k, derived, random)
            context += [column, self._column("own", table.order, rows.later)]
        stays = {index: part for index in table.events if (part := self._find_stays(index)) is not None}
        columns = [StageColumn(part.name, part, part, self._person_of_row, None) for part in stays.values()]
        self._same = Stage(context, columns, self._person_of_row, leaf, table.k, "off", random) if stays else None
        drawn = [self._column("own", index, rows.later) for index in table.events]
        same = {f"own {index}": (part.name, f"last {index}") for index, part in stays.items()}
        context += columns
        # Transitions are counted where people make few different choices.
        followed = [
            i for i in table.events if (part := table.columns[i]).regular is None and 2 <= part.choices <= MOST_CHOICES
        ]
        last = {f"own {index}": f"last {index}" for index in followed}
        repeats = Repeats(same, last)
        self._row = (
            Stage(context, drawn, self._person_of_row, leaf, table.k, derived, random, repeats) if drawn else None
        )

    @property
    def least(self) -> dict[str, int]:
        """As that of a stage."""
        return {} if self._row is None else self._row.least

    def _find_stays(self, index: int) -> ColumnParts | None:
        """Tell in which rows a number, or a choice between many, is the same as in the last row, if in many."""
        column, rows = self._table.columns[index], self._table.sequences
        if column.regular is None and column.choices <= MOST_CHOICES:
            return None
        is_same = column.codes[rows.later] == column.codes[rows.before]
        if column.regular is not None:
            places, is_regular = self._table.numbers[index].places, column.is_regular
            is_same &= (places[rows.later] == places[rows.before]) | ~is_regular[rows.later]
        people = count_people(is_same.astype(np.int64), self._person_of_row, 2)
        if is_same.mean() < _STAYS or people.min() < self._table.k:
            return None
        return cap_numbers(f"same {index}", is_same.astype(np.int64), 1)

    def _column(self, kind: str, index: int, rows: Ints) -> StageColumn:
        table = self._table
        column = table.columns[index]
        part = take_rows(column, rows, f"{kind} {column.name}")
        return StageColumn(f"{kind} {index}", part, *table.whole_of(index), table.numbers.get(index))

    def _context(self) -> Iterator[StageColumn]:
        table, rows = self._table, self._table.sequences
        for index in table.personal:
            yield self._column("person", index, rows.firsts[self._person])
        after = rows.lengths[self._person] - rows.position
        for key, part in (
            ("length", take_rows(self._lengths.column, self._person)),
            ("position", cap_numbers("position", rows.position, _MOST_COUNTED)),
            ("after", cap_numbers("after", after, _MOST_COUNTED)),
        ):
            yield StageColumn(key, part, part, self._person_of_row, None)
        for index in self._counted:
            seen = self._count_choices_before(index)
            for choice in range(table.columns[index].choices):
                part = cap_numbers(f"seen {index} {choice}", seen[:, choice], _SEEN)
                yield StageColumn(part.name, part, part, self._person_of_row, None)
        for index in ([] if table.order is None else [table.order]) + list(table.events):
            yield self._column("last", index, rows.before)

    def _count_choices_before(self, index: int) -> Ints:
        """Count how often each choice of a column was made in all rows before a row."""
        rows, column = self._table.sequences, self._table.columns[index]
        seen = np.zeros((len(column.codes), column.choices), np.int64)
        for position in range(1, rows.longest):
            here = rows.position == position
            before, later = rows.before[here], rows.later[here]
            seen[later] = seen[before]
            seen[later, column.codes[before]] += 1
        return seen[rows.later]

    def histories(
        self, people: StageCells, first: StageCells, lengths: Ints, learnt: SourcePeople, limits: HistoryLimits
    ) -> Iterator[tuple[Ints, StageCells]]:
        """Draw the rows of new people after their first one.

        Args:
            people, first: The columns of people, with the group of their length, and those of their first row, whose
                keys begin with ``own``.
            lengths: How many rows each has.
            learnt: What is learnt from.
            limits: What must not be broken.

        Yields:
            The person of each next row, and the rows.
        """
        rows = np.flatnonzero(learnt.is_used[self._person] & self._is_usual)
        active, last = np.flatnonzero(lengths > 1), first
        last = {key: (codes[active], places[active]) for key, (codes, places) in first.items()}
        seen = {index: _one_hot(last[f"own {index}"][0], self._table.columns[index]) for index in self._counted}
        position = 1
        while len(active) and len(rows):
            progress.check()
            new: StageCells = {}
            waiting = np.arange(len(active))
            is_done = np.zeros(len(active), np.bool_)
            for attempt in range(_TRIES):
                context = self._cells(people, last, seen, active, lengths, position)
                context = {key: (codes[waiting], places[waiting]) for key, (codes, places) in context.items()}
                drawn, is_broken, is_moved = self._next(context, rows, learnt, partial(limits.highest, active[waiting]))
                is_broken |= is_moved & (attempt < _TRIES - 1)
                before = {key: (codes[waiting], places[waiting]) for key, (codes, places) in last.items()}
                is_broken |= limits.is_broken(before, drawn, active[waiting])
                new = new or {key: (codes.copy(), places.copy()) for key, (codes, places) in drawn.items()}
                good = np.flatnonzero(~is_broken)
                for key, (codes, places) in drawn.items():
                    new[key][0][waiting[good]], new[key][1][waiting[good]] = codes[good], places[good]
                is_done[waiting[good]] = True
                waiting = waiting[is_broken]
                if not len(waiting):
                    break
            kept = np.flatnonzero(is_done)
            active, last = active[kept], {key: (codes[kept], places[kept]) for key, (codes, places) in new.items()}
            for index, counts in seen.items():
                seen[index] = counts[kept] + _one_hot(last[f"own {index}"][0], self._table.columns[index])
            yield active, last
            position += 1
            more = np.flatnonzero(lengths[active] > position)
            active, last = active[more], {key: (codes[more], places[more]) for key, (codes, places) in last.items()}
            seen = {index: counts[more] for index, counts in seen.items()}

    def _cells(
        self, people: StageCells, last: StageCells, seen: Mapping[int, Ints], active: Ints, lengths: Ints, position: int
    ) -> StageCells:
        """Return what the next rows are drawn from."""
        cells = {key: (codes[active], places[active]) for key, (codes, places) in people.items()}
        cells |= {key.replace("own", "last"): value for key, value in last.items()}
        before = np.full(len(active), min(position, _MOST_COUNTED))
        after = np.minimum(lengths[active] - position, _MOST_COUNTED)
        cells |= {"position": (before, before), "after": (after, after)}
        for index, counts in seen.items():
            for choice, count in enumerate(np.minimum(counts, _SEEN).T):
                cells[f"seen {index} {choice}"] = (count, count)
        return cells

    @progress.mute()
    def _next(
        self, context: StageCells, rows: Ints, learnt: SourcePeople, highest: Callable[[int], Floats]
    ) -> tuple[StageCells, Bools, Bools]:
        """Draw the next row of some people; return which break a rule, and the dates of which few people have."""
        count = len(context["length"][0])
        drawn: StageCells = {}
        is_broken = is_moved = np.zeros(count, np.bool_)
        order = self._table.order
        if self._gap is not None and order is not None:
            codes, places = context[f"last {order}"]
            is_here = codes == len(self._table.columns[order].outcomes)
            room = np.where(is_here, highest(order) - places, np.inf)
            if self._numbers is not None and learnt.group not in self._gaps:
                self._gaps[learnt.group] = {"gap": self._numbers.quantiles(rows, self._person_of_row)}
            quantiles = self._gaps.get(learnt.group, {})
            most = {"gap": room} if self._numbers is not None else {}
            drawn_columns, is_broken = self._gap.draw(learnt.group, rows, count, context, quantiles, most)
            gap, is_valid = count_steps(self._gap_parts, drawn_columns["gap"])
            is_valid &= is_here
            wanted = np.where(is_valid, places + gap, places)
            date_places = np.maximum(self._table.move_places(order, wanted), places)
            is_moved = date_places != wanted
            date_codes = np.where(is_valid, len(self._table.columns[order].outcomes), self._null_code(order, codes))
            drawn[f"own {order}"] = (date_codes, date_places)
            context = context | drawn_columns | {f"own {order}": drawn[f"own {order}"]}
        if self._same is not None:
            context |= self._same.draw(learnt.group, rows, count, context, {}, {})[0]
        if self._row is not None:
            quantiles = {f"own {index}": one for index, one in learnt.quantiles.items()}
            dates = [index for index in self._table.dates if index in self._table.numbers]
            most = {f"own {index}": highest(index) - context[f"own {order}"][1] for index in dates}
            drawn_columns, is_bad = self._row.draw(learnt.group, rows, count, context, quantiles, most)
            drawn |= drawn_columns
            is_broken = is_broken | is_bad
        return drawn, is_broken, is_moved

    def _null_code(self, index: int, codes: Ints) -> Ints:
        """Return the choice of rows without a date: NULL or, where too few people have none, what the last row has."""
        outcomes = self._table.columns[index].outcomes
        return np.full(len(codes), outcomes.index(None)) if None in outcomes else codes


def _one_hot(codes: Ints, column: ColumnParts) -> Ints:
    return np.eye(column.choices, dtype=np.int64)[codes]


def count_steps(column: ColumnParts, cells: tuple[Ints, Ints]) -> tuple[Ints, Bools]:
    """Return how many steps lie between two dates, and where that is known."""
    codes, places = cells
    special = np.array([0 if one is None else int(one) for one in column.outcomes] + [0], np.int64)
    is_null = np.array([one is None for one in column.outcomes] + [False])
    is_regular = (codes == len(column.outcomes)) & (column.regular is not None)
    return np.where(is_regular, places, special[codes]), ~is_null[codes]

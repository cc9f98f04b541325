"""A step in which columns are drawn, given others: the columns of people, or of their next row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from duckanon._core.common.arrays import Bools, Floats, Ints
from duckanon._core.common.progress import Tell, silent
from duckanon._core.encoding.offsets import found_offsets
from duckanon._core.encoding.parts import ColumnParts
from duckanon._methods.releasable.safe_numbers import SafeNumbers
from duckanon._methods.synthesize.coded_table import Parts
from duckanon._methods.synthesize.conditional_draw import ConditionalDraw
from duckanon._methods.synthesize.implication_rules import Implications
from duckanon._methods.synthesize.implications import found_implications
from duckanon._methods.synthesize.leaf_draws import FEWEST
from duckanon._methods.synthesize.leaf_learner import LeafLearner
from duckanon._methods.synthesize.redrawing import Redrawing
from duckanon._methods.synthesize.sequence_columns import coded
from duckanon._methods.synthesize.sequential_draw import SequentialDraw

Cells: TypeAlias = dict[str, tuple[Ints, Ints]]
"""The choices of new rows, and the places of their numbers, by the key of a column."""


class StageColumn(NamedTuple):
    """A column of a stage.

    Attributes:
        key: Its name among the columns of all stages.
        part: Its rows.
        whole: The column of the table that these are rows of.
        people: Whose each row of the table is.
        numbers: Those of the table; None for a choice.
    """

    key: str
    part: ColumnParts
    whole: ColumnParts
    people: Ints | None
    numbers: SafeNumbers | None


class Stage:
    """Draws columns, given others."""

    def __init__(
        self,
        given: Sequence[StageColumn],
        drawn: Sequence[StageColumn],
        people: Ints | None,
        leaf: int,
        k: int,
        derived: str,
        random: np.random.Generator,
        same: Mapping[str, tuple[str, str]] | None = None,
        last: Mapping[str, str] | None = None,
    ) -> None:
        """Find out what follows from what, and which rules hold; `same` and `last` are those of `ConditionalDraw`."""
        self._columns = [*given, *drawn]
        self._drawn = range(len(given), len(self._columns))
        self._given = range(len(given))
        self._place = {one.key: index for index, one in enumerate(self._columns)}
        self._same = {
            self._place[key]: (self._place[of], self._place[last]) for key, (of, last) in (same or {}).items()
        }
        self._last = {self._place[key]: self._place[of] for key, of in (last or {}).items()}
        self._leaf, self._random = leaf, random
        parts = [one.part for one in self._columns]
        offsets = found_offsets(parts, people, k, FEWEST - 1, self._given) if derived == "auto" else []
        self.table = Redrawing.of(
            parts,
            people,
            k,
            derived,
            random,
            [(one.whole, one.people) for one in self._columns],
            {index: one.numbers for index, one in enumerate(self._columns) if one.numbers is not None},
            self._given,
            offsets,
        )
        self._rules = Implications([], [], [])
        if derived == "auto":
            computed = [one.formula.column for one in self.table.computed]
            follow = [one.column for one in self.table.offsets]
            self._rules = found_implications(self.table.columns, computed, people, k, FEWEST - 1, self._given, follow)
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
        tell: Tell = silent,
    ) -> tuple[Cells, Bools]:
        """Draw new rows.

        Args:
            group: A number for the rows that are learnt from: trees are grown once for each.
            rows: These rows.
            count: How many rows are drawn.
            cells: The columns that are given.
            quantiles: The places of numbers at levels, where columns are given.
            highest: The largest number that each new row may have.
            tell: As everywhere.

        Returns:
            The columns that are drawn, and the rows that break a rule.
        """
        place = self._place
        given = Parts({}, {}, {})
        for index in self._given:
            given.codes[index], given.places[index] = cells[self._columns[index].key]
        if len(self._given):
            if group not in self._learners:
                whose = None if self.table.people is None else self.table.people[rows]
                self._learners[group] = LeafLearner(whose, self._leaf, self._random)
            draw: SequentialDraw = ConditionalDraw(
                self.table,
                rows,
                count,
                self._leaf,
                self._rules,
                self._random,
                learner=self._learners[group].again(),
                given=given,
                quantiles={place[key]: one for key, one in quantiles.items() if key in place},
                highest={place[key]: one for key, one in highest.items() if key in place},
                same=self._same,
                last=self._last,
            )
        else:
            draw = SequentialDraw(self.table, rows, count, self._leaf, self._rules, self._random)
        parts = draw.run(tell)
        arrays = self.table.arrays(parts, [one.formula.column for one in self.table.computed])
        found: Cells = {}
        for index in self._drawn:
            column = self._columns[index]
            if index in arrays:
                assert column.numbers is not None
                found[column.key] = coded(column.part, column.numbers, arrays[index])
            else:
                found[column.key] = parts.codes[index], parts.places.get(index, parts.codes[index])
        return found, draw.is_impossible

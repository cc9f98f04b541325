"""Choices between many values, such as occupations and industries: those that go along come out together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from duckanon._core.common.arrays import Ints, Reals
from duckanon._core.encoding.coordinates import Places
from duckanon._methods.synthesize.pair_tables import Choices, relation, shared_table, whole_numbers


class WideChoices:
    """Columns of many values that are drawn one after the other.

    A few coordinates place a value by what the other columns have to do with it, and what two such columns have to do
    with each other would be lost. So each is drawn within the values of that earlier one with which it goes along most:
    how often pairs come out is a table of counts of at least k people (`pair_tables.shared_table`), and the coordinates
    tell for whom.
    """

    def __init__(self, people: Ints | None, k: int) -> None:
        """Take whose each row of the original is, None where every row is another person, and the least number."""
        self._people = people
        self._k = k
        self._drawn: list[tuple[Choices, Ints]] = []

    def assigned(self, places: Places, scores: Reals, held: Choices, wanted: Ints, random: np.random.Generator) -> Ints:
        """Choose for every new row by its coordinates, each choice as often as it is wanted."""
        made = self._within(places, scores, held, wanted, random)
        self._drawn.append((held, made))
        return made

    def _within(self, places: Places, scores: Reals, held: Choices, wanted: Ints, random: np.random.Generator) -> Ints:
        table = None
        if self._drawn:
            related, given = max(self._drawn, key=lambda drawn: relation(drawn[0], held))
            table = shared_table(related, held, self._people, self._k)
        if table is None:
            return places.assigned(scores, wanted)
        counts = whole_numbers(table, np.bincount(given, minlength=related.count), wanted, random)
        made = np.empty(len(given), np.int64)
        for rows, count in zip(_rows_of(given, related.count), counts, strict=True):
            made[rows] = places.assigned(scores[rows], count)
        return made


def _rows_of(codes: Ints, count: int) -> Sequence[Ints]:
    """Return the rows of each choice."""
    return np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes, minlength=count))[:-1])

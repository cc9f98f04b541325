"""Choices between many values: pairs are drawn from tables all counts of which are those of at least k people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Floats, Ints, Reals
from duckanon._core.common.people import people_in
from duckanon._core.encoding.coordinates import Places, correspondences, pair_counts

_LEAST_GROUP = 3  # times k: the people of the smallest groups of values that are told apart
_COARSER = 3  # times as many in the groups of the next step
_ROUNDS = 50  # of fitting a table to its margins


@dataclass(frozen=True)
class Choices:
    """The choice of every row in a column, and how many there are."""

    codes: Ints
    count: int


def relation(one: Choices, other: Choices) -> float:
    """Return how far two choices go along: chi squared beyond what chance gives on average, by rows.

    Examples:
        >>> sexes, names = Choices(np.array([0, 0, 1, 1]), 2), Choices(np.array([0, 1, 2, 2]), 3)
        >>> relation(sexes, names), relation(sexes, sexes)
        (0.5, 0.75)
    """
    cells = _cells(one, other)
    rows = cells.sum()
    shares = [cells.sum(axis=1, keepdims=True) / rows, cells.sum(axis=0, keepdims=True) / rows]
    by_chance = shares[0] * shares[1] * rows
    found = float(((cells - by_chance) ** 2 / np.where(by_chance > 0, by_chance, 1.0)).sum())
    degrees = np.prod([np.count_nonzero(share) - 1 for share in shares])
    return float((found - degrees) / rows)


def shared_table(one: Choices, other: Choices, people: Ints | None, k: int) -> Floats | None:
    """Return how many rows have each pair of choices, as far as at least k people say so; None if chance explains all.

    A pair that at least k people have is about as frequent as it is. Of all others, groups of values of one column with
    groups of values of the other, by where they are in a correspondence analysis; where k people are in such a block,
    its rows are spread over its pairs as if the columns had nothing more to do with each other, and else the blocks of
    larger groups are looked at. So a pair of one person is about as frequent as pairs that nobody has but that are
    alike, and each choice has its rows. Which values are alike, all people say together: pairs of one person are 1.14
    times as frequent as in tables of other people (3,000 of the tests), where a table of every pair has them 2.4 times
    as often.
    """
    cells = _cells(one, other)
    everybody = int(people_in(np.zeros_like(one.codes), people, 1)[0])
    places = correspondences(cells, everybody)
    if places is None:
        return None
    trees = [Places(place, cells.sum(axis=1 - axis).astype(np.int64)) for axis, place in enumerate(places)]
    found, is_open = np.zeros_like(cells), np.ones(cells.shape, bool)
    for groups in _coarser_and_coarser(trees, _LEAST_GROUP * k / max(everybody, 1)):
        progress.check()
        block = groups[0][:, None] * (int(groups[1].max()) + 1) + groups[1]
        is_left = is_open[one.codes, other.codes]
        here = block[one.codes, other.codes][is_left]
        whose = None if people is None else people[is_left]
        is_told = is_open & (people_in(here, whose, int(block.max()) + 1) >= k)[block]
        rest = np.where(is_open, cells, 0.0)
        found += _spread(rest, np.where(is_told, _independent(rest), 0.0), block)
        is_open &= ~is_told
    rest = np.where(is_open, cells, 0.0)  # of fewer than k people in all
    found += _spread(rest, _independent(cells), np.zeros(cells.shape, np.int64))
    return fitted(found, cells.sum(axis=1), cells.sum(axis=0))


def _coarser_and_coarser(trees: Sequence[Places], least: float) -> Iterator[list[Ints]]:
    """Put the values of two columns into groups: each by itself, then of at least a share of the rows, then all."""
    yield [np.arange(len(tree.counts)) for tree in trees]
    while least < 1 / 2:
        yield [tree.groups(least * int(tree.counts.sum())) for tree in trees]
        least *= _COARSER
    yield [np.zeros(len(tree.counts), np.int64) for tree in trees]


def _independent(cells: Floats) -> Floats:
    """Return what cells would be by their margins, but for a factor."""
    return np.outer(cells.sum(axis=1), cells.sum(axis=0))


def _spread(rows: Floats, weights: Floats, block: Ints) -> Floats:
    """Spread the rows of each block over its cells, by weights."""
    count = int(block.max()) + 1
    totals, weight = (np.bincount(block.ravel(), one.ravel(), count) for one in (rows, weights))
    return np.asarray(weights * np.divide(totals, weight, out=np.zeros(count), where=weight > 0)[block])


def _cells(one: Choices, other: Choices) -> Floats:
    return pair_counts(one.codes, one.count, other.codes, other.count)


def fitted(table: Floats, rows: Floats, columns: Floats) -> Floats:
    """Multiply rows and columns of a table until their sums are what they should be, as far as its zeros allow."""
    made = table
    for _ in range(_ROUNDS):
        made = made * (rows / np.maximum(made.sum(axis=1), 1e-200))[:, None]
        made = made * (columns / np.maximum(made.sum(axis=0), 1e-200))
    return made


def whole_numbers(table: Floats, rows: Ints, columns: Ints, random: np.random.Generator) -> Ints:
    """Round a table of expected counts at random to whole numbers of given sums, the same in total."""
    expected = fitted(table, rows.astype(np.float64), columns.astype(np.float64))
    made: Ints = np.floor(expected).astype(np.int64)
    shares = expected - made
    for row in np.flatnonzero(made.sum(axis=1) > rows).tolist():  # where zeros do not allow the sums
        made[row] = random.multivariate_hypergeometric(made[row], rows[row])
    room = columns - made.sum(axis=0)
    for row in random.permutation(len(rows)).tolist():
        while (needed := int(rows[row] - made[row].sum())) > 0:
            weights = np.where(room > 0, shares[row] + 1e-9 * room, 0.0)
            count = min(needed, int(np.count_nonzero(weights)))
            taken = random.choice(len(room), count, replace=False, p=weights / weights.sum())
            made[row, taken] += 1
            room[taken] -= 1
    return made


class WideChoices:
    """Columns of many values that are drawn one after the other.

    A few coordinates place a value by what the other columns have to do with it, and what two such columns have to do
    with each other would be lost. So each is drawn within the values of that earlier one with which it goes along most:
    how often pairs come out is a table of counts of at least k people (`shared_table`), and the coordinates
    tell for whom.
    """

    def __init__(self, people: Ints | None, k: int) -> None:
        """Take whose each row of the original is, None where every row is another person, and the least number."""
        self._people = people
        self._k = k
        self._drawn: list[tuple[Choices, Ints]] = []

    def assigned(self, places: Places, scores: Reals, held: Choices, wanted: Ints, random: np.random.Generator) -> Ints:
        """Choose for every new row by its coordinates, each choice as often as it is wanted."""
        table = None
        if self._drawn:
            related, given = max(self._drawn, key=lambda drawn: relation(drawn[0], held))
            table = shared_table(related, held, self._people, self._k)
        if table is None:
            made = places.assigned(scores, wanted)
        else:
            sizes = np.bincount(given, minlength=related.count)
            counts = whole_numbers(table, sizes, wanted, random)
            made = np.empty(len(given), np.int64)
            by_choice = np.split(np.argsort(given, kind="stable"), np.cumsum(sizes)[:-1])
            for rows, count in zip(by_choice, counts, strict=True):
                made[rows] = places.assigned(scores[rows], count)
        self._drawn.append((held, made))
        return made

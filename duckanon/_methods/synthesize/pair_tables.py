"""Choices from scores: as often as wanted, with the relations between columns that they hand on.

New rows in clusters have scores, not choices. Taking the choice of the largest score makes rare choices rarer, so
offsets are added until each is made as often as wanted (`choose_by_score`), and later scores move by their regression
on what was chosen (`Residuals`). For choices between many values scores are too coarse: pairs of such columns are drawn
from a table of counts, all of them those of at least k people (`build_pair_table`), which is fitted to its margins and
rounded by chance. Covariances between columns are shrunk by what chance explains of them (James and Stein).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Floats, Ints, Ints32, Reals
from duckanon._core.common.people import count_people
from duckanon._core.encoding.column_codecs import ChoiceCoordinates, count_choice_pairs, find_correspondences

_LEAST_GROUP = 3  # times k: the people of the smallest groups of values that are told apart
_COARSER = 3  # times as many in the groups of the next step
_PAIR_ROUNDS = 50  # of fitting a table to its margins


@dataclass(frozen=True)
class Choices:
    """The choice of every row in a column, and how many there are."""

    codes: Ints
    count: int


def measure_relation(first: Choices, second: Choices) -> float:
    """Return how far two choices go along: chi squared beyond what chance gives on average, by rows.

    Examples:
        >>> sexes, names = Choices(np.array([0, 0, 1, 1]), 2), Choices(np.array([0, 1, 2, 2]), 3)
        >>> measure_relation(sexes, names), measure_relation(sexes, sexes)
        (0.5, 0.75)
    """
    cells = _count_pairs(first, second)
    rows = cells.sum()
    shares = [cells.sum(axis=1, keepdims=True) / rows, cells.sum(axis=0, keepdims=True) / rows]
    by_chance = shares[0] * shares[1] * rows
    statistic = float(((cells - by_chance) ** 2 / np.where(by_chance > 0, by_chance, 1.0)).sum())
    degrees = np.prod([np.count_nonzero(share) - 1 for share in shares])
    return float((statistic - degrees) / rows)


def build_pair_table(first: Choices, second: Choices, people: Ints | None, k: int) -> Floats | None:
    """Return how many rows have each pair of choices, as far as at least k people say so; None if chance explains all.

    A pair that at least k people have is about as frequent as it is. Of all others, groups of values of one column with
    groups of values of the other, by where they are in a correspondence analysis; where k people are in such a block,
    its rows are spread over its pairs as if the columns had nothing more to do with each other, and else the blocks of
    larger groups are looked at. So a pair of one person is about as frequent as pairs that nobody has but that are
    alike, and each choice has its rows. Which values are alike, all people say together: pairs of one person are 1.14
    times as frequent as in tables of other people (3,000 of the tests), where a table of every pair has them 2.4 times
    as often.
    """
    cells = _count_pairs(first, second)
    everybody = int(count_people(np.zeros_like(first.codes), people, 1)[0])
    places = find_correspondences(cells, everybody)
    if places is None:
        return None
    trees = [ChoiceCoordinates(place, cells.sum(axis=1 - axis).astype(np.int64)) for axis, place in enumerate(places)]
    counts, is_open = np.zeros_like(cells), np.ones(cells.shape, bool)
    for groups in _coarsen_groups(trees, _LEAST_GROUP * k / max(everybody, 1)):
        progress.check()
        block = groups[0][:, None] * (int(groups[1].max()) + 1) + groups[1]
        is_left = is_open[first.codes, second.codes]
        here = block[first.codes, second.codes][is_left]
        person_of_row = None if people is None else people[is_left]
        is_shared = is_open & (count_people(here, person_of_row, int(block.max()) + 1) >= k)[block]
        rest = np.where(is_open, cells, 0.0)
        counts += _spread_rows(rest, np.where(is_shared, _expect_independent(rest), 0.0), block)
        is_open &= ~is_shared
    rest = np.where(is_open, cells, 0.0)  # of fewer than k people in all
    counts += _spread_rows(rest, _expect_independent(cells), np.zeros(cells.shape, np.int64))
    return fit_margins(counts, cells.sum(axis=1), cells.sum(axis=0))


def _coarsen_groups(trees: Sequence[ChoiceCoordinates], least: float) -> Iterator[list[Ints]]:
    """Put the values of two columns into groups: each by itself, then of at least a share of the rows, then all."""
    yield [np.arange(len(tree.counts)) for tree in trees]
    while least < 1 / 2:
        yield [tree.groups(least * int(tree.counts.sum())) for tree in trees]
        least *= _COARSER
    yield [np.zeros(len(tree.counts), np.int64) for tree in trees]


def _expect_independent(cells: Floats) -> Floats:
    """Return what cells would be by their margins, but for a factor."""
    return np.outer(cells.sum(axis=1), cells.sum(axis=0))


def _spread_rows(rows: Floats, weights: Floats, block: Ints) -> Floats:
    """Spread the rows of each block over its cells, by weights."""
    count = int(block.max()) + 1
    totals, weight = (np.bincount(block.ravel(), one.ravel(), count) for one in (rows, weights))
    return np.asarray(weights * np.divide(totals, weight, out=np.zeros(count), where=weight > 0)[block])


def _count_pairs(first: Choices, second: Choices) -> Floats:
    return count_choice_pairs(first.codes, first.count, second.codes, second.count)


def fit_margins(table: Floats, rows: Floats, columns: Floats) -> Floats:
    """Multiply rows and columns of a table until their sums are what they should be, as far as its zeros allow."""
    fit = table
    for _ in range(_PAIR_ROUNDS):
        fit = fit * (rows / np.maximum(fit.sum(axis=1), 1e-200))[:, None]
        fit = fit * (columns / np.maximum(fit.sum(axis=0), 1e-200))
    return fit


def round_counts(table: Floats, rows: Ints, columns: Ints, random: np.random.Generator) -> Ints:
    """Round a table of expected counts at random to whole numbers of given sums, the same in total."""
    expected = fit_margins(table, rows.astype(np.float64), columns.astype(np.float64))
    counts: Ints = np.floor(expected).astype(np.int64)
    shares = expected - counts
    for row in np.flatnonzero(counts.sum(axis=1) > rows).tolist():  # where zeros do not allow the sums
        counts[row] = random.multivariate_hypergeometric(counts[row], rows[row])
    room = columns - counts.sum(axis=0)
    for row in random.permutation(len(rows)).tolist():
        while (needed := int(rows[row] - counts[row].sum())) > 0:
            weights = np.where(room > 0, shares[row] + 1e-9 * room, 0.0)
            count = min(needed, int(np.count_nonzero(weights)))
            columns_up = random.choice(len(room), count, replace=False, p=weights / weights.sum())
            counts[row, columns_up] += 1
            room[columns_up] -= 1
    return counts


class WideChoices:
    """Columns of many values that are drawn one after the other.

    A few coordinates place a value by what the other columns have to do with it, and what two such columns have to do
    with each other would be lost. So each is drawn within the values of that earlier one with which it goes along most:
    how often pairs come out is a table of counts of at least k people (`build_pair_table`), and the coordinates
    tell for whom.
    """

    def __init__(self, people: Ints | None, k: int) -> None:
        """Take the person of each row of the original (None: every row is another person) and k."""
        self._people = people
        self._k = k
        self._drawn: list[tuple[Choices, Ints]] = []

    def assign(
        self, places: ChoiceCoordinates, scores: Reals, original: Choices, wanted: Ints, random: np.random.Generator
    ) -> Ints:
        """Choose for every new row by its coordinates, each choice as often as it is wanted."""
        table = None
        if self._drawn:
            related, source = max(self._drawn, key=lambda drawn: measure_relation(drawn[0], original))
            table = build_pair_table(related, original, self._people, self._k)
        if table is None:
            codes = places.assign_choices(scores, wanted)
        else:
            sizes = np.bincount(source, minlength=related.count)
            counts = round_counts(table, sizes, wanted, random)
            codes = np.empty(len(source), np.int64)
            by_choice = np.split(np.argsort(source, kind="stable"), np.cumsum(sizes)[:-1])
            for rows, count in zip(by_choice, counts, strict=True):
                codes[rows] = places.assign_choices(scores[rows], count)
        self._drawn.append((original, codes))
        return codes


_CHOICE_ROUNDS = 60
_CLOSE = 5e-4  # the share of rows that are left for the last step
_LEARNT_FROM = 20_000  # rows; offsets hardly depend on more
_RIDGE = 0.01  # of each variance: what others leave of a feature may be next to nothing
_TO_NUMBERS = 0.3  # of what is handed on: with more, isolated people are recognised more often
_SETTLED = 65_536  # rows whose scores move at a time
_BEYOND = 2.326  # standard deviations above what is expected by chance: about 1 % of unrelated columns are beyond
_NULL = 1e-6  # of the largest variance of a column's features: a component that is none
_SUMMED = 16_384  # rows whose products are summed at a time


def choose_by_score(scores: Reals, wanted: Ints) -> Ints:
    """Choose by the largest score of every row, with offsets such that each choice is made as often as it is wanted.

    Without offsets, the largest score makes rare choices rarer. Offsets are found by steps against the errors of the
    counts; the few rows that are still too many go where they lose least.

    Examples:
        >>> choose_by_score(np.array([[3.0, 0, 0], [2, 1, 0], [1, 0, 0], [1, 0, 0.5]]), np.array([1, 2, 1])).tolist()
        [0, 1, 1, 2]
    """
    if scores.shape[1] == 2:
        codes: Ints = np.ones(len(scores), np.int64)
        codes[np.argsort(scores[:, 1] - scores[:, 0], kind="stable")[: wanted[0]]] = 0
        return codes
    offsets = _find_offsets(np.ascontiguousarray(scores[:_LEARNT_FROM]), wanted / max(int(wanted.sum()), 1))
    moved = scores + offsets
    codes = np.asarray(moved.argmax(axis=1), np.int64)
    _move_surplus(moved, codes, wanted)
    return codes


def _find_offsets(scores: Reals, shares: Reals) -> Reals:
    offsets = np.zeros(len(shares), scores.dtype)
    offsets[shares == 0] = -np.inf
    best, best_error, rate = offsets, np.inf, 2.0
    for _ in range(_CHOICE_ROUNDS):
        progress.check()
        errors = np.bincount((scores + offsets).argmax(axis=1), minlength=len(shares)) / len(scores) - shares
        total = float(np.abs(errors).sum())
        if total < best_error:
            best, best_error = offsets, total
        if total < _CLOSE:
            break
        offsets = (offsets - rate * errors).astype(scores.dtype)
        rate *= 0.97
    return best


def _move_surplus(scores: Reals, codes: Ints, wanted: Ints) -> None:
    """Move rows from choices that are made too often to those that are made too seldom, at the least loss."""
    room = wanted - np.bincount(codes, minlength=len(wanted))
    for choice in np.flatnonzero(room < 0).tolist():
        rows = np.flatnonzero(codes == choice)
        while room[choice] < 0:
            free = np.flatnonzero(room > 0)
            losses = scores[np.ix_(rows, free)] - scores[rows, choice][:, None]
            best = losses.argmax(axis=1)
            order = np.argsort(-losses[np.arange(len(rows)), best], kind="stable")[: -room[choice]]
            taken = []
            for index in order.tolist():
                target = int(free[best[index]])
                if room[target] > 0:
                    codes[rows[index]] = target
                    room[target] -= 1
                    room[choice] += 1
                    taken.append(index)
            rows = np.delete(rows, taken)


class Residuals:
    """Scores of new rows, the first of which become choices.

    A choice of the largest score is not the score, and taking the one for the other weakens what choices have to do
    with each other and with numbers. Once it is made, all later scores move by their regression on it: by as much as
    they would have been different had the scores been those of the choice. Each regression is that of what earlier
    choices leave.
    """

    def __init__(self, scores: Reals, covariance: Floats, numbers: int) -> None:
        """Take scores, the last so many of which are those of numbers, and their covariance."""
        self.scores = scores
        self._numbers = numbers
        self._left = covariance + np.diag(_RIDGE * np.diag(covariance) + 1e-12)

    def settle(self, start: int, end: int, encode: Callable[[Ints], Reals], codes: Ints) -> None:
        """Move the scores that follow, now that the scores from `start` to `end` have become choices.

        ``codes`` are the choices that were made, and ``encode`` returns their features.
        """
        weights = np.linalg.solve(self._left[start:end, start:end], self._left[start:end, end:])
        self._left[end:, end:] -= self._left[end:, start:end] @ weights
        weights[:, weights.shape[1] - self._numbers :] *= _TO_NUMBERS
        weights = weights.astype(self.scores.dtype)
        if not weights.any():
            return
        for first in range(0, len(self.scores), _SETTLED):
            progress.check()
            block = self.scores[first : first + _SETTLED]
            block[:, end:] += (encode(codes[first : first + len(block)]) - block[:, start:end]) @ weights


def measure_covariance(matrix: Reals, labels: Ints32) -> Floats:
    """Return the covariance of rows less the means of their clusters.

    Examples:
        >>> measure_covariance(np.array([[0.0, 1], [2, 3], [7, 9], [5, 5]]), np.array([0, 0, 1, 1], np.int32)).tolist()
        [[1.0, 1.5], [1.5, 2.5]]
    """
    counts = np.bincount(labels)
    sums = np.zeros((len(counts), matrix.shape[1]))
    products = np.zeros((matrix.shape[1], matrix.shape[1]))
    for start in range(0, len(matrix), _SUMMED):
        progress.check()
        block = matrix[start : start + _SUMMED]
        products += block.T @ block
        here = labels[start : start + _SUMMED]
        sums += np.stack([np.bincount(here, feature, len(counts)) for feature in block.T], axis=1)
    return np.asarray((products - (sums / counts[:, None]).T @ sums) / len(matrix))


def shrink_covariance(covariance: Floats, widths: Sequence[int], people: int) -> Floats:
    """Shrink the covariances between columns, each of so many features, by what chance explains of them.

    The squared canonical correlations of two columns that have nothing to do with each other, times the people, add up
    to a chi-squared variable, with as many degrees of freedom as pairs of components. Shrinking by one minus what
    chance gives over what there is, is what James and Stein do. Between two columns nothing is left if there is no more
    than chance gives. What is shrunk may be no covariance any more: its negative components are left out.
    """
    starts = np.cumsum([0, *widths])
    scales, ranks = np.zeros_like(covariance), []
    for start, end in pairwise(starts.tolist()):
        values, vectors = np.linalg.eigh(covariance[start:end, start:end])
        is_kept = values > max(_NULL * float(values[-1]), 1e-12)
        scales[start:end, start:end] = np.where(is_kept, vectors / np.sqrt(np.where(is_kept, values, 1.0)), 0.0)
        ranks.append(np.count_nonzero(is_kept))
    squares = (scales.T @ covariance @ scales) ** 2
    statistics = people * np.add.reduceat(np.add.reduceat(squares, starts[:-1], axis=0), starts[:-1], axis=1)
    degrees = np.outer(ranks, ranks)
    chance = degrees + _BEYOND * np.sqrt(2 * degrees)
    shares = np.where(statistics > chance, 1 - chance / np.maximum(statistics, 1e-300), 0.0)
    np.fill_diagonal(shares, 1.0)
    values, vectors = np.linalg.eigh(covariance * np.repeat(np.repeat(shares, widths, axis=0), widths, axis=1))
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)

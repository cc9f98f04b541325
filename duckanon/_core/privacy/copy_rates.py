"""Shares of released rows that repeat original ones, beside those of an honest sample of the same people.

Exact copies are counted over codes of rows. Near copies are released rows nearer to an isolated original than half the
way to any other original in a random half of the table; the other half is what an honest release would be. Few events
are compared by a negative binomial distribution, many by a normal one, and members with outsiders by a hypergeometric
one. Distributions are summed here, since importing scipy takes longer than the whole check of a small table. Distances
are computed within the radius of a near copy only.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from duckanon._core.common.arrays import Bools, Ints, Matrix
from duckanon._core.common.imports import import_function
from duckanon._core.privacy.neighbours import FEW_ROWS, find_nearest, find_pairs_within, square_all_distances

ISOLATED = 0.05  # of the originals, the farthest from all others
_FEW = 30  # events up to which the normal distribution is no stand-in
_AT_A_TIME = 128  # numbers of failures to begin with, mostly all that there are to look at
_RARE = 1e-4  # a chance below which there would be millions of them, the first of which a double cannot hold


@dataclass(frozen=True)
class Rate:
    """A share (and the number) of originals, the share that chance gives, and the largest that chance explains."""

    value: float
    reference: float
    limit: float
    count: int

    @property
    def is_within_limit(self) -> bool:
        """Whether chance explains the share."""
        return self.value <= self.limit


def compare_shares(
    hits: float, trials: float, reference_hits: float, reference_trials: float, confidence: float, clump: float = 1.0
) -> Rate:
    """Compare a share with that of a reference of limited size.

    Few events: those of the reference, as a Poisson count whose rate has Jeffreys' prior, predict those of an honest
    release by a negative binomial distribution. Many: two shares with the variances of binomial ones. An event concerns
    ``clump`` originals on average.
    """
    if min(trials, reference_trials) <= 0:
        return Rate(0.0, 0.0, 0.0, 0)
    value, share = min(1.0, hits / trials), min(1.0, reference_hits / reference_trials)  # sums of weights are rounded
    events = reference_hits / clump
    if events <= _FEW:
        ratio = reference_trials / (reference_trials + trials)
        limit = find_most_failures(confidence, events + 0.5, ratio) * clump / trials
    else:
        noise = share * (1 - share) * clump * (1 / trials + 1 / reference_trials)
        limit = share + NormalDist().inv_cdf(confidence) * math.sqrt(noise)
    return Rate(value, share, min(1.0, limit), round(hits))


def find_most_failures(confidence: float, successes: float, chance: float) -> int:
    """Return the quantile of a negative binomial distribution, as `scipy.stats.nbinom.ppf` does.

    Probabilities are summed up, since importing scipy takes longer than the whole check of a small table: no more
    successes than some dozens, or the first of them is too small for a double.

    Examples:
        >>> find_most_failures(0.99, 3.5, 0.4)
        16
    """
    if chance < _RARE:
        return _find_most_of_rare(confidence, successes, chance)
    probability, total, first = chance**successes, 0.0, 0  # of no failures; that of each number more is a ratio of it
    while True:
        failures = np.arange(first, 2 * first + _AT_A_TIME)
        ratios = (failures + successes) / (failures + 1) * (1 - chance)
        chances = probability * np.cumprod(np.append(1.0, ratios))
        sums = total + np.cumsum(chances[:-1])
        if sums[-1] >= confidence or not chances[-1]:  # rounding may leave the sum of all just below 1
            return first + int(np.searchsorted(sums, min(confidence, sums[-1])))
        probability, total, first = float(chances[-1]), float(sums[-1]), int(failures[-1]) + 1


def _find_most_of_rare(confidence: float, successes: float, chance: float) -> int:
    """Return the quantile where successes are rare, in a seventh of the time of `scipy.stats.nbinom.ppf`."""
    betainc, most = import_function("scipy.special:betainc"), 1
    while betainc(successes, most + 1, chance) < confidence:
        most *= 2
    return bisect.bisect_left(range(most), confidence, key=lambda failures: betainc(successes, failures + 1, chance))


def compare_members(hit: Bools, members: int, confidence: float) -> Rate:
    """Compare how many members, who come first, are hit with how many outsiders, where chance hits both alike."""
    inside, outside = int(hit[:members].sum()), int(hit[members:].sum())
    outsiders = len(hit) - members
    limit = find_most_inside(outside, members, outsiders, confidence)
    return Rate(inside / max(members, 1), outside / max(outsiders, 1), limit / max(members, 1), inside)


def find_most_inside(outside: int, members: int, outsiders: int, confidence: float) -> int:
    """Return how many members, at most, chance hits beside so many hits of outsiders.

    One member more is too many: of as many draws without replacement that many are members, or more, with a
    probability below 1 - ``confidence`` (a hypergeometric distribution, in a twentieth of the time of `scipy.stats`).

    Examples:
        >>> find_most_inside(0, 50, 50, 0.99)
        6
    """
    below, most = -1, members
    while most - below > 1:
        middle = (below + most) // 2
        if _chance_inside(middle + 1, middle + 1 + outside, members, outsiders) < 1 - confidence:
            most = middle
        else:
            below = middle
    return most


def _chance_inside(least: int, draws: int, members: int, outsiders: int) -> float:
    """Return the probability that at least so many of the people who are drawn are members."""
    first, last = max(least, draws - outsiders), min(draws, members)
    if first > last:
        return 0.0
    inside = np.arange(first, last)
    ratios = (members - inside) * (draws - inside) / ((inside + 1) * (outsiders - draws + inside + 1.0))
    ways = _log_choices(members, first) + _log_choices(outsiders, draws - first)
    start = ways - _log_choices(members + outsiders, draws)
    return float(np.exp(start + np.append(0.0, np.cumsum(np.log(ratios)))).sum())


def _log_choices(people: int, drawn: int) -> float:
    """Return the logarithm of the number of ways to draw so many of the people."""
    return math.lgamma(people + 1) - math.lgamma(drawn + 1) - math.lgamma(people - drawn + 1)


def draw_parts(rows: int, size: int, random: np.random.Generator) -> list[Ints]:
    """Draw random parts of about `size` rows that cover all rows; the last may overlap the one before."""
    order = random.permutation(rows)
    if rows <= 1.1 * size:
        return [order]
    return [order[min(start, rows - size) :][:size] for start in range(0, rows, size)]


def count_exact_copies(
    original: Ints, released: list[Ints], reference: Ints | None, size: int, confidence: float
) -> Rate:
    """Count originals with an equal released row, against those with an equal row in the reference.

    Given are codes of rows: the originals, parts of the release of ``size`` rows, and a reference sample as large, or
    None for the other originals: leaving one out is done among as many.
    """
    codes = count_codes(original, *released, reference)
    copies = np.bincount(original, minlength=codes)
    if reference is None:
        # Of the other rows equal to it, a record sees those in a random part of the table.
        seen = 1 - (1 - min(1.0, size / len(original))) ** np.maximum(copies - 1, 0)
    else:
        seen = np.minimum(np.bincount(reference, minlength=codes), 1).astype(float)
    hit = np.zeros(codes)
    for part in released:
        hit += np.minimum(np.bincount(part, minlength=codes), 1)
    share = hit / len(released)
    # An event concerns all originals that are equal: those that only one of the two has tell how many these are.
    clump = max(
        _measure_clump(copies, np.maximum(share - seen, 0)), _measure_clump(copies, np.maximum(seen - share, 0))
    )
    rows = len(original)
    return compare_shares(float(copies @ hit), rows * len(released), float(copies @ seen), rows, confidence, clump)


def count_codes(*tables: Ints | None) -> int:
    """Count the codes up to the largest one in use."""
    return 1 + max(int(codes.max()) for codes in tables if codes is not None)


def _measure_clump(copies: Ints, weight: Matrix) -> float:
    total = float(copies @ weight)
    return float((copies**2) @ weight) / total if total > 0 else 1.0


def measure_halves(
    original: Matrix, looked_at: Ints, random: np.random.Generator, splits: int
) -> list[tuple[Matrix, Matrix]]:
    """Split a table at random; return how far originals are from the nearest other in their own and the other half."""
    result = []
    is_tiny = len(original) <= FEW_ROWS  # all distances then are computed once, not for each half
    apart = np.sqrt(square_all_distances(original[looked_at], original) / original.shape[1]) if is_tiny else None
    if apart is not None:
        apart[np.arange(len(looked_at)), looked_at] = np.inf
    for _ in range(splits):
        halves = np.array_split(random.permutation(len(original)), 2)
        own_half, other_half = np.empty(len(looked_at)), np.empty(len(looked_at))
        for half in halves:
            position = np.full(len(original), -1)
            position[half] = np.arange(len(half))
            position = position[looked_at]
            is_inside = position >= 0
            if apart is None:
                distances = find_nearest(original[looked_at], original[half], 1, skip_self=position)[0][:, 0]
            else:
                distances = apart[:, half].min(axis=1)
            own_half[is_inside], other_half[~is_inside] = distances[is_inside], distances[~is_inside]
        result.append((own_half, other_half))
    return result


def find_near_radii(splits: Sequence[tuple[Matrix, Matrix]], drawn: Bools | None = None) -> Matrix:
    """Return how near a row must be to each original to be a near copy in one of the splits; 0 if none can be."""
    radii = [np.where(find_farthest(own_half, drawn), own_half / 2, 0.0) for own_half, _ in splits]
    return np.asarray(np.max(radii, axis=0))


def measure_parts(queries: Matrix, released: Matrix, chosen: Sequence[Ints], radii: Matrix) -> list[Matrix]:
    """Return how far each query is from the nearest row of each part of the release; infinitely beyond its radius."""
    asked = np.flatnonzero(radii > 0)
    sizes = np.array([len(part) for part in chosen])
    rows = np.concatenate(chosen)
    part_of = np.repeat(np.arange(len(chosen)), sizes)[np.argsort(rows, kind="stable")]
    counts = np.bincount(rows, minlength=len(released))
    starts = np.cumsum(counts) - counts
    result = np.full((len(chosen), len(queries)), np.inf)
    for query, point, distance in find_pairs_within(queries[asked], released, radii[asked]):
        times = counts[point]  # a row may be in several parts
        pair = np.repeat(np.arange(len(point)), times)
        index = starts[point][pair] + np.arange(len(pair)) - np.repeat(np.cumsum(times) - times, times)
        np.minimum.at(result, (part_of[index], asked[query[pair]]), distance[pair])
    return list(result)


def count_near_copies(
    distances: list[Matrix], splits: list[tuple[Matrix, Matrix]], confidence: float, drawn: Bools | None = None
) -> Rate:
    """Count isolated originals with a released row nearer than half the way to any other in their half of the table.

    Parts of a release are compared with halves because the share depends on the number of rows, most of all where
    values are few: a record that is unique among a thousand may well be met in another thousand.

    Args:
        distances: To the nearest row of each part of the release; a part has half as many rows as the table.
        splits: Distances to the nearest other original in the own and in the other half, as `measure_halves` gives
            them. The 5 % farthest from their own half are isolated; the other half is what an honest release would be.
        drawn: Which of the originals are a random sample of all, where others were chosen for being far out: these tell
            which distance only 5 % exceed.
    """
    hits = trials = reference_hits = 0
    for own_half, other_half in splits:
        is_isolated = find_farthest(own_half, drawn)
        hits += sum(int((of_part < own_half / 2)[is_isolated].sum()) for of_part in distances)
        trials += int(is_isolated.sum()) * len(distances)
        reference_hits += int((other_half < own_half / 2)[is_isolated].sum())
    # The release is the same in every split, so that several splits do not make its hits more certain.
    count = len(splits)
    return compare_shares(hits / count, trials / count, reference_hits, trials / len(distances), confidence)


def find_farthest(distances: Matrix, drawn: Bools | None = None) -> Bools:
    """Tell which originals are among the 5 % farthest from their reference; none that has an equal there."""
    sample = np.sort(distances if drawn is None else distances[drawn])
    count = max(1, round(ISOLATED * len(sample)))
    return np.asarray((distances >= sample[-count]) & (distances > 0))

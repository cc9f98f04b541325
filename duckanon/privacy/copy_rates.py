"""How often released rows repeat original ones, and how often an honest sample of the same people would."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import betainc, ndtri

from duckanon.common.arrays import Bools, Ints, Matrix
from duckanon.privacy.neighbours import nearest, row_hashes

ISOLATED = 0.05  # of the originals, the farthest from all others
_FEW = 30  # events up to which the normal distribution is no stand-in


@dataclass(frozen=True)
class Rate:
    """A share of originals, beside the share that an honest sample would have.

    Attributes
    ----------
    value, reference, limit
        Shares: found, expected, and the largest that chance explains.
    count
        The originals that the share counts.
    """

    value: float
    reference: float
    limit: float
    count: int

    @property
    def passed(self) -> bool:
        """Whether chance explains what was found."""
        return self.value <= self.limit


def rate(
    hits: float, trials: float, reference_hits: float, reference_trials: float, confidence: float, clump: float = 1.0
) -> Rate:
    """Compare a share with that of a reference of limited size.

    Parameters
    ----------
    hits, trials, reference_hits, reference_trials
        Events and originals looked at, in the release and in the reference.
    confidence
        The share of honest releases that pass.
    clump
        How many originals an event concerns on average.

    Notes
    -----
    Few events: those of the reference, as a Poisson count whose rate has Jeffreys' prior, predict those of an honest
    release by a negative binomial distribution. Many: two shares with the variances of binomial ones.
    """
    if min(trials, reference_trials) <= 0:
        return Rate(0.0, 0.0, 0.0, 0)
    events = reference_hits / clump
    if events <= _FEW:
        ratio = reference_trials / (reference_trials + trials)
        limit = _negative_binomial_quantile(confidence, events + 0.5, ratio) * clump / trials
    else:
        share = min(1.0, reference_hits / reference_trials)
        noise = share * (1 - share) * clump * (1 / trials + 1 / reference_trials)
        limit = share + float(ndtri(confidence)) * math.sqrt(noise)
    return Rate(hits / trials, reference_hits / reference_trials, min(1.0, limit), round(hits))


def _negative_binomial_quantile(share: float, failures: float, probability: float) -> int:
    """Return the smallest count whose distribution function reaches a share; ``failures`` need not be whole."""
    high = 1
    while betainc(failures, high + 1, probability) < share:
        high *= 2
    low = -1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if betainc(failures, middle + 1, probability) >= share else (middle, high)
    return high


def row_codes(*matrices: Matrix) -> list[Ints]:
    """Give equal rows of several matrices the same number, and return the numbers of each matrix."""
    _, inverse = np.unique(np.concatenate([row_hashes(rows) for rows in matrices]), return_inverse=True)
    return np.split(inverse.reshape(-1).astype(np.int64), np.cumsum([len(rows) for rows in matrices])[:-1])


def parts(rows: int, size: int, random: np.random.Generator) -> list[Ints]:
    """Draw random parts of about `size` rows that cover all rows; the last may overlap the one before."""
    order = random.permutation(rows)
    if rows <= 1.1 * size:
        return [order]
    return [order[min(start, rows - size) :][:size] for start in range(0, rows, size)]


def exact_copies(original: Ints, released: list[Ints], reference: Ints | None, size: int, confidence: float) -> Rate:
    """Count originals with an equal released row, against those with an equal row in the reference.

    Parameters
    ----------
    original, released, reference
        Codes of rows: the originals, parts of the release, a reference sample as large as each part or None for the
        other originals.
    size
        Rows in a part. Leaving one out is done among as many originals.
    confidence
        The share of honest releases that pass.
    """
    codes = 1 + max(int(part.max()) for part in [original, *released, *([] if reference is None else [reference])])
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
    clump = max(_clump(copies, np.maximum(share - seen, 0)), _clump(copies, np.maximum(seen - share, 0)))
    rows = len(original)
    return rate(float(copies @ hit), rows * len(released), float(copies @ seen), rows, confidence, clump)


def _clump(copies: Ints, weight: Matrix) -> float:
    total = float(copies @ weight)
    return float((copies**2) @ weight) / total if total > 0 else 1.0


def unique_copies(
    original: Ints,
    released: Ints,
    reference: Ints | None,
    random: np.random.Generator,
    confidence: float,
) -> Rate:
    """Count originals without an equal in the table that the release repeats, against a reference sample.

    Parameters
    ----------
    original, released, reference
        Codes of rows; no reference: one half of the originals serves as the reference of the other half, and parts of
        the release of that size are looked at.
    random
        Draws the parts.
    confidence
        The share of honest releases that pass.

    Notes
    -----
    No record that is unique among N rows has an equal among the others, so leaving one out says nothing; how many
    records that are unique in one half recur in the other does. Halves are compared with halves: of a record and its
    copy, exactly one pair of parts holds both, so that nothing is lost.
    """
    codes = 1 + max(int(part.max()) for part in [original, released, *([] if reference is None else [reference])])

    def present(rows: Ints) -> Bools:
        return np.bincount(rows, minlength=codes) > 0

    def single(rows: Ints) -> Bools:
        return np.equal(np.bincount(rows, minlength=codes), 1)

    if reference is not None:
        size = min(len(released), len(reference))
        unique = single(original)
        drawn = [present(released[part]) for part in parts(len(released), size, random)]
        hits, known = sum(int((unique & there).sum()) for there in drawn), unique & present(reference[:size])
        trials = int(unique.sum())
        return rate(hits, trials * len(drawn), int(known.sum()), trials, confidence)
    repeats = 8 if len(original) <= 100_000 else 2
    totals = np.zeros(4)
    for _ in range(repeats):
        halves = np.array_split(original[random.permutation(len(original))], 2)
        drawn = [present(released[part]) for part in parts(len(released), max(1, len(original) // 2), random)]
        for here, other in (halves, halves[::-1]):
            unique = single(here)
            totals[0] += sum(int((unique & there).sum()) for there in drawn)
            totals[1] += unique.sum() * len(drawn)
            totals[2] += (unique & present(other)).sum()
            totals[3] += unique.sum()
    hits, trials, known, known_trials = totals / repeats
    return rate(hits, trials, known, known_trials, confidence)


def half_distances(
    original: Matrix, looked_at: Ints, random: np.random.Generator, splits: int
) -> list[tuple[Matrix, Matrix]]:
    """Split a table at random, and return how far some originals are from others in their own and in the other half."""
    result = []
    for _ in range(splits):
        halves = np.array_split(random.permutation(len(original)), 2)
        own, other = np.empty(len(looked_at)), np.empty(len(looked_at))
        for half in halves:
            place = np.full(len(original), -1)
            place[half] = np.arange(len(half))
            place = place[looked_at]
            found = nearest(original[looked_at], original[half], 1, skip_self=place)[0][:, 0]
            own[place >= 0], other[place < 0] = found[place >= 0], found[place < 0]
        result.append((own, other))
    return result


def near_copies(
    distances: list[Matrix], splits: list[tuple[Matrix, Matrix]], confidence: float, drawn: Bools | None = None
) -> Rate:
    """Count isolated originals with a released row nearer than half the way to any other in their half of the table.

    Parameters
    ----------
    distances
        To the nearest row of each part of the release; a part has half as many rows as the table.
    splits
        Distances to the nearest other original in the own and in the other half, as :func:`half_distances` gives
        them. The 5 % farthest from their own half are isolated; the other half is what an honest release would be.
    confidence
        The share of honest releases that pass.
    drawn
        Which of the originals are a random sample of all, where others were chosen for being far out: these tell
        which distance only 5 % exceed.

    Notes
    -----
    Parts of a release are compared with halves because the share depends on the number of rows, most of all where
    values are few: a record that is unique among a thousand may well be met in another thousand.
    """
    hits = trials = reference_hits = 0
    for own, other in splits:
        chosen = isolated(own, drawn)
        hits += sum(int((found < own / 2)[chosen].sum()) for found in distances)
        trials += int(chosen.sum()) * len(distances)
        reference_hits += int((other < own / 2)[chosen].sum())
    # The release is the same in every split, so that several splits do not make its hits more certain.
    count = len(splits)
    return rate(hits / count, trials / count, reference_hits, trials / len(distances), confidence)


def isolated(distances: Matrix, drawn: Bools | None = None) -> Bools:
    """Tell which originals are among the 5 % farthest from their reference; none that has an equal there."""
    sample = np.sort(distances if drawn is None else distances[drawn])
    count = max(1, round(ISOLATED * len(sample)))
    return np.asarray((distances >= sample[-count]) & (distances > 0))

"""How often a release repeats records that nobody shares, the rarer the more telling, and how often chance does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from duckanon.common.arrays import Bools, Floats, Ints
from duckanon.privacy.copy_rates import Rate, code_count, parts
from duckanon.privacy.rarity import Rarity

COPIED = 0.005
"""The share of copies that the weights are best at telling from chance."""
_WORTH = 4.0  # repeated records that near misses may count for: they tell the number of equal ones within a half of it
_STRATA = 50
_BEYOND = 20  # draws from chance beyond the limit


@dataclass
class _Counts:
    """For every code: how often it was looked for and found, in the release and in the reference."""

    trials: Floats
    hits: Floats
    reference_trials: Floats
    reference_hits: Floats

    @classmethod
    def none(cls, codes: int) -> _Counts:
        return cls(*np.zeros((4, codes)))


def unique_copies(
    original: Ints,
    released: Ints,
    reference: Ints | None,
    rarity: Rarity,
    random: np.random.Generator,
    confidence: float,
) -> Rate:
    """Count originals without an equal in the table that the release repeats, against a reference sample.

    Parameters
    ----------
    original, released, reference
        Codes of rows; no reference: one half of the originals serves as the reference of the other half, and parts of
        the release of that size are looked at.
    rarity
        That of the originals.
    random
        Draws the parts, and from what chance gives.
    confidence
        The share of honest releases that pass.

    Returns
    -------
    Rate
        The weighted share of unique records that are repeated. A record weighs log(1 + 0.005 / p), p being its chance
        to be repeated: what a copy of it says for copies of one in 200 records, and against chance.

    Notes
    -----
    No record that is unique among N rows has an equal among the others, so leaving one out says nothing; how many
    records that are unique in one half recur in the other does. Halves are compared with halves: of a record and its
    copy, exactly one pair of parts holds both, so that nothing is lost.

    How many are repeated by chance is estimated from the reference, which few records may say little about, and from
    near misses, of which there are more; who of them, by their rarity. The limit is a quantile of Poisson counts whose
    mean is as uncertain as that estimate.
    """
    codes = code_count(original, released, reference)
    counted = _Counts.none(codes)
    if reference is not None:
        size = min(len(released), len(reference))
        drawn = [_present(released[part], codes) for part in parts(len(released), size, random)]
        _count(counted, original, drawn, _present(reference[:size], codes))
        expected = 2 * rarity.expected_pairs() * size / max(len(original) - 1, 1)
    else:
        repeats = 8 if len(original) <= 100_000 else 2  # more make chance smaller; large tables have little of it
        for _ in range(repeats):
            halves = np.array_split(original[random.permutation(len(original))], 2)
            drawn = [
                _present(released[part], codes) for part in parts(len(released), max(1, len(original) // 2), random)
            ]
            for half, other_half in (halves, halves[::-1]):
                _count(counted, half, drawn, _present(other_half, codes))
        for counts in (counted.trials, counted.hits, counted.reference_trials, counted.reference_hits):
            counts /= repeats
        expected = rarity.expected_pairs()
    scores = np.zeros(codes)
    scores[original] = rarity.scores
    worth = min(rarity.near_pairs + 0.5, _WORTH)
    return _weighted_rate(counted, scores, worth, expected, random, confidence)


def _present(rows: Ints, codes: int) -> Bools:
    return np.bincount(rows, minlength=codes) > 0


def _count(counted: _Counts, rows: Ints, drawn: list[Bools], reference: Bools) -> None:
    """Look for the rows that have no equal in each part of the release, and in the reference."""
    unique = np.bincount(rows, minlength=len(reference)) == 1
    counted.trials += unique * len(drawn)
    counted.hits += unique * np.sum(drawn, axis=0)
    counted.reference_trials += unique
    counted.reference_hits += unique & reference


def _weighted_rate(
    counted: _Counts, scores: Floats, worth: float, expected: float, random: np.random.Generator, confidence: float
) -> Rate:
    """Compare weighted shares.

    Parameters
    ----------
    counted
        What was looked for and found.
    scores
        In proportion to the chance of every code to be found once.
    worth, expected
        How many records are expected to be found in the reference, and how many found ones that counts for.
    random, confidence
        As in `unique_copies`.
    """
    looked_for = np.flatnonzero(counted.reference_trials > 0)
    if not len(looked_for):
        return Rate(0.0, 0.0, 0.0, 0)
    chance = scores * counted.reference_trials
    chance /= chance.sum()
    in_release = np.divide(counted.trials, counted.reference_trials, out=np.zeros(len(scores)), where=chance > 0)
    shape, exposure = counted.reference_hits.sum() + worth, 1 + worth / expected
    by_rarity = looked_for[np.argsort(scores[looked_for], kind="stable")]
    strata = np.array_split(by_rarity, min(_STRATA, len(by_rarity)))
    per_hit = np.array([(chance[stratum] * in_release[stratum]).sum() for stratum in strata])
    trials = np.array([counted.trials[stratum].sum() for stratum in strata])
    weights = np.log1p(COPIED * trials / (per_hit * shape / exposure))
    weight = np.zeros(len(scores))
    for stratum, value in zip(strata, weights, strict=True):
        weight[stratum] = value
    means = random.gamma(shape, 1 / exposure, int(np.ceil(_BEYOND / (1 - confidence))))
    by_chance = random.poisson(means[:, None] * per_hit) @ weights
    total = float(trials @ weights)
    return Rate(
        float(weight @ counted.hits) / total,
        float(weight @ counted.reference_hits) / float(weight @ counted.reference_trials),
        min(1.0, float(np.quantile(by_chance, confidence)) / total),
        round(counted.hits.sum()),
    )

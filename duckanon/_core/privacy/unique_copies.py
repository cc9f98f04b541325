"""Records that nobody shares and a release repeats, the rarer the more telling, and those that chance repeats."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from duckanon._core.common.arrays import Bools, Floats, Ints
from duckanon._core.privacy.copy_rates import Rate, code_count, parts
from duckanon._core.privacy.rarity import Rarity

_COPIED = 0.005  # the share of copies that the weights are best at telling from chance
_WORTH = 2.0  # repeated records that near misses may count for: they tell the number of equal ones within a half of it
_ANYWHERE = 0.2
"""Repeated records that may be anybody's, however rare their scores: 0.2 of the 12 of a thousand people of Adult
(fourteen columns) were, 0.03 of the 2 of ACS, and half as many where as many other people told how rare they are."""
_MOST_ANYWHERE = 0.1  # the share of repeated records that these may be: 0.05 let 2 % of 300 fresh people of ACS fail
_STRATA = 50
_BEYOND = 20  # draws from chance beyond the limit
_FEW = 0.2  # repeated records for each stratum, up to which drawing one by one is quicker than counts of all strata
_STEPS = 30  # after which the number that chance repeats stays the same


class _Chance(NamedTuple):
    """Number of records that chance repeats: a gamma distribution of the total, were no record repeated twice.

    Attributes:
        events: Repeated records that were seen, and what near misses count for.
        exposure: How many were to be expected of each of the total.
    """

    events: float
    exposure: float

    @property
    def mean(self) -> float:
        """Return the total that is expected."""
        return self.events / self.exposure


def unique_copies(
    original: Ints,
    released: Ints,
    reference: Ints | None,
    rarity: Rarity,
    random: np.random.Generator,
    confidence: float,
) -> Rate:
    """Count originals without an equal in the table that the release repeats, against what chance repeats.

    No record that is unique among n rows has an equal among the others, so leaving one out says nothing about it. Two
    equal rows do: were one of them drawn later, it would repeat a unique record, so that another n rows repeat about
    twice as many unique records as there are such pairs (Good 1953). The reference tells the same by what it repeats,
    and near misses, of which there are more, where both are few. Who of the unique records is repeated, their rarity
    tells. The limit is a quantile of Poisson counts whose mean is as uncertain as that estimate.

    Rows are given as codes. Parts of the release as large as the reference are looked at, or as the table without one.
    A unique record weighs log(1 + 0.005 / p) in the share that is repeated, p being its chance to be repeated: what a
    copy of it says for copies of one in 200 records, and against chance.
    """
    codes = code_count(original, released, reference)
    unique = np.flatnonzero(np.bincount(original, minlength=codes) == 1)
    if not len(unique):
        return Rate(0.0, 0.0, 0.0, 0)
    size = min(len(released), len(original if reference is None else reference))
    drawn = parts(len(released), size, random)
    hits = np.zeros(len(unique))
    for part in drawn:
        hits += np.bincount(released[part], minlength=codes)[unique] > 0
    repeated = None if reference is None else np.bincount(reference[:size], minlength=codes)[unique] > 0
    scores = np.zeros(codes)
    scores[original] = rarity.scores
    shares = scores[unique] / scores[unique].sum()
    chance = _chance(shares, repeated, rarity, len(original), size)
    people = len(original) + (0 if reference is None else min(len(reference), len(original)))
    anywhere = min(_MOST_ANYWHERE, _ANYWHERE * len(original) / people / chance.mean)
    shares = (1 - anywhere) * shares + anywhere / len(unique)
    return _weighted_rate(hits, len(drawn), repeated, shares, chance, random, confidence)


def _chance(shares: Floats, repeated: Bools | None, rarity: Rarity, people: int, size: int) -> _Chance:
    """Estimate how many unique records another sample, of ``size`` people, repeats."""
    worth = min(rarity.near_pairs + 0.5, _WORTH)
    equal_pairs = (rarity.near_pairs + 0.5) / rarity.near_per_equal  # expected by chance
    events = rarity.twins + worth
    exposure = rarity.twin_pairs / (people * size) + worth * max(people - 1, 1) / (2 * equal_pairs * size)
    if repeated is None:
        return _Chance(events, exposure)
    events += float(repeated.sum())
    chance = _Chance(events, exposure + 1)
    for _ in range(_STEPS):  # a record that is expected twice is still repeated once
        once = float(-np.expm1(-chance.mean * shares).sum()) / chance.mean
        chance = _Chance(events, exposure + once)
    return chance


def _weighted_rate(
    hits: Floats,
    trials: int,
    repeated: Bools | None,
    shares: Floats,
    chance: _Chance,
    random: np.random.Generator,
    confidence: float,
) -> Rate:
    """Compare the weighted share of the records found, in so many trials each, with that which chance repeats."""
    order = np.argsort(shares, kind="stable")
    count = min(_STRATA, len(shares))
    least, larger = divmod(len(shares), count)
    people = np.repeat([least + 1, least], [larger, count - larger])
    pieces = np.split(shares[order], [larger * (least + 1)])
    means = [part.reshape(-1, size).mean(axis=1) for part, size in zip(pieces, (least + 1, least), strict=True)]
    per_person = np.concatenate(means)
    weights = np.log1p(_COPIED / -np.expm1(-chance.mean * per_person))
    weight = np.empty(len(shares))
    weight[order] = np.repeat(weights, people)
    totals = random.gamma(chance.events, 1 / chance.exposure, int(np.ceil(_BEYOND / (1 - confidence))))
    by_chance = _weighted_counts(totals, trials, people, per_person, weights, random)
    total = float(weight.sum())
    expected = weight @ -np.expm1(-chance.mean * shares) if repeated is None else weight @ repeated
    return Rate(
        float(weight @ hits) / total / trials,
        float(expected) / total,
        min(1.0, float(np.quantile(by_chance, confidence)) / total / trials),
        round(hits.sum()),
    )


def _weighted_counts(
    totals: Floats, trials: int, people: Ints, per_person: Floats, weights: Floats, random: np.random.Generator
) -> Floats:
    """Draw the weighted number of records that chance repeats in so many trials, once for each total.

    The number of each stratum is a Poisson count. Where nearly all of these are 0, repeats are drawn one by one
    instead: a Poisson number of them, each in a random stratum. Some are dropped, since a record that is repeated
    several times counts once. The distribution is the same.
    """
    edges = np.cumsum(people * per_person)
    if float(totals.mean()) * trials * edges[-1] > _FEW * len(people):
        rates = -np.expm1(-totals[:, None] * per_person) * people
        return np.asarray(random.poisson(rates * trials) @ weights)
    draws = np.repeat(np.arange(len(totals)), random.poisson(totals * (trials * edges[-1])))
    strata = np.searchsorted(edges, random.random(len(draws)) * edges[-1], side="right")
    repeats = totals[draws] * per_person[strata]
    is_first = random.random(len(draws)) * repeats < -np.expm1(-repeats)
    return np.asarray(np.bincount(draws, is_first * weights[strata], minlength=len(totals)), np.float64)

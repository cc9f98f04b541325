"""Whether an attacker tells members of a release from other people by how near its rows come to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import NormalDist

import numpy as np

from duckanon._core.common.arrays import Floats, Matrix
from duckanon._core.common.imports import imported
from duckanon._core.privacy.audit import NORMAL_SCORES, isolated_places
from duckanon._core.privacy.copy_rates import Rate, parts
from duckanon._core.privacy.neighbours import nearest

LIMIT = 0.55
"""The largest AUC of all people that passes: members and others are told apart hardly better than by a coin."""
_NEAREST = 1e-3  # a distance at which a record is found: nearer ones do not make the mean over releases smaller


def membership(members: Floats, others: Floats, confidence: float) -> Rate:
    """Compare how near a release comes to its members and to others, by distances or scores that grow with them."""
    noise = np.sqrt((len(members) + len(others) + 1) / (12 * len(members) * len(others)))
    area = area_of(members, others)
    return Rate(area, 0.5, max(LIMIT, 0.5 + NormalDist().inv_cdf(confidence) * float(noise)), len(members))


def area_of(members: Floats, others: Floats) -> float:
    """Return the AUC: how often a member has a smaller score than another person, a tie being half."""
    ordered = np.sort(others)
    smaller, not_larger = (np.searchsorted(ordered, members, side).sum() for side in ("left", "right"))
    return 1 - float(smaller + not_larger) / (2 * len(members) * len(others))


def distance_scores(people: Matrix, releases: Sequence[Matrix]) -> Floats:
    """Return the mean, over releases, of the logarithm of the distance to the nearest row; of one, the distance."""
    if len(releases) == 1:
        return np.asarray(nearest(people, releases[0], 1)[0][:, 0], np.float64)
    logs = [np.log(nearest(people, release, 1)[0][:, 0] + _NEAREST) for release in releases]
    return np.asarray(np.mean(logs, axis=0), np.float64)


def isolated_membership(
    people: Matrix,
    others: Matrix,
    releases: Sequence[Matrix],
    random: np.random.Generator,
    confidence: float,
    *,
    most: int | None = None,
) -> Rate:
    """Compare how near releases of the same people come to the most isolated of them and of others.

    Isolated are the 10 % of a side who are farthest from all others of that side, so that both sides are chosen alike;
    a larger side leaves smaller distances, so both have the same size. The score of a person is the logarithm of the
    distance to the nearest released row as a share of that distance: isolated people differ by orders of magnitude in
    how far they are from everything, and being a member moves each by a factor. It is asked on the standardised columns
    and on their normal scores, where a tail that reaches far does not decide alone who is isolated; the scale that
    tells more counts. Several releases are attacked by the mean of the scores, in which what is random in each of them
    averages out. At most ``most`` people of a side are looked at, drawn at random.
    """
    size = min(len(people), len(others))
    pooled = np.concatenate([people, others])
    scales: list[Callable[[Matrix], Matrix]] = [np.asarray, imported(NORMAL_SCORES)(pooled)]
    found = []
    for scale in scales:
        scaled = [scale(release) for release in releases]
        outside = _isolated_scores(scale(others[random.permutation(len(others))[:size]]), scaled, most)
        inside = [
            _isolated_scores(scale(people[part][:size]), scaled, most) for part in parts(len(people), size, random)
        ]
        count = min(len(outside), *map(len, inside))
        if count:
            noise = np.sqrt((2 * count + 1) / (12 * count**2))
            area = float(np.mean([area_of(scores, outside) for scores in inside]))
            found.append(Rate(area, 0.5, min(1.0, 0.5 + NormalDist().inv_cdf(confidence) * float(noise)), count))
    return max(found, key=lambda rate: rate.value - rate.limit, default=Rate(0.5, 0.5, 0.5, 0))


def _isolated_scores(side: Matrix, releases: Sequence[Matrix], most: int | None) -> Floats:
    """Return the scores of the isolated people of a side, whose rows are in random order."""
    places = np.arange(len(side))[:most]
    apart = nearest(side[places], side, 1, skip_self=places)[0][:, 0]
    isolated = isolated_places(apart)
    if not len(isolated):
        return np.zeros(0)
    ratios = [nearest(side[isolated], release, 1)[0][:, 0] / apart[isolated] for release in releases]
    return np.asarray(np.mean(np.log(np.array(ratios) + _NEAREST), axis=0), np.float64)

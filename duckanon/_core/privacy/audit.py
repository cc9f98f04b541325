"""Audit of a way to release: whether the most isolated people are nearer to releases that they are part of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arguments import checked
from duckanon._core.common.arrays import Bools, Floats, Ints, Matrix
from duckanon._core.common.imports import imported
from duckanon._core.common.rules import Number, Whole
from duckanon._core.privacy.neighbours import nearest

SHARE = 0.10
"""The share of the people who are called isolated: the farthest from everybody else."""
FEWEST = 20
"""Isolated people at least, where a table has as many who have no equal."""
LIMIT = 0.55
"""The largest win rate that passes. It is a tolerance: 0.5 would be no leakage at all."""
CHANCE = 1.645
"""Standard errors above `LIMIT` that chance explains: of ways to release that are at the limit, one in twenty fails."""
_SPLITS = 5  # times that the table is halved; each half is released

NORMAL_SCORES = "duckanon._core.privacy.normal_scores:NormalScores"
"""Loaded where it is called for: what needs no scores needs no scipy."""

Releaser: TypeAlias = Callable[[Ints, np.random.Generator], Matrix]
"""Releases the rows of these places, and returns released rows coded as the people are."""


def isolated_places(distances: Floats, share: float = SHARE) -> Ints:
    """Return the places of the most isolated people by their distances from everybody else, the farthest first.

    Nobody who has an equal is isolated: a distance of 0 is not among them.
    """
    count = min(max(FEWEST, round(share * len(distances))), len(distances))
    farthest = np.argsort(-distances, kind="stable")[:count]
    return np.asarray(farthest[distances[farthest] > 0], np.int64)


def distances_apart(people: Matrix) -> Floats:
    """Return how far everybody is from the nearest of the others."""
    return np.asarray(nearest(people, people, 1, skip_self=True)[0][:, 0], np.float64)


def win_rates(distances: Matrix, is_member: Bools) -> Floats:
    """Return how often releases with a person come nearer to that person than releases without, a tie being half.

    Given are, for every release and person, the distance of the nearest row, and whether the person is a member.
    """
    wins, pairs = np.zeros(distances.shape[1]), np.zeros(distances.shape[1])
    for with_person, member in zip(distances, is_member, strict=True):
        is_pair = member & ~is_member
        wins += (is_pair * ((with_person < distances) + 0.5 * (with_person == distances))).sum(axis=0)
        pairs += is_pair.sum(axis=0)
    return np.asarray(wins / pairs, np.float64)


@dataclass(frozen=True)
class Audit:
    """Findings of the audit on one scale.

    Attributes:
        win_rate: How often a release with an isolated person comes nearer to that person than one without, on average.
        standard_error: Of that average over the people.
        people: The isolated people.
    """

    win_rate: float
    standard_error: float
    people: int

    @property
    def passed(self) -> bool:
        """Whether the win rate is within `LIMIT`, or above it by no more than its standard error explains."""
        return self.win_rate <= LIMIT + CHANCE * self.standard_error


def paired_audit(points: Matrix, release: Releaser, *, splits: int = _SPLITS, seed: int | None = None) -> float:
    """Return how often releases with an isolated person come nearer to that person than releases without.

    The larger win rate of the two scales of `audits`, which explains the parameters; at most `LIMIT` passes.
    """
    return max(audit.win_rate for audit in audits(points, release, splits=splits, seed=seed).values())


@checked(share=Number(above=0, most=1), splits=Whole(1))
def audits(
    points: Matrix,
    release: Releaser,
    *,
    share: float = SHARE,
    splits: int = _SPLITS,
    seed: int | np.random.Generator | None = None,
) -> dict[str, Audit]:
    """Release both halves of a table again and again, and test whether isolated people are traced to their half.

    A release that had nothing to do with a person's being in the table has a win rate of 0.5. Halves have the same
    size, so that nothing but being a member tells the releases apart; and all pairs of a release with the person and
    one without are compared, so that people who are far from everything count as much as others. Everybody is part of
    one of the two releases of a split and not of the other.

    The share of people who are farthest from everybody else are looked at. Return the findings by scale:
    ``standardised`` is the distance between the points, ``normal_scores`` that between the normal scores of their
    columns.
    """
    if len(points) < 2 * FEWEST:
        raise ValueError(f"an audit needs at least {2 * FEWEST} rows; got {len(points)}.")
    random = np.random.default_rng(seed)
    scales: dict[str, Callable[[Matrix], Matrix]] = {
        "standardised": np.asarray,
        "normal_scores": imported(NORMAL_SCORES)(points),
    }
    people: dict[str, tuple[Ints, Matrix]] = {}
    for name, scale in scales.items():
        scaled = scale(points)
        places = isolated_places(distances_apart(scaled), share)
        people[name] = places, scaled[places]
    distances: dict[str, list[Matrix]] = {name: [] for name in scales}
    memberships = []
    for split in range(splits):
        order = random.permutation(len(points))
        for number, half in enumerate((order[: len(order) // 2], order[len(order) // 2 :])):
            progress.at((2 * split + number) / (2 * splits))
            released = release(np.sort(half), random)
            memberships.append(np.isin(np.arange(len(points)), half))
            for name, (_, rows) in people.items():
                found = nearest(rows, scales[name](released), 1)[0][:, 0] if len(rows) else np.zeros(0)
                distances[name].append(found)
    is_member = np.stack(memberships)
    return {name: _audit(np.stack(distances[name]), is_member[:, places]) for name, (places, _) in people.items()}


def _audit(distances: Matrix, is_member: Bools) -> Audit:
    """Sum up win rates; where nobody is isolated, there is nobody to be told from others."""
    rates = win_rates(distances, is_member)
    if len(rates) < 2:
        return Audit(0.5, 0.0, len(rates))
    return Audit(float(rates.mean()), float(rates.std(ddof=1) / np.sqrt(len(rates))), len(rates))

"""Audit of a way to release: whether the most isolated people are nearer to releases that they are part of.

A table is halved at random several times and each half is released, so that everybody is in one release of a pair and
not in the other. The win rate is how often the release with a person comes nearer to that person; 0.5 would be no
leakage. Only isolated people are looked at: the farthest 10 % from everybody else, once on standardised columns and
once on normal scores, where a far tail does not decide alone who is isolated. The cost is that of ten releases and
their nearest rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arguments import check_arguments
from duckanon._core.common.arrays import Bools, Floats, Ints, Matrix
from duckanon._core.common.imports import import_function
from duckanon._core.common.rules import Number, Whole
from duckanon._core.privacy.neighbours import find_nearest

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
"""Releases the rows of these indexes, and returns released rows coded as the people are."""


def find_isolated(distances: Floats, share: float = SHARE) -> Ints:
    """Return the indexes of the most isolated people by their distances from everybody else, the farthest first.

    Nobody who has an equal is isolated: a distance of 0 is not among them.
    """
    count = min(max(FEWEST, round(share * len(distances))), len(distances))
    farthest = np.argsort(-distances, kind="stable")[:count]
    return np.asarray(farthest[distances[farthest] > 0], np.int64)


def measure_isolation(people: Matrix) -> Floats:
    """Return how far everybody is from the nearest of the others."""
    return np.asarray(find_nearest(people, people, 1, skip_self=True)[0][:, 0], np.float64)


def count_wins(distances: Matrix, is_member: Bools) -> Floats:
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
    def is_within_limit(self) -> bool:
        """Whether the win rate is within `LIMIT`, or above it by no more than its standard error explains."""
        return self.win_rate <= LIMIT + CHANCE * self.standard_error


def audit_pairs(points: Matrix, release: Releaser, *, splits: int = _SPLITS, seed: int | None = None) -> float:
    """Return how often releases with an isolated person come nearer to that person than releases without.

    The larger win rate of the two scales of `audit_halves`, which explains the parameters; at most `LIMIT` passes.
    """
    return max(audit.win_rate for audit in audit_halves(points, release, splits=splits, seed=seed).values())


@check_arguments(share=Number(above=0, most=1), splits=Whole(1))
def audit_halves(
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
        "normal_scores": import_function(NORMAL_SCORES)(points),
    }
    people: dict[str, tuple[Ints, Matrix]] = {}
    for name, scale in scales.items():
        scaled = scale(points)
        indexes = find_isolated(measure_isolation(scaled), share)
        people[name] = indexes, scaled[indexes]
    distances: dict[str, list[Matrix]] = {name: [] for name in scales}
    memberships = []
    for split in range(splits):
        order = random.permutation(len(points))
        for number, half in enumerate((order[: len(order) // 2], order[len(order) // 2 :])):
            progress.advance((2 * split + number) / (2 * splits))
            released = release(np.sort(half), random)
            memberships.append(np.isin(np.arange(len(points)), half))
            for name, (_, rows) in people.items():
                near = find_nearest(rows, scales[name](released), 1)[0][:, 0] if len(rows) else np.zeros(0)
                distances[name].append(near)
    is_member = np.stack(memberships)
    return {name: _sum_up(np.stack(distances[name]), is_member[:, indexes]) for name, (indexes, _) in people.items()}


def _sum_up(distances: Matrix, is_member: Bools) -> Audit:
    """Sum up win rates; where nobody is isolated, there is nobody to be told from others."""
    rates = count_wins(distances, is_member)
    if len(rates) < 2:
        return Audit(0.5, 0.0, len(rates))
    return Audit(float(rates.mean()), float(rates.std(ddof=1) / np.sqrt(len(rates))), len(rates))

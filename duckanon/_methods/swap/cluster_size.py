"""The smallest clusters whose release still passes the tests of privacy."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from duckanon._core.common.arguments import checked
from duckanon._core.common.rules import Whole

STEP = 1.25
"""Sizes nearer to each other than by this factor are not told apart."""
DRAWS = 3
"""Fresh releases that confirm a size."""
MARGIN = 0.7
"""The share of a measure's limit that clusters may use up, so that the next draw does not fail where these passed."""


@dataclass(frozen=True)
class Verdict:
    """Whether the release of one trial passed the privacy tests, and the numbers that rests on, by name."""

    passed: bool
    numbers: Mapping[str, float]


@dataclass(frozen=True)
class Step:
    """One release tried on the way.

    Attributes:
        stage: ``'whole'``: all rows as one cluster; ``'bisect'``: on the way down; ``'confirm'``: another draw of a
            size that has passed.
        draw: 1, 2, ... among the releases of this size.
    """

    stage: str
    cluster_size: float
    draw: int
    verdict: Verdict


@dataclass(frozen=True)
class Search:
    """The smallest size that passed, with (but for all rows) three fresh draws more, and every release tried, in order.

    The size is None where none passed.
    """

    cluster_size: float | None
    steps: tuple[Step, ...]

    def refusal(self, rows: int) -> str:
        """Say that no size passed, and on which numbers that rests."""
        numbers = ", ".join(f"{name} = {value:.4g}" for name, value in self.steps[-1].verdict.numbers.items())
        return (
            f"no cluster_size passes the tests of privacy, not even all {rows:,} rows as one cluster"
            f"{f' ({numbers})' if numbers else ''}; release fewer columns, coarser values or more rows, or choose "
            "cluster_size yourself."
        )


@checked(rows=Whole(2), rank=Whole(1))
def search(passes: Callable[[float], Verdict], rows: int, rank: int) -> Search:
    """Look for the smallest clusters that still pass, and so for the most faithful release that is safe.

    Thesis, Section 5.2.3, corrected: what is wanted is the largest number of clusters, not the smallest, that does not
    drop below the reference (REFERENCES.md, Thesis, points 7 and 15). Privacy grows with the size of clusters up to
    chance, so the logarithm of the size is bisected until the bracket is within a factor of 1.25, and the smallest size
    that passed is confirmed with three fresh draws; where one fails, the next size is 1.25 times as large. Clusters of
    two thirds of the rows and more are all of them: a release of all rows as one cluster is the safest there is, and
    one of three draws has to pass, since an honest release fails now and then by chance.

    All rows as one cluster can fail for another reason than distance: a table with strong nonlinear structure loses it
    when it is swapped as a whole, and with it the crowd around each record, its ambiguity. Small clusters would pass
    then, and give records away all the same: nothing is chosen.

    ``passes`` makes and tests a fresh release with clusters of a size; none is tried with fewer than twice ``rank``
    rows.
    """
    steps: list[Step] = []

    def tried(stage: str, size: float) -> bool:
        draw = 1 + sum(step.cluster_size == size for step in steps)
        steps.append(Step(stage, size, draw, passes(size)))
        return steps[-1].verdict.passed

    size, low, high = float(rows), 2.0 * rank, rows / 1.5
    if not any(tried("whole", size) for _ in range(DRAWS)):
        return Search(None, tuple(steps))
    while high > STEP * low:
        middle = math.sqrt(low * high)
        if tried("bisect", middle):
            size = high = middle
        else:
            low = middle
    while size < rows and not all(tried("confirm", size) for _ in range(DRAWS)):
        size = size * STEP if 1.5 * size * STEP < rows else float(rows)
    return Search(size, tuple(steps))

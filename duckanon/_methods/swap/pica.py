"""Partitioned ICA swapping of a table: clusters, components permuted in each, the search for the clusters' size."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from duckanon._core.common.arguments import checked
from duckanon._core.common.arrays import Reals, sampled_rows
from duckanon._core.common.progress import Tell, silent
from duckanon._core.common.rules import Whole
from duckanon._core.encoding.coordinates import Places
from duckanon._core.encoding.fit import batch_rows, fit
from duckanon._core.encoding.sources import opened_source
from duckanon._core.encoding.table_encoding import Encoding, refuse_too_few
from duckanon._core.privacy import self_check
from duckanon._core.privacy.reference_test import privacy_tests
from duckanon._methods.swap.cluster_swap import swap_in_clusters
from duckanon._methods.swap.clusters import clusters
from duckanon._methods.swap.components import principal_components

STEP = 1.25
"""Sizes nearer to each other than by this factor are not told apart."""
_DRAWS = 3  # fresh releases that confirm a size
MARGIN = 0.7
"""The share of a measure's limit that clusters may use up, so that the next draw does not fail where these passed."""
SEARCHED_ROWS = 20_000
"""Rows that the search for a size works with: the right size hardly depends on their number."""
_CHECKED_ROWS = 1_000_000  # of a larger table are looked through: enough to tell a share of copies from chance
_MEASURED_ROWS = 4_000  # originals whose neighbours are looked for in a trial
_FRESH_DRAWS = 3  # of a size that the search chose, before the next larger one is taken
_MOST_GROWTH = 2.0  # dense parts of large tables need clusters ten times as large as others: every size takes a check


@dataclass(frozen=True)
class Partitioned:
    """A table that is about to be swapped in clusters; ``rank`` is the number of independent components."""

    encoding: Encoding
    matrix: Reals
    rank: int
    basis: str
    clustering: str
    checks: str
    random: np.random.Generator

    @classmethod
    def of(
        cls,
        source: object,
        log: Sequence[str] | None,
        nulls: str,
        basis: str,
        clustering: str,
        checks: str,
        random: np.random.Generator,
        places: Mapping[str, Places] | None = None,
    ) -> Partitioned:
        """Read a table: once for its encoding, once for its matrix."""
        with opened_source(source) as opened:
            encoding, moments = fit(opened, log=log, nulls=nulls, places=places)
            rank = principal_components(moments.covariance)[1].shape[1]
            refuse_too_few(moments.rows, rank)
            matrix = np.empty((moments.rows, encoding.width), np.float32)
            for start, batch in opened.batches_of(moments.rows, batch_rows(encoding.width)):
                matrix[start : start + batch.num_rows] = encoding.matrix(batch, np.float32)
        return cls(encoding, matrix, rank, basis, clustering, checks, random)

    def swapped(self, matrix: Reals, size: float, tell: Tell = silent) -> Reals:
        """Swap the rows of a matrix of this table in clusters of a size."""
        labels = clusters(matrix, size, self.clustering, self.random)
        return swap_in_clusters(matrix, labels, self.basis, self.random, tell)

    def search(self, reference: pa.Table | None, tell: Tell = silent) -> Search:
        """Look for the smallest clusters whose release is as safe as not taking part.

        Without a ``reference`` of other people every record is compared with all other records.
        """
        trial = self._sampled(self.matrix)
        others = None if reference is None else self._sampled(self.encoding.matrix(reference))
        done = [0]

        def passes(size: float) -> Verdict:
            done[0] += 1
            tell(0.9 * (1 - math.exp(-done[0] / 8)))  # about eight trials, or as many more as fail
            released = self.encoding.matrix(self.encoding.table(self.swapped(trial, size)))
            if self.checks == "repair":
                released = released[self_check.repair(trial, released, self.random)]
                if len(released) < len(trial) / 2:
                    return Verdict(False, {"kept": len(released) / len(trial)})
            tests = privacy_tests(trial, released, self.random, reference=others, isolated=False, sample=_MEASURED_ROWS)
            share = MARGIN if size < len(trial) else 1.0
            is_safe = all(test.passed and (test.shift is None or test.judged <= share * test.limit) for test in tests)
            return Verdict(is_safe, {test.name: test.judged for test in tests})

        return search(passes, len(trial), self.rank)

    def released(self, size: float | None, reference: pa.Table | None, tell: Tell = silent) -> pa.Table:
        """Release the table with clusters of a size, or of the size that the search finds, after the checks."""
        if size is not None:
            return self._checked(self.swapped(self.matrix, size, tell))
        result = self.search(reference, tell)
        if result.cluster_size is None:
            raise ValueError(result.refusal(len(self.matrix)))
        size = result.cluster_size if result.cluster_size < min(len(self.matrix), SEARCHED_ROWS) else len(self.matrix)
        return self.enlarged(size, tell)

    def enlarged(self, size: float, tell: Tell = silent) -> pa.Table:
        """Release the table with clusters of a size, or of the next larger one whose release passes the checks.

        A few sizes are tried: each is larger than the one before by more, at most twice as large.
        """
        growth, draws = 1.0, _FRESH_DRAWS
        while True:
            for _ in range(draws):
                try:
                    return self._checked(self.swapped(self.matrix, size, tell))
                except ValueError:
                    if size >= len(self.matrix):
                        raise
            growth, draws = min(growth * STEP, _MOST_GROWTH), 1
            size = size * growth if 1.5 * size * growth < len(self.matrix) else len(self.matrix)

    def _checked(self, swapped: Reals) -> pa.Table:
        """Look through a release for records that it gives away; refuse it, or leave them out.

        Of large tables a million rows are looked at, drawn at random.
        """
        released = self.encoding.table(swapped)
        if self.checks == "off":
            return released
        original, rows = self.matrix, released
        if len(original) > _CHECKED_ROWS and self.checks == "error":
            chosen = sampled_rows(_CHECKED_ROWS, len(original), self.random)
            original, rows = original[chosen], released.take(pa.array(chosen))
        coded = self.encoding.matrix(rows, np.float32)
        advice = "choose a larger cluster_size" + (
            "" if self.checks == "repair" else ", or checks := 'repair' to leave rows out"
        )
        kept = self_check.screened(original, coded, self.checks, self.random, advice)
        return released if kept.all() else released.filter(pa.array(kept))

    def _sampled(self, matrix: Reals) -> Reals:
        return matrix[sampled_rows(SEARCHED_ROWS, len(matrix), self.random)]


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
    if not any(tried("whole", size) for _ in range(_DRAWS)):
        return Search(None, tuple(steps))
    while high > STEP * low:
        middle = math.sqrt(low * high)
        if tried("bisect", middle):
            size = high = middle
        else:
            low = middle
    while size < rows and not all(tried("confirm", size) for _ in range(_DRAWS)):
        size = size * STEP if 1.5 * size * STEP < rows else float(rows)
    return Search(size, tuple(steps))

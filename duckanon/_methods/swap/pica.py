"""Partitioned ICA swapping of a table: clusters, components permuted in each, the search for the clusters' size.

The smaller clusters are, the more faithful a release is and the less private. Sizes are bisected on 20,000 rows until
the smallest is found whose release passes the privacy tests (Thesis, Section 5.2.3; REFERENCES.md, Thesis, points 7 and
15), with a margin, and with three fresh draws more. Each trial costs a release and the search for nearest rows. The
release of the whole table is then checked for copies, and made with larger clusters where it fails.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from duckanon._core.common import progress
from duckanon._core.common.arguments import check_arguments
from duckanon._core.common.arrays import Reals, sample_rows
from duckanon._core.common.rules import Whole
from duckanon._core.encoding.column_codecs import ChoiceCoordinates, Encoding, refuse_few_rows
from duckanon._core.encoding.fit import choose_batch_rows, fit_columns
from duckanon._core.encoding.sources import use_source
from duckanon._core.privacy import self_check
from duckanon._core.privacy.reference_test import PrivacySetting, run_privacy_tests
from duckanon._methods.swap.clusters import find_clusters, swap_in_clusters
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
class ClusterSwap:
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
        places: Mapping[str, ChoiceCoordinates] | None = None,
    ) -> ClusterSwap:
        """Read a table: once for its encoding, once for its matrix."""
        with use_source(source) as opened:
            encoding, moments = fit_columns(opened, log=log, nulls=nulls, places=places)
            rank = principal_components(moments.covariance)[1].shape[1]
            refuse_few_rows(moments.rows, rank)
            matrix = np.empty((moments.rows, encoding.width), np.float32)
            for start, batch in opened.batches_of(moments.rows, choose_batch_rows(encoding.width)):
                matrix[start : start + batch.num_rows] = encoding.matrix(batch, np.float32)
        return cls(encoding, matrix, rank, basis, clustering, checks, random)

    def swap(self, matrix: Reals, size: float) -> Reals:
        """Swap the rows of a matrix of this table in clusters of a size."""
        labels = find_clusters(matrix, size, self.clustering, self.random)
        return swap_in_clusters(matrix, labels, self.basis, self.random)

    def search(self, reference: pa.Table | None) -> SizeSearch:
        """Look for the smallest clusters whose release is as safe as not taking part.

        Without a ``reference`` of other people every record is compared with all other records.
        """
        trial = self._sample_rows(self.matrix)
        other_people = None if reference is None else self._sample_rows(self.encoding.matrix(reference))
        trials = itertools.count(1)

        def passes(size: float) -> Verdict:
            progress.advance(1 - math.exp(-next(trials) / 8))  # about eight trials, or as many more as fail
            with progress.mute():
                return judge(size)

        def judge(size: float) -> Verdict:
            released = self.encoding.matrix(self.encoding.table(self.swap(trial, size)))
            if self.checks == "repair":
                released = released[self_check.repair_release(trial, released, self.random)]
                if len(released) < len(trial) / 2:
                    return Verdict(False, {"kept": len(released) / len(trial)})
            setting = PrivacySetting(reference=other_people, isolated=False, sample=_MEASURED_ROWS)
            tests = run_privacy_tests(trial, released, self.random, setting)
            share = MARGIN if size < len(trial) else 1.0
            is_safe = all(
                test.is_within_limit and (test.shift is None or test.test_value <= share * test.limit) for test in tests
            )
            return Verdict(is_safe, {test.name: test.test_value for test in tests})

        return search_size(passes, len(trial), self.rank)

    def release(self, size: float | None, reference: pa.Table | None) -> pa.Table:
        """Release the table with clusters of a size, or of the size that the search finds, after the checks."""
        if size is not None:
            return self._check(self.swap(self.matrix, size))
        with progress.step(0.0, 0.9):
            result = self.search(reference)
        if result.cluster_size is None:
            raise ValueError(result.refusal(len(self.matrix)))
        size = result.cluster_size if result.cluster_size < min(len(self.matrix), SEARCHED_ROWS) else len(self.matrix)
        with progress.step(0.9, 1.0):
            return self.release_enlarging(size)

    def release_enlarging(self, size: float) -> pa.Table:
        """Release the table with clusters of a size, or of the next larger one whose release passes the checks.

        A few sizes are tried: each is larger than the one before by more, at most twice as large.
        """
        growth, draws = 1.0, _FRESH_DRAWS
        while True:
            for _ in range(draws):
                try:
                    return self._check(self.swap(self.matrix, size))
                except ValueError:
                    if size >= len(self.matrix):
                        raise
            growth, draws = min(growth * STEP, _MOST_GROWTH), 1
            size = size * growth if 1.5 * size * growth < len(self.matrix) else len(self.matrix)

    def _check(self, swapped: Reals) -> pa.Table:
        """Look through a release for records that it gives away; refuse it, or leave them out.

        Of large tables a million rows are looked at, drawn at random.
        """
        released = self.encoding.table(swapped)
        if self.checks == "off":
            return released
        original, rows = self.matrix, released
        if len(original) > _CHECKED_ROWS and self.checks == "error":
            chosen = sample_rows(_CHECKED_ROWS, len(original), self.random)
            original, rows = original[chosen], released.take(pa.array(chosen))
        coded = self.encoding.matrix(rows, np.float32)
        advice = "choose a larger cluster_size" + (
            "" if self.checks == "repair" else ", or checks := 'repair' to leave rows out"
        )
        kept = self_check.screen_release(original, coded, self.checks, self.random, advice)
        return released if kept.all() else released.filter(pa.array(kept))

    def _sample_rows(self, matrix: Reals) -> Reals:
        return matrix[sample_rows(SEARCHED_ROWS, len(matrix), self.random)]


@dataclass(frozen=True)
class Verdict:
    """Whether the release of one trial passed the privacy tests, and the numbers that rests on, by name."""

    passed: bool
    numbers: Mapping[str, float]


@dataclass(frozen=True)
class Trial:
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
class SizeSearch:
    """The smallest size that passed, with (but for all rows) three fresh draws more, and every release tried, in order.

    The size is None where none passed.
    """

    cluster_size: float | None
    steps: tuple[Trial, ...]

    def refusal(self, rows: int) -> str:
        """Say that no size passed, and on which numbers that rests."""
        numbers = ", ".join(f"{name} = {value:.4g}" for name, value in self.steps[-1].verdict.numbers.items())
        return (
            f"no cluster_size passes the tests of privacy, not even all {rows:,} rows as one cluster"
            f"{f' ({numbers})' if numbers else ''}; release fewer columns, coarser values or more rows, or choose "
            "cluster_size yourself."
        )


@check_arguments(rows=Whole(2), rank=Whole(1))
def search_size(passes: Callable[[float], Verdict], rows: int, rank: int) -> SizeSearch:
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
    steps: list[Trial] = []

    def try_size(stage: str, size: float) -> bool:
        draw = 1 + sum(step.cluster_size == size for step in steps)
        steps.append(Trial(stage, size, draw, passes(size)))
        return steps[-1].verdict.passed

    size, low, high = float(rows), 2.0 * rank, rows / 1.5
    if not any(try_size("whole", size) for _ in range(_DRAWS)):
        return SizeSearch(None, tuple(steps))
    while high > STEP * low:
        middle = math.sqrt(low * high)
        if try_size("bisect", middle):
            size = high = middle
        else:
            low = middle
    while size < rows and not all(try_size("confirm", size) for _ in range(_DRAWS)):
        size = size * STEP if 1.5 * size * STEP < rows else float(rows)
    return SizeSearch(size, tuple(steps))

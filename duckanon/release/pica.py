"""Partitioned ICA swapping of a table: clusters, components permuted in each, the search for the clusters' size."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from duckanon.common.arguments import OneOf, refuse_unless
from duckanon.common.arrays import Reals
from duckanon.matrix.encoding import Encoding, refuse_too_few
from duckanon.matrix.fit import batch_rows, fit
from duckanon.matrix.sources import Source, open_source
from duckanon.privacy import self_check
from duckanon.privacy.reference_test import privacy_tests
from duckanon.privacy.self_check import CHECKS
from duckanon.release.cluster_size import STEP, Search, Verdict, search
from duckanon.release.cluster_swap import BASES, swap_in_clusters
from duckanon.release.clusters import METHODS, clusters
from duckanon.release.components import principal_components

Tell = Callable[[float], None]

SEARCHED_ROWS = 20_000  # the right size hardly depends on the number of rows
LEAST_CLUSTER_SIZE = 10
_CHECKED_ROWS = 1_000_000
_MEASURED_ROWS = 4_000  # originals whose neighbours are looked for in a trial
_FRESH_DRAWS = 3  # of a size that the search chose, before the next larger one is taken


@dataclass(frozen=True)
class Partitioned:
    """A table that is about to be swapped in clusters.

    Attributes
    ----------
    encoding, matrix
        How its columns are coded, and its rows.
    rank
        The number of independent components.
    basis, clustering
        ``'ica'`` or ``'pca'``; ``'auto'``, ``'spectral'`` or ``'bisect'``.
    checks
        ``'error'``, ``'repair'`` or ``'off'``.
    random
        Where chance comes from.
    """

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
        cols: list[str] | None,
        log: Sequence[str] | None,
        nulls: str,
        basis: str,
        clustering: str,
        checks: str,
        random: np.random.Generator,
    ) -> Partitioned:
        """Read a table: once for its encoding, once for its matrix."""
        refuse_unless(OneOf(*BASES), "basis", basis)
        refuse_unless(OneOf(*METHODS), "clustering", clustering)
        refuse_unless(OneOf(*CHECKS), "checks", checks)
        opened = open_source(source, cols)
        try:
            encoding, moments = fit(opened, log=log, nulls=nulls)
            rank = principal_components(moments.covariance)[1].shape[1]
            refuse_too_few(moments.rows, rank)
            matrix = read_matrix(opened, encoding, moments.rows)
        finally:
            if opened is not source:
                opened.close()
        return cls(encoding, matrix, rank, basis, clustering, checks, random)

    def swapped(self, matrix: Reals, size: float, tell: Tell | None = None) -> Reals:
        """Swap the rows of a matrix of this table in clusters of a size."""
        labels = clusters(matrix, size, self.clustering, self.random)
        return swap_in_clusters(matrix, labels, self.basis, self.random, tell)

    def decoded(self, matrix: Reals) -> pa.Table:
        """Turn released rows into a table: what is given away, and what has to be measured, is rounded."""
        return self.encoding.table(matrix)

    def search(self, reference: pa.Table | None, tell: Tell | None = None) -> Search:
        """Look for the smallest clusters whose release is as safe as not taking part.

        Parameters
        ----------
        reference
            Other people; None: every record is compared with all other records.
        tell
            Told the share of the work done, as far as that can be known.
        """
        trial = self._sampled(self.matrix, SEARCHED_ROWS)
        others = None if reference is None else self._sampled(self.encoding.matrix(reference), SEARCHED_ROWS)
        done = [0]

        def passes(size: float) -> Verdict:
            done[0] += 1
            if tell is not None:
                tell(0.9 * (1 - math.exp(-done[0] / 8)))  # some eight trials, or as many more as fail
            released = self.encoding.matrix(self.decoded(self.swapped(trial, size)))
            if self.checks == "repair":
                released = released[self_check.repair(trial, released, self.random)]
                if len(released) < len(trial) / 2:
                    return Verdict(False, {"kept": len(released) / len(trial)})
            found = privacy_tests(trial, released, self.random, reference=others, sample=_looked_at(len(trial)))
            return Verdict(all(test.passed for test in found), {test.name: test.judged for test in found})

        return search(passes, len(trial), self.rank)

    def released(self, size: float | None, reference: pa.Table | None, tell: Tell | None = None) -> pa.Table:
        """Release the table with clusters of a size, or of the size that the search finds, after the checks.

        Raises
        ------
        ValueError
            Where no size passes, or the release fails its checks.
        """
        if size is not None:
            return self._checked(self.swapped(self.matrix, size, tell))
        found = self.search(reference, tell)
        if found.cluster_size is None:
            raise ValueError(found.refusal(len(self.matrix)))
        size = found.cluster_size if found.cluster_size < min(len(self.matrix), SEARCHED_ROWS) else len(self.matrix)
        while True:
            for _ in range(_FRESH_DRAWS):
                try:
                    return self._checked(self.swapped(self.matrix, size, tell))
                except ValueError:
                    if size >= len(self.matrix):
                        raise
            size = size * STEP if 1.5 * size * STEP < len(self.matrix) else len(self.matrix)

    def _checked(self, swapped: Reals) -> pa.Table:
        table = self.decoded(swapped)
        return checked(self.encoding, self.matrix, table, self.checks, self.random)

    def _sampled(self, matrix: Reals, rows: int) -> Reals:
        if len(matrix) <= rows:
            return matrix
        return matrix[np.sort(self.random.choice(len(matrix), rows, replace=False))]


def checked(
    encoding: Encoding, original: Reals, released: pa.Table, checks: str, random: np.random.Generator
) -> pa.Table:
    """Look through a release for records that it gives away; refuse it, or leave them out.

    Parameters
    ----------
    encoding, original
        The original's coding and rows.
    released
        In an order that is not the original's.
    checks
        What to do about what is found: ``'error'``, ``'repair'``, or ``'off'`` for not looking.
    random
        Draws what is looked at in large tables: a million rows of each.
    """
    if checks == "off":
        return released
    rows = released
    if len(original) > _CHECKED_ROWS and checks == "error":
        chosen = np.sort(random.choice(len(original), _CHECKED_ROWS, replace=False))
        original, rows = original[chosen], released.take(pa.array(chosen))
    coded = encoding.matrix(rows, np.float32)
    advice = "choose a larger cluster_size" + (
        "" if checks == "repair" else ", or checks := 'repair' to leave rows out"
    )
    kept = self_check.screened(original, coded, checks, random, advice)
    return released if kept.all() else released.filter(pa.array(kept))


def read_matrix(source: Source, encoding: Encoding, rows: int) -> NDArray[np.float32]:
    """Read a source as the rows of a float32 matrix."""
    matrix = np.empty((rows, encoding.width), np.float32)
    start = 0
    for batch in source.batches(batch_rows(encoding.width)):
        end = start + batch.num_rows
        if end > rows:
            break
        matrix[start:end] = encoding.matrix(batch, np.float32)
        start = end
    if start != rows:
        raise ValueError(f"the source must give the same rows each time that it is read; got {rows:,}, then others.")
    return matrix


def checked_size(size: object) -> float | None:
    """Return a cluster size, None for searching one."""
    if size is None:
        return None
    number = isinstance(size, int | float) and not isinstance(size, bool)
    if not (number and LEAST_CLUSTER_SIZE <= size < math.inf):  # type: ignore[operator]
        raise ValueError(f"cluster_size must be NULL or a number of at least {LEAST_CLUSTER_SIZE}; got {size}.")
    return float(size)  # type: ignore[arg-type]


def _looked_at(rows: int) -> int | None:
    return None if rows <= _MEASURED_ROWS else _MEASURED_ROWS

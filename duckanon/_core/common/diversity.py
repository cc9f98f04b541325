"""Conditions on the sensitive values of a class: l-diversity and t-closeness, as ``anon.l_diversity`` counts them.

The values of classes are counted as histograms, one row a class, which is quick where there are few values, or as
entries, one for each value that a class has, where there are many. Both are judged here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from duckanon._core.common.arrays import Bools, Floats, Ints, find_run_starts, measure_runs

_ROUNDING = 1e-9
"""The rounding error of a sum of logarithms or of shares. ``anon._spread`` allows the same."""


@dataclass(frozen=True)
class DiversityRule:
    """Conditions on the sensitive values of a class.

    Distinct: at least l different values; entropy: an exponential of their entropy of at least l; recursive: the most
    frequent one occurs less often than c times all from the l-th most frequent on.
    """

    l: float = 1  # noqa: E741  the name that everyone knows it by
    l_kind: str = "distinct"
    c: float = 3
    t: float | None = None  # how far their shares may be from those of all; None: as far as they are
    is_ordered: bool = False  # whether a value is nearer to its neighbours than to others

    @property
    def is_active(self) -> bool:
        """Whether anything is asked at all."""
        return self.l > 1 or self.t is not None

    def judge_histograms(self, histograms: Ints) -> Bools:
        """Tell which classes are diverse, given how often each has each value; an empty one is not."""
        if self.l_kind == "distinct":
            return np.asarray((histograms > 0).sum(axis=1) >= self.l)
        if self.l_kind == "entropy":
            logs = (histograms * np.log(np.maximum(histograms, 1))).sum(axis=1)
            return self._has_entropy(histograms.sum(axis=1), logs)
        falling = -np.sort(-histograms, axis=1)
        return self._is_recursive(falling[:, 0], falling[:, int(self.l) - 1 :].sum(axis=1))

    def judge_entries(self, class_of_entry: Ints, count: Floats, classes: int) -> Bools:
        """Tell which classes are diverse, given the class and the count of each entry; one without entries is not."""
        if self.l_kind == "distinct":
            return np.bincount(class_of_entry, minlength=classes) >= self.l
        if self.l_kind == "entropy":
            totals, logs = (np.bincount(class_of_entry, weights, classes) for weights in (count, count * np.log(count)))
            return self._has_entropy(totals, logs)
        order = np.lexsort((-count, class_of_entry))
        starts = find_run_starts(class_of_entry[order])
        rank = np.arange(len(class_of_entry)) - np.repeat(starts, measure_runs(starts, len(class_of_entry)))
        rest = np.bincount(class_of_entry[order], np.where(rank >= self.l - 1, count[order], 0), classes)
        largest = np.zeros(classes)
        largest[class_of_entry[order][starts]] = count[order][starts]
        return self._is_recursive(largest, rest)

    def _has_entropy(self, totals: Floats | Ints, logs: Floats | Ints) -> Bools:
        """Judge by the sums of the counts, and of the counts times their logarithms."""
        known = np.maximum(totals, 1)
        return np.asarray((totals > 0) & (np.exp(np.log(known) - logs / known) >= self.l - _ROUNDING))

    def _is_recursive(self, largest: Floats | Ints, rest: Floats | Ints) -> Bools:
        return np.asarray((rest > 0) & (largest < self.c * rest))

    def distances(self, histograms: Floats | Ints, shares: Floats) -> Floats:
        """Return how far the shares of values in each class are from those of all; 1 where it has none."""
        totals = histograms.sum(axis=1)
        differences = histograms / np.maximum(totals, 1)[:, None] - shares
        if self.is_ordered:
            far = np.abs(np.cumsum(differences, axis=1)).sum(axis=1) / max(len(shares) - 1, 1)
        else:
            far = np.abs(differences).sum(axis=1) / 2
        return np.asarray(np.where(totals > 0, far, 1.0), np.float64)

    def are_close(self, distances: Floats) -> Bools:
        """Tell which distances are within t."""
        return np.asarray(distances <= (np.inf if self.t is None else self.t + _ROUNDING))

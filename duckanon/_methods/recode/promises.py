"""Promises of a recoded table: which rows can be in a class at all, and a final count of all classes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from duckanon._core.common.arrays import Bools, Floats, Ints, distinct, run_starts
from duckanon._core.common.diversity import DiversityRule
from duckanon._core.common.people import NOBODY, people_in


class Diversity(NamedTuple):
    """Conditions on a sensitive column."""

    values: Ints  # the sensitive value of each row, from 0; in their order where they have one
    shares: Floats  # the share of each value in the whole table
    rule: DiversityRule  # how diverse classes are, and how far their shares may be from those in the table

    @property
    def size(self) -> int:
        """The number of values."""
        return len(self.shares)

    def of_rows(self, rows: Bools, people: Ints | None) -> Diversity:
        """Return the same about some of the rows, `people`'s, and the shares that values have among them."""
        some = self._replace(values=self.values[rows])
        counts = some.histograms(np.zeros(len(some.values), np.int64), people, 1)[0]
        return some._replace(shares=counts / max(int(counts.sum()), 1))

    def of_what_occurs(self) -> Diversity:
        """Return the same without values that no row has, as where the rows that had them are left out."""
        occurs, values = np.unique(self.values, return_inverse=True)
        return self._replace(values=values.reshape(-1), shares=self.shares[occurs])

    def holds(self, histograms: Ints) -> Bools:
        """Tell which classes are diverse and close enough; one row of counts a class, an empty one is not."""
        enough: Bools = histograms.sum(axis=1) > 0
        if self.rule.l > 1:
            enough &= self.rule.diverse_histograms(histograms)
        if self.rule.t is not None:
            enough &= self.rule.are_close(self.rule.distances(histograms, self.shares))
        return enough

    def histograms(self, classes: Ints, people: Ints | None, count: int) -> Ints:
        """Count in each class the rows that have each value, or the different people, as ``anon.l_diversity`` does."""
        keys = classes * self.size + self.values
        if people is not None:
            known = people != NOBODY
            everybody = int(people.max(initial=0)) + 1
            keys = distinct(keys[known] * everybody + people[known]) // everybody
        return np.bincount(keys, minlength=count * self.size).reshape(count, self.size)


def kept_rows(
    groups: Ints | None,
    people: Ints | None,
    k: int,
    diversity: Diversity | None,
    rows: int,
    max_suppressed_fraction: float,
) -> Bools:
    """Tell which rows are in groups that can be classes; refuse to leave out more of the others than may be."""
    group_of = np.zeros(rows, np.int64) if groups is None else groups
    count = int(group_of.max()) + 1
    is_kept = np.ones(rows, np.bool_)
    while is_kept.any():
        own_people = None if people is None else people[is_kept]
        enough = people_in(group_of[is_kept], own_people, count) >= k
        if diversity is not None and diversity.rule.is_asked:
            some = diversity.of_rows(is_kept, own_people)  # what is left out changes the shares that t compares with
            enough &= some.holds(some.histograms(group_of[is_kept], own_people, count))
        left = is_kept & enough[group_of]
        if left.sum() == is_kept.sum():
            break
        is_kept = left
    lost = rows - int(is_kept.sum())
    if groups is None and lost:
        raise ValueError("l must be such that all rows together are diverse enough; they are not, so no class can be.")
    if lost > max_suppressed_fraction * rows + 1e-6 or lost == rows:
        raise ValueError(
            f"{lost} of {rows} rows are in groups of by that cannot be classes, of fewer than {k} people or with too "
            "few sensitive values; name fewer columns in by, or allow a larger max_suppressed_fraction."
        )
    return is_kept


def promise(classes: Ints, groups: Ints | None, people: Ints | None, k: int, diversity: Diversity | None) -> None:
    """Count what is promised on the rows that are released."""
    count = int(classes.max()) + 1
    present = np.bincount(classes, minlength=count) > 0
    if (people_in(classes, people, count)[present] < k).any():
        raise AssertionError(f"a class has fewer than {k} people.")
    if diversity is not None and diversity.rule.is_asked:
        histograms = diversity.histograms(classes, people, count)[present]
        if not diversity.holds(histograms).all():
            raise AssertionError("a class is not diverse enough, or too far from the table.")
    if groups is not None:
        order = np.argsort(classes, kind="stable")
        starts = run_starts(classes[order])
        if (np.minimum.reduceat(groups[order], starts) != np.maximum.reduceat(groups[order], starts)).any():
            raise AssertionError("a class has rows of two groups.")

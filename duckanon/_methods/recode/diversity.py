"""What is asked of the sensitive values of classes, counted on histograms of rows, or of people."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from duckanon._core.common.arrays import Bools, Floats, Ints, distinct
from duckanon._core.common.diversity import DiversityRule
from duckanon._core.common.people import NOBODY


class Diversity(NamedTuple):
    """What is asked of a sensitive column.

    Attributes
    ----------
    values
        The sensitive value of each row, from 0; in their order where they have one.
    shares
        The share of each value in the whole table.
    rule
        How diverse classes are, and how far the shares in a class may be from those in the table.
    """

    values: Ints
    shares: Floats
    rule: DiversityRule

    @property
    def size(self) -> int:
        """The number of values."""
        return len(self.shares)

    def of_rows(self, rows: Bools, people: Ints | None) -> Diversity:
        """Return the same about some of the rows, and the shares that values have among them.

        Parameters
        ----------
        rows
            Which.
        people
            Whose they are.
        """
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

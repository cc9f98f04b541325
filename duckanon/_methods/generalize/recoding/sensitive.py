"""Conditions on the sensitive values of every class: l-diversity and t-closeness, as SQL counts them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Floats, Ints, distinct
from duckanon._core.common.diversity import DiversityRule
from duckanon._core.common.people import NOBODY
from duckanon._methods.generalize.recoding.classes import Groups

_MOST_SHARES = 4_000_000  # shares of classes and values that are looked at at once: 32 MB


@dataclass(frozen=True)
class Sensitive:
    """Sensitive values of people, by combination."""

    rule: DiversityRule  # what is asked
    values: int  # how many values there are
    # combination, value: one entry for each combination and value that occur together, and for each person where they
    # are told
    combination: Ints
    value: Ints
    count: Floats  # how many rows have them; 1 where people are told
    person: Ints | None  # whose they are; None where every row is a person

    @classmethod
    def of_entries(cls, rule: DiversityRule, value: Ints, counts: Ints, person: Ints | None) -> Sensitive:
        """Take the sensitive value of each entry of a table, its rows, and whose they are; nobody's do not count."""
        known = np.arange(len(value)) if person is None else np.flatnonzero(person != NOBODY)
        count = counts[known].astype(np.float64) if person is None else np.ones(len(known))
        values = int(value.max()) + 1 if len(value) else 1
        return cls(rule, values, known, value[known], count, None if person is None else person[known])

    def merged(self, of_combination: Ints, combinations: int) -> Sensitive:
        """Return the same values in merged combinations."""
        cell = of_combination[self.combination] * self.values + self.value
        if self.person is None:
            cells = Groups(cell, combinations * self.values, self.count)
            keys, count, person = cells.keys, np.asarray(cells.rows, np.float64), None
        else:
            people = int(self.person.max(initial=0)) + 1
            keys = distinct(cell * people + self.person)
            keys, count, person = keys // people, np.ones(len(keys)), keys % people
        return replace(self, combination=keys // self.values, value=keys % self.values, count=count, person=person)

    def kept(self, class_of_combination: Ints, is_asked: Bools) -> Bools:
        """Tell which classes have what is asked of them, of those that are to be released since they are large enough.

        Closeness is counted twice: to all, and to what is left then, since that is what a reader of the release sees. A
        release that breaks it there is none.
        """
        progress.check()
        classes = len(is_asked)
        members = self.merged(class_of_combination, classes)
        cells = members._cells(classes)
        is_kept = is_asked & self.rule.diverse_entries(cells.combination, cells.count, classes)
        if self.rule.t is None or not is_kept.any():
            return is_kept
        is_kept &= self.rule.are_close(cells._distances(members._totals(np.ones(classes, bool)), classes))
        if not is_kept.all() and is_kept.any():
            far = cells._distances(members._totals(is_kept), classes)
            if not self.rule.are_close(far[is_kept]).all():
                return np.zeros(classes, bool)
        return is_kept

    def _cells(self, classes: int) -> Sensitive:
        """Return one entry for each class and value; a person with several values counts for each."""
        if self.person is None:
            return self
        groups = Groups(self.combination * self.values + self.value, classes * self.values)
        own, value = groups.keys // self.values, groups.keys % self.values
        return replace(self, combination=own, value=value, count=groups.rows.astype(np.float64), person=None)

    def _totals(self, is_left: Bools) -> Floats:
        """Count the people of each value in all classes that are left: whoever is in several of them counts once."""
        inside = is_left[self.combination]
        value = self.value[inside]
        if self.person is None:
            return np.bincount(value, self.count[inside], self.values).astype(np.float64)
        people = int(self.person.max(initial=0)) + 1
        pairs = distinct(value * people + self.person[inside])
        return np.bincount(pairs // people, minlength=self.values).astype(np.float64)

    def _distances(self, everybody: Floats, classes: int) -> Floats:
        """Return how far the values of each class are from those of the people counted; 1 where it has none of them."""
        own, value, count = self.combination, self.value, self.count
        whole = everybody / max(everybody.sum(), 1)
        occurs = np.flatnonzero(everybody > 0)
        place = np.zeros(self.values, np.int64)
        place[occurs] = np.arange(len(occurs))
        whole = whole[occurs]
        far = np.ones(classes)
        step = max(_MOST_SHARES // max(len(occurs), 1), 1)
        for first in range(0, classes, step):
            progress.check()
            last = min(first + step, classes)
            inside = (own >= first) & (own < last) & (everybody[value] > 0)
            histograms = np.zeros((last - first, len(occurs)))
            histograms[own[inside] - first, place[value[inside]]] = count[inside]
            far[first:last] = self.rule.distances(histograms, whole)
        return far

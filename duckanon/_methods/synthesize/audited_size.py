"""The smallest clusters with which isolated people are hardly recognised, by audits of halves of the table."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from duckanon._core.common.arrays import Floats, Ints, distinct, sampled_rows
from duckanon._core.common.parameters import LEAST_CLUSTER_SIZE
from duckanon._core.common.people import NOBODY
from duckanon._core.common.progress import Tell
from duckanon._core.privacy.audit import FEWEST, LIMIT, paired_audit
from duckanon._methods.synthesize.redrawing import Redrawing

_AUDITED_ROWS = 4_000  # with which a size is tried: the right one hardly depends on their number
_FACTOR = 2.0  # between the sizes that are tried
_MOST_AUDITS = 4  # of a size
_NOISE = 0.011  # the standard deviation of one audit: .008 and .014 were measured on two tables of 1,500 people


class _Audited(NamedTuple):
    """People who are audited: one row of each, drawn at random, and all their rows."""

    shown: Ints
    rows: Ints
    whose: Ints | None

    def of(self, half: Ints) -> Ints:
        """Return all rows of some of the people."""
        if self.whose is None:
            return self.shown[half]
        return self.rows[np.isin(self.whose, half)]


def without_some(rows: Ints, people: Ints | None, keep_out: int, random: np.random.Generator) -> Ints:
    """Leave people out, drawn at random, with all their rows."""
    if people is None:
        return rows[np.sort(random.permutation(len(rows))[keep_out:])]
    out = random.choice(distinct(people[rows]), keep_out, replace=False)
    return rows[~np.isin(people[rows], out)]


def smallest_size(
    redrawing: Redrawing, group: Ints, keep_out: int, random: np.random.Generator, tell: Tell
) -> float | None:
    """Look for the smallest clusters with which isolated people are not recognised; None for all rows as one.

    Sizes are twice as large each time, from twice the rank on, the least with which a cluster is not its records. They
    are bisected: the larger clusters are, the less they tell about a record. Where people have several rows, halves are
    halves of the people, each with all rows, and one row of each isolated person is looked for. The release says
    nothing about ``keep_out`` people.
    """
    audited = _audited(redrawing.people, group, random)
    if len(audited.shown) < 2 * FEWEST:
        return None
    sizes = []
    size = max(2.0 * redrawing.rank, 2.0 * redrawing.k, LEAST_CLUSTER_SIZE)
    while 1.5 * size < len(audited.rows) / 2:  # in halves of the table there are at least two clusters
        sizes.append(size)
        size *= _FACTOR
    points = redrawing.matrix(redrawing.original(audited.shown), None).astype(np.float64)
    most_out = min(keep_out, len(audited.shown) // 8)

    def audit(size: float) -> float:
        def release(half: Ints, chance: np.random.Generator) -> Floats:
            rows = audited.of(half)
            used = without_some(rows, redrawing.people, most_out, chance)
            parts = redrawing.redrawn(used, len(rows), size, chance)
            return redrawing.matrix(parts, None).astype(np.float64)

        return paired_audit(points, release, seed=int(random.integers(2**31)))

    first, last = 0, len(sizes)
    while first < last:
        middle = (first + last) // 2
        tell(1 - (last - first) / (len(sizes) + 1))
        if passes(partial(audit, sizes[middle])):
            last = middle
        else:
            first = middle + 1
    return sizes[last] if last < len(sizes) else None


def passes(audit: Callable[[], float]) -> bool:
    """Tell whether the mean of audits is at most the limit by more than its standard error; where in doubt, it is not.

    Examples:
        >>> passes(lambda: 0.52), passes(lambda: 0.549), passes(lambda: 0.58)
        (True, False, False)
    """
    rates: list[float] = []
    while len(rates) < _MOST_AUDITS:
        rates.append(audit())
        mean, error = float(np.mean(rates)), _NOISE / len(rates) ** 0.5
        if abs(mean - LIMIT) >= error:
            return mean < LIMIT
    return False


def _audited(people: Ints | None, group: Ints, random: np.random.Generator) -> _Audited:
    """Draw people of about as many rows as are audited."""
    if people is None:
        rows = group[sampled_rows(_AUDITED_ROWS, len(group), random)]
        return _Audited(rows, rows, None)
    rows = group[people[group] != NOBODY]
    persons = distinct(people[rows])
    most = max(2 * FEWEST, _AUDITED_ROWS * len(persons) // max(len(rows), 1))
    persons = persons[sampled_rows(most, len(persons), random)]
    rows = random.permutation(rows[np.isin(people[rows], persons)])
    shown, whose = np.unique(people[rows], return_index=True)[1], np.searchsorted(persons, people[rows])
    return _Audited(rows[shown], rows, whose)

"""Microaggregation of large tables: MDAV within parts, and then better groups across them."""

from __future__ import annotations

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arguments import checked
from duckanon._core.common.arrays import Ints, Matrix
from duckanon._core.common.people import NOBODY, refuse_too_few
from duckanon._core.common.rules import Whole
from duckanon._methods.microaggregate.mdav import mdav, mdav_of_parts
from duckanon._methods.microaggregate.pools import regrouped
from duckanon._methods.microaggregate.refine import refined
from duckanon._methods.swap.halving import halved, halved_by_people

PART, LEAST_PART = 100, 1_000
"""Groups that a part holds at most, and records that it holds even where these are more groups: MDAV within parts takes
as many looks at each record as the part has groups. With 300 groups, 100,000 x 8 normal numbers for k = 10 took half a
second more and lost the same in the end."""

_SMALL = 10_000
"""Records that MDAV itself groups at the start, in a second: no more is lost than there."""

_MOST_TURNS, _WORK = 150, 90_000
"""Pools of small tables are dissolved more often; above 90,000 records there are single steps only."""

_SEARCHES, _STEPS = 4, 3
"""Searches for the neighbours of each group, and rounds of single steps with each: the first rounds gain
most, and new neighbours more than more rounds."""

_LAST_STEPS = 12
"""Rounds of single steps after pools were dissolved."""


@checked(k=Whole(2))
def fast(points: Matrix, k: int, people: Ints | None = None) -> Ints:
    """Group records at a cost that hardly grows faster than their number, mostly at less loss than MDAV.

    Up to 10,000 records are grouped by MDAV.  Of more, halving the table at medians makes parts of at most 100 k or
    1,000 records, within which MDAV groups (`mdav_of_parts`).  Then records move and swap between neighbouring groups
    (`refine`), and pools of two or three groups are dissolved and grown anew (`pools`), in turns: the number of turns
    depends on the number of records alone.  The same points always have the same groups.
    """
    refuse_too_few(k, len(points), people)
    random = np.random.default_rng(0)  # draws decide what is tried, and nothing of it is released
    with progress.part(0, 0.3):
        group = _start(points, k, people)
    for search in range(_SEARCHES):
        progress.at(0.3 + 0.4 * search / _SEARCHES)
        group = refined(points, group, k, _STEPS, people)
    turns = min(_MOST_TURNS, _WORK // len(points))
    for turn in range(turns):
        progress.at(0.7 + 0.3 * turn / turns)
        group = regrouped(points, group, k, 2 + turn % 2, random, people)
        if turn % 3 == 2 or turn == turns - 1:
            group = refined(points, group, k, _LAST_STEPS, people)
    return group


def _start(points: Matrix, k: int, people: Ints | None) -> Ints:
    part = max(PART * k, LEAST_PART)
    if len(points) <= max(_SMALL, part):
        return mdav(points, k, people)
    if people is None:
        return mdav_of_parts(points, halved(points, part // 2), k)
    known = int(np.count_nonzero(np.bincount(people[people != NOBODY])))
    # Few people with many records: smaller parts, as those of fewer people than asked for are not cut.
    parts = halved_by_people(points, people, max(k, min(part // 2, known // 4)))
    group, groups = np.empty(len(points), np.int64), 0
    for members in np.split(np.argsort(parts, kind="stable"), np.cumsum(np.bincount(parts))[:-1]):
        progress.check()
        group[members] = groups + mdav(points[members], k, people[members])
        groups = int(group[members].max()) + 1
    return group

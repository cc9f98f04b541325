"""Finest first: rows begin with labels that keep the promise, and show finer ones wherever it still holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Floats, Ints, Ints32, run_starts
from duckanon._methods.linked.choices import Rows, Supports, chains, choices, has_any, keys, violated_share
from duckanon._methods.linked.confidence import Told
from duckanon._methods.linked.rows_out import cover, rows_out, scattered

_ROUNDS = 80
"""Rounds after which rows stay as coarse as they were: 10 to 40 are usual."""
_HOPELESS = 0.7
"""Levels at which fewer than k people hold more of the choices are not tried: few rows can show them, and they take the
room of many more that would show the next level."""


def best_levels(
    rows: Rows, ladder: Sequence[Ints], losses: Sequence[Floats], k: int, told: Told | None, most: float
) -> Ints:
    """Return the level of the ladder that each row shows, ``len(ladder)`` where it goes: what loses least.

    Rows may begin at every level at which no more than the share `most` of them goes, and always at the coarsest.
    """
    best, least = np.full(rows.size, len(ladder)), np.inf
    with_gone = [*losses, np.ones(rows.size)]
    tried: list[int] = []
    for start in range(len(ladder)):
        is_last = start == len(ladder) - 1
        if not is_last and violated_share(rows, ladder[start], k) > _HOPELESS:
            continue
        tried.append(start)
        gone = rows_out(rows, ladder[start], k, told, 1 if is_last else most)
        if gone is not None:
            shown = finest_first(rows, [ladder[level] for level in tried], k, told, gone)
            level = np.array([*tried, len(ladder)])[shown]
            lost = float(np.choose(level, with_gone).mean())
            if lost < least:
                best, least = level, lost
    return best


def finest_first(rows: Rows, ladder: Sequence[Ints], k: int, told: Told | None, gone: Bools) -> Ints:
    """Return the level of the ladder that each row shows, ``len(ladder)`` where it goes.

    Rows that are `gone` go at the coarsest level; all that are left try the finest level, those that cannot show it the
    next one, and so on; then all that are coarser try again.
    """
    coarsest = len(ladder) - 1
    level = np.where(gone, len(ladder), coarsest)
    shown = ladder[-1].copy()
    sets = rows.sets[~has_any(rows.sets, gone)]
    for _ in range(max(1, rows.sets.shape[1] - 1)):  # a second pass loses less where three rows are known
        for finer in range(coarsest):
            candidates = (level > finer) & ~gone
            up = refined(rows._replace(sets=sets), shown, ladder[finer], candidates, k, told)
            shown[up], level[up] = ladder[finer][up], finer
    return level


class _Start(NamedTuple):
    """The choices at the labels that rows may go back to."""

    sets: Ints32
    held: Ints  # the choices' numbers


def refined(rows: Rows, base: Ints, fine: Ints, candidates: Bools, k: int, told: Told | None = None) -> Bools:
    """Tell which of the candidates can show finer labels in place of those at which the promise holds.

    Rows are taken back where a choice is violated: that of the person with most hits; where a choice has no finer row,
    people who held it at the start go back, those with the fewest finer rows first. Rows only go back, so it ends.
    Numbers of `base` and `fine` are labels', from 1, and equal where the labels are.
    """
    up: Bools = candidates & (fine != base)
    same: Bools = candidates & ~up
    sets = rows.sets
    span = max(int(base.max(initial=0)), int(fine.max(initial=0)))
    padding = np.array([0, span])  # the largest number last, so that all keys are of one span
    first_chains = chains(rows.person, base)
    start_sets = sets[choices(sets, first_chains.before)]
    start = _Start(start_sets, _keys(start_sets, base, padding))
    for _ in range(_ROUNDS):
        progress.check()
        items = np.where(up, fine, base)
        equal = chains(rows.person, items, up)
        current = sets[choices(sets, equal.before)]
        held = _keys(current, items, padding)
        supports = Supports(held)
        is_bad = supports.of(held) < k
        if told is not None:
            is_bad |= told.is_too_sure(held, rows.person[current[:, 0]])
        if not is_bad.any():
            return up | same
        is_finer = has_any(current, up)
        back = cover(rows.person, current[is_bad & is_finer], equal, up)
        coarse = is_bad & ~is_finer
        if coarse.any():
            back |= _holders(rows, start, current, held, coarse, supports, up & ~back, k)
            if told is not None:  # nobody may be missing: what is too sure is known by who else held it
                back |= _all_holders(rows, start, held[coarse])
        up &= ~back
    return same


def _keys(sets: Ints32, items: Ints, padding: Ints) -> Ints:
    """Return the keys of choices, for labels up to the last number of the padding."""
    return keys(sets, np.concatenate([items, padding]))


def _holders(
    rows: Rows, start: _Start, current: Ints32, held: Ints, coarse: Bools, supports: Supports, up: Bools, k: int
) -> Bools:
    """Return the rows of people who held violated choices at the start and do not now, as many as are missing."""
    asked = np.sort(held[coarse])
    asked = asked[run_starts(asked)]
    place = np.minimum(np.searchsorted(asked, start.held), len(asked) - 1)
    mine = np.flatnonzero(asked[place] == start.held)
    people = int(rows.person.max()) + 1
    now = np.searchsorted(asked, held[coarse]) * people + rows.person[current[coarse, 0]]
    mine = mine[~np.isin(place[mine] * people + rows.person[start.sets[mine, 0]], now)]
    finer = np.append(up, False)[start.sets[mine]].sum(axis=1)
    order = np.lexsort((scattered(rows.person[start.sets[mine, 0]] * len(asked) + place[mine]), finer, place[mine]))
    mine = mine[order]
    starts = run_starts(place[mine])
    rank = np.arange(len(mine)) - np.repeat(starts, np.diff(np.append(starts, len(mine))))
    chosen = start.sets[mine[rank < k - supports.of(start.held[mine])]]
    return _marked(chosen, rows.size)


def _all_holders(rows: Rows, start: _Start, asked: Ints) -> Bools:
    return _marked(start.sets[np.isin(start.held, asked)], rows.size)


def _marked(sets: Ints32, size: int) -> Bools:
    marks: Bools = np.zeros(size + 1, np.bool_)
    marks[sets.reshape(-1)] = True
    return marks[:-1]

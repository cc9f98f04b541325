"""Finest first: rows begin with labels that keep the promise, and show finer ones wherever it still holds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Floats, Ints, Ints32
from duckanon._methods.linked.choices import Rows, chains, has_any, violated_share
from duckanon._methods.linked.held_choices import HeldChoices
from duckanon._methods.linked.rows_out import cover, rows_out
from duckanon._methods.linked.sensitive_values import Told

_ROUNDS = 80
"""Rounds after which rows stay as coarse as they were: 10 to 40 are usual."""
_HOPELESS = 0.7
"""Levels at which fewer than k people hold more of the choices are not tried: few rows can show them, and they take the
room of many more that would show the next level."""


_WORTH_COARSER = 10
"""Times the share of rows that may go: where more would have to go at a level, the coarser ones do not save enough."""


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
        gone = rows_out(rows, ladder[start], k, told, 1 if is_last else _WORTH_COARSER * most)
        if gone is None:
            continue
        if told is None and not is_last and gone.any():
            level = coarser_later(rows, ladder, start, gone, k)
            lost = float(np.choose(level, with_gone).mean())
            if lost < least and (level == len(ladder)).mean() <= most:
                best, least = level, lost
        if is_last or gone.mean() <= most:
            shown = finest_first(rows, [ladder[level] for level in tried], k, told, gone)
            level = np.array([*tried, len(ladder)])[shown]
            lost = float(np.choose(level, with_gone).mean())
            if lost < least:
                best, least = level, lost
    return best


def coarser_later(rows: Rows, ladder: Sequence[Ints], start: int, gone: Bools, k: int) -> Ints:
    """Return the level of each row, ``len(ladder)`` where it goes, if rows that had to go try the coarser levels.

    Rows that stay keep their labels: what others show later only adds people to the choices of theirs.
    """
    level = np.where(gone, len(ladder), start)
    shown = ladder[start].copy()
    for coarser in range(start + 1, len(ladder)):
        again = level == len(ladder)
        shown[again] = ladder[coarser][again]
        out = rows_out(rows, shown, k, eligible=again)
        assert out is not None
        level[again & ~out] = coarser
    return level


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


def refined(rows: Rows, base: Ints, fine: Ints, candidates: Bools, k: int, told: Told | None = None) -> Bools:
    """Tell which of the candidates can show finer labels in place of those at which the promise holds.

    Rows are taken back where a choice is violated: that of the person with most hits; where a choice has no finer row,
    people who held it at the start go back, those with the fewest finer rows first. Rows only go back, so it ends.
    Numbers of `base` and `fine` are labels', from 1, and equal where the labels are.
    """
    up: Bools = candidates & (fine != base)
    same: Bools = candidates & ~up
    sets = rows.sets
    equal = chains(rows.person, np.where(up, fine, base), up)
    held = HeldChoices(rows, base, np.where(up, fine, base), k)
    held.change(up, equal, np.ones(rows.size, np.bool_))
    for _ in range(_ROUNDS):
        progress.check()
        bad = held.violated(told)
        if not len(bad):
            return up | same
        is_finer = has_any(sets[bad], up)
        back = cover(rows.person, sets[bad[is_finer]], equal, up)
        coarse = bad[~is_finer]
        if len(coarse):
            back |= _marked(sets[held.missing(coarse, up & ~back)], rows.size)
            if told is not None:  # nobody may be missing: what is too sure is known by who else held it
                back |= _marked(sets[held.at_start(coarse)], rows.size)
        back &= up
        up &= ~back
        equal = chains(rows.person, np.where(up, fine, base), up)
        held.change(up, equal, back)
    return same


def _marked(sets: Ints32, size: int) -> Bools:
    marks: Bools = np.zeros(size + 1, np.bool_)
    marks[sets.reshape(-1)] = True
    return marks[:-1]

"""Levels of all rows, class by class: a class is released by itself, so that no other one depends on its people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Floats, Ints, run_starts
from duckanon._methods.linked.choices import chains, choices, keys, rows_of_class
from duckanon._methods.linked.column_levels import ColumnLevels
from duckanon._methods.linked.confidence import Told
from duckanon._methods.linked.dense_numbers import held_by, ranked
from duckanon._methods.linked.finest_first import best_levels
from duckanon._methods.linked.ladders import Ladder
from duckanon._methods.linked.people import SensitiveValues


class Part(NamedTuple):
    """The rows of one table."""

    name: str
    rows: Ints  # their places in the long table
    columns: list[ColumnLevels]
    ladder: Ladder


def levels_by_class(
    parts: Sequence[Part],
    person_of: Ints,
    part_of: Ints,
    own_class: Ints,
    known: Sequence[int],
    k: int,
    told: SensitiveValues | None,
    most: float,
) -> Ints:
    """Return the level of its table's ladder that each row shows, class by class: each is released by itself.

    Rows of tables of which nothing is known show their values.
    """
    height = max(len(part.ladder.steps) for part in parts)
    items: Ints = np.zeros((height, len(person_of)), np.int64)
    losses: Floats = np.zeros((height, len(person_of)))
    first = 0
    for part in parts:
        for place in range(height):
            step = min(place, len(part.ladder.steps) - 1)
            items[place, part.rows] = part.ladder.items[step] + first
            losses[place, part.rows] = part.ladder.losses[step]
        first += 1 + max(int(one.max(initial=0)) for one in part.ladder.items)
    found = np.zeros(len(person_of), np.int64)
    counted = np.append(np.array(known, np.int64) > 0, False)[part_of]
    rows = np.flatnonzero(counted)
    rows = rows[np.lexsort((person_of[rows], own_class[person_of[rows]]))]
    starts = run_starts(own_class[person_of[rows]])
    people = np.bincount(own_class)
    for number, (start, end) in enumerate(zip(starts, np.append(starts[1:], len(rows)), strict=True)):
        progress.at(number / len(starts))
        some = rows[start:end]
        own_people = ranked(person_of[some])
        own = ranked(items[:, some].reshape(-1)).reshape(height, -1) + 1
        within = rows_of_class(own_people, part_of[some], known)
        own_told = None if told is None else told.of(person_of[some[run_starts(own_people)]])
        level = best_levels(within, list(own), list(losses[:, some]), k, own_told, most)
        _promise(own_people, part_of[some], known, own, level, k, own_told, int(people[own_class[person_of[some[0]]]]))
        found[some] = level
    for part in parts:
        last = len(part.ladder.steps) - 1
        found[part.rows] = np.where(found[part.rows] == height, last + 1, np.minimum(found[part.rows], last))
    return found


def _promise(
    person: Ints, part: Ints, known: Sequence[int], items: Ints, level: Ints, k: int, told: Told | None, people: int
) -> None:
    """Count the choices of the rows that are released from the beginning."""
    is_kept = level < len(items)
    shown = np.append(items, np.zeros((1, items.shape[1]), np.int64), axis=0)[level, np.arange(len(level))][is_kept]
    rows = rows_of_class(person[is_kept], part[is_kept], known)
    sets = rows.sets[choices(rows.sets, chains(rows.person, shown).before)]
    held = keys(sets, np.append(shown, 0))
    if people < k or (held_by(held) < k).any():
        raise AssertionError(f"a choice of rows is held by fewer than {k} people.")
    if told is not None and told.is_too_sure(held, rows.person[sets[:, 0]]).any():
        raise AssertionError("a choice of rows tells a sensitive value too surely.")

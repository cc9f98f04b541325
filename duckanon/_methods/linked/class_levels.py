"""Levels of all rows, class by class: a class is released by itself, so that no other one depends on its people."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Floats, Ints, Ints32, run_starts
from duckanon._methods.linked.choices import chains, choices, keys, rows_of_class
from duckanon._methods.linked.column_levels import ColumnLevels
from duckanon._methods.linked.dense_numbers import held_by, ranked
from duckanon._methods.linked.finest_first import best_levels
from duckanon._methods.linked.ladders import Ladder, lost_by
from duckanon._methods.linked.rows_out import rows_out
from duckanon._methods.linked.sensitive_values import SensitiveValues, Told


class Part(NamedTuple):
    """The rows of one table."""

    name: str
    place: int  # among all tables
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
    within_part = np.empty(len(person_of), np.int32)
    for part in parts:
        within_part[part.rows] = np.arange(len(part.rows))
    found = np.zeros(len(person_of), np.int64)
    counted = np.append(np.array(known, np.int64) > 0, False)[part_of]
    rows = np.flatnonzero(counted)
    rows = rows[np.lexsort((person_of[rows], own_class[person_of[rows]]))]
    starts = run_starts(own_class[person_of[rows]])
    people = np.bincount(own_class)

    def release_class(some: Ints, is_released: bool = False) -> None:
        """Find the levels of some rows; where they are released, leave out those whose values tell too much."""
        some = some[found[some] < height]
        if not len(some):
            return
        own_people, own_parts = ranked(person_of[some]), part_of[some]
        items, losses = _ladder_of_rows(parts, own_parts, within_part[some], height)
        items = ranked(items.reshape(-1)).reshape(height, -1) + 1
        within = rows_of_class(own_people, own_parts, known)
        own_told = None if told is None else told.of(person_of[some[run_starts(own_people)]])
        if is_released:
            gone = rows_out(within, items[found[some], np.arange(len(some))], k, own_told)
            assert gone is not None
            found[some[gone]] = height
        else:
            found[some] = best_levels(within, list(items), list(losses), k, own_told, most)
        class_size = int(people[own_class[person_of[some[0]]]])
        _promise(own_people, own_parts, known, items, found[some], k, own_told, class_size)

    classes = [rows[start:end] for start, end in zip(starts, [*starts[1:], len(rows)], strict=True)]
    _on_all_cores(release_class, classes)
    while told is not None:
        before, told = told, told.in_rows(found < height)
        if told is before:
            break
        told.refuse_classes(own_class)
        _on_all_cores(functools.partial(release_class, is_released=True), classes)
    for part in parts:
        last = len(part.ladder.steps) - 1
        found[part.rows] = np.where(found[part.rows] == height, last + 1, np.minimum(found[part.rows], last))
    return found


def _on_all_cores(work: Callable[[Ints], None], classes: Sequence[Ints]) -> None:
    """Do some work for every class; numpy lets other threads run while it sorts and gathers."""
    watched = progress.shared(work)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(watched, rows) for rows in classes]
        try:
            for number, job in enumerate(jobs):
                progress.at(number / len(jobs))
                job.result()
        finally:
            for job in jobs:  # those that have not begun, where one has failed
                job.cancel()


def _ladder_of_rows(parts: Sequence[Part], part_of: Ints, within: Ints32, height: int) -> tuple[Ints, Floats]:
    """Return the labels of some rows of all tables, and what they lose, for each level; equal only within a table."""
    items: Ints = np.zeros((height, len(part_of)), np.int64)
    losses: Floats = np.zeros((height, len(part_of)))
    first = 0
    for part in parts:
        own = np.flatnonzero(part_of == part.place)
        for level in range(height):
            step = min(level, len(part.ladder.steps) - 1)
            items[level, own] = part.ladder.items[step][within[own]] + first
            losses[level, own] = lost_by(part.columns, part.ladder.steps[step], within[own])
        first += 1 + max(int(one.max(initial=0)) for one in part.ladder.items)
    return items, losses


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
    if told is not None and told.is_violated(held, rows.person[sets[:, 0]]).any():
        raise AssertionError("a choice of rows tells too much about sensitive values.")

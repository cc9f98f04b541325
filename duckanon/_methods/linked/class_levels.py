"""Levels of all rows, class by class: each class is released by itself, so none depends on the people of another.

A class begins at every level of its ladder at which few enough rows would have to go. Rows that break the promise are
dropped first: each person covers their violated choices greedily by the row that is in most of them for its loss. Then
all rows try the finest level, and rows in violated choices go back, round by round, until none is violated (10 to 40
rounds are usual); those that went back try the next level. The attempt that loses least is released, and its choices
are counted again from the beginning. A round looks only at the people whose rows changed.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Floats, Ints, Ints32, find_run_starts, measure_runs
from duckanon._core.common.row_keys import rank_keys
from duckanon._methods.linked.choices import (
    Chains,
    ClassRows,
    Numbering,
    count_holders,
    find_chains,
    find_choices,
    find_row_sets,
    has_any,
    make_keys,
    measure_violations,
)
from duckanon._methods.linked.ladders import ColumnLevels, TableLadder, measure_loss
from duckanon._methods.linked.sensitive_values import ClassValues, SensitiveValues


def drop_rows(
    rows: ClassRows,
    items: Ints,
    k: int,
    values: ClassValues | None = None,
    most: float = 1,
    eligible: Bools | None = None,
) -> Bools | None:
    """Tell which rows go; None where that would be more than the share `most` of them.

    Choices of one row are covered first, then those of two and one, since a row that goes for a pair may leave another
    one too rare. Each person covers their violated choices by the row that is in most of them for what goes with it.
    Only `eligible` rows go, where the others keep the promise by themselves.
    """
    gone = np.zeros(rows.size, np.bool_)
    equal = find_chains(rows.person, items, eligible)
    numbers = np.append(items, 0)
    is_choice = find_choices(rows.sets, equal.before)
    counts = (rows.sets < rows.size).sum(axis=1)
    for size in range(1, rows.sets.shape[1] + 1):
        sets = rows.sets[is_choice & (counts <= size)]
        sets = sets[~has_any(sets, gone)]
        held = make_keys(sets, numbers)
        while True:
            progress.check()
            is_bad = count_holders(held) < k
            if values is not None:
                is_bad |= values.is_too_sure(held, rows.person[sets[:, 0]])
            bad = np.flatnonzero(is_bad)
            if not len(bad):
                break
            out = cover_choices(rows.person, sets[bad], equal, eligible, by_loss=True)
            gone |= out
            if gone.mean() > most:
                return None
            stays = ~has_any(sets, out)
            sets, held = sets[stays], held[stays]
    return gone


def cover_choices(
    person: Ints, violated: Ints32, equal: Chains, eligible: Bools | None, by_loss: bool = False
) -> Bools:
    """Return rows that are in all violated choices, chosen person by person, greedily by the choices they are in.

    A row takes the later ones of its chain with it, else a choice would be held by these; `by_loss` counts them.
    """
    size = len(person)
    is_out = np.zeros(size + 1, np.bool_)
    is_eligible = np.append(np.ones(size, np.bool_) if eligible is None else eligible, False)
    lengths = np.bincount(equal.chain)
    losses = np.append(lengths[equal.chain] - equal.position if by_loss else np.ones(size), 1.0)
    lowest = np.full(len(lengths), size, np.int64)
    while len(violated):
        # the last row of a chain in a choice; the earlier ones would take it with them
        is_last = np.ones(violated.shape, np.bool_)
        for position in range(violated.shape[1]):
            is_last &= equal.before[violated[:, [position]]] != violated
        hits = np.bincount(violated[is_last & is_eligible[violated]], minlength=size + 1)
        if not hits.any():
            raise AssertionError("a violated choice has no row that may change.")
        taken = _choose_rows(person, np.flatnonzero(hits), hits / losses)
        lowest[equal.chain[taken]] = np.minimum(lowest[equal.chain[taken]], equal.position[taken])
        is_out[:-1] = equal.position >= lowest[equal.chain]
        violated = violated[~has_any(violated, is_out[:-1])]
    return is_out[:-1]


def _choose_rows(person: Ints, rows: Ints, scores: Floats) -> Ints:
    """Return the row of each person that has the largest score; of several, any.

    The first one would be of the first table: on a hospital's tables, that lost 2.5 % more.
    """
    order = np.lexsort((scatter(rows), -scores[rows], person[rows]))
    ordered = rows[order]
    return ordered[find_run_starts(person[ordered])]


def scatter(numbers: Ints) -> Ints:
    """Scramble numbers by a fixed hash, to break ties without a pattern."""
    return (numbers + 1) * 2_654_435_761 % 4_294_967_291


class ChoiceHolders:
    """The choice that each set of rows is, and how many people hold it; few of them change in a round."""

    def __init__(self, rows: ClassRows, base: Ints, fine: Ints, k: int) -> None:
        """Take the labels that rows may go back to, which are the start, and the finer ones that they may show."""
        self._rows, self._k = rows, k
        self._numbering = Numbering(rows.sets, base, fine)
        self._none = self._numbering.count  # the number of sets that are no choices
        self._person_of_set = rows.person[rows.sets[:, 0]].astype(np.int32)
        self._start = self._number_sets(
            np.arange(len(rows.sets)), np.zeros(rows.size, np.bool_), find_chains(rows.person, base)
        )
        self._now = self._start.copy()
        self._supports = np.bincount(self._now, minlength=self._none + 1).astype(np.int32)
        self._is_low: Bools = self._supports < k

    def change(self, up: Bools, equal: Chains, changed: Bools) -> None:
        """Look up the choices of the people of changed rows, where the rows that are `up` show the finer label."""
        is_changed: Bools = np.zeros(int(self._rows.person.max(initial=-1)) + 1, np.bool_)
        is_changed[self._rows.person[changed]] = True
        moved_sets = np.flatnonzero(is_changed[self._person_of_set])
        before, now = self._now[moved_sets], self._number_sets(moved_sets, up, equal)
        moved = np.flatnonzero(before != now)
        moved_sets, before, now = moved_sets[moved], before[moved], now[moved]
        self._now[moved_sets] = now
        np.subtract.at(self._supports, before, 1)
        np.add.at(self._supports, now, 1)
        for numbers in (before, now):
            self._is_low[numbers] = self._supports[numbers] < self._k
        self._is_low[self._none] = False

    def _number_sets(self, chosen: Ints, up: Bools, equal: Chains) -> Ints32:
        numbers = self._numbering.of(chosen, up)
        numbers[~find_choices(self._rows.sets[chosen], equal.before)] = self._none
        return numbers

    def find_violations(self, values: ClassValues | None) -> Ints:
        """Return the sets of rows whose choices fewer than k people hold, or that disclose too much."""
        is_bad = self._is_low[self._now]
        if values is not None:
            held = np.flatnonzero(self._now < self._none)
            is_bad[held] |= values.is_too_sure(self._now[held], self._person_of_set[held].astype(np.int64))
        return np.flatnonzero(is_bad)

    def find_at_start(self, asked: Ints) -> Ints:
        """Return the sets whose choice at the start was one that the given sets are now."""
        marks: Bools = np.zeros(self._none + 1, np.bool_)
        marks[self._now[asked]] = True
        return np.flatnonzero(marks[self._start])

    def find_missing(self, asked: Ints, up: Bools) -> Ints:
        """Return sets that were violated choices at the start, of as many people as these choices lack now.

        Sets with the fewest finer rows come first.
        """
        people = int(self._rows.person.max()) + 1
        mine = self.find_at_start(asked)
        choice, person = self._start[mine].astype(np.int64), self._person_of_set[mine].astype(np.int64)
        is_gone = ~np.isin(
            choice * people + person, self._now[asked].astype(np.int64) * people + self._person_of_set[asked]
        )
        mine, choice = mine[is_gone], choice[is_gone]
        finer = np.append(up, False)[self._rows.sets[mine]].sum(axis=1)
        order = np.lexsort((scatter(mine), finer, choice))  # not by the numbers of choices, which other classes change
        mine, choice = mine[order], choice[order]
        starts = find_run_starts(choice)
        rank = np.arange(len(mine)) - np.repeat(starts, measure_runs(starts, len(mine)))
        return mine[rank < self._k - self._supports[choice]]


_ROUNDS = 80
"""Rounds after which rows stay as coarse as they were: 10 to 40 are usual."""
_HOPELESS = 0.7
"""Levels at which fewer than k people hold more of the choices are not tried: few rows can show them, and they take the
room of many more that would show the next level."""
_WORTH_COARSER = 10
"""Times the share of rows that may go: where more would have to go at a level, the coarser ones do not save enough."""


def choose_levels(
    rows: ClassRows, ladder: Sequence[Ints], losses: Sequence[Floats], k: int, values: ClassValues | None, most: float
) -> Ints:
    """Return the level of the ladder that each row shows, ``len(ladder)`` where it goes: what loses least.

    Rows may begin at every level at which no more than the share `most` of them goes, and always at the coarsest.
    """
    best, least = np.full(rows.size, len(ladder)), np.inf
    with_gone = [*losses, np.ones(rows.size)]
    tried: list[int] = []
    for start in range(len(ladder)):
        is_last = start == len(ladder) - 1
        if not is_last and measure_violations(rows, ladder[start], k) > _HOPELESS:
            continue
        tried.append(start)
        gone = drop_rows(rows, ladder[start], k, values, 1 if is_last else _WORTH_COARSER * most)
        if gone is None:
            continue
        if values is None and not is_last and gone.any():
            level = show_coarser(rows, ladder, start, gone, k)
            lost = float(np.choose(level, with_gone).mean())
            if lost < least and (level == len(ladder)).mean() <= most:
                best, least = level, lost
        if is_last or gone.mean() <= most:
            shown = show_finest(rows, [ladder[level] for level in tried], k, values, gone)
            level = np.array([*tried, len(ladder)])[shown]
            lost = float(np.choose(level, with_gone).mean())
            if lost < least:
                best, least = level, lost
    return best


def show_coarser(rows: ClassRows, ladder: Sequence[Ints], start: int, gone: Bools, k: int) -> Ints:
    """Return the level of each row, ``len(ladder)`` where it goes, if rows that had to go try the coarser levels.

    Rows that stay keep their labels: what others show later only adds people to the choices of theirs.
    """
    level = np.where(gone, len(ladder), start)
    shown = ladder[start].copy()
    for coarser in range(start + 1, len(ladder)):
        again = level == len(ladder)
        shown[again] = ladder[coarser][again]
        out = drop_rows(rows, shown, k, eligible=again)
        assert out is not None
        level[again & ~out] = coarser
    return level


def show_finest(rows: ClassRows, ladder: Sequence[Ints], k: int, values: ClassValues | None, gone: Bools) -> Ints:
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
            up = show_finer(rows._replace(sets=sets), shown, ladder[finer], candidates, k, values)
            shown[up], level[up] = ladder[finer][up], finer
    return level


def show_finer(
    rows: ClassRows, base: Ints, fine: Ints, candidates: Bools, k: int, values: ClassValues | None = None
) -> Bools:
    """Tell which of the candidates can show finer labels in place of those at which the promise holds.

    Rows are taken back where a choice is violated: that of the person with most hits; where a choice has no finer row,
    people who held it at the start go back, those with the fewest finer rows first. Rows only go back, so it ends.
    Numbers of `base` and `fine` are labels', from 1, and equal where the labels are.
    """
    up: Bools = candidates & (fine != base)
    same: Bools = candidates & ~up
    sets = rows.sets
    equal = find_chains(rows.person, np.where(up, fine, base), up)
    held = ChoiceHolders(rows, base, np.where(up, fine, base), k)
    held.change(up, equal, np.ones(rows.size, np.bool_))
    for _ in range(_ROUNDS):
        progress.check()
        bad = held.find_violations(values)
        if not len(bad):
            return up | same
        is_finer = has_any(sets[bad], up)
        back = cover_choices(rows.person, sets[bad[is_finer]], equal, up)
        coarse = bad[~is_finer]
        if len(coarse):
            back |= _mark_rows(sets[held.find_missing(coarse, up & ~back)], rows.size)
            if values is not None:  # nobody may be missing: what is too sure is known by who else held it
                back |= _mark_rows(sets[held.find_at_start(coarse)], rows.size)
        back &= up
        up &= ~back
        equal = find_chains(rows.person, np.where(up, fine, base), up)
        held.change(up, equal, back)
    return same


def _mark_rows(sets: Ints32, size: int) -> Bools:
    marks: Bools = np.zeros(size + 1, np.bool_)
    marks[sets.reshape(-1)] = True
    return marks[:-1]


class EventTable(NamedTuple):
    """The rows of one table."""

    name: str
    number: int  # among all tables
    rows: Ints  # their indices in the long table
    columns: list[ColumnLevels]
    ladder: TableLadder


def find_levels(
    event_tables: Sequence[EventTable],
    person_of_row: Ints,
    table_of_row: Ints,
    class_of_person: Ints,
    known: Sequence[int],
    k: int,
    sensitive_values: SensitiveValues | None,
    most: float,
) -> Ints:
    """Return the level of its table's ladder that each row shows, class by class: each is released by itself.

    Rows of tables without known events show their values.
    """
    height = max(len(events.ladder.steps) for events in event_tables)
    row_in_table = np.empty(len(person_of_row), np.int32)
    for events in event_tables:
        row_in_table[events.rows] = np.arange(len(events.rows))
    level = np.zeros(len(person_of_row), np.int64)
    rows = np.flatnonzero(np.append(np.array(known, np.int64) > 0, False)[table_of_row])
    rows = rows[np.lexsort((person_of_row[rows], class_of_person[person_of_row[rows]]))]
    starts = find_run_starts(class_of_person[person_of_row[rows]])
    people = np.bincount(class_of_person)

    def release_class(class_rows: Ints, is_released: bool = False) -> None:
        """Find the levels of a class's rows; once they are released, drop those that tell too much."""
        class_rows = class_rows[level[class_rows] < height]
        if not len(class_rows):
            return
        person, table_of_class_row = rank_keys(person_of_row[class_rows]), table_of_row[class_rows]
        items, losses = _join_ladders(event_tables, table_of_class_row, row_in_table[class_rows], height)
        items = rank_keys(items.reshape(-1)).reshape(height, -1) + 1
        within = find_row_sets(person, table_of_class_row, known)
        values = (
            None
            if sensitive_values is None
            else sensitive_values.of(person_of_row[class_rows[find_run_starts(person)]])
        )
        if is_released:
            gone = drop_rows(within, items[level[class_rows], np.arange(len(class_rows))], k, values)
            assert gone is not None
            level[class_rows[gone]] = height
        else:
            level[class_rows] = choose_levels(within, list(items), list(losses), k, values, most)
        class_size = int(people[class_of_person[person_of_row[class_rows[0]]]])
        _check_promise(person, table_of_class_row, known, items, level[class_rows], k, values, class_size)

    classes = [rows[start:end] for start, end in zip(starts, [*starts[1:], len(rows)], strict=True)]
    _run_on_all_cores(release_class, classes)
    while sensitive_values is not None:
        before, sensitive_values = sensitive_values, sensitive_values.in_rows(level < height)
        if sensitive_values is before:
            break
        sensitive_values.refuse_classes(class_of_person)
        _run_on_all_cores(functools.partial(release_class, is_released=True), classes)
    for events in event_tables:
        last = len(events.ladder.steps) - 1
        level[events.rows] = np.where(level[events.rows] == height, last + 1, np.minimum(level[events.rows], last))
    return level


def _run_on_all_cores(work: Callable[[Ints], None], classes: Sequence[Ints]) -> None:
    """Do some work for every class; numpy lets other threads run while it sorts and gathers."""
    watched = progress.share_watch(work)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(watched, rows) for rows in classes]
        try:
            for number, job in enumerate(jobs):
                progress.advance(number / len(jobs))
                job.result()
        finally:
            for job in jobs:  # those that have not begun, where one has failed
                job.cancel()


def _join_ladders(
    event_tables: Sequence[EventTable], table_of_row: Ints, within: Ints32, height: int
) -> tuple[Ints, Floats]:
    """Return the labels of some rows of all tables, and what they lose, for each level; equal only within a table."""
    items: Ints = np.zeros((height, len(table_of_row)), np.int64)
    losses: Floats = np.zeros((height, len(table_of_row)))
    first = 0
    for events in event_tables:
        in_table = np.flatnonzero(table_of_row == events.number)
        for level in range(height):
            step = min(level, len(events.ladder.steps) - 1)
            items[level, in_table] = events.ladder.items[step][within[in_table]] + first
            losses[level, in_table] = measure_loss(events.columns, events.ladder.steps[step], within[in_table])
        first += 1 + max(int(labels.max(initial=0)) for labels in events.ladder.items)
    return items, losses


def _check_promise(
    person: Ints,
    table_of_row: Ints,
    known: Sequence[int],
    items: Ints,
    level: Ints,
    k: int,
    values: ClassValues | None,
    people: int,
) -> None:
    """Count the choices of the rows that are released from the beginning."""
    is_kept = level < len(items)
    shown = np.append(items, np.zeros((1, items.shape[1]), np.int64), axis=0)[level, np.arange(len(level))][is_kept]
    rows = find_row_sets(person[is_kept], table_of_row[is_kept], known)
    sets = rows.sets[find_choices(rows.sets, find_chains(rows.person, shown).before)]
    held = make_keys(sets, np.append(shown, 0))
    if people < k or (count_holders(held) < k).any():
        raise AssertionError(f"a choice of rows is held by fewer than {k} people.")
    if values is not None and values.is_too_sure(held, rows.person[sets[:, 0]]).any():
        raise AssertionError("a choice of rows tells too much about sensitive values.")

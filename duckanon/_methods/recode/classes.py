"""Classes of at least k people that lose little: exact ones, a start for the others, and rounds that improve them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Array, Bools, Ints, run_lengths, run_starts
from duckanon._core.common.people import NOBODY, people_in
from duckanon._methods.recode.column_joins import Joins
from duckanon._methods.recode.column_losses import Column, Values
from duckanon._methods.recode.cuts import Rules, Table
from duckanon._methods.recode.growth import Grown, Pools
from duckanon._methods.recode.pools import grow
from duckanon._methods.recode.rounds import Members, Round, Search
from duckanon._methods.recode.start import start_classes

POOL_CLASSES = (2, 3)
"""Classes that a pool has."""

_MANY_ROWS = 100_000
"""Where more rows can change their class, a fifth of the rounds does: the first save most."""

_SET_BALANCE = 0.25
"""Preference of the start for halves where classes publish sets; found on Adult, where 0 loses a tenth more."""


class Combinations(NamedTuple):
    """Rows with the same codes and group."""

    of_row: Ints  # the combination of each row
    first_rows: Ints  # a row of each combination
    rows: Ints  # how many rows each has


def find_classes(
    columns: Sequence[Column], codes: Sequence[Array], groups: Ints | None, people: Ints | None, k: int, rounds: int
) -> Ints:
    """Return the class of each row: classes of at least k people that lose as little as can be found.

    Of every combination that k people share, k rows of different people stay together as a class of their own. Up to k
    more are helpers, which may join rarer neighbours; all others stay. What is rare is cut into classes from the top
    (`start`), and improved together with the helpers (`rounds`). Each group has at least k people.
    """
    codes = [
        of_rows.astype(np.int16 if column.size < 2**15 else np.int32)
        for column, of_rows in zip(columns, codes, strict=True)
    ]
    same = combined(columns, codes, groups)
    sizes = people_in(same.of_row, people, len(same.rows))
    group_of = np.zeros(len(sizes), np.int64) if groups is None else groups[same.first_rows]
    same, group_of, shared = _lent(same, group_of, sizes, people, k)
    shared &= ~_needed(same, group_of, shared, people, k)
    homes = int(shared.sum())
    home = np.where(shared, np.cumsum(shared) - 1, -1)
    classes: Ints = home[same.of_row]
    rare = np.flatnonzero(classes < 0)
    if len(rare):
        classes[rare] = homes + _started(columns, codes, groups, people, same, ~shared, rare, k)
    helpers = _helpers(same, shared, people, k)
    active = np.concatenate([rare, helpers])
    active = active[np.lexsort((active, classes[active]))]  # rows that are looked up together are near each other
    if rounds and len(rare):
        members = Members(
            columns,
            [of_rows[active] for of_rows in codes],
            None if groups is None else groups[active],
            home[same.of_row[active]],
            None if people is None else people[active],
        )
        search = Search(members, classes[active], homes, k)
        search.improve(
            rounds if len(active) <= _MANY_ROWS else -(-rounds // 5), lambda generator, _: plain_round(generator, k)
        )
        classes[active] = search.classes
    progress.at(1.0)
    return classes


def plain_round(generator: np.random.Generator, k: int) -> Round:
    """Make a round in which classes need nothing but k people."""
    classes = int(generator.choice(POOL_CLASSES))

    def regrow(joins: Joins, pools: Pools, of_pools: np.random.Generator) -> Grown:
        return grow(joins, pools, k, of_pools)

    return Round(classes, 2 * classes * k + k, regrow)


def balance_of(columns: Sequence[Column]) -> float:
    """Return how much the start prefers halves."""
    return _SET_BALANCE if any(isinstance(column, Values) for column in columns) else 0.0


def search_order(
    columns: Sequence[Column], codes: Sequence[Array], groups: Ints | None, people: Ints | None, sensitive: Ints | None
) -> Ints:
    """Order rows by all that the search sees of them, and then at random, in the same way each time.

    Rows in which it sees no difference keep their order. In the order of their values, classes lose .6 % more.
    """
    same = combined(columns, codes, groups).of_row
    order = np.lexsort([*(numbers for numbers in (people, sensitive) if numbers is not None), same])
    return order[np.random.default_rng(0).permutation(len(order))]


def combined(columns: Sequence[Column], codes: Sequence[Array], groups: Ints | None) -> Combinations:
    """Find the combinations of a table, in the order of their codes."""
    keys = np.zeros(len(codes[0]), np.int64) if groups is None else groups.copy()
    most = int(keys.max(initial=0)) + 1
    for column, of_rows in zip(columns, codes, strict=True):
        if most * column.size >= 2**62:
            keys = np.unique(keys, return_inverse=True)[1].reshape(-1)
            most = int(keys.max(initial=0)) + 1
        keys = keys * column.size + of_rows
        most *= column.size
    order = np.argsort(keys, kind="stable")
    starts = run_starts(keys[order])
    rows = run_lengths(starts, len(keys))
    of_row = np.empty(len(keys), np.int64)
    of_row[order] = np.repeat(np.arange(len(starts)), rows)
    return Combinations(of_row, order[starts], rows)


def _lent(
    same: Combinations, group_of: Ints, sizes: Ints, people: Ints | None, k: int
) -> tuple[Combinations, Ints, Bools]:
    """Let large combinations lend rows to rare ones that are too few for a class: only as many as these need.

    Takes the combinations, the group and the number of people of each; returns them with the rows that were lent as
    combinations of their own, their groups, and which ones k people share, and need no others.
    """
    shared: Bools = sizes >= k
    of_row, more = same.of_row.copy(), len(sizes)
    order = np.argsort(of_row, kind="stable")
    starts = np.append(run_starts(of_row[order]), len(of_row))
    found, short = _rare_people(same, group_of, ~shared, people, k)
    lent: list[Ints] = []
    lenders = np.flatnonzero(shared & np.isin(group_of, short))
    for lender in lenders[np.lexsort((same.rows[lenders], group_of[lenders]))].tolist():
        need = k - found[group_of[lender]]
        if need <= 0 or sizes[lender] < k + need:
            continue
        rows = order[starts[lender] : starts[lender + 1]]
        if people is not None:
            rare = people[~shared[same.of_row] & (group_of[same.of_row] == group_of[lender])]
            # at least twice as many as needed: those who have rare ones are k - need
            others = np.setdiff1d(people[rows], [*rare, NOBODY])
            rows = rows[np.isin(people[rows], others[:need])]
        rows = rows[:need] if people is None else rows
        of_row[rows] = more + len(lent)
        lent.append(rows)
        found[group_of[lender]] = k
    if not lent:
        return same, group_of, shared
    firsts = np.append(same.first_rows, [rows[0] for rows in lent])
    group_of = np.append(group_of, group_of[same.of_row[firsts[more:]]])
    for number, rows in enumerate(same.of_row[firsts[more:]].tolist()):
        firsts[rows] = np.setdiff1d(order[starts[rows] : starts[rows + 1]], lent[number])[0]
    counts = np.bincount(of_row, minlength=len(firsts))
    return Combinations(of_row, firsts, counts), group_of, np.append(shared, np.zeros(len(lent), np.bool_))


def _rare_people(same: Combinations, group_of: Ints, is_rare: Bools, people: Ints | None, k: int) -> tuple[Ints, Ints]:
    """Count the people of each group that have a rare combination; return the groups of too few for a class, too."""
    count = int(group_of.max(initial=0)) + 1
    rare_rows = is_rare[same.of_row]
    row_groups = group_of[same.of_row[rare_rows]]
    found = people_in(row_groups, None if people is None else people[rare_rows], count)
    rows = np.bincount(row_groups, minlength=count)
    return found, np.flatnonzero((rows > 0) & (found < k))


def _needed(same: Combinations, group_of: Ints, shared: Bools, people: Ints | None, k: int) -> Bools:
    """Tell which shared combinations rare ones need: where those of a group are too few for a class, its smallest."""
    needed = np.zeros(len(shared), np.bool_)
    while True:
        _, short = _rare_people(same, group_of, ~shared | needed, people, k)
        candidates = np.flatnonzero(shared & ~needed & np.isin(group_of, short))
        if not len(candidates):
            return needed
        by_size = candidates[np.lexsort((same.rows[candidates], group_of[candidates]))]
        needed[by_size[run_starts(group_of[by_size])]] = True


def _started(
    columns: Sequence[Column],
    codes: Sequence[Array],
    groups: Ints | None,
    people: Ints | None,
    same: Combinations,
    is_rare: Array,
    rare: Ints,
    k: int,
) -> Ints:
    """Return the classes in which rare rows start: by combinations, unless people have several rows."""
    rules = Rules(k, None, balance_of(columns))
    rows = rare if people is not None else same.first_rows[is_rare]
    weights = np.ones(len(rows), np.int64) if people is not None else same.rows[is_rare]
    table = Table(columns, [of_rows[rows] for of_rows in codes], weights, None if people is None else people[rows])
    own = np.zeros(len(rows), np.int64)
    if groups is not None:
        own = np.unique(groups[rows], return_inverse=True)[1].reshape(-1)
    found = start_classes(table, own, rules)
    if people is not None:
        return found
    place = np.cumsum(is_rare) - 1
    of_rows: Ints = found[place[same.of_row[rare]]]
    return of_rows


def _helpers(same: Combinations, shared: Array, people: Ints | None, k: int) -> Ints:
    """Return the rows of shared combinations that may leave: k people stay, and the first k of the others may go."""
    rows = np.flatnonzero(shared[same.of_row])
    order = rows[np.argsort(same.of_row[rows], kind="stable")]
    of_row = same.of_row[order]
    stays = np.ones(len(order), np.bool_)
    if people is not None:
        # only the first row of a person counts, and rows of nobody stay where they are
        own = people[order]
        by_person = np.lexsort((np.arange(len(order)), own, of_row))
        is_first = np.zeros(len(order), np.bool_)
        pairs = np.stack([of_row[by_person], own[by_person]], axis=1)
        is_first[by_person[run_starts(pairs)]] = True
        stays = is_first & (own != NOBODY)
    starts = run_starts(of_row)
    lengths = run_lengths(starts, len(order))
    is_anchor = stays & (_counted(stays, starts, lengths) <= k)
    movable = ~is_anchor if people is None else ~is_anchor & (people[order] != NOBODY)
    helpers: Ints = order[movable & (_counted(movable, starts, lengths) <= k)]
    return helpers


def _counted(flags: Array, starts: Ints, lengths: Ints) -> Ints:
    """Count the flags of each run up to each place."""
    counts = np.cumsum(flags)
    return np.asarray(counts - np.repeat(counts[starts] - flags[starts], lengths), np.int64)

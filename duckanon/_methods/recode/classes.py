"""Classes of at least k people that lose little, and that keep a rule of their sensitive values.

Of a combination of codes that k people share, k rows stay as a class that loses nothing; only rare rows are searched.
These are cut in two from the top, as Mondrian does (LeFevre, 2006), and improved by rounds that rebuild neighbouring
classes (`rounds`), which take most of the time and save a fifth of the loss on Adult. Where sensitive values must be
diverse, every cut and every rebuilt class keeps that. Where they must be close to the whole table, few cuts would keep
it, so rows are dealt to classes value by value, and two classes exchange rows of the same value. In the end all classes
are counted again. Searching rows in the order of their values, instead of a random one, loses .6 % more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Floats, Ints, find_run_starts, measure_runs, sort_distinct
from duckanon._core.common.diversity import DiversityRule
from duckanon._core.common.people import NOBODY, count_people
from duckanon._core.common.row_keys import group_keys, order_keys, pack_columns, rank_keys
from duckanon._methods.recode.column_losses import CodedColumn, CodedRows, SetColumn, compute_losses
from duckanon._methods.recode.cuts import CutRules, CutTable, HistogramTest
from duckanon._methods.recode.growth import GrownClasses, Guide, Pools, exchange_rows, grow
from duckanon._methods.recode.joins import Joins
from duckanon._methods.recode.rounds import ClassSearch, Round, start_classes

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
    group: Ints  # the group of each


def find_classes(rows: CodedRows, k: int, rounds: int) -> Ints:
    """Return the class of each row: classes of at least k people that lose little. Each group has at least k people.

    Of every combination that k people share, k rows of different people stay together as a class of their own. Up to k
    more are helpers, which may join rarer neighbours; all others stay.
    """
    typed = zip(rows.columns, rows.codes, strict=True)
    rows = rows._replace(codes=[codes.astype(np.int16 if column.size < 2**15 else np.int32) for column, codes in typed])
    people = rows.person_of_row
    same = find_combinations(rows)
    same, is_shared = _lend_rows(same, people, k)
    is_shared &= ~_find_partners(same, is_shared, people, k)
    homes = int(is_shared.sum())
    home = np.where(is_shared, np.cumsum(is_shared) - 1, -1)
    classes: Ints = home[same.of_row]
    rare = np.flatnonzero(classes < 0)
    if len(rare):
        classes[rare] = homes + _start_rare_rows(rows, same, ~is_shared, rare, k)
    active = np.concatenate([rare, _find_helpers(same, is_shared, people, k)])
    active = active[np.lexsort((active, classes[active]))]  # rows that are looked up together are near each other

    def make_round(generator: np.random.Generator, _: int) -> Round:
        count = int(generator.choice(POOL_CLASSES))
        return Round(count, 2 * count * k + k, lambda joins, pools, of_pools: grow(joins, pools, k, of_pools))

    if rounds and len(rare):
        search = ClassSearch(rows.take(active), home[same.of_row[active]], classes[active], homes, k)
        search.improve(rounds if len(active) <= _MANY_ROWS else -(-rounds // 5), make_round)
        classes[active] = search.classes
    progress.advance(1.0)
    return classes


def _make_rules(columns: Sequence[CodedColumn], k: int, holds: HistogramTest | None = None) -> CutRules:
    """Return the rules of the start; columns of sets prefer halves."""
    return CutRules(k, holds, _SET_BALANCE if any(isinstance(column, SetColumn) for column in columns) else 0.0)


def order_rows(rows: CodedRows) -> Ints:
    """Order rows by all that the search sees of them, and then at random, in the same way each time.

    Rows in which it sees no difference keep their order.
    """
    keys = [numbers for numbers in (rows.person_of_row, rows.sensitive) if numbers is not None]
    order = np.lexsort([*keys, find_combinations(rows).of_row])
    return order[np.random.default_rng(0).permutation(len(order))]


def find_combinations(rows: CodedRows) -> Combinations:
    """Find the combinations of a table, in the order of their codes."""
    group_of_row, sizes = rows.groups, [column.size for column in rows.columns]
    keys, _ = pack_columns(zip(rows.codes, sizes, strict=True), len(group_of_row), group_of_row)
    same = group_keys(keys)
    return Combinations(same.codes, same.firsts, same.counts, group_of_row[same.firsts])


def _lend_rows(same: Combinations, people: Ints | None, k: int) -> tuple[Combinations, Bools]:
    """Let large combinations lend rows to rare ones that are too few for a class: only as many as these need.

    Return the combinations, with the rows that were lent as combinations of their own, and which of them k people share
    and need no others.
    """
    sizes = count_people(same.of_row, people, len(same.rows))
    is_shared: Bools = sizes >= k
    of_row, first_new, group = same.of_row.copy(), len(sizes), same.group
    order = np.argsort(of_row, kind="stable")
    starts = np.append(find_run_starts(of_row[order]), len(of_row))
    rare_people, short_groups = _count_rare_people(same, ~is_shared, people, k)
    loans: list[Ints] = []
    lenders = np.flatnonzero(is_shared & np.isin(group, short_groups))
    for lender in lenders[np.lexsort((same.rows[lenders], group[lenders]))].tolist():
        need = k - rare_people[group[lender]]
        if need <= 0 or sizes[lender] < k + need:
            continue
        rows = order[starts[lender] : starts[lender + 1]]
        if people is None:
            rows = rows[:need]
        else:
            # at least twice as many as needed: those who have rare ones are k - need
            rare = people[~is_shared[same.of_row] & (group[same.of_row] == group[lender])]
            rows = rows[np.isin(people[rows], np.setdiff1d(people[rows], [*rare, NOBODY])[:need])]
        of_row[rows] = first_new + len(loans)
        loans.append(rows)
        rare_people[group[lender]] = k
    if not loans:
        return same, is_shared
    firsts = np.append(same.first_rows, [rows[0] for rows in loans])
    lender_of_loan = same.of_row[firsts[first_new:]]
    for lender, loan in zip(lender_of_loan.tolist(), loans, strict=True):
        firsts[lender] = np.setdiff1d(order[starts[lender] : starts[lender + 1]], loan)[0]
    counts = np.bincount(of_row, minlength=len(firsts))
    same = Combinations(of_row, firsts, counts, np.append(group, group[lender_of_loan]))
    return same, np.append(is_shared, np.zeros(len(loans), np.bool_))


def _count_rare_people(same: Combinations, is_rare: Bools, people: Ints | None, k: int) -> tuple[Ints, Ints]:
    """Count the people of each group that have a rare combination; return the groups of too few for a class, too."""
    count = int(same.group.max(initial=0)) + 1
    is_rare_row = is_rare[same.of_row]
    groups = same.group[same.of_row[is_rare_row]]
    rare_people = count_people(groups, None if people is None else people[is_rare_row], count)
    return rare_people, np.flatnonzero((np.bincount(groups, minlength=count) > 0) & (rare_people < k))


def _find_partners(same: Combinations, is_shared: Bools, people: Ints | None, k: int) -> Bools:
    """Tell which shared combinations rare ones need: where those of a group are too few for a class, its smallest."""
    is_partner = np.zeros(len(is_shared), np.bool_)
    while True:
        _, short_groups = _count_rare_people(same, ~is_shared | is_partner, people, k)
        candidates = np.flatnonzero(is_shared & ~is_partner & np.isin(same.group, short_groups))
        if not len(candidates):
            return is_partner
        by_size = candidates[np.lexsort((same.rows[candidates], same.group[candidates]))]
        is_partner[by_size[find_run_starts(same.group[by_size])]] = True


def _start_rare_rows(rows: CodedRows, same: Combinations, is_rare: Bools, rare: Ints, k: int) -> Ints:
    """Return the classes in which rare rows start: by combinations, unless people have several rows."""
    has_people = rows.person_of_row is not None
    rows = rows.take(rare if has_people else same.first_rows[is_rare])
    weights = np.ones(len(rare), np.int64) if has_people else same.rows[is_rare]
    table = CutTable(rows.columns, rows.codes, weights, rows.person_of_row)
    classes = start_classes(table, rank_keys(rows.groups), _make_rules(rows.columns, k))
    return classes if has_people else classes[(np.cumsum(is_rare) - 1)[same.of_row[rare]]]


def _find_helpers(same: Combinations, is_shared: Bools, people: Ints | None, k: int) -> Ints:
    """Return the rows of shared combinations that may leave: k people stay, and the first k of the others may go."""
    rows = np.flatnonzero(is_shared[same.of_row])
    order = rows[np.argsort(same.of_row[rows], kind="stable")]
    of_row = same.of_row[order]
    is_somebody = stays = np.ones(len(order), np.bool_)
    if people is not None:
        # only the first row of a person counts, and rows of nobody stay where they are
        persons = people[order]
        by_person = np.lexsort((np.arange(len(order)), persons, of_row))
        is_first = np.zeros(len(order), np.bool_)
        is_first[by_person[find_run_starts(np.stack([of_row[by_person], persons[by_person]], axis=1))]] = True
        is_somebody = persons != NOBODY
        stays = is_first & is_somebody
    starts = find_run_starts(of_row)
    lengths = measure_runs(starts, len(order))

    def is_among_first(flags: Bools) -> Bools:
        """Tell which rows are among the first k of their combination that have the flag."""
        counts = np.cumsum(flags)
        return np.asarray(flags & (counts - np.repeat(counts[starts] - flags[starts], lengths) <= k))

    helpers: Ints = order[is_among_first(~is_among_first(stays) & is_somebody)]
    return helpers


class Diversity(NamedTuple):
    """Conditions on a sensitive column."""

    values: Ints  # the sensitive value of each row, from 0; in their order where they have one
    shares: Floats  # the share of each value in the whole table
    rule: DiversityRule  # how diverse classes are, and how far their shares may be from those in the table

    @property
    def size(self) -> int:
        """The number of values."""
        return len(self.shares)

    def of_rows(self, rows: Bools, people: Ints | None) -> Diversity:
        """Return the conditions for some of the rows, and the shares that values have among them."""
        selection = self._replace(values=self.values[rows])
        counts = selection.count_histograms(np.zeros(len(selection.values), np.int64), people, 1)[0]
        return selection._replace(shares=counts / max(int(counts.sum()), 1))

    def holds(self, histograms: Ints) -> Bools:
        """Tell which classes are diverse and close enough; one row of counts a class, an empty one is not."""
        is_enough: Bools = histograms.sum(axis=1) > 0
        if self.rule.l > 1:
            is_enough &= self.rule.judge_histograms(histograms)
        if self.rule.t is not None:
            is_enough &= self.rule.are_close(self.rule.distances(histograms, self.shares))
        return is_enough

    def count_histograms(self, classes: Ints, people: Ints | None, count: int) -> Ints:
        """Count in each class the rows that have each value, or the different people, as ``anon.l_diversity`` does."""
        keys = classes * self.size + self.values
        if people is not None:
            is_somebody = people != NOBODY
            persons = int(people.max(initial=0)) + 1
            keys = sort_distinct(keys[is_somebody] * persons + people[is_somebody]) // persons
        return np.bincount(keys, minlength=count * self.size).reshape(count, self.size)


def find_failures(classes: Ints, people: Ints | None, k: int, diversity: Diversity | None) -> Bools:
    """Tell which classes have too few people, or sensitive values that break a condition; empty classes do not fail."""
    count = int(classes.max()) + 1
    is_enough = count_people(classes, people, count) >= k
    if diversity is not None:
        is_enough &= diversity.holds(diversity.count_histograms(classes, people, count))
    return ~is_enough & (np.bincount(classes, minlength=count) > 0)


def select_rows(
    rows: int,
    groups: Ints | None,
    people: Ints | None,
    k: int,
    diversity: Diversity | None,
    max_suppressed_fraction: float,
) -> Bools:
    """Tell which rows are in groups that can be classes; refuse to suppress more of the others than may be."""
    group_of_row = np.zeros(rows, np.int64) if groups is None else groups
    is_kept = np.ones(rows, np.bool_)
    while is_kept.any():
        kept_people = None if people is None else people[is_kept]
        # what is suppressed changes the shares that t compares with
        kept_diversity = None if diversity is None else diversity.of_rows(is_kept, kept_people)
        remains = is_kept.copy()
        kept_groups = group_of_row[is_kept]
        remains[is_kept] = ~find_failures(kept_groups, kept_people, k, kept_diversity)[kept_groups]
        if remains.sum() == is_kept.sum():
            break
        is_kept = remains
    lost = rows - int(is_kept.sum())
    if groups is None and lost:
        raise ValueError("l must be such that all rows together are diverse enough; they are not, so no class can be.")
    if lost > max_suppressed_fraction * rows + 1e-6 or lost == rows:
        raise ValueError(
            f"{lost} of {rows} rows are in groups of by that cannot be classes, of fewer than {k} people or with too "
            "few sensitive values; name fewer columns in by, or allow a larger max_suppressed_fraction."
        )
    return is_kept


def verify_classes(
    classes: Ints, groups: Ints | None, people: Ints | None, k: int, diversity: Diversity | None
) -> None:
    """Count what is promised on the rows that are released."""
    if find_failures(classes, people, k, None).any():
        raise AssertionError(f"a class has fewer than {k} people.")
    if find_failures(classes, people, 0, diversity).any():
        raise AssertionError("a class is not diverse enough, or too far from the table.")
    if groups is not None:
        order, ordered = order_keys(classes)
        starts = find_run_starts(ordered)
        if (np.minimum.reduceat(groups[order], starts) != np.maximum.reduceat(groups[order], starts)).any():
            raise AssertionError("a class has rows of two groups.")


_CLOSER = (0.25, 0.5, 0.75)
"""Distances of the parts within which rows are dealt from the table, as shares of t."""

_LARGER = 3
"""Where l is nearly k, classes of up to so many people more are tried."""


def find_diverse_classes(rows: CodedRows, k: int, rounds: int, diversity: Diversity) -> Ints:
    """Return the class of each row: classes of diverse sensitive values that lose little.

    Every group keeps the rule.
    """
    groups, people = rows.groups, rows.person_of_row
    # values that no row has, as where the rows that had them are suppressed, would be shares of nobody
    occurs, values = np.unique(diversity.values, return_inverse=True)
    diversity = diversity._replace(values=values.reshape(-1), shares=diversity.shares[occurs])
    rows = rows._replace(sensitive=diversity.values)
    table = CutTable(rows.columns, rows.codes, np.ones(len(groups), np.int64), people, diversity.values)
    if diversity.rule.t is None:
        classes, size = start_classes(table, groups, _make_rules(rows.columns, k, diversity.holds)), k
    else:
        classes, size = _start_close_classes(table, groups, k, diversity)
    search = ClassSearch(rows, np.full(len(groups), -1), classes, 0, k)

    def make_round(generator: np.random.Generator, number: int) -> Round:
        if diversity.rule.t is not None and number % 2:
            return _make_exchange_round(k, size, people is not None)
        return _make_growth_round(generator, size, diversity)

    search.improve(rounds, make_round)
    progress.advance(1.0)
    return _repair_classes(rows, search.classes, k, diversity)


def _make_growth_round(generator: np.random.Generator, size: int, diversity: Diversity) -> Round:
    """Make a round in which classes are built anew; pools are given up where a class breaks the rule."""
    count = int(generator.choice(POOL_CLASSES))
    larger = size + (int(generator.integers(_LARGER)) if diversity.rule.l >= size - 1 else 0)
    guide = Guide(min(int(diversity.rule.l), larger), diversity.shares, diversity.rule.t)

    def regrow(joins: Joins, pools: Pools, of_pools: np.random.Generator) -> GrownClasses:
        grown = grow(joins, pools, larger, of_pools, guide)
        assert pools.sensitive is not None
        width = int(grown.labels.max(initial=0)) + 1
        is_inside = grown.labels >= 0
        pool = np.broadcast_to(np.arange(is_inside.shape[1]), is_inside.shape)
        keys = (pool[is_inside] * width + grown.labels[is_inside]) * diversity.size + pools.sensitive[is_inside]
        histograms = np.bincount(keys, minlength=is_inside.shape[1] * width * diversity.size)
        histograms = histograms.reshape(-1, diversity.size)
        fails = (histograms.sum(axis=1) > 0) & ~diversity.holds(histograms)
        return grown._replace(losses=np.where(fails.reshape(-1, width).any(axis=1), np.inf, grown.losses))

    return Round(count, 2 * count * larger + larger, regrow)


def _make_exchange_round(k: int, size: int, counts_people: bool) -> Round:
    """Make a round in which two classes exchange rows, such that neither's sensitive values change.

    Pools are given up where a class has too few people after that.
    """

    def regrow(joins: Joins, pools: Pools, of_pools: np.random.Generator) -> GrownClasses:
        grown = exchange_rows(joins, pools, of_pools)
        if not counts_people:
            return grown
        assert pools.people is not None
        is_inside = grown.labels >= 0
        keys = (2 * np.arange(is_inside.shape[1]) + grown.labels)[is_inside]
        people = count_people(keys, pools.people[is_inside], 2 * is_inside.shape[1]).reshape(-1, 2)
        return grown._replace(losses=np.where((people < k).any(axis=1), np.inf, grown.losses))

    return Round(2, 6 * size, regrow, only_whole=True)


def _start_close_classes(table: CutTable, groups: Ints, k: int, diversity: Diversity) -> tuple[Ints, int]:
    """Return the best of several starts whose classes are close to the table, and how many rows its classes have.

    Cutting alone leaves classes large, since few cuts keep both sides close. So the table is cut into parts that are
    closer than they must be, and the rows of each part are dealt to its classes value by value (`_deal_rows`).
    """
    assert diversity.rule.t is not None
    order = start_classes(table._replace(people=None), groups, _make_rules(table.columns, k))
    whole = diversity.count_histograms(groups, None, int(groups.max()) + 1)
    best, least = groups, np.inf
    for share in _CLOSER:
        holds = diversity._replace(rule=replace(diversity.rule, t=share * diversity.rule.t)).holds
        parts = groups
        if holds(whole).all():
            parts = start_classes(table, groups, _make_rules(table.columns, k, holds))
        classes = _deal_rows(order, parts, table.people, k, diversity)
        by_class, ordered = order_keys(classes)
        starts = find_run_starts(ordered)
        losses = compute_losses(table.columns, [codes[by_class] for codes in table.codes], starts)
        loss = float((losses * measure_runs(starts, len(by_class))).sum())
        if loss < least:
            best, least = classes, loss
    return best, max(k, int(np.median(np.bincount(best))))


def _deal_rows(order: Ints, parts: Ints, people: Ints | None, k: int, diversity: Diversity) -> Ints:
    """Deal the rows of each sensitive value evenly to the classes of their part, near ones, by `order`, to the same.

    Each part keeps the rule. Its classes are the smallest, of k, about 1.2 k, ... rows, that all keep it too, or
    the part is one.
    """
    part_rows = np.bincount(parts)
    cells = parts * diversity.size + diversity.values
    cell_rows = np.bincount(cells)
    by_cell = np.lexsort((order, cells))
    rank = np.empty(len(parts), np.int64)  # of each row among those of its part and value
    rank[by_cell] = np.arange(len(parts)) - (np.cumsum(cell_rows) - cell_rows)[cells[by_cell]]
    classes, is_open, size = parts * len(parts), np.ones(len(part_rows), np.bool_), k
    while size <= part_rows[is_open].max(initial=0) // 2:
        progress.check()
        counts = np.maximum(part_rows // size, 1)
        class_in_part = ((rank + 0.5) * counts[parts] / cell_rows[cells]).astype(np.int64)
        trial = (np.cumsum(counts) - counts)[parts] + class_in_part
        fails = np.zeros(len(part_rows), np.bool_)
        fails[parts[find_failures(trial, people, k, diversity)[trial]]] = True
        chosen = (is_open & ~fails)[parts]
        classes[chosen] += class_in_part[chosen]
        is_open &= fails
        size = max(size + 1, int(size * 1.2))
    return rank_keys(classes)


def _repair_classes(rows: CodedRows, classes: Ints, k: int, diversity: Diversity) -> Ints:
    """Merge classes that fail with a neighbour: the search counts rows, the promise people, who may have several."""
    while True:
        classes = rank_keys(classes)
        failing = find_failures(classes, rows.person_of_row, k, diversity)
        if not failing.any():
            return classes
        firsts = rows.take(np.unique(classes, return_index=True)[1])
        order = np.lexsort([*firsts.codes, firsts.groups])
        # each that fails joins the one before it in its group, or the one after it
        fails = failing[order]
        is_first = np.zeros(len(order), np.bool_)
        is_first[find_run_starts(firsts.groups[order])] = True
        joins_before = fails & ~is_first
        joins_before[1:] |= fails[:-1] & is_first[:-1] & ~is_first[1:]
        if not joins_before.any():
            return classes
        number = np.empty(len(order), np.int64)
        number[order] = np.cumsum(~joins_before) - 1
        classes = number[classes]

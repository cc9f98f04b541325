"""Plans: how every column of a table is generalized, bucket by bucket.

The search (`recoding.search`) looks for the groups that lose least while every class, but for a few suppressed rows, is
large enough: k people of the table; so many that fewer than k in the population are improbable, where the table is a
sample of one, which starts it from a budget of distinct values (Probabilistic Anonymity, Section 3); or k people of a
population that is at hand as a table. The search sees all rows, but suppressed ones must not show in the labels of the
others: `>=30` instead of 30 would tell that somebody is older. So the groups get their labels as if the released rows
were the whole table, and all rows are labelled and counted again.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from duckanon._core.common import parameters
from duckanon._core.common.arrays import Bools, Ints, is_number, is_time, sql_type
from duckanon._core.common.declare import report_columns
from duckanon._core.common.diversity import DiversityRule
from duckanon._core.common.imports import import_function
from duckanon._core.common.labels import MICROSECONDS_PER_DAY
from duckanon._core.common.parameters import read_by_column, read_weights, refuse_other_columns
from duckanon._core.common.people import NOBODY
from duckanon._core.common.row_keys import pack_columns
from duckanon._methods.generalize.declared import PLAN_ROWS
from duckanon._methods.generalize.hierarchies import HierarchyRow, HierarchyTable, read_hierarchies
from duckanon._methods.generalize.leaves import (
    DayLeaves,
    Holders,
    Leaves,
    NumberLeaves,
    TextLeaves,
    make_null_leaves,
    read_day_leaves,
    read_number_leaves,
    read_text_leaves,
)
from duckanon._methods.generalize.methods import (
    Bucket,
    Calendar,
    Coarsening,
    Hierarchy,
    Intervals,
    Prefixes,
    Steps,
    Top,
    are_codes,
)
from duckanon._methods.generalize.partition.fit import cut_quantiles
from duckanon._methods.generalize.recoding.axes import (
    ColumnRecoding,
    ColumnState,
    FlatStructure,
    LevelStructure,
    OrderedStructure,
    PlanColumn,
    TreeStructure,
)
from duckanon._methods.generalize.recoding.classes import Groups, SensitiveEntries
from duckanon._methods.generalize.recoding.search import recode


def compute_budget(population: float, k: int, beta: float) -> float:
    """Return how many classes a (1-beta, k)-anonymous table may have by the bound of ``anon.distinct_budget``.

    It is the largest product of the columns' numbers of values (Probabilistic Anonymity, Section 3). ``beta`` is the
    probability, above 0 and below 1, with which a class may have fewer than k people.

    Examples:
        >>> round(compute_budget(3e8, 100, 0.1))
        2443425
    """
    x = -math.log(beta) / (k - 1)
    return population / (k - 1) * (1 + x - math.sqrt(x * x + 2 * x))


def allocate(budget: float, distinct_counts: Sequence[int], weights: Sequence[float]) -> list[int]:
    """Share a budget out among columns, as ``anon.allocate`` does (which is for those who have no Python).

    The budget is the largest product of the numbers of values that the columns keep, at least 1. Each column keeps
    values in proportion to its weight, but at least 1 and at most all; weights are at least 0, not all of them 0.

    Examples:
        >>> allocate(100, [2, 1000, 1000], [1.0, 1.0, 1.0])
        [2, 7, 7]
    """
    counts = np.asarray(distinct_counts, dtype=np.float64)
    weight = np.asarray(weights, dtype=np.float64)
    # The logarithm of what a column keeps grows with a level that all share, from 0 at `low` to its maximum at `high`.
    # The logarithm of the product is linear between these corners, so the level that uses up the budget is read off.
    matters = weight > 0
    low, high = -np.log(weight[matters]), np.log(counts[matters]) - np.log(weight[matters])
    corners = np.unique(np.concatenate([low, high]))
    reached = (np.clip(corners[:, None], low, high) - low).sum(axis=1)
    corner = int(np.flatnonzero(reached <= math.log(budget))[-1])
    slope = int(((low <= corners[corner]) & (corners[corner] < high)).sum())
    level = corners[corner] + ((math.log(budget) - reached[corner]) / slope if slope else 0.0)
    # exp and log may leave a whole number a few bits short: 1e-12 is far more than that, and far less than a value.
    shares = np.clip(weight * np.exp(level), 1, counts)
    kept = np.floor(shares * (1 + 1e-12))
    if kept.prod() > budget:
        kept = np.maximum(np.floor(shares * (1 - 1e-12)), 1)
    # What rounding down left over goes to the columns that gain most by one more value, then to any that can use more.
    turns = np.lexsort((np.arange(len(kept)), -weight / (kept * (kept + 1))))
    for most in (1.0, np.inf):
        for turn in turns:
            rest = kept.prod() / kept[turn]
            fits = math.floor(budget / rest * (1 + 1e-15))
            fits -= fits * rest > budget
            kept[turn] = min(counts[turn], kept[turn] + most, max(kept[turn], fits))
    return [int(count) for count in kept]


def find_states(
    coarsenings: Sequence[Coarsening], budget: float, weights: Sequence[float]
) -> tuple[list[ColumnState], list[int]]:
    """Find the finest recoding of every column so that the product of their numbers of groups keeps to a budget.

    A column whose levels leave no choice near its share, such as a calendar, takes less than it may. What it leaves is
    given to the others: it is set to what it takes, and the rest is solved again, as where a column has too few values.
    Return the recodings, as `recode` takes them to start from, and how many groups each column was allowed.
    """
    counts = [len(coarsening.column.rows) for coarsening in coarsenings]
    while True:
        allowed = allocate(budget, counts, weights)
        states, sizes = zip(*map(find_finest, coarsenings, allowed), strict=True)
        leaving = [column for column, size in enumerate(sizes) if size < min(allowed[column], counts[column])]
        if not leaving:
            return list(states), allowed
        # the column that leaves most is fixed first: the others may then reach a level that they had just missed
        worst = max(leaving, key=lambda column: allowed[column] / sizes[column])
        counts[worst] = sizes[worst]


def find_finest(coarsening: Coarsening, most: int) -> tuple[ColumnState, int]:
    """Return the finest recoding of a column with at most ``most`` groups, NULL's counted, and how many it has."""
    column = coarsening.column
    if not column.size:
        return (), 1
    most -= column.has_null
    if most < 1:  # NULL is one with all other values: nothing is said about any of them
        return None, 1
    structure = coarsening.structure
    if isinstance(structure, OrderedStructure):
        state = cut_quantiles(column.value_rows, most).starts
        groups = len(state)
    elif isinstance(structure, LevelStructure):
        level = next(level for level, groups in enumerate(structure.maps) if int(groups.max()) < most)
        state, groups = np.array([level]), int(structure.maps[level].max()) + 1
    elif isinstance(structure, FlatStructure):
        groups = min(most, column.size)
        is_rest = np.argsort(-column.value_rows, kind="stable")[most - 1 :]
        state = np.sort(is_rest) if most < column.size else is_rest[:0]
    else:
        state = _climb(structure, column.size, most)
        groups = len(state)
    return tuple(state.tolist()), groups + column.has_null


def _climb(tree: TreeStructure, size: int, most: int) -> Ints:
    """Climb from the leaves, all of them a level at a time, until few enough nodes are left."""
    node_of_leaf = np.arange(size)
    levels = iter([] if tree.levels is None else np.unique(tree.levels[size:]).tolist())
    while len(nodes := np.unique(node_of_leaf)) > most:
        above = tree.parents[node_of_leaf]
        can_climb = above >= 0
        if tree.levels is not None:
            can_climb &= tree.levels[above] <= next(levels)
        node_of_leaf = np.where(can_climb, above, node_of_leaf)
    return nodes


@dataclass(frozen=True)
class ClassPromise:
    """Conditions on every released class of a table."""

    holders: Holders  # the people of the combinations of the table
    k: int  # how many people make a value one that may be named
    least: int  # how many people a class has
    limit: int  # how many rows may be suppressed
    sensitive: SensitiveEntries | None  # its sensitive values and their rule; None: no rule

    def is_kept(self, parts: Sequence[Ints], sizes: Sequence[int]) -> Bools:
        """Tell which combinations are in classes that keep the promise, given the label of each in every column."""
        classes = Groups(*pack_columns(zip(parts, sizes, strict=True), len(parts[0])))
        is_kept = self.holders.people(classes.of_entry, len(classes.keys)) >= self.least
        if self.sensitive is not None:
            is_kept = self.sensitive.is_kept(classes.of_entry, is_kept)
        return np.asarray(is_kept[classes.of_entry])


@dataclass(frozen=True)
class PlanLabels:
    """The labels of a table's columns."""

    # coarsenings, groups: how the columns are generalized, and the groups of their leaves
    coarsenings: Sequence[Coarsening]
    groups: Sequence[ColumnRecoding]
    is_released: Bools  # which combinations of the table are released

    @cached_property
    def buckets(self) -> list[list[Bucket]]:
        """The rows of the plan, of each column."""
        return [column.buckets(groups) for column, groups in zip(self.coarsenings, self.groups, strict=True)]


def relabel_release(labels: PlanLabels, promise: ClassPromise) -> PlanLabels:
    """Label the groups of a search as the rows that it releases decide.

    Fewer than k people beyond a value that others could be called by are suppressed too, where so many may be. Others
    that are suppressed may fall into a released class by their new labels. Where that class would then break the rule
    of its sensitive values, labels are those that all rows decide.
    """
    is_extreme = np.zeros(len(labels.is_released), bool)
    for coarsening, groups in zip(labels.coarsenings, labels.groups, strict=True):
        is_extreme |= coarsening.find_extremes(groups)[coarsening.column.codes]
    selections = [labels.is_released & ~is_extreme] if (labels.is_released & is_extreme).any() else []
    if not labels.is_released.all():
        selections.append(labels.is_released)
    trials = (_label_groups(labels, is_selected, promise) for is_selected in selections if is_selected.any())
    return next((trial for trial in trials if trial is not None), labels)


def _label_groups(labels: PlanLabels, is_selected: Bools, promise: ClassPromise) -> PlanLabels | None:
    """Label groups as some combinations decide; None where these, or enough of all, would not be released then."""
    holders = promise.holders.select(is_selected)
    columns = zip(labels.coarsenings, labels.groups, strict=True)
    pairs = [_fit_column(*column, is_selected, holders, promise.k) for column in columns]
    trial = PlanLabels([coarsening for coarsening, _ in pairs], [groups for _, groups in pairs], is_selected)
    # A class of a sample may have fewer than k people. If some of those at an end are suppressed, the end, which k
    # people share, would lie beyond the bucket that follows.
    for buckets in trial.buckets:
        starts = [_read_bound(bucket) for bucket in buckets if bucket.covers in ("number", "time")]
        if any(low >= high for low, high in itertools.pairwise(starts)):
            return None
    codes = [_number_labels(buckets) for buckets in trial.buckets]
    parts = [
        code[find_buckets(buckets, coarsening.column)][coarsening.column.codes]
        for buckets, code, coarsening in zip(trial.buckets, codes, labels.coarsenings, strict=True)
    ]
    is_kept = promise.is_kept(parts, [int(code.max()) + 1 for code in codes])
    is_promised = is_kept[is_selected].all() and promise.holders.rows[~is_kept].sum() <= promise.limit
    return replace(trial, is_released=is_kept) if is_promised else None


def _fit_column(
    coarsening: Coarsening, groups: ColumnRecoding, is_released: Bools, holders: Holders, k: int
) -> tuple[Coarsening, ColumnRecoding]:
    """Return a column and its groups as if only some combinations of the table were there."""
    column = coarsening.column
    left = column.list_leaves(is_released)
    groups = replace(groups, group_of_leaf=groups.group_of_leaf[left])
    if left[0] >= column.size:  # only NULL
        return Top(make_null_leaves(holders), k), groups
    return replace(coarsening, column=column.select(is_released, holders, k)), groups


def count_label_rows(buckets: Sequence[Bucket], column: Leaves, rows: Ints, is_released: Bools) -> list[Bucket]:
    """Write the released rows of each label of a column into the first of its buckets."""
    codes = _number_labels(buckets)
    label = codes[find_buckets(buckets, column)][column.codes[is_released]]
    sizes = np.bincount(label, rows[is_released], int(codes.max()) + 1).astype(np.int64)
    first = np.unique(codes, return_index=True)[1].tolist()
    result = list(buckets)
    for index, size in zip(first, sizes.tolist(), strict=True):
        result[index] = result[index]._replace(rows=size)
    return result


def _number_labels(buckets: Sequence[Bucket]) -> Ints:
    """Return a number for the label of each bucket."""
    numbers: dict[str | None, int] = {}
    return np.array([numbers.setdefault(bucket.label, len(numbers)) for bucket in buckets], np.int64)


def find_buckets(buckets: Sequence[Bucket], column: Leaves) -> Ints:
    """Return the index of the bucket that each leaf of a column falls into, NULL's last: as anon.apply_plan does."""
    rest = next(index for index, bucket in enumerate(buckets) if bucket.covers == "rest")
    bucket_of_leaf = np.full(len(column.rows), rest, np.int64)
    if isinstance(column, TextLeaves):
        by_text = {bucket.lower: index for index, bucket in enumerate(buckets) if bucket.covers in ("value", "prefix")}
        is_prefix = any(bucket.covers == "prefix" for bucket in buckets)
        lengths = sorted({len(text or "") for text in by_text}) if is_prefix else [None]
        for leaf, text in enumerate(column.texts):
            bucket_of_leaf[leaf] = next((by_text[text[:end]] for end in lengths if text[:end] in by_text), rest)
    elif runs := [index for index, bucket in enumerate(buckets) if bucket.covers in ("number", "time")]:
        starts = np.array([_read_bound(buckets[index]) for index in runs])
        assert isinstance(column, NumberLeaves)
        positions = column.positions * (float(MICROSECONDS_PER_DAY) if isinstance(column, DayLeaves) else 1.0)
        bucket_of_leaf[: column.size] = np.array(runs)[np.searchsorted(starts, positions, side="right") - 1]
    if column.has_null:
        bucket_of_leaf[-1] = len(buckets) - 1
    return bucket_of_leaf


def _read_bound(bucket: Bucket) -> float:
    """Return where a bucket of numbers or moments begins: these in microseconds since 1970."""
    if bucket.lower is None:
        return -np.inf
    if bucket.covers == "number":
        return float(bucket.lower)
    return float(np.datetime64(bucket.lower.removesuffix("+00"), "us").astype(np.int64))


# The people of a population: the leaf that each combination has in each column, and how many have it.
_Population: TypeAlias = tuple[list[Ints], Ints]


def plan(
    tables: list[pa.Table | None],
    *,
    cols: Sequence[str],
    k: int,
    beta: float,
    population: Any,
    weights: Any,
    hierarchies: Sequence[HierarchyRow] | None,
    methods: Any,
    max_suppressed_fraction: float,
    person: str | None,
    sensitive: parameters.Sensitive,
    is_ordered: bool | None = None,
) -> pa.Table:
    """Fit a plan to a table, and return it as `PLAN_ROWS`, one row per bucket.

    Args:
        tables: A list that is emptied, so that the memory of both can go before the search. The first is the distinct
            combinations of the columns, of a sensitive value and a person each; then that value's rank among all, the
            person and the number of rows. The second is the distinct combinations of a population, which has the same
            columns, and how many people have each.
        is_ordered: Whether neighbouring values of the sensitive column are near each other.
    """
    table, population_table = tables
    tables.clear()
    if table is None:
        raise ValueError("the table has no rows to look at.")
    names = table.column_names[:-3]
    trees = read_hierarchies(hierarchies or [])
    refuse_other_columns("hierarchies", trees, names)
    method_of_column = read_by_column("methods", methods, names)
    weight_list = read_weights(weights, names, cols)
    holders = _read_holders(table, person is not None)
    end_people = k if population_table is None else 1  # an extreme of the table may be shared in the population
    coarsenings = [
        _choose_method(name, table.column(name), holders, k, end_people, method_of_column.get(name.lower()), trees)
        for name in names
    ]
    least, start, budget = k, None, 1.0
    is_sample = population is not None and population_table is None
    if is_sample:
        sample_class_size = import_function("duckanon._methods.generalize.sample_class_sizes:sample_class_size")
        share = beta * (1 - max_suppressed_fraction)
        least = sample_class_size(k, share, float(population), _count_people(holders))
        budget = max(compute_budget(float(population), k, beta), 1)
        start, _ = find_states(coarsenings, budget, weight_list)
    people = None if population_table is None else _read_population(names, coarsenings, population_table)
    spread = None if sensitive.sensitive is None else _read_sensitive(table, holders, sensitive, bool(is_ordered))
    table = population_table = None
    # 0.29 * 100 is 28.999999999999996: a limit that rounding took just below a whole row means that row.
    limit = int(max_suppressed_fraction * int(holders.rows.sum()) + 1e-9)
    groups, is_released = _search_groups(holders, people, coarsenings, weight_list, least, limit, start, spread)
    labels = PlanLabels(coarsenings, groups, is_released)
    if people is None:
        labels = relabel_release(labels, ClassPromise(holders, k, int(least), limit, spread))
    allowed: list[int | None] = [None] * len(names)
    if is_sample:
        allowed = [*find_states(labels.coarsenings, budget, weight_list)[1]]
    return _report_plan(names, coarsenings, labels, holders, allowed)


def _read_holders(table: pa.Table, has_person: bool) -> Holders:
    rows = table.column(table.num_columns - 1).to_numpy().astype(np.int64)
    if not has_person:
        return Holders(rows)
    persons = table.column(table.num_columns - 2).combine_chunks().dictionary_encode().indices
    return Holders(rows, persons.fill_null(NOBODY).to_numpy(zero_copy_only=False).astype(np.int64))


def _read_sensitive(
    table: pa.Table, holders: Holders, options: parameters.Sensitive, is_ordered: bool
) -> SensitiveEntries:
    """Take the sensitive values of the table's entries by their ranks."""
    rule = DiversityRule(options.l, options.l_kind, options.c, options.t, is_ordered)
    ranks = table.column(table.num_columns - 3).to_numpy().astype(np.int64) - 1
    return SensitiveEntries.of_entries(rule, ranks, holders.rows, holders.persons)


def _count_people(holders: Holders) -> int:
    """Count the people of the table."""
    return int(holders.people(np.zeros(len(holders.rows), np.int64), 1)[0])


def _read_population(names: Sequence[str], coarsenings: Sequence[Coarsening], table: pa.Table) -> _Population:
    """Return the people of a population whose values will surely have the labels of values of the table."""
    codes = [part.find_codes(name, table.column(name)) for name, part in zip(names, coarsenings, strict=True)]
    is_known = np.all([column >= 0 for column in codes], axis=0)
    sizes = table.column(table.num_columns - 1).to_numpy().astype(np.int64)
    return [column[is_known] for column in codes], sizes[is_known]


def _search_groups(
    holders: Holders,
    population: _Population | None,
    coarsenings: Sequence[Coarsening],
    weights: Sequence[float],
    least: int,
    limit: int,
    start: Sequence[ColumnState] | None,
    sensitive: SensitiveEntries | None,
) -> tuple[list[ColumnRecoding], Bools]:
    """Search the groups of all columns that hold a value; return them, and which combinations are released."""
    rows = int(holders.rows.sum())
    indices = [index for index, coarsening in enumerate(coarsenings) if coarsening.column.size]
    if not indices:
        if population is None and _count_people(holders) < least:
            of_what = "rows" if holders.persons is None else "people"
            raise ValueError(f"k must be at most the number of {of_what}, {_count_people(holders)}; got {least}.")
        return [_make_null_groups(rows)] * len(coarsenings), np.ones(len(holders.rows), bool)
    counts, sizes, persons = holders.rows, None, holders.persons
    codes = [coarsening.column.codes for coarsening in coarsenings]
    if population is not None:
        people_codes, people = population
        counts = np.append(counts, np.zeros_like(people))
        sizes, persons = np.append(np.zeros_like(holders.rows), people), None
        codes = [np.append(of_table, of_people) for of_table, of_people in zip(codes, people_codes, strict=True)]
    columns = [
        PlanColumn(codes[index], coarsenings[index].structure, weights[index], coarsenings[index].column.has_null)
        for index in indices
    ]
    begin = None if start is None else [start[index] for index in indices]
    recoding = recode(
        counts, columns, int(least), limit, sizes=sizes, persons=persons, start=begin, sensitive=sensitive
    )
    groups = [_make_null_groups(rows - recoding.suppressed)] * len(coarsenings)
    for index, column_groups in zip(indices, recoding.columns, strict=True):
        groups[index] = column_groups
    return groups, recoding.is_released[: len(holders.rows)]


def _make_null_groups(rows: int) -> ColumnRecoding:
    """Return the groups of a column that is NULL in every row: one, which loses nothing."""
    return ColumnRecoding(np.zeros(1, np.int64), np.zeros(1), np.full(1, rows))


def _choose_method(
    name: str,
    column: pa.ChunkedArray,
    holders: Holders,
    k: int,
    end_people: int,
    method: str | None,
    hierarchies: Mapping[str, HierarchyTable],
) -> Coarsening:
    """Choose how a column is generalized: as the caller says, or by what it holds."""
    if column.null_count == len(column):
        return Top(make_null_leaves(holders), k)
    hierarchy = hierarchies.get(name.lower())
    if method is None:  # of other types the values decide
        of_type = "interval" if is_number(column.type) else "calendar" if is_time(column.type) else None
        method = "hierarchy" if hierarchy else of_type
    if method == "interval":
        return Intervals(read_number_leaves(name, column, holders, end_people), k)
    if method == "round":
        if not is_number(column.type):
            raise ValueError(
                f'column "{name}" must hold numbers for the method round; its type is {sql_type(column.type)}.'
            )
        return Steps.of(read_number_leaves(name, column, holders, end_people), k)
    if method == "calendar":
        if not is_time(column.type):
            raise ValueError(
                f'column "{name}" must hold dates or timestamps for the method calendar; its type is '
                f"{sql_type(column.type)}."
            )
        return Calendar(read_day_leaves(name, column, holders, end_people))
    texts = read_text_leaves(name, column, holders)
    if method == "hierarchy" and hierarchy:
        return Hierarchy(texts, hierarchy)
    if method == "prefix" or (method is None and are_codes(texts, k)):
        return Prefixes(texts, k)
    return Top(texts, k)


def _report_plan(
    names: Sequence[str],
    coarsenings: Sequence[Coarsening],
    labels: PlanLabels,
    holders: Holders,
    allowed: list[int | None],
) -> pa.Table:
    suppressed = int(holders.rows[~labels.is_released].sum())
    columns = zip(names, coarsenings, labels.coarsenings, labels.buckets, allowed, strict=True)
    rows = [
        (name, fitted.method, *bucket, most, suppressed)
        for name, column, fitted, plan_rows, most in columns
        for bucket in count_label_rows(plan_rows, column.column, holders.rows, labels.is_released)
    ]
    return report_columns(dict(zip(PLAN_ROWS.names, zip(*rows, strict=True), strict=True)), PLAN_ROWS)

"""Plans: fits how every column of a table is generalized, and writes it down bucket by bucket.

The search looks for the groups that lose least while every class, a small part of the rows apart, is large enough
(`duckanon._methods.generalize.recoding.recode`): k people of the table; so many that fewer than k in the population are
improbable, where the table is a sample of one; or k people of a population that is at hand as a table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from duckanon._core.common import parameters
from duckanon._core.common.arrays import Bools, Ints, is_number, is_time, sql_type
from duckanon._core.common.declare import report
from duckanon._core.common.diversity import DiversityRule
from duckanon._core.common.imports import imported
from duckanon._core.common.parameters import by_column, column_weights, refuse_other_columns
from duckanon._core.common.people import NOBODY
from duckanon._methods.generalize.budgets import distinct_budget, states_within
from duckanon._methods.generalize.calendar_method import Calendar
from duckanon._methods.generalize.declared import PLAN_ROWS
from duckanon._methods.generalize.hierarchies import HierarchyRow, HierarchyTable, hierarchy_tables
from duckanon._methods.generalize.leaves import Holders, day_leaves, no_leaves, number_leaves, text_leaves
from duckanon._methods.generalize.methods import Coarsening, Hierarchy, Prefixes, Top, are_codes
from duckanon._methods.generalize.number_methods import Intervals, Steps
from duckanon._methods.generalize.recoding.column_moves import Column, ColumnRecoding, State
from duckanon._methods.generalize.recoding.recode import recode
from duckanon._methods.generalize.recoding.sensitive import Sensitive
from duckanon._methods.generalize.released import Labels, Promise, counted, labels_of_released

# The people of a population: the leaf that each combination has in each column, and how many have it.
_OtherPeople: TypeAlias = tuple[list[Ints], Ints]


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
    trees = hierarchy_tables(hierarchies or [])
    refuse_other_columns("hierarchies", trees, names)
    method_of_column = by_column("methods", methods, names)
    weight_list = column_weights(weights, names, cols)
    holders = _holders(table, person is not None)
    end_people = k if population_table is None else 1  # an extreme of the table may be shared in the population
    coarsenings = [
        _coarsening(name, table.column(name), holders, k, end_people, method_of_column.get(name.lower()), trees)
        for name in names
    ]
    least, start, budget = k, None, 1.0
    is_sample = population is not None and population_table is None
    if is_sample:
        people = _people(holders)
        sample_class_size = imported("duckanon._methods.generalize.sample_class_sizes:sample_class_size")
        least = sample_class_size(k, beta * (1 - max_suppressed_fraction), float(population), people)
        budget = max(distinct_budget(float(population), k, beta), 1)
        start, _ = states_within(coarsenings, budget, weight_list)
    others = None if population_table is None else _other_people(names, coarsenings, population_table)
    spread = None if sensitive.sensitive is None else _sensitive(table, holders, sensitive, bool(is_ordered))
    table = population_table = None
    # 0.29 * 100 is 28.999999999999996: a limit that rounding took just below a whole row means that row.
    limit = int(max_suppressed_fraction * int(holders.rows.sum()) + 1e-9)
    groups, is_released = _searched(holders, others, coarsenings, weight_list, least, limit, start, spread)
    labels = Labels(coarsenings, groups, is_released)
    if others is None:
        labels = labels_of_released(labels, Promise(holders, k, int(least), limit, spread))
    allowed: list[int | None] = [None] * len(names)
    if is_sample:
        allowed = [*states_within(labels.coarsenings, budget, weight_list)[1]]
    return _report(names, coarsenings, labels, holders, allowed)


def _holders(table: pa.Table, has_person: bool) -> Holders:
    rows = table.column(table.num_columns - 1).to_numpy().astype(np.int64)
    if not has_person:
        return Holders(rows)
    persons = table.column(table.num_columns - 2).combine_chunks().dictionary_encode().indices
    return Holders(rows, persons.fill_null(NOBODY).to_numpy(zero_copy_only=False).astype(np.int64))


def _sensitive(table: pa.Table, holders: Holders, given: parameters.Sensitive, is_ordered: bool) -> Sensitive:
    """Take the sensitive values of the table's entries by their ranks."""
    rule = DiversityRule(given.l, given.l_kind, given.c, given.t, is_ordered)
    ranks = table.column(table.num_columns - 3).to_numpy().astype(np.int64) - 1
    return Sensitive.of_entries(rule, ranks, holders.rows, holders.persons)


def _people(holders: Holders) -> int:
    """Count the people of the table."""
    return int(holders.people(np.zeros(len(holders.rows), np.int64), 1)[0])


def _other_people(names: Sequence[str], coarsenings: Sequence[Coarsening], table: pa.Table) -> _OtherPeople:
    """Take those of a population whose values will surely be called as values of the table are."""
    codes = [part.codes_of(name, table.column(name)) for name, part in zip(names, coarsenings, strict=True)]
    is_known = np.all([column >= 0 for column in codes], axis=0)
    sizes = table.column(table.num_columns - 1).to_numpy().astype(np.int64)
    return [column[is_known] for column in codes], sizes[is_known]


def _searched(
    holders: Holders,
    others: _OtherPeople | None,
    coarsenings: Sequence[Coarsening],
    weights: Sequence[float],
    least: int,
    limit: int,
    start: Sequence[State] | None,
    sensitive: Sensitive | None,
) -> tuple[list[ColumnRecoding], Bools]:
    """Search the groups of all columns that hold a value; return them, and which combinations are released."""
    rows = int(holders.rows.sum())
    searched = [column for column, coarsening in enumerate(coarsenings) if coarsening.column.size]
    counts, sizes, persons = holders.rows, None, holders.persons
    codes = [coarsening.column.codes for coarsening in coarsenings]
    if others is not None:
        other_codes, other_sizes = others
        counts = np.append(counts, np.zeros_like(other_sizes))
        sizes, persons = np.append(np.zeros_like(holders.rows), other_sizes), None
        codes = [np.append(own, other) for own, other in zip(codes, other_codes, strict=True)]
    if not searched:
        if others is None and _people(holders) < least:
            of_what = "rows" if persons is None else "people"
            raise ValueError(f"k must be at most the number of {of_what}, {_people(holders)}; got {least}.")
        return [_all_null(rows)] * len(coarsenings), np.ones(len(holders.rows), bool)
    columns = [
        Column(codes[column], coarsenings[column].structure, weights[column], coarsenings[column].column.has_null)
        for column in searched
    ]
    begin = None if start is None else [start[column] for column in searched]
    recoding = recode(
        counts, columns, int(least), limit, sizes=sizes, persons=persons, start=begin, sensitive=sensitive
    )
    groups = [_all_null(rows - recoding.suppressed)] * len(coarsenings)
    for column, column_groups in zip(searched, recoding.columns, strict=True):
        groups[column] = column_groups
    return groups, recoding.is_released[: len(holders.rows)]


def _all_null(rows: int) -> ColumnRecoding:
    """Return the groups of a column that is NULL in every row: one, which loses nothing."""
    return ColumnRecoding(np.zeros(1, np.int64), np.zeros(1), np.full(1, rows))


def _coarsening(
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
        return Top(no_leaves(holders), k)
    hierarchy = hierarchies.get(name.lower())
    if method is None:  # of other types the values decide
        of_type = "interval" if is_number(column.type) else "calendar" if is_time(column.type) else None
        method = "hierarchy" if hierarchy else of_type
    if method == "interval":
        return Intervals(number_leaves(name, column, holders, end_people), k)
    if method == "round":
        if not is_number(column.type):
            raise ValueError(
                f'column "{name}" must hold numbers for the method round; its type is {sql_type(column.type)}.'
            )
        return Steps.parting(number_leaves(name, column, holders, end_people), k)
    if method == "calendar":
        if not is_time(column.type):
            raise ValueError(
                f'column "{name}" must hold dates or timestamps for the method calendar; its type is '
                f"{sql_type(column.type)}."
            )
        return Calendar(day_leaves(name, column, holders, end_people))
    texts = text_leaves(name, column, holders)
    if method == "hierarchy" and hierarchy:
        return Hierarchy(texts, hierarchy)
    if method == "prefix" or (method is None and are_codes(texts, k)):
        return Prefixes(texts, k)
    return Top(texts, k)


def _report(
    names: Sequence[str], coarsenings: Sequence[Coarsening], labels: Labels, holders: Holders, allowed: list[int | None]
) -> pa.Table:
    suppressed = int(holders.rows[~labels.is_released].sum())
    columns = zip(names, coarsenings, labels.coarsenings, labels.buckets, allowed, strict=True)
    rows = [
        (name, fitted.method, *bucket, most, suppressed)
        for name, column, fitted, plan_rows, most in columns
        for bucket in counted(plan_rows, column.column, holders.rows, labels.is_released)
    ]
    return report(dict(zip(PLAN_ROWS.names, zip(*rows, strict=True), strict=True)), PLAN_ROWS)

"""Plans: fits how every column of a table is made coarser, and writes it down bucket by bucket.

With a population, each column keeps as many values as its share of the budget allows (Probabilistic Anonymity,
sections 3 and 4). Without one the table is its own universe: the groups are searched that lose least while every class
has k rows, a small part of the rows apart (`duckanon.generalize.recoding.recode`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from duckanon.common import values
from duckanon.common.arrays import Ints
from duckanon.generalize.budgets import distinct_budget, groups_within
from duckanon.generalize.declared import PLAN
from duckanon.generalize.methods import Bucket, Coarsening, Hierarchy, Prefixes, Top
from duckanon.generalize.number_methods import Calendar, Intervals, Steps
from duckanon.generalize.recoding.columns import Column
from duckanon.generalize.recoding.recode import ColumnRecoding, recode

METHODS = ("hierarchy", "interval", "round", "calendar", "prefix", "top")


_ALL_NULL = ColumnRecoding(np.zeros(1, np.int64), np.zeros(1))


def plan(
    table: pa.Table | None,
    *,
    cols: Sequence[str],
    k: int,
    beta: float,
    population: float | None,
    weights: Any,
    hierarchies: Sequence[dict[str, Any]] | None,
    methods: Any,
    max_suppressed_fraction: float,
    identifiers: Sequence[str] | None,
    unfit: Sequence[str] | None,
) -> pa.Table:
    """Fit a plan to a table.

    Parameters
    ----------
    table
        The distinct combinations of the columns, the number of rows of each last.
    cols
        The columns as the caller named them, to which a list of ``weights`` is parallel.
    hierarchies
        Rows of column_name (lower case), leaf, level, label.
    weights, methods
        By column: pairs or a dictionary; weights also a list.
    identifiers
        Columns that look like direct identifiers and must not be released: any of them is refused.
    unfit
        Columns whose type cannot become text of labels, with the type.

    Returns
    -------
    pyarrow.Table
        One row per bucket: `PLAN`.
    """
    if table is None:
        raise ValueError("the table has no rows to look at.")
    counts = table.column(table.num_columns - 1).to_numpy().astype(np.int64)
    names = table.column_names[:-1]
    trees = _hierarchy_tables(hierarchies or [])
    for name in trees.keys() - {own.lower() for own in names}:
        raise ValueError(f'hierarchies must name columns of cols; got "{name}".')
    chosen = _by_column("methods", methods, names)
    _refuse_methods(chosen, trees)
    weight = _weights(weights, names, cols)
    if unfit:
        raise ValueError(f"column {unfit[0]} has a type that cannot be made coarser; cast it to VARCHAR first.")
    if identifiers:
        raise ValueError(
            f'column "{identifiers[0]}" looks like a direct identifier; leave it out of the table, or name it in keep.'
        )
    coarsenings = [_coarsening(name, table.column(name), counts, chosen.get(name.lower()), trees) for name in names]
    if population is None:
        found, suppressed = _searched(counts, coarsenings, weight, k, max_suppressed_fraction)
        return _report(names, coarsenings, found, [None] * len(names), suppressed)
    budget = distinct_budget(population, k, beta)
    if budget < 1:
        raise ValueError(
            f"a population of {population:g} is too small for k = {k} and beta = {beta}: not one class fits."
        )
    groups, allowed = groups_within(coarsenings, budget, weight)
    return _report(names, coarsenings, groups, allowed, 0)


def _searched(
    counts: Ints, coarsenings: Sequence[Coarsening], weights: Sequence[float], k: int, fraction: float
) -> tuple[list[ColumnRecoding], int]:
    rows = int(counts.sum())
    if rows < k:
        raise ValueError(f"k must be at most the number of rows, {rows}; got {k}.")
    found = {place: _ALL_NULL for place, one in enumerate(coarsenings) if not one.column.size}
    places = [place for place in range(len(coarsenings)) if place not in found]
    columns = [
        Column(one.column.codes, one.structure, weights[place], one.column.has_null)
        for place in places
        for one in [coarsenings[place]]
    ]
    suppressed = 0
    if columns:
        result = recode(counts, columns, k, int(fraction * rows + 1e-9))
        found |= dict(zip(places, result.columns, strict=True))
        suppressed = result.suppressed
    return [found[place] for place in range(len(coarsenings))], suppressed


def _coarsening(
    name: str,
    column: pa.ChunkedArray,
    counts: Ints,
    method: str | None,
    trees: dict[str, values.HierarchyTable],
) -> Coarsening:
    """Choose how a column is made coarser: as the caller says, or by what it holds."""
    kind = column.type
    if column.null_count == len(column):
        return Top(values.no_leaves(counts))
    if method is None:
        method = "hierarchy" if name.lower() in trees else None
    if method == "interval" or (method is None and values.is_number(kind)):
        return Intervals(values.number_leaves(name, column, counts))
    if method == "calendar" or (method is None and values.is_time(kind)):
        if not values.is_time(kind):
            raise ValueError(
                f'column "{name}" must hold dates or timestamps for the method calendar; its type is {kind}.'
            )
        return Calendar(values.day_leaves(name, column, counts))
    if method == "round":
        if not values.is_number(kind):
            raise ValueError(f'column "{name}" must hold numbers for the method round; its type is {kind}.')
        return Steps(values.number_leaves(name, column, counts))
    texts = values.text_leaves(name, column, counts)
    if method == "hierarchy":
        return Hierarchy(texts, trees[name.lower()])
    if method == "prefix" or (method is None and _are_codes(texts.texts)):
        return Prefixes(texts)
    return Top(texts)


def _are_codes(texts: Sequence[str]) -> bool:
    """Tell whether texts look like codes such as ZIP: many, all of one length, a digit in each."""
    return (
        len(texts) >= 20
        and len(set(map(len, texts))) == 1
        and len(texts[0]) >= 3
        and all(any(character.isdigit() for character in text) for text in texts)
    )


def _hierarchy_tables(rows: Sequence[dict[str, Any]]) -> dict[str, values.HierarchyTable]:
    by_column: dict[str, list[tuple[str, int, str]]] = {}
    for row in rows:
        if row["leaf"] is not None:
            by_column.setdefault(row["column_name"], []).append((row["leaf"], row["level"], row["label"]))
    return {name: values.HierarchyTable(name, own) for name, own in by_column.items()}


def _by_column(parameter: str, given: Any, names: Sequence[str]) -> dict[str, Any]:
    """Read a MAP or STRUCT from column names to something, the names in lower case."""
    pairs = given.items() if isinstance(given, dict) else given or []
    found = {str(name).lower(): value for name, value in pairs}
    for name in found:
        if name not in {own.lower() for own in names}:
            raise ValueError(f'{parameter} must name columns of cols; got "{name}".')
    return found


def _refuse_methods(chosen: dict[str, Any], trees: dict[str, values.HierarchyTable]) -> None:
    for name, method in chosen.items():
        if method not in METHODS:
            raise ValueError(f'the method of column "{name}" must be one of {", ".join(METHODS)}; got {method}.')
        if method == "hierarchy" and name not in trees:
            raise ValueError(f'the method hierarchy needs a hierarchy for column "{name}"; name one in hierarchies.')


def _weights(weights: Any, names: Sequence[str], cols: Sequence[str]) -> list[float]:
    if isinstance(weights, list) and (not weights or not isinstance(weights[0], tuple)):
        if len(weights) != len(cols):
            raise ValueError(f"weights must have one number for each of the {len(cols)} columns; got {len(weights)}.")
        weights = dict(zip(cols, weights, strict=True))
    if weights is not None and not isinstance(weights, list | dict):
        raise ValueError(f"weights must be a list of numbers or a map such as MAP {{'age': 2}}; got {weights}.")
    by_name = _by_column("weights", weights, names)
    found = [by_name.get(name.lower(), 1.0) for name in names]
    if any(weight is None or not 0 <= weight < float("inf") for weight in found) or not sum(found) > 0:
        raise ValueError("weights must be numbers of at least 0, not all of them 0.")
    return [float(weight) for weight in found]


def _report(
    names: Sequence[str],
    coarsenings: Sequence[Coarsening],
    found: Sequence[ColumnRecoding],
    allowed: Sequence[int | None],
    suppressed: int,
) -> pa.Table:
    def rows() -> Iterator[tuple[Any, ...]]:
        for name, one, groups, most in zip(names, coarsenings, found, allowed, strict=True):
            for bucket in one.buckets(groups):
                yield (name, one.method, *_fields(bucket), most, suppressed)

    columns = zip(*rows(), strict=True)
    return pa.table([pa.array(column, field.type) for column, field in zip(columns, PLAN, strict=True)], schema=PLAN)


def _fields(bucket: Bucket) -> tuple[Any, ...]:
    return (
        bucket.covers,
        bucket.lower,
        bucket.upper,
        bucket.label,
        bucket.distinct_values,
        bucket.rows,
        bucket.loss,
    )

"""``anon.audit_table``: what readers can compute from a table with hidden cells, whoever made it.

The labels give the cells and their relations, the shown numbers what is known. An exact audit finds the cells that
follow from the shown ones, or that a contributor of another hidden cell can compute; two linear programs a cell tell
how far the others are open, up to 3,000 hidden ones. The original rows tell which cells need protection, and how much.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import sparse

from duckanon._core.common.arrays import Bools, Floats, Ints
from duckanon._methods.tables.cells import TableCells
from duckanon._methods.tables.hidden_cell_audits import compute_intervals, find_owner_leaks, run_exact_audit
from duckanon._methods.tables.primary import CellRule, find_primary_cells
from duckanon._methods.tables.relations import Relations, find_relations
from duckanon._methods.tables.source import locate_rows, read_cells, read_labels, select_labels

MOST_INTERVALS = 3_000
"""Hidden cells up to which the interval of each is computed: two linear programs a cell."""


def audit_table(
    table: pa.Table,
    original: pa.Table | None,
    *,
    by: Sequence[str],
    k: int,
    p: float | None,
    has_people: bool,
    overlapping: bool,
    hierarchies: Sequence[Mapping[str, Any]] | None,
    linked: Sequence[Sequence[str]] | None,
    measure: str | None,
    person: str | None,
) -> pa.Table:
    """Return hidden cells and cells that should be hidden. Options are as `AUDIT_TABLE` declares them.

    `has_people` tells whether the table has people beside its values, which are sums then.
    """
    tables, rule = [by, *(linked or ())], CellRule(k, p)
    if original is None:
        cells = read_labels(table, tables, hierarchies)
    else:
        read = partial(read_cells, original, tables=tables, measure=measure, person=person, hierarchies=hierarchies)
        cells = read(largest=rule.largest, with_empty=False)
        if (locate_rows(cells, table, "published") < 0).any():  # hidden cells may be empty ones
            cells = read(largest=rule.largest, with_empty=True)
    cell = locate_rows(cells, table, "published")
    if (cell < 0).any():
        raise ValueError(
            f"published must have rows of cells and margins of by only; {int((cell < 0).sum())} rows are others: name "
            "the hierarchies of their labels, or give another original."
        )
    value, people = (np.full(len(cells), np.nan) for _ in range(2))
    value[cell] = table.column("value").cast(pa.float64()).to_numpy(zero_copy_only=False)
    people[cell] = table.column("people").cast(pa.float64()).to_numpy(zero_copy_only=False)
    counts = people if has_people else value
    if wrong := int((counts < 0).sum()):
        which = f"got {wrong}." if has_people else f"got {wrong}: name the column of people where value is a sum."
        raise ValueError(f"{'people' if has_people else 'value'} must have no number of people below 0; {which}")
    relations = find_relations(cells)
    if has_people or not overlapping:
        _refuse_inconsistent(relations, value)
    return _list_faults(cells, relations, value, counts, cell, rule, original is not None, overlapping=overlapping)


def _list_faults(
    cells: TableCells,
    relations: Relations,
    value: Floats,
    people: Floats,
    cell: Ints,
    rule: CellRule,
    has_original: bool,
    *,
    overlapping: bool,
) -> pa.Table:
    """Look for every kind of fault, and name the worst of each cell."""
    is_row = np.zeros(len(cells), dtype=bool)
    is_row[cell] = True
    hidden, counts_people = np.isnan(value), people is value
    audit = run_exact_audit(relations.matrix, hidden)
    low, high = np.full(len(cells), np.nan), np.full(len(cells), np.nan)
    if hidden.sum() <= MOST_INTERVALS:
        least = 0.0 if np.nanmin(value, initial=0) >= 0 else -np.inf
        matrix, numbers, asked = relations.matrix, value, hidden & is_row
        if counts_people and overlapping:  # by how many people the parts of a group exceed it is unknown, too
            matrix = sparse.hstack([matrix, -sparse.identity(relations.count)], format="csr")
            numbers = np.append(value, np.full(relations.count, np.nan))
            asked = np.pad(asked, (0, relations.count))
        low, high = (ends[: len(cells)] for ends in compute_intervals(matrix, numbers, asked, least))
        if counts_people and overlapping:
            high = np.fmin(high, _find_smallest_groups(relations, value))
    owned = np.zeros(0, dtype=np.int64)
    if has_original:
        primary = find_primary_cells(cells, rule)
        small = primary.cells & ~hidden
        guarded = primary.cells
        tolerance = 1e-6 * np.maximum(1, np.abs(cells.value))
        narrow = guarded & (
            (low > cells.value - primary.below + tolerance) | (high < cells.value + primary.above - tolerance)
        )
        owned = find_owner_leaks(cells, audit, guarded) if not cells.counts_people else owned
    else:
        small = (people < rule.k) & (people > 0)
        guarded = hidden & (~(low >= rule.k) if counts_people else True)
        share = 0.0 if rule.p is None else rule.p / 100
        narrow = guarded & (high - low < (rule.k - 2 if counts_people else share * np.abs(high)))
    by_fault = {
        "small": small,
        "derivable": audit.is_derivable & guarded,
        "subtraction": _find_small_unions(relations, people, rule.k) & hidden & (not overlapping),
        "contributor": np.isin(np.arange(len(cells)), owned) & hidden,
        "narrow": narrow & hidden,
    }
    fault = np.select(list(by_fault.values()), list(by_fault), default="")
    rows = np.flatnonzero(is_row & (hidden | (fault != "")))
    return pa.table(
        select_labels(cells, rows)
        | {
            "value": pa.array(value[rows], from_pandas=True),
            "fault": pa.array([name or None for name in fault[rows].tolist()], pa.string()),
            "lower": pa.array(np.where(hidden, low, np.nan)[rows] + 0.0, from_pandas=True),  # no -0.0
            "upper": pa.array(np.where(hidden, high, np.nan)[rows] + 0.0, from_pandas=True),
        }
    )


def _find_smallest_groups(relations: Relations, value: Floats) -> Floats:
    """Return the number of people of the smallest shown group of each cell, none of whose parts has more."""
    group = np.full(relations.count, np.inf)
    of_groups = relations.is_group & ~np.isnan(value[relations.cell])
    group[relations.relation[of_groups]] = value[relations.cell[of_groups]]
    smallest = np.full(len(value), np.inf)
    parts = ~relations.is_group
    np.minimum.at(smallest, relations.cell[parts], group[relations.relation[parts]])
    return smallest


def _find_small_unions(relations: Relations, people: Floats, k: int) -> Bools:
    """Tell which hidden cells are parts of a published group that shows fewer than k people of them together."""
    hidden, member = np.isnan(people), relations.cell
    is_part, is_open = relations.find_open_parts(hidden)
    shown = np.where(hidden[member], 0, people[member])
    is_small = is_open & (relations.sum_per_relation(np.where(relations.is_group, shown, -shown)) < k)
    return np.asarray(relations.sum_per_cell(is_part & is_small[relations.relation]) > 0)


def _refuse_inconsistent(relations: Relations, value: Floats) -> None:
    """Refuse a table whose shown cells do not add up: hidden cells are rows without a value."""
    known = ~np.isnan(value)
    is_whole = relations.sum_per_relation(~known[relations.cell]) == 0
    sums = relations.matrix @ np.where(known, value, 0)
    size = abs(relations.matrix) @ np.where(known, np.abs(value), 0)
    wrong = int((is_whole & (np.abs(sums) > 1e-6 * np.maximum(size, 1))).sum())
    if wrong:
        raise ValueError(
            f"published must add up, with a row for each hidden cell whose value is NULL; {wrong} margins are not the "
            "sum of their parts."
        )

"""``anon.protect_table``: an aggregate table with margins, in which no cell gives a person away.

Cells are hidden by a pattern of secondary suppression (`patterns`), rounded to multiples of k (`rounding`), or get
noise that is the same for the same people in every table (`cell_key`); the last two replace counts of people only. A
table of which too much would be hidden is refused, with the column to coarsen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from duckanon._core.common.arrays import Bools, Floats, Ints
from duckanon._core.common.imports import import_function
from duckanon._methods.tables.cells import TableCells
from duckanon._methods.tables.patterns import Pattern, PreviousTable, hide_cells, hide_people
from duckanon._methods.tables.primary import CellRule, find_primary_cells
from duckanon._methods.tables.source import drop_empty_rows, locate_rows, read_cells, select_labels


def protect_table(
    table: pa.Table,
    previous: pa.Table | None,
    *,
    by: Sequence[str],
    measure: str | None,
    k: int,
    p: float | None,
    dominance: Sequence[float] | None,
    person: str | None,
    hierarchies: Sequence[Mapping[str, Any]] | None,
    zeros: str,
    linked: Sequence[Sequence[str]] | None,
    method: str,
    max_suppressed_fraction: float,
    key: str | None,
) -> pa.Table:
    """Return the cells of the tables to publish. Options are as `PROTECT_TABLE` declares them."""
    rule = CellRule(k, p, dominance)
    cells = read_cells(
        drop_empty_rows(table),
        tables=[by, *(linked or ())],
        measure=measure,
        person=person,
        hierarchies=hierarchies,
        largest=rule.largest,
        with_empty=zeros == "protected",
        secret=key if method == "cell_key" else None,
    )
    people = int(cells.sums.people[-1])  # the last cell is the total of all columns
    if people < k:
        raise ValueError(f"k must be at most the number of people in the table; got {k}: no cell could be published.")
    before = _read_previous(cells, previous)
    if method == "cell_key":
        perturb_counts = import_function("duckanon._methods.tables.cell_key:perturb_counts")
        widest = import_function("duckanon._methods.tables.cell_key:find_widest_noise")(k)
        return _release_counts(cells, perturb_counts(cells.sums.people, cells.sums.entries, k), widest)
    if method == "round":
        round_cells = import_function("duckanon._methods.tables.rounding:round_cells")
        rounded = round_cells(cells, k, key or "", None if before is None else _read_previous_counts(before, k))
        return _release_counts(cells, rounded.people, rounded.deviation)
    primary = find_primary_cells(cells, rule, protects_zeros=zeros == "protected").cells
    _refuse_too_many(cells, primary, primary, max_suppressed_fraction)  # before the search: it would hide more
    pattern = hide_cells(cells, rule, protects_zeros=zeros == "protected", before=before)
    _refuse_faults(pattern)
    _refuse_too_many(cells, pattern.withheld, pattern.primary, max_suppressed_fraction)
    rows = np.flatnonzero(cells.is_shown)
    hidden, checked = pattern.withheld[rows], pattern.faults.interval_checked
    hides_people = hidden
    if measure is not None and checked:
        hides_people = hidden | hide_people(cells, pattern.withheld | ~cells.is_shown, rule, before)[rows]
    counts = pa.array(cells.sums.people[rows], mask=hides_people)
    return _build_table(cells, rows, counts, cells.value[rows], 0, hidden, interval_checked=checked)


def _release_counts(cells: TableCells, counts: Ints, deviation: Ints | int) -> pa.Table:
    """Return a table of counts that are not the true ones, without those that became zero."""
    rows = np.flatnonzero(cells.is_shown & (counts > 0))
    deviation, counts = np.broadcast_to(deviation, len(cells))[rows], counts[rows]
    hidden, value = np.zeros(len(rows), dtype=bool), counts.astype(np.float64)
    return _build_table(cells, rows, pa.array(counts), value, deviation, hidden, interval_checked=False)


def _build_table(
    cells: TableCells,
    rows: Ints,
    people: pa.Array,
    value: Floats,
    deviation: Ints | int,
    hidden: Bools,
    *,
    interval_checked: bool,
) -> pa.Table:
    columns = select_labels(cells, rows) | {
        "people": people,
        "value": pa.array(value, mask=hidden),
        "max_deviation": pa.array(np.broadcast_to(deviation, len(rows)).astype(np.int64), mask=hidden),
        "published": pa.array(~hidden),
        "interval_checked": pa.array(np.full(len(rows), interval_checked)),
    }
    return pa.table(columns)


def _read_previous(cells: TableCells, previous: pa.Table | None) -> PreviousTable | None:
    """Return the numbers of a table that was released before."""
    if previous is None:
        return None
    cell = locate_rows(cells, previous, "previous")
    value, people = np.full(len(cells), np.nan), np.full(len(cells), np.nan)
    for name, numbers in (("value", value), ("people", people)):
        numbers[cell[cell >= 0]] = previous.column(name).cast(pa.float64()).to_numpy()[cell >= 0]
    return PreviousTable(value, people)


def _read_previous_counts(before: PreviousTable, k: int) -> Floats:
    """Return the rounded numbers of a former release; a cell that it does not show was rounded to zero."""
    value = np.nan_to_num(before.value)
    if (value % k != 0).any():
        raise ValueError("previous must be a table that was rounded to the same k.")
    return value


def _refuse_faults(pattern: Pattern) -> None:
    """Refuse a table that the repairs could not make safe."""
    faulty, unions = len(pattern.faults.cells), pattern.faults.unions
    if faulty or unions:
        raise ValueError(
            f"{faulty} cells and {unions} sums of hidden cells could not be protected; coarsen a column "
            "or leave one out."
        )


def _refuse_too_many(cells: TableCells, hidden: Bools, primary: Bools, most: float) -> None:
    """Refuse a table of which too much has to be hidden, and say which column to coarsen."""
    size, inner = np.abs(cells.value), cells.is_inner & cells.is_shown
    if not inner.any():
        return
    share = size[inner & hidden].sum() / max(size[inner].sum(), 1e-300)
    if share > most:
        raise ValueError(
            f"at least {share:.0%} of the value of the inner cells would be hidden, more than max_suppressed_fraction "
            f'allows; coarsen "{find_column_to_coarsen(cells, primary)}" first, or raise max_suppressed_fraction.'
        )


def find_column_to_coarsen(cells: TableCells, primary: Bools) -> str:
    """Return the column without whose detail the smallest share of the value is in primary cells."""
    size, shares = np.abs(cells.value), {}
    is_value = cells.coordinates < [dimension.values for dimension in cells.dimensions]
    for index, dimension in enumerate(cells.dimensions):
        margin = np.delete(is_value, index, axis=1).all(axis=1) & (cells.coordinates[:, index] == dimension.total)
        shares[dimension.name] = size[margin & primary].sum() / max(size[margin].sum(), 1e-300)
    return min(shares, key=lambda name: shares[name])

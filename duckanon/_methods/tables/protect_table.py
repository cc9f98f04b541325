"""``anon.protect_table``: an aggregate table with margins, in which no cell gives a person away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from duckanon._core.common.arrays import Bools, Floats, Ints
from duckanon._core.common.imports import imported
from duckanon._methods.tables.cells import Cells
from duckanon._methods.tables.patterns import Before, Pattern, hide_cells, hide_people
from duckanon._methods.tables.primary import CellRule, primary_cells
from duckanon._methods.tables.source import labels_of, locate, read_cells, without_empty


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
        without_empty(table),
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
    before = _before(cells, previous)
    if method == "cell_key":
        perturbed = imported("duckanon._methods.tables.cell_key:perturbed")
        widest = imported("duckanon._methods.tables.cell_key:widest_noise")(k)
        return _with_other_counts(cells, perturbed(cells.sums.people, cells.sums.entries, k), widest)
    if method == "round":
        round_cells = imported("duckanon._methods.tables.rounding:round_cells")
        rounded = round_cells(cells, k, key or "", None if before is None else _rounded_before(before, k))
        return _with_other_counts(cells, rounded.people, rounded.deviation)
    primary = primary_cells(cells, rule, protects_zeros=zeros == "protected").cells
    _refuse_too_many(cells, primary, primary, max_suppressed_fraction)  # before the search: it would hide more
    pattern = hide_cells(cells, rule, protects_zeros=zeros == "protected", before=before)
    _refuse_unprotected(pattern)
    _refuse_too_many(cells, pattern.withheld, pattern.primary, max_suppressed_fraction)
    rows = np.flatnonzero(cells.is_shown)
    hidden, checked = pattern.withheld[rows], pattern.faults.interval_checked
    without_people = hidden
    if measure is not None and checked:
        without_people = hidden | hide_people(cells, pattern.withheld | ~cells.is_shown, rule, before)[rows]
    people = pa.array(cells.sums.people[rows], mask=without_people)
    return _table(cells, rows, people, cells.value[rows], 0, hidden, interval_checked=checked)


def _with_other_counts(cells: Cells, counts: Ints, deviation: Ints | int) -> pa.Table:
    """Return counts that are not the true ones; one that becomes zero is left out, as empty cells are."""
    rows = np.flatnonzero(cells.is_shown & (counts > 0))
    told = np.broadcast_to(deviation, len(cells))[rows]
    hidden = np.zeros(len(rows), dtype=bool)
    return _table(
        cells, rows, pa.array(counts[rows]), counts[rows].astype(np.float64), told, hidden, interval_checked=False
    )


def _table(
    cells: Cells,
    rows: Ints,
    people: pa.Array,
    value: Floats,
    deviation: Ints | int,
    hidden: Bools,
    *,
    interval_checked: bool,
) -> pa.Table:
    columns = labels_of(cells, rows) | {
        "people": people,
        "value": pa.array(value, mask=hidden),
        "max_deviation": pa.array(np.broadcast_to(deviation, len(rows)).astype(np.int64), mask=hidden),
        "published": pa.array(~hidden),
        "interval_checked": pa.array(np.full(len(rows), interval_checked)),
    }
    return pa.table(columns)


def _before(cells: Cells, previous: pa.Table | None) -> Before | None:
    """Return what a table that was given away before shows."""
    if previous is None:
        return None
    place = locate(cells, previous, "previous")
    value, people = np.full(len(cells), np.nan), np.full(len(cells), np.nan)
    for name, of_cells in (("value", value), ("people", people)):
        given: Floats = previous.column(name).cast(pa.float64()).to_numpy()
        of_cells[place[place >= 0]] = given[place >= 0]
    return Before(value, people)


def _rounded_before(before: Before, k: int) -> Floats:
    """Return the rounded numbers of a former release; a cell that it does not show was rounded to zero."""
    value = np.nan_to_num(before.value)
    if (value % k != 0).any():
        raise ValueError("previous must be a table that was rounded to the same k.")
    return value


def _refuse_unprotected(pattern: Pattern) -> None:
    """Refuse a table that the repairs could not make safe."""
    left = len(pattern.faults.cells)
    if left or pattern.faults.unions:
        raise ValueError(
            f"{left} cells and {pattern.faults.unions} sums of hidden cells could not be protected; coarsen a column "
            "or leave one out."
        )


def _refuse_too_many(cells: Cells, hidden: Bools, primary: Bools, most: float) -> None:
    """Refuse a table of which too much has to be hidden, and say which column to coarsen."""
    size, inner = np.abs(cells.value), cells.is_inner & cells.is_shown
    if not inner.any():
        return
    share = size[inner & hidden].sum() / max(size[inner].sum(), 1e-300)
    if share > most:
        raise ValueError(
            f"at least {share:.0%} of the value of the inner cells would be hidden, more than max_suppressed_fraction "
            f'allows; coarsen "{column_to_coarsen(cells, primary)}" first, or raise max_suppressed_fraction.'
        )


def column_to_coarsen(cells: Cells, primary: Bools) -> str:
    """Return the column without whose detail the smallest share of the value is in primary cells."""
    size, shares = np.abs(cells.value), {}
    is_value = cells.coordinates < [one.values for one in cells.dimensions]
    for place, one in enumerate(cells.dimensions):
        others = np.delete(is_value, place, axis=1).all(axis=1)
        margin = others & (cells.coordinates[:, place] == one.total)
        shares[one.name] = size[margin & primary].sum() / max(size[margin].sum(), 1e-300)
    return min(shares, key=lambda name: shares[name])

"""``anon.protect_table``: an aggregate table with margins, in which no cell gives a person away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from duckanon._core.common.arrays import Bools, Floats
from duckanon._methods.tables.cell_key import perturbed
from duckanon._methods.tables.cells import Cells
from duckanon._methods.tables.patterns import Before, Pattern, hide_cells
from duckanon._methods.tables.primary import CellRule
from duckanon._methods.tables.source import labels_of, locate, read_cells


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
        table,
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
    if method == "cell_key":
        return _noisy(cells, k)
    pattern = hide_cells(cells, rule, protects_zeros=zeros == "protected", before=_before(cells, previous))
    _refuse_unprotected(pattern)
    _refuse_too_many(cells, pattern, max_suppressed_fraction)
    return _published(cells, pattern)


def _noisy(cells: Cells, k: int) -> pa.Table:
    """Return counts with the noise of their cell keys; one that becomes zero is left out, as empty cells are."""
    counts = perturbed(cells.sums.people, cells.sums.entries, k)
    rows = np.flatnonzero(cells.is_shown & (counts > 0))
    counts = counts[rows]
    columns = labels_of(cells, rows) | {
        "people": pa.array(counts),
        "value": pa.array(counts.astype(np.float64)),
        "published": pa.array(np.ones(len(rows), dtype=bool)),
        "interval_checked": pa.array(np.zeros(len(rows), dtype=bool)),
    }
    return pa.table(columns)


def _published(cells: Cells, pattern: Pattern) -> pa.Table:
    rows = np.flatnonzero(cells.is_shown)
    is_hidden = pattern.withheld[rows]
    columns = labels_of(cells, rows) | {
        "people": pa.array(cells.sums.people[rows], mask=is_hidden),
        "value": pa.array(cells.value[rows], mask=is_hidden),
        "published": pa.array(~is_hidden),
        "interval_checked": pa.array(np.full(len(rows), pattern.faults.interval_checked)),
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


def _refuse_unprotected(pattern: Pattern) -> None:
    """Refuse a table that the repairs could not make safe."""
    left = len(pattern.faults.cells)
    if left or pattern.faults.unions:
        raise ValueError(
            f"{left} cells and {pattern.faults.unions} sums of hidden cells could not be protected; coarsen a column "
            "or leave one out."
        )


def _refuse_too_many(cells: Cells, pattern: Pattern, most: float) -> None:
    """Refuse a table of which too much is hidden, and say which column to coarsen."""
    size, inner = np.abs(cells.value), cells.is_inner & cells.is_shown
    if not inner.any():
        return
    share = size[inner & pattern.withheld].sum() / max(size[inner].sum(), 1e-300)
    if share > most:
        raise ValueError(
            f"{share:.0%} of the value of the inner cells would be hidden, more than max_suppressed_fraction allows; "
            f'coarsen "{column_to_coarsen(cells, pattern.primary)}" first, or raise max_suppressed_fraction.'
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

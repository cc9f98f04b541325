"""Singling out: whether conditions that hold for one released row hold for exactly one original person.

Singling out by the cells of a coarse release: whether what a released row says holds for exactly one person.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from duckanon._core.common import progress
from duckanon._core.common.arguments import check_by
from duckanon._core.common.arrays import Bools, Floats, Ints, sample_rows
from duckanon._core.common.declare import report_rows
from duckanon._core.common.row_keys import find_distinct_rows
from duckanon._core.privacy.cells import CellColumn, count_members
from duckanon._measure.attacks import rates
from duckanon._measure.attacks.declared import SINGLING_OUT_RISK

Table = TypeVar("Table", bound=Sized)
PredicateSet = TypeVar("PredicateSet", bound=Sized)

_MISSING = np.inf  # beyond every number, so that no range reaches it
_LARGEST = np.finfo(np.float64).max  # a range without an end reaches to it, but not to what is missing
_ATTEMPTS = 50  # batches of random conditions before it is given up to find more


@dataclass(frozen=True)
class Predicates:
    """Conjunctions, one per row: each of its columns lies between a lower and an upper end, both inside."""

    columns: Ints
    lower: Floats
    upper: Floats

    def __len__(self) -> int:
        return len(self.columns)

    def __getitem__(self, chosen: Ints | Bools | slice) -> Predicates:
        """Return those that are chosen."""
        return Predicates(self.columns[chosen], self.lower[chosen], self.upper[chosen])


@check_by(SINGLING_OUT_RISK)
def singling_out_risk(
    original: Floats,
    released: Floats,
    control: Floats | None,
    is_ordered: Bools,
    random: np.random.Generator,
    *,
    attacks: int = 2000,
    predicate_columns: int = 3,
    confidence: float = 0.95,
) -> pa.Table:
    """Make predicates that single out a released row, and count how many single out a person of the original.

    Giomi et al., A unified framework for quantifying privacy risk in synthetic data, 2022, Section 4.1. There the
    baseline is rescaled by a fitted curve where the tables differ in size; here both are asked at the same size.

    A matrix has one column per source column: numbers and dates as they are (`is_ordered`: asked for ranges),
    categories as codes that are the same in all tables (asked for equality); NaN is NULL. `control` are people from the
    same population who are not in the original; without them random predicates are the baseline. Fewer than `attacks`
    predicates of a mode may single out a released row.

    Returns:
        A row for ``univariate`` predicates (values that occur once, the smallest, the largest, the only NULL) and one
        for ``multivariate`` ones (several random columns of a random released row, numbers at least as extreme).
        ``success``: share of the predicates that hold for exactly one original; the same for control and for random
        predicates; ``risk`` = (success - baseline) / (1 - baseline) with its interval. All are NULL where no predicate
        was found. ``rows_looked_at``: as many originals as control people, drawn at random from the larger table, since
        in a larger table fewer predicates single out.
    """
    _refuse(original, released, control, is_ordered)
    size = len(original) if control is None else min(len(original), len(control))
    people = Sorted(original[sample_rows(size, len(original), random)])
    outsiders = None if control is None else Sorted(control[sample_rows(size, len(control), random)])
    source = Sorted(released)
    width = min(predicate_columns, released.shape[1])
    predicates = univariate(source, is_ordered, attacks, random)
    naive = _naive(source, is_ordered, attacks, 1, random)
    rows = [success_row("univariate", predicates, naive, people, outsiders, _successes, confidence)]
    predicates = multivariate(source, is_ordered, attacks, width, random)
    naive = _naive(source, is_ordered, attacks, width, random)
    rows.append(success_row("multivariate", predicates, naive, people, outsiders, _successes, confidence))
    return report_rows(rows, SINGLING_OUT_RISK.schema)


class Sorted:
    """A table to count predicates on: columns are sorted once, and the most selective condition is looked up first."""

    def __init__(self, matrix: Floats) -> None:
        self.values = np.asfortranarray(np.where(np.isnan(matrix), _MISSING, matrix))
        self.order = [np.argsort(column, kind="stable") for column in self.values.T]
        self.sorted = [column[order] for column, order in zip(self.values.T, self.order, strict=True)]

    def __len__(self) -> int:
        return len(self.values)

    def counts(self, predicates: Predicates) -> Ints:
        """Count the rows for which each predicate holds."""
        start, stop = np.empty(predicates.columns.shape, np.int64), np.empty(predicates.columns.shape, np.int64)
        for column, ordered in enumerate(self.sorted):
            is_asked = predicates.columns == column
            start[is_asked] = np.searchsorted(ordered, predicates.lower[is_asked], "left")
            stop[is_asked] = np.searchsorted(ordered, predicates.upper[is_asked], "right")
        ranked = np.argsort(stop - start, axis=1, kind="stable")
        result = np.zeros(len(predicates), np.int64)
        for number, first in enumerate(ranked[:, 0]):
            progress.check()
            rows = self.order[predicates.columns[number, first]][start[number, first] : stop[number, first]]
            for other in ranked[number, 1:]:
                if not len(rows):
                    break
                cells = self.values[rows, predicates.columns[number, other]]
                rows = rows[(cells >= predicates.lower[number, other]) & (cells <= predicates.upper[number, other])]
            result[number] = len(rows)
        return result


def success_row(
    mode: str,
    predicates: PredicateSet,
    naive: PredicateSet,
    people: Table,
    outsiders: Table | None,
    singled: Callable[[Table, PredicateSet], float],
    confidence: float,
) -> dict[str, Any]:
    """Count the people and outsiders whom predicates of the release single out, and compare with the baseline."""
    control = None if outsiders is None else (singled(outsiders, predicates), len(predicates))
    successes, by_chance = (singled(people, predicates), len(predicates)), (singled(people, naive), len(naive))
    risk = rates.risk_columns(successes, control, by_chance, confidence)
    return {"mode": mode, "attacks": len(predicates), "rows_looked_at": len(people), **risk}


def univariate(source: Sorted, is_ordered: Bools, attacks: int, random: np.random.Generator) -> Predicates:
    """Make predicates on one column that hold for one released row: values that occur once, extremes, the only NULL."""
    columns, lower, upper = [], [], []
    for column, ordered in enumerate(source.sorted):
        values, counts = np.unique(ordered, return_counts=True)
        once = values[counts == 1]
        low, high = once, once
        if is_ordered[column]:
            present = values[values < _MISSING]
            for end, is_lowest in ((present[:1], True), (present[-1:], False)):
                single = end[np.isin(end, once)]
                low = np.concatenate([low, np.full(len(single), -_LARGEST) if is_lowest else single])
                high = np.concatenate([high, single if is_lowest else np.full(len(single), _LARGEST)])
        columns.append(np.full(len(low), column))
        lower.append(low)
        upper.append(high)
    chosen = random.permutation(sum(map(len, columns)))[:attacks]
    return Predicates(*(np.concatenate(parts)[chosen, None] for parts in (columns, lower, upper)))


def multivariate(
    source: Sorted, is_ordered: Bools, attacks: int, width: int, random: np.random.Generator
) -> Predicates:
    """Make different predicates on ``width`` columns that hold for one released row, from random released rows."""
    count, total = source.values.shape
    medians = np.array([_median(ordered) for ordered in source.sorted])
    kept: list[Predicates] = []
    seen: set[bytes] = set()
    for _ in range(_ATTEMPTS):
        rows = random.integers(count, size=attacks)
        columns = np.sort(np.argsort(random.random((attacks, total)), axis=1)[:, :width], axis=1)
        cells = source.values[rows[:, None], columns]
        ranged = is_ordered[columns] & (cells < _MISSING)
        above = cells > medians[columns]
        predicates = Predicates(
            columns, np.where(ranged & ~above, -_LARGEST, cells), np.where(ranged & above, _LARGEST, cells)
        )
        predicates = predicates[source.counts(predicates) == 1]
        names = np.hstack([predicates.columns.astype(np.float64), predicates.lower, predicates.upper])
        fresh = np.zeros(len(predicates), bool)
        for number, name in enumerate(names):
            if (text := name.tobytes()) not in seen:
                seen.add(text)
                fresh[number] = True
        kept.append(predicates[fresh])
        if len(seen) >= attacks:
            break
    parts = ([getattr(batch, name) for batch in kept] for name in ("columns", "lower", "upper"))
    return Predicates(*(np.concatenate(part) for part in parts))[:attacks]


def _naive(source: Sorted, is_ordered: Bools, attacks: int, width: int, random: np.random.Generator) -> Predicates:
    """Make predicates that know only which values occur: random columns, values and, for numbers, directions."""
    total = source.values.shape[1]
    columns = np.argsort(random.random((attacks, total)), axis=1)[:, :width]
    cells = np.empty(columns.shape)
    for column, ordered in enumerate(source.sorted):
        is_asked = columns == column
        cells[is_asked] = random.choice(np.unique(ordered), size=int(is_asked.sum()))
    ranged = is_ordered[columns] & (cells < _MISSING)
    direction = random.integers(3, size=columns.shape)  # at most, at least, equal
    return Predicates(
        columns,
        np.where(ranged & (direction == 0), -_LARGEST, cells),
        np.where(ranged & (direction == 1), _LARGEST, cells),
    )


def _successes(table: Sorted, predicates: Predicates) -> float:
    return float(np.count_nonzero(table.counts(predicates) == 1))


def _median(ordered: Floats) -> float:
    present = ordered[: np.searchsorted(ordered, _MISSING)]
    return float(np.median(present)) if len(present) else 0.0


def _refuse(original: Floats, released: Floats, control: Floats | None, is_ordered: Bools) -> None:
    tables = {"original": original, "release": released} | ({} if control is None else {"control group": control})
    for name, table in tables.items():
        if not len(table):
            raise ValueError(f"the {name} has no rows to look at.")
        if table.shape[1] != len(is_ordered):
            raise ValueError(f"the {name} must have the same columns as the others.")
        if np.isinf(table).any():
            raise ValueError(f"the {name} has values that are infinite; leave them out.")


_COLUMN_SETS = 50  # drawn: what a release says once is looked for in each of them


@check_by(SINGLING_OUT_RISK)
def cell_singling_out_risk(
    original: Floats,
    released: Sequence[CellColumn],
    control: Floats | None,
    random: np.random.Generator,
    *,
    attacks: int = 2000,
    predicate_columns: int = 3,
    confidence: float = 0.95,
) -> pa.Table:
    """Make predicates out of cells that one released row has, and count how many single out a person of the original.

    As `singling_out.singling_out_risk`, with people in the numbers of the cells. ``univariate`` predicates are cells
    that one released row has, ``multivariate`` ones the cells of several random columns of a random released row, if no
    other row has all of them. A range beyond an extreme, as for values, would not say more than an open cell does.
    """
    size = len(original) if control is None else min(len(original), len(control))
    people = original[sample_rows(size, len(original), random)]
    outsiders = None if control is None else control[sample_rows(size, len(control), random)]
    labels = np.column_stack([column.codes for column in released])
    width = min(predicate_columns, len(released))

    def count_singled(table: Floats, predicates: Ints) -> float:
        return float(np.count_nonzero(count_members(predicates, released, table)[0] == 1))

    rows = []
    for mode, predicates, asked in (
        ("univariate", _univariate(labels, attacks, random), 1),
        ("multivariate", _multivariate(labels, attacks, width, random), width),
    ):
        naive = _draw_naive_cells(labels, attacks, asked, random)
        rows.append(success_row(mode, predicates, naive, people, outsiders, count_singled, confidence))
    return report_rows(rows, SINGLING_OUT_RISK.schema)


def _univariate(labels: Ints, attacks: int, random: np.random.Generator) -> Ints:
    """Choose cells of one column that one released row has; a predicate is a row, -1 where a column is not asked."""
    once = [(place, cell) for place, cells in enumerate(labels.T) for cell in np.flatnonzero(np.bincount(cells) == 1)]
    chosen = [once[index] for index in random.permutation(len(once))[:attacks]]
    predicates = np.full((len(chosen), labels.shape[1]), -1)
    for row, (place, cell) in zip(predicates, chosen, strict=True):
        row[place] = cell
    return predicates


def _multivariate(labels: Ints, attacks: int, width: int, random: np.random.Generator) -> Ints:
    """Choose sets of columns and rows, whose cells in these columns no other released row has."""
    columns = labels.shape[1]
    sets = {tuple(sorted(random.choice(columns, width, replace=False).tolist())) for _ in range(_COLUMN_SETS)}
    batches = []
    for places in sorted(sets):
        rows = labels[:, places].astype(np.float64)
        distinct = find_distinct_rows(rows)
        alone = distinct.firsts[distinct.counts == 1]
        predicates = np.full((len(alone), columns), -1)
        predicates[:, places] = labels[np.ix_(alone, places)]
        batches.append(predicates[random.permutation(len(alone))[:attacks]])
    every = np.concatenate(batches)
    return every[random.permutation(len(every))[:attacks]]


def _draw_naive_cells(labels: Ints, attacks: int, width: int, random: np.random.Generator) -> Ints:
    """Make predicates that know only which cells occur: random columns, and a random cell in each of them."""
    columns = np.argsort(random.random((attacks, labels.shape[1])), axis=1)[:, :width]
    predicates = np.full((attacks, labels.shape[1]), -1)
    most = labels.max(axis=0) + 1
    cells = np.floor(random.random(columns.shape) * most[columns]).astype(np.int64)
    np.put_along_axis(predicates, columns, cells, axis=1)
    return predicates

"""Singling out by the cells of a coarse release: whether what a released row says holds for exactly one person."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from duckanon._core.common.arguments import checked_by
from duckanon._core.common.arrays import Floats, Ints, sampled_rows
from duckanon._core.common.declare import report_rows
from duckanon._core.privacy.cells import CellColumn, count_held
from duckanon._core.privacy.equal_rows import distinct_rows
from duckanon._measure.attacks.declared import SINGLING_OUT_RISK
from duckanon._measure.attacks.singling_out import success_row

_COLUMN_SETS = 50  # drawn: what a release says once is looked for in each of them


@checked_by(SINGLING_OUT_RISK)
def singling_out_risk(
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
    people = original[sampled_rows(size, len(original), random)]
    outsiders = None if control is None else control[sampled_rows(size, len(control), random)]
    labels = np.column_stack([column.codes for column in released])
    width = min(predicate_columns, len(released))

    def singled(table: Floats, predicates: Ints) -> float:
        return float(np.count_nonzero(count_held(predicates, released, table)[0] == 1))

    rows = []
    for mode, made, asked in (
        ("univariate", _univariate(labels, attacks, random), 1),
        ("multivariate", _multivariate(labels, attacks, width, random), width),
    ):
        naive = _naive(labels, attacks, asked, random)
        rows.append(success_row(mode, made, naive, people, outsiders, singled, confidence))
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
    found = []
    for places in sorted(sets):
        rows = labels[:, places].astype(np.float64)
        distinct = distinct_rows(rows)
        alone = distinct.firsts[distinct.counts == 1]
        predicates = np.full((len(alone), columns), -1)
        predicates[:, places] = labels[np.ix_(alone, places)]
        found.append(predicates[random.permutation(len(alone))[:attacks]])
    every = np.concatenate(found)
    return every[random.permutation(len(every))[:attacks]]


def _naive(labels: Ints, attacks: int, width: int, random: np.random.Generator) -> Ints:
    """Make predicates that know only which cells occur: random columns, and a random cell in each of them."""
    columns = np.argsort(random.random((attacks, labels.shape[1])), axis=1)[:, :width]
    predicates = np.full((attacks, labels.shape[1]), -1)
    most = labels.max(axis=0) + 1
    cells = np.floor(random.random(columns.shape) * most[columns]).astype(np.int64)
    np.put_along_axis(predicates, columns, cells, axis=1)
    return predicates

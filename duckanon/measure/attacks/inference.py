"""Attribute inference: how well a release tells secret columns of a person to those who know others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from duckanon.common.arguments import Number, checked
from duckanon.common.arrays import Floats, Ints
from duckanon.common.reports import report_rows
from duckanon.measure.attacks import rates
from duckanon.measure.declared import LINKAGE_RISK
from duckanon.privacy.equal_rows import distinct_rows
from duckanon.privacy.ties import tied_nearest


@dataclass(frozen=True)
class _Links:
    """Pairs of a record and a class of released rows with the same known columns that is nearest to it."""

    records: int
    owners: Ints
    classes: Ints


@checked(tolerance=Number(0, 1))
def linkage_risk(
    original: Floats,
    released: Floats,
    control: Floats | None,
    known: Sequence[slice],
    secret: Mapping[str, slice],
    *,
    tolerance: float = 0.05,
    confidence: float = 0.95,
) -> pa.Table:
    """Guess secret columns of people from the released rows that are nearest to them in the known columns.

    Parameters
    ----------
    original, released
        Matrices of the same width, encoded alike.
    control
        People from the same population who are not in the original; None: there are none, and the baseline is a guess
        that knows nothing, the secret of a released row drawn at random. A part of the original cannot serve: the
        release was made from it.
    known
        The matrix columns of the known source columns, one slice each.
    secret
        The same for the secret ones, by name. A column that is also known is guessed from the other known ones.
    tolerance
        A guessed number is right within this share of the range that the originals have.
    confidence
        Of the interval of the risk.

    Returns
    -------
    pyarrow.Table
        One row per secret: how often the guess is right for originals (``success``), for control, and for the guess
        that knows nothing; ``risk`` = (success - baseline) / (1 - baseline) with its interval, where the baseline is
        control, or the naive guess without one. Rates are plain shares, the risk is computed from the middles of
        their Wilson intervals and cut at 0.

    Raises
    ------
    ValueError
        For tables that do not fit each other or have no rows, and a tolerance that is no share.

    Notes
    -----
    The inference attack of Giomi et al., A unified framework for quantifying privacy risk in synthetic data, 2022,
    with the distance of Thesis, Equation 3.1. Where several released rows are equally near, the attacker draws one of
    them, and the attack counts as the share of them that is right. A category is right where it is the same, a NULL
    where both are NULL.
    """
    _refuse(original, released, control, known)
    rows = []
    for name, columns in secret.items():
        known_columns = [np.arange(group.start, group.stop) for group in known if group != columns]
        seen = np.concatenate([np.empty(0, np.int64), *known_columns])
        firsts, codes, _ = distinct_rows(released[:, seen])
        points = released[np.ix_(firsts, seen)]
        answers = _Answers(released[:, columns], codes, tolerance * np.ptp(original[:, columns.start]))
        hits = answers.right(original[:, columns], _link(original[:, seen], points))
        everyone = _Links(len(original), np.arange(len(original)), np.zeros(len(original), np.int64))
        blind = _Answers(released[:, columns], np.zeros(len(released), np.int64), answers.reach)
        naive = blind.right(original[:, columns], everyone)
        outside = None if control is None else answers.right(control[:, columns], _link(control[:, seen], points))
        baseline = naive if outside is None else outside
        risk = rates.excess_risk((float(hits.sum()), len(hits)), (float(baseline.sum()), len(baseline)), confidence)
        rows.append(
            {
                "secret": name,
                "attacks": len(hits),
                "success": float(hits.mean()),
                "control_attacks": 0 if outside is None else len(outside),
                "control_success": None if outside is None else float(outside.mean()),
                "naive_success": float(naive.mean()),
                "risk": risk.value,
                "risk_lower": risk.lower,
                "risk_upper": risk.upper,
            }
        )
    return report_rows(rows, LINKAGE_RISK)


class _Answers:
    """The secrets of the released rows, sorted by class, so that the right ones are counted without a scan."""

    def __init__(self, secrets: Floats, classes: Ints, reach: float) -> None:
        # A number is one column, and one more says whether it is missing; of a category all columns are -1 or 1. So the
        # first column is compared within the tolerance, the others exactly.
        self.reach = reach
        self._first, self._rest, _ = distinct_rows(secrets[:, 1:])
        self._kinds = {secrets[first, 1:].tobytes(): code for code, first in enumerate(self._first)}
        self._sizes = np.bincount(classes)
        groups = classes * len(self._first) + self._rest
        order = np.lexsort((secrets[:, 0], groups))
        self._groups, self._values = groups[order], secrets[order, 0]

    def right(self, secrets: Floats, links: _Links) -> Floats:
        """Return for every record the share of its nearest rows whose secret is its own."""
        firsts, codes, _ = distinct_rows(secrets[:, 1:])
        kinds = np.array([self._kinds.get(secrets[first, 1:].tobytes(), -1) for first in firsts])[codes]
        kind, value = kinds[links.owners], secrets[links.owners, 0]
        group = np.where(kind < 0, -1, links.classes * len(self._first) + kind)
        slack = 1e-9 * max(1.0, self.reach)
        right = self._count(group, value + self.reach + slack) - self._count(group, value - self.reach - slack)
        hits = np.bincount(links.owners, weights=right, minlength=links.records)
        return hits / np.bincount(links.owners, weights=self._sizes[links.classes], minlength=links.records)

    def _count(self, group: Ints, value: Floats) -> Ints:
        """Count the released secrets that come before a group and a value, by sorting both together."""
        groups, values = np.concatenate([self._groups, group]), np.concatenate([self._values, value])
        is_asked = np.arange(len(groups)) >= len(self._groups)
        order = np.lexsort((is_asked, values, groups))
        before = np.empty(len(order), np.int64)
        before[order] = np.cumsum(~is_asked[order])
        return before[len(self._groups) :]


def _link(queries: Floats, points: Floats) -> _Links:
    _, owners, classes = tied_nearest(queries, points)
    return _Links(len(queries), owners, classes)


def _refuse(original: Floats, released: Floats, control: Floats | None, known: Sequence[slice]) -> None:
    tables = {"original": original, "release": released} | ({} if control is None else {"control group": control})
    for name, table in tables.items():
        if not len(table):
            raise ValueError(f"the {name} has no rows to look at.")
        if table.shape[1] != original.shape[1]:
            raise ValueError(f"the {name} must have the same columns as the original.")
    if not known:
        raise ValueError("at least one column must be known to the attacker; got none.")

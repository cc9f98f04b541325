"""Attribute inference: how well a release tells secret columns of a person to those who know others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from duckanon._core.common.arguments import check_by
from duckanon._core.common.arrays import Floats, Ints
from duckanon._core.common.declare import report_rows
from duckanon._core.common.row_keys import find_distinct_rows
from duckanon._core.privacy.cells import CellColumn
from duckanon._core.privacy.neighbours import SAME_FACTOR, find_tied_nearest
from duckanon._measure.attacks import rates
from duckanon._measure.attacks.declared import LINKAGE_RISK

_PAIRS = 1 << 23  # of a person and a class of released rows that are looked at in one go


@dataclass(frozen=True)
class KnownCells:
    """Cells of known columns, and people as numbers of cells, one column for each known one."""

    columns: Mapping[int, CellColumn]  # the coarse ones among the known columns, by their place among these
    original: Floats
    control: Floats | None


@dataclass(frozen=True)
class _Links:
    """Pairs of a record and a class of released rows with the same known columns that is nearest to it."""

    records: int
    owners: Ints
    classes: Ints


@check_by(LINKAGE_RISK)
def linkage_risk(
    original: Floats,
    released: Floats,
    control: Floats | None,
    known: Sequence[slice],
    secret: Mapping[str, slice],
    *,
    tolerance: float = 0.05,
    confidence: float = 0.95,
    cells: KnownCells | None = None,
) -> pa.Table:
    """Guess secret columns of people from the released rows that are nearest to them in the known columns.

    The inference attack of Giomi et al., A unified framework for quantifying privacy risk in synthetic data, 2022, with
    the distance of Thesis, Equation 3.1. Where several released rows are equally near, the attacker draws one of them,
    and the attack counts as the share of them that is right. A category is right where it is the same, a NULL where
    both are NULL, a number within `tolerance` times the range that the originals have.

    The matrices are encoded alike; `known` and `secret` are the slices of source columns in them. A secret that is also
    known is guessed from the other known ones. A part of the original cannot serve as `control`, which are people from
    the same population who are not in it: the release was made from it. Without control the baseline is a guess that
    knows nothing, the secret of a released row drawn at random. In a coarse release, with `cells`, an attacker looks
    among the rows whose cells hold the known values, and elsewhere only where there is none.

    Returns:
        One row per secret: how often the guess is right for originals (``success``), for control, and for the guess
        that knows nothing; ``risk`` = (success - baseline) / (1 - baseline) with its interval. Rates are plain shares,
        the risk is computed from the middles of their Wilson intervals and cut at 0.
    """
    _refuse(original, released, control, known)
    rows = []
    for name, columns in secret.items():
        places = [place for place, group in enumerate(known) if group != columns]
        known_columns = [np.arange(known[place].start, known[place].stop) for place in places]
        seen = np.concatenate([np.empty(0, np.int64), *known_columns])
        firsts, codes, _ = find_distinct_rows(released[:, seen])
        points = released[np.ix_(firsts, seen)]
        holding = None if cells is None else _Holding(cells, places, firsts)
        answers = _Answers(released[:, columns], codes, tolerance * np.ptp(original[:, columns.start]))
        people = None if cells is None else cells.original
        hits = answers.right(original[:, columns], _link(original[:, seen], points, people, holding))
        everyone = _Links(len(original), np.arange(len(original)), np.zeros(len(original), np.int64))
        blind = _Answers(released[:, columns], np.zeros(len(released), np.int64), answers.reach)
        naive = blind.right(original[:, columns], everyone)
        outside = None
        if control is not None:
            apart = None if cells is None else cells.control
            outside = answers.right(control[:, columns], _link(control[:, seen], points, apart, holding))
        successes, by_chance = (float(hits.sum()), len(hits)), (float(naive.sum()), len(naive))
        of_control = None if outside is None else (float(outside.sum()), len(outside))
        risk = rates.risk_columns(successes, of_control, by_chance, confidence)
        control_attacks = 0 if outside is None else len(outside)
        rows.append({"secret": name, "attacks": len(hits), "control_attacks": control_attacks, **risk})
    return report_rows(rows, LINKAGE_RISK.schema)


class _Answers:
    """The secrets of the released rows, sorted by class, so that the right ones are counted without a scan."""

    def __init__(self, secrets: Floats, classes: Ints, reach: float) -> None:
        # A number is one column, and one more says whether it is missing; of a category all columns are -1 or 1. So the
        # first column is compared within the tolerance, the others exactly.
        self.reach = reach
        self._first, self._rest, _ = find_distinct_rows(secrets[:, 1:])
        self._kinds = {secrets[first, 1:].tobytes(): code for code, first in enumerate(self._first)}
        self._sizes = np.bincount(classes)
        groups = classes * len(self._first) + self._rest
        order = np.lexsort((secrets[:, 0], groups))
        self._groups, self._values = groups[order], secrets[order, 0]

    def right(self, secrets: Floats, links: _Links) -> Floats:
        """Return for every record the share of its nearest rows whose secret is its own."""
        firsts, codes, _ = find_distinct_rows(secrets[:, 1:])
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


class _Holding:
    """The classes of released rows that hold the known values of people in all their cells."""

    def __init__(self, cells: KnownCells, places: Sequence[int], firsts: Ints) -> None:
        self._columns = [(place, cells.columns[place]) for place in places if place in cells.columns]
        self._labels = [np.unique(column.codes[firsts], return_inverse=True) for _, column in self._columns]
        self._classes = len(firsts)

    def pairs(self, people: Floats) -> tuple[Ints, Ints]:
        """Return the pairs of a person and a class that holds what is known of the person."""
        owners, classes = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        step = max(1, _PAIRS // self._classes)
        for start in range(0, len(people), step):
            part = people[start : start + step]
            held = np.ones((len(part), self._classes), bool)
            for (place, column), (labels, label_of_class) in zip(self._columns, self._labels, strict=True):
                held &= column.holds(labels, part[:, place]).T[:, label_of_class.reshape(-1)]
            owner, holder = np.nonzero(held)
            owners.append(owner + start)
            classes.append(holder)
        return np.concatenate(owners), np.concatenate(classes)


def _link(queries: Floats, points: Floats, people: Floats | None, holding: _Holding | None) -> _Links:
    """Link each query with its nearest points, of those that hold it where some do."""
    if people is None or holding is None:
        _, owners, classes = find_tied_nearest(queries, points)
        return _Links(len(queries), owners, classes)
    owners, classes = holding.pairs(people)
    distances = np.empty(len(owners))
    for start in range(0, len(owners), _PAIRS // 8):
        part = slice(start, start + _PAIRS // 8)
        distances[part] = np.square(queries[owners[part]] - points[classes[part]]).sum(axis=1)
    nearest = np.full(len(queries), np.inf)
    np.minimum.at(nearest, owners, distances)
    is_nearest = distances <= nearest[owners] * SAME_FACTOR
    owners, classes = owners[is_nearest], classes[is_nearest]
    nowhere = np.flatnonzero(np.isinf(nearest))
    if len(nowhere):
        _, lost, tied_classes = find_tied_nearest(queries[nowhere], points)
        owners, classes = np.concatenate([owners, nowhere[lost]]), np.concatenate([classes, tied_classes])
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

"""Controlled rounding: counts of people become multiples of k, and margins stay the sums of their parts.

Each inner cell has a secret number from 0 to 1, which a key makes of its labels. By itself a cell is rounded up if that
number is below the share of k that it has beyond a multiple, so that rounding has no bias. Cells of which the number is
near that share may be rounded the other way, so that margins deviate little; the others follow their number alone. A
linear program chooses them, which has whole numbers by itself in tables of two columns; cell after cell in large ones.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from duckanon._core.common import progress
from duckanon._core.common.arrays import Floats, Ints
from duckanon._methods.tables.cells import TableCells, find_memberships

NEAR = 0.9
"""The share of the cells that margins may have rounded the other way: a tenth follows its secret number alone, so that
nobody who knows all other cells can exclude either way. With three quarters a hundredth of the margins of small tables
deviates by k or more, with nine tenths a thousandth."""

OF_MARGINS, FIXED = 50.0, 2.0
"""The cost of a margin that deviates by k more, and that of a cell whose rounding is fixed; others cost 1 at most."""

MOST_SEARCHED, MOST_PROGRAMMED, MOST_IN_NETWORK = 7_500, 40_000, 2_000_000
"""Entries of cells in margins up to which whole numbers are searched (a few seconds), up to which a linear
program is tried, whose solution has whole numbers often (a second), and up to which the program of a network is solved,
whose solution always has (75,000 cells take a second)."""

POWERS = (2, 4, 8)
"""Of deviations whose sum each pass over a large table makes smaller: the last one is about the largest."""


@dataclass(frozen=True)
class RoundedCounts:
    """Rounded counts by cells, and what they deviate from the true ones at most."""

    people: Ints
    deviation: Ints


def round_cells(cells: TableCells, k: int, secret: str, before: Floats | None = None) -> RoundedCounts:
    """Round all cells to multiples of k; `before` has the numbers of a former release by cells."""
    if cells.overlaps:
        raise ValueError(
            "method := 'round' must have people in one inner cell each, since margins are sums; got some in several: "
            "method := 'suppress' counts them."
        )
    inner, member = np.flatnonzero(cells.is_inner), find_memberships(cells)
    floor, rest = np.divmod(cells.sums.people[inner], k)
    is_open = rest > 0
    margins = np.flatnonzero(cells.is_shown & ~cells.is_inner)
    share = rest / k
    cost = _price_rounding(
        derive_secret_numbers(cells, inner, secret), share, None if before is None else before[inner] / k - floor
    )
    in_margins = member[margins][:, np.flatnonzero(is_open)].tocsr()
    target = cells.sums.people[margins] / k - member[margins] @ floor
    up = np.zeros(len(inner), dtype=np.int64)
    most = MOST_IN_NETWORK if is_network(cells) else MOST_PROGRAMMED
    solution = _solve_program(in_margins, target, cost[is_open]) if in_margins.nnz <= most else None
    up[is_open] = _round_in_turn(in_margins, share[is_open], cost[is_open]) if solution is None else solution
    people = np.asarray(member @ (floor + up), dtype=np.int64) * k
    # published as a multiple of k, from 2 k on: the exact deviation would narrow down the cells of a small table
    most = max(2, int(np.abs(people - cells.sums.people)[margins].max(initial=0)) // k + 1)
    return RoundedCounts(people, np.where(cells.is_inner, k - 1, most * k - 1))


def derive_secret_numbers(cells: TableCells, inner: Ints, secret: str) -> Floats:
    """Return a number from 0 to 1 for each inner cell, the same for the same labels in every table of these columns."""
    key = hashlib.sha256(secret.encode()).digest()
    order = sorted(range(len(cells.dimensions)), key=lambda index: cells.dimensions[index].name.lower())
    dimensions = [cells.dimensions[index] for index in order]
    texts = [[json.dumps(label) for label in dimension.labels] for dimension in dimensions]
    start = hashlib.blake2b(json.dumps([dimension.name.lower() for dimension in dimensions]).encode(), key=key)
    numbers = np.empty(len(inner))
    for row, codes in enumerate(cells.coordinates[inner][:, order].tolist()):
        digest = start.copy()
        digest.update(",".join(text[code] for text, code in zip(texts, codes, strict=True)).encode())
        numbers[row] = int.from_bytes(digest.digest()[:6], "big") / 2.0**48
        if row % 10_000 == 0:
            progress.check()
    return numbers


def _price_rounding(number: Floats, share: Floats, before: Floats | None) -> Floats:
    """Return what rounding a cell up costs more than rounding it down.

    A cell that was rounded before stays as it was while its number lets it: an attacker who sees both ways of a cell
    that did not change knows its count better. It moves on at a count that only its number tells, so that an attacker
    who knows who joined does not learn the count from that.
    """
    is_near = (number >= share * (1 - NEAR)) & (number < share + NEAR * (1 - share))
    cost = np.where(is_near, number - share, np.where(number < share, -FIXED, FIXED))
    if before is None:
        return cost
    return np.where(is_near & (before == 1), -FIXED, np.where(is_near & (before == 0), FIXED, cost))


def is_network(cells: TableCells) -> bool:
    """Tell whether the vertices of its linear program have whole numbers: one or two columns, one with a hierarchy."""
    is_tree = all(sum(len(parts) for _, parts in column.relations) == column.total for column in cells.dimensions)
    deep = sum(len(column.relations) > 1 for column in cells.dimensions)
    return is_tree and deep <= 1 and len(cells.dimensions) <= 2 and bool(cells.is_shown.all())


def _solve_program(in_margins: sparse.csr_matrix, target: Floats, cost: Floats) -> Ints | None:
    """Round at the least cost with all margins within k, as far as that is possible; None where it takes too long."""
    margins, count = in_margins.shape
    if count == 0 or margins == 0:
        return (cost < 0).astype(np.int64)
    target = np.where(np.abs(target - np.rint(target)) < 1e-9, np.rint(target), target)
    beyond = sparse.identity(margins)
    matrix = sparse.hstack([in_margins, -beyond, beyond], format="csc")
    lower, upper = (cost <= -FIXED).astype(np.float64), (cost < FIXED).astype(np.float64)
    ends = Bounds(np.pad(lower, (0, 2 * margins)), np.append(upper, np.full(2 * margins, np.inf)))
    for is_whole in (0, 1):
        progress.check()
        if is_whole and in_margins.nnz > MOST_SEARCHED:
            return None
        solved = milp(
            np.append(cost, np.full(2 * margins, OF_MARGINS)),
            constraints=LinearConstraint(matrix, np.floor(target), np.ceil(target)),
            bounds=ends,
            integrality=np.append(np.full(count, is_whole), np.zeros(2 * margins)),
            options={"node_limit": 10, "mip_rel_gap": 0.02},
        )
        if solved.x is not None and np.abs(solved.x[:count] - np.rint(solved.x[:count])).max() < 1e-6:
            return np.asarray(np.rint(solved.x[:count]), dtype=np.int64)
    return None


def _round_in_turn(in_margins: sparse.csr_matrix, share: Floats, cost: Floats) -> Ints:
    """Round one cell after the other, so that the squares of its margins' deviations stay small, then better.

    Cells that are not near come first; the others make up for them.
    """
    by_cell = in_margins.T.tocsr()
    starts, margins_of = by_cell.indptr.tolist(), by_cell.indices
    deviation, up = np.zeros(in_margins.shape[0]), np.zeros(len(cost), dtype=np.int64)
    order = np.argsort(-np.abs(cost), kind="stable")
    for turn, cell in enumerate(order.tolist()):
        margins = margins_of[starts[cell] : starts[cell + 1]]
        before = deviation[margins]
        worth = 2 * float(before.sum()) + len(margins) * (1 - 2 * share[cell] + 2 * cost[cell])
        up[cell] = worth < 0 if abs(cost[cell]) < FIXED else cost[cell] < 0
        deviation[margins] = before + (up[cell] - share[cell])
        if turn % 10_000 == 0:
            progress.check()
    near = order[np.abs(cost[order]) < FIXED][::-1].tolist()
    for power in POWERS:
        for turn, cell in enumerate(near):
            margins = margins_of[starts[cell] : starts[cell + 1]]
            now = deviation[margins]
            then = now + (1 - 2 * up[cell])
            if float(((then * then) ** (power // 2)).sum()) < float(((now * now) ** (power // 2)).sum()):
                deviation[margins], up[cell] = then, 1 - up[cell]
            if turn % 10_000 == 0:
                progress.check()
    return up

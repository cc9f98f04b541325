"""Cutting a large table into parts that fit the processor's cache, each of which becomes boxes on its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from duckanon.boxes.cuts import candidates
from duckanon.boxes.diversity import diverse
from duckanon.boxes.nodes import Points, midway, root_nodes
from duckanon.boxes.search import Rules
from duckanon.common.arrays import Bools, Floats, Ints
from duckanon.common.people import people_in

PART = 1 << 17
"""Records of a part at most: its columns and orders stay in the cache."""
_SAMPLE = 1 << 13  # records that decide how a larger part is cut: its quantiles are right to within a percent


class Part(NamedTuple):
    """Records, ascending, and the cell they lie in; `whole` if nothing separates them."""

    records: Ints
    lower: Floats
    upper: Floats
    whole: bool


def parts(points: Points, rules: Rules) -> Iterator[Part]:
    """Cut the records, one large node at a time, until no part has more than `PART` records.

    The column and the share of leaves on each side are chosen on an even sample, the cut is then made on all records.

    Parameters
    ----------
    points : Points
        All records.
    rules : Rules
        What a box must hold.

    Yields
    ------
    Part
        Records that become boxes on their own.
    """
    shaping = range(points.shaping)
    lower = np.array([points.values[j].min() for j in shaping])
    upper = np.array([points.values[j].max() for j in shaping])
    waiting = [Part(np.arange(len(points.values[0])), lower, upper, False)]
    while waiting:
        part = waiting.pop()
        size = len(part.records)
        if size <= PART or size < 2 * rules.k:
            yield part
            continue
        cut = _cut(points, part, rules)
        if cut is None:
            yield part._replace(whole=True)
            continue
        column, left = cut
        values = points.values[column].take(part.records)
        upper, lower = part.upper.copy(), part.lower.copy()
        upper[column] = lower[column] = midway(values.compress(left).max(), values.compress(~left).min())
        waiting.append(Part(part.records.compress(~left), lower, part.upper, False))
        waiting.append(Part(part.records.compress(left), part.lower, upper, False))


def _cut(points: Points, part: Part, rules: Rules) -> tuple[int, Bools] | None:
    """Find a column and the records of the left side; None if nothing separates the records."""
    size = len(part.records)
    step = -(-size // _SAMPLE)
    sample = points._replace(people=None).take(part.records[::step])
    count = len(sample.values[0])
    nodes = root_nodes(sample, np.array([count]), part.lower[None], part.upper[None])
    # Only shares of the sample are of interest, so k plays no part in it unless the node has few leaves.
    k = max(1, min(rules.k // step, count // 64))
    options = candidates(sample, nodes, k, scale=step * k / rules.k, uneven=rules.uneven, shares=rules.shares)
    for choice in np.argsort(options.scores[0], kind="stable"):
        column, cut = int(options.columns[choice]), int(options.cuts[0, choice])
        values = points.values[column].take(part.records)
        order = nodes.orders[column]
        below, above = sample.values[column][order[cut - 1]], sample.values[column][order[cut]]
        # The sample's cut is good enough, as a part has thousands of leaves; where it falls on ties it is not.
        left = values <= below if below < above else _left(values, round(cut / count * size), rules.k)
        if left is not None and _both_hold(points, part, rules, left):
            return column, left
    return None if points.people is None else _exact_cut(points, part, rules)


def _exact_cut(points: Points, part: Part, rules: Rules) -> tuple[int, Bools] | None:
    """Find a cut that leaves enough people on both sides where none of the sample's does: few people, or few places."""
    everything = points.take(part.records)
    nodes = root_nodes(everything, np.array([len(part.records)]), part.lower[None], part.upper[None])
    options = candidates(everything, nodes, rules.k, sampled=True, uneven=rules.uneven, shares=rules.shares)
    for choice in np.argsort(options.scores[0], kind="stable"):
        column = int(options.columns[choice])
        left = np.ones(len(part.records), dtype=np.bool_)
        left[nodes.orders[column][options.cuts[0, choice] :]] = False
        if np.isfinite(options.scores[0, choice]) and _both_hold(points, part, rules, left):
            return column, left
    return None


def _both_hold(points: Points, part: Part, rules: Rules, left: Bools) -> bool:
    """Tell whether both sides of a cut have enough records, or people, and different values."""
    people = None if points.people is None else points.people.take(part.records)
    if people_in(left.astype(np.int64), people, 2).min() < rules.k:
        return False
    return rules.l == 1 or _both_diverse(points, part, rules, left)


def _left(values: Floats, wanted: int, k: int) -> Bools | None:
    """Cut where neighbours differ, as near as can be to the wanted size, with at least k records on both sides."""
    size = len(values)
    value = float(np.partition(values, wanted)[wanted])
    lesser: Bools = values < value
    up_to: Bools = values <= value
    left, right = np.count_nonzero(lesser), np.count_nonzero(up_to)
    fits_left, fits_right = k <= left <= size - k, k <= right <= size - k
    if fits_left and (not fits_right or wanted - left <= right - wanted):
        return lesser
    return up_to if fits_right else None


def _both_diverse(points: Points, part: Part, rules: Rules, left: Bools) -> bool:
    for chosen in (left, ~left):
        side = points.take(part.records.compress(chosen))
        count = len(side.values[0])
        orders = [np.argsort(values) for values in side.values]
        if not diverse(side.values, orders, np.array([0]), np.array([count]), rules.l, rules.epsilon).all():
            return False
    return True

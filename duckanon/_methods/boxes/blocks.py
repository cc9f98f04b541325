"""Cutting a large table into blocks that fit the processor's cache, each of which becomes boxes on its own.

A cut is chosen on an even sample of 8,192 records, whose quantiles are right to within a percent, and made on all
records. Where the sample's cut leaves too few people on a side, the cut is chosen on all records.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from duckanon._core.common.arrays import Bools, Floats, Ints
from duckanon._core.common.people import count_people
from duckanon._methods.boxes.box_search import BoxRules
from duckanon._methods.boxes.cuts import score_cuts
from duckanon._methods.boxes.nodes import Points, find_middle, is_diverse, make_roots

BLOCK = 1 << 17
"""Records of a block at most: its columns and orders stay in the cache."""
_SAMPLE = 1 << 13  # records that decide how a larger block is cut: its quantiles are right to within a percent


class Block(NamedTuple):
    """Records, ascending, and the cell they lie in; `whole` if nothing separates them."""

    records: Ints
    lower: Floats
    upper: Floats
    whole: bool


def cut_into_blocks(points: Points, rules: BoxRules, strata: Ints | None = None) -> Iterator[Block]:
    """Cut the records, one large node at a time, until no block has more than `BLOCK`; each becomes boxes on its own.

    The column and the share of leaves on each side are chosen on an even sample, the cut is then made on all records.
    """
    shaping = range(points.shaping)
    lower = np.array([points.ends(j)[0].min() for j in shaping])
    upper = np.array([points.ends(j)[1].max() for j in shaping])
    rows = np.arange(len(points.values[0])) if strata is None else np.argsort(strata, kind="stable")
    by_stratum = [rows] if strata is None else np.split(rows, np.flatnonzero(np.diff(strata[rows])) + 1)
    waiting = [Block(records, lower, upper, False) for records in reversed(by_stratum)]
    while waiting:
        block = waiting.pop()
        size = len(block.records)
        if size <= BLOCK or size < 2 * rules.k:
            yield block
            continue
        cut = find_best_cut(points, block, rules)
        if cut is None:
            yield block._replace(whole=True)
            continue
        column, left = cut
        below, above = (end.take(block.records) for end in points.ends(column))
        upper, lower = block.upper.copy(), block.lower.copy()
        upper[column] = lower[column] = find_middle(above.compress(left).max(), below.compress(~left).min())
        waiting.append(Block(block.records.compress(~left), lower, block.upper, False))
        waiting.append(Block(block.records.compress(left), block.lower, upper, False))


def find_best_cut(points: Points, block: Block, rules: BoxRules) -> tuple[int, Bools] | None:
    """Find a column and the records of the left side; None if nothing separates the records."""
    size = len(block.records)
    step = -(-size // _SAMPLE)
    sample = points._replace(people=None).take(block.records[::step])
    count = len(sample.values[0])
    nodes = make_roots(sample, np.array([count]), block.lower[None], block.upper[None])
    # Only shares of the sample are of interest, so k plays no role in it unless the node has few leaves.
    k = max(1, min(rules.k // step, count // 64))
    options = score_cuts(sample, nodes, k, scale=step * k / rules.k, uneven=rules.uneven, shares=rules.shares)
    for choice in np.argsort(options.scores[0], kind="stable"):
        column, cut = int(options.columns[choice]), int(options.cuts[0, choice])
        values = points.ends(column)[0].take(block.records)
        sampled = sample.ends(column)[0].take(nodes.orders[column][cut - 1 : cut + 1])
        below, above = float(sampled[0]), float(sampled[1])
        # The sample's cut is good enough, as a block has thousands of leaves; where it falls on ties it is not.
        left = values <= below if below < above else _cut_near(values, round(cut / count * size), rules.k)
        if left is not None and _is_cut_allowed(points, block, rules, left):
            return column, left
    return None if points.people is None else _find_exact_cut(points, block, rules)


def _find_exact_cut(points: Points, block: Block, rules: BoxRules) -> tuple[int, Bools] | None:
    """Find a cut that leaves enough people on both sides where the sample has none: people or values are few."""
    everything = points.take(block.records)
    nodes = make_roots(everything, np.array([len(block.records)]), block.lower[None], block.upper[None])
    options = score_cuts(everything, nodes, rules.k, sampled=True, uneven=rules.uneven, shares=rules.shares)
    for choice in np.argsort(options.scores[0], kind="stable"):
        column = int(options.columns[choice])
        left = np.ones(len(block.records), dtype=np.bool_)
        left[nodes.orders[column][options.cuts[0, choice] :]] = False
        if np.isfinite(options.scores[0, choice]) and _is_cut_allowed(points, block, rules, left):
            return column, left
    return None


def _is_cut_allowed(points: Points, block: Block, rules: BoxRules, left: Bools) -> bool:
    """Tell whether both sides of a cut have enough records, or people, and different values."""
    people = None if points.people is None else points.people.take(block.records)
    if count_people(left.astype(np.int64), people, 2).min() < rules.k:
        return False
    for chosen in (left, ~left) if rules.l > 1 else ():
        side = points.take(block.records.compress(chosen))
        everything = np.array([0]), np.array([len(side.values[0])])
        orders = [np.argsort(values) for values in side.values]
        if not is_diverse(side.values, orders, *everything, rules.l, rules.epsilon).all():
            return False
    return True


def _cut_near(values: Floats, wanted: int, k: int) -> Bools | None:
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

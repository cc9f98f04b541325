"""Boxes of a whole table: block after block, for each the best of several ways to grow them, and restarts of it.

The restarts go towards the true optimum and are never worse than one run (Accurate Boxes, Section V).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from duckanon._core.common.arrays import Floats, Ints
from duckanon._methods.boxes import blocks as table_blocks
from duckanon._methods.boxes import lookahead
from duckanon._methods.boxes.blocks import Block, blocks
from duckanon._methods.boxes.cuts import MORE_SHARES, SHARES
from duckanon._methods.boxes.nodes import Leaves, Nodes, Points, root_nodes
from duckanon._methods.boxes.search import Rules, grow, joined, joined_nodes

_LARGE = 200_000  # a table of more records is grown in one way only, with an eye on the time
_UNEVEN = 0.02  # how much better an uneven cut of a large table must be: even trees are shallow, so quick to build
_SMALL, _MIDDLING = 20_000, 50_000  # tables of at most so many records are looked into further, in two seconds
_CLOSELY = 100_000  # in a table of at most so many records everything is tried
_TRIES, _WIDE = 6, 4  # first cuts tried on nodes of three or four, and of five to eight leaves; time grows with both
# Look-ahead, look-ahead that takes off thinner tails, and plain halving.  The first wins among equals.
_PORTFOLIO = (SHARES, MORE_SHARES, SHARES[:1])
# Leaves of the subtrees that are begun anew, how often, and how much the estimates of their cuts are shaken.  Small
# subtrees are quick to grow, and chance finds their best cuts, so they are begun anew more often.
_STAGES = ((256, 6, 0.02), (64, 10, 0.03), (16, 40, 0.05))


def leaves_of(
    points: Points,
    rules: Rules,
    effort: str,
    limit: float,
    progress: Callable[[float], None],
    strata: Ints | None = None,
) -> Iterator[Leaves]:
    """Make the boxes of records that are sorted by value, one batch of blocks after the other.

    The number of records decides how hard to look, unless the effort is 'quick'; until `limit`, a time of
    `time.monotonic`, if it is 'thorough'.
    """
    size, thorough = len(points.values[0]), effort == "thorough"
    large = size > _LARGE or effort == "quick"
    # A large table takes long enough without the last percent.
    share = 0.0 if large else min(_CLOSELY / size, 1.0)
    # Even trees cost nothing where the sensitivities are the same everywhere; else they do.
    uneven = _UNEVEN if all(isinstance(weight, float) for weight in points.weights) else _UNEVEN / 4
    tries, wide = max(round(_TRIES * share), 1), max(round(_WIDE * share), 1)
    rules = replace(rules, tries=tries, wide=wide, uneven=uneven if large else 0.0)
    begun, done = time.monotonic(), 0
    for batch in _batches(blocks(points, rules, strata)):
        records = np.concatenate([block.records for block in batch])
        lower, upper = np.array([block.lower for block in batch]), np.array([block.upper for block in batch])
        if batch[0].whole:
            yield Leaves(records, np.array([len(records)]), np.array([0]), lower, upper)
        else:
            batch_points = points.take(records)
            nodes = root_nodes(batch_points, np.array([len(block.records) for block in batch]), lower, upper)
            # Every batch has its share of the time.
            before, after = done / size, (done + len(records)) / size
            deadline = begun + (limit - begun) * after if thorough else begun

            def report(share: float, low: float = before, high: float = after) -> None:
                progress(low + (high - low) * share)

            leaves = _best(batch_points, nodes, rules, not large or thorough, thorough, deadline, report)
            yield leaves._replace(records=records.take(leaves.records))
        done += len(records)
        progress(done / size)


def _best(
    points: Points,
    nodes: Nodes,
    rules: Rules,
    several: bool,
    thorough: bool,
    deadline: float,
    report: Callable[[float], None],
) -> Leaves:
    """Grow every node in the way of the portfolio that costs least."""
    if not several:
        return grow(points, nodes, rules)[0]
    made = _ahead(points, nodes, rules, thorough and time.monotonic() <= deadline, report)
    if made and not thorough:
        return made[0][0]
    # The last leaves are left for the winner: trying more cuts of those makes no way cost more than it did.
    costs = []
    for shares in _PORTFOLIO:
        costs.append(grow(points, nodes, replace(rules, shares=shares, tries=1, wide=1))[1])
        if not thorough:  # where it is, the search that follows takes nearly all the time
            report(len(costs) / (len(_PORTFOLIO) + 1))
    winner = np.argmin(costs, axis=0)
    for way in np.unique(winner):
        of_way = np.flatnonzero(winner == way)
        chosen, way_rules = nodes.keep(winner == way), replace(rules, shares=_PORTFOLIO[way])
        if thorough:
            leaves, cost = _restarted(points, chosen, way_rules, deadline, report)
        else:
            leaves, cost, _ = grow(points, chosen, way_rules)
        all_costs = np.full(len(nodes.sizes), np.inf)
        all_costs[of_way] = cost
        made.append((leaves._replace(roots=of_way[leaves.roots]), all_costs))
    cheapest = np.argmin([cost for _, cost in made], axis=0)
    return joined([leaves.keep(cheapest[leaves.roots] == way) for way, (leaves, _) in enumerate(made)], nodes)


def _ahead(
    points: Points, nodes: Nodes, rules: Rules, deeply: bool, report: Callable[[float], None]
) -> list[tuple[Leaves, Floats]]:
    """Grow boxes by looking ahead, and return what those of each node cost.

    Nothing is returned where boxes need more than k people: values are different, or cells tile.
    """
    if rules.l > 1 or points.tiles:
        return []
    size = len(points.values[0])
    efforts = [lookahead.FULL if size <= _SMALL else lookahead.MOST if size <= _MIDDLING else lookahead.HALF]
    if deeply:
        efforts.append(lookahead.DEEP)
    quietly = report if not deeply else lambda share: None
    return [lookahead.Lookahead(points, rules.k, effort).boxes(nodes, quietly) for effort in efforts]


def _restarted(
    points: Points, nodes: Nodes, rules: Rules, deadline: float, report: Callable[[float], None]
) -> tuple[Leaves, Floats]:
    """Find boxes that are at least as good as those of one run, and what they cost, as `search.grow` returns them.

    A subtree is an individual: its offspring are grown from estimates multiplied by random factors, and the fittest of
    each subtree lives on. First large subtrees compete, then the smaller ones within the winners. Nothing new is begun
    after `deadline`, a time of `time.monotonic`; `report` is called now and then with the share that is done.
    """
    random = np.random.default_rng(rules.k)
    rounds, total = 0, sum(tries for _, tries, _ in _STAGES)
    following = [*(leaves for leaves, _, _ in _STAGES[1:]), 0]
    boxes, costs, inner = grow(points, nodes, rules, _STAGES[0][0])
    done, owners = [boxes], inner.roots  # `owners`: which of the given nodes each node of a stage comes from
    for (_, tries, noise), until in zip(_STAGES, following, strict=True):
        best = _grown(points, inner, rules, rules, until)
        for _ in range(tries):
            if time.monotonic() > deadline or not len(inner.sizes):
                break
            # Chance varies the cuts, so that few need to be tried each time.
            shaken = replace(rules, noise=noise, random=random, wide=1, tries=min(rules.tries, 4))
            best = _better(best, _grown(points, inner, shaken, rules, until), inner)
            rounds += 1
            report(rounds / total)
        np.add.at(costs, owners, best.early)
        done.append(best.boxes._replace(roots=owners[best.boxes.roots]))
        owners, inner = owners[best.below.roots], best.below
    return joined(done, nodes), costs


class _Grown(NamedTuple):
    """Subtrees grown down to the nodes of the next stage."""

    boxes: Leaves  # those that are finished on the way
    early: Floats  # what these boxes cost in each subtree
    below: Nodes
    costs: Floats  # what each subtree costs if the nodes below are grown without chance


def _grown(points: Points, nodes: Nodes, shaken: Rules, rules: Rules, until: int) -> _Grown:
    """Grow subtrees by shaken rules, and see what they would cost if plain rules finished them."""
    boxes, early, below = grow(points, nodes, shaken, until)
    if not until:
        return _Grown(boxes, early, below.keep(np.zeros(len(below.sizes), dtype=np.bool_)), early)
    _, late, _ = grow(points, below, rules)
    return _Grown(boxes, early, below, early + np.bincount(below.roots, late, len(early)))


def _better(first: _Grown, second: _Grown, nodes: Nodes) -> _Grown:
    """Take each subtree from where it is cheaper."""
    change = second.costs < first.costs
    pairs = ((first, ~change), (second, change))
    return _Grown(
        joined([grown.boxes.keep(taken[grown.boxes.roots]) for grown, taken in pairs], nodes),
        np.where(change, second.early, first.early),
        joined_nodes([grown.below.keep(taken[grown.below.roots]) for grown, taken in pairs], nodes),
        np.where(change, second.costs, first.costs),
    )


def _batches(of_table: Iterator[Block]) -> Iterator[list[Block]]:
    """Put small blocks together, up to `BLOCK` records; a block that cannot be cut comes alone."""
    batch: list[Block] = []
    records = 0
    for block in of_table:
        if block.whole:
            yield [block]
            continue
        if batch and records + len(block.records) > table_blocks.BLOCK:
            yield batch
            batch, records = [], 0
        batch.append(block)
        records += len(block.records)
    if batch:
        yield batch

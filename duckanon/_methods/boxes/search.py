"""Recursive splitting of records into boxes, all nodes of a level at once.

References:
    Accurate Boxes, Section V; REFERENCES.md, Boxes, "Tiling space with the boxes".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Floats, Ints
from duckanon._methods.boxes.cuts import FEW, SHARES, Candidates, candidates, pair_cuts
from duckanon._methods.boxes.diversity import diverse
from duckanon._methods.boxes.nodes import Leaves, Nodes, Points, node_costs, split

_LARGE = 512  # of a node with more records only a sample's sensitivities are looked at


@dataclass(frozen=True)
class Rules:
    """Conditions on a box, and the effort of the search."""

    k: int
    l: int = 1  # noqa: E741 - the papers' name
    epsilon: Sequence[float] = field(default_factory=tuple)
    tries: int = 4  # how many first cuts are tried on a node of three or four leaves
    wide: int = 1  # and on a node of five to eight
    uneven: float = 0.0  # by how much an uneven cut has to be better than an even one
    shares: Sequence[float] = SHARES  # of a node's leaves, which a cut may put on the left side
    noise: float = 0.0  # the spread of the random factors (their logarithms) that estimates of cuts are multiplied by
    random: np.random.Generator | None = None  # where these come from


def grow(points: Points, nodes: Nodes, rules: Rules, until: int = 0) -> tuple[Leaves, Floats, Nodes]:
    """Split nodes until they are boxes, or have at most `until` leaves.

    Returns the boxes, whose `roots` count the nodes given; the summed cost of the boxes of each of these; and the nodes
    that were not split further, none if `until` is 0.
    """
    count = len(nodes.sizes)
    nodes = nodes._replace(roots=np.arange(count, dtype=np.int64))
    costs = np.zeros(count)
    done: list[Leaves] = []

    def finish(boxes: Nodes) -> None:
        np.add.at(costs, boxes.roots, node_costs(points, boxes))
        done.append(boxes.leaves())

    # Large nodes first, then middling ones, the last leaves at the end: each kind in few and large batches.  So what
    # becomes of a node does not depend on the nodes it comes with.
    large = max(FEW, _LARGE // rules.k)
    last = 1 if rules.l > 1 else FEW if rules.wide > 1 else 4
    for smallest in (large, FEW, last):
        waiting: list[Nodes] = []
        while (active := nodes.sizes // rules.k > max(smallest, until)).any():
            progress.check()
            if 2 * int(nodes.sizes[active].sum()) < len(nodes.orders[0]):
                # To carry small nodes along costs less than to sort them out, until they are the larger part.
                waiting.append(nodes.keep(~active))
                nodes = nodes.keep(active)
                active = np.ones(len(nodes.sizes), dtype=np.bool_)
            which = np.flatnonzero(active)
            # The last levels have the most nodes and do not make the tree deeper.
            uneven = rules.uneven if smallest >= FEW else 0.0
            sampled = smallest == large
            options = candidates(points, nodes, rules.k, which, sampled=sampled, uneven=uneven, shares=rules.shares)
            column, cuts, is_cut = _choose(points, nodes, which, options, rules)
            if not is_cut.all():
                closed = which[~is_cut]
                active[closed] = False
                stays = np.ones(len(nodes.sizes), dtype=np.bool_)
                stays[closed] = False
                finish(nodes.keep(~stays))
                nodes, active = nodes.keep(stays), active[stays]
                if not len(nodes.sizes):
                    break
            all_columns, all_cuts = np.zeros(len(active), dtype=np.int64), nodes.starts + nodes.sizes
            all_columns[active] = column[is_cut]
            all_cuts[active] = nodes.starts[active] + cuts[is_cut]
            nodes = split(points, nodes, all_columns, all_cuts)
        waiting.append(nodes)
        nodes = joined_nodes([kept for kept in waiting if len(kept.sizes)], nodes)
    if not until:
        _last_leaves(points, nodes, rules, costs, done)
    return joined(done, nodes), costs, nodes


def _last_leaves(points: Points, nodes: Nodes, rules: Rules, costs: Floats, done: list[Leaves]) -> None:
    """Finish nodes of one to eight leaves; where there are at least two, the cheapest of several cuts is kept."""
    leaves = nodes.sizes // rules.k
    kinds = ((leaves == 1, _wholes), (leaves == 2, _pairs), (np.isin(leaves, (3, 4)), _best_of), (leaves > 4, _best_of))
    for of_kind, solve in kinds:
        if of_kind.any():
            progress.check()
            kept = nodes.keep(of_kind)
            boxes, cost = solve(points, kept, rules)
            np.add.at(costs, kept.roots, cost)
            done.append(boxes._replace(roots=kept.roots[boxes.roots]))


def _wholes(points: Points, nodes: Nodes, rules: Rules) -> tuple[Leaves, Floats]:
    """Make every node a box."""
    return nodes._replace(roots=np.arange(len(nodes.sizes))).leaves(), node_costs(points, nodes)


def _pairs(points: Points, nodes: Nodes, rules: Rules) -> tuple[Leaves, Floats]:
    """Cut nodes of two leaves by the best column; a node that no column can cut is a box."""
    nodes = nodes._replace(roots=np.arange(len(nodes.sizes)))
    column, cuts, cost = pair_cuts(points, nodes, rules.k)
    is_cut = np.isfinite(cost)
    parts: list[Nodes] = []
    if not is_cut.all():
        cost[~is_cut] = node_costs(points, nodes.keep(~is_cut))
        parts.append(nodes.keep(~is_cut))
    if is_cut.any():
        kept = nodes.keep(is_cut)
        kept_cuts = cuts[is_cut] - nodes.starts[is_cut] + kept.starts
        parts.append(split(points, kept, column[is_cut], kept_cuts, final=True))
    return joined([part.leaves() for part in parts], nodes), cost


def _best_of(points: Points, nodes: Nodes, rules: Rules) -> tuple[Leaves, Floats]:
    """Split nodes of three to eight leaves by their most promising cuts and keep the cheapest result of each."""
    options = _noisy(candidates(points, nodes, rules.k), rules)
    count = len(nodes.sizes)
    order = np.argsort(options.scores, axis=1, kind="stable")
    best, which = np.full(count, np.inf), np.full(count, -1)
    tried: list[Leaves] = []
    small = int(nodes.sizes.max()) // rules.k <= 4
    for t in range(min(rules.tries if small else rules.wide, order.shape[1])):
        chosen = order[:, t]
        rows = np.arange(count)
        is_cut = np.isfinite(options.scores[rows, chosen])
        if t == 0 and not is_cut.all():
            # Nothing separates these records.
            whole = nodes.keep(~is_cut)
            best[~is_cut], which[~is_cut] = node_costs(points, whole), len(tried)
            tried.append(whole._replace(roots=np.flatnonzero(~is_cut)).leaves())
        if not is_cut.any():
            break
        kept = nodes.keep(is_cut)._replace(roots=np.flatnonzero(is_cut))
        cuts = (options.cuts[rows, chosen] - nodes.starts)[is_cut] + kept.starts
        parts = split(points, kept, options.columns[chosen][is_cut], cuts)
        roots = parts.roots
        # Fewer cuts of the parts are tried, as their share in the gain is smaller.
        tries, wide = (rules.tries * 2 // 3, rules.wide) if small else (rules.tries, rules.wide // 2)
        boxes, cost, _ = grow(points, parts, replace(rules, tries=max(tries, 1), wide=max(wide, 1)))
        total = np.bincount(roots, weights=cost, minlength=count)
        better = is_cut & (total < best)
        best[better], which[better] = total[better], len(tried)
        tried.append(boxes._replace(roots=roots[boxes.roots]))
    return joined([boxes.keep(which[boxes.roots] == t) for t, boxes in enumerate(tried)], nodes), best


def _noisy(options: Candidates, rules: Rules) -> Candidates:
    """Multiply the estimates by random factors where the rules ask for noise."""
    if rules.random is None or not rules.noise:
        return options
    factors = np.exp(rules.noise * rules.random.standard_normal(options.scores.shape))
    return options._replace(scores=options.scores * factors)


def _choose(points: Points, nodes: Nodes, which: Ints, options: Candidates, rules: Rules) -> tuple[Ints, Ints, Bools]:
    """Take the best cut of every node, or the best one after which both sides are diverse.

    Returns the column and the cut, counted from the start of its node, and whether there is one.
    """
    options = _noisy(options, rules)
    scores, starts = options.scores, nodes.starts[which]
    rows = np.arange(len(scores))
    best = scores.argmin(axis=1)
    is_cut = np.isfinite(scores[rows, best])
    if rules.l > 1:
        scores = scores.copy()
        refused = np.flatnonzero(is_cut)
        while len(refused):
            chosen = best[refused]
            tested = np.zeros(len(nodes.sizes), dtype=np.bool_)
            tested[which[refused]] = True
            kept = nodes.keep(tested)
            cuts = options.cuts[refused, chosen] - starts[refused] + kept.starts
            parts = split(points, kept, options.columns[chosen], cuts)
            good = diverse(
                points.values, parts.orders[: len(points.values)], parts.starts, parts.sizes, rules.l, rules.epsilon
            )
            good = good[: len(refused)] & good[len(refused) :]
            scores[refused, chosen] = np.where(good, scores[refused, chosen], np.inf)
            refused = refused[~good]
            best[refused] = scores[refused].argmin(axis=1)
            is_cut[refused] = np.isfinite(scores[refused, best[refused]])
            refused = refused[is_cut[refused]]
    return options.columns[best], options.cuts[rows, best] - starts, is_cut


def joined(parts: list[Leaves], like: Nodes) -> Leaves:
    """Put the boxes of several lists into one list; `like` tells the number of columns where there are no boxes."""
    if not parts:
        none = np.zeros(0, dtype=np.int64)
        return Leaves(none, none, none, like.lower[:0], like.upper[:0])
    if len(parts) == 1:
        return parts[0]
    return Leaves(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def joined_nodes(parts: list[Nodes], none: Nodes) -> Nodes:
    """Put the nodes of several lists into one list; `none` is given back where there are no lists."""
    if len(parts) < 2:
        return parts[0] if parts else none
    orders = [np.concatenate(orders) for orders in zip(*(part.orders for part in parts), strict=True)]
    return Nodes(orders, *(np.concatenate(arrays) for arrays in zip(*(part[1:] for part in parts), strict=True)))

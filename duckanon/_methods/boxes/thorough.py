"""Towards the true optimum: random restarts on subtrees, never worse than one run (Accurate Boxes, Section V)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from duckanon._core.common.arrays import Floats
from duckanon._methods.boxes.nodes import Leaves, Nodes, Points
from duckanon._methods.boxes.search import Rules, grow, joined, joined_nodes

STAGES = ((256, 6, 0.02), (64, 10, 0.03), (16, 40, 0.05))
"""Leaves of the subtrees that are begun anew, how often, and how much the estimates of their cuts are shaken.

Small subtrees are quick to grow, and chance finds their best cuts, so they are begun anew more often."""


def search(
    points: Points, nodes: Nodes, rules: Rules, deadline: float, report: Callable[[float], None]
) -> tuple[Leaves, Floats]:
    """Find boxes that are at least as good as those of one run, and what they cost, as `search.grow` returns them.

    A subtree is an individual: its offspring are grown from estimates multiplied by random factors, and the fittest of
    each subtree lives on. First large subtrees compete, then the smaller ones within the winners. Nothing new is begun
    after `deadline`, a time of `time.monotonic`; `report` is called now and then with the share that is done.
    """
    random = np.random.default_rng(rules.k)
    rounds, total = 0, sum(tries for _, tries, _ in STAGES)
    following = [*(leaves for leaves, _, _ in STAGES[1:]), 0]
    boxes, costs, inner = grow(points, nodes, rules, STAGES[0][0])
    done, owners = [boxes], inner.roots  # `owners`: which of the given nodes each node of a stage comes from
    for (_, tries, noise), until in zip(STAGES, following, strict=True):
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

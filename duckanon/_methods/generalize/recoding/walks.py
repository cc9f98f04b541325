"""The way through the nodes of a hierarchy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from duckanon._core.common.arrays import Ints, run_starts


class Walk(NamedTuple):
    """The nodes of a tree in depth-first order, without those that have one child."""

    nodes: Ints  # the node of each step of the walk, as the structure numbers it; where nodes form a chain, the lowest
    parents: Ints  # the step of the node above; -1 for the root
    depths: Ints  # the number of steps above
    # first, end: which entries of ``leaves`` lie below: from first up to but without end
    first: Ints
    end: Ints
    leaves: Ints  # the leaves in the order of the walk


def walk(parents: Ints) -> Walk:
    """Walk through the tree in which each node has this parent, the root -1: level by level, as there may be many."""
    children = np.bincount(parents[parents >= 0], minlength=len(parents))
    chain_top = np.arange(len(parents))  # of the chain of only children that each node is in
    while (is_only := (parents[chain_top] >= 0) & (children[parents[chain_top]] == 1)).any():
        chain_top = np.where(is_only, parents[chain_top], chain_top)
    kept = np.flatnonzero(children != 1)
    by_parent = kept[np.lexsort((chain_top[kept], parents[chain_top[kept]]))]
    above = parents[chain_top]
    starts = np.searchsorted(above[by_parent], np.arange(len(parents)))
    levels = [by_parent[:1]]
    while (counts := children[levels[-1]]).any():
        levels.append(
            by_parent[np.repeat(starts[levels[-1]] - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())]
        )
    nodes_below, leaves_below = np.ones_like(parents), (children == 0).astype(np.int64)
    for level in reversed(levels[1:]):
        siblings = run_starts(above[level])
        for below in (nodes_below, leaves_below):
            below[above[level][siblings]] += np.add.reduceat(below[level], siblings)
    step, first = np.zeros_like(parents), np.zeros_like(parents)
    depth = np.zeros_like(parents)
    for number, level in enumerate(levels[1:], start=1):
        siblings = run_starts(above[level])
        family = np.diff(np.append(siblings, len(level)))
        for place, below, itself in ((step, nodes_below, 1), (first, leaves_below, 0)):
            before = np.cumsum(below[level]) - below[level]
            place[level] = place[above[level]] + itself + before - np.repeat(before[siblings], family)
        depth[level] = number
    nodes = kept[np.argsort(step[kept])]
    return Walk(
        nodes=nodes,
        parents=np.where(above[nodes] >= 0, step[above[nodes]], -1),
        depths=depth[nodes],
        first=first[nodes],
        end=first[nodes] + leaves_below[nodes],
        leaves=nodes[children[nodes] == 0],
    )

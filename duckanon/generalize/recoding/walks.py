"""The way through the nodes of a hierarchy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from duckanon.common.arrays import Ints


class Walk(NamedTuple):
    """The nodes of a tree in depth-first order, without those that have one child.

    Attributes
    ----------
    nodes
        The node of each step of the walk, as the structure numbers it; where nodes form a chain, the lowest.
    parents
        The step of the node above; -1 for the root.
    depths
        The number of steps above.
    first, end
        Which entries of ``leaves`` lie below: from first up to but without end.
    leaves
        The leaves in the order of the walk.
    """

    nodes: Ints
    parents: Ints
    depths: Ints
    first: Ints
    end: Ints
    leaves: Ints


def walk(parents: Ints) -> Walk:
    """Walk through the tree in which each node has this parent, the root -1."""
    children: list[list[int]] = [[] for _ in parents]
    for node, parent in enumerate(parents.tolist()):
        if parent >= 0:
            children[parent].append(node)
    nodes: list[int] = []
    parent_steps: list[int] = []
    depths: list[int] = []
    first: list[int] = []
    end: list[int] = []
    leaves: list[int] = []
    # Nodes to visit, each with the step above it; -1 in place of a node ends that step: all leaves below it are known.
    pending: list[tuple[int, int]] = [(int(np.flatnonzero(parents < 0)[0]), -1)]
    while pending:
        node, above = pending.pop()
        if node < 0:
            end[above] = len(leaves)
            continue
        while len(children[node]) == 1:
            node = children[node][0]
        step = len(nodes)
        nodes.append(node)
        parent_steps.append(above)
        depths.append(depths[above] + 1 if above >= 0 else 0)
        first.append(len(leaves))
        end.append(0)
        pending.append((-1, step))
        pending.extend((child, step) for child in reversed(children[node]))
        if not children[node]:
            leaves.append(node)
    return Walk(*(np.array(part, dtype=np.int64) for part in (nodes, parent_steps, depths, first, end, leaves)))

"""Choices between many values, such as 900 districts: a few coordinates of each in place of an indicator each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Floats, Ints, Reals
from duckanon._core.common.imports import imported

WIDE = 40
"""Choices of more values are given coordinates: indicators cost the square of their number."""
_MOST = 8  # coordinates of a value
_BEYOND_NOISE = 1.2  # times the largest singular value that two unrelated choices have


def coordinates(counts: Floats, sums: Floats) -> Reals:
    """Return coordinates of choices, of so many rows each, by which they differ most in other features.

    All that is linear between a choice and the other features are the means of these for each value, of which the
    principal directions are taken; given are choices by features, the sums of features of mean 0 over the rows of a
    choice. Without any other features, the order of the choices is all there is. Coordinates are of mean 0 over the
    rows; the first has a variance of 1, the others the smaller the less they say about the other features.
    """
    weights = np.sqrt(counts / counts.sum())[:, None]
    means = sums / np.maximum(counts, 1)[:, None]
    _, spread, directions = np.linalg.svd(weights * means, full_matrices=False)
    kept = min(_MOST, int((spread > 1e-6 * max(spread.max(initial=0.0), 1e-300)).sum()))
    if not kept:
        means = np.arange(len(counts))[:, None] - np.average(np.arange(len(counts)), weights=counts)
        directions, kept = np.ones((1, 1)), 1
        spread = np.array([np.sqrt(np.average(means[:, 0] ** 2, weights=counts)) or 1.0])
    return np.asarray((means @ directions[:kept].T / spread[0]).astype(np.float32))


def sums_of(codes: Sequence[Ints], choices: Sequence[int], blocks: Iterable[Reals]) -> list[Floats]:
    """Sum features, given in blocks of rows that follow each other, less their means, over the rows of each choice.

    Of each column the choice of every row is given, and how many there are; its sums are choices by features.
    """
    sums: list[Any] = [0.0] * len(codes)
    start = 0
    for block in blocks:
        progress.check()
        features = np.ascontiguousarray(block.T, np.float64)
        for place, (own, count) in enumerate(zip(codes, choices, strict=True)):
            here = own[start : start + len(block)]
            sums[place] = sums[place] + np.stack([np.bincount(here, feature, count) for feature in features], axis=1)
        start += len(block)
    shares = [np.bincount(own, minlength=count) / len(own) for own, count in zip(codes, choices, strict=True)]
    return [one - share[:, None] * one.sum(axis=0) for one, share in zip(sums, shares, strict=True)]


def pair_counts(codes: Ints, choices: int, others: Ints, other_choices: int) -> Floats:
    """Count the rows of each pair of choices."""
    cells = np.bincount(codes * other_choices + others, minlength=choices * other_choices)
    return cells.reshape(choices, other_choices).astype(np.float64)


def correspondences(cells: Floats, people: int) -> tuple[Floats, Floats] | None:
    """Return coordinates of two wide choices in which they go along; None where they do not beyond chance.

    Principal coordinates of a correspondence analysis, as far as its singular values stand out of what chance gives,
    which depends on how many people have these rows: most of the cells of such a table are of a few rows.
    """
    rows = float(cells.sum())
    shares = [cells.sum(axis=1) / rows, cells.sum(axis=0) / rows]
    scale = np.sqrt(np.outer(*shares))
    standardised = np.divide(cells / rows, scale, out=np.zeros_like(scale), where=scale > 0) - scale
    largest = imported("duckanon._core.encoding.singular_vectors:largest_singular_vectors")
    spread, left, right = largest(standardised, _MOST)
    noise = sum(np.sqrt(count / max(people, 1)) for count in cells.shape)
    kept = int((spread > _BEYOND_NOISE * noise).sum())
    if not kept:
        return None
    lengths = [np.sqrt(np.where(share > 0, share, 1.0))[:, None] for share in shares]
    return left[:, :kept] * spread[:kept] / lengths[0], right[:, :kept] * spread[:kept] / lengths[1]


def placed_choices(codes: Sequence[Ints], choices: Sequence[int], sums: Sequence[Floats]) -> list[Places]:
    """Place several wide choices, given the choice of every row, how many there are, and sums of other features.

    What two wide choices have to do with each other counts only where there is no other feature (`sums_of`): it needs
    as many coordinates as there are values, and a few of them would spoil what the others say about the rest.
    """
    made = []
    for one, (own, count, known) in enumerate(zip(codes, choices, sums, strict=True)):
        if not known.shape[1]:
            for other in (place for place in range(len(codes)) if place != one):
                cells = pair_counts(own, count, codes[other], choices[other])
                places = correspondences(cells, len(own))
                if places is not None:
                    known = np.hstack([known, cells.sum(axis=1)[:, None] * places[0]])
        held = np.bincount(own, minlength=count)
        made.append(Places(coordinates(held.astype(np.float64), known), held))
    return made


def shared_out(counts: Ints, total: int) -> Ints:
    """Divide a total in proportion to counts; none is more than one off, and small ones come as often as they should.

    Examples:
        >>> shared_out(np.array([3, 3, 4]), 5).tolist()
        [2, 1, 2]
    """
    ends = np.floor(np.cumsum(counts) * (total / counts.sum()) + 0.5).astype(np.int64)
    return np.asarray(np.diff(ends, prepend=0))


@dataclass(frozen=True)
class Places:
    """The coordinates of choices, and a tree, balanced by counts of rows, that cuts them in two until one is left."""

    coordinates: Reals
    counts: Ints

    def assigned(self, scores: Reals, wanted: Ints) -> Ints:
        """Choose for every row a value near its coordinates, such that each is chosen as often as it is wanted.

        Choices are cut in two across the direction in which they are widest, and rows across the same one, as many to
        each side as its choices want; over and over, until one choice is left. The cost is that of sorting the rows.

        Examples:
            >>> places = Places(np.array([[0.0], [5.0]]), np.array([20, 10]))
            >>> places.assigned(np.array([[3.0], [1.0], [2.0]]), np.array([2, 1])).tolist()
            [1, 0, 0]
        """
        leaves, cuts = self._tree
        before = np.concatenate([[0], np.cumsum(wanted[leaves])])
        rows = np.arange(len(scores))
        for number, (first, cut, last, direction) in enumerate(cuts):
            if number % 64 == 0:
                progress.check()
            start, middle, end = before[first], before[cut], before[last]
            if start < middle < end:
                here = rows[start:end]
                along = np.argpartition(scores[here] @ direction, middle - start)
                rows[start:end] = here[along]
        codes = np.empty(len(scores), np.int64)
        codes[rows] = np.repeat(leaves, wanted[leaves])
        return codes

    def groups(self, least: float) -> Ints:
        """Put choices into groups of neighbours: branches of the tree, cut as long as they have twice so many rows.

        Examples:
            >>> Places(np.array([[0.0], [5.0], [1.0]]), np.array([20, 10, 20])).groups(25).tolist()
            [0, 1, 0]
        """
        leaves, cuts = self._tree
        before = np.concatenate([[0], np.cumsum(self.counts[leaves])])
        is_first = np.zeros(len(leaves), np.int64)
        for first, cut, last, _ in cuts:
            is_first[cut] = before[last] - before[first] >= 2 * least
        groups = np.empty_like(leaves)
        groups[leaves] = np.cumsum(is_first)
        return groups

    @cached_property
    def _tree(self) -> tuple[Ints, list[tuple[int, int, int, Reals]]]:
        """Return the choices in the order of the leaves, and the cuts: first leaf, first one beyond the cut, end."""
        leaves = np.arange(len(self.counts))
        cuts = []
        nodes = [(0, len(leaves))]
        while nodes:
            first, last = nodes.pop()
            if last - first < 2:
                continue
            choices = leaves[first:last]
            direction = _widest(self.coordinates[choices], self.counts[choices])
            choices = choices[np.argsort(self.coordinates[choices] @ direction, kind="stable")]
            leaves[first:last] = choices
            ends = np.cumsum(self.counts[choices])
            cut = first + 1 + min(int(np.searchsorted(ends, ends[-1] / 2)), last - first - 2)
            cuts.append((first, cut, last, direction))
            nodes += [(first, cut), (cut, last)]
        return leaves, cuts


def _widest(places: Reals, weights: Ints) -> Reals:
    """Return the direction in which places, so many rows at each, are widest."""
    known = np.maximum(weights, 1)
    centred = (places - np.average(places, axis=0, weights=known)).astype(np.float64)
    return np.asarray(np.linalg.eigh((centred * known[:, None]).T @ centred)[1][:, -1].astype(places.dtype))

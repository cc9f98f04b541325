"""Draws from the leaves of a tree: choices in the shares of a leaf's people, numbers at the ranks of its people.

Sequential trees (Reiter 2005; Nowok, Raab and Dibben 2016) draw a person's own value from a leaf; here a choice is
drawn only where three people of the leaf share it, and a number is the mean of three neighbouring ranks. Within a leaf
a straight line on one number drawn before says more than the leaf's mean does (`fit_lines`). Choices are drawn as often
as in the table: the leaves' shares are raked to these counts, and surplus rows moved, since independent draws would
scatter them. The module goes from predictors over lines to shares, choices and ranks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Array, Bools, Floats, Ints, Reals


class CutTree(NamedTuple):
    """A tree that is cut back.

    Attributes:
        fitted: The tree as it was grown, with `apply` (scikit-learn's, or a `BinnedTree`).
        kept: For each of its nodes the leaf of the tree that is left of it: the node itself or one above.
        parents: The node above each node; the root is its own.
    """

    fitted: Any
    kept: Ints
    parents: Ints

    def leaves(self, features: Reals) -> Ints:
        """Return the leaf of each row."""
        return np.asarray(self.kept[self.fitted.apply(features)])


NO_NUMBER = -1.0
"""The rank of a row that has no regular number: below all others, so that one split sets it apart."""
_MOST_INDICATORS = 16  # choices of more values are only ordered: indicators of rare ones seldom help
_BLOCK = 65_536  # rows that are encoded at a time
_LEVELS = 1_024  # of ranks in trees of many people: leaves are as wide, and trees grow in four fifths of the time
_MANY = 10 * _LEVELS


class _Predictor(NamedTuple):
    """A column: codes or ranks of people and of new rows; `choices` is 0 for ranks."""

    original: Array
    new: Array
    choices: int


@dataclass
class Predictors:
    """Columns that are drawn, of the people and of new rows."""

    columns: list[_Predictor] = field(default_factory=list)

    def add_choice(self, original: Ints, new: Ints, choices: int) -> None:
        """Add the choices of a column, unless there is only one."""
        if choices > 1:
            self.columns.append(_Predictor(original, new, choices))

    def add_ranks(self, original: Floats, new: Floats) -> None:
        """Add the ranks of a column, `NO_NUMBER` where there is no regular number."""
        if len(original) > _MANY:
            original, new = (np.floor(ranks * _LEVELS) / _LEVELS for ranks in (original, new))
        self.columns.append(_Predictor(original.astype(np.float32), new.astype(np.float32), 0))

    def orders(self, response: Floats, rows: Ints) -> list[Floats]:
        """Return, for each column of choices, the place of each choice in the order of its mean response.

        Args:
            response: One number for each row.
            rows: The people whose response it is.
        """
        orders = []
        for column in self.columns:
            if column.choices <= 2:
                orders.append(np.arange(float(column.choices)))
                continue
            codes = column.original[rows]
            sums = np.bincount(codes, response, column.choices)
            means = (sums + response.mean()) / (np.bincount(codes, minlength=column.choices) + 1.0)
            positions = np.empty(column.choices)
            positions[np.argsort(means, kind="stable")] = np.arange(column.choices)
            orders.append(positions)
        return orders

    def matrix(self, orders: list[Floats], rows: Ints, *, new: bool) -> Reals:
        """Encode rows of the people, or new rows: ranks, places in an order, and indicators of few choices."""
        features = []
        for column, positions in zip(self.columns, orders, strict=True):
            values = (column.new if new else column.original)[rows]
            features.append(positions[values] if column.choices else values)
            if 2 < column.choices <= _MOST_INDICATORS:
                features.extend(values == code for code in range(column.choices))
        return np.stack(features, axis=1, dtype=np.float32, casting="unsafe")

    def leaves(self, tree: CutTree, orders: list[Floats], rows: Ints, *, new: bool) -> Ints:
        """Return the leaf of each row, block by block."""
        leaves = [tree.leaves(self.matrix(orders, block, new=new)) for block in _blocks(rows)]
        return np.concatenate(leaves) if leaves else np.zeros(0, np.int64)


def _blocks(rows: Ints) -> Iterator[Ints]:
    for start in range(0, len(rows), _BLOCK):
        progress.check()
        yield rows[start : start + _BLOCK]


def find_first_component(counts: Ints) -> Floats:
    """Return the coordinates of choices along the first principal component of their indicators."""
    if len(counts) == 2:
        return np.arange(2.0)
    shares = counts / counts.sum()
    return np.asarray(np.linalg.eigh(np.diag(shares) - np.outer(shares, shares))[1][:, -1])


_ROUNDS = 2  # of numbers that a line is fitted to, the second to what the first leaves
_SAVED = 3.0  # deviance that a line saves for each of the two numbers it takes, and for the choice of its predictor
_LEAST_VARIANCE = 1e-12  # of ranks in a leaf: less is a rounding error
_NARROW = 2.0  # deviations from the mean of a leaf: beyond, a line says what few people of it do


class Fits(NamedTuple):
    """What lines say about the people who were learnt from, and about new rows."""

    people: Floats
    new: Floats


def fit_lines(
    predictors: Predictors, rows: Ints, new: Ints, leaves: Ints, new_leaves: Ints, ranks: Floats, noise: float
) -> Fits:
    """Fit ranks in every leaf by a line on the number that explains most, if it explains more than chance would.

    Args:
        predictors: The columns drawn before.
        rows, new: The people who are learnt from, and the new rows.
        leaves, new_leaves: Theirs.
        ranks: Those of people's numbers.
        noise: The deviation of what is added to drawn ranks: no line explains less.
    """
    counts = np.bincount(leaves)
    number_of_leaf = np.cumsum(counts > 0) - 1  # of the leaves that people have
    leaf_of_row, leaf_of_new_row = number_of_leaf[leaves], number_of_leaf[new_leaves]
    sizes = counts[counts > 0].astype(np.float64)
    numbers = [column for column in predictors.columns if column.choices == 0]
    moments = [_Moments.of(column.original[rows], leaf_of_row, sizes) for column in numbers]
    means = np.bincount(leaf_of_row, ranks) / sizes
    fits = Fits(means[leaf_of_row], means[leaf_of_new_row])
    for _ in range(_ROUNDS if numbers else 0):
        rest = ranks - fits.people
        products = (column.original[rows] * rest for column in numbers)
        lines = _choose_lines(moments, products, leaf_of_row, rest, sizes, noise)
        gains = Fits(np.zeros(len(rest)), np.zeros(len(new)))
        for number, column in enumerate(numbers):
            progress.check()
            is_own = lines.predictor == number
            here, new_here = np.flatnonzero(is_own[leaf_of_row]), np.flatnonzero(is_own[leaf_of_new_row])
            gains.people[here] = lines.at(column.original[rows[here]], leaf_of_row[here])
            gains.new[new_here] = lines.at(column.new[new[new_here]], leaf_of_new_row[new_here])
        fits = Fits(fits.people + gains.people, fits.new + gains.new)
    return fits


class _Moments(NamedTuple):
    """The mean and variance of a number in each leaf, and whether it is one that a line can be fitted to."""

    mean: Floats
    variance: Floats
    is_known: Bools

    @classmethod
    def of(cls, values: Reals, place: Ints, sizes: Floats) -> _Moments:
        """Take the moments of ranks, from 0 to 1, where all people of a leaf have one."""
        progress.check()
        count = len(sizes)
        has_all = np.bincount(place[values == NO_NUMBER], minlength=count) == 0
        mean = np.bincount(place, values, count) / sizes
        variance = np.bincount(place, values.astype(np.float64) ** 2, count) / sizes - mean**2
        return cls(mean, variance, has_all & (variance > _LEAST_VARIANCE))


class _Lines(NamedTuple):
    """The line of each leaf: the number that it is fitted to, -1 for none, and that one's slope, mean and deviation."""

    predictor: Ints
    slope: Floats
    mean: Floats
    deviation: Floats

    def at(self, values: Reals, leaves: Ints) -> Floats:
        """Return what lines say at values, which count as the outermost usual ones where they lie beyond."""
        widest = _NARROW * self.deviation[leaves]
        apart = np.clip(values - self.mean[leaves], -widest, widest)
        return np.where(values == NO_NUMBER, 0.0, self.slope[leaves] * apart)


def _choose_lines(
    moments: list[_Moments], products: Iterable[Floats], leaf_of_row: Ints, rest: Floats, sizes: Floats, noise: float
) -> _Lines:
    """Fit what is left in each leaf to the number that explains most; `products` are those of numbers and the rest."""
    count = len(sizes)
    mean = np.bincount(leaf_of_row, rest, count) / sizes
    spread = np.bincount(leaf_of_row, rest**2, count) / sizes + noise**2
    best: Floats = np.full(count, 2 * _SAVED + 2 * np.log(len(moments)))
    lines = _Lines(np.full(count, -1), np.zeros(count), np.zeros(count), np.zeros(count))
    for number, (number_moments, product) in enumerate(zip(moments, products, strict=True)):
        progress.check()
        covariance = np.bincount(leaf_of_row, product, count) / sizes - number_moments.mean * mean
        slope = covariance / np.maximum(number_moments.variance, _LEAST_VARIANCE)
        saved = sizes * np.log(spread / np.maximum(spread - slope * covariance, noise**2))
        is_better = number_moments.is_known & (saved > best)
        best[is_better] = saved[is_better]
        lines.predictor[is_better] = number
        for chosen, parameters in zip(
            lines[1:], (slope, number_moments.mean, np.sqrt(np.maximum(number_moments.variance, 0.0))), strict=True
        ):
            chosen[is_better] = parameters[is_better]
    return lines


FEWEST = 3
"""People of a leaf who share a choice, at least, for it to be drawn there."""
_NEIGHBOURS = 3  # ranks of a leaf whose mean is drawn, never one person's own
_RAKING_ROUNDS = 20
_MOVING_ROUNDS = 10
_MOST_MOVABLE = 200_000  # cells and choices in them that are looked at in a round
_SPARE = 4  # times as many rows are looked at as are moved: of a choice that has too many, not all may move
_FEW = 3  # times k: choices of fewer people are few
_NOISE = 0.2
"""Times k, a deviation: of a choice of 12 of 600 people, whether it was 11 is told with AUC .65, and .86 without."""


def find_leaf_shares(people: Floats, rows: Floats, parents: Ints, root: Floats | None = None) -> Floats:
    """Return the shares of choices at every node; choices of fewer than three of its people have those of its parent.

    What the people of rare choices weigh together goes to all choices that are rare at the node, in the shares that
    these have at its parent: whether one of them was there or not cannot be told from the other rare ones.

    Args:
        people, rows: How many people and rows have each choice at each node.
        parents: The node above each node; nodes come after their parents.
        root: The shares of choices in the whole table, where these are people of a part of it.
    """
    shares: Floats = rows / np.maximum(rows.sum(axis=1, keepdims=True), 1e-12)
    is_rare = people < FEWEST
    if root is not None:
        shares[0] = root
    elif not is_rare[0].all():
        shares[0][is_rare[0]] = 0.0
        shares[0] /= shares[0].sum()
    for node in range(1, len(parents)):
        above, rare = shares[parents[node]], is_rare[node]
        if rare.all():
            shares[node] = above
            continue
        mass, spread = float(shares[node][rare].sum()), float(above[rare].sum())
        shares[node][rare] = mass * above[rare] / spread if spread > 0 else 0.0
        shares[node] /= shares[node].sum()
    return shares


def draw_choices(shares: Floats, cells: Ints, wanted: Ints, random: np.random.Generator) -> Ints:
    """Draw a choice for every row, each as often as it is wanted if the cells allow that.

    Shares are raked to the wanted counts, choices drawn, and rows of choices that were drawn too often moved to
    choices that their cell has and that were drawn too seldom.

    Args:
        shares: Of choices, by cell; at least one is positive in each.
        cells: The cell of each row.
        wanted: How often each choice is wanted.
        random: Where chance comes from.
    """
    sizes = np.bincount(cells, minlength=len(shares))
    raked = shares / shares.sum(axis=1, keepdims=True)
    for _ in range(_RAKING_ROUNDS):
        expected = sizes @ raked
        moved = raked * np.where(expected > 0, wanted / np.maximum(expected, 1e-12), 0.0)
        total = moved.sum(axis=1, keepdims=True)
        raked = np.where(total > 0, moved / np.where(total > 0, total, 1.0), raked)
    counts = random.multinomial(sizes, raked / raked.sum(axis=1, keepdims=True))
    _move_surplus(counts, raked, wanted, random)
    codes: Ints = np.empty(len(cells), np.int64)
    order = random.permutation(len(cells))
    order = order[np.argsort(cells[order], kind="stable")]
    codes[order] = np.repeat(np.tile(np.arange(shares.shape[1]), len(shares)), counts.ravel())
    return codes


def add_noise(counts: Ints, k: int, random: np.random.Generator) -> Ints:
    """Add noise to the counts of choices that few people make, in which one person more or less would show."""
    is_few = (counts > 0) & (counts < _FEW * k)
    noise = np.rint(random.normal(0.0, _NOISE * k, len(counts))).astype(np.int64)
    return np.where(is_few, np.maximum(counts + noise, 1), counts)


def round_by_chance(expected: Floats | Ints, total: int, random: np.random.Generator) -> Ints:
    """Round expected counts up or down so that they add up to a total, each on average what is expected.

    The nearest whole numbers would give a few rows what is most likely, every time.
    """
    ends = np.floor(np.cumsum(expected) * (total / expected.sum()) + random.random()).astype(np.int64)
    ends[-1] = total
    return np.asarray(np.diff(np.minimum(ends, total), prepend=0))


def _move_surplus(counts: Ints, shares: Floats, wanted: Ints, random: np.random.Generator) -> None:
    """Move rows, in place, from choices drawn too often to those drawn too seldom, within cells that have both."""
    for _ in range(_MOVING_ROUNDS):
        surplus = counts.sum(axis=0) - wanted
        before = int(np.abs(surplus).sum())
        is_left = surplus > 0
        cells, overdrawn = np.nonzero(counts * is_left)
        if len(cells) > _MOST_MOVABLE:
            sample = random.choice(len(cells), _MOST_MOVABLE, replace=False)
            cells, overdrawn = cells[sample], overdrawn[sample]
        for choice in np.argsort(surplus, kind="stable").tolist():
            need = -int(surplus[choice])
            if need <= 0:
                break
            progress.check()
            candidates = np.flatnonzero((shares[cells, choice] > 0) & is_left[overdrawn])
            cell, other = cells[candidates], overdrawn[candidates]
            likely = np.log(shares[cell, choice]) - np.log(np.maximum(shares[cell, other], 1e-12))
            candidate_of_row = np.repeat(np.arange(len(candidates)), np.minimum(counts[cell, other], need))
            keys = -(likely[candidate_of_row] + random.gumbel(size=len(candidate_of_row)))
            first = (
                np.argpartition(keys, _SPARE * need)[: _SPARE * need]
                if len(candidate_of_row) > _SPARE * need
                else slice(None)
            )
            order = candidate_of_row[first][np.argsort(keys[first], kind="stable")]
            for candidate in order.tolist():
                if need <= 0:
                    break
                if surplus[other[candidate]] > 0 and counts[cell[candidate], other[candidate]] > 0:
                    surplus[other[candidate]] -= 1
                    counts[cell[candidate], other[candidate]] -= 1
                    counts[cell[candidate], choice] += 1
                    need -= 1
            surplus[choice] = -need
            is_left = surplus > 0
        if int(np.abs(wanted - counts.sum(axis=0)).sum()) in (0, before):
            break


def draw_ranks(
    leaves: Ints,
    ranks: Floats,
    new_leaves: Ints,
    limits: tuple[Floats, Floats] | None,
    jitter: float,
    random: np.random.Generator,
    fits: Fits | None = None,
    *,
    is_bounded: bool = True,
) -> Floats:
    """Draw ranks for new rows: means of three neighbouring ranks of their leaf's people, and what lies between.

    Args:
        leaves, ranks: Those of people, ranks from 0 to 1.
        new_leaves: Those of new rows; each has people.
        limits: The lowest and the highest rank that each new row may have; None where all may have any.
        jitter: The width of an interval of ranks from which noise is added.
        random: Where chance comes from.
        fits: What lines say about both. Then neighbours are those whose ranks are as far from the line, and new rows
            are as far from it; new rows that would be beyond their limits are drawn without.
    """
    if fits is not None:
        apart = draw_ranks(leaves, ranks - fits.people, new_leaves, None, jitter, random, is_bounded=False)
        drawn: Floats = fits.new + apart
        if limits is None:
            return _reflect(drawn, 0.0, 1.0)
        beyond = np.flatnonzero((drawn < limits[0]) | (drawn > limits[1]))
        inner = (limits[0][beyond], limits[1][beyond])
        drawn[beyond] = draw_ranks(leaves, ranks, new_leaves[beyond], inner, jitter, random)
        return drawn
    order = np.argsort(ranks, kind="stable")
    short = leaves[order].astype(np.min_scalar_type(leaves.max(initial=0)))  # two bytes, which numpy sorts in no time
    order = order[np.argsort(short, kind="stable")]
    ordered = ranks[order]
    names, starts = np.unique(leaves[order], return_index=True)
    leaf_of_new_row = np.searchsorted(names, new_leaves)
    start, end = starts[leaf_of_new_row], np.append(starts[1:], len(order))[leaf_of_new_row]
    if limits is not None:
        keys = np.repeat(np.arange(len(names)), np.diff(np.append(starts, len(order)))) * 2.0 + ordered
        inner_start = np.searchsorted(keys, leaf_of_new_row * 2.0 + limits[0], "left")
        inner_end = np.searchsorted(keys, leaf_of_new_row * 2.0 + limits[1], "right")
        is_empty = inner_start >= inner_end
        start, end = np.where(is_empty, start, inner_start), np.where(is_empty, end, inner_end)
    sums = np.concatenate([[0.0], np.cumsum(ordered)])
    width = np.minimum(_NEIGHBOURS, end - start)
    last = end - start - width
    position = random.random(len(leaf_of_new_row)) * last
    lower = np.floor(position).astype(np.int64)
    upper = np.minimum(lower + 1, last)
    means = [(sums[start + one + width] - sums[start + one]) / width for one in (lower, upper)]
    share = position - lower
    drawn = (1 - share) * means[0] + share * means[1] + (random.random(len(leaf_of_new_row)) - 0.5) * jitter
    if not is_bounded:
        return drawn
    low, high = (0.0, 1.0) if limits is None else limits
    if limits is not None:
        drawn = np.where(is_empty, low + random.random(len(leaf_of_new_row)) * (high - low), drawn)
    return _reflect(drawn, low, high)


def _reflect(values: Floats, low: Floats | float, high: Floats | float) -> Floats:
    """Turn values beyond an end back, so that none piles up there."""
    inside = low + np.abs(values - low)
    inside = high - np.abs(high - inside)
    return np.asarray(np.clip(inside, low, high))


def restrict_shares(shares: Floats, nodes: Ints, allowed: Bools, parents: Ints) -> tuple[Floats, Bools]:
    """Restrict the shares of cells to allowed choices, those of the nearest node above that has any.

    Args:
        shares: Of choices, by node.
        nodes: The node of each cell.
        allowed: The choices that each cell may have.
        parents: The node above each node.

    Returns:
        The shares by cell, and whether the cell may have any choice; where it may have none, it has its node's shares.
    """
    at = nodes.copy()
    restricted = shares[at] * allowed
    for _ in range(len(parents)):
        stuck = np.flatnonzero((restricted.sum(axis=1) <= 0) & (at > 0))
        if not len(stuck):
            break
        at[stuck] = parents[at[stuck]]
        restricted[stuck] = shares[at[stuck]] * allowed[stuck]
    is_possible = restricted.sum(axis=1) > 0
    restricted[~is_possible] = shares[nodes[~is_possible]]
    return restricted, is_possible

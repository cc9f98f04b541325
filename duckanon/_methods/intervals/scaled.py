"""Boxes as arrays: checked, brought to a common scale, with shares in place of counts, and linear forms over them.

The statistics over boxes are computed on columns that are moved to their middle and divided by a power of two, so that
all numbers lie within [-1, 1] and nothing overflows.  Both steps are rounded outward: the scaled box encloses the true
one, and what holds for every table in the scaled boxes holds for every table in the true ones.  `Forms` are two linear
forms of a record; the largest mean of their product over all tables is computed by `rectangles`.

References:
    REFERENCES.md, Boxes, "Exact ranges over boxes": separable bounds.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from duckanon._core.common.arrays import Bools, Floats, Ints

EPS = float(np.finfo(np.float64).eps)
TINY = 1e-290  # what underflow may cost, in scaled units


@dataclass(frozen=True)
class ScaledBoxes:
    """Scaled boxes: `x = center + 2**exponent * scaled`."""

    # lo, hi: columns x boxes: ends of the scaled boxes, each at or outside the true end
    lo: Floats
    hi: Floats
    amount: Floats  # one per box: weight of the box's records together, on any scale
    share: Floats  # one per box: weight of the box's records together; all sum to 1
    records: Ints  # one per box: number of records in the box
    center: Floats  # one per column: the point that became 0
    exponent: Ints  # one per column: the power of two that became 1

    @cached_property
    def middle(self) -> Floats:
        """Midpoints, columns x boxes."""
        return 0.5 * (self.lo + self.hi)

    @cached_property
    def half(self) -> Floats:
        """Half-widths, columns x boxes, rounded up."""
        return 0.5 * (self.hi - self.lo) * (1 + 4 * EPS)

    @cached_property
    def weight(self) -> float:
        """The sum of the amounts."""
        return math.fsum(self.amount)

    @cached_property
    def mean_middle(self) -> Floats:
        """Means of the midpoints, one per column."""
        return self.middle @ self.share

    @cached_property
    def mean_half(self) -> Floats:
        """Means of the half-widths, one per column."""
        return self.half @ self.share

    @cached_property
    def sizes(self) -> Floats:
        """Means of the products of the largest absolute values of two columns, columns x columns."""
        size = np.abs(self.middle) + self.half
        return np.asarray((size * self.share) @ size.T)

    @property
    def total(self) -> int:
        """Number of records whose weight is not 0."""
        return int(self.records[self.share > 0].sum())

    @property
    def squares(self) -> float:
        """Sum of the squared shares of the records; 1/N when all weights are equal."""
        return float(np.sum(self.share**2 / self.records))

    @property
    def slack(self) -> float:
        """Relative rounding error of a weighted sum over the boxes, generously."""
        return (32 + float(np.log2(len(self.share) + 1))) * EPS

    def take(self, boxes: Ints) -> ScaledBoxes:
        """Return the boxes with these indices, as new arrays; an index may occur several times."""
        lo, hi, amount, share = self.lo[:, boxes], self.hi[:, boxes], self.amount[boxes], self.share[boxes]
        return replace(self, lo=lo, hi=hi, amount=amount, share=share, records=self.records[boxes])

    def scale(self, *columns: int) -> int:
        """Exponent of the product of these columns' units."""
        return int(sum(self.exponent[list(columns)]))


def scale_boxes(lo: ArrayLike, hi: ArrayLike, multiplicity: ArrayLike, weights: ArrayLike | None = None) -> ScaledBoxes:
    """Check boxes and bring them to scale; boxes of weight 0 are kept, with a share of 0.

    Ends are boxes x columns. The weight is that of every record in the box; 1 when it is None.
    """
    low, high = check_ends(lo, hi)
    boxes, columns = low.shape
    records = check_counts(multiplicity, boxes)
    amount = records.astype(np.float64) if weights is None else records * check_weights(weights, boxes)
    share = amount / amount.max()
    share /= share.sum()
    used = share > 0
    scaled = [_scale_column(low[:, i], high[:, i], used) for i in range(columns)]
    return ScaledBoxes(
        lo=np.stack([s[0] for s in scaled]),
        hi=np.stack([s[1] for s in scaled]),
        amount=amount,
        share=share,
        records=records,
        center=np.array([s[2] for s in scaled]),
        exponent=np.array([s[3] for s in scaled], dtype=np.int64),
    )


def read_matrix(values: ArrayLike, name: str) -> Floats:
    """Return numbers as a matrix, boxes x columns; a list is one column."""
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.ndim == 1:
        numbers = numbers[:, None]
    if numbers.ndim != 2:
        raise ValueError(f"{name} must be a matrix, boxes x columns; got {numbers.ndim} dimensions.")
    return numbers


def check_ends(lo: ArrayLike, hi: ArrayLike) -> tuple[Floats, Floats]:
    """Return the ends of boxes as matrices, boxes x columns, or say what is wrong with them."""
    low, high = read_matrix(lo, "lo"), read_matrix(hi, "hi")
    if low.shape != high.shape:
        raise ValueError(f"hi must have the shape of lo, {low.shape}; got {high.shape}.")
    if 0 in low.shape:
        raise ValueError(f"lo and hi must have at least one box and one column; got the shape {low.shape}.")
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise ValueError("lo and hi must be finite numbers; got NaN, NULL or infinity.")
    if (inverted := low > high).any():
        # The numbers themselves may be people's values.
        raise ValueError(f"lo must not be above hi; it is in {np.count_nonzero(inverted.any(axis=1))} boxes.")
    return low, high


def check_counts(multiplicity: ArrayLike, boxes: int) -> Ints:
    """Return the number of records per box, or say what is wrong with it."""
    counts = np.asarray(multiplicity)
    if counts.shape != (boxes,):
        raise ValueError(f"multiplicity must have one number for each of the {boxes} boxes; got {counts.shape}.")
    # Doubles tell whole numbers apart up to 2^53.
    if counts.dtype.kind not in "iuf" or not np.all((counts >= 1) & (counts < 2**53) & (counts == np.floor(counts))):
        raise ValueError("multiplicity must be whole numbers of at least 1; got others.")
    return counts.astype(np.int64)


def check_weights(weights: ArrayLike, boxes: int) -> Floats:
    """Return the weight of each record of a box, divided by the largest, or say what is wrong with the weights."""
    numbers = np.asarray(weights, dtype=np.float64)
    if numbers.shape != (boxes,):
        raise ValueError(f"weights must have one number for each of the {boxes} boxes; got {numbers.shape}.")
    if not (np.isfinite(numbers).all() and (numbers >= 0).all() and (numbers > 0).any()):
        raise ValueError("weights must be finite numbers of at least 0, one of them above 0; got others.")
    return np.asarray(numbers / numbers.max())


def unscale_outward(value: float, exponent: int, up: bool, offset: float = 0.0) -> float:
    """Bring a scaled end back to the units of the data, rounded outward (up for an upper end), and add the offset."""
    away = np.inf if up else -np.inf
    with np.errstate(over="ignore", under="ignore"):
        result = float(np.ldexp(value, exponent))
        exact = float(np.ldexp(result, -exponent)) == value  # false after an underflow; infinite when it overflowed
    if not exact:
        result = float(np.nextafter(result, away))
    if offset == 0.0:
        return result
    with np.errstate(over="ignore", invalid="ignore"):
        total, error = _add_exactly(np.array([result]), offset)
    if not np.isfinite(total[0]):
        # Only the last ulp before infinity can overflow: a mean lies within its data.
        return float(away if (total[0] > 0) == up else np.nextafter(total[0], 0.0))
    return float(total[0] if error[0] == 0 else np.nextafter(total[0], away))


def _scale_column(lo: Floats, hi: Floats, used: Bools) -> tuple[Floats, Floats, float, int]:
    """Scale one column: lower ends, upper ends, center, exponent."""
    # Boxes without weight must not widen the range, as they may lie anywhere.
    lo, hi = np.where(used, lo, lo[used][0]), np.where(used, hi, hi[used][0])
    least, most = float(lo.min()), float(hi.max())
    first = int(np.frexp(max(abs(least), abs(most)))[1])
    low, high = np.ldexp(lo, -first), np.ldexp(hi, -first)
    middle = 0.5 * (float(low.min()) + float(high.max()))
    if least == most:
        middle = float(low[0])
    center = float(np.ldexp(middle, first))
    middle = float(np.ldexp(center, -first))
    low, low_error = _add_exactly(low, -middle)
    high, high_error = _add_exactly(high, -middle)
    low = np.where(low_error < 0, np.nextafter(low, -np.inf), low)
    high = np.where(high_error > 0, np.nextafter(high, np.inf), high)
    spread = max(abs(float(low.min())), abs(float(high.max())))
    second = int(np.frexp(spread)[1]) if spread > 0 else 0
    return np.ldexp(low, -second), np.ldexp(high, -second), center, first + second


def _add_exactly(a: Floats, b: float) -> tuple[Floats, Floats]:
    """Sum and its exact rounding error (Knuth)."""
    total = a + b
    other = total - a
    return total, (a - (total - other)) + (b - other)


@dataclass(frozen=True)
class Peak:
    """Moments of the table in which every record is at the best point of its box for one (u, v)."""

    value: float  # the mean of the largest products, rounded up
    exact: float  # the same as computed
    # mean_a, mean_r: the means of the forms in that table
    mean_a: float
    mean_r: float
    second: Floats | None  # 2 x 2 float64 or None: the second moments of a and r about (u, v) in that table


class Forms(ABC):
    """Two linear forms over boxes, by their coefficients of each column, brought to means of equal reach."""

    def __init__(self, boxes: ScaledBoxes, a: Floats, r: Floats) -> None:
        a, r = np.asarray(a, dtype=np.float64), np.asarray(r, dtype=np.float64)
        used = (a != 0) | (r != 0)
        self.slack = boxes.slack + 8 * np.count_nonzero(used) * EPS
        reach_a, reach_r = float(np.abs(a) @ boxes.mean_half), float(np.abs(r) @ boxes.mean_half)
        # The product of the two stays the same.
        ratio = np.sqrt(reach_r / reach_a) if reach_a > 0 and reach_r > 0 else 1.0
        self.ratio = float(2.0 ** np.round(np.log2(ratio)))
        self.a, self.r = a * self.ratio, r / self.ratio
        self.reach_a, self.reach_r = reach_a * self.ratio, reach_r / self.ratio
        self.reach_t = float(np.abs(self.a - self.r) @ boxes.mean_half) * (1 + self.slack)
        self.center_a, self.center_r = float(self.a @ boxes.mean_middle), float(self.r @ boxes.mean_middle)
        # size_a, size_r: the means of the squares that the forms have at most
        self.size_a, self.size_r = (float(np.abs(form) @ boxes.sizes @ np.abs(form)) for form in (self.a, self.r))

    @abstractmethod
    def peak(self, u: float, v: float, moments: bool = False) -> Peak:
        """Put every record at the best point of its box for (a - u)(r - v), with second moments if asked for."""

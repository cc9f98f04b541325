"""Boxes: k-anonymous and l-diverse intervals that keep the requested statistics accurate.

References
----------
Accurate Boxes; Fuzzy Boxes; REFERENCES.md, Boxes, "Tiling space with the boxes".
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from duckanon.boxes.diversity import diverse
from duckanon.boxes.ends import rounded_outward
from duckanon.boxes.nodes import Leaves, Points, value_order
from duckanon.boxes.portfolio import leaves_of
from duckanon.boxes.search import Rules
from duckanon.boxes.shaping import Sensitivities, Statistic, sensitivities
from duckanon.common.arguments import Number, OneOf, Whole, checked, refuse_unless
from duckanon.common.arrays import Floats, Ints
from duckanon.common.people import people_in, refuse_too_few

EFFORTS = ("default", "thorough")
_LARGEST = 1e100  # sums of squares of such numbers are still far from the largest double
KINDS = ("cell", "bounds", "rounded")


@dataclass(frozen=True)
class Boxes:
    """Records in boxes.

    Attributes
    ----------
    names : tuple of str
        The columns.
    box : int64, one per record
        The number of the record's box, from 0.
    counts : int64, one per box
        The number of records.
    bounds : pair of float64, boxes by columns
        The smallest and the largest value of the records.
    cell : pair of float64, boxes by columns
        The cells, which tile the space between the data's extremes: cuts lie midway between neighbours.
    sensitivities : Sensitivities
        What shaped the boxes.
    """

    names: tuple[str, ...]
    box: Ints
    counts: Ints
    bounds: tuple[Floats, Floats]
    cell: tuple[Floats, Floats]
    sensitivities: Sensitivities

    @property
    def rounded(self) -> tuple[Floats, Floats]:
        """The bounds, grown outward to readable numbers."""
        return rounded_outward(*self.bounds)

    def intervals(self, kind: str = "cell") -> tuple[Floats, Floats]:
        """Return lower and upper ends, boxes by columns; `kind` is 'cell', 'bounds' or 'rounded'."""
        refuse_unless(OneOf(*KINDS), "kind", kind)
        ends: tuple[Floats, Floats] = getattr(self, kind)
        return ends

    def uncertainty(self, kind: str = "bounds") -> float:
        """Return the linear half-width Delta of Fuzzy Boxes, Section II, with the derivatives at the boxes' midpoints.

        For one statistic it is its half-width over the desired accuracy; for several the mean of that (equation 4).
        """
        lower, upper = self.intervals(kind)
        middle = lower / 2 + upper / 2
        weights = self.sensitivities.at(list(middle.T))
        half = upper / 2 - lower / 2
        return float(sum((self.counts * w * half[:, j]).sum() for j, w in enumerate(weights)) / self.counts.sum())


@checked(k=Whole(2), l=Whole(1), effort=OneOf(*EFFORTS), seconds=Number(0, null=True))
def make_boxes(
    columns: Mapping[str, ArrayLike],
    k: int,
    statistics: Sequence[Statistic] | None = None,
    l: int = 1,  # noqa: E741 - the papers' name
    epsilon: Mapping[str, float] | None = None,
    effort: str = "default",
    seconds: float | None = None,
    progress: Callable[[float], None] | None = None,
    people: Ints | None = None,
) -> Boxes:
    """Put records into boxes of at least k records that make the requested statistics as accurate as possible.

    Parameters
    ----------
    columns : mapping of str to array of float
        The columns, all of the same length, without NaN and infinity.
    k : int
        The smallest number of records in a box, or of people where they are told apart, at least 2.
    statistics : sequence of Statistic, optional
        What the boxes should serve; None: the means of all columns.  Columns that no statistic uses do not shape the
        boxes.
    l : int
        The smallest number of values in each column of a box that are at least epsilon apart, at most k.
    epsilon : mapping of str to float, optional
        How far apart values of a column must be to count as different; 0 where it is not named.
    effort : {'default', 'thorough'}
        'thorough' begins subtrees anew many times and keeps what is better; it takes about a hundred times longer.
    seconds : float, optional
        When 'thorough' should stop trying.  Without it, it always finds the same boxes.
    progress : callable, optional
        Called with the share of the work that is done.
    people : int64, one per record, optional
        Whose each record is (`common.people.person_numbers`); None where every record is another person.

    Returns
    -------
    Boxes
        They do not depend on the order of the records.  Equal records are in the same box.

    Raises
    ------
    ValueError
        If an argument is not as described, or the whole table has fewer than l different values in a column.

    Examples
    --------
    >>> boxes = make_boxes({"age": [21, 25, 33, 38, 61, 70]}, k=3)
    >>> boxes.box.tolist()
    [0, 0, 0, 1, 1, 1]
    >>> lower, upper = boxes.intervals("rounded")
    >>> lower.ravel().tolist(), upper.ravel().tolist()
    ([21.0, 38.0], [33.0, 70.0])
    """
    data = _checked_columns(columns)
    records = len(next(iter(data.values())))
    refuse_too_few(k, records, people, "records")
    refuse_unless(Whole(1, k), "l", l)
    distances = _checked_distances(data, epsilon)
    if l > 1:
        _refuse_uniform_columns(data, l, distances)
    # Sorted by value, sums and samples are the same for every order of the records.
    order = value_order(list(data.values()))
    ordered = {name: values.take(order) for name, values in data.items()}
    sensitivity = sensitivities(ordered, statistics)
    points, shaping, point_distances = _points(ordered, sensitivity, l, distances)
    points = points._replace(people=None if people is None else people.take(order))
    if shaping:
        deadline = math.inf if seconds is None else time.monotonic() + seconds
        report = progress or (lambda share: None)
        rules = Rules(k, l, point_distances)
        batches = list(leaves_of(points, rules, effort == "thorough", deadline, report))
    else:
        batches = [_one_box(records)]
    boxes = _numbered(ordered, order, shaping, batches, sensitivity)
    _promise(boxes, data, k, l, distances, people)
    return boxes


def _points(
    columns: Mapping[str, Floats],
    sensitivity: Sensitivities,
    l: int,  # noqa: E741
    distances: Mapping[str, float],
) -> tuple[Points, list[int], list[float]]:
    """Return what the search works on, which columns shape the boxes, and how far apart values of its columns must be.

    Columns to which no statistic is sensitive take part only where they have to be diverse.
    """
    names = list(columns)
    weights = sensitivity.at(list(columns.values()))
    shaping = [column for column, weight in enumerate(weights) if np.max(weight) > 0]
    passive = [column for column in range(len(names)) if column not in shaping] if l > 1 else []
    values = [columns[names[column]] for column in shaping + passive]
    points = Points(values, [weights[column] for column in shaping])
    return points, shaping, [distances[names[column]] for column in shaping + passive]


def _one_box(records: int) -> Leaves:
    """Put all records into one box, as no column shapes any."""
    no_ends = np.zeros((1, 0))
    return Leaves(np.arange(records), np.array([records]), np.array([0]), no_ends, no_ends)


def _numbered(
    ordered: Mapping[str, Floats], order: Ints, shaping: list[int], batches: list[Leaves], sensitivity: Sensitivities
) -> Boxes:
    """Give boxes numbers, by their first record in the order of values, and find their ends.

    Parameters
    ----------
    ordered : mapping of str to float64
        The columns, sorted by value.
    order : int64, one per record
        The record that each row of `ordered` is.
    shaping : list of int
        The columns that the search cut.
    batches : list of Leaves
        The boxes, with rows of `ordered`.
    sensitivity : Sensitivities
        What shaped the boxes.
    """
    counts = np.concatenate([leaves.sizes for leaves in batches])
    rows = np.concatenate([leaves.records for leaves in batches])
    starts = np.cumsum(counts) - counts
    rank = np.argsort(np.minimum.reduceat(rows, starts))
    number = np.empty_like(rank)
    number[rank] = np.arange(len(rank))
    box = np.empty(len(order), dtype=np.int64)
    box[order[rows]] = np.repeat(number, counts)
    bounds = np.empty((2, len(counts), len(ordered)))
    cell = np.empty((2, len(counts), len(ordered)))
    for column, values in enumerate(ordered.values()):
        by_box = values.take(rows)
        bounds[0, :, column] = np.minimum.reduceat(by_box, starts)[rank]
        bounds[1, :, column] = np.maximum.reduceat(by_box, starts)[rank]
        cell[0, :, column], cell[1, :, column] = values.min(), values.max()
    for position, column in enumerate(shaping):
        cell[0, :, column] = np.concatenate([leaves.lower[:, position] for leaves in batches])[rank]
        cell[1, :, column] = np.concatenate([leaves.upper[:, position] for leaves in batches])[rank]
    return Boxes(tuple(ordered), box, counts[rank], (bounds[0], bounds[1]), (cell[0], cell[1]), sensitivity)


def _promise(
    boxes: Boxes,
    data: Mapping[str, Floats],
    k: int,
    l: int,  # noqa: E741
    epsilon: Mapping[str, float],
    people: Ints | None,
) -> None:
    """Count again, from the result alone, what was promised."""
    counts = np.bincount(boxes.box)
    if not np.array_equal(counts, boxes.counts) or people_in(boxes.box, people, len(counts)).min() < k:
        raise AssertionError(f"a box has fewer than {k} {'records' if people is None else 'people'}.")
    if l > 1:
        orders = [np.lexsort((values, boxes.box)) for values in data.values()]
        starts = np.cumsum(counts) - counts
        if not diverse(list(data.values()), orders, starts, counts, l, list(epsilon.values())).all():
            raise AssertionError(f"a box has fewer than {l} different values in a column.")


def _checked_columns(columns: Mapping[str, ArrayLike]) -> dict[str, Floats]:
    """Return the columns as arrays, or say what is wrong with them."""
    data = {name: np.ascontiguousarray(values, dtype=np.float64) for name, values in columns.items()}
    if not data:
        raise ValueError("columns must have at least one column; got none.")
    shapes = {values.shape for values in data.values()}
    if len(shapes) > 1 or len(shapes.pop()) != 1:
        raise ValueError("columns must be lists of the same length; got others.")
    for name, values in data.items():
        if not np.isfinite(values).all():
            raise ValueError(f"column '{name}' must hold finite numbers; got NaN or infinity.")
        if values.size and max(-values.min(), values.max()) > _LARGEST:
            raise ValueError(f"column '{name}' must hold numbers up to {_LARGEST:g}, to be squared; got larger ones.")
    return data


def _checked_distances(data: Mapping[str, Floats], epsilon: Mapping[str, float] | None) -> dict[str, float]:
    """Return how far apart values of each column must be to count as different, or say what is wrong with epsilon."""
    distances = dict.fromkeys(data, 0.0)
    for name, distance in (epsilon or {}).items():
        if name not in data:
            raise ValueError(f"epsilon must name columns among {', '.join(data)}; got '{name}'.")
        refuse_unless(Number(0), f"epsilon of column '{name}'", distance)
        distances[name] = float(distance)
    return distances


def _refuse_uniform_columns(data: Mapping[str, Floats], l: int, distances: Mapping[str, float]) -> None:  # noqa: E741
    """Say which column of the whole table has not enough values that are far enough apart."""
    for name, values in data.items():
        everything = np.array([0]), np.array([len(values)])
        if not diverse([values], [np.argsort(values)], *everything, l, [distances[name]])[0]:
            raise ValueError(f"column '{name}' must have at least {l} values that are far enough apart; it has fewer.")

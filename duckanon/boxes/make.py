"""Boxes: k-anonymous and l-diverse intervals that keep the statistics one cares about.

References
----------
"Data Anonymization that Leads to the Most Accurate Estimates" (000) and its "Fuzzy-Motivated Approach" (001);
`ERRATA.md`, Boxes, "Tiling space with the boxes".
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
from duckanon.boxes.nodes import Floats, Ints, Leaves, Points
from duckanon.boxes.portfolio import leaves_of
from duckanon.boxes.search import Rules
from duckanon.boxes.shaping import Sensitivities, Statistic, sensitivities

EFFORTS = ("default", "thorough")
_LARGEST = 1e100
KINDS = ("cell", "bounds", "rounded")


@dataclass(frozen=True)
class Boxes:
    """Records in boxes.

    Attributes
    ----------
    names : tuple of str
        The columns.
    box : int64, one a record
        The number of the record's box, from 0.
    counts : int64, one a box
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
        if kind not in KINDS:
            raise ValueError(f"Unknown box '{kind}': use one of {', '.join(KINDS)}.")
        ends: tuple[Floats, Floats] = getattr(self, kind)
        return ends

    def uncertainty(self, kind: str = "bounds") -> float:
        """Return the linear half-width Delta of 001, Section II, with the derivatives at the boxes' midpoints.

        For one statistic it is its half-width over the desired accuracy; for several the mean of that (equation 4).
        """
        lower, upper = self.intervals(kind)
        middle = lower / 2 + upper / 2
        weights = self.sensitivities.at(list(middle.T))
        half = upper / 2 - lower / 2
        return float(sum((self.counts * w * half[:, j]).sum() for j, w in enumerate(weights)) / self.counts.sum())


def make_boxes(
    columns: Mapping[str, ArrayLike],
    k: int,
    statistics: Sequence[Statistic] | None = None,
    l: int = 1,  # noqa: E741 - the papers' name
    epsilon: Mapping[str, float] | None = None,
    effort: str = "default",
    seconds: float | None = None,
    progress: Callable[[float], None] | None = None,
) -> Boxes:
    """Put records into boxes of at least k records that make the requested statistics as accurate as possible.

    Parameters
    ----------
    columns : mapping of str to array of float
        The columns, all of the same length, without NaN and infinity.
    k : int
        The smallest number of records in a box, at least 2.
    statistics : sequence of Statistic, optional
        What the boxes should serve; None: the means of all columns.  Columns that no statistic uses do not shape the
        boxes.
    l : int
        The smallest number of values in each column of a box that are at least epsilon apart, at most k.
    epsilon : mapping of str to float, optional
        How far apart values of a column must be to count as different; 0 where it is not named.
    effort : {'default', 'thorough'}
        'thorough' begins subtrees anew many times and keeps what is better; it takes some hundred times longer.
    seconds : float, optional
        When 'thorough' should stop trying.  Without it, it always finds the same boxes.
    progress : callable, optional
        Called with the share of the work that is done.

    Returns
    -------
    Boxes
        They do not depend on the order of the records.  Equal records are in the same box.

    Raises
    ------
    ValueError
        If an argument is not as described, or the whole table has fewer than l different values in a column.
    """
    data, checked_epsilon = _checked(columns, k, l, epsilon, effort, seconds)
    names = tuple(data)
    # Sorted by value, sums and samples are the same for every order of the records.
    everything = list(data.values())
    order = _value_order(everything)
    everything = [values.take(order) for values in everything]
    sensitivity = sensitivities(dict(zip(names, everything, strict=True)), statistics)
    weights = sensitivity.at(everything)
    shaping = [j for j, w in enumerate(weights) if np.max(w) > 0]
    passive = [j for j in range(len(names)) if j not in shaping] if l > 1 else []
    points = Points([everything[j] for j in shaping + passive], [weights[j] for j in shaping])
    size, n = len(order), len(names)
    distances = [checked_epsilon[names[j]] for j in shaping + passive]
    rules = Rules(k, l, distances)
    del weights
    if not shaping:
        found = [Leaves(np.arange(size), np.array([size]), np.array([0]), np.zeros((1, 0)), np.zeros((1, 0)))]
    else:
        limit = math.inf if seconds is None else time.monotonic() + seconds
        found = list(leaves_of(points, rules, effort == "thorough", limit, progress or (lambda share: None)))
    # Boxes are numbered by their first record in the order of values.
    counts = np.concatenate([leaves.sizes for leaves in found])
    records = np.concatenate([leaves.records for leaves in found])
    starts = np.cumsum(counts) - counts
    rank = np.argsort(np.minimum.reduceat(records, starts))
    number = np.empty_like(rank)
    number[rank] = np.arange(len(rank))
    box = np.empty(size, dtype=np.int64)
    box[order[records]] = np.repeat(number, counts)
    bounds = np.empty((2, len(counts), n))
    cell = np.empty((2, len(counts), n))
    for j, values in enumerate(everything):
        there = values.take(records)
        bounds[0, :, j] = np.minimum.reduceat(there, starts)[rank]
        bounds[1, :, j] = np.maximum.reduceat(there, starts)[rank]
        cell[0, :, j], cell[1, :, j] = values.min(), values.max()
    for i, j in enumerate(shaping):
        cell[0, :, j] = np.concatenate([leaves.lower[:, i] for leaves in found])[rank]
        cell[1, :, j] = np.concatenate([leaves.upper[:, i] for leaves in found])[rank]
    result = Boxes(names, box, counts[rank], (bounds[0], bounds[1]), (cell[0], cell[1]), sensitivity)
    _promise(result, data, k, l, checked_epsilon)
    return result


def _value_order(columns: Sequence[Floats]) -> Ints:
    """Sort records by the first column, equal ones by the second, and so on."""
    order: Ints = np.argsort(columns[0])
    first = columns[0].take(order)
    if (first[1:] != first[:-1]).all():
        return order
    run = np.concatenate([[0], np.cumsum(first[1:] != first[:-1])])
    for values in columns[1:]:
        if run[-1] == len(order) - 1:
            break
        tied = np.zeros(len(order), dtype=np.bool_)
        np.equal(run[1:], run[:-1], out=tied[1:])
        tied[:-1] |= tied[1:]
        places = np.flatnonzero(tied)
        records = order[places]
        there = values.take(records)
        by_value = np.argsort(there)
        there = there[by_value]
        # Run and rank of the value in one number, as sorting one number is fast.
        key = np.empty(len(places), dtype=np.int64)
        key[by_value] = np.concatenate([[0], np.cumsum(there[1:] != there[:-1])])
        key += run[places] * len(order)
        by_key = np.argsort(key)
        order[places] = records[by_key]
        key = key[by_key]
        step = np.concatenate([[True], run[1:] != run[:-1]])
        step[places[1:]] |= key[1:] != key[:-1]
        run = np.cumsum(step) - 1
    return order


def _promise(boxes: Boxes, data: Mapping[str, Floats], k: int, l: int, epsilon: Mapping[str, float]) -> None:  # noqa: E741
    """Count again, from the result alone, what was promised."""
    counts = np.bincount(boxes.box)
    if not np.array_equal(counts, boxes.counts) or counts.min() < k:
        raise AssertionError(f"A box has fewer than {k} records.")
    if l > 1:
        orders = [np.lexsort((values, boxes.box)) for values in data.values()]
        starts = np.cumsum(counts) - counts
        if not diverse(list(data.values()), orders, starts, counts, l, list(epsilon.values())).all():
            raise AssertionError(f"A box has fewer than {l} different values in a column.")


def _checked(
    columns: Mapping[str, ArrayLike],
    k: int,
    l: int,  # noqa: E741
    epsilon: Mapping[str, float] | None,
    effort: str,
    seconds: float | None,
) -> tuple[dict[str, Floats], dict[str, float]]:
    """Return columns and epsilons as they are used, or say what is wrong with an argument."""
    data = {name: np.ascontiguousarray(values, dtype=np.float64) for name, values in columns.items()}
    if not data:
        raise ValueError("At least one column is needed.")
    sizes = {values.shape for values in data.values()}
    if len(sizes) > 1 or len(size := sizes.pop()) != 1:
        raise ValueError("The columns must be lists of the same length.")
    for name, values in data.items():
        if not np.isfinite(values).all():
            raise ValueError(f"Column '{name}' has NaN or infinite values.")
        if values.size and max(-values.min(), values.max()) > _LARGEST:
            raise ValueError(f"Column '{name}' has values beyond {_LARGEST:g}, whose squares cannot be computed.")
    if k < 2:
        raise ValueError(f"k must be an integer of at least 2; got {k}.")
    if k > size[0]:
        raise ValueError(f"k is {k}, but there are only {size[0]} records.")
    if not 1 <= l <= k:
        raise ValueError(f"l must be an integer from 1 to k, which is {k}; got {l}.")
    if effort not in EFFORTS:
        raise ValueError(f"Unknown effort '{effort}': use one of {', '.join(EFFORTS)}.")
    if seconds is not None and not seconds >= 0:
        raise ValueError(f"The time limit must be at least 0 seconds; got {seconds}.")
    distances = dict.fromkeys(data, 0.0)
    for name, distance in (epsilon or {}).items():
        if name not in data:
            raise ValueError(f"Epsilon is given for column '{name}', which is not among {', '.join(data)}.")
        if not 0 <= distance < math.inf:
            raise ValueError(f"Epsilon of column '{name}' must be a number of at least 0; got {distance}.")
        distances[name] = float(distance)
    if l > 1:
        for name, values in data.items():
            whole = np.array([0]), np.array([size[0]])
            if not diverse([values], [np.argsort(values)], *whole, l, [distances[name]])[0]:
                raise ValueError(f"Column '{name}' has fewer than {l} values that are far enough apart.")
    return data, distances

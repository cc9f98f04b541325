"""Validate the input of boxes, and count their promises."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from duckanon._core.common.arguments import refuse_unless
from duckanon._core.common.arrays import Floats, Ints
from duckanon._core.common.people import people_in
from duckanon._core.common.rules import Number
from duckanon._core.numbers.parts import Parts
from duckanon._methods.boxes.diversity import diverse
from duckanon._methods.boxes.result import Boxes

_LARGEST = 1e100  # sums of squares of such numbers are still far from the largest double


def promise(
    boxes: Boxes,
    data: Mapping[str, Floats],
    k: int,
    l: int,  # noqa: E741 - the papers' name
    epsilon: Mapping[str, float],
    people: Ints | None,
    strata: Ints | None,
) -> None:
    """Count the promises again, from the result only."""
    counts = np.bincount(boxes.box)
    if not np.array_equal(counts, boxes.counts) or people_in(boxes.box, people, len(counts)).min() < k:
        raise AssertionError(f"a box has fewer than {k} {'records' if people is None else 'people'}.")
    if strata is not None:
        one_each = np.empty(len(counts), np.int64)
        one_each[boxes.box] = strata
        if (one_each[boxes.box] != strata).any():
            raise AssertionError("a box has records of two strata.")
    if boxes.parts is not None:
        for column, values in enumerate(data.values()):
            lower, upper = boxes.parts[0][boxes.box, column], boxes.parts[1][boxes.box, column]
            if (values < lower).any() or (values > upper).any():
                raise AssertionError("a record lies outside its box.")
    if l > 1:
        orders = [np.lexsort((values, boxes.box)) for values in data.values()]
        starts = np.cumsum(counts) - counts
        if not diverse(list(data.values()), orders, starts, counts, l, list(epsilon.values())).all():
            raise AssertionError(f"a box has fewer than {l} different values in a column.")


def promise_parts(parts: Parts, k: int, people: Ints | None) -> None:
    """Count again how many people share each part, whose ends are published."""
    if people_in(parts.number, people, len(parts.lower)).min() < k:
        raise AssertionError(f"a part of a column has fewer than {k} {'records' if people is None else 'people'}.")


def checked_columns(columns: Mapping[str, ArrayLike]) -> dict[str, Floats]:
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


def checked_distances(data: Mapping[str, Floats], epsilon: Mapping[str, float] | None) -> dict[str, float]:
    """Return how far apart values of each column must be to count as different, or say what is wrong with epsilon."""
    distances = dict.fromkeys(data, 0.0)
    for name, distance in (epsilon or {}).items():
        if name not in data:
            raise ValueError(f"epsilon must name columns among {', '.join(data)}; got '{name}'.")
        refuse_unless(Number(0), f"epsilon of column '{name}'", distance)
        distances[name] = float(distance)
    return distances


def refuse_uniform_columns(data: Mapping[str, Floats], l: int, distances: Mapping[str, float]) -> None:  # noqa: E741
    """Say which column of the whole table has not enough values that are far enough apart."""
    for name, values in data.items():
        everything = np.array([0]), np.array([len(values)])
        if not diverse([values], [np.argsort(values)], *everything, l, [distances[name]])[0]:
            raise ValueError(f"column '{name}' must have at least {l} values that are far enough apart; it has fewer.")

"""Boxes: k-anonymous and l-diverse intervals that keep the requested statistics accurate.

References:
    Accurate Boxes; Fuzzy Boxes; REFERENCES.md, Boxes, "Tiling space with the boxes".
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from duckanon._core.common import rules as option_rules
from duckanon._core.common.arguments import checked, refuse_unless
from duckanon._core.common.arrays import Floats, Ints
from duckanon._core.common.people import refuse_too_few, unless_rows
from duckanon._core.common.rules import Flag, Number, OneOf
from duckanon._core.numbers.parts import Parts, column_parts, parts_of_part
from duckanon._core.numbers.support import Support, column_support
from duckanon._methods.boxes import checks
from duckanon._methods.boxes.nodes import Leaves, Points, value_order
from duckanon._methods.boxes.portfolio import leaves_of
from duckanon._methods.boxes.result import KINDS, Boxes
from duckanon._methods.boxes.search import Rules
from duckanon._methods.boxes.shaping import Sensitivities, Statistic, Whole, sensitivities

EFFORTS = ("quick", "default", "thorough")


@checked(
    k=option_rules.Whole(2),
    l=option_rules.Whole(1),
    effort=OneOf(*EFFORTS),
    seconds=Number(0, null=True),
    kind=OneOf(*KINDS),
    bounds_are_public=Flag(),
)
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
    kind: str = "parts",
    supports: Mapping[str, Support] | None = None,
    strata: Ints | None = None,
    *,
    bounds_are_public: bool = False,
    whole: Whole | None = None,
) -> Boxes:
    """Put records into boxes of at least k records that make the requested statistics as accurate as possible.

    The boxes do not depend on the order of the records.  Equal records are in the same box, if strata are.

    Args:
        columns: All of the same length, without NaN and infinity; those that no statistic uses do not shape the boxes.
        effort: 'quick' cuts by estimates alone, as tables of more than 200,000 records are cut anyway; 'thorough'
            begins subtrees anew many times, too, and takes about a hundred times longer.
        seconds: When 'thorough' should stop trying.  Without it, it always finds the same boxes.
        progress: Called with the share of the work that is done.
        kind: Which of `KINDS` will be published: their widths are made small.
        supports: The units and ends of columns, for 'parts'; found from the values where they are not given.  Boxes are
            then made of the coded values.
        strata: Each must hold enough for a box.
        bounds_are_public: Whether everybody may know the smallest and largest values of a box, real people's, which
            'bounds' publishes.
        whole: What is known of the table that the columns are a part of; None: they are the whole table.

    Examples:
        >>> boxes = make_boxes({"age": [21, 25, 33, 38, 61, 70]}, k=3)
        >>> boxes.box.tolist()
        [0, 0, 0, 1, 1, 1]
        >>> lower, upper = boxes.intervals("parts")
        >>> lower.ravel().tolist(), upper.ravel().tolist()
        ([0.0, 35.0], [34.0, 119.0])
    """
    if kind == "bounds" and not bounds_are_public:
        raise ValueError(
            "kind 'bounds' publishes real people's values; take 'parts', or say bounds_are_public=True where everybody "
            "may know them."
        )
    data = checks.checked_columns(columns)
    records = len(next(iter(data.values())))
    refuse_too_few(k, records, people, "records")
    people = unless_rows(people)
    refuse_unless(option_rules.Whole(1, k), "l", l)
    distances = checks.checked_distances(data, epsilon)
    known = {} if whole is None else whole.parts
    found = dict(supports or {})
    if kind == "parts":
        for name, values in data.items():
            if name not in found:
                found[name] = column_support(None, values, k, people, is_exact=l > 1)
        data = {name: found[name].coded(values) for name, values in data.items()}
    if l > 1:
        checks.refuse_uniform_columns(data, l, distances)
    # Sorted by value, sums and samples are the same for every order of the records.
    order = value_order([*data.values()] if strata is None else [*data.values(), strata.astype(np.float64)])
    ordered = {name: values.take(order) for name, values in data.items()}
    people_in_order, strata_in_order = (None if given is None else given.take(order) for given in (people, strata))
    sensitivity = sensitivities(ordered, statistics) if whole is None else whole.sensitivities
    points, shaping, point_distances = _points(ordered, sensitivity, l, distances)
    points = points._replace(people=people_in_order)
    parts = None
    if kind == "parts":
        parts = []
        for name, values in ordered.items():
            if name in known:
                parts.append(parts_of_part(known[name], values))
            else:
                made = column_parts(values, k, found[name], people_in_order, strata_in_order)
                checks.promise_parts(made, k, people_in_order)
                parts.append(made)
        of_shaping = [parts[column] for column in shaping]
        points = points._replace(parts=[(of.lower.take(of.number), of.upper.take(of.number)) for of in of_shaping])
    ways = [points, points._replace(tiles=True)] if kind == "cell" else [points]
    rules, report = Rules(k, l, point_distances), progress or (lambda share: None)
    tried: list[Boxes] = []
    for way, way_points in enumerate(ways):
        deadline = math.inf if seconds is None else time.monotonic() + seconds / len(ways)
        share = _shared(report, way, len(ways))
        if shaping:
            batches = list(leaves_of(way_points, rules, effort, deadline, share, strata_in_order))
        else:
            batches = _one_box_each(records, strata_in_order)
        tried.append(_numbered(ordered, order, shaping, batches, sensitivity, parts))
    boxes = min(tried, key=lambda made: made.uncertainty(kind)) if len(tried) > 1 else tried[0]
    checks.promise(boxes, data, k, l, distances, people, strata)
    return boxes


def _shared(report: Callable[[float], None], way: int, ways: int) -> Callable[[float], None]:
    return lambda share: report((way + share) / ways)


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


def _one_box_each(records: int, strata: Ints | None) -> list[Leaves]:
    """Put all records of a stratum into one box, as no column shapes any."""
    rows = np.arange(records) if strata is None else np.argsort(strata, kind="stable")
    sizes = np.array([records]) if strata is None else np.bincount(strata)
    no_ends = np.zeros((len(sizes), 0))
    return [Leaves(rows, sizes, np.arange(len(sizes)), no_ends, no_ends)]


def _numbered(
    ordered: Mapping[str, Floats],
    order: Ints,
    shaping: list[int],
    batches: list[Leaves],
    sensitivity: Sensitivities,
    parts: list[Parts] | None,
) -> Boxes:
    """Give boxes numbers, by their first record in the order of values, and find their ends.

    The batches have rows of `ordered`, the columns sorted by value, of which row i is the record `order[i]`; `parts`
    are those of each column, where boxes are made of them.
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
    boxes = Boxes(tuple(ordered), box, counts[rank], (bounds[0], bounds[1]), (cell[0], cell[1]), sensitivity)
    return boxes if parts is None else _made_of_parts(boxes, parts, shaping, rows, starts, rank)


def _made_of_parts(boxes: Boxes, parts: list[Parts], shaping: list[int], rows: Ints, starts: Ints, rank: Ints) -> Boxes:
    """Let each box end where its first and its last part end; in columns that do not shape, all of them end alike."""
    ends = np.empty((2, len(starts), len(parts)))
    is_open = np.zeros(ends.shape, np.bool_)
    for column, of_column in enumerate(parts):
        by_box = of_column.number.take(rows)
        if column in shaping:
            first, last = np.minimum.reduceat(by_box, starts)[rank], np.maximum.reduceat(by_box, starts)[rank]
        else:
            one = np.ones(len(starts), np.int64)
            first, last = one * of_column.lower.argmin(), one * of_column.upper.argmax()
        ends[0, :, column], ends[1, :, column] = of_column.lower[first], of_column.upper[last]
        is_open[0, :, column], is_open[1, :, column] = of_column.far_below[first], of_column.far_above[last]
    return replace(boxes, parts=(ends[0], ends[1]), open_ends=(is_open[0], is_open[1]))

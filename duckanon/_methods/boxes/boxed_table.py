"""The table that ``anon.boxes`` releases: numbers and dates as intervals, everything else as it was.

Columns become doubles, dates and times as microseconds, and numbers that a double could not hold exactly are refused.
Groups by labels become strata, `make` finds the boxes, and their ends return in each column's own type, rounded outward
so that every record stays inside. Kept columns that would narrow an interval are refused. The rows come in a random
order; the cost is that of `make`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon._core.common import labels, values
from duckanon._core.common.arguments import make_generator
from duckanon._core.common.arrays import Floats, Ints, is_time
from duckanon._core.common.declare import report_rows
from duckanon._core.common.labels import MICROSECONDS_PER_DAY
from duckanon._core.common.parameters import Kept
from duckanon._core.common.people import find_person_column, number_people, refuse_large_k, spell_label_columns
from duckanon._core.numbers.ends import HIGH_PREFIX, Ends, cast_ends, is_day, round_outward, unit_of
from duckanon._core.numbers.support import NumberSupport, find_support
from duckanon._core.privacy.narrowing import refuse_narrowing
from duckanon._methods.boxes import theory
from duckanon._methods.boxes.declared import OPTIMAL_UNCERTAINTY
from duckanon._methods.boxes.make import BoxOptions, make_boxes
from duckanon._methods.boxes.nodes import Boxes
from duckanon._methods.boxes.shaping import Statistic, WholeTable
from duckanon._methods.boxes.strata import form_strata

_LARGEST_EXACT = {False: 2.0**53, True: 3_700_000}
"""Units that a value may be away from 0: what a double tells apart, and for days the year 12,000 or so."""


def split_people(
    table: pa.Table, cols: Sequence[str], person: str | None, kept: Kept
) -> tuple[pa.Table, list[str], Ints | None]:
    """Return a table without its person column, unless that is kept; its spelling of `cols`; and each row's person."""
    wanted = {name.lower() for name in cols}
    names = [name for name in table.column_names if name.lower() in wanted]
    if person is None:
        return table, names, None
    index = find_person_column(person, table.column_names, names)
    people = number_people(table.column(index))
    return table if kept.has(person) else table.remove_column(index), names, people


def read_numbers(table: pa.Table, names: Sequence[str]) -> dict[str, Floats]:
    """Take columns as numbers (`common.values.take_numbers`), or say what no interval can hold."""
    numbers = {}
    for name in names:
        column = table.column(name)
        if column.null_count:
            raise ValueError(f'column "{name}" has {column.null_count} NULLs, which no interval contains; remove them.')
        numbers[name] = values.take_numbers(name, column)[0]
        units = np.abs(numbers[name]) / unit_of(column.type)
        is_far = len(units) and units.max() > _LARGEST_EXACT[is_day(column.type)]
        if is_far and not pa.types.is_floating(column.type):
            raise ValueError(f'column "{name}" has values too far away to be computed with exactly; leave them out.')
    return numbers


def publish_ends(
    column: pa.ChunkedArray, boxed: Boxes, index: int, box: str, top_code: bool = False
) -> tuple[pa.Array, pa.Array]:
    """Return the ends of each box in a column as they are released: in its own type, and never inside its records.

    `index` says which of the boxes' columns it is, `box` which of `KINDS` is released, `top_code` whether parts
    that reach far beyond the rest are open: their outer end is NULL.
    """
    kind = column.type
    if box == "parts":
        lower, upper = (ends[:, index] for ends in boxed.intervals(box))
        low, high = cast_ends(kind, lower, upper, has_unit=True)
        numbers = [values.take_numbers(boxed.names[index], ends)[0] for ends in (low, high)]
        # A record that is coded to an end of the column is at the number that is nearest to it in the column's type.
        bounds = [ends[:, index] for ends in boxed.bounds]
        if pa.types.is_float32(kind):
            bounds = [ends.astype(np.float32).astype(np.float64) for ends in bounds]
        if (numbers[0] > bounds[0]).any() or (numbers[1] < bounds[1]).any():
            raise AssertionError("an end of a part lies inside its records.")
        return _open_ends((low, high), boxed, index) if top_code else (low, high)
    # The smallest and the largest value of each box, as the column holds them.
    rows = pa.table({"box": pa.array(boxed.box), "x": column}).group_by("box").aggregate([("x", "min"), ("x", "max")])
    least, largest = (rows.sort_by("box").column(name).combine_chunks() for name in ("x_min", "x_max"))
    if box == "bounds":
        return least, largest
    # Days are rounded to months, and not to round numbers before.
    is_month = box == "rounded" and is_day(kind)
    lower, upper = (ends[:, index] for ends in boxed.intervals("bounds" if is_month else box))
    if is_month:
        lower, upper = _round_to_month(lower, False), _round_to_month(upper, True)
    if box == "cell":
        lower, upper = _round_outermost(kind, lower, upper)
    low, high = cast_ends(kind, lower, upper)
    if pa.types.is_float64(kind):  # what was computed with is what the column holds: nothing to make good
        return low, high
    return pc.if_else(pc.less(low, least), low, least), pc.if_else(pc.greater(high, largest), high, largest)


def _open_ends(ends: Ends, boxed: Boxes, index: int) -> Ends:
    """Leave ends open that belong to parts which reach far beyond the rest."""
    if boxed.open_ends is None:
        return ends
    nothing, (below, above) = pa.scalar(None, ends[0].type), boxed.open_ends
    return tuple(
        pc.if_else(pa.array(is_open[:, index]), nothing, end) for end, is_open in zip(ends, (below, above), strict=True)
    )


def _round_outermost(kind: pa.DataType, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    """Grow the outermost cells to round numbers: they end at the smallest and the largest value, real people's."""
    first, last = lower.min(), upper.max()
    ends = round_outward(np.array([[first]]), np.array([[last]]))
    if is_day(kind):
        ends = _round_to_month(np.array([first]), False), _round_to_month(np.array([last]), True)
    lower = np.where(lower == first, float(ends[0].ravel()[0]), lower)
    return lower, np.where(upper == last, float(ends[1].ravel()[0]), upper)


def _round_to_month(moments: Floats, is_end: bool) -> Floats:
    """Return the first day of each moment's month, or the last, both in microseconds since 1970."""
    starts = labels.find_period_starts(np.floor(moments / MICROSECONDS_PER_DAY).astype(np.int64), "month")
    days = [labels.find_period(int(start), "month")[1] - 1 for start in starts] if is_end else starts
    return np.array(days, np.float64) * MICROSECONDS_PER_DAY


_KINDS = {"sd": "standard_deviation", "standard deviation": "standard_deviation"}


def boxes(
    table: pa.Table,
    *,
    cols: Sequence[str],
    k: int,
    statistics: Sequence[Mapping[str, Any]] | None,
    l: int,  # noqa: E741 - the papers' name
    epsilon: Mapping[str, float] | None,
    box: str,
    effort: str,
    seconds: float | None,
    person: str | None,
    kept: Kept,
    by: Sequence[str] | None,
    top_code: bool,
    bounds_are_public: bool,
    whole: WholeTable | None = None,
) -> pa.Table:
    """Put the records of a table into boxes (`boxes.make`) and return it with intervals, in a random order.

    Options are as `BOXES` declares them; `whole` is what is known of the table of which this one is a part, if any.
    """
    table, names, people = split_people(table, cols, person, kept)
    for name in table.column_names:
        if name.lower() == "box" or name.lower().startswith("_duckanon_"):
            raise ValueError(f'the table has a column "{name}", a name that is needed for the boxes; rename it first.')
    distances = read_distances(table, names, epsilon)
    strata = None
    if by:
        labels, numbers = spell_label_columns(table, by), read_numbers(table, names)
        refuse_large_k(k, table.num_rows, people, "records")
        if box == "parts" and l > 1:  # what is coded may be less diverse
            supports = _find_supports(table, numbers, k, l, people, {})
            numbers = {name: supports[name].round_and_clip(column) for name, column in numbers.items()}
        table, strata = form_strata(table, labels, numbers, k, people, l, distances)
    options = BoxOptions(l, distances, effort, seconds, box, bounds_are_public)
    boxed = _box_columns(table, names, k, statistics, options, people, strata, whole)
    if kept_columns := select_kept(table, names, kept, by, person):
        ends = np.stack(boxed.intervals(box), axis=2)
        label_of_column = {
            name: np.unique(ends[:, index], axis=0, return_inverse=True)[1].reshape(-1)[boxed.box]
            for index, name in enumerate(names)
        }
        refuse_narrowing(read_numbers(table, names), label_of_column, kept_columns, boxed.box)
    order = make_generator(None).permutation(table.num_rows)
    shuffled = table.take(pa.array(order))
    number = boxed.box[order]
    for index, name in enumerate(names):
        low, high = publish_ends(table.column(name), boxed, index, box, top_code)
        shuffled = shuffled.set_column(shuffled.column_names.index(name), name, low.take(pa.array(number)))
        shuffled = shuffled.append_column(HIGH_PREFIX + name, high.take(pa.array(number)))
    return shuffled.append_column("_duckanon_box", pa.array(number + 1))


def select_kept(
    table: pa.Table, names: Sequence[str], kept: Kept, by: Sequence[str] | None, person: str | None
) -> dict[str, pa.ChunkedArray]:
    """Return the kept columns that may not narrow down a release: all but the caller's `narrowing`, labels and persons.

    Labels may, since k people share those of a box or group.
    """
    allowed = {name.lower() for name in [*(kept.narrowing or []), *(by or []), *([person] if person else [])]}
    return {
        name: table.column(name) for name in table.column_names if name not in names and name.lower() not in allowed
    }


def optimal_uncertainty(
    table: pa.Table | None, *, cols: Sequence[str], k: int, statistics: Sequence[Mapping[str, Any]] | None
) -> pa.Table:
    """Report how wide boxes must be at best, asymptotically, and how wide those that are made are."""
    if table is None:
        raise ValueError("the table has no rows to look at.")
    wanted = {name.lower() for name in cols}
    names = [name for name in table.column_names if name.lower() in wanted]
    asked = read_statistics(statistics, names)
    least = theory.estimate_optimum(read_numbers(table, names), k, asked)
    row = {"optimum": least}
    for kind in ("parts", "bounds", "cell"):
        # Only widths are reported.
        boxed = _box_columns(table, names, k, statistics, BoxOptions(kind=kind, bounds_are_public=True))
        width = boxed.uncertainty_of(*_read_ends(table, names, boxed, kind))
        row |= {kind: width, f"{kind}_ratio": width / least if least else float("nan")}
    return report_rows([row], OPTIMAL_UNCERTAINTY.schema)


def _read_ends(table: pa.Table, names: Sequence[str], boxed: Boxes, box: str) -> tuple[Floats, Floats]:
    """Return the ends that are released, which may be rounded, as numbers again; boxes by columns."""
    ends = [publish_ends(table.column(name), boxed, index, box) for index, name in enumerate(names)]
    lower, upper = (
        np.stack([values.take_numbers(name, pair[side])[0] for name, pair in zip(names, ends, strict=True)], axis=1)
        for side in (0, 1)
    )
    return lower, upper


def box_halfwidths(
    *,
    sensitivities: Sequence[float] | None,
    density: float | None,
    k: int | None,
    l: int | None,  # noqa: E741
    epsilon: Sequence[float] | None,
) -> list[float] | None:
    """Return the best half-widths of a box around one point; None where an option is NULL."""
    if sensitivities is None or density is None or k is None or l is None:
        return None
    widths = theory.compute_halfwidths(np.array(sensitivities, np.float64), density, k, l, epsilon)
    return [float(width) for width in widths]


def _box_columns(
    table: pa.Table,
    names: Sequence[str],
    k: int,
    statistics: Sequence[Mapping[str, Any]] | None,
    options: BoxOptions,
    people: Ints | None = None,
    strata: Ints | None = None,
    whole: WholeTable | None = None,
) -> Boxes:
    """Make boxes of a table's columns."""
    requested, numbers = read_statistics(statistics, names), read_numbers(table, names)
    known = {} if whole is None else whole.supports
    supports = _find_supports(table, numbers, k, options.l, people, known) if options.kind == "parts" else {}
    return make_boxes(numbers, k, requested, options, people, supports, strata, whole)


def _find_supports(
    table: pa.Table,
    numbers: Mapping[str, Floats],
    k: int,
    l: int,  # noqa: E741
    people: Ints | None,
    known: Mapping[str, NumberSupport],
) -> dict[str, NumberSupport]:
    """Find the units and ends of columns, where they are not known; diverse values are not rounded."""
    return {
        name: known.get(name) or find_support(table.schema.field(name).type, column, k, people, is_exact=l > 1)
        for name, column in numbers.items()
    }


def read_distances(table: pa.Table, names: Sequence[str], epsilon: Mapping[str, float] | None) -> dict[str, float]:
    """Read how far apart values must be to be different, for days and moments in microseconds."""
    spelling = {name.lower(): name for name in names}
    apart = {spelling.get(name.lower(), name): float(value) for name, value in (epsilon or {}).items()}
    for name in apart:
        if name in spelling.values() and is_time(table.schema.field(name).type):
            apart[name] *= MICROSECONDS_PER_DAY
    return apart


def read_statistics(requests: Sequence[Mapping[str, Any]] | None, names: Sequence[str]) -> list[Statistic] | None:
    """Read the statistics as the caller wrote them: structs of statistic, columns, probability, accuracy."""
    if requests is None:
        return None
    spelling = {name.lower(): name for name in names}
    statistics = []
    for request in requests:
        if not isinstance(request, Mapping) or not {"statistic", "columns"} <= request.keys():
            raise ValueError(
                "statistics must be a list such as [{'statistic': 'variance', 'columns': ['age']}], with probability "
                f"and accuracy where they matter; got {request}."
            )
        if unknown := request.keys() - {"statistic", "columns", "probability", "accuracy"}:
            raise ValueError(f"a statistic has statistic, columns, probability and accuracy; got {min(unknown)}.")
        listed = request["columns"] if isinstance(request["columns"], list) else [request["columns"]]
        columns = tuple(spelling.get(str(name).lower(), str(name)) for name in listed)
        kind = str(_KINDS.get(request["statistic"], request["statistic"]))
        more = {key: float(request[key]) for key in ("probability", "accuracy") if request.get(key) is not None}
        statistics.append(Statistic(kind, columns, **more))
    return statistics

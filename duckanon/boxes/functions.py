"""The table that ``anon.boxes`` releases: numbers and dates as intervals, everything else as it was."""

from __future__ import annotations

import decimal
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from duckanon.boxes import theory
from duckanon.boxes.declared import OPTIMAL_UNCERTAINTY
from duckanon.boxes.ends import rounded_outward
from duckanon.boxes.make import Boxes, make_boxes
from duckanon.boxes.shaping import Statistic
from duckanon.common import labels, progress, values
from duckanon.common.arguments import generator
from duckanon.common.arrays import Floats, Ints
from duckanon.common.kinds import is_time
from duckanon.common.labels import MICROSECONDS_PER_DAY
from duckanon.common.people import person_index, person_numbers
from duckanon.common.reports import report_rows
from duckanon.privacy.narrowing import narrowed_pair

HIGH = "_duckanon_hi "
"""What the column of upper ends is called on its way, before the column's own name; the lower ends have that name."""

_KINDS = {"sd": "standard_deviation", "standard deviation": "standard_deviation"}


def boxes(
    table: pa.Table,
    *,
    cols: Sequence[str],
    k: int,
    statistics: Sequence[Mapping[str, Any]] | None,
    l: int,  # noqa: E741 - the papers' name
    epsilon: Any,
    box: str,
    effort: str,
    seconds: float | None,
    person: str | None,
    keeps_person: bool,
    narrowing: Sequence[str] | None,
    refused: str | None,
) -> pa.Table:
    """Put the records of a table into boxes (`duckanon.boxes.make`) and return it with intervals, in a random order."""
    if refused:
        raise ValueError(refused)
    names = _own_names(table, cols)
    people, allowed = None, {name.lower() for name in narrowing or []}
    if person is not None:
        index = person_index(person, table.column_names, names)
        people = person_numbers(table.column(index))
        allowed.add(person.lower())
        table = table if keeps_person else table.remove_column(index)
    for name in table.column_names:
        if name.lower() == "box" or name.lower().startswith("_duckanon_"):
            raise ValueError(f'the table has a column "{name}", a name that is needed for the boxes; rename it first.')
    made = _made(table, names, k, statistics, l, epsilon, effort, seconds, people)
    lower, upper = made.intervals(box)
    _refuse_narrowing(table, names, made.box, lower, upper, allowed)
    order = generator(None).permutation(table.num_rows)
    shuffled = table.take(pa.array(order))
    number = made.box[order]
    for index, name in enumerate(names):
        low, high = _ends(table.column(name), made.box, lower[:, index], upper[:, index], box)
        shuffled = shuffled.set_column(shuffled.column_names.index(name), name, low.take(pa.array(number)))
        shuffled = shuffled.append_column(HIGH + name, high.take(pa.array(number)))
    return shuffled.append_column("_duckanon_box", pa.array(number + 1))


def _refuse_narrowing(
    table: pa.Table, names: Sequence[str], box: Ints, lower: Floats, upper: Floats, allowed: set[str]
) -> None:
    """Refuse a kept column that narrows down what the intervals say, unless that is allowed."""
    kept = {
        name: table.column(name) for name in table.column_names if name not in names and name.lower() not in allowed
    }
    if not kept:
        return
    ends = np.stack([lower, upper], axis=2)
    labels = {
        name: np.unique(ends[:, index], axis=0, return_inverse=True)[1].reshape(-1)[box]
        for index, name in enumerate(names)
    }
    pair = narrowed_pair(_numbers(table, names), labels, kept, box, generator(None))
    if pair is not None:
        raise ValueError(
            f'the column "{pair[0]}" in keep narrows down "{pair[1]}"; leave it out, or name it in narrowing.'
        )


def optimal_uncertainty(
    table: pa.Table | None, *, cols: Sequence[str], k: int, statistics: Sequence[Mapping[str, Any]] | None
) -> pa.Table:
    """Report how wide boxes must be at best, asymptotically, and how wide those that are made are."""
    if table is None:
        raise ValueError("the table has no rows to look at.")
    names = _own_names(table, cols)
    asked = _statistics(statistics, names)
    least = theory.optimal_uncertainty(_numbers(table, names), k, asked)
    made = _made(table, names, k, statistics, 1, None, "default", None)
    widths = {kind: made.uncertainty(kind) for kind in ("bounds", "cell")}
    row = {"optimum": least}
    for kind, width in widths.items():
        row |= {kind: width, f"{kind}_ratio": width / least if least else float("nan")}
    return report_rows([row], OPTIMAL_UNCERTAINTY)


def box_halfwidths(
    *,
    sensitivities: Sequence[float] | None,
    density: float | None,
    k: int | None,
    l: int | None,  # noqa: E741
    epsilon: Sequence[float] | None,
) -> list[float] | None:
    """Return the best half-widths of a box around one point; None where something is not known."""
    if sensitivities is None or density is None or k is None or l is None:
        return None
    widths = theory.halfwidths(np.array(sensitivities, np.float64), density, k, l, epsilon)
    return [float(width) for width in widths]


def _made(
    table: pa.Table,
    names: Sequence[str],
    k: int,
    statistics: Sequence[Mapping[str, Any]] | None,
    l: int,  # noqa: E741
    epsilon: Any,
    effort: str,
    seconds: float | None,
    people: Ints | None = None,
) -> Boxes:
    spelling = {name.lower(): name for name in names}
    try:
        pairs = epsilon.items() if isinstance(epsilon, dict) else epsilon or []
        apart = {spelling.get(str(name).lower(), str(name)): float(value) for name, value in pairs}
    except (TypeError, ValueError):
        raise ValueError(f"epsilon must be a map such as MAP {{'age': 2}}; got {epsilon}.") from None
    if seconds is not None and not isinstance(seconds, int | float):
        raise ValueError(f"seconds must be a number; got {seconds}.")
    for name in apart:
        if name in spelling.values() and is_time(table.schema.field(name).type):
            apart[name] *= MICROSECONDS_PER_DAY
    asked = _statistics(statistics, names)
    return make_boxes(_numbers(table, names), k, asked, l, apart or None, effort, seconds, progress.at, people)


def _own_names(table: pa.Table, cols: Sequence[str]) -> list[str]:
    """Return the columns under the names that the table has for them."""
    wanted = {name.lower() for name in cols}
    return [name for name in table.column_names if name.lower() in wanted]


def _numbers(table: pa.Table, names: Sequence[str]) -> dict[str, Floats]:
    numbers = {}
    for name in names:
        column = table.column(name)
        if column.null_count:
            raise ValueError(f'column "{name}" has {column.null_count} NULLs, which no interval holds; leave them out.')
        numbers[name] = values.numbers(name, column)[0]
        units = np.abs(numbers[name]) / _unit(column.type)
        is_far = len(units) and units.max() > _LARGEST_EXACT[_is_day(column.type)]
        if is_far and not pa.types.is_floating(column.type):
            raise ValueError(f'column "{name}" has values too far away to be computed with exactly; leave them out.')
    return numbers


_LARGEST_EXACT = {False: 2.0**53, True: 3_700_000}
"""How many units a value may be away from 0: what a double tells apart, and for days the year 12,000 or so."""


def _is_day(kind: pa.DataType) -> bool:
    return bool(pa.types.is_date(kind))


def _unit(kind: pa.DataType) -> float:
    """Return the least distance of two values of a type, in the numbers that are computed with."""
    if _is_day(kind):
        return MICROSECONDS_PER_DAY
    if pa.types.is_timestamp(kind):
        return {"s": 1e6, "ms": 1e3}.get(kind.unit, 1.0)
    if pa.types.is_decimal(kind):
        return float(10.0**-kind.scale)
    return 1.0


def _statistics(given: Sequence[Mapping[str, Any]] | None, names: Sequence[str]) -> list[Statistic] | None:
    """Read the statistics as the caller wrote them: structs of statistic, columns, probability, accuracy."""
    if given is None:
        return None
    spelling = {name.lower(): name for name in names}
    statistics = []
    for request in given:
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


def _ends(
    column: pa.ChunkedArray, box_of: npt.NDArray[np.int64], lower: Floats, upper: Floats, box: str
) -> tuple[pa.Array, pa.Array]:
    """Return the ends of each box in a column, in its own type, and never inside its records.

    The outermost cells would end at the smallest and the largest value of all, which are real people's: they are grown
    outward to round numbers.
    """
    kind = column.type
    if box == "bounds":
        return _extremes(column, box_of)
    if box == "cell":
        first, last = lower.min(), upper.max()
        ends = rounded_outward(np.array([[first]]), np.array([[last]]))
        if _is_day(kind):
            ends = _month(np.array([first]), False), _month(np.array([last]), True)
        lower = np.where(lower == first, float(ends[0].ravel()[0]), lower)
        upper = np.where(upper == last, float(ends[1].ravel()[0]), upper)
    elif _is_day(kind):
        lower, upper = _month(lower, False), _month(upper, True)
    low, high = _typed(kind, lower, upper)
    if pa.types.is_float64(kind):  # what was computed with is what the column holds: nothing to make good
        return low, high
    least, largest = _extremes(column, box_of)
    if pa.types.is_timestamp(kind):  # Arrow has no smaller of two moments with a time zone
        return pc.if_else(pc.less(low, least), low, least), pc.if_else(pc.greater(high, largest), high, largest)
    return pc.min_element_wise(low, least), pc.max_element_wise(high, largest)


def _extremes(column: pa.ChunkedArray, box_of: npt.NDArray[np.int64]) -> tuple[pa.Array, pa.Array]:
    """Return the smallest and the largest value of each box, as the column holds them."""
    grouped = pa.table({"box": pa.array(box_of), "x": column}).group_by("box").aggregate([("x", "min"), ("x", "max")])
    grouped = grouped.sort_by("box")
    least, largest = grouped.column("x_min").combine_chunks(), grouped.column("x_max").combine_chunks()
    return least, largest


def _typed(kind: pa.DataType, lower: Floats, upper: Floats) -> tuple[pa.Array, pa.Array]:
    """Write ends in a column's own type.

    A cell ends midway between values. Where a type has only whole numbers, days or so many decimals, no other value
    lies between that and the next value inside: ends are rounded inward, and lose nothing.
    """
    unit = _unit(kind)
    if pa.types.is_floating(kind):
        return pa.array(lower).cast(kind, safe=False), pa.array(upper).cast(kind, safe=False)
    low, high = np.ceil(lower / unit - 1e-6), np.floor(upper / unit + 1e-6)
    if _is_day(kind):
        return tuple(pa.array(end.astype(np.int32)).cast(pa.date32()) for end in (low, high))
    if pa.types.is_timestamp(kind):
        moments = (pa.array((end * unit).astype(np.int64)).cast(pa.timestamp("us", kind.tz)) for end in (low, high))
        return tuple(moment.cast(kind) for moment in moments)
    if pa.types.is_decimal(kind):
        most = float(10.0**kind.precision - 1)
        whole = (np.clip(end, -most, most).astype(np.int64).tolist() for end in (low, high))
        return tuple(pa.array([decimal.Decimal(n).scaleb(-kind.scale) for n in end], kind) for end in whole)
    dtype = np.dtype(f"{'u' if pa.types.is_unsigned_integer(kind) else ''}int{kind.bit_width}")
    bounds = np.iinfo(dtype)
    return tuple(pa.array(np.clip(end, bounds.min, bounds.max).astype(dtype)) for end in (low, high))


def _month(moments: Floats, is_end: bool) -> Floats:
    """Return the first day of each moment's month, or the last, both in microseconds since 1970."""
    starts = labels.period_starts(np.floor(moments / MICROSECONDS_PER_DAY).astype(np.int64), "month")
    days = [labels.period(int(start), "month")[1] - 1 for start in starts] if is_end else starts
    return np.array(days, np.float64) * MICROSECONDS_PER_DAY

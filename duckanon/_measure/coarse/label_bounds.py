"""The ends of labels of numbers and dates: ``[17, 25)``, ``<25``, ``90+``, ``2024-Q1``, ``1950s``.

SQL reads them the same way (``anon._label_bounds``, ``anon._calendar_cell``), for checks that DuckDB computes.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

import numpy as np

from duckanon._core.common.labels import MICROSECONDS_PER_DAY

_PARTS = re.compile(r"\s*(\[|\(|<=|>=|<|>|)\s*([^,]+?)\s*(?:,\s*([^,]+?)\s*)?(\]|\)|\+|)\s*", re.ASCII)
_MOMENT = re.compile(
    r"(\d{4,6})-(\d\d)-(\d\d)( \(BC\))?"
    r"([ T](\d\d?):(\d\d)(?::(\d\d)(?:\.(\d+))?)?(?:Z|[+-]\d\d(?::?\d\d)*)?)?",
    re.ASCII,
)
_WEEK = re.compile(r"(\d{4,6})-W(\d\d)", re.ASCII)
_PERIOD = re.compile(r"(\d{4,6})(?:(s)|-Q([1-4])|-H([12])|-(\d\d)|-(\d{4,6}))?", re.ASCII)


class _Cell(NamedTuple):
    """A value, or a period of the calendar in microseconds since 1970, which ends before `upper`."""

    lower: float
    upper: float
    closed: bool  # whether `upper` belongs to it


def held_ends(label: str, is_date: bool, unit: float) -> tuple[float, float] | None:
    """Return the smallest and the largest number that a label holds, or None where it is not understood.

    `unit` is the step between neighbouring values, 0 where there is none: of whole numbers ``[40, 50)`` ends at 49, of
    others just below 50. An end that is missing is infinite. The first may be above the second, in ``(1, 2)`` of whole
    numbers.

    Examples:
        >>> held_ends("[40, 50)", False, 1.0), held_ends("90+", False, 1.0), held_ends("forties", False, 1.0)
        ((40.0, 49.0), (90.0, inf), None)
    """
    parts = _PARTS.fullmatch(label)
    if parts is None:
        return None
    sign, first, second, finish = parts.groups()
    start, end = _cell(first, is_date), None if second is None else _cell(second, is_date)
    is_pair = second is not None
    if start is None or (is_pair and end is None) or (sign and finish == "+"):
        return None
    if is_pair != (sign in ("[", "(")) or is_pair != (finish in ("]", ")")):
        return None
    low, high = -math.inf, math.inf
    low_closed = high_closed = True
    if sign in ("(", ">"):
        low, low_closed = start.upper, not start.closed
    elif sign not in ("<", "<="):
        low = start.lower
    if finish == ")" or sign == "<":
        high, high_closed = (end or start).lower, False
    elif finish == "]" or sign == "<=" or not (sign or finish):
        high, high_closed = (end or start).upper, (end or start).closed
    if low > high:
        return None
    return _first_held(low, low_closed, unit), _last_held(high, high_closed, unit)


def number_of(text: str, is_date: bool) -> float | None:
    """Return the place of a value on the number line, of a date or a moment in microseconds since 1970."""
    cell = _cell(text, is_date)
    return None if cell is None else cell.lower


def _first_held(low: float, is_closed: bool, unit: float) -> float:
    if math.isinf(low):
        return low
    if unit:
        return math.ceil(low / unit) * unit if is_closed else (math.floor(low / unit) + 1) * unit
    return low if is_closed else math.nextafter(low, math.inf)


def _last_held(high: float, is_closed: bool, unit: float) -> float:
    return -_first_held(-high, is_closed, unit)


def _cell(text: str, is_date: bool) -> _Cell | None:
    if is_date:
        return _calendar_cell(text)
    try:
        number = float(text)
    except ValueError:
        return None
    return _Cell(number, number, True) if math.isfinite(number) else None


def _calendar_cell(text: str) -> _Cell | None:
    """Read 2024-03-17, 2024-W11, 2024-03, 2024-Q1, 2024-H1, 2024, 2020-2024, 2020s, or a moment."""
    if moment := _MOMENT.fullmatch(text):
        return _moment_cell(moment)
    if week := _WEEK.fullmatch(text):
        year, number = map(int, week.groups())
        if not 1 <= number <= 53:
            return None
        fourth = _first_day(year, 1) + 3  # of January, which is always in the first week; day 0 was a Thursday
        monday = fourth - (fourth + 3) % 7 + 7 * (number - 1)
        return _days(monday, monday + 7)
    period = _PERIOD.fullmatch(text)
    if period is None:
        return None
    year, (decade, quarter, half, month, last) = int(period[1]), period.groups()[1:]
    first, months = 1, 12
    if month:
        first, months = int(month), 1
    elif quarter:
        first, months = 3 * int(quarter) - 2, 3
    elif half:
        first, months = 6 * int(half) - 5, 6
    elif decade:
        months = 120
    elif last:
        months = 12 * (int(last) - year + 1)
    if not 1 <= first <= 12:
        return None
    return _days(_first_day(year, first), _first_day(year, first + months))


def _moment_cell(moment: re.Match[str]) -> _Cell | None:
    year, month, day = int(moment[1]), int(moment[2]), int(moment[3])
    year = 1 - year if moment[4] else year
    if not (1 <= month <= 12 and 1 <= day <= _first_day(year, month + 1) - _first_day(year, month)):
        return None
    start = _first_day(year, month) + day - 1
    if moment[5] is None:
        return _days(start, start + 1)
    hour, minute, second = (int(part or 0) for part in moment.group(6, 7, 8))
    if hour > 23 or minute > 59 or second > 59:
        return None
    seconds = (hour * 60 + minute) * 60 + second
    place = float(start * MICROSECONDS_PER_DAY + seconds * 1_000_000 + int((moment[9] or "0").ljust(6, "0")[:6]))
    return _Cell(place, place, True)


def _days(first: int, end: int) -> _Cell:
    return _Cell(float(first * MICROSECONDS_PER_DAY), float(end * MICROSECONDS_PER_DAY), False)


def _first_day(year: int, month: int) -> int:
    """Return the first day of a month, in days since 1970; month 13 is January of the next year."""
    return int(np.datetime64(12 * (year - 1970) + month - 1, "M").astype("datetime64[D]").astype(np.int64))

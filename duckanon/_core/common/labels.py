"""Labels of values: ranges ``[20, 30)``, ``<20``, ``2024-Q1``, ``1980s``; sets ``{a, b}``; ``*``, ``other``, ``021**``.

The first half writes numbers and dates and finds round ones to cut at, the second half writes and reads sets.
A value that could be read as a label is released as the set of itself, in quotation marks: ``{"other"}``. Within braces
quotation marks mean a value of the column, and ``other`` without them means all values that no label names. Merged
values are called ``other``, and ``{other}`` beside a value ``other`` that may be released (`label_rest`). Only such
values, which enough people share, decide how labels are written: the value of one person changes none. Numbers and
dates need none of this, since their ranges are no numbers. Columns of new records keep their values as they are.

In SQL ``anon._value_label``, ``anon._list_text`` and ``anon._label_members`` write and read the same.
"""

from __future__ import annotations

import datetime
import decimal
import itertools
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence

import numpy as np

from duckanon._core.common.arrays import Bools, Floats, Ints

CALENDAR = ("day", "month", "quarter", "half-year", "year", "5 years", "decade")
"""Periods of which each lies within one of the next, finest first. (Weeks do not lie within months.)"""

_MONTHS = {"month": 1, "quarter": 3, "half-year": 6, "year": 12, "5 years": 60, "decade": 120}
MICROSECONDS_PER_DAY = 86_400_000_000
FIRST_DAY, LAST_DAY = -719_162, 2_932_896
"""The years 1 to 9999, in days from 1970: what Python's dates can write."""


class Scale(ABC):
    """Numbers and how they are written. ``covers`` is what a plan calls such buckets."""

    covers: str
    is_whole = False
    """Whether only whole numbers occur."""

    @abstractmethod
    def text(self, number: float) -> str:
        """Write a number in full, so that DuckDB reads it back."""

    @abstractmethod
    def readable(self, low: float, high: float) -> float:
        """Find the roundest number above ``low`` and at most ``high``: a cut there parts the same values."""

    @abstractmethod
    def after(self, number: float) -> float:
        """Return the next number that a value of this scale can be."""

    def cut(self, low: float, high: float, is_shared: bool) -> float:
        """Find the roundest number that parts two neighbouring values, as the beginning of the upper one's part.

        Where too few people share ``high`` for it to be named, the cut lies between the two (`between`); NaN where
        there is no room for a number.
        """
        if is_shared:
            return self.readable(low, high)
        if not self.has_room(np.array([low]), np.array([high]))[0]:
            return math.nan
        return self.between(low, high)

    @abstractmethod
    def between(self, low: float, high: float) -> float:
        """Find the roundest number between two neighbouring values, where there is room for one."""

    @abstractmethod
    def has_room(self, lows: Floats, highs: Floats) -> Bools:
        """Tell whether a number between two neighbouring values can be written."""

    def is_one_value(self, start: float, end: float) -> bool:
        """Tell whether only one value of this scale lies from ``start`` up to but without ``end``."""
        return False


class Numbers(Scale):
    """Plain numbers, whole or not."""

    covers = "number"

    def __init__(self, is_whole: bool) -> None:
        self.is_whole = is_whole

    def text(self, number: float) -> str:
        """Write a number: whole ones without a point."""
        number = float(number)
        return str(int(number)) if number == int(number) and abs(number) < 1e16 else repr(number)

    def readable(self, low: float, high: float) -> float:
        """Find the number with the fewest digits; of several one that ends in 5 or 0, or an even one, or the middle."""
        low, high = float(low), float(high)
        if low < 0 <= high:
            return 0.0
        for exponent in range(math.frexp(max(abs(low), abs(high)))[1] // 3 + 1, -320, -1):
            if number := self._multiples(low, high, exponent):
                return number
            if self.is_whole and exponent <= 0:
                break
        return high

    @staticmethod
    def _multiples(low: float, high: float, exponent: int) -> float | None:
        """Return the best multiple of a power of ten above ``low`` and at most ``high``; None where there is none."""
        # powers below one are divided by: 10.0 ** -3 is not exactly a thousandth
        power = 10.0 ** abs(exponent) if abs(exponent) <= 300 else math.inf
        scaled = [end / power if exponent >= 0 else end * power for end in (low, high)]
        if not all(abs(end) < 2**53 for end in scaled):
            return None
        digits = range(math.floor(scaled[0]), math.floor(scaled[1]) + 1)
        numbers = {digit: digit * power if exponent >= 0 else digit / power for digit in digits[:12]}
        inside = [digit for digit, number in numbers.items() if low < number <= high]
        if not inside:
            return None
        middle = (scaled[0] + scaled[1]) / 2
        best = min(inside, key=lambda digit: (0 if digit % 5 == 0 else 1 if digit % 2 == 0 else 2, abs(digit - middle)))
        return numbers[best]

    def after(self, number: float) -> float:
        """Return the next whole number, or the next double."""
        return number + 1.0 if self.is_whole else math.nextafter(number, math.inf)

    def between(self, low: float, high: float) -> float:
        """Find it as `readable` does; halfway between two neighbouring whole numbers."""
        step = self.after(low) - low
        if self.is_whole and high - low < 1.5 * step:
            return low + step / 2
        # near zero a step is so small that taking it off ``high`` changes nothing
        return self.readable(low, min(high - step, math.nextafter(high, -math.inf)))

    def has_room(self, lows: Floats, highs: Floats) -> Bools:
        """Tell it: two doubles may be neighbours."""
        return np.asarray(np.nextafter(lows, np.inf) < highs)

    def is_one_value(self, start: float, end: float) -> bool:
        """Tell whether it is one whole number."""
        return self.is_whole and end - start == 1


class Times(Scale):
    """Microseconds since 1970, written as dates, with the time of day where a column has it."""

    covers = "time"

    def __init__(self, is_date: bool, is_zoned: bool = False) -> None:
        self.is_date, self.is_zoned = is_date, is_zoned

    def text(self, number: float) -> str:
        """Write a moment: a date where it is midnight; with its zone, UTC, where the column has zones."""
        moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=int(number))
        if self.is_zoned:
            return moment.isoformat(" ") + "+00"
        return moment.date().isoformat() if int(number) % MICROSECONDS_PER_DAY == 0 else moment.isoformat(" ")

    def readable(self, low: float, high: float) -> float:
        """Find the first moment of the longest period: a decade, a year, ..., a second."""
        day = int(high) // MICROSECONDS_PER_DAY
        for level in CALENDAR[::-1]:
            start = find_period_starts(np.array([day]), level)[0] * MICROSECONDS_PER_DAY
            if low < start:
                return float(start)
        for unit in (3_600_000_000, 60_000_000, 1_000_000):
            if low < int(high) // unit * unit:
                return float(int(high) // unit * unit)
        return float(high)

    def after(self, number: float) -> float:
        """Return the next day, or the next microsecond."""
        return number + (MICROSECONDS_PER_DAY if self.is_date else 1.0)

    def between(self, low: float, high: float) -> float:
        """Find the first moment of a decade, ..., a month; else of a day, an hour, ... nearest to the middle.

        (The last day before ``high`` would tell which day ``high`` is.)
        """
        day_before = (int(high) - 1) // MICROSECONDS_PER_DAY
        for level in CALENDAR[:0:-1]:
            start = find_period_starts(np.array([day_before]), level)[0] * MICROSECONDS_PER_DAY
            if low < start:
                return float(start)
        middle = (int(low) + int(high)) // 2
        units = (MICROSECONDS_PER_DAY, 3_600_000_000, 60_000_000, 1_000_000)
        nearest = ((middle + unit // 2) // unit * unit for unit in units)
        return next((float(moment) for moment in nearest if low < moment < high), float(middle))

    def has_room(self, lows: Floats, highs: Floats) -> Bools:
        """Tell it: nothing shorter than a microsecond is written, and far from 1970 doubles have larger steps."""
        return np.asarray((lows + 1.0 < highs) & (np.nextafter(lows, np.inf) < highs))

    def is_one_value(self, start: float, end: float) -> bool:
        """Tell whether it is one day."""
        return self.is_date and end - start == MICROSECONDS_PER_DAY


def label_span(scale: Scale, start: float, end: float) -> str:
    """Name what lies from ``start`` up to but without ``end``."""
    if start == end or scale.is_one_value(start, end):
        return scale.text(start)
    return f"[{scale.text(start)}, {scale.text(end)})"


def label_below(scale: Scale, end: float) -> str:
    """Name what lies below ``end``."""
    return f"<{scale.text(end)}"


def label_from(scale: Scale, start: float) -> str:
    """Name what lies at ``start`` or above."""
    return f">={scale.text(start)}"


def label_runs(scale: Scale, cuts: Sequence[float], texts: Sequence[str] | None = None) -> list[str]:
    """Name the runs that the cuts leave. The outer ones are open: they publish no extreme, and new extremes fit in.

    `texts` are the cuts as texts, where the caller has them: there may be 200,000.
    """
    if not cuts:
        return ["*"]
    texts = [scale.text(cut) for cut in cuts] if texts is None else texts
    inner = [
        start_text if start == end or scale.is_one_value(start, end) else f"[{start_text}, {end_text})"
        for (start, end), (start_text, end_text) in zip(
            itertools.pairwise(cuts), itertools.pairwise(texts), strict=True
        )
    ]
    return [f"<{texts[0]}", *inner, f">={texts[-1]}"]


def list_round_steps(positions: Floats) -> list[float]:
    """List the steps 1, 2, 5 times a power of ten that are wider than the least distance of two values."""
    span = float(positions[-1] - positions[0])
    if span == 0:
        return []
    least = max(float(np.diff(positions).min()), span / 1e6)
    exponents = range(math.floor(math.log10(least)), math.ceil(math.log10(span)) + 1)
    # twelve digits, without the noise of floating point
    steps = [float(f"{digit * 10.0**exponent:.12g}") for exponent in exponents for digit in (1, 2, 5)]
    return [step for step in steps if step > least]


def multiply_step(numbers: Floats, step: float) -> Floats:
    """Return the whole numbers times a step, as they are read when they are written down."""
    shortest = decimal.Decimal(repr(float(step))).normalize()
    exponent = int(shortest.as_tuple().exponent)
    power = 10.0 ** abs(exponent)  # powers below one are divided by: 10.0 ** -3 is not exactly a thousandth
    whole: Floats = numbers * int(shortest.scaleb(-exponent))
    return whole * power if exponent >= 0 else whole / power


def number_steps(positions: Floats, step: float) -> Floats:
    """Return for each number the largest whole number whose multiple of the step is not above it."""
    numbers = np.floor(positions / step)
    numbers = np.where(multiply_step(numbers + 1, step) <= positions, numbers + 1, numbers)
    return np.where(multiply_step(numbers, step) > positions, numbers - 1, numbers)


def find_period_starts(days: Ints, level: str) -> Ints:
    """Return the first day of each day's period; days are counted from 1970."""
    if level == "day":
        return days
    months = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64) + 12 * 1970
    first = months // _MONTHS[level] * _MONTHS[level] - 12 * 1970
    return first.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)


def find_periods(days: Ints, level: str) -> tuple[Ints, Ints]:
    """Return the first day of each day's period, and the first day after it."""
    starts = find_period_starts(days, level)
    if level == "day":
        return starts, starts + 1
    months = starts.astype("datetime64[D]").astype("datetime64[M]") + _MONTHS[level]
    return starts, np.minimum(months.astype("datetime64[D]").astype(np.int64), LAST_DAY)


def find_period(day: int, level: str) -> tuple[int, int]:
    """Return the first day of a day's period, and the first day after it."""
    starts, ends = find_periods(np.array([day]), level)
    return int(starts[0]), int(ends[0])


def label_period(start: int, level: str) -> str:
    """Name a period by its first day, as ``anon.generalize_date`` does."""
    day = datetime.date(1970, 1, 1) + datetime.timedelta(days=start)
    return {
        "day": day.isoformat(),
        "month": f"{day.year:04}-{day.month:02}",
        "quarter": f"{day.year:04}-Q{(day.month + 2) // 3}",
        "half-year": f"{day.year:04}-H{(day.month + 5) // 6}",
        "year": f"{day.year:04}",
        "5 years": f"{day.year:04}-{day.year + 4:04}",
        "decade": f"{day.year:04}s",
    }[level]


EVERYTHING = "*"
"""Any value, or NULL."""

OTHER = "other"
"""Values of the column that no label names: fewer than k people share each."""

TOTAL = "Total"
"""The margin of a column of a table: all its values together. ``anon._cell_label`` quotes values that are called so."""

NULL = "NULL"

QUOTED_MARKS, QUOTED_VALUES = r'[,{}"]', ("", NULL)
"""Members of a set are quoted that have one of these marks, are one of these, or end in a star."""

MARKED = r'\{("(?:[^"]|"")*")\}'
"""The label of a value in quotation marks."""

_MEMBER = re.compile(r'(?:^|, )("(?:[^"]|"")*"|(?:[^,]|,[^ ])*)')
_MARKED = re.compile(MARKED)
_RESTS = (OTHER, "{" + OTHER + "}")


def is_like_label(value: str) -> bool:
    """Tell whether a value could be read as a label: ``*``, ``other``, a set, or the beginning of codes."""
    return value == OTHER or value.startswith("{") or value.endswith(EVERYTHING)


def label_value(value: str) -> str:
    """Write a value as a label: itself, or in quotation marks where it could be read as a label that is made up.

    Examples:
        >>> [label_value(value) for value in ("a", "other", "*", "021**")]
        ['a', '{"other"}', '{"*"}', '{"021**"}']
    """
    return "{" + _quote_value(value) + "}" if is_like_label(value) else value


def label_entry(value: str | None) -> str | None:
    """Write a value as an entry of a list: itself, or its label where it could be read as `OTHER` or as such a label.

    Examples:
        >>> label_entry("*"), label_entry("other"), label_entry('{"a"}')
        ('*', '{"other"}', '{"{""a""}"}')
    """
    if value is None or (value not in _RESTS and not _MARKED.fullmatch(value)):
        return value
    return label_value(value)


def label_rest(shared: Collection[str | None]) -> str:
    """Return what merged values are called beside the values that enough people share.

    Examples:
        >>> label_rest(["a", "b"]), label_rest(["a", "other"])
        ('other', '{other}')
    """
    return "{" + OTHER + "}" if OTHER in shared else OTHER


def label_set(listed: Sequence[str | None]) -> str | None:
    """Write the entries of a list (`label_entry`, `label_rest`, None for NULL) as one label.

    Examples:
        >>> label_set(["a"]), label_set(["*"]), label_set(["a, b", '{"other"}', "other", None])
        ('a', '{"*"}', '{"a, b", "other", other, NULL}')
    """
    if len(listed) == 1 and (listed[0] is None or listed[0] in _RESTS or not is_like_label(listed[0])):
        return listed[0]
    return "{" + ", ".join(map(_write_member, listed)) + "}"


def read_set(label: str | None) -> list[str | None]:
    """Read the values of a label, None for NULL. In a set, `OTHER` without marks is no value.

    Examples:
        >>> read_set('{"a, b", c, other, NULL}'), read_set('{"other"}')
        (['a, b', 'c', None], ['other'])
    """
    if label is None or not (label.startswith("{") and label.endswith("}")):
        return [label]
    return [_read_member(written) for written in _MEMBER.findall(label[1:-1]) if written != OTHER]


def _write_member(entry: str | None) -> str:
    if entry is None or entry in _RESTS:
        return NULL if entry is None else OTHER
    if is_marked := _MARKED.fullmatch(entry):
        return is_marked[1]
    is_hard = entry in QUOTED_VALUES or entry.endswith(EVERYTHING) or re.search(QUOTED_MARKS, entry)
    return _quote_value(entry) if is_hard else entry


def _quote_value(value: str) -> str:
    return '"' + value.replace('"', '""') + '"'


def _read_member(written: str) -> str | None:
    if written == NULL:
        return None
    is_quoted = len(written) > 1 and written.startswith('"') and written.endswith('"')
    return written[1:-1].replace('""', '"') if is_quoted else written

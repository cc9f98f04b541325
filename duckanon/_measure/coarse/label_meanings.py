"""Labels of a release, read as the values that they hold, by the values of the original and by hierarchies.

SQL reads them the same way (``anon._label_rules``), for checks that DuckDB computes. Here the tables are at hand, and
nothing has to be bound: reading a column took 74 milliseconds in SQL, whatever it held.

The ends of labels of numbers and dates: ``[17, 25)``, ``<25``, ``90+``, ``2024-Q1``, ``1950s``.

SQL reads them the same way (``anon._label_bounds``, ``anon._calendar_cell``), for checks that DuckDB computes.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon._core.common.arrays import Floats
from duckanon._core.common.labels import (
    EVERYTHING,
    MICROSECONDS_PER_DAY,
    OTHER,
    is_like_label,
    label_value,
    read_set,
)
from duckanon._core.common.values import take_numbers
from duckanon._core.encoding.pairs import decode_storage, pair_kind
from duckanon._measure.queries.labels import Meaning, Meanings, is_text_column
from duckanon._methods.generalize.hierarchies import HierarchyRow

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


def read_ends(label: str, is_date: bool, unit: float) -> tuple[float, float] | None:
    """Return the smallest and the largest number that a label holds, or None where it is not understood.

    `unit` is the step between neighbouring values, 0 where there is none: of whole numbers ``[40, 50)`` ends at 49, of
    others just below 50. An end that is missing is infinite. The first may be above the second, in ``(1, 2)`` of whole
    numbers.

    Examples:
        >>> read_ends("[40, 50)", False, 1.0), read_ends("90+", False, 1.0), read_ends("forties", False, 1.0)
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


HierarchyRows: TypeAlias = Sequence[HierarchyRow] | None

_LABEL_OF_TEXTS = r"(?s)^(\{.*\}|.*\*|other)$"
_CODE = r"^-?[\w.]+\*+$"  # the beginning of a number: such columns are read as texts
_NUMBER = re.compile(r"-?\d+(\.\d+)?", re.ASCII)
_REST = re.compile(r"\{(.*, )?other(, NULL)?\}")  # a set with the values that no label names
_EVERYTHING = Meaning("everything")
_NULL: tuple[str | None, float | None] = (None, None)


def label_meanings(original: pa.Table, released: pa.Table, hierarchies: HierarchyRows) -> dict[str, Meanings]:
    """Return the meanings of the labels of each column, none for labels that are simply values.

    A released column holds labels where it is text and the original has numbers, dates or booleans, or where it has
    texts that the original has not and that look like labels: ``*``, ``other``, ``{a, b}``, ``021**``, a label of a
    hierarchy, NULL, or nothing but prefixes of values. A text that the original has, too, is that value unless the
    release shows that it is made up (`_find_made_up`). A ValueError refuses a label that is not understood.
    """
    leaves: dict[str, dict[str, list[tuple[str, int]]]] = defaultdict(lambda: defaultdict(list))
    for row in hierarchies or ():
        if row["leaf"] is not None and row["label"] is not None:
            leaves[row["column_name"]][row["label"]].append((row["leaf"], row["level"]))
    return {
        name: _column_meanings(name, original.column(name), released.column(name), leaves.get(name.lower(), {}))
        for name in original.column_names
        if name in released.column_names
    }


def _column_meanings(
    name: str, original: pa.ChunkedArray, released: pa.ChunkedArray, leaves: Mapping[str, Sequence[tuple[str, int]]]
) -> Meanings:
    if not is_text_column(released.type):
        return {}
    shown = pc.unique(decode_storage(released))
    tree = {label: [leaf for leaf, _ in below] for label, below in leaves.items()}
    if is_text_column(original.type):
        values = pc.unique(decode_storage(original))
        made_up = _find_made_up(original, released)
        is_label = pc.or_(pc.invert(pc.is_in(shown, value_set=values)), pc.is_in(shown, pa.array(made_up, shown.type)))
        unseen = shown.filter(is_label)
        ancestors = [label for label, below in leaves.items() if any(level for _, level in below)]
        if not _looks_like_labels(unseen, values, ancestors):
            return {}
        return _of_texts(name, dict.fromkeys(_texts(values)), shown, tree, made_up, has_null=values.null_count > 0)
    if pa.types.is_boolean(original.type):
        values = pc.unique(original)
        return _of_texts(name, dict.fromkeys(_texts(values)), shown, tree, has_null=values.null_count > 0)
    kind = pair_kind(original.type)
    if kind not in ("number", "time"):
        return {}
    if kind == "number" and pc.any(pc.or_(pc.equal(shown, OTHER), pc.match_substring_regex(shown, _CODE))).as_py():
        values = pc.unique(original)
        places, _, _ = take_numbers(name, values)
        texts = dict(zip(_texts(values), places.tolist(), strict=True))
        return _of_texts(name, texts, shown, tree, has_null=values.null_count > 0)
    if pa.types.is_timestamp(original.type) and original.type.tz is not None:
        original = pc.local_timestamp(original)  # labels tell the time of the session's zone
    places, _, _ = take_numbers(name, original)
    return _of_numbers(name, np.unique(places), shown, tree, kind == "time", has_null=original.null_count > 0)


def _find_made_up(original: pa.ChunkedArray, released: pa.ChunkedArray) -> list[str]:
    """Return the labels that a value of the original is written like, too, and that are not this value.

    Another label names the value, or more rows have it than have the value and merged values are called otherwise,
    ``{other}``. ``anon._read_labels`` reads them so, too.
    """
    held, shown = (_rows_of_labels(column) for column in (original, released))
    named = {member for label in shown if label.startswith("{") for member in read_set(label)}
    return [
        label
        for label in shown.keys() & held.keys()
        if label in named or (shown[label] > held[label] and "{" + label + "}" not in shown)
    ]


def _rows_of_labels(column: pa.ChunkedArray) -> dict[str, int]:
    """Count the rows of texts that could be read as a label."""
    texts = decode_storage(column).drop_null()
    is_like = pc.or_(pc.starts_with(texts, "{"), pc.or_(pc.ends_with(texts, EVERYTHING), pc.equal(texts, OTHER)))
    counted = pc.value_counts(texts.filter(is_like))
    return dict(zip(counted.field("values").to_pylist(), counted.field("counts").to_pylist(), strict=True))


def _looks_like_labels(unseen: pa.Array, values: pa.Array, ancestors: Sequence[str]) -> bool:
    """Tell texts that the original does not have and that stand for its values from such as merely are others."""
    if not len(unseen):
        return False
    if unseen.null_count or pc.any(pc.match_substring_regex(unseen, _LABEL_OF_TEXTS)).as_py():
        return True
    if ancestors and pc.any(pc.is_in(unseen, value_set=pa.array(ancestors, unseen.type))).as_py():
        return True
    lengths = pc.utf8_length(unseen)
    for length in pc.unique(lengths).to_pylist():
        beginnings = pc.utf8_slice_codeunits(values, 0, length)
        if not pc.all(pc.is_in(unseen.filter(pc.equal(lengths, length)), value_set=beginnings)).as_py():
            return False
    return True


def _of_numbers(
    name: str, places: Floats, shown: pa.Array, tree: Mapping[str, Sequence[str]], is_date: bool, *, has_null: bool
) -> Meanings:
    """Read labels of numbers or dates, whose places on the number line are given, in order."""
    unit = _unit(places, is_date)
    meanings: dict[str | None, Meaning] = {}
    for label in shown.to_pylist():
        if label == EVERYTHING or (label is None and not has_null):
            meanings[label] = _EVERYTHING
        elif label is None:
            meanings[label] = Meaning("listed", values=[_NULL])
        elif held := _below(tree.get(label, ()), places, is_date):
            meanings[label] = Meaning("listed", values=[(None, place) for place in held])
        else:
            ends = read_ends(label, is_date, unit)
            if ends is None:
                raise _not_understood(name)
            if ends[0] != ends[1] or not _NUMBER.fullmatch(label):
                meanings[label] = Meaning("interval", *ends)
    return meanings


def _unit(places: Floats, is_date: bool) -> float:
    """Return the step between neighbouring values: 1 of whole numbers, a day where all are midnights, otherwise 0."""
    unit = float(MICROSECONDS_PER_DAY if is_date else 1)
    return unit if len(places) and np.all(places % unit == 0) else 0.0


def _below(leaves: Sequence[str], places: Floats, is_date: bool) -> list[float]:
    """Return the places of those leaves of a label that the original has."""
    wanted = [place for leaf in leaves if (place := number_of(leaf, is_date)) is not None]
    return np.intersect1d(wanted, places).tolist() if wanted else []


def _of_texts(
    name: str,
    values: Mapping[str, float | None],
    shown: pa.Array,
    tree: Mapping[str, Sequence[str]],
    made_up: Sequence[str] = (),
    *,
    has_null: bool,
) -> Meanings:
    """Read labels of texts, or of numbers as texts, which have their places on the number line."""
    texts = {
        label if label is None or label not in values or label in made_up else label_value(label): label
        for label in shown.to_pylist()
    }  # values that look like labels in quotation marks
    labels = list(texts)
    null_shown = any(label is None or _names_null(label) for label in labels)
    asked = [label for label in labels if label is not None and label != EVERYTHING]
    held: dict[str, list[str]] = {}
    for label in asked:
        matches = [] if is_like_label(label) else [label]
        listed_values = read_set(label) if label.startswith("{") else []
        members = dict.fromkeys([*matches, *tree.get(texts[label] or label, ()), *listed_values])
        held[label] = [member for member in members if member is not None and member in values]
    named = {value for members in held.values() for value in members}
    for label, prefixed in _find_prefixed([label for label in asked if not held[label] and label != OTHER], values):
        held[label] = prefixed
    for label in asked:
        if _REST.fullmatch(label):  # rare values, which no set of the column names (anon.recode)
            held[label] += [value for value in values if value not in named]
    covered = {value for members in held.values() for value in members}
    meanings: dict[str | None, Meaning] = {}
    for label in labels:
        text = texts[label]
        if label == EVERYTHING or (label is None and not has_null):
            meanings[text] = _EVERYTHING
            continue
        matches = [] if label is None else held[label]
        if label == OTHER:
            matches = [*matches, *(value for value in values if value not in covered)]
        elif label is not None and not matches:
            raise _not_understood(name)
        listed: list[tuple[str | None, float | None]] = [(value, values[value]) for value in matches]
        if has_null and (label is None or _names_null(label) or (not null_shown and _is_rest(label))):
            listed.append(_NULL)
        if not listed:
            meanings[text] = Meaning("nothing")
        elif len(listed) > 1 or listed[0][0] != text or label is None:
            meanings[text] = Meaning("listed", values=listed)
    return meanings


def _names_null(label: str) -> bool:
    return label.startswith("{") and label.endswith(", NULL}")


def _is_rest(label: str) -> bool:
    """Tell labels that hold NULL where no label names it."""
    return label == OTHER or _REST.fullmatch(label) is not None


def _find_prefixed(labels: Sequence[str], values: Mapping[str, float | None]) -> list[tuple[str, list[str]]]:
    """Return with each of the labels the values that begin like it; of ``021**`` without its stars."""
    prefixes = {label: label.rstrip("*") for label in labels}
    wanted = set(prefixes.values())
    values_of_prefix: dict[str, list[str]] = defaultdict(list)
    for length in {len(prefix) for prefix in wanted}:
        for value in values:
            if len(value) >= length and value[:length] in wanted:
                values_of_prefix[value[:length]].append(value)
    return [(label, list(values_of_prefix[prefix])) for label, prefix in prefixes.items()]


def _texts(values: pa.Array) -> list[str]:
    """Return the values that are not NULL, as DuckDB writes them."""
    known = values.drop_null()
    if pa.types.is_decimal(known.type):
        return [format(value, "f") for value in known.to_pylist()]
    if pa.types.is_floating(known.type):  # Arrow would write 17.0 as 17
        return [str(value) for value in known.to_numpy()]
    return list(known.cast(pa.string()).to_pylist())


def _not_understood(name: str) -> ValueError:
    return ValueError(
        f"column {name} of the release has a label that is no value of the original's column, no range, prefix or set "
        "of them and in no hierarchy of the column; name its hierarchy in hierarchies."
    )

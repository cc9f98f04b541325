"""Oracles of labels and intervals: what is said of a value is true."""

from __future__ import annotations

import datetime
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.oracles.call import Call, key

_NUMBER = r"-?(?:[\d.]+(?:e[+-]?\d+)?|inf(?:inity)?)"
_INTERVAL = re.compile(rf"([\[(])({_NUMBER}), ({_NUMBER})([\])])")
_TAIL = re.compile(rf"(<=|>=|<|>)({_NUMBER})")


def is_true(label: Any, value: Any) -> bool | None:
    """Tell whether a label is true of a value; None where this reader does not know the label."""
    if label is None or value is None:
        return label in (None, "*", {"lo": None, "hi": None})
    if not isinstance(label, str):
        return bool(label == value) if type(label) is type(value) else None
    if label in ("*", str(value), str(value).lower()):
        return True
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return _is_true_of_number(label, float(value))
    if isinstance(value, datetime.date):
        return _is_true_of_day(label, value)
    return None


def _is_true_of_number(label: str, value: float) -> bool | None:
    if found := _INTERVAL.fullmatch(label):
        low, high = float(found[2]), float(found[3])
        above = low <= value if found[1] == "[" else low < value
        return above and (value <= high if found[4] == "]" else value < high)
    if found := _TAIL.fullmatch(label):
        end = float(found[2])
        return {"<": value < end, "<=": value <= end, ">": value > end, ">=": value >= end}[found[1]]
    return None


def _is_true_of_day(label: str, day: datetime.date) -> bool | None:
    if found := re.fullmatch(r"(\d{4})s", label):
        return int(found[1]) <= day.year < int(found[1]) + 10
    if found := re.fullmatch(r"(\d{4})-(\d{4})", label):
        return int(found[1]) <= day.year <= int(found[2])
    if re.fullmatch(r"\d{4}(-\d\d)?(-\d\d)?", label):
        return str(day).startswith(label)
    return None


def true_labels(call: Call, promise: Any) -> Iterator[str]:
    """Read each label beside the value that it stands for; those of hierarchies and other alphabets are not read."""
    source = call.source
    if call.answer.has("result"):  # a function of single values
        yield from _true_results(call)
        return
    skipped = {name.lower() for name in call.options.get("hierarchies") or {}} | {
        name.lower() for name in call.options.get("methods") or {}
    }
    if source is None:
        return
    for column in call.names("cols"):
        if column.lower() in skipped or not call.answer.has(column):
            continue
        before = call.table.column(column)
        for label, row in zip(call.answer.column(column), source, strict=True):
            if is_true(label, before[row]) is False:
                yield f"{column}: the label {label!r} is not true of {before[row]!r}"
                break


def _true_results(call: Call) -> Iterator[str]:
    for value, label in zip(call.answer.column("value"), call.answer.column("result"), strict=True):
        if label is not None and is_true(label, value) is False:
            yield f"the label {label!r} is not true of {value!r}"
            return


def function_of_value(call: Call, promise: Any) -> Iterator[str]:
    """Compare the results of equal values, and of different ones."""
    if not call.answer.has("value"):
        return
    pairs = {(key(value), result) for value, result in zip(*map(call.answer.column, ("value", "result")), strict=True)}
    results = Counter(value for value, _ in pairs)
    if call.options.get("person") is None and (several := [value for value, count in results.items() if count > 1]):
        yield f"{several[0]!r} has {results[several[0]]} results"
    values = Counter(result for _, result in pairs if result is not None)
    if promise.one_to_one and any(count > 1 for count in values.values()):
        yield "different values have the same result"


def true_intervals(call: Call, promise: Any) -> Iterator[str]:
    """Count values outside their intervals: at most the k - 1 smallest and largest of a column are coded."""
    source = call.source
    if source is None:
        return
    outside = 0
    for column in call.names("cols"):
        before = call.table.column(column)
        for box, row in zip(call.answer.column(column), source, strict=True):
            value = before[row]
            if isinstance(box, dict) and value is not None:
                low, high = box["lo"], box["hi"]
                outside += not ((low is None or low <= value) and (high is None or value <= high))
    if outside > 2 * (call.k - 1) * len(call.names("cols")):
        yield f"{outside} values lie outside of their intervals"

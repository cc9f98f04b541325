"""Oracles of what is promised about k people."""

from __future__ import annotations

import math
import struct
from collections import defaultdict
from collections.abc import Hashable, Iterator
from typing import Any

from tests.oracles.call import Call, different_people, groups, key


def at_least_k_people(call: Call, promise: Any) -> Iterator[str]:
    """Count the people of every class; without ``rid`` a class has as many people as rows."""
    if call.options.get("population") is not None or call.options.get("checks") == "off":
        return  # k is promised in the population then, or not at all
    columns = [name for name in call.names(*promise.parameters) if name != call.options.get("key")]
    classes = groups(call.answer.keys(columns))
    source, people = call.source, call.people
    for rows in classes.values():
        if source is not None:
            count = different_people((source[row] for row in rows), people)
        elif call.options.get("person") is None:
            count = len(rows)
        else:
            continue
        if count < call.k:
            yield f"a class of {count} people, k is {call.k}"
            return


def k_people_agree(call: Call, promise: Any) -> Iterator[str]:
    """Count for every record the people whose rows in the table it may be."""
    cols, people = call.names("cols"), call.people
    before, after = call.table.keys(cols), call.answer.keys(cols)
    is_value = call.options.get("nulls") == "value"

    def agrees(released: tuple[Hashable, ...], original: tuple[Hashable, ...]) -> bool:
        return all(
            one == other or (not is_value and (one is None or other is None))
            for one, other in zip(released, original, strict=True)
        )

    for record in set(after):
        pool = after if is_value else before
        rows = [row for row, other in enumerate(pool) if agrees(record, other)]
        source = call.source
        numbers = rows if not is_value else [source[row] for row in rows] if source else rows
        count = different_people(numbers, people) if source or not is_value else len(rows)
        if count < call.k:
            yield f"{count} people agree with a record, k is {call.k}"
            return


def shared_values(call: Call, promise: Any) -> Iterator[str]:
    """Count the people of every released value; rows that nobody has stand for no one."""
    people = call.people
    for column in call.names("cols"):
        if not call.answer.has(column):
            continue
        holders: dict[Hashable, set[Hashable]] = defaultdict(set)
        sharers: dict[Hashable, set[Hashable]] = defaultdict(set)  # 24.8625 is also 24.862499999999997
        for row, value in enumerate(call.table.column(column)):
            holders[key(value)].add(people[row])
            sharers[_rounded(value)].add(people[row])
        is_number = (
            call.table.types[column].startswith(("DOUBLE", "FLOAT", "DECIMAL")) or "INT" in call.table.types[column]
        )
        is_number = is_number or call.table.types[column].startswith(("DATE", "TIMESTAMP"))
        least = min(call.k, 3) if is_number else call.k
        released = {key(value) for value in call.answer.column(column)} - {None}
        known = [value for value in released if value in holders]
        if few := [value for value in known if 0 < len(sharers[_rounded(value)] - {None}) < least]:
            yield f"{column}: {len(few)} values of fewer than {least} people"
        made_up = "{other}" if "other" in holders else "other"
        new = [value for value in released if value not in holders and value != made_up]
        if new and not is_number:
            yield f"{column}: a value that nobody has"
        is_float = call.table.types[column] == "DOUBLE" and all(map(_is_float, holders))
        if is_float and any(map(_has_digits_of_float, holders)) and not all(map(_is_float, new)):
            yield f"{column}: numbers that are no FLOATs, as those of the table are"


def _rounded(value: Any) -> Hashable:
    """Return a number without what computing left in its last digits."""
    return key(float(f"{value:.14g}") if isinstance(value, float) else value)


def _has_digits_of_float(value: Any) -> bool:
    """Tell whether a number would have fewer digits in its own type: 0.1 as FLOAT is 0.10000000149011612."""
    return isinstance(value, float) and len(repr(value)) > 15


def _is_float(value: Any) -> bool:
    if not isinstance(value, float) or not math.isfinite(value) or abs(value) > 1e38:
        return True
    return struct.unpack("f", struct.pack("f", value))[0] == value

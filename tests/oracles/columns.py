"""Oracles of rows, columns, types and values that a release keeps."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.oracles.call import Call, key


def one_row(call: Call, promise: Any) -> Iterator[str]:
    if len(call.answer.rows) != 1:
        yield f"{len(call.answer.rows)} rows"


def row_per(call: Call, promise: Any) -> Iterator[str]:
    expected = {
        "row": min(len(call.table.rows), call.options.get("sample") or len(call.table.rows)),
        "column": len(call.table.columns),
        "column of secret_cols": len(call.names("secret_cols")),
    }[promise.unit]
    if len(call.answer.rows) != expected:
        yield f"{len(call.answer.rows)} rows are not one for each {promise.unit}: {expected}"


def keeps_rows(call: Call, promise: Any) -> Iterator[str]:
    least = len(call.table.rows)
    if promise.fraction:
        least = math.ceil(least * (1 - call.options[promise.fraction]) - 1e-9)
    if not least <= len(call.answer.rows) <= len(call.table.rows):
        yield f"{len(call.table.rows)} rows became {len(call.answer.rows)}, at least {least} are promised"


def draws_rows(call: Call, promise: Any) -> Iterator[str]:
    expected = call.options.get("rows") or len(call.table.rows)
    if len(call.answer.rows) != expected and not call.options.get("person"):
        yield f"{len(call.answer.rows)} rows, {expected} were asked for"


def only_columns(call: Call, promise: Any) -> Iterator[str]:
    named = set(call.names(*promise.parameters))
    if "*" not in named and (more := [column for column in call.answer.columns if column not in named]):
        yield f"columns that nobody named: {more[:3]}"
    always = call.names(
        *(one for one in promise.parameters if not one.startswith("column "))
    )  # what it makes, it may not
    if missing := [column for column in always if column != "*" and not call.answer.has(column)]:
        yield f"columns are missing: {missing[:3]}"


def keeps_types(call: Call, promise: Any) -> Iterator[str]:
    for column in call.names(*promise.parameters):
        before, after = call.table.types.get(column), call.answer.types.get(column)
        if before and after and before != after and not before.startswith("ENUM"):
            yield f"type of {column}: {before} became {after}"


def keeps_values_or_null(call: Call, promise: Any) -> Iterator[str]:
    yield from keeps_values(call, promise, or_null=True)


def keeps_values(call: Call, promise: Any, or_null: bool = False) -> Iterator[str]:
    columns = [one for one in call.names(*promise.parameters) if one != "*" and call.answer.has(one)]
    source = call.source
    if source is None:
        return
    for column in columns:
        before = call.table.column(column)
        after = call.answer.column(column)
        pairs = zip(after, source, strict=True)
        if any(key(value) != key(before[row]) and not (or_null and value is None) for value, row in pairs):
            yield f"values of {column} are not those of their rows"


def same_distribution(call: Call, promise: Any) -> Iterator[str]:
    for column in call.names(*promise.parameters):
        before, after = (Counter(map(key, rows.column(column))) for rows in (call.table, call.answer))
        if before != after:
            yield f"values of {column}: {before - after} became {after - before}"[:200]

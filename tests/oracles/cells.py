"""Oracles of aggregate tables: every cell is counted again, margins included."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from tests.oracles.call import Call, different_people

TOTAL = "Total"
_PLAIN = ("VARCHAR", "INTEGER", "BIGINT", "SMALLINT", "TINYINT", "DATE", "BOOLEAN", "ENUM", "UUID", "UTINYINT")


def _cells(call: Call) -> Iterator[tuple[dict[str, Any], list[int]]]:
    """Return each cell beside the rows of the table that are in it; none where labels of values are not known here."""
    by, measure = call.names("by"), call.options.get("measure")
    if call.options.get("hierarchies") or not all(call.table.types[one].startswith(_PLAIN) for one in by):
        return
    values = {one: [_text(value) for value in call.table.column(one)] for one in by}
    amounts = call.table.column(measure) if measure else None
    for row in call.answer.rows:
        cell = dict(zip(call.answer.columns, row, strict=True))
        inside = [
            number
            for number in range(len(call.table.rows))
            if all(cell[one] == TOTAL or _plain(cell[one]) == values[one][number] for one in by)
            and (amounts is None or amounts[number] is not None)
        ]
        yield cell, inside


def _text(value: Any) -> str | None:
    """Write a value as a cell shows it; one that is called as the margins are is quoted."""
    return '{"Total"}' if value == TOTAL else _plain(value)


def _plain(value: Any) -> str | None:
    return None if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def cells_of_k_people(call: Call, promise: Any) -> Iterator[str]:
    for cell, rows in _cells(call):
        people = different_people(rows, call.people)
        is_shown = cell.get("published") and call.options.get("method") == "suppress"
        if is_shown and 0 < people < call.k:
            yield f"a published cell of {people} people, k is {call.k}"
            return


def true_cells(call: Call, promise: Any) -> Iterator[str]:
    measure = call.options.get("measure")
    for cell, rows in _cells(call):
        people = different_people(rows, call.people)
        is_hidden = cell.get("published") is False or call.options.get("method", "suppress") != "suppress"
        if not is_hidden and cell["people"] != people:
            yield f"{cell['people']} people of a cell are {people}"
            return
        if is_hidden or cell["value"] is None or (measure is None and call.options.get("person") is None):
            continue
        amounts = call.table.column(measure) if measure else None
        nobody = set() if call.options.get("person") is None else {n for n in rows if call.people[n] is None}
        truth = float(people) if amounts is None else float(sum(amounts[row] for row in rows if row not in nobody))
        if math.isfinite(truth) and abs(float(cell["value"]) - truth) > 1e-6 * max(1.0, abs(truth)):
            yield f"the value {cell['value']} of a cell is {truth}"
            return

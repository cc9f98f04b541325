"""One person must leave no trace in what is said of others: two releases of tables that differ by one person, compared.

A table is a dictionary of numpy columns; its column ``number`` tells rows apart, and a query releases it beside the
labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

Table = Mapping[str, Any]


def random_table(seed: int, rows: int) -> dict[str, Any]:
    """Draw ages, incomes with a heavy tail in a unit of their own, days, areas, and people of several rows."""
    draw = np.random.default_rng(seed)
    days = draw.normal(15_000, 5_000, rows).astype(np.int64)
    return {
        "age": draw.integers(18, 95, rows),
        "income": np.round(draw.lognormal(10, 0.8, rows), int(draw.choice([0, -1, -2, 2]))),
        "born": np.datetime64("1930-01-01") + days.astype("m8[D]"),
        "area": np.array([f"area {number}" for number in draw.integers(0, 12, rows)]),
        "illness": draw.integers(0, 4, rows),
        "ward": draw.integers(0, 2, rows),
        "person": draw.integers(0, max(rows // 3, 30), rows),
        "number": np.arange(rows),
    }


def with_farther_extreme(table: Table, column: str, by: float, *, is_low: bool) -> tuple[dict[str, Any], int]:
    """Move the largest value of a column, or the smallest, beyond itself by so many ranges of the column.

    Returns the table and the number of the row.
    """
    values = table[column].copy()
    row = int(np.argmin(values) if is_low else np.argmax(values))
    sign = -1 if is_low else 1
    if np.issubdtype(values.dtype, np.datetime64):
        distance = np.timedelta64(max(1, int(np.ptp(values).astype(np.int64) * by)), "D")
    else:
        distance = np.round(np.ptp(values) * by, 2)
    values[row] = values[row] + sign * distance
    return {**table, column: values}, int(table["number"][row])


def without_row(table: Table, row: int) -> dict[str, Any]:
    """Return the table without a row."""
    return {name: np.delete(values, row) for name, values in table.items()}


def released_labels(con: duckdb.DuckDBPyConnection, query: str, table: Table) -> dict[int, tuple[Any, ...]]:
    """Return what a query of the table ``people`` releases of each row, by its number."""
    con.register("people", pa.table(dict(table)))
    released = con.execute(query)
    assert released.description is not None
    place = [column[0] for column in released.description].index("number")
    return {row[place]: row[:place] + row[place + 1 :] for row in released.fetchall()}


def changed_labels(con: duckdb.DuckDBPyConnection, query: str, one: Table, other: Table, row: int) -> list[int]:
    """Return the rows that two releases say different things of, but for the row that is not the same in both."""
    before, after = (released_labels(con, query, table) for table in (one, other))
    others = (before.keys() | after.keys()) - {row}
    return sorted(number for number in others if before.get(number) != after.get(number))

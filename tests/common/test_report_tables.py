"""Reports as tables of a declared schema."""

from __future__ import annotations

import pyarrow as pa

from duckanon._core.common.declare import report_columns, report_rows

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.float64())])


def test_columns_come_in_the_order_of_the_schema() -> None:
    table = report_columns({"b": [1.5, float("nan")], "a": [1, 2]}, SCHEMA)
    assert table.to_pylist() == [{"a": 1, "b": 1.5}, {"a": 2, "b": None}]


def test_what_a_row_does_not_have_is_null() -> None:
    assert report_rows([{"b": 2.0}], SCHEMA).to_pylist() == [{"a": None, "b": 2.0}]
    assert report_rows([], SCHEMA).schema == SCHEMA

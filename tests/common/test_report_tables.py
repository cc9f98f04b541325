"""Reports get the type that DuckDB is told of."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

from duckanon.bridge import catalog
from duckanon.common.reports import report, report_rows, schema_of


def test_fields_are_read_off_the_sql_type() -> None:
    found = schema_of(
        'STRUCT(a BIGINT, "limit" DOUBLE, n VARCHAR[], w STRUCT(box BIGINT, weight DOUBLE)[], ok BOOLEAN)[]'
    )
    weights = pa.list_(pa.struct([("box", pa.int64()), ("weight", pa.float64())]))
    assert found.names == ["a", "limit", "n", "w", "ok"]
    assert found.types == [pa.int64(), pa.float64(), pa.list_(pa.string()), weights, pa.bool_()]


def test_rows_and_columns() -> None:
    kind = "STRUCT(a BIGINT, b DOUBLE)[]"
    assert report({"b": [1.5, float("nan")], "a": [1, 2]}, kind).to_pylist() == [
        {"a": 1, "b": 1.5},
        {"a": 2, "b": None},
    ]
    assert report_rows([{"b": 2.0}], kind).to_pylist() == [{"a": None, "b": 2.0}]
    assert report_rows([], kind).schema == schema_of(kind)


@pytest.mark.parametrize("name", sorted(catalog.REPORTS_OF_SEVERAL))
def test_duckdb_reads_the_same_fields(name: str) -> None:
    sql_type = catalog.REPORTS_OF_SEVERAL[name][2]
    empty = duckdb.sql(f"SELECT unnest(NULL::{sql_type}, max_depth := 2) LIMIT 0")
    assert empty.columns == schema_of(sql_type).names

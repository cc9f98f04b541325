"""Every table of the catalogue is what it says."""

from __future__ import annotations

import duckdb
import pytest

from tests.awkward import TABLES, Awkward, create, quoted


@pytest.fixture(scope="module")
def catalogue() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    create(connection)
    return connection


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_every_table_is_as_awkward_as_it_says(table: Awkward, catalogue: duckdb.DuckDBPyConnection) -> None:
    name = quoted(table.name)
    rows = catalogue.execute(f"SELECT COLUMNS(*)::VARCHAR FROM {name}").fetchall()
    numbers, *columns = zip(*rows, strict=True) if rows else [()] * (1 + len(table.columns))
    varieties = {column: len(set(values) - {None}) for column, values in zip(table.columns, columns, strict=True)}
    assert len(set(numbers)) == len(rows) == table.size
    assert {column for column, values in varieties.items() if values < 2} == set(table.constant)
    false = [claim for claim in table.claims if not catalogue.execute(f"SELECT {claim} FROM {name}").fetchone()[0]]
    assert false == []


@pytest.mark.parametrize("table", [one for one in TABLES.values() if one.hierarchies], ids=lambda table: table.name)
def test_a_hierarchy_has_every_value_once(table: Awkward, catalogue: duckdb.DuckDBPyConnection) -> None:
    for column in table.hierarchies:
        values = catalogue.execute(f"SELECT DISTINCT {quoted(column)} FROM {quoted(table.name)}").fetchall()
        rows = catalogue.execute(f"FROM {quoted(table.hierarchy_of(column))}").fetchall()
        assert len({row[0] for row in rows}) == len(rows)
        assert {value for (value,) in values} <= {row[0] for row in rows}


def test_the_catalogue_has_every_type_that_people_keep(catalogue: duckdb.DuckDBPyConnection) -> None:
    types = {row[0] for row in catalogue.execute("SELECT DISTINCT data_type FROM duckdb_columns()").fetchall()}
    kinds = {name.split("(")[0] for name in types}
    assert kinds >= {"INTEGER", "BIGINT", "TINYINT", "SMALLINT", "UTINYINT", "UINTEGER", "UBIGINT", "HUGEINT"}
    assert kinds >= {"DOUBLE", "FLOAT", "DECIMAL", "BOOLEAN", "VARCHAR", "ENUM", "UUID", "BLOB", "BIT"}
    assert kinds >= {"DATE", "TIME", "TIME WITH TIME ZONE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "INTERVAL"}
    assert kinds >= {"TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "BIGINT[]", "INTEGER[2]", "STRUCT", "MAP"}

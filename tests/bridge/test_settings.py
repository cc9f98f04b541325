"""What a connection has set does not change a result."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from tests.sqltest import ROOT, PythonEngine, check, parse

SETTINGS = {"default_order": "DESC", "default_null_order": "NULLS_FIRST"}
QUICK = {"t_closeness", "apply_partition", "apply_plan"}
"""Functions that once gave other results under another default order; all others are for the thorough run."""


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=() if path.stem in QUICK else pytest.mark.thorough)
        for path in sorted(ROOT.glob("tests/*/*.test"))
    ],
    ids=lambda path: path.stem,
)
def test_orders_do_not_depend_on_defaults(path: Path, own_con: duckdb.DuckDBPyConnection) -> None:
    """The settings hold for a whole database. Only the queries' own ORDER BY may bring rows in another order."""
    for name, value in SETTINGS.items():
        own_con.execute(f"SET {name} = '{value}'").fetchall()
    records = [replace(record, rowsort=record.kind == "query") for record in parse(path)[0]]
    check(path, records, PythonEngine(own_con).run(records))

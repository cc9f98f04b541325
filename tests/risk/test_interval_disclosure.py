"""Interval disclosure: against the definition in numpy, and sdcMicro's dRisk."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from tests.profiles import seeds
from tests.sqltest import data_file


@pytest.mark.parametrize("seed", seeds(2, 5))
def test_definition(con: duckdb.DuckDBPyConnection, seed: int) -> None:
    rng = np.random.default_rng(seed)
    original = rng.normal(size=(500, 3)) * [1, 10, 1e6]
    released = original + rng.normal(size=(500, 3)) * [0.05, 0.5, 5e4]
    people = rng.integers(0, 200, size=500)
    names = ["a", "b", "c"]
    order = rng.permutation(500)
    con.register("o", pa.table({"id": range(500), "who": people} | dict(zip(names, original.T, strict=True))))
    con.register("r", pa.table({"id": order} | dict(zip(names, released[order].T, strict=True))))
    inside = np.abs(original - released) <= 0.05 * released.std(axis=0, ddof=1)
    found = con.execute(f"FROM anon.interval_disclosure('o', 'r', {names}, key := 'id', person := 'who')").fetchall()
    for row, within in zip(found, [inside.all(axis=1), *inside.T], strict=True):
        held = len(set(people[within]))
        assert row[2:] == (within.sum(), held, pytest.approx(held / len(set(people))))


def test_sdcmicro(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(f"CREATE TABLE original AS FROM '{data_file('risk/testdata.csv')}'").fetchall()
    con.execute(f"CREATE TABLE released AS FROM '{data_file('risk/testdata_mdav3.csv')}'").fetchall()
    for width, expected in ((0.01, 0.00109170305677), (0.05, 0.129475982533)):
        (found,) = con.execute(
            f"""SELECT fraction FROM anon.interval_disclosure('original', 'released', ['expend', 'income', 'savings'],
                                                              width := {width}) WHERE column_name IS NULL"""
        ).fetchall()[0]
        assert found == pytest.approx(expected, rel=1e-10)

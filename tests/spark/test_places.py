"""The same releases on executors that are processes of their own, one of which dies, and over Spark Connect."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import duckanon
from tests.spark.conftest import JAVA
from tests.sqltest import data_file

pytestmark = pytest.mark.engines
ROWS = 30_000


@pytest.fixture(scope="module")
def acs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[duckdb.DuckDBPyConnection, Path]]:
    """A part of the American Community Survey, as the table acs and as a file."""
    pytest.importorskip("pyspark.sql")
    path = tmp_path_factory.mktemp("acs") / "acs.parquet"
    with duckanon.connect() as con:
        con.execute(f"""
            CREATE TABLE acs AS SELECT STATE, AGEP, SEX, RAC1P, MAR, WKHP, PINCP
            FROM (SELECT *, row_number() OVER () AS place FROM '{data_file("acs_pums_2024_workers.parquet")}')
            ORDER BY hash(place) LIMIT {ROWS};
            COPY acs TO '{path}'""")
        yield con, path


def run(place: str, source: Path, folder: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.spark.places", place, str(source), str(folder)]
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root), "JAVA_TOOL_OPTIONS": JAVA, "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=900
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return dict(json.loads(done.stdout.strip().splitlines()[-1]))


@pytest.mark.parametrize("place", ["local-cluster[2,1,1024]", "connect"])
def test_places(acs: tuple[duckdb.DuckDBPyConnection, Path], place: str, tmp_path: Path) -> None:
    from tests.spark.places import COLS, METHODS, NUMBERS, K

    con, source = acs
    found = run(place, source, tmp_path)
    methods = ", ".join(f"'{name}': '{method}'" for name, method in METHODS.items())
    query = f"FROM anon.generalize('acs', {COLS}, {K}, methods := MAP {{{methods}}})"
    expected = Counter(con.execute(query).fetchall())
    written = con.execute(f"FROM '{tmp_path}/coarse.parquet'").fetchall()
    assert Counter(written) == expected
    assert found["coarse"]["k"] >= K
    assert found["coarse"]["rows"] == sum(expected.values())
    assert found["boxed"]["k"] >= K
    assert found["boxed"]["rows"] == ROWS
    con.execute(f"CREATE OR REPLACE TABLE boxed AS FROM anon.boxes('acs', {NUMBERS}, {K})")
    ours = theirs = 0.0
    for name, width in zip(NUMBERS, found["widths"], strict=True):
        of_anon = con.execute(f"SELECT avg({name}.hi - {name}.lo) FROM boxed").fetchall()[0][0]
        deviation = con.execute(f"SELECT stddev_pop({name}) FROM acs").fetchall()[0][0]
        ours, theirs = ours + width / deviation, theirs + of_anon / deviation
    assert ours <= 1.01 * theirs
    age, highest = con.execute("SELECT avg(AGEP), max(PINCP) FROM acs").fetchall()[0]
    for rows, age_there, highest_there in found["new"].values():
        assert rows == ROWS
        assert age_there == pytest.approx(age, rel=0.01)
        assert highest_there <= highest
    if place == "connect":
        assert found["path"].startswith("duckanon.spark.generalize: to must be the name of a table over Spark Connect")
        return
    killed = found["killed"]
    assert killed["processes"] == 1
    if "error" in killed:
        assert killed["names"] == []
    else:
        assert killed["names"] == ["boxed"]
        assert killed["k"] >= K
        assert killed["rows"] == ROWS

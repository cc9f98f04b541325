"""One Spark session for all tests of this folder, and a table that has everything a check may stumble over."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import duckanon

QUICK = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
}
"""What makes small tables quick: most of a test's time would be the compiling of code for a thousand rows."""
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Spark on two threads of this process; its workers run the Python of the tests."""
    sql = pytest.importorskip("pyspark.sql")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Java is not installed")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("JAVA_TOOL_OPTIONS", JAVA)
    builder = sql.SparkSession.builder.master("local[2]")
    for name, value in QUICK.items():
        builder = builder.config(name, value)
    folder = tmp_path_factory.mktemp("warehouse")
    session = builder.config("spark.sql.warehouse.dir", str(folder)).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def people() -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection with a table of people: NULLs everywhere, people with several rows, households, weights."""
    with duckanon.connect() as con:
        con.execute("""
            CREATE TABLE people AS
            SELECT CASE WHEN hash(i, 1) % 10 > 0 THEN (hash(i, 2) % 40)::INTEGER END AS age,
                   CASE WHEN hash(i, 3) % 10 > 0 THEN ['F', 'M', 'x'][1 + (hash(i, 4) % 3)::INTEGER] END AS sex,
                   'Z' || (1000 + hash(i, 5) % 30) AS zip,
                   DATE '2000-01-01' + (hash(i, 6) % 900)::INTEGER AS born,
                   CASE WHEN hash(i, 7) % 20 > 0 THEN (hash(i, 8) % 9)::INTEGER END AS visits,
                   ['flu', 'cold', 'burn'][1 + (hash(i, 9) % 3)::INTEGER] AS illness,
                   CASE WHEN hash(i, 10) % 20 > 0 THEN (hash(i, 11) % 700)::INTEGER END AS patient,
                   CASE WHEN hash(i, 12) % 20 > 0 THEN (hash(i, 13) % 300)::INTEGER END AS home,
                   (1 + hash(i, 14) % 30)::INTEGER AS weight, i AS number
            FROM range(1500) AS rows(i)""")
        yield con


@pytest.fixture(scope="session")
def frame(spark: Any, people: duckdb.DuckDBPyConnection, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The table of people on Spark."""
    path: Path = tmp_path_factory.mktemp("people") / "people.parquet"
    people.execute(f"COPY people TO '{path}'")
    return spark.read.parquet(str(path))

"""One release of one table, three ways: in DuckDB, larger than memory, on Spark.

    python examples/scale/three_ways.py FOLDER [ROWS]

Makes FOLDER/people.parquet, releases it three times as boxes that at least ten people share, and prints for each
release its rows, the people of its smallest class, and how wide its intervals are. Without PySpark it does the first
two.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import duckanon
from duckanon import large

COLS = ["age", "bmi", "glucose"]
K = 10

PEOPLE = """
    SELECT (18 + 70 * span)::INTEGER AS age,
           round(18 + 9 * span + 3 * sqrt(-2 * ln(first)) * cos(6.2832 * second), 1) AS bmi,
           round(80 + 25 * span + 9 * sqrt(-2 * ln(second)) * cos(6.2832 * third), 1) AS glucose
    FROM (SELECT sqrt((1 + hash(i, 1) % 100_000) / 100_001) AS span, (1 + hash(i, 2) % 100_000) / 100_001 AS first,
                 (1 + hash(i, 3) % 100_000) / 100_001 AS second, (1 + hash(i, 4) % 100_000) / 100_001 AS third
          FROM range({rows}) AS t(i))
"""


def main(folder: Path, rows: int) -> None:
    """Make the table, and release it on every available backend."""
    people = folder / "people.parquet"
    con = duckanon.connect()
    con.execute(f"COPY ({PEOPLE.format(rows=rows)}) TO '{people}'").fetchall()

    in_duckdb = folder / "in_duckdb.parquet"
    con.execute(f"COPY (FROM anon.boxes('{people}', {COLS}, {K})) TO '{in_duckdb}'").fetchall()
    tell("in DuckDB", in_duckdb)

    beyond_memory = folder / "beyond_memory.parquet"
    large.boxes(people, beyond_memory, COLS, K, memory="2GB")
    tell("larger than memory", beyond_memory)

    try:
        from pyspark.sql import SparkSession
    except ImportError:
        return
    from duckanon import spark as on_spark

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    session = SparkSession.builder.getOrCreate()
    on_cluster = folder / "on_spark"
    on_spark.boxes(session.read.parquet(str(people)), COLS, K, to=str(on_cluster))
    tell("on Spark", on_cluster / "*.parquet")


def tell(backend: str, written: Path) -> None:
    """Count what was written, with nothing but SQL."""
    widths = ", ".join(f"avg({name}.hi - {name}.lo)" for name in COLS)
    with duckanon.connect() as con:
        row = con.execute(
            f"""SELECT count(*), min(size), {widths}
                FROM (SELECT *, count(*) OVER (PARTITION BY {", ".join(COLS)}) AS size FROM '{written}')"""
        ).fetchall()[0]
    ends = ", ".join(f"{name} {width:.2f}" for name, width in zip(COLS, row[2:], strict=True))
    print(f"{backend}: {row[0]:,} rows, at least {row[1]} alike, mean widths {ends}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000)

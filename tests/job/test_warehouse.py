"""The digest of a server's rows, by which the account recognizes a release: of the values, in whatever order."""

from __future__ import annotations

import hashlib
import json

import duckdb
import pytest

from duckanon.job.warehouse import digest

ROWS = "SELECT i, CASE WHEN i % 3 > 0 THEN 'name ' || i % 7 END AS name, i / 8 AS share FROM range(50) AS t(i)"


def test_a_digest_is_the_sum_of_what_hashlib_says_of_the_rows(database: duckdb.DuckDBPyConnection) -> None:
    texts = [[None if cell is None else str(cell) for cell in row] for row in database.execute(ROWS).fetchall()]
    wholes = [hashlib.sha256(json.dumps(row, separators=(",", ":")).encode()).hexdigest() for row in texts]
    sums = [sum(int(whole[start : start + 16], 16) for whole in wholes) for start in (0, 16, 32, 48)]
    expected = repr((["i", "name", "share"], *map(str, [50, *sums])))
    assert digest(database, ROWS) == hashlib.sha256(expected.encode()).hexdigest()
    assert digest(database, f"SELECT * FROM ({ROWS}) ORDER BY name, i DESC") == digest(database, ROWS)
    # a number of another type is the same number: the digest is none of the types that a version reads
    assert digest(database, ROWS.replace("SELECT i,", "SELECT i::SMALLINT AS i,")) == digest(database, ROWS)


@pytest.mark.parametrize(
    "other",
    [
        ROWS.replace("range(50)", "range(49)"),
        f"{ROWS} UNION ALL (SELECT * FROM ({ROWS}) LIMIT 2)",
        ROWS.replace("END AS name", "ELSE 'null' END AS name"),
        ROWS.replace("END AS name", "ELSE '' END AS name"),
        ROWS.replace("AS share", "AS part"),
        ROWS.replace("i / 8", "(i + 1) % 50 / 8"),
    ],
)
def test_other_rows_have_another_digest(database: duckdb.DuckDBPyConnection, other: str) -> None:
    assert digest(database, other) != digest(database, ROWS)

"""Plans that a job applies: as CASEs where that is quicker, else by anon.apply_plan, with the same rows."""

from __future__ import annotations

import sys

import duckdb
import pytest

from duckanon.job import plans

KEEP = ["odd name", "z"]
VISITS = """
    CREATE TABLE original AS
    SELECT CASE WHEN i % 37 = 0 THEN NULL ELSE (hash(i, 1) % 70)::INTEGER END AS age,
           DATE '2020-01-01' + (hash(i, 2) % 900)::INTEGER AS visit,
           ['F', 'M', NULL, 'x''y\\z'][1 + (hash(i, 3) % 4)::INTEGER] AS sex, (hash(i, 4) % 5)::INTEGER AS "odd name",
           -0.0::DOUBLE AS z, CASE WHEN i % 2 = 0 THEN 'a' ELSE 'b' END::ENUM('a', 'b', 'nobody') AS listed
    FROM range(3000) AS t(i)
"""


@pytest.fixture
def con(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    con.execute(VISITS).fetchall()
    con.execute("CREATE TABLE plan AS FROM anon.plan('original', ['visit', 'sex', 'age'], 5)").fetchall()
    return con


def differences(con: duckdb.DuckDBPyConnection, query: str, keep: list[str]) -> int:
    con.execute(f"CREATE OR REPLACE TABLE asked AS {query}").fetchall()
    con.execute(
        f"CREATE OR REPLACE TABLE lookup AS FROM anon.apply_plan('original', 'plan', keep := {keep})"
    ).fetchall()
    assert con.execute("DESCRIBE asked").fetchall() == con.execute("DESCRIBE lookup").fetchall()
    sides = ("FROM asked EXCEPT ALL FROM lookup", "FROM lookup EXCEPT ALL FROM asked")
    return sum(con.execute(f"SELECT count(*) FROM ({side})").fetchall()[0][0] for side in sides)


@pytest.mark.thorough
def test_few_buckets_are_cases_with_the_same_cells(con: duckdb.DuckDBPyConnection) -> None:
    pytest.importorskip("sqlglot")
    con.execute("UPDATE original SET age = 500 WHERE age = 3").fetchall()  # never seen by the plan
    con.execute("UPDATE original SET sex = 'new' WHERE sex = 'M' AND age < 30").fetchall()
    query = plans.label_query(con, "original", KEEP)
    assert "CASE" in query
    assert differences(con, query, KEEP) == 0
    assert con.execute("SELECT count(DISTINCT visit) > 1 AND count(DISTINCT sex) > 1 FROM asked").fetchall() == [
        (True,)
    ]


@pytest.mark.parametrize(
    "reason",
    [
        pytest.param("many buckets", marks=pytest.mark.thorough),
        pytest.param("a type that lists values", marks=pytest.mark.thorough),
        "no sqlglot",
    ],
)
def test_else_they_are_looked_up(con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch, reason: str) -> None:
    keep = KEEP
    if reason == "many buckets":
        monkeypatch.setattr(plans, "_MOST_BUCKETS", 1)
    elif reason == "a type that lists values":
        keep = ["listed"]
    else:
        for module in [name for name in sys.modules if name.startswith("duckanon._render")]:
            monkeypatch.delitem(sys.modules, module)  # as if it had never been there
        monkeypatch.setitem(sys.modules, "sqlglot", None)
    query = plans.label_query(con, "original", keep)
    assert "CASE" not in query
    assert differences(con, query, keep) == 0
    assert "nobody" not in str(con.execute("DESCRIBE asked").fetchall())

"""`synthesize` and `spectral_release` in a policy: what they release is counted on the file, by plain SQL."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import duckdb
import pytest

from duckanon._bridge.shared_values import count_shared_values
from duckanon.job import PolicyError, PromiseBroken, promises, release
from duckanon.job.policy import Column
from tests.job.conftest import changed

PEOPLE = """
    SELECT i AS id, i // 2 AS patient, '' AS name, 20 + (hash(i // 2) % 40)::INTEGER AS age,
           ['f', 'm', 'x'][1 + CASE WHEN i // 2 < 4 THEN 2 ELSE i // 2 % 2 END] AS sex,
           round(age + (hash(i, 9) % 1000) / 50.0, 2) AS diagnosis
    FROM range(600) AS t(i)
"""
"""Two rows a person; four people have the sex x."""


@pytest.fixture
def policy(folder: Path, database: duckdb.DuckDBPyConnection) -> Path:
    database.execute(f"COPY ({PEOPLE}) TO 'people.parquet'").fetchall()
    numeric = [("quasi_identifier", "numeric"), ('"sensitive"', '"numeric"'), ("k = 10", "prediction = true")]
    return changed(folder, *numeric, ('"suppress_cells"', '"synthesize"\nk = 5'))


@pytest.mark.thorough
def test_values_of_few_people_are_counted_on_the_file(policy: Path, folder: Path) -> None:
    try:
        record = release(policy)
    except PromiseBroken as error:  # chance may break the test of predictions, never what is counted here
        record = error.record or {}
    (table,) = record["tables"]
    (promise,) = (one for one in table["promises"] if one["name"] == "rare_values")
    assert (promise["asked"], promise["measured"], promise["passed"]) == (0, 0, True)
    assert "No category of fewer than 5 people" in promise["words"]
    assert {one["name"]: one["treatment"] for one in table["columns"]}["age"] == "synthesized"
    if record["outcome"] == "released":
        rows = duckdb.sql(f"FROM '{folder / 'release.parquet'}'")
        assert rows.columns == ["age", "sex", "diagnosis"]
        assert set(rows.select("sex").fetchall()) == {("f",), ("m",)}


def test_new_people_are_numbered_and_their_rows_counted(policy: Path, folder: Path) -> None:
    text = policy.read_text(encoding="utf-8").replace(
        'patient = "person"', 'patient = { role = "person", numbered = true }'
    )
    policy.write_text(text, encoding="utf-8")
    try:
        record = release(policy)
    except PromiseBroken as error:  # chance, as above
        record = error.record or {}
    (table,) = record["tables"]
    (promise,) = (one for one in table["promises"] if one["name"] == "rows_of_people")
    assert (promise["measured"], promise["passed"]) == (0, True)
    assert {one["name"]: one["treatment"] for one in table["columns"]}["patient"].endswith("number of a new person")
    if record["outcome"] == "released":
        rows = duckdb.sql(f"FROM '{folder / 'release.parquet'}'")
        assert rows.columns == ["patient", "age", "sex", "diagnosis"]
        people = rows.aggregate("patient, count(*) AS size, count(DISTINCT sex) AS sexes").fetchall()
        assert {size for _, size, _ in people} == {2}
        assert {sexes for _, _, sexes in people} == {1}
    policy.write_text(text.replace('"synthesize"', '"svd_swap"').replace("k = 5", ""), encoding="utf-8")
    with pytest.raises(PolicyError, match=r"columns.patient: numbered is for the person of a table"):
        release(policy)


def test_numbers_of_rows_that_few_people_have_are_counted(database: duckdb.DuckDBPyConnection) -> None:
    """Twelve people of one row, six of two, two of three, one of nine, who counts as the fifth of most rows does."""
    con, sizes = database.cursor(), [1] * 12 + [2] * 6 + [3] * 2 + [9]
    columns = {"patient": Column(role="person", numbered=True)}
    table = SimpleNamespace(person="patient", columns=columns, method=SimpleNamespace(k=5))
    for name, rows in (("held", sizes), ("good", [1, 2, 2]), ("bad", [1, 2, 3, 9])):
        values = [whose for whose, size in enumerate(rows) for _ in range(size)]
        con.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT unnest({values}) AS patient").fetchall()
    for shown, expected in (("good", 0), ("bad", 2)):
        promise = promises._rows_of_people(con, table, promises.Tables("held", shown, shown, None, {}))
        assert promise.measured == expected
        assert promise.passed == (expected == 0)


def test_what_a_bad_release_shows_is_found(database: duckdb.DuckDBPyConnection) -> None:
    """Copies of people, a category of four, a number of two, NULL of one; numbers of nobody are none of them."""
    con = database.cursor()
    con.execute(f"CREATE OR REPLACE TABLE people AS {PEOPLE}").fetchall()
    (held,) = con.execute(
        "SELECT count(*) FROM (SELECT diagnosis FROM people GROUP BY 1 HAVING count(DISTINCT patient) < 3) "
        "JOIN people USING (diagnosis)"
    ).fetchone()
    assert count_shared_values(con, "people", "people", ["diagnosis"], 5, "patient").rare == held > 100
    assert count_shared_values(con, "people", "people", ["sex"], 5, "patient").rare == 8
    assert count_shared_values(con, "people", "people", ["sex"], 4, "patient").rare == 0
    con.execute("CREATE OR REPLACE TABLE drawn AS SELECT 999.5 AS diagnosis, NULL::VARCHAR AS sex").fetchall()
    assert count_shared_values(con, "people", "drawn", ["diagnosis", "sex"], 5, "patient").rare == 0
    con.execute("INSERT INTO people (patient, sex) VALUES (1, NULL)").fetchall()
    assert count_shared_values(con, "people", "drawn", ["sex"], 5, "patient").rare == 1


def test_unrounded_numbers_are_compared_at_the_digits_of_the_release(database: duckdb.DuckDBPyConnection) -> None:
    con = database.cursor()
    con.execute("CREATE OR REPLACE TABLE people AS SELECT unnest([0.12, 0.1201, 0.1249, 0.5, 0.505])::DOUBLE AS x")
    for values, cells in (("[0.12, 0.12]", 0), ("[0.12, 0.5]", 1), ("[0.5, 0.51]", 2), ("[0.1201]", 1), ("[0.3]", 0)):
        con.execute(f"CREATE OR REPLACE TABLE drawn AS SELECT unnest({values})::DOUBLE AS x").fetchall()
        assert count_shared_values(con, "people", "drawn", ["x"], 10, None).rare == cells

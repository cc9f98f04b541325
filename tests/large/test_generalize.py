"""Generalized tables that are larger than memory: planned on merged values where their combinations do not fit."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import duckanon
from duckanon import large
from duckanon.large.generalize_release import _next_step
from duckanon.large.workspace import SOURCE

pytest.importorskip("sqlglot")
K = 5


@pytest.mark.thorough
def test_every_class_has_k_people_and_every_value_its_label(people: pa.Table, tmp_path: Path, spill: Path) -> None:
    """Plain SQL counts on the written file, and reads the labels of ages as the numbers that they are."""
    target = tmp_path / "release.parquet"
    given = {"keep": ["number"], "narrowing": ["number"], "max_suppressed_fraction": 0.05, "temporary": spill}
    made = large.generalize(people, target, ["age", "pay", "sex"], K, **given)
    assert made.notes  # the combinations of pay with others are too many
    assert not list(spill.iterdir())
    con = duckdb.connect()
    con.register("people", people)
    ((smallest, rows),) = con.execute(
        f"SELECT min(n), sum(n) FROM (SELECT count(*) AS n FROM '{target}' GROUP BY age, pay, sex)"
    ).fetchall()
    assert smallest == made.smallest_class >= K
    assert rows == made.rows >= 0.95 * people.num_rows
    low = r"coalesce(TRY_CAST(regexp_extract(t.{0}, '^(?:\[|>=)?(-?[\d.]+)', 1) AS DOUBLE), -1e9)"
    high = r"coalesce(TRY_CAST(regexp_extract(t.{0}, '(?:, |<)(-?[\d.]+)\)?$', 1) AS DOUBLE), 1e9)"
    for name in ("age", "pay"):
        least, most = low.format(name), high.format(name)
        (outside,) = con.execute(
            f"SELECT count(*) FROM '{target}' AS t JOIN people USING (number) WHERE t.{name} <> '*' AND "
            f"NOT (people.{name} >= {least} AND (people.{name} < {most} OR t.{name} NOT LIKE '%,%'))"
        ).fetchall()[0]
        assert outside == 0
    places = con.execute(
        f"SELECT corr(place, number) FROM (SELECT number, row_number() OVER () AS place FROM '{target}')"
    )
    assert abs(places.fetchall()[0][0]) < 0.08


@pytest.mark.thorough
@pytest.mark.parametrize("unit", [0.01, 1])
def test_what_steps_lose_is_what_the_loss_of_labels_says(unit: float, people: pa.Table, tmp_path: Path) -> None:
    """anon.generalization_loss reads it from a table of the steps, and from the labels of the written file."""
    target = tmp_path / "release.parquet"
    con = duckanon.connect()
    con.register("people", people)
    con.execute(
        "CREATE TABLE t AS SELECT * REPLACE "
        f"({'round(pay, 2)' if unit < 1 else 'round(pay)::INTEGER'} AS pay) FROM people WHERE pay < 1000000"
    ).fetchall()
    made = large.generalize(con.sql("FROM t"), target, ["age", "pay", "sex"], K, max_suppressed_fraction=0.05)
    (note,) = (note for note in made.notes if '"pay"' in note)
    step, by_itself, released = re.fullmatch(
        r'the column "pay" was planned in steps of ([\d.e+]+), which lose ([\d.]+) of its range by themselves; its '
        r"released intervals lose ([\d.]+) \(ncp\)\.",
        note,
    ).groups()
    low = f"floor(pay / {step}) * {step}"
    con.execute(
        f"CREATE TABLE steps AS SELECT '[' || ({low})::BIGINT || ', ' || ({low} + {step})::BIGINT || ')' AS pay FROM t"
    ).fetchall()
    query = "SELECT ncp FROM anon.generalization_loss('t', '{}', ['pay']) WHERE column_name = 'pay'"
    ((of_steps,),) = con.execute(query.format("steps")).fetchall()
    assert float(by_itself) == pytest.approx(of_steps, rel=0.02, abs=1e-4)  # the outermost steps are cut off
    cuts = re.findall(r"[\d.]+", " ".join(pq.read_table(target).column("pay").unique().to_pylist()))
    assert all(float(cut) % float(step) == 0 for cut in cuts)  # values are parted as they were counted
    con.execute(f"CREATE TABLE released AS SELECT pay FROM '{target}'").fetchall()
    ((of_release,),) = con.execute(query.format("released")).fetchall()
    rows = con.execute("SELECT count(*) FROM t").fetchall()[0][0]
    left_out = (rows - made.rows) / rows  # which counts 1
    assert float(released) * (1 - left_out) + left_out == pytest.approx(of_release, rel=0.02, abs=1e-3)


@pytest.mark.thorough
def test_what_cannot_be_planned_is_refused(people: pa.Table, tmp_path: Path) -> None:
    """Numbers are merged until they fit, texts are not."""
    con = duckanon.connect()
    con.register("people", people)
    codes = con.sql("SELECT * REPLACE ('c' || number AS job) FROM people")
    for given, of_people in (({}, ""), ({"person": "person"}, ", with k people of each,")):
        sentence = (
            rf"anon\.generalize: cols must have at most \d+ combinations of values{of_people} to be planned in this "
        )
        with pytest.raises(ValueError, match=sentence):
            large.generalize(codes, tmp_path / "release.parquet", ["job", "sex"], K, **given)
    assert not list(tmp_path.iterdir())


@pytest.mark.thorough
def test_numbers_are_merged_until_people_fit_too(people: pa.Table, tmp_path: Path) -> None:
    target = tmp_path / "release.parquet"
    made = large.generalize(people, target, ["age", "sex"], K, person="person")
    query = f"SELECT min(n) FROM (SELECT count(*) AS n FROM '{target}' GROUP BY age, sex)"
    assert duckdb.sql(query).fetchall()[0][0] >= made.smallest_class >= K


def test_one_fortune_makes_no_coarser_steps(con: duckdb.DuckDBPyConnection) -> None:
    for more in ("", " UNION ALL SELECT 9e9"):
        con.execute(
            f"CREATE OR REPLACE TABLE {SOURCE} AS SELECT i * 0.5 AS pay FROM range(40_000) AS r(i){more}"
        ).fetchall()
        assert _next_step(con, "pay", "DOUBLE", None, K) == 1.0


@pytest.mark.thorough
@pytest.mark.parametrize("visits", [pytest.param(1, marks=pytest.mark.thorough), 3])
def test_people_are_no_combinations(visits: int, people: pa.Table, tmp_path: Path, spill: Path) -> None:
    """3,000 people or more do not fit beside 144 combinations of values: it made one class of each sex, or refused.

    The plan is that of the table in memory, where all people are counted; a person has several rows in several classes.
    """
    con = duckanon.connect()
    con.register("people", people)
    con.execute(
        "CREATE TABLE visits AS SELECT CASE WHEN number % 50 > 0 THEN number // $1 END AS person, age, sex FROM people",
        [visits],
    ).fetchall()
    target, k, given = tmp_path / "release.parquet", 3, {"person": "person", "max_suppressed_fraction": 0.05}
    made = large.generalize(con.sql("FROM visits"), target, ["age", "sex"], k, **given, temporary=spill)
    assert not made.notes
    ((smallest,),) = con.execute(
        f"SELECT min(n) FROM (SELECT count(*) AS n FROM '{target}' GROUP BY age, sex)"
    ).fetchall()
    assert smallest >= made.smallest_class >= k
    in_memory = con.execute(
        f"SELECT age, sex, count(*) FROM anon.generalize('visits', ['age', 'sex'], {k}, person := 'person', "
        "max_suppressed_fraction := 0.05) GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    released = con.execute(f"SELECT age, sex, count(*) FROM '{target}' GROUP BY ALL ORDER BY ALL").fetchall()
    assert released == in_memory


def test_combinations_that_do_not_fit_name_a_way_out(tmp_path: Path, spill: Path) -> None:
    texts = pa.table({"name": [f"name {i % 2500}" for i in range(3000)]})
    with pytest.raises(ValueError, match=r"got 2\d\d\d\. Give more memory, fewer columns, or coarser values\."):
        large.generalize(texts, tmp_path / "release.parquet", ["name"], 2, temporary=spill)

"""Generalized tables that are larger than memory: planned on merged values where their combinations do not fit."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from duckanon import large

pytest.importorskip("sqlglot")
K = 5


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
def test_what_cannot_be_planned_is_refused(people: pa.Table, tmp_path: Path) -> None:
    sentence = r"anon\.generalize: cols must have at most \d+ combinations of values to be planned here; got \d+\."
    with pytest.raises(ValueError, match=sentence):
        large.generalize(people, tmp_path / "release.parquet", ["age", "sex"], K, person="person")
    assert not list(tmp_path.iterdir())

"""Releases by parts: k people in every class, nothing lost, every value within what is released of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import duckanon
from duckanon import large
from duckanon.large import pipeline

K = 5
NUMBERS = ["age", "pay", "day"]
ROADS: list[tuple[Callable[..., large.Released], list[str], dict[str, Any]]] = [
    (large.boxes, NUMBERS, {}),
    (large.boxes, NUMBERS, {"box": "cell"}),
    (large.boxes, NUMBERS, {"l": 2, "epsilon": {"age": 2}}),
    (large.microaggregate, NUMBERS, {}),
    (large.microaggregate, NUMBERS, {"label": "interval"}),
    (large.recode, ["age", "pay", "sex", "job"], {"effort": "quick"}),
    (large.recode, NUMBERS, {"effort": "quick", "output": "value"}),
]


@pytest.mark.parametrize(
    ("road", "cols", "options", "person"),
    [
        pytest.param(*road, person, marks=[] if place in (0, 5) and person else pytest.mark.thorough)
        for place, road in enumerate(ROADS)
        for person in (None, "person")
    ],
)
def test_every_class_has_k_people_and_nobody_is_lost(
    road: Callable[..., large.Released],
    cols: list[str],
    options: dict[str, Any],
    person: str | None,
    people: pa.Table,
    tmp_path: Path,
    spill: Path,
) -> None:
    """Plain SQL counts on the written file; `number` tells whose row each is, which the test may keep."""
    target = tmp_path / "release.parquet"
    given = {"keep": ["number"], "narrowing": ["number"], "person": person, "seed": 3, "temporary": spill}
    made = road(people, target, cols, K, **given, **options)
    assert made.rows == people.num_rows
    assert made.parts > 3
    assert not list(spill.iterdir())
    assert [path.name for path in tmp_path.iterdir() if path.name != "spill"] == ["release.parquet"]
    con = duckdb.connect()
    con.register("people", people)
    names = ", ".join(f"released.{name}" for name in cols)
    size = "count(*)" if person is None else "count(DISTINCT people.person)"
    sizes = con.execute(
        f"SELECT {size} FROM '{target}' AS released JOIN people USING (number) GROUP BY {names}"
    ).fetchall()
    assert min(sizes)[0] >= K
    assert min(sizes)[0] == made.smallest_class
    numbers = con.execute(f"SELECT number FROM '{target}'").fetchnumpy()["number"]
    assert sorted(numbers.tolist()) == list(range(people.num_rows))
    intervals = [name for name in cols if pa.types.is_struct(pq.read_schema(target).field(name).type)]
    for name in intervals:
        (outside,) = con.execute(
            f"SELECT count(*) FROM '{target}' AS released JOIN people USING (number) "
            f"WHERE people.{name} < released.{name}.lo OR people.{name} > released.{name}.hi"
        ).fetchall()[0]
        assert outside < 2 * K * made.parts  # fewer than K people beyond each end, which are coded


@pytest.mark.thorough
def test_rows_tell_neither_their_old_place_nor_their_part(people: pa.Table, tmp_path: Path) -> None:
    """Who knows the source's order, or sorts by a column, learns nothing from the order of the release."""
    target = tmp_path / "release.parquet"
    by_age = people.sort_by("age")
    by_age = by_age.set_column(by_age.column_names.index("number"), "number", pa.array(np.arange(len(by_age))))
    large.boxes(by_age, target, NUMBERS, K, keep=["number"], narrowing=["number"])
    released = pq.read_table(target)
    places = np.arange(len(by_age))
    for told in (released.column("number").to_numpy(), released.column("box").to_numpy()):
        assert abs(np.corrcoef(places, told)[0, 1]) < 4 / np.sqrt(len(by_age))
    ages = np.array([value["lo"] for value in released.column("age").to_pylist()])
    assert abs(np.corrcoef(released.column("box").to_numpy(), ages)[0, 1]) < 0.15


@pytest.mark.thorough
@pytest.mark.parametrize("person", [None, pytest.param("person", marks=pytest.mark.thorough)])
def test_no_end_is_one_persons_value(person: str | None, people: pa.Table, tmp_path: Path) -> None:
    """The attack: published ends that are values of fewer than k people, at the borders of parts too."""
    target = tmp_path / "release.parquet"
    large.boxes(people, target, NUMBERS, K, person=person)
    released = pq.read_table(target)
    for name, unit in (("pay", 100), ("age", 1)):
        values = np.rint(people.column(name).to_numpy() * unit).astype(np.int64)
        own, counts = np.unique(values, return_counts=True)
        ends = np.array([[value["lo"], value["hi"]] for value in released.column(name).to_pylist()])
        # ends of round numbers may meet a value by chance, where values are dense
        met = np.isin(np.rint(np.unique(ends) * unit).astype(np.int64), own[counts < K])
        assert met.mean() < 0.02
        assert ends.max() < 9_000_000  # which one person has more than


@pytest.mark.thorough
def test_an_attack_finds_the_ends_of_bounds(people: pa.Table, tmp_path: Path) -> None:
    """The same attack succeeds where people's own values are published, so that it is one."""
    target = tmp_path / "release.parquet"
    large.boxes(people, target, ["pay", "age"], K, box="bounds", bounds_are_public=True)
    ends = {end for value in pq.read_table(target).column("pay").to_pylist() for end in value.values()}
    own = set(people.column("pay").to_pylist())
    assert len(ends & own) == len(ends)


@pytest.mark.thorough
def test_the_same_seed_makes_the_same_boxes(people: pa.Table, tmp_path: Path) -> None:
    def rows(seed: int) -> list[tuple[Any, ...]]:
        target = tmp_path / "release.parquet"
        large.boxes(people, target, NUMBERS, K, keep=["number"], narrowing=["number"], seed=seed, replace=True)
        return duckdb.sql(f"SELECT * EXCLUDE (box) FROM '{target}' ORDER BY number").fetchall()

    assert rows(4) == rows(4)


@pytest.mark.thorough
def test_columns_that_shape_nothing_are_covered_from_end_to_end(people: pa.Table, tmp_path: Path) -> None:
    target = tmp_path / "release.parquet"
    large.boxes(people, target, NUMBERS, K, statistics=[{"statistic": "mean", "columns": ["age"]}])
    ((different, low, high),) = duckdb.sql(
        f"SELECT count(DISTINCT pay), min(pay.lo), max(pay.hi) FROM '{target}'"
    ).fetchall()
    assert different == 1
    pay = sorted(people["pay"].to_pylist())
    assert low <= pay[K - 1]
    assert pay[-K] <= high < pay[-1]  # the one fortune is coded: it decides no end


@pytest.mark.thorough
def test_the_loss_is_that_of_the_release_in_memory(people: pa.Table, tmp_path: Path) -> None:
    target = tmp_path / "release.parquet"
    large.boxes(people, target, NUMBERS, K, seed=1)
    con = duckanon.connect()
    con.register("people", people)
    con.execute("CREATE TABLE t AS FROM people").fetchall()
    con.execute(f"CREATE TABLE made AS FROM anon.boxes('t', {NUMBERS}, {K})").fetchall()
    wide = (
        "avg(age.hi - age.lo) / 20.8 + avg(pay.hi - pay.lo) / (SELECT stddev(pay) FROM t) + avg(day.hi - day.lo) / 4330"
    )
    in_memory, by_parts = (
        con.execute(f"SELECT {wide} FROM {name}").fetchall()[0][0] for name in ("made", f"'{target}'")
    )
    assert by_parts < 1.1 * in_memory


@pytest.mark.thorough
@pytest.mark.parametrize(
    "form",
    [
        "duckdb",
        *(pytest.param(form, marks=pytest.mark.thorough) for form in ("parquet", "reader", "relation", "dataset")),
    ],
)
def test_all_forms_of_sources_and_targets(form: str, people: pa.Table, tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    pq.write_table(people, path)
    source: Any = path
    if form == "duckdb":
        with duckdb.connect(str(tmp_path / "people.duckdb")) as con:
            con.execute(f"CREATE TABLE visits AS FROM '{path}'")
        source = (tmp_path / "people.duckdb", "visits")
    elif form == "reader":
        source = people.to_reader(500)
    elif form == "relation":
        source = duckdb.sql(f"FROM '{path}'")
    elif form == "dataset":
        source = pa.dataset.dataset(str(path))
    target = (tmp_path / "release.duckdb", "released") if form == "duckdb" else tmp_path / "release.parquet"
    assert large.boxes(source, target, ["age", "pay"], K, person="person").smallest_class >= K
    if form == "duckdb":
        with duckdb.connect(str(tmp_path / "release.duckdb"), read_only=True) as con:
            assert con.execute("SELECT count(*) FROM released").fetchall() == [(people.num_rows,)]
    else:
        assert pq.read_schema(target).names == ["box", "age", "pay"]


class FullMemory:
    """A connection whose memory is too small for more than a sixteenth of the classes."""

    def __init__(self, con: duckdb.DuckDBPyConnection) -> None:
        self.con, self.refused = con, 0

    def execute(self, query: str) -> duckdb.DuckDBPyConnection:
        if "% 16 =" not in query:
            self.refused += 1
            raise duckdb.OutOfMemoryException("full")
        return self.con.execute(query)


@pytest.mark.parametrize(("person", "smallest"), [(None, 2), ("person", 1)])
def test_classes_that_do_not_fit_into_memory_are_counted_in_passes(person: str | None, smallest: int) -> None:
    """One class is too small, and one row is missing: both are seen as in one pass."""
    con = FullMemory(duckdb.connect())
    con.con.execute(
        """CREATE TABLE written AS
           SELECT CASE WHEN range < 2 THEN NULL ELSE range % 97 END AS a, range // 500 AS b, range // 2 AS person
           FROM range(1000)"""
    )
    work = SimpleNamespace(con=con)
    assert pipeline.count_classes(work, "written", ["a", "b"], smallest, person, 1000) == smallest
    assert con.refused == 2
    with pytest.raises(AssertionError, match="fewer than"):
        pipeline.count_classes(work, "written", ["a", "b"], smallest + 1, person, 1000)
    with pytest.raises(AssertionError, match="rows are missing"):
        pipeline.count_classes(work, "written", ["a", "b"], smallest, person, 1001)

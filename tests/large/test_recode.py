"""Recoding by parts: columns are encoded as in the whole table, and frequent rows stay as they are."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from duckanon import large
from duckanon._methods.recode.coding import LabelCoding, NumberCoding, encode_column, encode_values
from duckanon.large import workspace
from duckanon.large.workspace import Budget

K = 5
COLS = ["age", "sex", "job"]


def _few_values(rows: int, ages: int = 60) -> pa.Table:
    """Draw a table of which most rows share their values, and some do not: rare jobs, rare ages, NULL."""
    draw = np.random.default_rng(8)
    age = 20 + np.minimum(draw.geometric(0.25, rows), ages)
    job = np.array([*"abcdefgh", "one of three"])[np.minimum(draw.geometric(0.5, rows) - 1, 7)]
    job[:3] = "one of three"
    return pa.table(
        {
            "age": age,
            "sex": draw.choice(["f", "m"], rows),
            "job": pa.array(job, mask=draw.random(rows) < 0.02),
            "number": np.arange(rows),
        }
    )


def _classes(path: Path, cols: list[str] = COLS) -> list[tuple[object, ...]]:
    listed, order = ", ".join(cols), ", ".join(f"{name} ASC NULLS LAST" for name in cols)
    return duckdb.sql(f"SELECT {listed}, count(*) FROM '{path}' GROUP BY {listed} ORDER BY {order}").fetchall()


@pytest.mark.thorough
def test_frequent_rows_are_set_apart_and_nothing_is_lost_by_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, con: duckdb.DuckDBPyConnection
) -> None:
    """What is left to be searched is one part: the classes are those of the release in memory."""
    monkeypatch.setattr(workspace, "budget", lambda memory: Budget(300 * 10**6, 500_000))
    table = _few_values(3_000, ages=15)  # which k people have each: all ages are told apart
    target, whole = tmp_path / "release.parquet", tmp_path / "whole.parquet"
    made = large.recode(table, target, COLS, K, effort="quick", keep=["number"], narrowing=["number"])
    assert made.parts > 2
    assert made.smallest_class >= K
    con.register("given", table)
    con.execute("CREATE TABLE people AS FROM given").fetchall()
    con.execute(f"COPY (FROM anon.recode('people', {COLS}, {K}, effort := 'quick')) TO '{whole}'").fetchall()
    assert _classes(target) == _classes(whole)
    numbers = duckdb.sql(f"SELECT number FROM '{target}' ORDER BY number ASC NULLS LAST").fetchnumpy()["number"]
    assert numbers.tolist() == list(range(len(table)))
    (wrong,) = con.execute(
        f"SELECT count(*) FROM '{target}' AS released JOIN people USING (number) "
        "WHERE released.sex NOT LIKE '%' || people.sex || '%'"
    ).fetchall()[0]
    assert wrong == 0


@pytest.mark.parametrize("effort", ["quick", pytest.param("default", marks=pytest.mark.thorough)])
def test_a_combination_that_fits_into_no_part_is_divided(effort: str, tmp_path: Path) -> None:
    """Two thirds of the rows are the same; no class of fewer than k rows is left over where they are divided."""
    table = _few_values(3_000)
    same = pa.array(np.arange(3_000) < 2_000)
    for name, value in (("age", 30), ("sex", "f"), ("job", "a")):
        column = pa.chunked_array([pa.compute.if_else(same, value, table.column(name).combine_chunks())])
        table = table.set_column(table.column_names.index(name), name, column)
    target = tmp_path / "release.parquet"
    large.recode(table, target, COLS, K, effort=effort)
    classes = _classes(target)
    assert min(size for *_, size in classes) >= K
    assert sum(size for *_, size in classes) == 3_000
    assert ("30", "f", "a") in [row[:3] for row in classes]


@pytest.mark.thorough
@pytest.mark.parametrize("person", [None, "person"])
def test_nothing_of_few_people_is_named(person: str | None, tmp_path: Path) -> None:
    """The attack: values, and ends of numbers, that fewer than k people of the whole table have."""
    table = _few_values(3_000)
    table = table.append_column("person", pa.array(np.arange(3_000) // 2))
    pay = np.round(np.random.default_rng(2).lognormal(10, 1, 3_000) / 500) * 500 + 1
    pay[:2] = 9_876_543, 7
    table = table.append_column("pay", pa.array(pay.astype(np.int64)))
    target = tmp_path / "release.parquet"
    large.recode(table, target, ["pay", "sex", "job"], K, effort="quick", person=person)
    released = pq.read_table(target)
    assert not any("one of three" in label for label in released.column("job").to_pylist() if label)
    values, counts = np.unique(table.column("pay").to_numpy(), return_counts=True)
    ends = {int(end) for label in released.column("pay").to_pylist() for end in re.findall(r"\d+", label)}
    assert not ends & set(values[counts < K].tolist())


def test_a_part_is_encoded_as_the_whole_column() -> None:
    """Text: the codes of the release in memory. Numbers: each value in its part, and k rows in each part."""
    table = _few_values(2_000)
    con = duckdb.connect()
    con.register("people", table)
    for name in ("job", "sex", "age"):
        column = table.column(name)
        found = con.sql(
            f"SELECT {name} AS value, count(*) AS rows FROM people GROUP BY {name} ORDER BY rows ASC NULLS LAST"
        ).to_arrow_table()
        rows = found.column("rows").to_numpy()
        coding: LabelCoding = encode_values(name, found.column("value"), rows, rows, K, None, 1.0)
        some = np.arange(0, 2_000, 7)
        codes = coding.of(column.take(pa.array(some))).codes
        everywhere = coding.of(column).codes
        assert np.array_equal(codes, everywhere[some])
        if name != "age":
            assert np.array_equal(everywhere, encode_column(name, column, K, None, None, 1.0).codes)
        else:
            ages = column.to_numpy()
            assert isinstance(coding, NumberCoding)
            inside = (everywhere > 0) & (everywhere < len(coding.lower) - 1)  # the outermost are open
            assert np.bincount(everywhere[inside])[1:].min() >= K
            assert (ages[inside] >= coding.lower[everywhere[inside]]).all()
            assert (ages[inside] <= coding.upper[everywhere[inside]]).all()


@pytest.mark.thorough
def test_columns_of_one_value_and_of_nothing(tmp_path: Path) -> None:
    table = pa.table({"a": [1] * 900, "b": pa.nulls(900, pa.string()), "c": [None] * 896 + [1.5, 2.5, 3.5, 4.5]})
    target = tmp_path / "release.parquet"
    large.recode(table, target, ["a", "b"], K, effort="quick")
    assert _classes(target, ["a", "b"]) == [("1", None, 900)]
    large.recode(table, target, ["b", "c"], K, effort="quick", replace=True)
    classes = _classes(target, ["b", "c"])
    assert min(size for *_, size in classes) >= K
    assert {label for _, label, _ in classes} <= {None, "*"}


@pytest.mark.parametrize("value", ["uuid()", "INTERVAL 1 DAY"])
def test_values_that_parquet_holds_as_bytes_are_refused(value: str, tmp_path: Path) -> None:
    source = tmp_path / "source.parquet"
    duckdb.sql(f"COPY (SELECT {value} AS a, i % 2 AS b FROM range(50) AS t(i)) TO '{source}'")
    with pytest.raises(ValueError, match=r'column "a" has the type (UUID|INTERVAL), which is no text here; cast it'):
        large.recode(source, tmp_path / "release.parquet", ["a", "b"], K)

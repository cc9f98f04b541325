"""`duckanon.spark.generalize` against `anon.generalize`, and what it must refuse."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pytest

pytestmark = pytest.mark.engines

METHODS = {"zip": "top"}
CASES: list[tuple[list[str], dict[str, Any]]] = [
    (["age", "sex", "zip"], {"k": 10, "methods": METHODS, "keep": ["illness"]}),
    (["born", "age"], {"k": 5, "person": "patient", "max_suppressed_fraction": 0.05}),
    (["age", "sex"], {"k": 8, "sensitive": "illness", "l": 3, "t": 0.3, "max_suppressed_fraction": 0.05}),
    (["age", "sex"], {"k": 4, "sensitive": "visits", "l": 2, "l_kind": "recursive", "t": 0.3, "person": "patient"}),
    (["age", "sex"], {"k": 10, "population": 15_000}),
]


def written_in_sql(options: dict[str, Any]) -> str:
    def value(of: Any) -> str:
        if isinstance(of, dict):
            return "MAP {" + ", ".join(f"'{key}': '{method}'" for key, method in of.items()) + "}"
        return repr(of)

    return "".join(f", {name} := {value(of)}" for name, of in options.items() if name != "k")


@pytest.mark.parametrize(("cols", "options"), CASES)
def test_the_rows_are_those_of_anon(
    frame: Any, people: duckdb.DuckDBPyConnection, tmp_path: Path, cols: list[str], options: dict[str, Any]
) -> None:
    from duckanon import spark

    query = f"FROM anon.generalize('people', {cols}, {options['k']}{written_in_sql(options)})"
    expected = people.execute(query).fetchall()
    released = spark.generalize(frame, cols, **options, to=str(tmp_path / "released"))
    assert Counter(map(tuple, released.collect())) == Counter(expected)
    names = people.execute(f"DESCRIBE {query}").fetchall()
    assert released.columns == [name for name, *_ in names]
    assert [path.name for path in tmp_path.iterdir()] == ["released"]  # no draft is left
    for name in ("_duckanon_member", "_duckanon_value", "patient"):
        assert name not in released.columns


def test_the_order_does_not_follow_the_source(frame: Any, tmp_path: Path) -> None:
    """Numbers that are kept would come in order, or in runs of the source, had nobody shuffled."""
    from duckanon import spark

    options = {"keep": ["number"], "narrowing": ["number"], "to": str(tmp_path / "released")}
    numbers = [row.number for row in spark.generalize(frame, ["sex"], 5, **options).collect()]
    following = sum(after == before + 1 for before, after in itertools.pairwise(numbers))
    assert following < 20


def test_a_kept_column_that_narrows_down_is_refused(frame: Any, tmp_path: Path) -> None:
    from pyspark.sql import functions

    from duckanon import spark

    with_copy = frame.withColumn("years", functions.col("age") * 2)
    with pytest.raises(ValueError, match='the column "years" in keep narrows down "age"'):
        spark.generalize(with_copy, ["age", "sex"], 20, keep=["years"], to=str(tmp_path / "released"))
    assert list(tmp_path.iterdir()) == []


def test_what_is_under_the_name_is_not_replaced(frame: Any, tmp_path: Path) -> None:
    from duckanon import spark

    (tmp_path / "released").mkdir()
    with pytest.raises(ValueError, match=r"duckanon\.spark\.generalize: to must be new"):
        spark.generalize(frame, ["sex"], 5, to=str(tmp_path / "released"))


def test_a_table_that_changes_is_not_released(frame: Any, tmp_path: Path) -> None:
    """Each action draws these rows anew: what is written is not what was counted, and nothing gets the name."""
    from pyspark.sql import functions

    from duckanon import spark

    drawn = frame.withColumn("age", functions.expr("abs(hash(reflect('java.util.UUID', 'randomUUID'))) % 1000"))
    with pytest.raises(ValueError, match=r"duckanon\.spark\.generalize: "):
        spark.generalize(drawn, ["age", "zip"], 3, max_suppressed_fraction=1, to=str(tmp_path / "released"))
    assert list(tmp_path.iterdir()) == []


def test_plans_are_those_of_anon_and_label_alike(frame: Any, people: duckdb.DuckDBPyConnection) -> None:
    from duckanon import spark

    cols = ["age", "sex", "zip", "born"]
    expected = people.execute(f"SELECT * EXCLUDE (released) FROM anon.plan('people', {cols}, 10)").fetchall()
    made = spark.plan(frame, cols, 10)
    assert Counter(map(tuple, made.drop("released").collect())) == Counter(expected)
    table = made.toArrow()
    people.register("made", table)
    labels = people.execute("FROM anon.apply_plan('people', 'made', keep := ['number']) ORDER BY number").fetchall()
    for stored in (made, table):
        labelled = spark.apply_plan(frame, stored, keep=["number"]).orderBy("number")
        assert [tuple(row) for row in labelled.collect()] == labels


def test_a_hierarchy_and_a_list_of_very_many_values(spark: Any, people: duckdb.DuckDBPyConnection) -> None:
    from duckanon import spark as on_spark

    people.execute(
        "CREATE OR REPLACE TABLE codes AS SELECT 'c' || (i % 250) AS code, i AS number FROM range(1000) t(i)"
    )
    people.execute(
        "CREATE OR REPLACE TABLE tree AS SELECT 'c' || i AS code, 'g' || (i % 9) AS wide FROM range(250) t(i)"
    )
    rows, tree = (spark.createDataFrame(people.execute(f"FROM {name}").to_arrow_table()) for name in ("codes", "tree"))
    made = on_spark.plan(rows, ["code"], 3, hierarchies={"code": tree})
    people.register("made", made.toArrow())
    expected = people.execute("FROM anon.apply_plan('codes', 'made', keep := ['number']) ORDER BY number").fetchall()
    labelled = on_spark.apply_plan(rows, made, keep=["number"]).orderBy("number").collect()
    assert [tuple(row) for row in labelled] == expected
    assert made.where("covers = 'value'").count() >= 200


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"keep": ["*"]}, "keep must name the columns one by one on Spark"),
        ({"keep": ["sex"]}, "keep must not name a column of cols"),
        ({"k": 1}, "k must be a whole number of at least 2"),
        ({"cols": ["sexx"]}, 'column "sexx" in cols does not exist; did you mean "sex"?'),
        ({"l": 2}, "sensitive must name the column that l and t are about; got None"),
        ({"to": "a b"}, "to must be a path or the name of a table"),
    ],
)
def test_refusals(frame: Any, tmp_path: Path, options: dict[str, Any], sentence: str) -> None:
    from duckanon import spark

    asked = {"cols": ["sex"], "k": 5, "to": str(tmp_path / "released"), **options}
    with pytest.raises(ValueError, match=rf"^duckanon\.spark\.generalize: {sentence}"):
        spark.generalize(frame, **asked)

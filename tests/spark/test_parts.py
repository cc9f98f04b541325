"""`boxes`, `microaggregate` and `recode` part by part: guarantees counted by SQL, and what it costs to part a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

pytestmark = pytest.mark.engines


@pytest.fixture(scope="module")
def numbers(spark: Any, people: duckdb.DuckDBPyConnection, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Twenty thousand rows of three columns that depend on each other, a day, and a label."""
    path = tmp_path_factory.mktemp("numbers") / "numbers.parquet"
    people.execute(f"""
        CREATE OR REPLACE TABLE numbers AS
        SELECT (18 + 60 * u)::INTEGER AS age, round(exp(9 + u + 0.7 * v), 2)::DECIMAL(12, 2) AS income,
               DATE '2020-01-01' + (700 * w)::INTEGER AS seen, (hash(i, 9) % 9000)::INTEGER AS patient,
               ['a', 'b', 'c'][1 + (hash(i, 8) % 3)::INTEGER] AS label
        FROM (SELECT i, hash('u' || i) / 2.0 ** 64 AS u, hash('v' || i) / 2.0 ** 64 AS v,
                     hash('w' || i) / 2.0 ** 64 AS w
              FROM range(20000) AS rows(i));
        COPY numbers TO '{path}'""")
    return spark.read.parquet(str(path))


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of three thousand rows, so that there are several."""
    from duckanon.spark import partwise

    monkeypatch.setattr(partwise, "PART_ROWS", {"boxes": 3000, "fast": 3000, "mdav": 3000, "recode": 3000})


def half_width(con: duckdb.DuckDBPyConnection, table: str, cols: list[str]) -> float:
    """The mean over columns of the mean half width of intervals, in standard deviations of the column."""
    terms = [
        f"(SELECT avg(({name}.hi - {name}.lo)::DOUBLE) FROM {table}) / (SELECT stddev_pop({name}) FROM numbers)"
        for name in cols
    ]
    return float(con.execute(f"SELECT {' + '.join(terms)}").fetchall()[0][0]) / 2 / len(cols)


@pytest.mark.usefixtures("small_parts")
def test_boxes(numbers: Any, people: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    from duckanon import spark

    to = tmp_path / "boxes"
    released = spark.boxes(numbers, ["age", "income"], 10, keep=["label"], to=str(to))
    assert released.columns == ["box", "age", "income", "label"]
    smallest, rows = released.groupBy("age", "income").count().selectExpr("min(count)", "sum(count)").collect()[0]
    assert (smallest >= 10, rows) == (True, 20_000)
    people.execute(f"CREATE OR REPLACE TABLE of_spark AS FROM '{to}/*.parquet'")
    people.execute("CREATE OR REPLACE TABLE of_anon AS FROM anon.boxes('numbers', ['age', 'income'], 10)")
    ours, theirs = (half_width(people, table, ["age", "income"]) for table in ("of_spark", "of_anon"))
    assert ours <= 1.3 * theirs  # ten parts of a small table: each has its own ends, of k of its own people, rounded
    # Every row is in the box that the release says, but for fewer than k people beyond an end, who are coded to it.
    outside = people.execute("""
        SELECT count(*) FROM (SELECT age, income, count(*) AS n FROM of_spark GROUP BY ALL) AS boxes
        WHERE n >= 10 + (SELECT count(*) FROM numbers
                         WHERE numbers.age BETWEEN boxes.age.lo AND boxes.age.hi
                           AND numbers.income BETWEEN boxes.income.lo AND boxes.income.hi)""").fetchall()
    assert outside == [(0,)]
    assert [path.name for path in tmp_path.iterdir()] == ["boxes"]


@pytest.mark.usefixtures("small_parts")
def test_boxes_of_people_and_days(numbers: Any, people: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    """People are counted though their names do not leave; then they do, and everybody can count them."""
    from duckanon import spark

    options = {"person": "patient", "statistics": [{"statistic": "variance", "columns": ["age"]}]}
    hidden = spark.boxes(numbers, ["age", "seen"], 8, **options, to=str(tmp_path / "hidden"))
    assert hidden.columns == ["box", "age", "seen"]
    shown = spark.boxes(numbers, ["age", "seen"], 8, **options, keep=["patient"], to=str(tmp_path / "shown"))
    least = shown.groupBy("age", "seen").agg({"patient": "approx_count_distinct"})
    assert least.count() > 1
    people.execute(f"CREATE OR REPLACE TABLE shown AS FROM '{tmp_path}/shown/*.parquet'")
    assert people.execute(
        "SELECT min(n) >= 8 FROM (SELECT count(DISTINCT patient) AS n FROM shown GROUP BY age, seen)"
    ).fetchall() == [(True,)]


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("label", ["mean", "interval"])
def test_microaggregate(numbers: Any, people: duckdb.DuckDBPyConnection, tmp_path: Path, label: str) -> None:
    from duckanon import spark

    to = tmp_path / "groups"
    released = spark.microaggregate(numbers, ["age", "income"], 5, method="fast", label=label, to=str(to))
    smallest = released.groupBy("age", "income").count().selectExpr("min(count)").collect()[0][0]
    assert smallest >= 5
    people.execute(f"CREATE OR REPLACE TABLE of_spark AS FROM '{to}/*.parquet'")
    if label == "mean":
        exact = people.execute("""
            SELECT abs((SELECT avg(age) FROM of_spark) / (SELECT avg(age) FROM numbers) - 1) < 1e-9,
                   (SELECT var_pop(age) FROM of_spark) > 0.97 * (SELECT var_pop(age) FROM numbers)""").fetchall()
        assert exact == [(True, True)]
    else:
        assert released.columns[0] == "box"


@pytest.mark.usefixtures("small_parts")
def test_recode(numbers: Any, people: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    from duckanon import spark

    to, cols = tmp_path / "classes", ["age", "seen", "label"]
    released = spark.recode(numbers, cols, 10, effort="quick", to=str(to))
    assert released.columns == cols
    smallest, rows = released.groupBy(*cols).count().selectExpr("min(count)", "sum(count)").collect()[0]
    assert (smallest >= 10, rows) == (True, 20_000)
    people.execute(f"CREATE OR REPLACE TABLE of_spark AS FROM '{to}/*.parquet'")
    people.execute(f"CREATE OR REPLACE TABLE of_anon AS FROM anon.recode('numbers', {cols}, 10, effort := 'quick')")
    ours, theirs = (
        people.execute(
            f"SELECT ncp FROM anon.generalization_loss('numbers', '{table}', {cols}) WHERE column_name IS NULL"
        ).fetchall()[0][0]
        for table in ("of_spark", "of_anon")
    )
    assert ours <= 2 * theirs  # as above


@pytest.mark.usefixtures("small_parts")
def test_a_part_that_refuses_is_a_sentence_and_nothing_is_written(numbers: Any, tmp_path: Path) -> None:
    from pyspark.sql import functions

    from duckanon import spark

    with_copy = numbers.withColumn("years", functions.col("age") * 2)
    with pytest.raises(ValueError, match=r'^duckanon\.spark\.boxes: the column "years" in keep narrows down "age"'):
        spark.boxes(with_copy, ["age", "income"], 40, keep=["years"], to=str(tmp_path / "boxes"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("boxes", {"by": ["label"]}, "by must be None here"),
        ("boxes", {"box": "bounds"}, "box must be one of 'parts', 'rounded'"),
        ("boxes", {"cols": ["label"]}, "cols must hold numbers, dates or timestamps"),
        ("boxes", {"k": 30_000}, "k must be at most the number of records"),
        ("microaggregate", {"label": "sum"}, "label must be one of"),
        ("recode", {"sensitive": "label"}, "sensitive must be None here"),
        ("recode", {"output": "value"}, "output must be 'text' here"),
    ],
)
def test_refusals(numbers: Any, tmp_path: Path, name: str, options: dict[str, Any], sentence: str) -> None:
    from duckanon import spark

    asked = {"cols": ["age", "income"], "k": 5, "to": str(tmp_path / "released"), **options}
    with pytest.raises(ValueError, match=rf"^duckanon\.spark\.{name}: {sentence}"):
        getattr(spark, name)(numbers, **asked)


@pytest.mark.parametrize(
    ("rows", "sentence"), [(20_000, "a class of fewer than 10 people"), (19_000, "the written rows differ")]
)
def test_a_release_that_breaks_its_promise_gets_no_name(numbers: Any, tmp_path: Path, rows: int, sentence: str) -> None:
    """Rows as they are would be such a release, and so would one from which a task has lost some."""
    from duckanon.spark.partwise import Asked, write_release
    from duckanon.spark.targets import target_called

    asked = Asked(numbers, ["age", "income"], [], None, 10)
    bad = numbers.select("age", "income")
    with (
        pytest.raises(ValueError, match=sentence),
        target_called(numbers.sparkSession, str(tmp_path / "released")) as target,
    ):
        write_release(asked, bad, rows, target)
    assert list(tmp_path.iterdir()) == []

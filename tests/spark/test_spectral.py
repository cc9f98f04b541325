"""New records on Spark, by all four methods: counted by SQL, and compared with the same in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

pytestmark = pytest.mark.engines
COLS = ["age", "income", "extra", "total", "sex", "town", "seen"]


@pytest.fixture(scope="module")
def patients(spark: Any, people: duckdb.DuckDBPyConnection, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Six thousand rows: zeros, NULLs, a sum, forty-five towns, one of three people, and somebody who earns most."""
    path = tmp_path_factory.mktemp("patients") / "patients.parquet"
    people.execute(f"""
        CREATE OR REPLACE TABLE patients AS
        SELECT (18 + 60 * u)::INTEGER AS age, income, extra, (income + extra)::INTEGER AS total,
               CASE WHEN w < 0.4 + 0.2 * u THEN 'F' ELSE 'M' END AS sex,
               CASE WHEN i < 3 THEN 'Hamlet' ELSE 'town ' || (45 * u * w)::INTEGER END AS town,
               CASE WHEN hash(i, 1) % 9 > 0 THEN DATE '2020-01-01' + (700 * v)::INTEGER END AS seen,
               CASE WHEN i BETWEEN 10 AND 400 THEN 10 ELSE i END AS patient,
               CASE WHEN i BETWEEN 10 AND 400 THEN 'Q' ELSE 'not Q' END AS mark
        FROM (SELECT *, CASE WHEN i = 7 THEN 9876543 WHEN hash(i, 3) % 4 = 0 THEN 0
                             ELSE (exp(9 + u + 0.7 * v))::INTEGER // 10 * 10 END AS income,
                     (5000 * v * w)::INTEGER AS extra
              FROM (SELECT i, hash('u' || i) / 2.0 ** 64 AS u, hash('v' || i) / 2.0 ** 64 AS v,
                           hash('w' || i) / 2.0 ** 64 AS w
                    FROM range(6000) AS rows(i)));
        COPY patients TO '{path}'""")
    return spark.read.parquet(str(path))


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of two thousand rows, so that there are several."""
    from duckanon.spark import swap_releases, synthesized

    monkeypatch.setattr(synthesized, "PART_ROWS", 2000)
    monkeypatch.setattr(swap_releases, "PART_ROWS", {"svd_swap": 2000, "pica": 2000})


def read(con: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Read what was written by another engine."""
    con.execute(f"CREATE OR REPLACE TABLE released AS FROM '{path}/*.parquet'")


def distances(con: duckdb.DuckDBPyConnection, released: str, cols: list[str]) -> list[float]:
    """The largest differences between distribution functions of numbers."""
    return [
        float(row[0])
        for row in con.execute(f"""
            SELECT abs(difference) FROM anon.utility('patients', '{released}', {cols}) WHERE statistic = 'ks'
            """).fetchall()
    ]


@pytest.mark.usefixtures("small_parts")
def test_spectral_release(patients: Any, people: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    from duckanon import spark

    to = tmp_path / "released"
    released = spark.spectral_release(patients, COLS, cluster_size=150, nulls="category", to=str(to))
    assert released.dtypes == patients.select(*COLS).dtypes
    read(people, to)
    assert people.execute("SELECT count(*) FROM released").fetchall() == [(6000,)]
    for name, least in {"age": 3, "income": 3, "extra": 3, "total": 3, "sex": 10, "town": 10, "seen": 3}.items():
        few = people.execute(f"""
            SELECT count(*) FROM released
            WHERE {name} IN (SELECT {name} FROM patients GROUP BY {name} HAVING count(*) < {least})""").fetchall()
        assert (name, few) == (name, [(0,)])
    # The one who earns most is not there, nor somebody near, nor the village of three.
    far = people.execute("SELECT max(income), max(total), count(*) FILTER (town = 'Hamlet') FROM released").fetchall()
    assert far[0][0] < 2_000_000
    assert far[0][1] < 2_000_000
    assert far[0][2] == 0
    people.execute(f"""CREATE OR REPLACE TABLE of_anon AS
        FROM anon.spectral_release('patients', {COLS}, cluster_size := 150, nulls := 'category')""")
    numbers = ["age", "income", "extra"]
    assert max(distances(people, "released", numbers)) <= max(distances(people, "of_anon", numbers)) + 0.02
    sums, zeros = people.execute("""
        SELECT count(*) FILTER (abs(total - income - extra) > 50), abs(avg((income = 0)::INTEGER) - 0.25) < 0.02
        FROM released""").fetchall()[0]
    assert zeros
    assert sums < 60  # computed anew, and moved to a number beside it where it would be one person's
    correlations = [
        people.execute(f"SELECT corr(age, ln(1 + income)), corr(extra, age) FROM {table}").fetchall()[0]
        for table in ("patients", "released", "of_anon")
    ]
    for original, ours, theirs in zip(*correlations, strict=True):
        assert abs(original - ours) < abs(original - theirs) + 0.05


@pytest.mark.usefixtures("small_parts")
def test_synthesize(patients: Any, people: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    """Values are counted over the whole table; people of several rows are one person each."""
    from duckanon import spark

    for person, counted in ((None, "*"), ("patient", "DISTINCT patient")):
        to = tmp_path / str(person)
        released = spark.synthesize(patients, COLS, nulls="category", person=person, to=str(to))
        assert released.dtypes == patients.select(*COLS).dtypes
        read(people, to)
        assert people.execute("SELECT count(*), max(income) < 2000000 FROM released").fetchall() == [(6000, True)]
        for name, least in {"age": 3, "income": 3, "extra": 3, "total": 3, "sex": 10, "town": 10, "seen": 3}.items():
            few = people.execute(f"""
                SELECT count(*) FROM released WHERE {name} IN
                (SELECT {name} FROM patients GROUP BY {name} HAVING count({counted}) < {least})""").fetchall()
            assert (name, few) == (name, [(0,)])
        if person is None:
            numbers = ["age", "income", "extra"]
            assert max(distances(people, "released", numbers)) < 0.02
            before, after, off, sums = people.execute("""
                SELECT (SELECT corr(age, ln(1 + income)) FROM patients), corr(age, ln(1 + income)),
                       abs(avg((income = 0)::INTEGER) - (SELECT avg((income = 0)::INTEGER) FROM patients)),
                       avg((abs(total - income - extra) > 50)::INTEGER) FROM released""").fetchall()[0]
            assert abs(before - after) < 0.05
            assert off < 0.01
            assert sums < 0.01


@pytest.mark.usefixtures("small_parts")
def test_who_knows_everybody_but_one(patients: Any, people: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    """Counts of towns less those of the others are the town of the last one, unless some people are kept out."""
    from duckanon import spark

    found = {}
    for keep_out in (0, 25):
        to = tmp_path / str(keep_out)
        spark.spectral_release(patients, ["age", "town"], cluster_size=150, keep_out=keep_out, to=str(to))
        read(people, to)
        found[keep_out] = people.execute("""
            SELECT count(*) FROM (SELECT town, count(*) AS n FROM released GROUP BY town) AS shown
            JOIN (SELECT town, count(*) AS n FROM patients WHERE patient != 77 GROUP BY town) AS others USING (town)
            WHERE shown.n != others.n AND others.n > 12""").fetchall()[0][0]
    assert found[0] <= 2  # the town of the last one, and the one that takes the village of three
    assert found[25] > 5


@pytest.mark.usefixtures("small_parts")
def test_people_with_many_rows(patients: Any, people: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    """391 rows of one person are one person's."""
    from duckanon import spark

    for person, expected in ((None, ["Q", "not Q"]), ("patient", ["not Q"])):
        to = tmp_path / str(person)
        cols = ["age", "extra", "mark"]
        spark.spectral_release(patients, cols, cluster_size=200, person=person, rows=3000, to=str(to))
        read(people, to)
        assert people.execute("SELECT list(DISTINCT mark ORDER BY mark ASC NULLS LAST) FROM released").fetchall() == [
            (expected,)
        ]
        assert people.execute("SELECT count(*) FROM released").fetchall() == [(3000,)]
    alone = people.execute("""
        SELECT count(*) FROM released
        WHERE extra IN (SELECT extra FROM patients GROUP BY extra HAVING count(DISTINCT patient) < 3)""").fetchall()
    assert alone == [(0,)]


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize(
    ("name", "options"),
    [("svd_swap", {}), ("pica", {"cluster_size": 200})],
    ids=["svd_swap", "pica"],
)
def test_swapped(
    patients: Any, people: duckdb.DuckDBPyConnection, tmp_path: Path, name: str, options: dict[str, Any]
) -> None:
    from duckanon import spark

    to = tmp_path / "released"
    released = getattr(spark, name)(patients, COLS, nulls="category", **options, to=str(to))
    assert released.dtypes == patients.select(*COLS).dtypes
    read(people, to)
    said = "".join(f", {option} := {value!r}" for option, value in options.items())
    people.execute(
        f"CREATE OR REPLACE TABLE of_anon AS FROM anon.{name}('patients', {COLS}, nulls := 'category'{said})"
    )
    for table in ("released", "of_anon"):
        few = people.execute(
            f"SELECT count(*), max(income) < 2000000, bool_or(town = 'Hamlet') FROM {table}"
        ).fetchall()
        assert few == [(6000, True, False)]
    means = [
        people.execute(f"SELECT avg(age), avg(ln(1 + income)), avg(extra), corr(age, extra) FROM {table}").fetchall()[0]
        for table in ("released", "of_anon")
    ]
    assert means[0] == pytest.approx(means[1], rel=0.03, abs=0.03)
    assert [path.name for path in tmp_path.iterdir()] == ["released"]


@pytest.mark.parametrize(("name", "options"), [("spectral_release", {"person": "patient"}), ("pica", {"basis": "pca"})])
def test_a_size_that_is_looked_for(patients: Any, tmp_path: Path, name: str, options: dict[str, Any]) -> None:
    """By the measures of privacy, on a sample that the driver has."""
    from duckanon import spark

    few = patients.where("patient >= 4800")
    released = getattr(spark, name)(few, ["age", "extra", "sex"], **options, to=str(tmp_path / "released"))
    assert released.count() == 1200


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("spectral_release", {"by": ["sex"]}, "by must be None here"),
        ("synthesize", {"by": ["sex"]}, "by must be None here"),
        ("synthesize", {"leaf": 4000}, "at least 8,000 rows are needed; got 6,000"),
        ("spectral_release", {"seed": 1}, "seed must be None here"),
        ("spectral_release", {"k": 1}, "k must be a whole number of at least 2"),
        ("spectral_release", {"keep_out": 2000}, "at least 8,000 rows are needed; got 6,000"),
        ("spectral_release", {"cols": ["age", "seen"]}, 'column "seen" has [0-9]+ NULLs'),
        ("spectral_release", {"cols": ["age", "patient"], "categories": ["nobody"]}, 'column "nobody" in categories'),
        ("svd_swap", {"seed": 1}, "seed must be None here"),
        ("svd_swap", {"tolerance": 0}, "tolerance must be"),
        ("pica", {"reference": "others"}, "reference must be None here"),
        ("pica", {"basis": "fourier"}, "basis must be one of"),
    ],
)
def test_refusals(patients: Any, tmp_path: Path, name: str, options: dict[str, Any], sentence: str) -> None:
    from duckanon import spark

    asked = {"cols": ["age", "sex"], "to": str(tmp_path / "released"), **options}
    with pytest.raises(ValueError, match=rf"^duckanon\.spark\.{name}: {sentence}"):
        getattr(spark, name)(patients, **asked)
    assert list(tmp_path.iterdir()) == []


def test_more_values_than_the_driver_takes(patients: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from duckanon import spark
    from duckanon.spark import schemes

    monkeypatch.setattr(schemes, "MOST_VALUES", 1000)
    with pytest.raises(ValueError, match=r'column "extra" has more than 1,000 different values, .*; round it'):
        spark.svd_swap(patients, ["age", "extra"], to=str(tmp_path / "released"))


def test_a_release_that_breaks_its_promise_gets_no_name(patients: Any, tmp_path: Path) -> None:
    """The rows as they are would be such a release, and so would one from which a task has lost some."""
    import numpy as np

    from duckanon.spark import blocks, schemes, swap_releases, synthesized
    from duckanon.spark.targets import target_called

    options = {"special": "auto", "categories": None, "nulls": "error"}
    survey = schemes.survey_columns(patients, ["age", "income", "town"], None, 10, options)
    plain, _ = swap_releases.fit_encoding(survey, 10, "auto", None, np.random.default_rng(1))
    least = {"age": 3, "income": 3, "town": 10}
    for sentence, rows, refuse in (
        (
            'column "(income|town)" would release a value',
            6000,
            lambda draft: synthesized._refuse_rare(survey, draft, least),
        ),
        ('column "income" would release values of too few people', 6000, plain.refuse),
        ("the written rows differ", 6001, plain.refuse),
    ):
        with (
            pytest.raises(ValueError, match=sentence),
            target_called(patients.sparkSession, str(tmp_path / "released")) as target,
        ):
            blocks.write_release(survey.frame, rows, rows, target, refuse)
    assert list(tmp_path.iterdir()) == []


def test_a_part_that_is_made_again_is_the_same(patients: Any) -> None:
    """An executor that is lost has its parts made by another one, which may see the rows in another order."""
    import pyarrow as pa

    from duckanon.spark import blocks, schemes

    options = {"special": "off", "categories": None, "nulls": "error"}
    survey = schemes.survey_columns(patients, ["age", "town"], "patient", 10, options)
    parted = blocks.send_to_parts(survey, 0, 1500, 200)
    assert len(parted.parts) == 3

    def release(number: int, part: pa.Table, random: Any) -> pa.Table:
        drawn = pa.array(random.integers(0, part.num_rows, part.num_rows))
        return part.select(["age", "town"]).take(drawn)

    made = blocks.release_parts(parted, survey.frame.select("age", "town").schema, release)
    first, second = (sorted(map(tuple, made.collect())) for _ in range(2))
    assert first == second

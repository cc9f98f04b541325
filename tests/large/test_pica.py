"""`duckanon.large.pica`: new records by parts, read as in the whole table, and nothing of a few people in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from duckanon import large, spectral
from duckanon._methods.swap.clusters import swap_in_clusters
from duckanon._methods.swap.thesis_columns import Settings, SurveyColumns, ThesisColumns
from duckanon.large import pica_release, pipeline, workspace
from duckanon.large.workspace import Budget

ROWS = 6_000
COLS = ["age", "pay", "day", "sex", "job", "hours", "smokes"]
K = 10
SETTINGS = Settings(K, "auto", None, "auto")
_INTEGERS = pa.schema([("age", pa.int64()), ("day", pa.int32())])


@pytest.fixture(autouse=True)
def parts_of_a_thousand_rows(monkeypatch: pytest.MonkeyPatch, small_parts: None) -> None:
    monkeypatch.setattr(workspace, "budget", lambda memory: Budget(300 * 10**6, 1_000_000))


@pytest.fixture(scope="module")
def patients() -> pa.Table:
    """People whose pay bends with age; a code, a rare job, two jobs of one person, a very rich and a very poor one."""
    draw = np.random.default_rng(8)
    age = draw.integers(18, 90, ROWS)
    pay = np.round(np.exp(9 + 0.08 * (age - 18) - 0.0009 * (age - 18) ** 2 + 0.4 * draw.normal(size=ROWS)), 2)
    pay[:2] = 9_876_543.21, 0.07
    hours = np.clip(np.rint(38 + 8 * draw.normal(size=ROWS)), 1, 80).astype(np.int32)
    hours[draw.random(ROWS) < 0.2] = -8
    job = draw.choice(list("abcdefgh"), ROWS).astype(object)
    job[5:17] = "midwife"
    job[20:22] = ["king", "astronaut"]
    return pa.table(
        {
            "age": age,
            "pay": pay,
            "day": pa.array((age * 365 + draw.integers(0, 365, ROWS)).astype(np.int32)).cast(pa.date32()),
            "sex": draw.choice(["f", "m"], ROWS),
            "job": job.astype(str),
            "hours": hours,
            "smokes": draw.random(ROWS) < 0.3,
            "asked": pa.array(draw.integers(0, 100, ROWS), mask=draw.random(ROWS) < 0.1),
        }
    )


def released(
    source: pa.Table, tmp_path: Path, cols: list[str] = COLS, **options: Any
) -> tuple[large.Released, pa.Table]:
    target = tmp_path / "release.parquet"
    given: dict[str, Any] = {"cluster_size": 150, "basis": "pca", "checks": "off", "seed": 1, "replace": True} | options
    done = large.pica(source, target, cols, **given)
    return done, pq.read_table(target)


@pytest.mark.thorough
def test_statistics_stay_and_nothing_of_a_few_people_leaves(patients: pa.Table, tmp_path: Path, spill: Path) -> None:
    done, table = released(patients, tmp_path, temporary=spill)
    assert done.rows == table.num_rows == ROWS
    assert done.parts > 3
    assert table.schema.remove_metadata() == patients.select(COLS).schema
    assert not list(spill.iterdir())
    # a job of twelve people is released, those of one person are not, and the code stays one
    assert "midwife" in table.column("job").to_pylist()
    assert not {"king", "astronaut"} & set(table.column("job").to_pylist())
    assert done.smallest_class == 12  # the midwives
    hours = table.column("hours").to_numpy()
    assert abs(np.mean(hours == -8) - np.mean(patients.column("hours").to_numpy() == -8)) < 0.01
    assert not ((hours < 0) & (hours != -8)).any()
    # neither the richest nor the poorest person's pay comes out, nor anything near
    pay = table.column("pay").to_numpy()
    own = np.sort(patients.column("pay").to_numpy())
    assert pay.max() < (own[-K:].mean() + own[-1]) / 2
    assert pay.min() > own[0]
    # means, and what bends, stay as they are
    ages = table.column("age").to_numpy()
    for low in (18, 36, 54, 72):
        before = np.median(patients.column("pay").to_numpy()[_between(patients.column("age").to_numpy(), low)])
        assert abs(np.median(pay[_between(ages, low)]) / before - 1) < 0.1


def _between(ages: np.ndarray, low: int) -> np.ndarray:
    return (ages >= low) & (ages < low + 18)


@pytest.mark.thorough
def test_columns_are_read_as_in_memory(patients: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample of a tenth of the rows, with what is added to it, tells the values and the ends of the whole table."""
    monkeypatch.setattr(pica_release, "_SAMPLE", ROWS // 10)
    _, by_parts = released(patients, tmp_path)
    options: dict[str, Any] = {"cluster_size": 150, "basis": "pca", "checks": "off"}
    in_memory = spectral.pica(patients, COLS, **options, seed=1).read_all()
    for name in ("sex", "job", "smokes"):
        assert set(by_parts.column(name).to_pylist()) == set(in_memory.column(name).to_pylist())
    for name in ("age", "hours"):
        both = [np.sort(table.column(name).to_numpy()) for table in (by_parts, in_memory)]
        assert np.abs(both[0].mean() - both[1].mean()) < 0.05 * both[1].std()


def test_ends_are_those_of_k_people_of_the_whole_table(patients: pa.Table) -> None:
    """The oracle sorts the table: an end lies between the median of the k outermost numbers and the k-th."""
    table = patients.select(["age", "pay", "sex"])
    sample = pica_release.sample_table(table.to_batches(700), table.schema, K, ROWS, 600, seed=2)
    plain = ThesisColumns.of(sample.table, None, "error", SETTINGS, np.random.default_rng(0))
    for name, bounds in SurveyColumns(plain, K).bounds.items():
        values = np.sort(table.column(name).to_numpy())
        low, high = bounds.grid.array(np.array([bounds.lowest, bounds.highest]), None).to_numpy()
        assert values[-K] <= high <= np.median(values[-K:])
        assert np.median(values[:K]) <= low <= values[K - 1]


def test_a_survey_is_read_like_itself_and_stays_as_it_is() -> None:
    """Whole numbers of 64 bits are not copied on the way: what takes the place of their codes must not change them."""
    draw = np.random.default_rng(3)
    hours = np.where(draw.random(2_000) < 0.4, 501, draw.integers(0, 480, 2_000))
    table = pa.table({"hours": pa.array(hours.copy()), "sex": draw.choice(["f", "m"], 2_000)})
    plain = ThesisColumns.of(table, None, "error", SETTINGS, np.random.default_rng(0))
    read = SurveyColumns(plain, K).table(table, np.random.default_rng(0))
    assert table.column("hours").to_pylist() == hours.tolist()
    assert read.column("hours (choice)").to_pylist() == plain.table.column("hours (choice)").to_pylist()
    assert read.column("hours (choice)").to_pylist() == np.where(hours == 501, "0", "1").tolist()


def test_rows_are_added_to_a_sample_until_it_tells_what_the_table_does(patients: pa.Table) -> None:
    """The oracle counts the table itself."""
    table = patients.drop_columns(["asked"])
    sample = pica_release.sample_table(table.to_batches(700), table.schema, K, ROWS, 300, seed=2)
    assert 200 < sample.drawn < 400
    assert sample.table.num_rows < ROWS / 4
    rows = sample.table.to_pylist()
    whole = table.to_pylist()
    for name in ("sex", "job", "smokes", "hours"):
        for value in {row[name] for row in whole}:
            people = sum(row[name] == value for row in whole)
            assert min(sum(row[name] == value for row in rows), K) == min(people, K)
    for name in ("pay", "day"):
        values, of_sample = sorted(row[name] for row in whole), sorted(row[name] for row in rows)
        assert values[:K] == of_sample[:K]
        assert values[-K:] == of_sample[-K:]
    keys = [tuple(row.values()) for row in rows]
    assert len(set(keys)) == len(keys)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "value"),
    [("job", "king"), *(pytest.param(*wrong, marks=pytest.mark.thorough) for wrong in (("pay", 9e6), ("hours", -9)))],
)
def test_a_release_with_a_value_of_one_person_gets_no_name(
    name: str, value: Any, patients: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bad releases: a job of one person, a number beyond the ends, a code that nobody has."""
    blocks = pipeline._blocks

    def broken(results: pipeline.Mixed) -> Any:
        for block in blocks(results):
            column = block.column(name)
            values = pa.array([value, *column.to_pylist()[1:]], column.type)
            yield block.set_column(block.column_names.index(name), name, values)

    monkeypatch.setattr(pipeline, "_blocks", broken)
    with pytest.raises(AssertionError, match="shared by fewer than 10 people"):
        released(patients, tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.thorough
def test_a_release_that_lost_rows_gets_no_name(
    patients: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = pipeline._blocks
    monkeypatch.setattr(pipeline, "_blocks", lambda results: (block.slice(1) for block in blocks(results)))
    with pytest.raises(AssertionError, match="rows are missing"):
        released(patients, tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.thorough
def test_a_release_of_copies_is_refused(patients: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bad release: components that stay with their records. The checks of a part see it."""
    columns = ["age", "pay", "day"]

    def unchanged(matrix: Any, labels: Any, basis: str, random: np.random.Generator) -> Any:
        return matrix[random.permutation(len(matrix))]

    monkeypatch.setattr("duckanon._methods.swap.pica.swap_in_clusters", unchanged)
    with pytest.raises(ValueError, match=r"anon\.pica: .*choose a larger cluster_size"):
        released(patients, tmp_path, columns, checks="error", cluster_size=1_000)
    monkeypatch.setattr("duckanon._methods.swap.pica.swap_in_clusters", swap_in_clusters)
    assert released(patients, tmp_path, columns, checks="error", cluster_size=1_000)[0].rows == ROWS


@pytest.mark.thorough
def test_a_seed_repeats_the_records_and_not_their_order(patients: pa.Table, tmp_path: Path) -> None:
    tables = [released(patients, tmp_path, seed=seed)[1] for seed in (4, 4, 5)]
    ordered = [table.sort_by([(name, "ascending") for name in COLS]) for table in tables]
    assert ordered[0].equals(ordered[1])
    assert not tables[0].equals(tables[1])
    assert not ordered[0].equals(ordered[2])


@pytest.mark.thorough
def test_the_size_of_clusters_is_searched_for(patients: pa.Table, tmp_path: Path) -> None:
    done, table = released(patients, tmp_path, ["age", "pay", "day"], cluster_size=None, checks="error")
    assert table.num_rows == ROWS
    assert done.notes[0].startswith(("the clusters have about ", "all rows of a part"))


@pytest.mark.thorough
def test_tables_without_numbers_are_divided_at_random(patients: pa.Table, tmp_path: Path) -> None:
    done, table = released(patients, tmp_path, ["sex", "job", "smokes"])
    assert done.parts > 3
    for name in ("sex", "job"):
        before, after = (dict(_counts(t, name)) for t in (patients, table))
        assert before.keys() - {"king", "astronaut"} == after.keys()
        assert max(abs(before[value] - count) for value, count in after.items()) < 0.2 * ROWS


def _counts(table: pa.Table, name: str) -> list[tuple[str, int]]:
    con = duckdb.connect()
    con.register("shown", table)
    return con.execute(f"SELECT {name}, count(*) FROM shown GROUP BY ALL").fetchall()


@pytest.mark.thorough
def test_rows_that_should_be_one_cluster_are_divided_at_random(
    patients: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every part is like the whole table: what swapping the whole table keeps, the correlations, is kept."""
    monkeypatch.setattr(pica_release, "_size", lambda *given: float("inf"))
    done, table = released(patients, tmp_path, ["age", "pay", "day", "sex"], cluster_size=None)
    assert done.parts > 3
    assert done.notes == ("all rows of a partition are one cluster.",)
    before, after = (t.select(["age", "day"]).cast(_INTEGERS) for t in (patients, table))
    correlations = [np.corrcoef(t.column("age").to_numpy(), t.column("day").to_numpy())[0, 1] for t in (before, after)]
    assert abs(correlations[0] - correlations[1]) < 0.02


@pytest.mark.thorough
def test_types_of_all_kinds_stay_as_they_are(tmp_path: Path) -> None:
    """An ENUM alone becomes text: its type would list values that nobody has any more."""
    query = """SELECT (hash(i, 1) % 9000 / 100)::DECIMAL(8, 2) AS amount,
                      chr((65 + hash(i, 2) % 3)::INTEGER)::ENUM('A', 'B', 'C', 'D') AS letter,
                      TIMESTAMP '2020-01-01' + to_seconds((hash(i, 3) % 10_000_000)::BIGINT) AS seen,
                      (TIMESTAMP '2020-01-01' + to_hours((hash(i, 4) % 10_000)::BIGINT))::TIMESTAMPTZ AS heard,
                      TIME '00:00:00' + to_minutes((hash(i, 5) % 1_440)::BIGINT) AS at,
                      (hash(i, 6) % 200)::UTINYINT AS few, sqrt(hash(i, 7) % 50_000)::FLOAT AS root,
                      nullif(hash(i, 8) % 40, 0)::SMALLINT AS some
               FROM range(3000) AS t(i)"""
    con = duckdb.connect()
    names = ["amount", "letter", "seen", "heard", "at", "few", "root", "some"]
    target = (tmp_path / "release.duckdb", "released")
    large.pica(con.sql(query), target, names, cluster_size=150, checks="off", nulls="category")
    before = dict(con.execute(f"SELECT column_name, column_type FROM (DESCRIBE {query})").fetchall())
    with duckdb.connect(str(target[0]), read_only=True) as made:
        after = dict(made.execute("SELECT column_name, column_type FROM (DESCRIBE released)").fetchall())
    assert after == before | {"letter": "VARCHAR"}


@pytest.mark.thorough
def test_nulls_are_refused_or_one_more_value(patients: pa.Table, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r'anon\.pica: column "asked" has \d+ NULLs; remove these rows or say nulls'):
        released(patients, tmp_path, ["age", "asked"])
    _, table = released(patients, tmp_path, ["age", "asked", "sex"], nulls="category")
    assert abs(table.column("asked").null_count - patients.column("asked").null_count) < 0.02 * ROWS


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"k": 1}, "anon.pica: k must be a whole number of at least 2; got 1."),
        (
            {"cluster_size": 3},
            "duckanon.large.pica: cluster_size must be None or a finite number of at least 10; got 3.",
        ),
        ({"cluster_size": 5_000}, "anon.pica: cluster_size must be at most "),
        ({"basis": "none"}, "duckanon.large.pica: basis must be one of "),
        ({"cols": ["age"]}, "anon.pica: cols must name at least two columns; got 1."),
        ({"cols": ["age", "name"]}, 'anon.pica: column "name" has more than 1,000 different values; '),
    ],
)
def test_what_is_refused(options: dict[str, Any], sentence: str, patients: pa.Table, tmp_path: Path) -> None:
    table = patients.append_column("name", pa.array([f"person {number}" for number in range(ROWS)]))
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the sentence is looked at
        released(table, tmp_path, **options)
    assert str(caught.value).startswith(sentence)
    assert not list(tmp_path.iterdir())

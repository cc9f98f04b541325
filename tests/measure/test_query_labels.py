"""Random counts on generalized releases, as anon.query_utility reads them, against counting row by row."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import duckdb
import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from duckanon._measure.coarse.coarse_tables import read_labels
from duckanon._measure.queries import answers as module
from duckanon._measure.queries.answers import query_column
from duckanon._measure.queries.labels import intervals_of
from tests.profiles import dear

COLUMNS = "['age', 'zip', 'job']"


@pytest.fixture(scope="module")
def people(shared: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    shared.execute("SELECT setseed(0.4)").fetchall()
    shared.execute(
        """CREATE TABLE original AS SELECT 18 + (50 * random() * random())::INTEGER AS age, 20 + 10 * random() AS bmi,
               lpad((2000 + 400 * random() * random())::INTEGER::VARCHAR, 5, '0') AS zip,
               ['cook', 'nurse', 'judge', 'clerk', 'smith'][1 + (4.9 * random() * random())::INTEGER] AS job
           FROM range(400)"""
    ).fetchall()
    return shared


def of_age(label: str) -> Callable[[float], bool]:
    """Read the label of a whole number, by the signs that it is written with."""
    numbers = [float(number) for number in re.findall(r"[\d.]+", label)]
    if label.startswith("["):
        return lambda value: numbers[0] <= value < numbers[1]
    sign = re.sub(r"[\d.]+", "", label)
    rules = {"<": lambda v: v < numbers[0], ">=": lambda v: v >= numbers[0], "": lambda v: v == numbers[0]}
    return rules[sign] if label != "*" else lambda value: True


def expected_counts(original: pa.Table, released: pa.Table, asked: dict[str, Any], plan: Any) -> list[float]:
    """Count with the share of each released cell that a query covers; its ends are told by the rows that it finds."""
    counts = []
    for predicates in plan:
        weight = np.ones(released.num_rows)
        for place, number in predicates:
            name = original.column_names[place]
            values = np.array(original[name].to_pylist())
            found = values[np.asarray(asked[name].original.share(number, slice(None)), bool)]
            cells = released[name].to_pylist()
            if isinstance(cells[0], dict):
                step = float(name == "age")
                for row, cell in enumerate(cells):
                    over = min(cell["hi"], found.max()) - max(cell["lo"], found.min()) + step
                    weight[row] *= max(over, 0) / (cell["hi"] - cell["lo"] + step)
                continue
            shares = {}
            for label in set(cells):
                if name == "age":
                    held = [value for value in range(values.min(), values.max() + 1) if of_age(label)(value)]
                    shares[label] = np.mean([found.min() <= value <= found.max() for value in held])
                    continue
                everyone = set(values.tolist())
                prefix = label.rstrip("*")
                held = [value for value in everyone if value == label or (value.startswith(prefix) and name == "zip")]
                held = list(everyone - set(cells)) if label == "other" else list(everyone) if label == "*" else held
                shares[label] = np.mean([value in found for value in held])
            weight *= [shares[label] for label in cells]
        counts.append(float(weight.sum()))
    return counts


@pytest.mark.thorough
@pytest.mark.usefixtures("short_search")
@pytest.mark.parametrize(
    ("columns", "release"),
    [
        (COLUMNS, f"anon.generalize('original', {COLUMNS}, 5)"),
        (COLUMNS, f"anon.generalize('original', {COLUMNS}, 40, max_suppressed_fraction := 0.2)"),
        (
            COLUMNS,
            "(SELECT age // 10 * 10 AS low, CASE WHEN hash(zip) % 3 = 0 THEN '*' WHEN age < 30 THEN '<30' "
            "WHEN age > 60 THEN '>=60' WHEN age = 40 THEN '40' ELSE format('[{}, {})', low, low + 10) END AS age, "
            "left(zip, 4) || '*' AS zip, CASE WHEN job IN ('cook', 'nurse') THEN job ELSE 'other' END AS job "
            "FROM original WHERE age <> 35)",
        ),
        ("['age', 'bmi']", "anon.boxes('original', ['age', 'bmi'], 5)"),
    ],
)
def test_generalized_against_counting_rows(
    people: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch, columns: str, release: str
) -> None:
    people.execute(f"CREATE OR REPLACE TABLE released AS FROM {release}").fetchall()
    original, released = (
        people.sql(f"SELECT COLUMNS({columns}) FROM {name}").to_arrow_table() for name in ("original", "released")
    )
    meanings = read_labels(original, released, None)
    asked, counts = {}, []

    def spied_column(name: str, *arguments: Any) -> Any:
        asked[name] = query_column(name, *arguments)
        return asked[name]

    def spied_counts(plan: Any, *arguments: Any, **options: Any) -> Any:
        counts.append((plan, real(plan, *arguments, **options)))
        return counts[-1][1]

    real = module._counts
    monkeypatch.setattr(module, "query_column", spied_column)
    monkeypatch.setattr(module, "_counts", spied_counts)
    report = module.query_utility(
        original, released.select(original.column_names), random=np.random.default_rng(3), queries=60, labels=meanings
    ).to_pylist()
    (plan, truth), (_, found) = counts
    expected = expected_counts(original, released, asked, plan)
    assert found == pytest.approx(expected)
    errors = np.abs(np.array(expected) * original.num_rows / released.num_rows - truth) / np.maximum(truth, 0.4)
    assert report[0]["median_relative_error"] == pytest.approx(np.median(errors))
    assert 0 < report[0]["mean_relative_error"] == pytest.approx(np.mean(errors))


@pytest.mark.thorough
@dear
@given(
    st.lists(st.tuples(st.integers(-5, 30), st.sampled_from(["aa", "ab", "b", None])), min_size=1, max_size=20),
    st.integers(1, 30),
    st.integers(0, 9),
)
def test_itself_and_everything(
    shared: duckdb.DuckDBPyConnection, rows: list[tuple[int, str | None]], size: int, seed: int
) -> None:
    """A copy answers all queries; a release that says nothing counts each value as often as the others."""
    numbers, texts = zip(*rows, strict=True)
    table = pa.table({"n": pa.array(numbers, pa.int32()), "t": pa.array(texts, pa.string())})
    shared.register("random_table", table)
    shared.execute("CREATE OR REPLACE TABLE mine AS FROM random_table").fetchall()
    shared.execute("CREATE OR REPLACE TABLE copied AS SELECT t, n::VARCHAR AS n FROM mine").fetchall()
    shared.execute(f"CREATE OR REPLACE TABLE silent AS SELECT '*' AS n, '*' AS t FROM range({size})").fetchall()
    for other in ("mine", "copied"):
        call = f"FROM anon.query_utility('mine', '{other}', ['n', 't'], queries := 20, seed := {seed})"
        assert {row[2:] for row in shared.execute(call).fetchall()} == {(0, 0, 0)}
    for name, values in (("n", numbers), ("t", texts)):
        call = f"FROM anon.query_utility('mine', 'silent', ['{name}'], queries := 1, seed := {seed})"
        error = shared.execute(call).fetchall()[0][2]
        different, possible = sorted(set(values), key=str), []
        if name == "n":
            reach = max(numbers) - min(numbers) + 1
            asked = [
                ({v for v in values if a <= v <= b}, (b - a + 1) / reach) for a in values for b in values if a <= b
            ]
        else:
            sets = [
                {v for place, v in enumerate(different) if code >> place & 1} for code in range(1, 2 ** len(different))
            ]
            asked = [(chosen, len(chosen) / len(different)) for chosen in sets]
        for chosen, share in asked:
            count = sum(value in chosen for value in values)
            possible.append(abs(share * len(values) - count) / max(count, 0.001 * len(values)))
        assert min(abs(error - one) for one in possible) < 1e-9


def test_intervals_are_in_the_unit_of_the_column() -> None:
    """Moments are microseconds in labels and days in a column of days: both ends are divided, open ones are not."""
    meanings = {
        "a": SimpleNamespace(rule="interval", low=10.0, high=40.0),
        "b": SimpleNamespace(rule="interval", low=-np.inf, high=20.0),
        "c": SimpleNamespace(rule="interval", low=90.0, high=np.inf),
        "d": SimpleNamespace(rule="everything"),
    }
    lower, upper = intervals_of("x", [*meanings, "7"], meanings, (0.5, 8.0), 10.0)  # type: ignore[arg-type]
    assert lower.tolist() == [1, 0.5, 9, 0.5, 7]
    assert upper.tolist() == [4, 2, 9, 8, 7]

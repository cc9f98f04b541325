"""Spark on awkward tables: checks say what SQL says, and releases keep the promises of their functions."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import duckanon
from duckanon._core.common.contracts import OnlyColumns
from tests.awkward import quoted
from tests.oracles import ORACLES
from tests.oracles.call import Call
from tests.seams.bench import Bench, fetch
from tests.seams.changes import difference
from tests.seams.faces import face_call
from tests.seams.literals import sql_of
from tests.seams.matrix import Place
from tests.seams.outcomes import Outcome, refusal_faults, run

pytestmark = pytest.mark.engines

CHECKS = ("class_sizes", "individual_risk", "k_anonymity", "l_diversity", "t_closeness")
RELEASES = ("boxes", "generalize", "microaggregate", "pica", "recode", "spectral_release", "svd_swap", "synthesize")
TABLES = (
    "visits", "nulls", "labels", "derived", "decimals", "towns", "dates", "names_to_quote", "genuine_labels",
    "two_rows", "rows_of_nobody", "negative_zero", "nan_and_infinities", "no_row", "strange_text",
)  # fmt: skip
"""Of types that Spark reads; each check meets five of them, each release three."""

MOST_REFUSED = 2 / 3
"""The share of calls that may be refused: Spark takes fewer options that let small tables be released."""

Frames = dict[str, Any]


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckanon.connect() as con:
        con.execute("SET threads = 1").fetchall()
        yield con


@pytest.fixture(scope="module")
def awkward(spark: Any, con: duckdb.DuckDBPyConnection, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return a function that gives a table of the catalogue to Spark."""
    folder, made = tmp_path_factory.mktemp("awkward"), {}
    spark.conf.set(
        "spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS"
    )  # by default, a file does not tell zones

    def frame_of(name: str, bench: Bench) -> Any:
        if name not in made:
            path = folder / f"{len(made)}.parquet"
            con.execute(f"COPY (FROM {quoted(name)}) TO '{path}'").fetchall()
            made[name] = spark.read.parquet(str(path))
        return made[name]

    return frame_of


@pytest.fixture(scope="module")
def benches(con: duckdb.DuckDBPyConnection) -> Any:
    made: dict[str, Bench] = {}

    def bench(name: str) -> Bench:
        if name not in made:
            made[name] = Bench(con, name)
        return made[name]

    return bench


def attempt(outcome: Outcome, bench: Bench, function: str, call: Any) -> Any:
    """Make a call on Spark; a refusal must be one sentence of its own."""
    try:
        return call()
    except ValueError as error:
        outcome.refusal = str(error)
        start = rf"(duckanon\.spark|anon)\.{function}: "
        outcome.faults += refusal_faults(str(error), outcome.drawn, bench.rows, start)
        return None


@pytest.mark.parametrize("function", CHECKS)
def test_checks_say_what_sql_says(function: str, awkward: Any, benches: Any) -> None:
    from duckanon import spark

    check = getattr(spark, function)
    known = inspect.signature(check).parameters
    found, answered, tables = [], 0, TABLES[CHECKS.index(function) % 3 :: 3]
    for number, table in enumerate(tables):
        bench = benches(table)
        drawn = Place(function, table, number % 2).drawn(bench)
        options = {name: value for name, value in drawn.options.items() if name in known and name != "alpha"}
        arguments = ", ".join(f"{name} := {sql_of(value)}" for name, value in options.items() if value is not None)
        statement = f"FROM anon.{function}({sql_of(table)}, {arguments})"
        expected = run(bench, type(drawn)(function, statement, options))
        outcome = Outcome(expected.drawn)
        frame = awkward(table, bench)
        rows = attempt(outcome, bench, function, lambda frame=frame, options=options: check(frame, **options).toArrow())
        if rows is not None and expected.rows is not None:
            bench.con.register("spark_rows", rows)
            outcome.rows = fetch(bench.con, "FROM spark_rows")
            answered += 1
            if fault := difference(expected.rows, outcome):
                outcome.blame("unlike SQL", fault)
        elif (rows is None) != (expected.rows is None):
            outcome.blame("unlike SQL", f"SQL: {expected.refusal or 'rows'}; Spark: {outcome.refusal or 'rows'}")
        found += [f"{kind}: {statement}\n    {detail}" for kind, detail in outcome.faults]
    assert not found, "\n".join(found)
    assert answered >= (1 - MOST_REFUSED) * len(tables)


@pytest.mark.parametrize("function", RELEASES)
def test_releases_keep_their_promises(function: str, awkward: Any, benches: Any, tmp_path: Path) -> None:
    from duckanon import spark

    found, answered, tables = [], 0, TABLES[RELEASES.index(function) % 5 :: 5]
    for number, table in enumerate(tables):
        bench, to = benches(table), tmp_path / f"out{number}"
        place = Place(function, table, 0)
        call = face_call(bench, "spark", place)
        outcome = Outcome(call.drawn)
        frame = awkward(call.table, bench)
        attempt(
            outcome, bench, function,
            lambda call=call, frame=frame, to=to: getattr(spark, function)(frame, **call.options, to=str(to)).count(),
        )  # fmt: skip
        assert outcome.refusal is None or not to.exists()
        if outcome.refusal is None:
            answered += 1
            rows = fetch(bench.con, f"FROM '{to}/*.parquet'", bench.times_as_text)
            about = Call(function, call.drawn.options, bench.rows_of(call.table), rows)
            for promise in place.declaration.promises:
                if function == "synthesize" and isinstance(promise, OnlyColumns):
                    promise = OnlyColumns("cols")  # Spark draws rows, and no numbers of people
                oracle = ORACLES.get(type(promise).__name__)
                for fault in oracle(about, promise) if oracle else ():
                    outcome.blame(type(promise).__name__, fault)
        found += [f"{kind}: {call.options} of {table}\n    {detail}" for kind, detail in outcome.faults]
    assert not found, "\n".join(found)
    assert answered >= (1 - MOST_REFUSED) * len(tables)

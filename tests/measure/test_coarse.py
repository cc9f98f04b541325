"""Coarse releases before the judge: read as what they hold, compared like values, safe or not as they deserve."""

from __future__ import annotations

import datetime
from typing import Any

import duckdb
import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from duckanon._core.encoding.fit import fit_columns
from duckanon._measure.coarse.coarse_tables import read_tables
from tests.profiles import dear

COLUMNS = "['age', 'bmi', 'job', 'smoker']"


@pytest.fixture(scope="module")
def people(shared: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Two samples of one population, of which one is released in several ways."""
    shared.execute("SELECT setseed(0.3)").fetchall()
    shared.execute(
        """CREATE TABLE everyone AS
           SELECT i, (20 + 60 * random() * random())::INTEGER AS age, (18 + 15 * random())::DECIMAL(4, 1) AS bmi,
                  ['cook', 'nurse', 'judge', 'clerk', 'smith'][1 + floor(5 * random() * random())::INTEGER] AS job,
                  random() < 0.3 AS smoker
           FROM range(1200) AS _(i)"""
    ).fetchall()
    shared.execute("CREATE TABLE original AS SELECT * EXCLUDE (i) FROM everyone WHERE i < 600").fetchall()
    shared.execute("CREATE TABLE others AS SELECT * EXCLUDE (i) FROM everyone WHERE i >= 600").fetchall()
    shared.execute(f"CREATE TABLE coarse AS FROM anon.generalize('original', {COLUMNS}, 5)").fetchall()
    shared.execute(f"CREATE TABLE texts AS SELECT COLUMNS({COLUMNS})::VARCHAR FROM original").fetchall()
    shared.execute("CREATE TABLE boxed AS SELECT age, bmi FROM anon.boxes('original', ['age', 'bmi'], 10)").fetchall()
    return shared


def judgement(con: duckdb.DuckDBPyConnection, release: str, columns: str = COLUMNS, more: str = "") -> dict[str, Any]:
    call = f"FROM anon.privacy_test('original', '{release}', {columns}{more}, seed := 1)"
    rows = con.execute(f"SELECT measure, value, shift_bound, pass {call}").fetchall()
    return {name: (value, bound, passed) for name, value, bound, passed in rows}


def failed(tests: dict[str, Any]) -> set[str]:
    return {name for name, (_, _, passed) in tests.items() if not passed}


@pytest.mark.thorough
@pytest.mark.parametrize("more", ["", ", reference := 'others', holdout := 'others'"])
def test_a_crowd_passes_and_a_person_alone_fails(people: duckdb.DuckDBPyConnection, more: str) -> None:
    assert failed(judgement(people, "coarse", more=more)) == set()
    assert failed(judgement(people, "boxed", "['age', 'bmi']", more)) == set()
    alone = failed(judgement(people, "texts", more=more))
    assert {"distance", "ambiguity", "exact_copies", "unique_copies", "near_copies"} <= alone


@pytest.mark.thorough
def test_values_as_labels_are_judged_like_values(people: duckdb.DuckDBPyConnection) -> None:
    people.execute(
        f"CREATE OR REPLACE TABLE noisy AS FROM anon.additive_noise('original', {COLUMNS}, seed := 3)"
    ).fetchall()
    people.execute(f"CREATE OR REPLACE TABLE noisy_texts AS SELECT COLUMNS({COLUMNS})::VARCHAR FROM noisy").fetchall()
    order = "SELECT record, distance, ambiguity FROM anon.prediction_risk('original', '{}', {}) ORDER BY ALL"
    values, labels = (people.execute(order.format(name, COLUMNS)).fetchall() for name in ("noisy", "noisy_texts"))
    assert [row[0] for row in values] == [row[0] for row in labels]
    assert np.allclose([row[1:] for row in values], [row[1:] for row in labels])
    plain, read = judgement(people, "noisy"), judgement(people, "noisy_texts")
    for name in ("exact_copies", "near_copies"):
        assert plain[name][2] == read[name][2]
    call = "FROM anon.utility('original', '{}', {}) ORDER BY ALL"
    assert (
        people.execute(call.format("noisy", COLUMNS)).fetchall()
        == people.execute(call.format("noisy_texts", COLUMNS)).fetchall()
    )


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("attack", "share"),
    [
        # exact values of some people among classes of five
        ("SELECT age::VARCHAR AS age, bmi::VARCHAR AS bmi, job, smoker::VARCHAR AS smoker", 0.05),
        # cells around one person that are as wide as can be without holding another, and each of them twice
        (
            "SELECT * FROM (VALUES (1), (2)), (SELECT format('[{}, {}]', age - 1, age + 1) AS age, "
            "format('[{}, {}]', bmi - 0.3, bmi + 0.3) AS bmi, '*' AS job, smoker::VARCHAR AS smoker",
            1.0,
        ),
    ],
    ids=["exact", "alone"],
)
def test_some_people_singled_out(people: duckdb.DuckDBPyConnection, attack: str, share: float) -> None:
    closing = ")" if attack.count("(") > attack.count(")") else ""
    people.execute(
        f"""CREATE OR REPLACE TABLE leaky AS SELECT COLUMNS({COLUMNS}) FROM coarse
            UNION ALL BY NAME
            SELECT COLUMNS({COLUMNS})
            FROM ({attack} FROM original WHERE hash(bmi, age) % 100 < {100 * share}{closing})"""
    ).fetchall()
    assert "unique_copies" in failed(judgement(people, "leaky"))
    assert "unique_copies" not in failed(judgement(people, "coarse"))


WORDS = ["aa", "ab", "b", None]
HELD_WORDS = {"aa": ["aa"], "a*": ["aa", "ab"], "{ab, b}": ["ab", "b"], "*": WORDS, None: [None], "low": ["aa", "b"]}
HELD_NUMBERS = {"[2, 5)": [2, 3, 4], "<2": [0, 1], ">=7": [7, 8, 9], "4": [4], "*": list(range(10)), "(5, 7]": [6, 7]}
ROW = st.tuples(st.sampled_from(list(HELD_NUMBERS)), st.sampled_from(list(HELD_WORDS)), st.integers(0, 6))


@pytest.mark.thorough
@dear
@given(rows=st.lists(ROW, min_size=3, max_size=12))
def test_prediction_risk_against_enumeration(shared: duckdb.DuckDBPyConnection, rows: list[Any]) -> None:
    """Every value that a cell holds is coded by itself: the distance is the root of the mean square over all."""
    original = pa.table(
        {
            "number": pa.array([n for n in range(10) for _ in WORDS], pa.int32()),
            "word": [w for _ in range(10) for w in WORDS],
            "wide": pa.array([(3 * n + len(w or "")) % 10 for n in range(10) for w in WORDS], pa.int32()),
        }
    )
    released = pa.table(
        {
            "number": [row[0] for row in rows],
            "word": pa.array([row[1] for row in rows], pa.string()),
            "wide": [{"lo": row[2], "hi": row[2] + 3} for row in rows],
        }
    )
    shared.register("first", original)
    shared.register("second", released)
    shared.execute(
        "CREATE OR REPLACE TABLE tree AS SELECT unnest(['aa', 'b', 'ab']) AS leaf, unnest(['low', 'low', 'x'])"
    )
    found = shared.execute(
        "SELECT record, distance, ambiguity, uncertainty FROM anon.prediction_risk('first', 'second', "
        "['number', 'word', 'wide'], k := 3, hierarchies := {'word': 'tree'})"
    ).fetchall()
    encoding, _ = fit_columns(original, nulls="category", lenient=True)

    def coded(name: str, values: list[Any]) -> np.ndarray:
        place = original.column_names.index(name)
        table = original.take(pa.array([0] * len(values)))
        table = table.set_column(place, name, pa.array(values, original.schema.field(name).type))
        return encoding.matrix(table)[:, encoding.groups[place]]

    cells = [
        [coded("number", HELD_NUMBERS[n]), coded("word", HELD_WORDS[w]), coded("wide", list(range(low, low + 4)))]
        for n, w, low in rows
    ]
    for record, distance, ambiguity, uncertainty in found:
        person = [coded(name, [record[name]]) for name in original.column_names]
        squares = np.array(
            [
                sum(np.square(held - own).sum(axis=1).mean() for held, own in zip(cell, person, strict=True))
                for cell in cells
            ]
        )
        order = np.argsort(squares, kind="stable")[:3]
        nearest = np.sqrt(squares[order] / encoding.width)
        assert distance == pytest.approx(nearest[0])
        assert ambiguity == pytest.approx(nearest[0] / nearest[2] if nearest[2] > 1e-9 else 1)
        if len(set(np.round(squares, 9))) == len(squares):  # otherwise it is open which of equally near rows count
            means = np.array([np.concatenate([held.mean(axis=0) for held in cells[row]]) for row in order])
            within = np.array([np.concatenate([held.var(axis=0) for held in cells[row]]) for row in order])
            assert uncertainty == pytest.approx((means.var(axis=0, ddof=1) + within.mean(axis=0)).mean())


def test_draws_have_the_types_of_the_original(shared: duckdb.DuckDBPyConnection) -> None:
    """Every drawn value is one that its label holds, in the original's type, whole or rounded as the original's are."""
    shared.execute(
        """CREATE OR REPLACE TABLE kinds AS SELECT range AS whole, (range / 4)::DECIMAL(5, 2) AS decimal,
               range / 8 AS real,
               DATE '2024-01-01' + range::INTEGER AS day, TIMESTAMP '2024-01-01 12:00' + to_hours(range) AS moment,
               range % 2 = 0 AS flag, (['x', 'y', 'z'][1 + range % 3])::ENUM ('x', 'y', 'z') AS word
           FROM range(80)"""
    ).fetchall()
    shared.execute(
        """CREATE OR REPLACE TABLE kinds_shown AS SELECT '[20, 30)' AS whole, {'lo': 1.5, 'hi': 2.75} AS decimal,
               '>=5' AS real, '2024-02' AS day, '2024-01-02' AS moment, '*' AS flag, '{x, z}' AS word FROM range(400)"""
    ).fetchall()
    tables = [shared.table(name).to_arrow_table() for name in ("kinds", "kinds_shown")]
    drawn = read_tables(*tables).draw_values(np.random.default_rng(1))
    assert drawn.schema.field("decimal").type == tables[0].schema.field("decimal").type
    assert drawn.schema.field("day").type == tables[0].schema.field("day").type
    values = {name: set(drawn[name].to_pylist()) for name in drawn.column_names}
    assert values["whole"] == set(range(20, 30))
    assert {float(value) for value in values["decimal"]} <= {round(1.5 + step / 100, 2) for step in range(126)}
    assert all(value == round(value, 3) for value in values["real"])
    assert (min(values["real"]) >= 5, max(values["real"]) <= 79 / 8) == (True, True)
    assert values["day"] == {datetime.date(2024, 2, day) for day in range(1, 30)}
    assert {value.date() for value in values["moment"]} == {datetime.date(2024, 1, 2)}
    assert values["flag"] == {True, False}
    assert values["word"] == {"x", "z"}


def test_open_boxes_and_null(shared: duckdb.DuckDBPyConnection) -> None:
    """An open end reaches to the original's; NULL says nothing where nobody has one, and is a value where some have."""
    original = pa.table({"a": [1, 2, 3, 9], "b": [1, None, 3, 9]})
    kind = pa.struct([("lo", pa.int64()), ("hi", pa.int64())])
    cells = [{"lo": None, "hi": 2}, {"lo": 3, "hi": None}, None]
    released = pa.table({name: pa.array(cells * 200, kind) for name in "ab"})
    drawn = read_tables(original, released).draw_values(np.random.default_rng(1))
    by_cell = [set(drawn["a"].to_pylist()[place::3]) for place in range(3)]
    assert by_cell == [{1, 2}, set(range(3, 10)), set(range(1, 10))]
    assert set(drawn["b"].to_pylist()[2::3]) == {None}
    backwards = pa.table({name: pa.array([{"lo": 3, "hi": 2}], kind) for name in "ab"})
    with pytest.raises(ValueError, match='column "a" holds an interval that ends before it starts; got row 1'):
        read_tables(original, backwards)


@pytest.mark.thorough
def test_utility_is_that_of_a_draw(people: duckdb.DuckDBPyConnection) -> None:
    people.execute(
        "CREATE OR REPLACE TABLE decades AS SELECT format('[{}, {})', age // 10 * 10, age // 10 * 10 + 10) "
        "AS age, CASE WHEN job = 'cook' THEN job ELSE 'other' END AS job FROM original"
    ).fetchall()
    call = """SELECT statistic, column_name, released
              FROM anon.utility('original', 'decades', ['age', 'job'], seed := 2)
              WHERE statistic IN ('mean', 'variance')"""
    found = {row[:2]: row[2] for row in people.execute(call).fetchall()}
    assert people.execute(call).fetchall() == people.execute(call).fetchall()
    truth = people.execute(
        "SELECT avg(age // 10 * 10 + 4.5), avg((job <> 'cook')::INTEGER) / 4 FROM original"
    ).fetchall()[0]
    assert found["mean", "age"] == pytest.approx(truth[0], abs=0.5)
    for job in ("nurse", "judge", "clerk", "smith"):  # shares are not known: all values of 'other' are equally likely
        assert found["mean", f"job = {job}"] == pytest.approx(truth[1], abs=0.06)


def test_linkage_follows_the_narrowest_cell(people: duckdb.DuckDBPyConnection) -> None:
    """A class that tells its secret gives it away for all its people; one that holds all secrets does not."""
    people.execute(
        "CREATE OR REPLACE TABLE secrets AS SELECT age, CASE WHEN age < 40 THEN 'ill' ELSE 'well' END AS state "
        "FROM original"
    ).fetchall()
    people.execute(
        "CREATE OR REPLACE TABLE shown AS SELECT CASE WHEN age < 40 THEN '<40' ELSE '>=40' END AS age, state "
        "FROM secrets"
    ).fetchall()
    call = "SELECT success, naive_success, risk FROM anon.linkage_risk('secrets', '{}', ['age'], ['state'], seed := 1)"
    success, naive, risk = people.execute(call.format("shown")).fetchall()[0]
    assert success == 1
    assert risk > 0.8 > naive
    people.execute("CREATE OR REPLACE TABLE hidden AS SELECT age, '*' AS state FROM shown").fetchall()
    assert people.execute(call.format("hidden")).fetchall()[0][0] < 0.6


@pytest.mark.thorough
def test_singling_out_by_cells(people: duckdb.DuckDBPyConnection) -> None:
    call = f"SELECT mode, attacks, success, risk FROM anon.singling_out_risk('original', '{{}}', {COLUMNS}, seed := 1)"
    crowd = {row[0]: row[1:] for row in people.execute(call.format("coarse")).fetchall()}
    alone = {row[0]: row[1:] for row in people.execute(call.format("texts")).fetchall()}
    assert (
        alone["multivariate"][1] == 1.0
    )  # the labels are the values, and unique in the release is unique in the table
    assert alone["multivariate"][2] > 0.5
    assert crowd["univariate"][0] == 0
    assert (crowd["multivariate"][2] or 0) < 0.2


@pytest.mark.thorough
def test_one_map_for_all_families(people: duckdb.DuckDBPyConnection) -> None:
    columns = "['age', 'bmi']"
    people.execute(f"CREATE OR REPLACE TABLE labels AS FROM anon.generalize('original', {columns}, 5)").fetchall()
    for name, call in (("svd", "svd_swap"), ("pica", "pica"), ("noise", "additive_noise")):
        more = ", cluster_size := 100, checks := 'repair'" if name == "pica" else ""
        people.execute(
            f"CREATE OR REPLACE TABLE {name} AS FROM anon.{call}('original', {columns}{more}, seed := 1)"
        ).fetchall()
    found = people.execute(
        f"""FROM anon.compare_releases('original', MAP {{'labels': 'labels', 'boxes': 'boxed', 'swapped': 'svd',
            'clusters': 'pica', 'noise': 'noise', 'values': 'original', 'texts': 'texts'}}, {columns},
            reference := 'others', seed := 1)"""
    ).fetchall()
    of_release: dict[str, dict[str, Any]] = {}
    for release, kind, measure, value, _, passed in found:
        of_release.setdefault(release, {})[measure] = (kind, value, passed)
    measures = set(of_release["values"])
    assert {"distance", "unique_copies", "correlation", "detectability", "query_error"} <= measures
    for name, judged_as in of_release.items():  # distances to coarse cells do not tell who is isolated
        of_values = {"isolated_membership", "noisy_copies", "rare_values"}
        assert measures - set(judged_as) == (of_values if name in {"labels", "boxes", "texts"} else set())
        assert set(judged_as) <= measures
    safe = {
        name: all(passed for _, _, passed in rows.values() if passed is not None) for name, rows in of_release.items()
    }
    assert safe["labels"]
    assert safe["boxes"]
    assert not safe["values"]
    assert not safe["texts"]
    for measure in ("correlation", "ks", "query_error"):
        assert of_release["texts"][measure][1] == pytest.approx(of_release["values"][measure][1], abs=1e-9) == 0
        assert of_release["labels"][measure][1] > 0


@pytest.mark.thorough
def test_releases_in_common_table_expressions(people: duckdb.DuckDBPyConnection) -> None:
    call = """WITH tree AS (SELECT DISTINCT job,
                                   CASE WHEN job IN ('cook', 'nurse') THEN 'manual' ELSE 'office' END AS kind
                            FROM original),
                   shown AS (SELECT kind AS job, age FROM original JOIN tree USING (job))
              SELECT count(*) FROM anon.compare_releases('original', {{'shown': 'shown'}}, ['job', 'age']{})"""
    with pytest.raises(duckdb.Error, match=r"anon\.compare_releases: hierarchies must be NULL or a map such as"):
        people.execute(call.format(", hierarchies := 3")).fetchall()
    assert people.execute(call.format(", hierarchies := {'job': 'tree'}")).fetchall()[0][0] > 10

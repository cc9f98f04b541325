"""The summary of risk says what the functions say from which its numbers are."""

from __future__ import annotations

import duckdb
import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given

from tests.profiles import dear

ROWS = st.lists(
    st.tuples(*[st.sampled_from([1, 2, 3, None])] * 3, st.sampled_from([1, 2, 3, 4, 5])), min_size=1, max_size=20
)


@pytest.mark.thorough
@dear
@given(rows=ROWS, nulls=st.sampled_from(["value", "drop"]), has_people=st.booleans())
def test_the_summary_is_that_of_the_functions(
    shared: duckdb.DuckDBPyConnection, rows: list[tuple], nulls: str, has_people: bool
) -> None:
    if nulls == "drop":
        rows = [(1, 1, 1, 9), *rows]
    names = ["a", "b", "c", "who"]
    random_table = pa.table([pa.array(column, pa.int32()) for column in zip(*rows, strict=True)], names=names)
    shared.register("random_table", random_table)
    kept = f"SELECT * FROM random_table{' WHERE a + b + c IS NOT NULL' if nulls == 'drop' else ''}"
    shared.execute(f"CREATE OR REPLACE TABLE people AS {kept}").fetchall()
    options = ", person := 'who'" if has_people else ""
    sensitive = "" if has_people else ", sensitive := 'who'"
    found = dict(
        shared.execute(
            f"""SELECT measure, value FROM anon.risk_summary('random_table', ['a', 'b', 'c'], nulls := '{nulls}',
                                                             population := 1000{sensitive}{options})"""
        ).fetchall()
    )
    smallest, under_2, in_all, people = shared.execute(
        f"SELECT k, rows_under_2, \"rows\", people FROM anon.k_anonymity('people', ['a', 'b', 'c']{options})"
    ).fetchall()[0]
    assert found["k_anonymity"] == smallest
    expected, risk = shared.execute(
        f"SELECT expected, risk FROM anon.global_risk('people', ['a', 'b', 'c'], population := 1000{options}) LIMIT 1"
    ).fetchall()[0]
    assert found["expected_reidentifications"] == pytest.approx(expected)
    assert found["global_risk"] == pytest.approx(risk)
    (highest,) = shared.execute(
        f"SELECT max(risk) FROM anon.individual_risk('people', ['a', 'b', 'c'], population := 1000{options})"
    ).fetchall()[0]
    assert found["highest_individual_risk"] == pytest.approx(highest)
    counted = "count(DISTINCT who)" if has_people else "count(*)"
    (special,) = shared.execute(
        f"""SELECT {counted} FROM anon.special_uniques('people', ['a', 'b', 'c'], max_size := 2,
                                                       nulls := '{nulls}'{options})"""
    ).fetchall()[0]
    assert found["special_unique_fraction"] == pytest.approx(special / people)
    if not has_people:
        assert found["unique_fraction"] == pytest.approx(under_2 / in_all)
        (fewest,) = shared.execute(
            "SELECT l FROM anon.l_diversity('people', ['a', 'b', 'c'], 'who') LIMIT 1"
        ).fetchall()[0]
        assert found["l_diversity"] == fewest

"""anon.contradictions against an independent count of the same rules, row by row."""

from __future__ import annotations

from collections import Counter

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from tests.release.test_synthesize import household_survey, released


def report(con: duckdb.DuckDBPyConnection, original: pa.Table, made: pa.Table) -> list[tuple]:
    con.register("original_table", original)
    con.register("released_table", made)
    query = """SELECT rule, original_rows, original_broken, released_rows, released_broken
               FROM anon.contradictions('original_table', 'released_table', ?)"""
    return con.execute(query, [original.column_names]).fetchall()


def shuffled(table: pa.Table, seed: int) -> pa.Table:
    """Permute every column by itself: a release that keeps all values and nothing that belongs together."""
    random = np.random.default_rng(seed)
    order = {name: pa.array(random.permutation(table.num_rows)) for name in table.column_names}
    return pa.table({name: table.column(name).take(order[name]) for name in table.column_names})


def test_counts_are_those_of_a_plain_count(con: duckdb.DuckDBPyConnection) -> None:
    original = household_survey(2000, 1)
    made = shuffled(original, 1)
    found = {rule: counts for rule, *counts in report(con, original, made)}
    for rule, is_about, is_kept in (
        (
            "if status is 'retired', age is above 59",
            lambda one: one["status"] == "retired",
            lambda one: one["age"] > 59,
        ),
        (
            "wedding is at most divorce",
            lambda one: one["wedding"] is not None and one["divorce"] not in (None, 2020),
            lambda one: one["wedding"] <= one["divorce"],
        ),
    ):
        counts = []
        for table in (original, made):
            about = [one for one in table.to_pylist() if is_about(one)]
            counts += [len(about), sum(not is_kept(one) for one in about)]
        assert found[rule] == counts, rule
        assert counts[3] > 0


def test_rules_name_nobody_alone(con: duckdb.DuckDBPyConnection) -> None:
    """Every quoted text of a rule is shared by at least ten people."""
    original = household_survey(2000, 2)
    holders = Counter(original.column("status").to_pylist())
    texts = {part for rule, *_ in report(con, original, original) for part in rule.split("'")[1::2]}
    assert texts
    assert all(holders[text] >= 10 for text in texts)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [1, 2])
def test_new_records_break_no_rule_and_shuffled_ones_break_most(con: duckdb.DuckDBPyConnection, seed: int) -> None:
    original = household_survey(2000, seed)
    made = report(con, original, released(original, nulls="category", seed=seed))
    assert sum(row[4] for row in made) == 0
    assert sum(row[2] for row in made) == 0
    others = report(con, original, shuffled(original, seed))
    assert np.mean([row[4] > 0 for row in others]) > 0.9

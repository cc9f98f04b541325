"""anon.dp_table: its promise audited on neighbouring tables, its error beside OpenDP's, and what it spends."""

from __future__ import annotations

import itertools
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckanon._bridge import dp_query
from duckanon._core.account.budget import list_budgets, make_amount, set_limit
from duckanon._core.account.storage import Account
from duckanon._methods.dp.aggregates import UNITS, parse_aggregates
from tests.sqltest import registered

pytest.importorskip("opendp")

from duckanon._methods.dp import dp_table
from tests.release.dp_audit import CASES, lower_bound
from tests.release.dp_error import compared

DRAWS = 800
CONFIDENCE = 0.999999
"""Noise without slack proves its epsilon: with 95 %, one of twenty audits would prove a little more by chance."""


@pytest.fixture
def con() -> duckdb.DuckDBPyConnection:
    return registered().cursor()


@pytest.fixture
def account(tmp_path: Path) -> Path:
    path = tmp_path / "account.sqlite"
    with Account(path, None, create=True) as made:
        set_limit(made, "numbers", None, make_amount(1, 1e-3))
    return path


def spent(path: Path) -> tuple[str, str, int]:
    with Account(path, None) as opened:
        (item,) = list_budgets(opened)
        return str(item.spent.epsilon), str(item.spent.delta), item.answers


@given(epsilon=st.floats(1e-6, 100), parts=st.integers(1, 12))
def test_shares_add_up_to_at_most_epsilon_as_it_is_written(epsilon: float, parts: int) -> None:
    total = sum(map(Fraction, dp_table.shares(epsilon, parts)))
    assert Fraction(repr(epsilon)) * (1 - Fraction(1, 2**50)) <= total <= Fraction(repr(epsilon))


@pytest.mark.parametrize("most", [1, 3, 1000])
@pytest.mark.parametrize("epsilon", [0.013, 1.0, 37.7])
def test_opendp_says_that_no_mechanism_costs_more_than_its_share(most: int, epsilon: float) -> None:
    """What one person changes is written here again: groups, people, units and values of one person."""
    assert 0.99 * epsilon < dp_table.Laplace(most, epsilon).measurement.map(most) <= epsilon
    result, delta = dp_table.Threshold(most, epsilon, 1e-7).measurement.map((most, most, 1))
    assert 0.99 * epsilon < result <= epsilon
    assert delta <= 1e-7
    for share, steps in itertools.product((0.0, 0.3, 1.0), (100, 1000)):
        price = dp_table.Quantile(most, epsilon, share, steps).measurement.map(1)
        assert 0.99 * epsilon < Fraction(price) * most <= epsilon


def test_the_rank_error_of_a_quantile_is_the_largest_that_data_can_cause() -> None:
    """All people have one value: then every other step is wrong by half of them, and noise takes one now and then."""
    result = []
    for share, people in ((0.5, 6), (0.5, 8), (0.5, 10), (0.1, 8)):
        quantile = dp_table.Quantile(1, 1.0, share, 100)
        drawn = np.array([quantile.draw(np.full(people, 50)) for _ in range(100)])
        errors = np.where(drawn < 50, share, np.where(drawn > 50, 1 - share, 0)) * people
        result.append(float(np.sqrt((errors**2).mean())) / quantile.deviation)
    assert 0.6 < max(result) < 1.2
    assert dp_table.Quantile(3, 1.0, 0.5, 100).deviation == pytest.approx(
        3 * dp_table.Quantile(1, 1.0, 0.5, 100).deviation, rel=1e-6
    )


def test_a_group_of_one_person_is_released_as_rarely_as_delta_says() -> None:
    """The probability of discrete Laplace noise, and how often it was: OpenDP's own price is that of the next count."""
    for epsilon in (0.5, 1.0, 2.0):
        drawn = dp_table.Threshold(1, epsilon, 0.01).draw(np.ones(6000, dtype=np.int64))
        threshold = min(drawn.values())  # noise reaches no further than it must, but for one draw in 10^13
        alpha = np.exp(-epsilon)
        assert alpha ** (threshold - 1) / (1 + alpha) <= 0.01
        assert len(drawn) <= 60 + 5 * 60**0.5


@given(st.floats(-1e12, 1e12), st.floats(1e-9, 1e12))
def test_bounds_in_units_are_within_the_bounds(lower: float, width: float) -> None:
    (item,) = parse_aggregates(["sum(x)"], {"x": [lower, lower + width]}, None) if lower + width > lower else (None,)
    if item is not None:
        least, most = item.span
        assert Fraction(lower) <= least * Fraction(item.unit) or least > most
        assert most * Fraction(item.unit) <= Fraction(lower + width)
        assert UNITS / 4 <= max(abs(least), abs(most)) <= UNITS


def test_each_answer_is_drawn_and_spent_anew(con: duckdb.DuckDBPyConnection, account: Path) -> None:
    con.execute("CREATE OR REPLACE TEMP TABLE many AS FROM range(1000) AS t(i)").fetchall()
    call = f"anon.dp_table('many', [], epsilon := 0.125, account := '{account}', dataset := 'numbers')"
    con.execute(f"EXPLAIN FROM {call}").fetchall()
    con.execute(f"PREPARE asked AS SELECT count FROM {call}").fetchall()
    con.execute(f"CREATE OR REPLACE TEMP VIEW seen AS SELECT count FROM {call}").fetchall()
    con.execute("DESCRIBE FROM seen").fetchall()
    assert spent(account) == ("0", "0", 0)
    drawn = [con.execute("EXECUTE asked").fetchall() for _ in range(2)]
    drawn += [con.execute("FROM seen").fetchall() for _ in range(2)]
    assert spent(account) == ("0.500", "0.0", 4)
    twice = con.execute("WITH a AS NOT MATERIALIZED (FROM seen) SELECT x.count, y.count FROM a x, a y").fetchall()
    once = con.execute("WITH a AS MATERIALIZED (FROM seen) SELECT x.count, y.count FROM a x, a y").fetchall()
    assert once[0][0] == once[0][1]
    counts = {count for ((count,),) in drawn} | set(twice[0]) | {once[0][0]}
    assert spent(account) == (f"{0.5 + 0.125 * 3}", "0.0", 7)
    assert 2 <= len(counts) <= 7
    with pytest.raises(duckdb.Error, match=r"would be exceeded: epsilon 0\.125 and delta 0\.001\d* are left"):
        con.execute(f"FROM {call.replace('0.125', '0.2')}").fetchall()
    assert spent(account)[2] == 7


def test_a_query_that_fails_later_has_spent_what_it_drew(con: duckdb.DuckDBPyConnection, account: Path) -> None:
    call = f"anon.dp_table('t', [], epsilon := 0.5, account := '{account}', dataset := 'numbers')"
    with pytest.raises(duckdb.Error, match="on purpose"):
        con.execute(f"WITH t AS (FROM range(9)) SELECT error('on purpose ' || count) FROM {call}").fetchall()
    assert spent(account)[0] == "0.5"
    con.execute("BEGIN").fetchall()
    con.execute(f"CREATE TEMP TABLE o AS WITH t AS (FROM range(9)) FROM {call}").fetchall()
    con.execute("ROLLBACK").fetchall()
    assert spent(account)[0] == "1.0"


def test_an_empty_table_spends_as_others_do(con: duckdb.DuckDBPyConnection, account: Path) -> None:
    call = f"anon.dp_table('t', ['i'], epsilon := 0.5, delta := 1e-6, account := '{account}', dataset := 'numbers')"
    assert con.execute(f"WITH t AS (FROM range(0) AS r(i)) FROM {call}").fetchall() == []
    assert spent(account) == ("0.5", "0.000001", 1)


def test_without_opendp_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dp_query.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(duckdb.Error, match=r"it needs OpenDP, .* pip install 'duckanon\[dp\]' brings it"):
        registered().execute("FROM anon.dp_table('t', [], epsilon := 1, unaccounted := true)").fetchall()


def test_contributions_are_those_of_plain_sql(con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without noise: the groups of a person are at most three, and none of a fourth person's is missing."""
    monkeypatch.setattr(dp_table.Laplace, "draw", lambda self, totals: totals)
    con.execute(
        """CREATE OR REPLACE TEMP TABLE rows AS
        SELECT hash(i) % 50 AS who, hash(i * 7) % 10 AS g, hash(i * 3) % 100 AS x FROM range(2000) AS t(i)"""
    ).fetchall()
    con.execute("CREATE OR REPLACE TEMP TABLE all_g AS FROM range(12) AS t(g)").fetchall()
    call = """anon.dp_table('rows', ['g'], 1, ['count', 'rows', 'sum(x)', 'mean(x)'], person := 'who',
              max_groups := {}, max_rows := 3, bounds := MAP {{'sum(x)': [0, 150], 'x': [10, 90]}}, groups := 'all_g',
              unaccounted := true)"""
    drawn = con.execute(f"SELECT g, count, rows, sum_x, mean_x FROM {call.format(10)} ORDER BY g").fetchall()
    plain = con.execute(
        """SELECT g, count(who), coalesce(sum(n), 0), coalesce(sum(s), 0), avg(m)
        FROM all_g LEFT JOIN (SELECT g, who, least(count(*), 3) AS n, least(sum(x), 150) AS s,
                                     avg(greatest(10, least(90, x))) AS m FROM rows GROUP BY ALL) USING (g)
        GROUP BY g ORDER BY g"""
    ).fetchall()
    for result, wanted in zip(drawn, plain, strict=True):
        assert result[:4] == wanted[:4]
        assert (result[4] is None) or result[4] == pytest.approx(wanted[4], abs=1e-6)
    totals = {con.execute(f"SELECT sum(count) FROM {call.format(3)}").fetchall()[0][0] for _ in range(3)}
    assert totals == {150}
    chosen = {tuple(con.execute(f"SELECT count FROM {call.format(3)} ORDER BY g").fetchall()) for _ in range(3)}
    assert len(chosen) > 1  # chosen anew in each call


@pytest.mark.thorough
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_audited_epsilon_is_not_above_the_claim(case, con: duckdb.DuckDBPyConnection) -> None:
    assert lower_bound(case, DRAWS, con, CONFIDENCE) <= case.epsilon


class _TooLittleNoise(dp_table.Laplace):
    def __init__(self, most: int, epsilon: float) -> None:
        super().__init__(most, 3 * epsilon)


class _TooLowThreshold(dp_table.Threshold):
    def __init__(self, most: int, epsilon: float, delta: float) -> None:
        super().__init__(most, epsilon, min(1.0, 30 * delta))


def _unbounded(options, asked, people=dp_query._people):
    return people({**options, "max_groups": 1000}, asked)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "module", "attribute", "broken"),
    [
        ("count", dp_table, "Laplace", _TooLittleNoise),
        ("a group of one person", dp_table, "Threshold", _TooLowThreshold),
        ("many rows in many groups", dp_query, "_people", _unbounded),
        ("sum", dp_table, "shares", lambda epsilon, parts: [3 * epsilon / parts] * parts),
    ],
)
def test_the_audit_catches_a_broken_mechanism(
    name: str, module, attribute: str, broken, con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, attribute, broken)
    monkeypatch.setattr(dp_table, "shares", dp_table.shares)
    (case,) = [case for case in CASES if case.name == name]
    draws = 4 * DRAWS if case.delta else DRAWS  # rare events
    assert lower_bound(case, draws, con, CONFIDENCE) > case.epsilon


@pytest.mark.thorough
def test_the_error_is_that_of_opendp_called_directly() -> None:
    for name, ours, direct in compared(500):
        assert ours <= 1.4 * direct, name  # the study draws often enough to tell 5 %

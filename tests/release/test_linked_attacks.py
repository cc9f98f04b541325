"""Somebody looks for 400 people of three releases of linked tables: `tests.bench.linked_attacks` on small ones."""

from __future__ import annotations

from functools import partial

import duckdb
import pytest

from tests.bench.linked_attacks import Attacker, demo, generated, groceries


@pytest.mark.thorough
@pytest.mark.parametrize(
    "make",
    [partial(demo, people=4_000, k=5), groceries, partial(generated, people=20_000, k=3)],
    ids=["demo", "groceries", "hospital"],
)
def test_nobody_or_k_people_are_found_by_m_true_events(con: duckdb.DuckDBPyConnection, make: partial) -> None:
    """The same attack finds people in the tables themselves, and in the release by row counts or the whole record."""
    data = make(con)
    attacker = Attacker(con, data)
    for events in (1, data.known):
        people, _, few = attacker.shares(events)
        assert people == 400
        assert few == 0
    assert attacker.shares(data.known, counts=True)[2] > 0
    assert attacker.of_records()[2] > 0
    assert Attacker(con, data, is_released=False).shares(data.known)[2] > 0.01

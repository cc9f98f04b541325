"""Awkward tables through the whole chain: whoever speaks of a release says what plain SQL counts in the file."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest

import duckanon
from duckanon.job import check, run
from tests.awkward import TABLES
from tests.chain.chain import ENDINGS, METHODS, Chain, Outcome
from tests.chain.known_faults import KNOWN, Known
from tests.seams.matrix import SLOW

FEWEST_RELEASED = 1 / 3
"""Of the policies: others are refused, since a hundred people are few for most promises."""

GROUPS = 6
WITHOUT_ROWS = ("no_row",)


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    con = duckanon.connect()
    yield con
    con.close()


Opener = Callable[[str], Chain]


@pytest.fixture
def chain(tmp_path: Path, database: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch) -> Opener:
    """Give a function that puts a table into a folder of its own, in which all steps run on the one database."""

    def connection() -> duckdb.DuckDBPyConnection:
        cursor = database.cursor()
        for kind, name in cursor.execute("""
            SELECT 'VIEW', view_name FROM duckdb_views() WHERE database_name = 'memory' AND NOT internal
            UNION ALL SELECT 'TABLE', table_name FROM duckdb_tables() WHERE database_name = 'memory'""").fetchall():
            cursor.execute(f'DROP {kind} memory.main."{name}"').fetchall()
        return cursor

    monkeypatch.setattr(run, "connection", connection)
    monkeypatch.setattr(check, "connection", connection)

    def opened(name: str) -> Chain:
        place = list(TABLES).index(name)
        made = Chain(tmp_path / name, name, is_database=place % 3 != 0)
        monkeypatch.chdir(made.folder)
        return made

    return opened


def run_pair(opened: Chain, drafted: dict[str, object], method: str) -> Outcome | None:
    """Run one method on a table: which target, roles and promises it has is another for each pair."""
    number = list(TABLES).index(opened.table.name) + METHODS.index(method)
    return opened.run(drafted, method, ENDINGS[number % 4], number=number, has_report=number % 6 == 0)


def run_table(opened: Chain, methods: list[str]) -> list[Outcome]:
    """Draft a policy, open the workbench, and release by each of the methods."""
    number = list(TABLES).index(opened.table.name)
    outcome = Outcome(f"{opened.table.name} draft")
    drafted = opened.draft(outcome)
    if not drafted:
        return [outcome]
    releases = [run_pair(opened, drafted, method) for method in methods]
    return [outcome, opened.look_at_panel(drafted, number), *(one for one in releases if one)]


def is_known(step: str, words: str) -> bool:
    return any(known.step == step and re.search(known.pattern, words) for known in KNOWN)


def assert_no_faults(outcomes: list[Outcome]) -> None:
    """Fail with each fault that is not known."""
    faults = [
        f"{outcome.name}: {step}: {words}"
        for outcome in outcomes
        for step, words in outcome.faults
        if not is_known(step, words)
    ]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("place", [0, 1])
def test_everybody_says_the_same_of_a_release(place: int, chain: Opener) -> None:
    """Two tables, chosen by a hash of their names: each method that is not slow releases one of them."""
    table = sorted(TABLES, key=lambda name: zlib.crc32(name.encode()))[place]
    assert_no_faults(run_table(chain(table), [method for method in METHODS if method not in SLOW][place::2]))


@pytest.mark.thorough
@pytest.mark.parametrize("group", range(GROUPS))
def test_everybody_says_the_same_of_many_releases(group: int, chain: Opener) -> None:
    """All tables, each by every method."""
    outcomes: list[Outcome] = []
    for table in list(TABLES)[group::GROUPS]:
        outcomes += run_table(chain(table), list(METHODS))
    assert_no_faults(outcomes)
    codes = [outcome.code for outcome in outcomes if outcome.name.count(" ") == 2]
    assert codes.count(0) >= FEWEST_RELEASED * len(codes), f"{len(codes) - codes.count(0)} of {len(codes)} are refused"


@pytest.mark.thorough
@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.pattern)
def test_a_known_fault_is_still_there(known: Known, chain: Opener) -> None:
    """Whoever mends it takes it from the list."""
    opened = chain(known.table)
    outcome = Outcome("draft")
    drafted = opened.draft(outcome)
    if known.method:
        outcome = run_pair(opened, drafted, known.method) or outcome
    assert any(step == known.step and re.search(known.pattern, words) for step, words in outcome.faults), outcome.faults

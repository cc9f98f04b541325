"""Ctrl-C in the stock shell with the extension: it ends the statement, and the shell goes on and ends as ever."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.extension.terminal import Terminal

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks Linux what a process has worked")

PEOPLE = "CREATE TABLE p AS SELECT (random() * 90)::INT AS age, random() AS x, random() AS y FROM range({});"
TAKES_LONG = "SELECT count(*) FROM anon.recode('p', ['age', 'x', 'y'], 5, effort := 'thorough');"


@pytest.mark.shell
def test_ctrl_c_ends_a_release_and_nothing_else() -> None:
    shell = Terminal()
    shell.ask(PEOPLE.format(100_000), "people")
    for _ in range(2):
        shell.type(TAKES_LONG)
        shell.let_work(2.0)
        shell.interrupt()
        assert shell.wait_for("memory D", 20) < 10
        shell.read(1.5)  # the algorithm notices that nobody waits for it
        assert shell.shown.rpartition("memory D")[2].count("%") <= 1, "progress is shown after the end"
        shell.ask("SELECT 1;", "alive")
    shell.type(TAKES_LONG)
    shell.let_work(1.0)
    shell.interrupt()
    assert shell.quit() in (0, 1)  # 1: the stock shell's own, where the last statement was interrupted


def interrupts(count: int, seed: int) -> None:
    """Interrupt releases at random moments, in several shells; each answers afterwards and ends by itself."""
    moments = random.Random(seed)
    for _ in range(0, count, 10):
        shell = Terminal()
        shell.ask(PEOPLE.format(30_000), "people")
        for _ in range(10):
            shell.type(TAKES_LONG)
            shell.let_work(moments.uniform(0, 1.5))
            shell.interrupt()
            shell.read(0.5)  # what is typed before the statement has ended is lost
            shell.ask("SELECT 1;", "alive")
        shell.ask("SELECT count(*) FROM anon.swap('p', ['age', 'x']);", "swap")
        assert shell.quit() in (0, 1)


@pytest.mark.shell
def test_interrupts_at_random_moments() -> None:
    interrupts(10, seed=1)

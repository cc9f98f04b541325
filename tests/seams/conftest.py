"""The tables of the catalogue in one database, for all tests of a module."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator

import pytest

import duckanon
from tests.seams.bench import Bench

Benches = Callable[[str], Bench]


@pytest.fixture(scope="module")
def benches(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Benches]:
    """Make tables of the catalogue when they are asked for, all in one database, in an empty folder of its own.

    Temporary files have one of their own, too: what a call leaves in either is a fault.
    """
    folder, before = tmp_path_factory.mktemp("seams"), tempfile.tempdir
    tempfile.tempdir = str(folder)
    outside = os.getcwd()
    os.chdir(tmp_path_factory.mktemp("work"))
    con = duckanon.connect()
    con.execute("SET threads = 1").fetchall()
    made: dict[str, Bench] = {}

    def bench(name: str) -> Bench:
        if name not in made:
            made[name] = Bench(con, name)
        return made[name]

    yield bench
    con.close()
    tempfile.tempdir = before
    os.chdir(outside)
    assert os.listdir(folder) == []

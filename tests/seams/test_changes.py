"""The same call on the same table said otherwise returns the same rows, where the function's contract says so."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.seams.changes import Change, differences
from tests.seams.conftest import Benches
from tests.seams.known_faults import KNOWN
from tests.seams.matrix import SLOW, Place, public

TABLES = ("visits", "nulls", "labels", "derived", "towns", "decimals")
"""Tables on which functions have much to say; in the thorough run each function meets one of them."""


@pytest.mark.parametrize("function", [one for one in public() if one not in SLOW and zlib.crc32(one.encode()) % 6 == 0])
def test_a_table_said_otherwise_gives_the_same_rows(function: str, benches: Benches, tmp_path: Path) -> None:
    """One table, and a third of the changes."""
    number = list(public()).index(function)
    check(function, ["visits"], benches, tmp_path, lambda change: zlib.crc32(change.name.encode()) % 3 == number % 3)


@pytest.mark.thorough
@pytest.mark.parametrize("function", public())
def test_a_table_said_otherwise_gives_the_same_rows_each_time(function: str, benches: Benches, tmp_path: Path) -> None:
    number = list(public()).index(function)
    check(function, [TABLES[number % len(TABLES)]], benches, tmp_path, lambda change: True)


def check(
    function: str, tables: Sequence[str], benches: Benches, folder: Path, which: Callable[[Change], bool]
) -> None:
    """Fail with a statement for each change that changes rows, but for known faults."""
    found = []
    for table in tables:
        found += list(differences(benches(table), Place(function, table, 0), folder, which))
    unknown = [f"{name}: {statement}" for name, statement in found if (function, name) not in KNOWN]
    assert not unknown, "\n".join(unknown)

"""Every public function on the awkward tables keeps its promises, or refuses in one sentence of its own."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.awkward import TABLES
from tests.oracles import ORACLES
from tests.seams.conftest import Benches
from tests.seams.known_faults import KNOWN
from tests.seams.matrix import REFUSING, look_at, places, public
from tests.signatures import declared_function
from tests.sqltest import ROOT

MOST_REFUSED = 1 / 3
"""The share of a function's calls that may be refused: more say nothing of its promises."""


@pytest.mark.parametrize("function", public())
def test_a_function_keeps_its_promises_on_some_tables(function: str, benches: Benches) -> None:
    check(function, benches, is_quick=True)


@pytest.mark.thorough
@pytest.mark.parametrize("function", public())
def test_a_function_keeps_its_promises_on_every_table(function: str, benches: Benches) -> None:
    check(function, benches, is_quick=False)


def check(function: str, benches: Benches, is_quick: bool) -> None:
    """Fail with a statement for each fault that is not known, and for known faults that are mended."""
    outcomes = [look_at(benches(place.table), place) for place in places(function, is_quick)]
    kinds = {kind for outcome in outcomes for kind, _ in outcome.faults}
    known = {kind for name, kind in KNOWN if name == function}
    faults = [
        f"{kind}: {outcome.drawn.statement}\n    {detail}"
        for outcome in outcomes
        for kind, detail in outcome.faults
        if kind not in known
    ]
    assert not faults, "\n".join(faults)
    if not is_quick:
        assert known <= kinds, f"mended: take {known - kinds} out of tests/seams/known_faults.py"
        refused = sum(outcome.refusal is not None for outcome in outcomes)
        assert function in REFUSING or refused <= math.ceil(MOST_REFUSED * len(outcomes)), (
            f"{refused} of {len(outcomes)} refused"
        )


def test_every_function_has_a_contract() -> None:
    """And every promise has an oracle, of which the package has no part."""
    declarations = {name: declared_function(file) for name, file in public().items()}
    assert [name for name, declared in declarations.items() if not declared.promises] == []
    about_pairs = {"InvariantUnder", "CountsPeople"}
    promises = {type(one).__name__ for declared in declarations.values() for one in declared.promises}
    assert promises - ORACLES.keys() == about_pairs
    assert ORACLES.keys() - promises == set()


@pytest.mark.parametrize("path", sorted((ROOT / "tests/oracles").glob("*.py")), ids=lambda path: path.stem)
def test_an_oracle_has_no_part_of_the_package(path: Path) -> None:
    imports = [line for line in path.read_text().splitlines() if line.startswith(("import ", "from "))]
    assert [line for line in imports if "duckanon" in line or "tests.seams" in line or "duckdb" in line] == []


def test_every_table_of_the_catalogue_is_in_the_matrix() -> None:
    met = {place.table for function in public() for place in places(function, is_quick=False)}
    assert met == TABLES.keys()

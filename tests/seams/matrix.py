"""Every public function on every table of the catalogue: a call, how it ends, and what its rows keep."""

from __future__ import annotations

import functools
import random
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from duckanon._bridge.macros import macro_files
from duckanon._bridge.qualified import MacroFile
from tests.awkward import TABLES
from tests.oracles import ORACLES
from tests.oracles.call import Call
from tests.seams.bench import Bench
from tests.seams.draws import Draw, Drawn
from tests.seams.outcomes import Outcome, run
from tests.signatures import FunctionDeclaration, declared_function

REFUSING = {"require"}
"""Functions whose refusals are what they are for: they are in no share of refused calls."""

SLOW = {
    "audit_table",
    "classifier_utility",
    "compare_releases",
    "detectability",
    "interval_regression",
    "kernel_components",
    "kernel_utility",
    "membership_audit",
    "pica",
    "pica_report",
    "protect_table",
    "singling_out_risk",
    "spectral_release",
}
"""Functions of which a call takes more than a tenth of a second: they meet every third table."""

QUICK_TABLES = ("nulls", "labels", "dates", "names_of_results", "no_row", "towns")
"""The tables of `make test`: each function meets one of them, chosen by a hash of its name, but for slow ones."""


@functools.cache
def public() -> dict[str, MacroFile]:
    """Return all functions that take a table or values, in the order of their names."""
    files = {file.name: file for file in macro_files() if file.is_public and file.name != "functions"}
    return dict(sorted(files.items()))


@dataclass(frozen=True)
class Place:
    """A place in the matrix: a function, a table, and the number of the draw."""

    function: str
    table: str
    draw: int

    @property
    def declaration(self) -> FunctionDeclaration:
        return declared_function(public()[self.function])

    def drawn(self, bench: Bench) -> Drawn:
        return Draw(bench, self.declaration, self.draw).call(public()[self.function].is_table)


def places(function: str, is_quick: bool) -> Iterator[Place]:
    """Return the places of a function: plain draws and others in turns."""
    number = list(public()).index(function)
    tables = QUICK_TABLES if is_quick else tuple(TABLES)
    for place, table in enumerate(tables):
        is_left_out = function in SLOW and (place + number) % 3
        if is_quick:
            is_left_out = (place + zlib.crc32(function.encode())) % len(QUICK_TABLES) or function in SLOW
        if not is_left_out:
            yield Place(function, table, random.Random(f"{function} {table}").choice([0, 0, 1]))


def look_at(bench: Bench, place: Place) -> Outcome:
    """Make the call of a place and hold its rows against every promise of the function."""
    outcome = run(bench, place.drawn(bench))
    if outcome.rows is not None:
        call = as_call(bench, outcome)
        for promise in place.declaration.promises:
            oracle = ORACLES.get(type(promise).__name__)
            for fault in oracle(call, promise) if oracle else ():
                outcome.blame(type(promise).__name__, fault)
    return outcome


def as_call(bench: Bench, outcome: Outcome) -> Call:
    """Return what an oracle looks at: the rows that came beside those of the table that the call was about."""
    options = outcome.drawn.options
    table = next((options[name] for name in ("tbl", "original", "boxed", "released") if options.get(name)), bench.name)
    assert outcome.rows is not None
    return Call(outcome.drawn.function, options, bench.rows_of(str(table)), outcome.rows)

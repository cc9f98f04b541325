"""What a call ends in: rows, or one sentence of the function's own. Everything else is a fault."""

from __future__ import annotations

import re
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from tests.oracles.call import ROW, Rows
from tests.seams.bench import Bench, fetch
from tests.seams.draws import Drawn

LIMIT = 45.0
"""Processor seconds of a call. The slowest takes eight; a machine may do other things beside."""

_INTERNAL = re.compile(
    r"promise\b.{0,40}\bnot kept|UDF raised|Python exception|Traceback|[a-z]Error\b|\bArrow|numpy|LinAlg|"
    r"RuntimeWarning|dictionary<|date32|time64|timestamp\[|month_day_nano",
    re.IGNORECASE,
)
"""An internal check, Python's words, or Arrow's types."""

_DUCKDB = re.compile(
    r"LINE \d|Candidate|\b(Binder|Catalog|Parser|Conversion|Out of Range|Invalid Input|Error):? ?Error|Error:"
)


@dataclass
class Outcome:
    """How a call ended: its rows, or its refusal; what is wrong with that, by kind; and what it took."""

    drawn: Drawn
    rows: Rows | None = None
    refusal: str | None = None
    faults: list[tuple[str, str]] = field(default_factory=list)  # kind and detail
    seconds: float = 0  # of the processor

    def blame(self, kind: str, detail: str) -> None:
        self.faults.append((kind, detail))


def run(bench: Bench, drawn: Drawn) -> Outcome:
    """Make a call, and look at everything that does not depend on what the function promises."""
    outcome, before, began = Outcome(drawn), traces(bench), time.process_time()
    try:
        with interrupted(bench.con, 3 * LIMIT), warned(outcome):
            outcome.rows = fetch(bench.con, drawn.statement, bench.times_as_text)
    except duckdb.InterruptException:
        outcome.blame("time", f"no answer after {3 * LIMIT:.0f} seconds")
    except Exception as error:  # Python's own are faults, too
        outcome.refusal = str(error)
        outcome.faults += refusal_faults(str(error), drawn, bench.rows)
    outcome.seconds = time.process_time() - began
    if outcome.seconds > LIMIT:
        outcome.blame("time", f"{outcome.seconds:.0f} processor seconds")
    if (after := traces(bench)) != before:
        outcome.blame("traces", f"left behind: {sorted(set(after) ^ set(before))[:3]}")
    if (state := bench.state()) != bench.before:
        outcome.blame("traces", f"changed: {sorted(set(state) ^ set(bench.before))[:3]}")
        bench.before = state
    return outcome


@contextmanager
def interrupted(con: duckdb.DuckDBPyConnection, seconds: float) -> Iterator[None]:
    """Interrupt what runs longer."""
    timer = threading.Timer(seconds, con.interrupt)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextmanager
def warned(outcome: Outcome) -> Iterator[None]:
    """Blame a call for what libraries print on the terminal, such as numpy's RuntimeWarning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        finally:
            for line in sorted({f"{one.message} ({Path(one.filename).name}, {one.lineno})" for one in caught}):
                outcome.blame("warning", line)


def refusal_faults(message: str, drawn: Drawn, table: Rows, start: str = "") -> list[tuple[str, str]]:
    """Return what is wrong with a refusal, which begins with the function's name, or as the pattern says."""
    shown = message[:300]
    message = message.removeprefix("Invalid Input Error: ").removeprefix("Binder Error: ")
    faults = []
    if _INTERNAL.search(message):
        faults.append(("internal words", shown))
    elif (not start and not message.startswith("anon")) or _DUCKDB.search(message):
        faults.append(("words of DuckDB", shown))
    elif not re.match(start or rf"anon\.{drawn.function}: ", message):
        faults.append(("name of another function", shown))
    elif any(not start or not re.match(start, line) for line in message.strip().splitlines()[1:]):
        faults.append(("several lines", shown))
    if values := quoted_values(message, drawn.statement, table):
        faults.append(("value in a message", f"{values[:3]} in {shown}"))
    return faults


_WORDS = {"True", "False", "Total", "NULL", "infinity"}
"""Words of messages: "Total" is the label of margins."""

_OWN = re.compile(r"\bmust be at (?:most|least) [\d.,e+-]*\d|\banother value\b|\bother (?:than|values)\b")
"""Phrases of messages: an end that a number must keep to is of the function, not of the table."""


def quoted_values(message: str, statement: str, table: Rows) -> list[str]:
    """Return values of the table that a message has and the statement does not; too short ones say nothing."""
    found, message = set(), _OWN.sub("", message)
    for column in table.columns:
        for value in set(map(str, filter(None, table.column(column)))) if column != ROW else ():
            least = 3 if re.search("[a-zA-Z.]", value) else 5
            is_known = len(value) < least or value in statement or value in table.columns or value in _WORDS
            if not is_known and value[:200] in message and _has_word(message, value[:200]):
                found.add(f"{column} {value[:40]!r}")
    return sorted(found)


def _has_word(text: str, word: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(word)}(?!\w)", text) is not None


_TRACES = """
    SELECT 'table ' || database_name || '.' || table_name FROM duckdb_tables()
    UNION ALL SELECT 'view ' || view_name FROM duckdb_views() WHERE NOT internal
    UNION ALL SELECT 'schema ' || database_name || '.' || schema_name FROM duckdb_schemas()"""


def traces(bench: Bench) -> list[str]:
    """Return what a call could leave behind: tables, views, schemas and files."""
    found = [row[0] for row in bench.con.execute(_TRACES).fetchall()]
    found += [f"file {path}" for folder in (tempfile.gettempdir(), ".") for path in Path(folder).iterdir()]
    return sorted(found)

"""``duckanon shell``: interactive SQL with every function registered."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import duckdb

from duckanon.cli import statements
from duckanon.cli.interrupts import interruptible
from duckanon.cli.output import FORMATS

HISTORY = Path.home() / ".duckanon_history"
PROMPT, CONTINUED = "duckanon> ", "     ...> "
HELP = """\
Statements end with a semicolon and may take several lines; TAB completes names.
.functions      the functions of duckanon
.tables         the tables and views that are there
.timing on|off  say how long each statement took
.format NAME    print results as table, csv, json or markdown
.help           this text
.quit           leave (so does Ctrl-D)
"""


class Completer:
    """Completes function, table, column and keyword names for readline."""

    def __init__(self, con: duckdb.DuckDBPyConnection) -> None:
        self._con = con
        self._matches: list[str] = []

    def __call__(self, text: str, state: int) -> str | None:
        """Return the match number `state` for the word that is being typed."""
        if state == 0:
            self._matches = self.matches(text)
        return self._matches[state] if state < len(self._matches) else None

    def matches(self, text: str) -> list[str]:
        """List all names that begin with a text: functions of duckanon, tables, columns, other functions, keywords."""
        cursor = self._con.cursor()
        try:
            names = cursor.execute(
                """
                SELECT name FROM (
                    SELECT name || '(' AS name, 1 AS place FROM anon.functions()
                    UNION SELECT table_name, 2 FROM duckdb_tables() WHERE database_name <> 'anon'
                    UNION SELECT view_name, 2 FROM duckdb_views() WHERE NOT internal
                    UNION SELECT column_name, 3 FROM duckdb_columns() WHERE NOT internal AND database_name <> 'anon'
                    UNION SELECT function_name || '(', 4 FROM duckdb_functions()
                          WHERE regexp_full_match(function_name, '[a-z]\\w*') AND database_name <> 'anon'
                    UNION SELECT IF($typed = upper($typed), upper(keyword_name), keyword_name), 5
                          FROM duckdb_keywords())
                WHERE starts_with(lower(name), lower($typed)) GROUP BY name ORDER BY min(place), name
                """,
                {"typed": text},
            ).fetchall()
        finally:
            cursor.close()
        return [name if re.fullmatch(r"[\w.]+\(?", name) else '"' + name.replace('"', '""') + '"' for (name,) in names]


class Shell:
    """Reads lines, runs statements as they become complete, prints results; an error does not end it."""

    def __init__(
        self,
        con: duckdb.DuckDBPyConnection,
        output_format: str = "table",
        read_line: Callable[[str], str] = input,
        write: Callable[[str], object] = sys.stdout.write,
    ) -> None:
        self._con = con
        self._format = output_format
        self._read_line = read_line
        self._write = write
        self._timing = False

    def loop(self) -> None:
        """Talk with the user until the input ends."""
        typed = ""
        while True:
            try:
                line = self._read_line(CONTINUED if typed else PROMPT)
            except EOFError:
                break
            except KeyboardInterrupt:
                self._write("\n")
                typed = ""
                continue
            if not typed and line.strip().startswith("."):
                if line.split()[0] in (".quit", ".exit"):
                    return
                self._command(*line.split())
                continue
            typed = f"{typed}\n{line}" if typed else line
            if not typed.strip() or statements.is_complete(typed):
                self._run(typed)
                typed = ""
        if typed.strip():
            self._run(typed)
        self._write("\n")

    def _run(self, script: str) -> None:
        for statement in statements.split(script):
            started = time.perf_counter()
            try:
                self._write(interruptible(self._con, partial(statements.run, self._con, statement, self._format)))
            except KeyboardInterrupt:
                self._write("Interrupted.\n")
                return
            except Exception as error:
                self._write(f"Error: {statements.sentence(error)}\n")
                return
            if self._timing:
                self._write(f"Run time: {time.perf_counter() - started:.3f} s\n")

    def _command(self, name: str, *arguments: str) -> None:
        if name == ".help":
            self._write(HELP)
        elif name == ".functions":
            self._write(statements.listing(self._con))
        elif name == ".tables":
            self._run("SHOW TABLES;")
        elif name == ".timing" and arguments in (("on",), ("off",)):
            self._timing = arguments == ("on",)
        elif name == ".format" and len(arguments) == 1 and arguments[0] in FORMATS:
            self._format = arguments[0]
        else:
            self._write(f"Error: {' '.join((name, *arguments))} is not a command of this shell; .help lists them.\n")


def interactive(con: duckdb.DuckDBPyConnection, output_format: str) -> None:
    """Run the shell on a terminal, with line editing, history and completion where Python has readline."""
    try:
        import readline
    except ImportError:  # pragma: no cover - a Python built without it still gets a plain prompt
        Shell(con, output_format).loop()
        return
    readline.set_completer(Completer(con))
    readline.set_completer_delims(" \t\n'\"`@$><=;|&{}()[],+-*/%")
    readline.parse_and_bind("tab: complete")
    if HISTORY.exists():
        readline.read_history_file(HISTORY)
    try:
        print("duckanon: SQL with everything registered; .help for help, .quit to leave")
        Shell(con, output_format).loop()
    finally:
        readline.set_history_length(5000)
        readline.write_history_file(HISTORY)

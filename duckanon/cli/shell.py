"""``duckanon shell``: interactive SQL with every function registered.

The history of the shell: whole statements, kept in a file of the home folder where there is one.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import shlex
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import duckdb

from duckanon.cli import statements
from duckanon.cli.output import FORMATS, MOST_ROWS, Style, writer
from duckanon.cli.statements import interruptible

LONGEST = 5000
"""Statements that are kept."""


def history_file() -> Path | None:
    """Return the file, None for somebody without a home: no HOME, and a user whom the system does not know."""
    home = os.path.expanduser("~")
    return None if home.startswith("~") or os.environ.get("HOME") == "" else Path(home) / ".duckanon_history"


class History:
    r"""Statements that were typed, one after the other in a file that only its owner can read.

    A statement of several lines is one entry: its lines end with ``\r\n`` but for the last, as Python's own shell has
    it. Every statement is written when it was typed, so that several shells can share the file. Where the file cannot
    be used, that is said once, and the shell goes on without it.
    """

    def __init__(self, file: Path | None) -> None:
        self._file = file

    def entries(self) -> list[str]:
        """Read the entries, the oldest first; a file that has grown too long is cut."""
        if self._file is None:
            return []
        try:
            text = self._file.read_bytes().decode(errors="replace") if self._file.exists() else ""
            entries = text.replace("\r\n", "\r").split("\n")
            entries = [entry.replace("\r", "\n") for entry in entries if entry.strip()]
            if len(entries) > LONGEST:
                self._file.write_bytes("".join(map(_line, entries[-LONGEST:])).encode())
        except OSError as error:
            self._give_up(error)
            return []
        return entries[-LONGEST:]

    def add(self, entry: str) -> None:
        """Write an entry behind the others."""
        if self._file is None:
            return
        try:
            descriptor = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(_line(entry).encode(errors="replace"))
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        print(f"duckanon: the history was not saved; {self._file}: {error.strerror}.", file=sys.stderr)
        self._file = None


def _line(entry: str) -> str:
    return entry.replace("\r", "").replace("\n", "\r\n") + "\n"


PROMPT, CONTINUED = "duckanon> ", "     ...> "
HELP = """\
Statements end with a semicolon and may take several lines; TAB completes names.
.functions [LIKE] the functions of duckanon
.tables [LIKE]    the tables and views that are there
.schema [LIKE]    how they were made, as SQL
.read FILE        run the statements of a file
.mode [NAME]      print results as table, csv, json or markdown
.maxrows [COUNT]  how many rows a table shows
.timing on|off    say how long each statement took
.help             this text
.quit             leave (so does Ctrl-D)
"""


_IN_LIST = re.compile(r"\[\s*(?:'(?:[^']|'')*'\s*,\s*)*'[^']*$")
"""Typed before the cursor within a list of texts: ['age', 'z"""

_IN_CALL = re.compile(r"(?P<name>anon\.\w+)\((?:[^()]|\([^()]*\))*$", re.IGNORECASE)
"""Typed before the cursor within the brackets of a call: anon.recode('people', ['age'], 5, eff"""


class LeaveError(Exception):
    """The user wants to leave."""


class Completer:
    """Completes function, table, column and keyword names for readline."""

    def __init__(self, con: duckdb.DuckDBPyConnection, line: Callable[[], str] = lambda: "") -> None:
        self._con = con
        self._line = line
        self._matches: list[str] = []

    def __call__(self, text: str, state: int) -> str | None:
        """Return the match number `state` for the word that is being typed."""
        if state == 0:
            line = self._line()
            is_in_list = _IN_LIST.search(line)
            self._matches = self.columns(text) if is_in_list else self.options(text, line) + self.matches(text)
        return self._matches[state] if state < len(self._matches) else None

    def columns(self, text: str) -> list[str]:
        """List the columns that begin with a text, as they stand in quotes."""
        names = self._con.execute(
            "SELECT DISTINCT column_name FROM duckdb_columns() WHERE NOT internal AND database_name <> 'anon' "
            "AND starts_with(lower(column_name), lower($1)) ORDER BY column_name ASC NULLS LAST",
            [text],
        ).fetchall()
        return [name.replace("'", "''") for (name,) in names]

    def options(self, text: str, line: str) -> list[str]:
        """List the options that begin with a text, of the function in whose call it stands."""
        call = _IN_CALL.search(line)
        if call is None:
            return []
        cursor = self._con.cursor().execute(
            "SELECT parameters FROM anon.functions() WHERE name = lower($1)", [call["name"]]
        )
        names = [name for (parameters,) in cursor.fetchall() for name in re.findall(r"(\w+) := ", parameters)]
        return [f"{name} := " for name in names if text and name.startswith(text.lower())]

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


@dataclasses.dataclass
class Shell:
    """Reads lines, runs statements as they become complete, prints results; an error does not end it."""

    con: duckdb.DuckDBPyConnection
    style: Style = Style()  # noqa: RUF009 - it is frozen
    read_line: Callable[[str], str] = input
    write: Callable[[str], object] = sys.stdout.write
    remember: Callable[[str], object] = lambda entry: None
    _timing: bool = False
    _being_read: list[Path] = dataclasses.field(default_factory=list)

    def loop(self) -> None:
        """Talk with the user until the input ends."""
        typed = ""
        while True:
            try:
                line = self.read_line(CONTINUED if typed else PROMPT)
            except EOFError:
                break
            except KeyboardInterrupt:
                self.write("\n")
                typed = ""
                continue
            unfinished, typed = typed, ""
            try:
                typed = self._take(unfinished, line, self.remember)
            except LeaveError:
                return
            except KeyboardInterrupt:
                self.write("Interrupted.\n")
            except Exception as error:
                self.write(f"Error: {statements.sentence(error)}\n")
        if typed.strip():
            try:
                self._run(typed)
            except Exception as error:
                self.write(f"Error: {statements.sentence(error)}\n")
        self.write("\n")

    def read(self, lines: Iterable[str]) -> None:
        """Run a script, which may have commands of the shell between its statements; the first error is raised."""
        unfinished = ""
        for line in lines:
            unfinished = self._take(unfinished, line.rstrip("\r\n"))
        self._run(unfinished)

    def _take(self, unfinished: str, line: str, remember: Callable[[str], object] = lambda entry: None) -> str:
        """Add a line to an unfinished statement; run it if it is finished now; return what is still unfinished."""
        if not unfinished and line.strip().startswith("."):
            remember(line.strip())
            self._command(line)
            return ""
        typed = f"{unfinished}\n{line}" if unfinished else line
        if not typed.strip():
            return ""
        if not (";" in line or "*/" in line) or not statements.is_complete(typed):  # long statements: look rarely
            return typed
        remember(typed.strip())
        self._run(typed)
        return ""

    def _run(self, script: str) -> None:
        for statement in statements.split(script):
            started = time.perf_counter()
            self.write(interruptible(self.con.interrupt, partial(statements.run, self.con, statement, self.style)))
            if self._timing:
                self.write(f"Run time: {time.perf_counter() - started:.3f} s\n")

    def _command(self, line: str) -> None:
        try:
            name, *arguments = shlex.split(line)
        except ValueError:
            raise ValueError(f"{line.split()[0]}: a quote is missing.") from None
        commands = {
            ".help": lambda *_: self.write(HELP),
            ".functions": self._functions,
            ".tables": self._tables,
            ".schema": self._schema,
            ".read": self._read_file,
            ".mode": self._mode,
            ".maxrows": self._max_rows,
            ".timing": self._time,
            ".quit": self._leave,
            ".exit": self._leave,
        }
        if name not in commands:
            raise ValueError(f"{name} is not a command of this shell; .help lists them.")
        commands[name](*arguments)

    def _functions(self, *patterns: str) -> None:
        self.write(statements.listing(self.con, *patterns[:1]))

    def _tables(self, *patterns: str) -> None:
        self.write("".join(f"{name}\n" for name in statements.object_names(self.con, *patterns[:1])))

    def _schema(self, *patterns: str) -> None:
        self.write("".join(f"{sql}\n" for sql in statements.object_definitions(self.con, *patterns[:1])))

    def _read_file(self, *files: str) -> None:
        if len(files) != 1:
            raise ValueError(".read: name one file of SQL.")
        path = Path(files[0]).expanduser().resolve()
        if path in self._being_read:
            raise ValueError(f".read: {files[0]} is being read already.")
        self._being_read.append(path)
        try:
            self.read(statements.script(path).split("\n"))
        finally:
            self._being_read.pop()

    def _mode(self, *names: str) -> None:
        if not names:
            self.write(f"{self.style.output_format}\n")
        elif len(names) == 1 and names[0] in FORMATS:
            self.style = dataclasses.replace(self.style, output_format=names[0])
        else:
            raise ValueError(f".mode: the mode must be one of {', '.join(FORMATS)}; got {' '.join(names)}.")

    def _max_rows(self, *counts: str) -> None:
        if not counts:
            self.write(f"{self.style.max_rows or 'as DuckDB has it'}\n")
        elif len(counts) == 1 and counts[0].isdecimal() and 1 <= int(counts[0]) <= MOST_ROWS:
            self.style = dataclasses.replace(self.style, max_rows=int(counts[0]))
        else:
            raise ValueError(
                f".maxrows: the count must be a whole number from 1 to {MOST_ROWS} (.mode csv shows all rows); "
                f"got {' '.join(counts)}."
            )

    def _time(self, *choice: str) -> None:
        if choice not in (("on",), ("off",)):
            raise ValueError(f".timing: it is on or off; got {' '.join(choice) or 'nothing'}.")
        self._timing = choice == ("on",)

    def _leave(self, *_: str) -> None:
        raise LeaveError


def run_shell(con: duckdb.DuckDBPyConnection, style: Style) -> None:
    """Run the shell: on a terminal as a conversation, on anything else as a script that stops at its first error."""
    write = writer(sys.stdout)
    if not sys.stdin.isatty():
        with contextlib.suppress(LeaveError):
            Shell(con, style, write=write).read(sys.stdin)
        return
    remember = _with_line_editing(con, History(history_file()))
    write("duckanon: SQL with everything registered; .help for help, .quit to leave\n")
    Shell(con, style, write=write, remember=remember).loop()


def _with_line_editing(con: duckdb.DuckDBPyConnection, history: History) -> Callable[[str], None]:
    """Give the terminal line editing, completion and history where Python has readline; return what keeps an entry."""
    try:
        import readline
    except ImportError:  # pragma: no cover - a Python built without it still gets a plain prompt
        return history.add
    readline.set_completer(Completer(con, lambda: readline.get_line_buffer()[: readline.get_endidx()]))
    readline.set_completer_delims(" \t\n'\"`@$><=;|&{}()[],+-*/%")
    readline.parse_and_bind("tab: complete")
    readline.set_auto_history(False)  # it would keep lines, not statements
    for entry in history.entries():
        readline.add_history(entry)

    def remember(entry: str) -> None:
        readline.add_history(entry)
        history.add(entry)

    return remember

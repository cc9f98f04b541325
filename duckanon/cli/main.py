"""The command ``duckanon``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NoReturn

import duckanon
from duckanon.bridge import macros
from duckanon.cli.output import FORMATS

EPILOG = """\
examples:
  duckanon shell --db clinic.duckdb
  duckanon -c "FROM anon.column_profile('patients')" --db clinic.duckdb --format markdown
  duckanon run export.sql --db clinic.duckdb
  duckanon sql > duckanon.sql && duckdb -init duckanon.sql
"""


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one sentence and exit code 1, like all others."""

    def error(self, message: str) -> NoReturn:
        """Say what was wrong and where the help is."""
        self.exit(1, f"{self.prog}: {message}; {self.prog} --help lists what it takes.\n")


def parser() -> Parser:
    """Describe the command line."""
    database = Parser(add_help=False)
    database.add_argument("--db", metavar="FILE", default=":memory:", help="database file (default: in memory)")
    database.add_argument("--read-only", action="store_true", help="open the database file read-only")
    output = Parser(add_help=False)
    output.add_argument("--format", choices=FORMATS, default="table", help="how results are printed")

    main_parser = Parser(
        prog="duckanon",
        description="Assess, anonymize, check and release tables about people in DuckDB's SQL.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[database, output],
    )
    main_parser.add_argument("-c", dest="sql", metavar="SQL", help="run these statements")
    main_parser.add_argument("--version", action="version", version=f"duckanon {duckanon.__version__}")
    commands = main_parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    commands.add_parser(
        "shell",
        parents=[database, output],
        help="interactive SQL",
        description="Interactive SQL with everything registered.",
    )
    run = commands.add_parser(
        "run",
        parents=[database, output],
        help="run a file of SQL",
        description="Run a file of SQL; stops at the first error.",
    )
    run.add_argument("file", metavar="FILE.sql", help="the file, or - for standard input")
    run.add_argument("--echo", action="store_true", help="print every statement before its result")
    commands.add_parser(
        "functions",
        parents=[output],
        help="list the functions",
        description="List the functions, as FROM anon.functions() does.",
    )
    commands.add_parser(
        "sql",
        help="print the pure-SQL functions as a script for the stock shell",
        description="Print the pure-SQL functions as a script: duckanon sql > duckanon.sql; duckdb -init duckanon.sql",
    )
    return main_parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 0, or 1 after one sentence on standard error."""
    options = parser().parse_args(arguments)
    from duckanon.cli import statements  # loads DuckDB, which --version and --help can do without

    try:
        return _run(options)
    except BrokenPipeError:  # the reader of our output went away, as in `duckanon functions | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        print("duckanon: interrupted.", file=sys.stderr)
        return 1
    except Exception as error:
        print(statements.sentence(error), file=sys.stderr)
        return 1


def _run(options: argparse.Namespace) -> int:
    if options.command == "sql":
        sys.stdout.write(macros.script())
        return 0
    if options.command is None and options.sql is None:
        parser().print_help()
        return 0
    from duckanon.cli import interrupts, shell, statements

    if options.command == "run":
        script = sys.stdin.read() if options.file == "-" else Path(options.file).read_text(encoding="utf-8")
    elif options.command == "functions":
        script = "FROM anon.functions();"
    else:
        script = options.sql or ""
    con = duckanon.connect(getattr(options, "db", ":memory:"), getattr(options, "read_only", False))
    try:
        con.execute("SET python_enable_replacements = false").fetchall()  # 'people.csv' is a file, not the module csv
        if not sys.stdout.isatty():  # the progress bar goes to standard output, among the results
            con.execute("SET enable_progress_bar = false").fetchall()
        if options.command == "shell":
            shell.interactive(con, options.format)
            return 0
        if options.command == "functions" and options.format == "table":
            sys.stdout.write(statements.listing(con))
            return 0
        for statement in statements.split(script):
            if getattr(options, "echo", False):
                sys.stdout.write(f"\n{statement.strip()};\n")
                sys.stdout.flush()
            run = partial(statements.run, con, statement, options.format)
            sys.stdout.write(interrupts.interruptible(con, run))
            sys.stdout.flush()
    finally:
        con.close()
    return 0

"""The arguments of the command ``duckanon``."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import duckanon
from duckanon.cli import (
    account_command,
    assess_command,
    demo_command,
    policy_command,
    printing_commands,
    release_command,
    workbench_command,
)
from duckanon.cli.output import FORMATS

JOB_COMMANDS = ("release", "policy", "history", "verify", "evidence", "keys", "account", "workbench")
"""Commands for which exit code 1 means a broken promise, and a wrong command line is 2, like a wrong policy."""
COMMANDS = ("shell", "run", "functions", "sql", "assess", "demo", "render", "extension", *JOB_COMMANDS)
TAKING_VALUES = ("--db", "--format", "-c")

EPILOG = """\
examples:
  duckanon demo
  duckanon assess people.csv
  duckanon clinic.duckdb
  duckanon -c "FROM anon.column_profile('patients')" --db clinic.duckdb --format markdown
  duckanon run export.sql --db clinic.duckdb
  duckanon extension
  duckanon sql > duckanon.sql && duckdb -init duckanon.sql
"""


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one sentence and exit code 1, like all others; a command may have its own."""

    exit_code = 1

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        """Say what was wrong and where the help is."""
        self.exit(self.exit_code, f"{self.prog}: {message}; {self.prog} --help lists what it takes.\n")


def parser() -> Parser:
    """Describe the command line."""
    main_parser = Parser(
        prog="duckanon",
        usage="duckanon [FILE] [-c SQL] [options]\n       duckanon COMMAND [options]",
        description="Assess, anonymize, check and release tables about people in DuckDB's SQL. "
        "FILE is a database; without -c, the shell opens on it.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_database(main_parser, is_command=False)
    _add_output(main_parser, is_command=False)
    main_parser.add_argument("-c", dest="sql", metavar="SQL", help="run these statements")
    main_parser.add_argument("--version", action="version", version=f"duckanon {duckanon.__version__}")
    commands = main_parser.add_subparsers(dest="command", metavar="COMMAND", prog="duckanon", parser_class=Parser)
    description = "Interactive SQL with everything registered."
    shell = commands.add_parser("shell", help="interactive SQL", description=description)
    description = "Run a file of SQL; stops at the first error."
    run = commands.add_parser("run", help="run a file of SQL", description=description)
    run.add_argument("file", metavar="FILE.sql", help="the file, or - for standard input")
    run.add_argument("--echo", action="store_true", help="print every statement before its result")
    description = "List the functions, as FROM anon.functions() does."
    functions = commands.add_parser("functions", help="list the functions", description=description)
    description = "Print the pure-SQL functions as a script: duckanon sql > duckanon.sql; duckdb -init duckanon.sql"
    help_text = "print the pure-SQL functions as a script for the stock shell"
    commands.add_parser("sql", help=help_text, description=description)
    assess_command.add_to(commands)
    demo_command.add_to(commands)
    printing_commands.add_render(commands)
    printing_commands.add_extension(commands)
    release_command.add_to(commands)
    policy_command.add_to(commands)
    policy_command.add_history(commands)
    policy_command.add_verify(commands)
    account_command.add_to(commands)
    policy_command.add_evidence(commands)
    policy_command.add_keys(commands)
    workbench_command.add_to(commands)
    for command in (shell, run):
        _add_database(command, is_command=True)
    for command in (shell, run, functions):
        _add_output(command, is_command=True)
    return main_parser


def _add_database(to: Parser, is_command: bool) -> None:
    """Add the options that say which database; before the name of a command they count too."""
    default = argparse.SUPPRESS if is_command else None
    to.add_argument("--db", metavar="FILE", default=default, help="database file (default: in memory)")
    for option, text in (
        ("--create", "create the database file if it does not exist"),
        ("--read-only", "open the database file read-only"),
    ):
        to.add_argument(option, action="store_true", default=argparse.SUPPRESS if is_command else False, help=text)


def _add_output(to: Parser, is_command: bool) -> None:
    default = argparse.SUPPRESS if is_command else "table"
    to.add_argument("--format", choices=FORMATS, default=default, help="how results are printed")
    to.add_argument(
        "--no-formulas",
        action="store_true",
        default=argparse.SUPPRESS if is_command else False,
        help="in CSV, put an apostrophe before texts that a spreadsheet would compute",
    )


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line; raises SystemExit after a sentence where it is wrong.

    ``duckanon clinic.duckdb`` is ``duckanon shell --db clinic.duckdb``, as ``duckdb clinic.duckdb`` is.
    """
    main_parser = parser()
    main_parser.exit_code = 2 if any(command in arguments for command in JOB_COMMANDS) else 1
    options = main_parser.parse_args(_with_named_database(list(arguments)))
    if options.sql is not None and options.command is not None:
        parser().error(f"-c cannot be used together with the command {options.command}")
    if options.command is None and options.sql is None and options.db is not None:
        options.command = "shell"
    return options


def _with_named_database(arguments: list[str]) -> list[str]:
    """Put --db before the first argument that is neither an option nor a command: it names a database."""
    place = 0
    while place < len(arguments):
        argument = arguments[place]
        if not argument.startswith("-"):
            if argument in COMMANDS:
                return arguments
            if any(re.match(r"--db(=|$)", other) for other in arguments):
                parser().error(f"{argument} is not a command, and --db names a database already")
            if argument.isidentifier() and "--create" not in arguments and not Path(argument).exists():
                parser().error(f"{argument} is neither a command ({', '.join(COMMANDS)}) nor a database file")
            return [*arguments[:place], "--db", argument, *arguments[place + 1 :]]
        place += 2 if argument in TAKING_VALUES else 1
    return arguments


def database(options: argparse.Namespace) -> str:
    """Return the database to open; a file that is not there is taken for a typo, unless asked for."""
    path: str = options.db or ":memory:"
    is_local = not re.match(r":memory:|\w\w+:", path)  # nor s3://, md: and the like
    if is_local and not options.create and not Path(path).exists():
        raise ValueError(f"duckanon: there is no database file {path}; name another, or add --create to create it.")
    return path

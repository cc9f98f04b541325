"""The arguments of the command ``duckanon``: those of its commands are described in ``arguments.toml``."""

from __future__ import annotations

import argparse
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import duckanon
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
    described = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    shared = described["shared"]
    shared["output"]["--format"]["choices"] = FORMATS
    for options in shared.values():
        _add_arguments(main_parser, options)
    main_parser.add_argument("-c", dest="sql", metavar="SQL", help="run these statements")
    main_parser.add_argument("--version", action="version", version=f"duckanon {duckanon.__version__}")
    commands = main_parser.add_subparsers(dest="command", metavar="COMMAND", prog="duckanon", parser_class=Parser)
    for name, command in described["commands"].items():
        _add_command(commands, name, command, 2 if name in JOB_COMMANDS else 1)
        for group in command.get("shared", ()):  # before the name of a command they count too
            _add_arguments(commands.choices[name], shared[group], default=argparse.SUPPRESS)
    return main_parser


def _add_command(commands: Any, name: str, described: dict[str, Any], exit_code: int) -> None:
    """Add a command, or a step of one, with its arguments."""
    texts = {key: described[key] for key in ("help", "description", "epilog") if key in described}
    formatter = argparse.RawDescriptionHelpFormatter if "epilog" in described else argparse.HelpFormatter
    command = commands.add_parser(name, formatter_class=formatter, **texts)
    command.exit_code = exit_code
    is_exclusive = described.get("is_exclusive", False)
    _add_arguments(command.add_mutually_exclusive_group() if is_exclusive else command, described.get("arguments", {}))
    if "runs" in described:
        command.set_defaults(runner=described["runs"])
    if "steps" in described:
        steps = command.add_subparsers(dest="step", metavar="STEP", required=True, parser_class=Parser)
        for step, step_described in described["steps"].items():
            _add_command(steps, step, step_described, exit_code)


def _add_arguments(to: Any, arguments: dict[str, dict[str, Any]], **others: Any) -> None:
    for name, options in arguments.items():
        to.add_argument(name, **{key: _OBJECTS.get(str(value), value) for key, value in options.items()} | others)


def _read_amount(text: str) -> str:
    """Refuse what is no amount of memory."""
    from duckanon._core.common.resources import read_memory

    try:
        read_memory(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be an amount of memory such as 800MB or 2GB; got {text}") from None
    return text


_OBJECTS = {"int": int, "float": float, "amount": _read_amount, argparse.SUPPRESS: argparse.SUPPRESS}
"""What a text of ``arguments.toml`` stands for; argparse asks whether a default is this very object."""


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

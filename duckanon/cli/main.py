"""The command ``duckanon``.

Only what every Python has at hand is imported here: all else is loaded where an interrupt is expected.
"""

from __future__ import annotations

import contextlib
import os
import pkgutil
import signal
import sys
import threading
from functools import partial
from typing import TYPE_CHECKING, NoReturn, TextIO

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence


@contextlib.contextmanager
def leaving_at_once(exit_code: int = 1) -> Iterator[None]:
    """Let Ctrl-C end the process with a sentence, as long as the block lasts.

    Libraries take a second to load, and some of them turn an interrupt meanwhile into errors of their own. There is
    nothing yet that would have to be put away. On other threads, and where interrupts are ignored, there are none.
    """

    def leave(*_: object) -> NoReturn:
        os.write(2, b"duckanon: interrupted.\n")
        os._exit(exit_code)

    before = signal.getsignal(signal.SIGINT)
    is_ours = threading.current_thread() is threading.main_thread() and callable(before)
    if is_ours:
        signal.signal(signal.SIGINT, leave)
    try:
        yield
    finally:
        if is_ours:
            signal.signal(signal.SIGINT, before)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 0, or 1 after one sentence on standard error; jobs have more."""
    _open_closed_streams()
    argv = sys.argv[1:] if arguments is None else arguments
    try:
        code = _answer(argv)
    except SystemExit as stopped:  # a wrong command line
        _flush(sys.stderr)
        raise stopped from None
    is_written = _flush(sys.stdout)
    _flush(sys.stderr)
    if is_written or "release" in argv:  # a release is there, whoever reads of it
        return code
    return code or (3 if {"policy", "history", "verify", "evidence", "keys", "account"} & set(argv) else 1)


def _flush(stream: TextIO) -> bool:
    """Write what is still to be written, and tell whether it was: a full disk must not change the exit code later."""
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return False
    return True


def _answer(argv: Sequence[str]) -> int:
    try:
        with leaving_at_once(130 if "release" in argv else 1):  # where 1 says that a promise was broken
            from duckanon.cli.arguments import parse

            options = parse(argv)
            from duckanon.cli.statements import failure, sentence

            # a command with a module and exit codes of its own, or one of SQL
            run = pkgutil.resolve_name(options.runner) if hasattr(options, "runner") else _run
        return int(run(options))
    except BrokenPipeError:  # the reader of our output went away, as in `duckanon functions | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        with contextlib.suppress(OSError):
            print("duckanon: interrupted.", file=sys.stderr)
        return 1
    except Exception as error:
        with contextlib.suppress(OSError):
            is_command = hasattr(options, "runner")
            print(failure(f"duckanon {options.command}", error) if is_command else sentence(error), file=sys.stderr)
        return 1


def _open_closed_streams() -> None:
    """Let a job run whose standard streams are closed: nothing comes in, and what goes out is lost."""
    sys.stdin = sys.stdin or open(os.devnull)  # noqa: SIM115 - as long as the process lives
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115


def _run(options: argparse.Namespace) -> int:
    with leaving_at_once():
        from duckanon.cli import output

    write = output.writer(sys.stdout)
    if options.command in ("sql", "render", "extension"):  # none of which needs a connection
        with leaving_at_once():
            from duckanon._bridge import macros
            from duckanon.cli import printing_commands

        write(macros.script() if options.command == "sql" else printing_commands.print_command(options))
        return 0
    if options.command is None and options.sql is None:
        from duckanon.cli.arguments import parser

        write(parser().format_help())
        return 0
    with leaving_at_once():
        import duckanon
        from duckanon.cli import arguments, statements

    if options.command == "run":
        script = sys.stdin.read() if options.file == "-" else statements.script(options.file)
    elif options.command == "functions":
        script = "FROM anon.functions();"
    else:
        script = options.sql or ""
    style = output.Style(options.format, formulas=not options.no_formulas)
    con = duckanon.connect(arguments.database(options), options.read_only)
    try:
        con.execute("SET python_enable_replacements = false").fetchall()  # 'people.csv' is a file, not the module csv
        if not sys.stdout.isatty():  # the progress bar goes to standard output, among the results
            con.execute("SET enable_progress_bar = false").fetchall()
        if options.command == "shell":
            from duckanon.cli import shell

            shell.run_shell(con, style)
            return 0
        if options.command == "functions" and style.output_format == "table":
            write(statements.listing(con))
            return 0
        for statement in statements.split(script):
            if getattr(options, "echo", False):
                write(f"\n{statement.strip()};\n")
            write(statements.interruptible(con.interrupt, partial(statements.run, con, statement, style)))
    finally:
        con.close()
    return 0

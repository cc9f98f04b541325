"""``duckanon release``: runs the release job of a policy; its exit codes tell the cases apart."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from duckanon.cli.output import complain, visible

if TYPE_CHECKING:
    from duckanon._core.common.release_record import Record

INTERRUPTED = 130
"""The exit code of an interrupted job, as of shells: 1 would say that a promise was broken."""
TERMINATED = 143

EPILOG = """\
exit codes:
  0  released; every promise was counted on the written file
  1  a promise is broken, or cannot be kept; the previous release stays in place
  2  the policy is wrong, or does not fit the table
  3  a source could not be read, or a target could not be written
  130, 143  interrupted (Ctrl-C, SIGTERM); the previous release stays in place

examples:
  duckanon release policy.toml
  duckanon release policy.toml --from warehouse.duckdb --table patients --to release.parquet --report report.html
  duckanon release policy.toml --plan plan.parquet
  duckanon release policy.toml --memory 2GB
"""


def add_to(commands: Any) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "release",
        help="release a table by a policy",
        description="Release the tables of a policy: read, anonymize, write, read back, count every promise on the "
        "written file, and only then publish it.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.exit_code = 2
    parser.add_argument("policy", nargs="?", metavar="POLICY.toml", help="the policy")
    parser.add_argument("--policy", dest="named_policy", metavar="FILE", help="the policy, as an option")
    parser.add_argument(
        "--from", dest="source", metavar="FILE", help="DuckDB, Parquet or CSV file, a glob of them, or postgresql://..."
    )
    parser.add_argument("--table", metavar="NAME", help="the table of a DuckDB file or a server")
    parser.add_argument("--query", metavar="SQL", help="a query in place of a table; in it, files are the table source")
    parser.add_argument(
        "--to", dest="target", metavar="FILE", help="the release: .parquet, .csv, .csv.gz, .duckdb, postgresql://..."
    )
    parser.add_argument("--report", metavar="FILE.html", help="write a report for readers without SQL")
    parser.add_argument("--plan", metavar="FILE.parquet", help="use this plan; if there is no such file, save it there")
    parser.add_argument(
        "--memory",
        type=_amount,
        metavar="AMOUNT",
        help="memory limit of the process, such as 2GB; larger tables are processed in partitions",
    )
    parser.add_argument(
        "--no-formulas",
        action="store_true",
        default=argparse.SUPPRESS,  # it may stand before the command, too
        help="in CSV files, put an apostrophe before texts that a spreadsheet would compute",
    )
    parser.add_argument("--previous", metavar="FILE", help="the previous release (default: the file at the target)")
    parser.add_argument("--sign", metavar="KEY", help="sign the record with this key; duckanon keys makes one")
    parser.add_argument("--dry-run", action="store_true", help="do everything except write")
    parser.add_argument("--progress", action="store_true", help="show progress, also without a terminal")
    parser.set_defaults(runner=run)


def _amount(text: str) -> str:
    """Refuse what is no amount of memory."""
    from duckanon._core.common.resources import read_memory

    try:
        read_memory(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be an amount of memory such as 800MB or 2GB; got {text}") from None
    return text


def run(options: argparse.Namespace) -> int:
    """Run the job and return its exit code."""
    terminations: list[int] = []

    def terminate(number: int, _: object) -> NoReturn:
        terminations.append(number)
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, terminate)
    try:
        return _release(options)
    except KeyboardInterrupt:
        outcome = "terminated" if terminations else "interrupted"
        complain(f"duckanon release: {outcome}; a file at the target, if any, passed all checks.")
        return TERMINATED if terminations else INTERRUPTED


def _release(options: argparse.Namespace) -> int:
    from duckanon.cli.statements import interruptible
    from duckanon.job import errors
    from duckanon.job.policy_file import changes_of
    from duckanon.job.run import Request, connection, printer, run_release

    policy = options.named_policy or options.policy
    if policy is None or (options.named_policy and options.policy):
        complain("duckanon release: name one policy; duckanon policy init drafts one.")
        return errors.PolicyError.exit_code
    names = ("source", "table", "query", "target", "report", "plan", "memory", "no_formulas")
    changes = changes_of(**{name: getattr(options, name) for name in names})
    request = Request(policy, changes, options.previous, options.dry_run, sign=options.sign)
    say = printer(options.progress or sys.stderr.isatty())
    records: list[Record] = []

    def work() -> int:
        con = connection()

        def interrupt() -> None:
            """Stop statements of DuckDB and servers, and partitions."""
            from duckanon.large.workspace import interrupt_all
            from duckanon.postgresql.server import cancel_all

            con.interrupt()
            cancel_all()
            interrupt_all()

        try:
            records.append(interruptible(interrupt, partial(run_release, con, request, say)))
        finally:
            con.close()
        return 0

    if code := exit_code("duckanon release", work):
        return code
    (record,) = records
    for warning in record["warnings"]:
        complain(visible(f"warning: {warning}"))
    for table in record["tables"]:
        for note in (
            table["memory"]["notes"] if "memory" in table else ()
        ):  # not in the report, since it tells about the original
            complain(visible(f"{table['name']}: {note}"))
    if options.progress or sys.stdout.isatty():
        with contextlib.suppress(OSError):  # it is released, whoever reads of it
            print(summary(record), end="")
    return 0


def exit_code(command: str, work: Callable[[], int]) -> int:
    """Do the work of a command of jobs, and return its exit code: errors are sentences, and never a broken promise."""
    from duckanon.job.errors import FileProblem, JobError

    try:
        return work()
    except JobError as error:
        complain(visible_lines(str(error)))
        return error.exit_code
    except Exception as error:  # a fault of ours, or output that cannot be written; its text may quote a value
        complain(f"{command}: it failed unexpectedly ({type(error).__name__}).")
        return FileProblem.exit_code


def visible_lines(text: str) -> str:
    """Write a text of several lines without characters that a terminal obeys."""
    return "\n".join(visible(line) for line in text.splitlines())


def summary(record: Record) -> str:
    """Say what was released, for a terminal."""
    from duckanon._core.common import quantities

    lines = []
    for table in record["tables"]:
        output, memory = table["output"], table.get("memory")
        lines.append(f"{record['outcome']}: {table['name']}, {output['rows']} rows, {output['path']}\n")
        if memory and memory["by_parts"]:
            parts = f"{memory['parts']} partition{'s' * (memory['parts'] != 1)}"
            lines.append(f"  processed in {parts}, within {memory['given']}\n")
        for name, value, meaning in quantities.list_ambiguous_parameters(table):
            lines.append(f"  {table['method']['name']} with {name} = {value}: {meaning}\n")
        gone, rows = table["suppressed"], max(table["rows"], 1)
        if quantities.choose_unit(table) == "people" and round(gone["rows"] / rows - gone["fraction"], 4):
            share = f"{gone['rows']} of {rows} rows ({gone['rows'] / rows:.4%})"
            lines.append(f"  suppressed: {share}; what is promised is a share of the people\n")
        lines += [
            f"  {'kept' if promise['passed'] else 'BROKEN'}: {promise['words']}\n" for promise in table["promises"]
        ]
    return "".join(lines)

"""``duckanon release``: runs the release job of a policy; its exit codes tell the cases apart."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NoReturn

from duckanon.cli.output import complain, visible

if TYPE_CHECKING:
    from duckanon._core.common.release_record import Record

INTERRUPTED = 130
"""The exit code of an interrupted job, as of shells: 1 would say that a promise was broken."""
TERMINATED = 143


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

"""``duckanon policy`` drafts and checks policies; ``history``, ``verify``, ``evidence`` and ``keys`` are of records."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def run(options: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    from duckanon.cli.release_command import exit_code

    return exit_code(
        f"duckanon policy {options.step}", lambda: _init(options) if options.step == "init" else _check(options)
    )


def _init(options: argparse.Namespace) -> int:
    from duckanon.job.draft import draft
    from duckanon.job.errors import FileProblem
    from duckanon.job.run import connection

    path = Path(options.policy) if options.policy else None
    con = connection()
    try:
        text = draft(con, options.source, options.table, options.query, path)
    finally:
        con.close()
    if path is None:
        sys.stdout.write(text)
        return 0
    try:
        with path.open("x", encoding="utf-8") as file:  # a policy that somebody has read is not overwritten
            file.write(text)
    except FileExistsError:
        raise FileProblem(
            f"{path}: there is a file of this name, and it is not replaced; name another with --to."
        ) from None
    except OSError as error:
        raise FileProblem(f"{path}: the policy cannot be written ({error.strerror}).") from None
    return 0


def _check(options: argparse.Namespace) -> int:
    from duckanon.job.check import check_policy

    for line in check_policy(options.policy, with_data=not options.no_data):
        print(line)
    return 0


def run_history(options: argparse.Namespace) -> int:
    """Run ``duckanon history`` and return its exit code."""
    from duckanon.cli.release_command import exit_code, visible_lines
    from duckanon.job.record import differences, read

    def work() -> int:
        print(visible_lines("\n".join(differences(read(options.old), read(options.new)))))
        return 0

    return exit_code("duckanon history", work)


def run_verify(options: argparse.Namespace) -> int:
    """Run ``duckanon verify`` and return its exit code."""
    from duckanon.cli.output import complain, visible
    from duckanon.cli.release_command import exit_code, visible_lines
    from duckanon.job import signing, verification
    from duckanon.job.record import read
    from duckanon.job.run import connection

    def work() -> int:
        files = [Path(path) for path in options.files]
        record, keys = read(options.record or f"{files[0]}.record.json"), signing.read_public_keys(options.key)
        if (
            not options.record
            and (report := record["report"])
            and (page := files[0].with_name(report["path"])).exists()
        ):
            files += [page] if page not in files else []
        con = connection()
        try:
            findings = verification.verify(con, record, files, keys)
        finally:
            con.close()
        print(visible_lines(verification.summary(findings)))
        if refusal := verification.refusal(findings):
            complain(visible(f"duckanon verify: {refusal}"))
        return int(refusal is not None)

    return exit_code("duckanon verify", work)


def run_evidence(options: argparse.Namespace) -> int:
    """Run ``duckanon evidence`` and return its exit code."""
    from duckanon.cli.release_command import exit_code
    from duckanon.job import signing
    from duckanon.job.evidence import evidence
    from duckanon.job.run import connection

    def work() -> int:
        keys = signing.read_public_keys(options.key)
        con = connection()
        try:
            names = evidence(con, options.policy, options.target, keys, is_for_recipients=options.for_recipients)
        finally:
            con.close()
        print(f"{options.target}: {', '.join(names)}")
        return 0

    return exit_code("duckanon evidence", work)


def run_keys(options: argparse.Namespace) -> int:
    """Run ``duckanon keys`` and return its exit code."""
    from duckanon.cli.release_command import exit_code
    from duckanon.job.signing import make_keys

    def work() -> int:
        print(f"{options.key} signs and stays secret; {make_keys(Path(options.key))} goes to whoever verifies")
        return 0

    return exit_code("duckanon keys", work)

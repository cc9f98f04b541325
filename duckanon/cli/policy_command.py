"""``duckanon policy`` drafts and checks policies; ``history``, ``verify``, ``evidence`` and ``keys`` are of records."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any


def add_to(commands: Any) -> None:
    """Describe the command."""
    description = "Draft or check the policy of a release."
    parser = commands.add_parser("policy", help="draft or check a policy for a release", description=description)
    steps = parser.add_subparsers(dest="step", metavar="STEP", required=True, parser_class=type(parser))
    init = steps.add_parser(
        "init",
        help="draft a policy from a table",
        description="Draft a policy from what anon.assess finds in a table; every role is a suggestion to review.",
    )
    init.add_argument("--from", dest="source", metavar="FILE", required=True, help="DuckDB, Parquet or CSV file")
    init.add_argument("--table", metavar="NAME", help="the table of a DuckDB file")
    init.add_argument("--query", metavar="SQL", help="a query in place of a table")
    init.add_argument("--to", dest="policy", metavar="POLICY.toml", help="write it there (default: standard output)")
    check = steps.add_parser(
        "check",
        help="say whether a policy can be used",
        description="Check a policy, and that its columns are those of its source; exit codes as of duckanon release.",
    )
    check.add_argument("policy", metavar="POLICY.toml", help="the policy")
    check.add_argument(
        "--no-data", action="store_true", help="read no rows; does not search for columns that narrow down others"
    )
    for step in (parser, init, check):
        step.exit_code = 2
    parser.set_defaults(runner=run)


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


def add_history(commands: Any) -> None:
    """Describe ``duckanon history``."""
    parser = commands.add_parser(
        "history",
        help="compare the records of two releases",
        description="Compare the records of two releases: what changed, and what the difference reveals about "
        "people who came or left.",
    )
    parser.exit_code = 2
    parser.add_argument("old", metavar="OLD.json", help="the record of the older release")
    parser.add_argument("new", metavar="NEW.json", help="the record of the newer release")
    parser.set_defaults(runner=_run_history)


def _run_history(options: argparse.Namespace) -> int:
    from duckanon.cli.release_command import exit_code, visible_lines
    from duckanon.job.record import differences, read

    def work() -> int:
        print(visible_lines("\n".join(differences(read(options.old), read(options.new)))))
        return 0

    return exit_code("duckanon history", work)


_KEY = {
    "action": "append",
    "default": [],
    "metavar": "PUBLIC",
    "help": "a file of public keys, one of which must have signed the record; may be given several times",
}


def add_verify(commands: Any) -> None:
    """Describe ``duckanon verify``."""
    parser = commands.add_parser(
        "verify",
        help="compare a release with its record",
        description="Recompute from released files alone every number of their record that they can tell: who received "
        "a release can check it. Exit code 1 where a number differs.",
    )
    parser.exit_code = 2
    parser.add_argument(
        "files",
        metavar="RELEASE",
        nargs="+",
        help="the released files of one record, and its report (default: the one beside the first file)",
    )
    parser.add_argument("--record", metavar="RECORD.json", help="the record (default: RELEASE.record.json)")
    parser.add_argument("--key", **_KEY)
    parser.set_defaults(runner=_run_verify)


def _run_verify(options: argparse.Namespace) -> int:
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


def add_evidence(commands: Any) -> None:
    """Describe ``duckanon evidence``."""
    parser = commands.add_parser(
        "evidence",
        help="collect what an auditor needs of a release",
        description="Collect the policy, record, report, versions, hierarchies and plan of the last release of a "
        "policy, and what `duckanon verify` says of it, in a zip file that holds no value of the data. Where a number "
        "differs, nothing is written, and the exit code is 1.",
    )
    parser.exit_code = 2
    parser.add_argument("policy", metavar="POLICY.toml", help="the policy of the release")
    parser.add_argument("--to", dest="target", metavar="EVIDENCE.zip", required=True, help="the file to write")
    parser.add_argument("--key", **_KEY)
    parser.add_argument(
        "--for-recipients",
        action="store_true",
        help="what may leave with the release: the record without what it says of the original, the report, the key",
    )
    parser.set_defaults(runner=_run_evidence)


def _run_evidence(options: argparse.Namespace) -> int:
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


def add_keys(commands: Any) -> None:
    """Describe ``duckanon keys``."""
    parser = commands.add_parser(
        "keys",
        help="make a key that signs records",
        description="Make a key for duckanon release --sign, which only you may read, and its public key, KEY.pub, for "
        "duckanon verify --key. A file that is there is not overwritten.",
    )
    parser.exit_code = 2
    parser.add_argument("key", metavar="KEY", help="the file of the new key")
    parser.set_defaults(runner=_run_keys)


def _run_keys(options: argparse.Namespace) -> int:
    from duckanon.cli.release_command import exit_code
    from duckanon.job.signing import make_keys

    def work() -> int:
        print(f"{options.key} signs and stays secret; {make_keys(Path(options.key))} goes to whoever verifies")
        return 0

    return exit_code("duckanon keys", work)

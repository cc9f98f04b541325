"""``duckanon account``: shows what an account of releases holds, counts it again, and forgets a person."""

from __future__ import annotations

import argparse
from typing import Any


def add_to(commands: Any) -> None:
    """Describe the command."""
    description = "Show, check or change the account of releases that a policy names under [account]."
    parser = commands.add_parser("account", help="what all releases of an account leave", description=description)
    steps = parser.add_subparsers(dest="step", metavar="STEP", required=True, parser_class=type(parser))
    show = steps.add_parser("show", help="list the releases", description="List the releases of the account.")
    check = steps.add_parser(
        "check",
        help="count all releases again",
        description="Count after each release how many candidates and sensitive values remain. Exit code 1 where the "
        "joint promises of the policy are not kept.",
    )
    forget = steps.add_parser(
        "forget",
        help="make a person unrecognizable",
        description="Replace the keyed hash of a person by random bytes; the classes stay, since others share them.",
    )
    for step in (show, check, forget):
        step.add_argument("policy", metavar="POLICY.toml", help="the policy that names the account and its key")
    forget.add_argument("person", metavar="PERSON", help="the person, as the source names them")
    for step in (parser, show, check, forget):
        step.exit_code = 2
    parser.set_defaults(runner=run)


def run(options: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    from duckanon.cli.release_command import exit_code, visible_lines
    from duckanon.job import account_views
    from duckanon.job.run import connection

    def work() -> int:
        is_kept = True
        if options.step == "show":
            lines = account_views.show(options.policy)
        elif options.step == "check":
            lines, is_kept = account_views.check(options.policy)
        else:
            lines = account_views.forget(options.policy, options.person, connection)
        print(visible_lines("\n".join(lines)))
        return 0 if is_kept else 1

    return exit_code(f"duckanon account {options.step}", work)

"""``duckanon workbench``: a policy in the browser, from the columns to the release."""

from __future__ import annotations

import argparse
import sys


def run(options: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    from duckanon.cli.output import complain
    from duckanon.cli.release_command import exit_code

    try:
        from duckanon.workbench import server
    except ModuleNotFoundError as missing:
        complain(f"duckanon workbench: {missing.name} is missing; install it with pip install 'duckanon[workbench]'.")
        return 3

    def say(text: str) -> None:
        print(f"duckanon: {text}", file=sys.stderr, flush=True)

    def work() -> int:
        policy, table = server.policy_of(options.source, options.table, say)
        server.serve(policy, table, port=options.port, open_browser=not options.no_open, say=say)
        return 0

    return exit_code("duckanon workbench", work)

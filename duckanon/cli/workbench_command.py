"""``duckanon workbench``: a policy in the browser, from the columns to the release."""

from __future__ import annotations

import argparse
import sys
from typing import Any


def add_to(commands: Any) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "workbench",
        help="decide a release in the browser",
        description="Open a table, or a policy, in the browser: roles, risk, method, preview and release. It edits the "
        "policy file and nothing else, listens on 127.0.0.1 only, and ends when the last window is closed.",
    )
    parser.exit_code = 2
    parser.add_argument("source", metavar="FILE", help="a DuckDB, Parquet or CSV file, or a policy (.toml)")
    parser.add_argument("--table", metavar="NAME", help="the table of a DuckDB file, or of a policy of several")
    parser.add_argument("--port", type=int, default=0, metavar="PORT", help="the port (default: a free one)")
    parser.add_argument("--no-open", action="store_true", help="print the address, and open no browser")
    parser.set_defaults(runner=run)


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

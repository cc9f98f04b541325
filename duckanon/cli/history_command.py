"""``duckanon history``: compares the records of two runs."""

from __future__ import annotations

import argparse
from typing import Any


def add_to(commands: Any) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "history",
        prog="duckanon history",
        help="compare the records of two releases",
        description="Compare the records of two releases: what changed, and what the difference reveals about "
        "people who came or left.",
    )
    parser.exit_code = 2
    parser.add_argument("old", metavar="OLD.json", help="the record of the older release")
    parser.add_argument("new", metavar="NEW.json", help="the record of the newer release")
    parser.set_defaults(runner=run)


def run(options: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    from duckanon.cli.release_command import exit_code, visible_lines
    from duckanon.job import history, record

    def work() -> int:
        print(visible_lines("\n".join(history.differences(record.read(options.old), record.read(options.new)))))
        return 0

    return exit_code("duckanon history", work)

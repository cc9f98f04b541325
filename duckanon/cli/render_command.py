"""The command ``duckanon render``: a stored plan as SQL for another engine."""

from __future__ import annotations

import argparse
from typing import Any


def add_to(commands: Any) -> None:
    """Add the command and its options."""
    command = commands.add_parser(
        "render",
        prog="duckanon render",
        help="print a stored plan as SQL for another engine",
        description="Print a stored plan as one SELECT for another engine: "
        "duckanon render plan.parquet --dialect snowflake --table clinic.patients --k 10 > release.sql",
    )
    command.add_argument("plan", metavar="PLAN.parquet", help="the plan: COPY (FROM anon.plan(...)) TO 'plan.parquet'")
    command.add_argument("--dialect", required=True, help="the engine, such as postgres, spark, snowflake or bigquery")
    command.add_argument("--table", default="patients", metavar="NAME", help="the table to read (default: patients)")
    command.add_argument("--k", type=int, metavar="K", help="suppress classes of fewer rows, or people with --person")
    command.add_argument("--keep", action="append", metavar="COLUMN", help="another column to release; may be repeated")
    command.add_argument("--person", metavar="COLUMN", help="with --k, the column that identifies people")
    command.add_argument(
        "--type",
        action="append",
        default=[],
        dest="types",
        metavar="COLUMN=TYPE",
        help="the type of a column, where the SQL depends on it; may be repeated",
    )


def run(options: argparse.Namespace) -> str:
    """Return the SQL."""
    from duckanon._render.queries import render

    types = {}
    for pair in options.types:
        name, separator, type_name = pair.rpartition("=")
        if not separator or not name:
            raise ValueError(f"duckanon render: --type must be COLUMN=TYPE such as smoker=VARCHAR; got {pair}.")
        types[name] = type_name
    try:
        return render(
            options.plan, options.dialect, options.table, options.k, options.keep, options.person, types or None
        )
    except ValueError as error:
        raise ValueError(f"duckanon render: {error}") from error

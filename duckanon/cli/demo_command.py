"""``duckanon demo``: the whole workflow on fictitious people, from a table to a released file and its report."""

from __future__ import annotations

import argparse
import hashlib
import json
import secrets
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

FILES = Path(__file__).parent / "demo"
"""The population and the policy, as the package carries them."""

DATABASE, POLICY, KEY, REPORT = "clinic.duckdb", "policy.toml", "key", "report.html"
MADE = ".duckanon-demo.json"
"""The hashes of the files that a demo made, which the next one replaces if they are the same."""
FEWEST = 500
"""People, below which no release of five columns is worth looking at."""


def examples() -> Path:
    """Find the folder of examples: inside the installed package, or beside it in a source tree."""
    package = Path(__file__).parent.parent
    installed = package / "examples"
    return installed if installed.is_dir() else package.parent / "examples"


def run(options: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    from duckanon.cli import output

    folder = Path(options.folder)
    if options.rows < FEWEST:
        raise ValueError(f"duckanon demo: --rows must be a whole number of at least {FEWEST}; got {options.rows}.")
    _make_folder(folder)
    return run_demo(folder, options.rows, output.writer(sys.stdout))


def _make_folder(folder: Path) -> None:
    """Make the folder, or take that of an earlier demo: what somebody made or changed is left alone."""
    hashes = _read_hashes(folder / MADE)
    for name in (DATABASE, POLICY, KEY, MADE):
        path = folder / name
        if path.exists() and (hashes is None or (name != MADE and _hash(path) != hashes.get(name))):
            raise ValueError(
                f"duckanon demo: {folder} has a {name} that is not as a demo left it; name another folder (--to)."
            )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / DATABASE).unlink(missing_ok=True)
    shutil.copyfile(FILES / POLICY, folder / POLICY)
    key = folder / KEY
    key.touch(mode=0o600)
    key.write_text(secrets.token_urlsafe(32), encoding="utf-8")


def _read_hashes(path: Path) -> dict[str, str] | None:
    """Return the hashes of the files that a demo left, by their names; None where it left none."""
    try:
        hashes = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return hashes if isinstance(hashes, dict) else None


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _write_hashes(folder: Path) -> None:
    """Write down the files as they are, so that the next demo can tell them from what somebody made."""
    hashes = {name: _hash(folder / name) for name in (DATABASE, POLICY, KEY)}
    (folder / MADE).write_text(json.dumps(hashes), encoding="utf-8")


def run_demo(folder: Path, people: int, write: Callable[[str], None]) -> int:
    """Run the whole workflow in a folder, and print each step."""
    import duckanon
    from duckanon.cli import assess_command, statements

    write(f"1. A clinic with {people:,} fictitious patients: {folder / DATABASE}\n\n")
    con = duckanon.connect(folder / DATABASE)
    try:
        con.execute(f"SET VARIABLE people = {people}; SET enable_progress_bar = false").fetchall()
        for statement in statements.split(statements.script(FILES / "population.sql")):
            con.execute(statement).fetchall()
        write("2. Who can be singled out by their visits? (duckanon assess)\n\n")
        con.execute("CREATE TEMP VIEW assessed AS FROM visits").fetchall()
        write(assess_command.assessment(con, str(folder / DATABASE), "visits", None, is_last=False) + "\n")
    finally:
        con.close()
    _write_hashes(folder)
    from duckanon import job

    write(f"3. The release by the policy {folder / POLICY} (duckanon release)\n\n")
    record = job.release(folder / POLICY, report=folder / REPORT, show_progress=sys.stderr.isatty())
    for table in record["tables"]:
        write(f"  {table['name']}\n")
        write("".join(f"  {'kept' if kept['passed'] else 'broken'}: {kept['words']}\n" for kept in table["promises"]))
    write("\nWhoever knows more than was promised, measured on the release:\n")
    for row in record["linked"]["exposure"]:
        write(f"  {row['knows']}: {row['unique']:.1%} of the people are unique\n")
    released = ", ".join(str(folder / str(table["output"]["path"])) for table in record["tables"])
    write(f"\nThe release:   {released}\nMore examples: {examples()}\n")
    write(f"The report:    {(folder / REPORT).resolve()}\n")
    return 0

"""The recorded ratios, which stand in the tables of README.md and nowhere else, and what is worse than they are."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.bench.harness import Result

README = Path(__file__).parent / "README.md"
HEADER = ("task", "rows", "ours s", "against", "s", "ratio", "clock", "ours MB", "MB", "ratio")
RULE = ("---", "---:", "---:", "---", "---:", "---:", "---:", "---:", "---:", "---:")
WORSE = 1.3
"""A ratio this many times the recorded one is worse: repeated runs beside other work differ by less."""

ROWS = re.compile(re.escape(f"| {' | '.join(HEADER)} |\n| {' | '.join(RULE)} |\n") + r"((?:\|.*\n)*)")
"""The rows of a table that has this header."""

Key = tuple[str, int]


def table_line(result: Result) -> str:
    """Write a result as a row of the table."""
    cells = (
        result.task,
        f"{result.rows:,}",
        f"{result.ours_seconds:.3f}",
        result.other_is,
        f"{result.other_seconds:.3f}",
        f"{result.ratio:.2f}",
        f"{result.clock_ratio:.2f}",
        f"{result.ours_peak_mb:.0f}",
        f"{result.other_peak_mb:.0f}",
        f"{result.memory_ratio:.2f}",
    )
    return f"| {' | '.join(cells)} |"


def table(lines: Sequence[str]) -> str:
    """Write a table of rows with its header."""
    return "\n".join([f"| {' | '.join(HEADER)} |", f"| {' | '.join(RULE)} |", *lines]) + "\n"


def lines_by_task(page: str) -> dict[Key, str]:
    """Return the rows of all tables of the page that have this header."""
    return {key: line for block in ROWS.findall(page) for key, line in _by_task(block).items()}


def _by_task(block: str) -> dict[Key, str]:
    """Return the rows of one table."""
    cells = ((line, line.strip("| ").split(" | ")) for line in block.splitlines())
    return {(name, int(rows.replace(",", ""))): line for line, (name, rows, *_) in cells}


def recorded_ratios(page: str | None = None) -> dict[Key, float]:
    """Return the recorded ratios of processor seconds, of rows for which they were measured."""
    lines = lines_by_task(README.read_text(encoding="utf-8") if page is None else page)
    cells = {key: [cell.strip() for cell in line.strip("|").split("|")] for key, line in lines.items()}
    return {key: float(row[5]) for key, row in cells.items() if row[5]}


def slower(results: Sequence[Result], ratios: Mapping[Key, float], times: float = WORSE) -> list[Result]:
    """Return the results whose ratio is so many times the recorded one, or more."""
    return [one for one in results if one.ratio > times * ratios.get((one.task, one.rows), float("inf"))]


def record(results: Sequence[Result], page: str) -> str:
    """Return the page with the results in its first table, in the place of earlier rows or at its end."""
    lines = {(result.task, result.rows): table_line(result) for result in results}
    first, *later = ROWS.finditer(page)
    for block in reversed(later):
        left = [line for key, line in _by_task(block[1]).items() if key not in lines]
        page = page[: block.start()] + table(left) + page[block.end() :]
    return page[: first.start()] + table(list({**_by_task(first[1]), **lines}.values())) + page[first.end() :]


def replace_all(results: Sequence[Result], page: str) -> str:
    """Return the page with one table, the results of a whole run, and without rows that were measured earlier."""
    first, *later = ROWS.finditer(page)
    for block in reversed(later):
        heading = page.rfind("\n### ", first.end(), block.start())
        page = page[: heading if heading > 0 else block.start()] + page[block.end() :]
    return page[: first.start()] + table([table_line(result) for result in results]) + page[first.end() :]

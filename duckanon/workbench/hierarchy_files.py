"""Hierarchies of a column: begun with prefixes, ranges, dates or single values, read from files, saved as files."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import duckdb

from duckanon._bridge import sql
from duckanon.job.errors import FileProblem
from duckanon.workbench.bench import Bench
from duckanon.workbench.trees import ANYTHING, Tree, Unfit

_MOST_STEPS = 6
_OTHER = "other"


def prefixes(column: str, longest: int) -> list[str]:
    """Return the levels of texts of which ever fewer letters are shown: `021**`, `02***`."""
    text = f"{sql.name(column)}::VARCHAR"
    return [
        f"left({text}, {length}) || repeat('*', greatest(length({text}) - {length}, 0))"
        for length in range(longest, max(longest - _MOST_STEPS, 0), -1)
    ]


def ranges(column: str, width: float) -> list[str]:
    """Return the levels of numbers in ranges of a width, then of twice that, and so on: `[20, 25)`."""
    number, levels = f"{sql.name(column)}::DOUBLE", []
    for power in range(_MOST_STEPS - 2):
        step = width * 2**power
        low = f"(floor({number} / {step!r}) * {step!r} + 0.0)"
        levels.append(f"format('[{{:.15g}}, {{:.15g}})', {low}, {low} + {step!r})")
    return levels


def dates(column: str) -> list[str]:
    """Return the levels of dates: months, years, ten years."""
    day = f"{sql.name(column)}::DATE"
    return [f"strftime({day}, '%Y-%m')", f"strftime({day}, '%Y')", f"((year({day}) // 10) * 10)::VARCHAR || 's'"]


def begun(bench: Bench, column: str, levels: list[str], con: sql.Connection) -> Tree:
    """Return the hierarchy of all values of a column, with labels by SQL expressions; without any, each value alone."""
    quoted = sql.name(column)
    shown = levels or [f"{quoted}::VARCHAR"]
    names = ", ".join(f"level_{place}" for place, _ in enumerate(shown, 1))
    try:
        rows = con.execute(
            f"SELECT * FROM (SELECT {quoted}::VARCHAR, {_people(bench)}, {', '.join(shown)} FROM people "
            f"WHERE {quoted} IS NOT NULL GROUP BY ALL) AS found(value, people, {names}) "
            "ORDER BY TRY_CAST(value AS DOUBLE) ASC NULLS LAST, value"
        ).fetchall()
    except duckdb.Error as error:
        raise FileProblem(f"{column}: its values cannot be put into such groups ({sql.why(error)}).") from None
    values, people, *labels = map(list, zip(*rows, strict=True)) if rows else ([], [], *([] for _ in shown))
    return Tree.of_labels(values, people, labels)


def opened(bench: Bench, column: str, name: str, con: sql.Connection) -> Tree:
    """Read the hierarchy of a file; values of the table that it does not have are added as `other`."""
    plain = begun(bench, column, [], con)
    path = sql.literal(str(bench.policy.path.parent / name))
    rows = (
        f"read_parquet({path})"
        if name.lower().endswith(".parquet")
        else f"read_csv({path}, all_varchar = true, header = true)"
    )
    try:
        told = con.execute(f"SELECT COLUMNS(*)::VARCHAR FROM {rows}").fetchall()
    except duckdb.Error as error:
        raise FileProblem(f"{name}: the hierarchy cannot be read ({sql.why(error)}).") from None
    labels = {row[0]: [label or ANYTHING for label in row[1:]] for row in told if row[0] is not None}
    if len(labels) < len({row for row in told if row[0] is not None}):
        raise FileProblem(f"{name}: it must give each value one label of each level.")
    depth = max(map(len, labels.values()), default=0)
    if depth and all(row[-1] == ANYTHING for row in labels.values()):
        depth -= 1
    if not depth:
        return plain
    people = dict(zip(plain.values, plain.people, strict=True))
    values = [*plain.values, *(value for value in labels if value not in people)]
    of_values = [labels.get(value, [_OTHER] * depth)[:depth] for value in values]
    try:
        return Tree.of_labels(values, [people.get(value, 0) for value in values], list(zip(*of_values, strict=True)))
    except Unfit as error:
        raise FileProblem(f"{name}: it is no tree that can be changed here: {error}") from None


def save(bench: Bench, column: str, tree: Tree) -> str:
    """Write a hierarchy beside the policy, and return the name of its file.

    No file is overwritten: a release that runs, and the policy before an undo, name the former one. One that says the
    same is taken.
    """
    levels = [f"level_{place}" for place, _ in enumerate(tree.levels, 1)]
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerows([("value", *levels, "everything"), *tree.labels()])
    folder, stem = bench.policy.path.parent, re.sub(r"\W+", "_", column)
    number, text = 1, written.getvalue()
    while True:
        path = folder / (f"{stem}_hierarchy.csv" if number == 1 else f"{stem}_hierarchy_{number}.csv")
        try:
            if path.exists() and path.read_text(encoding="utf-8") == text:
                return path.name
            with path.open("x", encoding="utf-8", newline="") as file:
                file.write(text)
            return path.name
        except (FileExistsError, UnicodeDecodeError):
            number += 1
        except OSError as error:
            raise FileProblem(f"{Path(path.name)}: the hierarchy cannot be written ({error.strerror}).") from None


def _people(bench: Bench) -> str:
    person = bench.policy.table().person
    return f"count(DISTINCT {sql.name(person)})" if person else "count(*)"

"""The same call on the same table said otherwise: what a declaration calls `InvariantUnder` and `CountsPeople`.

A change makes another table of the one that a call is about; the call with the name of that one must then return the
same rows, in any order. What was made of the table before, such as a release, stays. Faces other than SQL are
in `tests.seams.faces`.
"""

from __future__ import annotations

import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from duckanon._core.common.contracts import CountsPeople, InvariantUnder
from tests.awkward import PARAMETERS, RESULTS, quoted
from tests.oracles.call import ROW, Rows
from tests.seams.bench import Bench
from tests.seams.draws import Drawn
from tests.seams.literals import sql_of
from tests.seams.matrix import Place
from tests.seams.outcomes import Outcome, run

OURS = ["_duckanon_row", "_duckanon_one", "_duckanon_number", "_duckanon_rows", "_duckanon_sizes", "_duckanon_size"]
"""Names of steps and columns in macros."""

OTHER_TABLES = ("boxed", "plan", "partition", "published", "box_table", "previous", "original", "reference", "holdout")
OTHER_TABLES += (
    "control",
    "released",
    "releases",
    "draws",
    "population",
    "hierarchy",
    "hierarchies",
    "tables",
    "people",
)
"""Options that may name another table than the one that a call is about."""

PREFIX = "same_"
"""What the names of columns begin with where they are others: their order stays, which decides between equals."""

LOOSE = {"worst_class", "why", "column_type", "table_name", "unique_growth", "determined_by", "determines"}
LOOSE |= {"lower_looseness", "upper_looseness"}
"""Columns that name one of several equals, the table, or its types, or say how far a search was from its end."""


@dataclass(frozen=True)
class Change:
    """Another way to say a table: the query of its rows, and what it becomes."""

    name: str
    query: str
    kind: str = "TABLE"  # TABLE, VIEW, cte, files or arrow
    columns: tuple[str, ...] | None = None  # the columns of the answer that are to be the same; None: all
    added: tuple[str, ...] = ()  # columns that the table has in addition: a sentence may refuse one of them by its name
    renamed: tuple[str, ...] = ()  # columns whose names begin with PREFIX in the changed table


THE_SAME = Change("the same", "")


def changes(bench: Bench, table: str, promise: Any, has_person: bool) -> Iterator[Change]:
    """Return the changes that a promise allows."""
    rows = bench.rows_of(table)
    source = f"FROM {quoted(table)}"
    if isinstance(promise, CountsPeople) and has_person and rows.has(bench.table.person or ""):
        person = quoted(str(bench.table.person))
        nobody = f"SELECT * REPLACE (NULL AS {person}) {source}"
        yield Change("every row twice", f"{source} UNION ALL {source}", columns=promise.columns)
        yield Change("rows of nobody", f"{source} UNION ALL {nobody}", columns=promise.columns)
    if not isinstance(promise, InvariantUnder):
        return
    quoted_names = [quoted(one) for one in rows.columns]
    whole = [one for one in rows.columns if rows.types[one] == "INTEGER" and one != ROW]
    number = zlib.crc32(f"{table} {promise}".encode())
    if "order" in promise.changes:
        yield Change("another order", f"FROM (SELECT * {source} AS t ORDER BY md5(t::VARCHAR), {quoted_names[0]} DESC)")
    if "storage" in promise.changes:
        yield Change(f"stored as {_KINDS[number % 4]}", source, _KINDS[number % 4])
        if whole and "types" not in promise.changes:
            yield _whole_numbers_as(["BIGINT", "DECIMAL(12, 0)"][number % 2], whole, source)
    if "columns" in promise.changes:
        yield Change("columns in another order", f"SELECT {', '.join(reversed(quoted_names))} {source}")
        renamed = tuple(one for one in rows.columns if (table, one) != (f"{bench.name}_boxed", "box"))
        others = ", ".join(f"{quoted(one)} AS {quoted(PREFIX + one)}" for one in renamed)
        yield Change("columns under other names", f"SELECT * RENAME ({others}) {source}", renamed=renamed)
    if "others" in promise.changes:
        lower = {one.lower() for one in rows.columns}
        for name, names in {
            "other columns": [*PARAMETERS, *RESULTS, "n", "t", "i"],
            "columns called as ours": OURS,
        }.items():
            added = [one for one in names if one.lower() not in lower]
            more = ", ".join(f"'x' AS {quoted(one)}" for one in added)
            yield Change(name, f"SELECT *, {more} {source}", added=tuple(added))
    if "types" in promise.changes and whole:
        yield _whole_numbers_as(["BIGINT", "DECIMAL(12, 0)", "DOUBLE"][number % 3], whole, source)


def _whole_numbers_as(kind: str, columns: list[str], source: str) -> Change:
    replaced = ", ".join(f"{quoted(one)}::{kind} AS {quoted(one)}" for one in columns)
    return Change(f"whole numbers as {kind}", f"SELECT * REPLACE ({replaced}) {source}")


_KINDS = ["VIEW", "cte", "files", "arrow"]
"""Ways to store a table; ``files`` are two that have half of the rows each."""


def differences(bench: Bench, place: Place, folder: Path, which: Callable[[Change], bool]) -> Iterator[tuple[str, str]]:
    """Make the call of a place, then on changed tables; return each change whose rows differ, and the statement."""
    drawn = place.drawn(bench)
    table = _table_of(drawn)
    if table is None or f"'{table}'" not in drawn.statement or "'*'" in drawn.statement:
        return
    base = run(bench, drawn)
    if base.rows is None:
        return
    has_others = any(_is_other(drawn.options.get(one), table) for one in OTHER_TABLES)
    for promise in place.declaration.promises:
        for change in changes(bench, table, promise, bool(drawn.options.get("person"))):
            if which(change) and not (change.renamed and has_others):
                changed = _run_changed(bench, drawn, table, change, folder)
                if fault := difference(base.rows, changed, change):
                    yield change.name, f"{changed.drawn.statement}\n    {fault}"


def _table_of(drawn: Drawn) -> str | None:
    """Return the table that a call is about."""
    named = (drawn.options.get(name) for name in ("tbl", "original", "boxed", "published", "released"))
    return next((str(name) for name in named if isinstance(name, str)), None)


def _is_other(given: Any, table: str) -> bool:
    """Tell whether an option names another table, whose columns keep their names."""
    return isinstance(given, str | list | dict) and given != table


def _run_changed(bench: Bench, drawn: Drawn, table: str, change: Change, folder: Path) -> Outcome:
    """Make a changed table, and the call on it."""
    con, other = bench.con, f"{table}_otherwise"
    statement = drawn.statement.replace(f"'{table}'", f"'{other}'")
    halves = [folder / f"{abs(hash(other))}_{half}.parquet" for half in (1, 2)]
    for name in change.renamed:
        statement = statement.replace(sql_of(name), sql_of(PREFIX + name)).replace(quoted(name), quoted(PREFIX + name))
    if change.kind in ("TABLE", "VIEW"):
        con.execute(f"CREATE OR REPLACE {change.kind} {quoted(other)} AS {change.query}").fetchall()
    elif change.kind == "cte":
        statement = f"WITH {quoted(other)} AS (SELECT * {change.query}) {statement}"
    elif change.kind == "files":
        ((size,),) = con.execute(f"SELECT count(*) // 2 FROM ({change.query})").fetchall()
        for path, part in zip(halves, (f"LIMIT {size}", f"OFFSET {size}"), strict=True):
            con.execute(f"COPY (FROM ({change.query}) {part}) TO '{path}'").fetchall()
        statement = drawn.statement.replace(f"'{table}'", f"'{halves[0].as_posix().replace('_1.', '_*.')}'")
    else:
        con.register(other, con.sql(change.query).to_arrow_table())
    try:
        return run(bench, replace(drawn, statement=statement))
    finally:
        con.execute("SELECT 1").fetchall()  # what was refused may have left a result
        if change.kind in ("TABLE", "VIEW"):
            con.execute(f"DROP {change.kind} {quoted(other)}").fetchall()
        elif change.kind == "arrow":
            con.unregister(other)
        for path in halves:
            path.unlink(missing_ok=True)


def difference(base: Rows, changed: Outcome, change: Change = THE_SAME) -> str | None:
    """Say how rows differ from others in any order, in some columns or all."""
    if changed.rows is None:
        refusal = str(changed.refusal)
        names_added = any(f'"{one}"' in refusal or f"got {one}" in refusal for one in change.added)
        return None if names_added and not changed.faults else f"refused: {refusal[:200]}"
    after_rows = _under_their_names(changed.rows) if change.renamed else changed.rows
    columns = [one for one in change.columns or base.columns if one not in LOOSE]
    if missing := [one for one in columns if not after_rows.has(one)]:
        return f"the columns {missing} are missing"
    before, after = (_bag(rows, columns) for rows in (base, after_rows))
    if before == after:
        return None
    return f"{columns}: {list((before - after).elements())[:2]} became {list((after - before).elements())[:2]}"[:400]


def _under_their_names(rows: Rows) -> Rows:
    """Take PREFIX from names, in columns and in what the rows say of columns."""
    names = [one.removeprefix(PREFIX) for one in rows.columns]
    return Rows(
        names, dict(zip(names, rows.types.values(), strict=True)), [tuple(map(_unprefixed, r)) for r in rows.rows]
    )


def _unprefixed(value: Any) -> Any:
    match value:
        case str():
            return value.replace(PREFIX, "")
        case dict():
            return {_unprefixed(name): _unprefixed(one) for name, one in value.items()}
        case list() | tuple():
            return [_unprefixed(one) for one in value]
    return value


def _bag(rows: Rows, columns: list[str]) -> Counter[str]:
    values = zip(*(rows.column(one) for one in columns), strict=True)
    return Counter(json.dumps(list(map(_norm, row)), sort_keys=True) for row in values)


def _norm(value: Any) -> Any:
    """Write a value so that numbers of all types are the same, and sums of floats in another order, too."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, dict):
        return {str(name): _norm(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return list(map(_norm, value))
    text = str(value)
    if not re.fullmatch(r"-?\d+(\.\d*)?(e[+-]?\d+)?", text, re.IGNORECASE):
        return text
    return "0" if abs(float(text)) < 1e-12 else f"{float(text):.6g}"

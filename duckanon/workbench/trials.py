"""Methods tried on the sample: what a release would lose, what a recipient would see, what kept columns still tell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import duckdb

from duckanon._bridge import sql
from duckanon._core.common.release_record import TableEntry
from duckanon.job import methods, readback, refusals
from duckanon.job.errors import PolicyError
from duckanon.job.policy import Table
from duckanon.workbench.bench import Bench
from duckanon.workbench.works import Work

KS = (3, 5, 10, 20, 50)
"""Sizes of classes on the curve of losses."""

METHODS = {
    "generalize": "coarser labels, the same for everybody: easy to analyse",
    "recode": "labels class by class: as fine as each class allows, which costs time",
    "suppress_cells": "values stay as they are, single cells become empty",
    "microaggregate": "numbers become means of groups of k",
    "boxes": "numbers become intervals that keep chosen statistics",
    "synthesize": "new records that belong to nobody, with the statistics of the table",
}
"""Methods that the workbench offers, in words."""

_COMPARED = 2_000
"""People on whom methods are compared."""

_SHOWN = 10
"""Rows of a preview."""

_DROPPED = {"role": "drop"}
_NUMBERS = ("microaggregate", "boxes")


@dataclass
class Preview:
    """The same columns before and after, and how many people each kept column leaves, on the sample."""

    columns: list[str]
    before: list[tuple[Any, ...]]
    after_columns: list[str]
    after: list[tuple[Any, ...]]
    kept: list[tuple[str, int]] = field(default_factory=list)
    loss: float | None = None
    suppressed: int = 0
    rows: int = 0


@dataclass(frozen=True)
class Compared:
    """A method on the risk-utility map."""

    method: str
    # chance to find a person, on average; of new records the share of unique people who were copied more than others
    risk: float
    loss: float  # how well a classifier tells the release from the original: 0 not at all, 1 always
    failed: str | None = None


def fitting(bench: Bench) -> list[str]:
    """Return the methods that fit the columns that others may know."""
    kinds = {one.name: one.kind for one in bench.glances}
    chosen = bench.quasi_identifiers()
    are_numbers = bool(chosen) and all(kinds.get(name) == "numeric" for name in chosen)
    return [name for name in METHODS if name not in _NUMBERS or are_numbers]


def hierarchies(con: sql.Connection, bench: Bench) -> dict[str, str]:
    """Load the hierarchies that the policy names, and return their tables by column."""
    tables = {}
    for place, (column, (path, *_)) in enumerate(bench.policy.table().hierarchies.items(), 1):
        quoted = sql.literal(str(bench.policy.path.parent / path))
        rows = f"read_parquet({quoted})" if path.endswith(".parquet") else f"read_csv({quoted}, all_varchar = true)"
        con.execute(f"CREATE OR REPLACE TEMP TABLE tried_hierarchy_{place} AS FROM {rows}").fetchall()
        tables[column] = f"tried_hierarchy_{place}"
    return tables


def _only_protected(table: Table) -> Table:
    """Leave out kept columns, which change no label, but for sensitive ones that classes are shaped for."""
    is_shaped = table.promises.l is not None or table.promises.t is not None
    left = ("quasi_identifier", "person", *(("sensitive",) if is_shaped else ()))
    columns = {
        name: column if column.role in left else column.model_copy(update=_DROPPED)
        for name, column in table.columns.items()
    }
    return table.model_copy(update={"columns": columns})


def release(con: sql.Connection, table: Table, source: str, target: str, trees: dict[str, str]) -> None:
    """Release a table of the connection into a temporary one, as the job would."""
    if not table.protected:
        raise PolicyError("No column is declared as one that others may know: decide the columns first.")
    if table.is_linked:
        raise PolicyError("Tables of events are released together: their release is not tried on a sample.")
    if table.method.makes_classes and table.promises.k is None:
        raise PolicyError("k is not promised: choose it first.")
    trees = {column: name for column, name in trees.items() if column in table.protected}
    con.execute(f"CREATE OR REPLACE TEMP TABLE {target} AS {methods.call(table, source, trees)}").fetchall()


def loss(con: sql.Connection, table: Table, original: str, released: str, trees: dict[str, str]) -> tuple[float, int]:
    """Return the information loss of a release of classes, and the rows that it suppressed."""
    columns = methods.columns_to_protect(table)
    option = f", hierarchies := {sql.literal(trees)}" if trees else ""
    row = sql.fetch_row(
        con,
        f"SELECT ncp, suppressed_rows FROM anon.generalization_loss({sql.literal(original)}, {sql.literal(released)}, "
        f"{sql.literal(columns)}, k := {table.promises.k}{option}) WHERE column_name IS NULL",
    )
    return float(row[0] or 0), int(row[1] or 0)


def curve(bench: Bench) -> Callable[[Work], list[tuple[int, float, int]]]:
    """Return work that measures the loss for each k, point by point."""

    def do(work: Work) -> list[tuple[int, float, int]]:
        con = work.cursor(bench.con)
        bench.sample(con)
        trees, points = hierarchies(con, bench), []
        for k in KS:
            work.say(f"k = {k}")
            table = _only_protected(bench.trial(k=k))
            release(con, table, "sample", "tried", trees)
            points.append((k, *loss(con, table, "sample", "tried", trees)))
            work.result = list(points)
        return points

    return do


def comparison(bench: Bench) -> Callable[[Work], list[Compared]]:
    """Return work that compares the methods that fit, on a small sample, one after the other."""

    def do(work: Work) -> list[Compared]:
        con = work.cursor(bench.con)
        bench.sample(con)
        person = sql.quote(bench.policy.table().person or "rowid")
        for half, name in enumerate(("compared", "other_people")):  # nobody is in both
            con.execute(
                f"CREATE OR REPLACE TEMP TABLE {name} AS FROM sample WHERE hash({person}) % 2 = {half} "
                f"ORDER BY hash({person}), rowid LIMIT {_COMPARED}"
            ).fetchall()
        trees, results = hierarchies(con, bench), []
        for name in fitting(bench):
            work.say(f"trying {name}")
            results.append(_compare_methods(con, bench, name, trees))
            work.result = list(results)
        return results

    return do


def _compare_methods(con: sql.Connection, bench: Bench, name: str, trees: dict[str, str]) -> Compared:
    """Try a method on the small sample; a refusal is told and hides no other method."""
    base = _only_protected(bench.trial(l=None, t=None))
    columns = base.with_roles("quasi_identifier")
    model = next(one for one in _models() if one.model_fields["name"].annotation.__args__[0] == name)
    table = base.model_copy(
        update={
            "method": model(name=name),
        }
    )
    try:
        used = {} if name == "synthesize" else trees
        release(con, table, "compared", "tried", used)
        option = f", hierarchies := {sql.literal(used)}" if used else ""
        measured = con.execute(
            f"SELECT measure, value, reference_value FROM anon.compare_releases('compared', MAP {{'it': 'tried'}}, "
            f"{sql.literal(columns)}, reference := 'other_people', seed := 1{option})"
        ).fetchall()
        rows = {measure: (value or 0.0, reference or 0.0) for measure, value, reference in measured}
        if table.method.makes_classes:
            nulls = ", nulls := 'any'" if name == "suppress_cells" and not table.person else ""
            risk = sql.fetch_row(
                con,
                "SELECT sum(rows / greatest(class_size, 1)) / sum(rows) "
                f"FROM anon.class_sizes('tried', {sql.literal(columns)}{nulls})",
            )[0]
        else:
            risk = max(rows["unique_copies"][0] - rows["unique_copies"][1], 0)
        return Compared(name, float(risk or 0), min(max(2 * float(rows["detectability"][0]) - 1, 0), 1))
    except duckdb.InterruptException:
        raise
    except (duckdb.Error, KeyError) as error:
        why = sql.reason(error)
        return Compared(name, 0, 0, why.partition(": ")[2] or why)


def _models() -> tuple[Any, ...]:
    from duckanon.job.policy_methods import Boxes, Generalize, Microaggregate, Recode, SuppressCells, Synthesize

    return (Generalize, Recode, SuppressCells, Microaggregate, Boxes, Synthesize)


def preview(bench: Bench) -> Callable[[Work], Preview]:
    """Return work that releases the sample, and shows some of its rows before and after."""

    def do(work: Work) -> Preview:
        con = work.cursor(bench.con)
        bench.sample(con)
        table, trees = bench.trial(), hierarchies(con, bench)
        work.say(f"{table.method.name} of the sample")
        file = bench.policy.file()
        with refusals.translate_errors(file, bench.policy.name):
            release(con, table, "sample", "tried", trees)
        work.say("looking at what kept columns tell")
        kept = {*table.protected, *methods.columns_to_keep(table)} - {table.person}
        shown = [name for name in table.columns if name in kept]
        before = con.execute(
            f"SELECT {sql.quote_all(shown)} FROM sample ORDER BY hash(rowid, 7) LIMIT {_SHOWN}"
        ).fetchall()
        names = [name for name in readback.in_order(table, _columns(con)) if name != table.person]
        after = con.execute(
            f"SELECT {sql.quote_all(names)} FROM tried ORDER BY hash(rowid, 7) LIMIT {_SHOWN}"
        ).fetchall()
        result = Preview(shown, before, names, after)
        result.rows = int(sql.fetch_row(con, "SELECT count(*) FROM tried")[0])
        if table.method.makes_classes:
            result.loss, result.suppressed = loss(con, table, "sample", "tried", trees)
            result.kept = count_kept_columns(con, table)
        return result

    return do


def _columns(con: sql.Connection) -> list[str]:
    return list(sql.columns(con, "tried"))


def count_kept_columns(con: sql.Connection, table: Table) -> list[tuple[str, int]]:
    """Return how many people each kept column leaves to somebody who knows it and the protected ones, fewest first."""
    there = _columns(con)
    classes = [name for name in methods.columns_to_protect(table) if name in there]
    person = table.person if table.person in there else None
    counts = [
        (
            name,
            int(
                sql.fetch_row(
                    con,
                    f"SELECT k FROM anon.k_anonymity('tried', {sql.literal([*classes, name])}, "
                    f"person := {sql.literal(person)})",
                )[0]
            ),
        )
        for name in table.with_roles("sensitive", "free")
        if name in there and classes
    ]
    return sorted(counts, key=lambda one: one[1])


def distribution(bench: Bench, column: str) -> Callable[[Work], list[dict[str, Any]]]:
    """Return work that compares a column's distribution in the sample and in its release."""

    def do(work: Work) -> list[dict[str, Any]]:
        from duckanon.report.pictures import distribution_rows
        from duckanon.report.tables import Pair, find_erased_columns

        con = work.cursor(bench.con)
        bench.sample(con)
        table, trees = bench.trial(), hierarchies(con, bench)
        work.say(f"{table.method.name} of the sample")
        release(con, table, "sample", "tried", trees)
        columns: Sequence[dict[str, str]] = [{"name": column, "role": "quasi_identifier", "treatment": ""}]
        entry = cast(TableEntry, {"name": "sample", "columns": columns, "method": {"name": table.method.name}})
        pair = Pair(con, "sample", "tried", entry, {name: tree for name, tree in trees.items() if name == column})
        if find_erased_columns(pair):
            raise PolicyError(f"{column} is erased: every row of the release says the same there.")
        return distribution_rows(pair, [column], bench.least_shown)

    return do

"""Aggregate tables in the job: counts and sums with margins, audited on the written file as a reader sees it.

Hierarchies of a released table in its record, by places of labels: a reader restores them from the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb

from duckanon._bridge import sql
from duckanon._core.common.labels import TOTAL
from duckanon._core.common.release_record import CellsEntry, MarginEntry, SuppressedEntry, TableEntry
from duckanon.job import methods, readback
from duckanon.job.errors import FileProblem
from duckanon.job.keys import Secret
from duckanon.job.policy import Table, source_format
from duckanon.job.promises import Promise, Tables

Trees = Mapping[str, list[str]]
"""Names of tables with hierarchies, by column."""

_ALL = -1
"""The place of a label that the file does not have: that of the group of all values, which is the total."""


def encode_hierarchies(con: sql.Connection, rows: str, trees: Trees) -> dict[str, list[str]]:
    """Return, for each column and hierarchy, the place of each value among the file's labels, then its groups' places.

    They say what belongs together, and no label: a record holds no value of the data.
    """
    texts: dict[str, list[str]] = {}
    for column, tables in trees.items():
        places = {label: place for place, label in enumerate(_labels(con, rows, column))}
        for table in tables:
            lines = [
                [places[labels[0]], *(places.get(label, _ALL) for label in labels[1:])]
                for (labels,) in con.execute(
                    f"SELECT labels FROM anon._hierarchy('hierarchies', '', {sql.literal(table)})"
                ).fetchall()
                if labels[0] in places
            ]
            texts.setdefault(column, []).append("; ".join(" ".join(map(str, line)) for line in sorted(lines)))
    return texts


def restore_hierarchies(con: sql.Connection, rows: str, entry: CellsEntry) -> Trees:
    """Write the hierarchies of a record as tables, with the labels of the file, and return their names."""
    trees: dict[str, list[str]] = {}
    for column, texts in entry.get("hierarchies", {}).items():
        labels = [*_labels(con, rows, column), None]  # the last one, whose place is -1, is of no other group
        for number, text in enumerate(filter(None, texts), 1):
            try:
                lines = [[labels[int(place)] for place in line.split()] for line in text.split(";")]
            except (ValueError, IndexError):
                raise FileProblem(f"the record's hierarchies of {column} are not those of the file.") from None
            name = f"{rows}_{len(trees)}_{number}"
            values = ", ".join(f"({', '.join(map(sql.literal, line))})" for line in lines)
            con.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS FROM (VALUES {values})").fetchall()
            trees.setdefault(column, []).append(name)
    return trees


def _labels(con: sql.Connection, rows: str, column: str) -> list[str | None]:
    """Return the labels of a column of the file, in an order that depends on no setting."""
    quoted = sql.quote(column)
    labels = con.execute(f"SELECT DISTINCT {quoted}::VARCHAR FROM {rows}").fetchall()
    return sorted((label for (label,) in labels), key=lambda label: (label is None, label or ""))


_TOTAL = sql.literal(TOTAL)
ADDED = ("people", "value", "max_deviation", "published", "interval_checked")
_CATALOG = "previous_cells"
_ROUNDING = 1e-6

Fault = tuple[tuple[str, ...], str]


def is_keyed(table: Table) -> bool:
    """Tell whether the numbers of a table come from the key of the policy."""
    return table.method.makes_cells and getattr(table.method, "method", None) in ("round", "cell_key")


def check_roles(table: Table) -> Iterator[Fault]:
    """Find columns that an aggregate table cannot have, and columns of its options that have other roles."""
    measure = getattr(table.method, "measure", None)
    listed = [getattr(table.method, "by", None) or [], *(getattr(table.method, "linked", None) or [])]
    if not table.protected:
        yield (("columns",), "columns must have a quasi_identifier for protect_table to tabulate.")
    for name in (name for names in listed for name in names):
        if name not in table.protected:
            yield (("method",), f"method: {name} must have the role quasi_identifier to be a column of the table.")
    for name, column in table.columns.items():
        is_used = column.role in ("identifier", "drop", "person", "quasi_identifier") or name == measure
        if not is_used or column.is_pseudonym:
            yield (
                ("columns", name),
                f"columns.{name}: an aggregate table shows no rows; the role must be quasi_identifier, person, "
                "identifier or drop, and that of the measure sensitive or numeric.",
            )
    if measure is not None and measure not in table.with_roles("sensitive", "numeric"):
        yield (("method", "measure"), f"method.measure: {measure} must have the role sensitive or numeric.")
    if any(name.lower() in ADDED for name in table.protected):
        yield (("columns",), f"columns must not be called {', '.join(ADDED)}, as the release's own; rename them.")


def check_promises(table: Table) -> Iterator[Fault]:
    """Find promises that are missing."""
    if table.promises.k is None:
        yield (("promises",), "promises.k must say how many people every shown cell of protect_table has.")


def call(table: Table, tables: Tables, previous: str | None, key: Secret | None) -> str:
    """Write the call that makes the table."""
    options = methods.parameters(table) | {"previous": previous}
    by = options.pop("by")
    if table.person:
        options["person"] = table.person
    if tables.trees:
        options["hierarchies"] = tables.trees
    if key and is_keyed(table):
        options["key"] = key.reveal()
    by_name = [f"{sql.quote(name)} := {sql.literal(value)}" for name, value in options.items() if value is not None]
    arguments = [sql.literal(tables.original), sql.literal(by), *by_name]
    return f"FROM anon.protect_table({', '.join(arguments)}) ORDER BY ALL ASC NULLS LAST"


def load_previous(con: sql.Connection, path: Path, target: Path | None, name: str) -> str | None:
    """Read the table that was given away before; None where it is the target of a job that runs for the first time."""
    if not path.exists():
        if target is not None and path.absolute() == target.absolute():
            return None
        raise FileProblem(f"{path}: there is no such file; method.previous names a release of the same table.")
    place, kind = sql.literal(str(path)), source_format(str(path))
    try:
        if kind == "duckdb":
            con.execute(f"ATTACH {place} AS {_CATALOG} (READ_ONLY)").fetchall()
            (table,) = sql.fetch_row(
                con, f"SELECT min(table_name) FROM duckdb_tables() WHERE database_name = '{_CATALOG}'"
            )
            rows = f"{_CATALOG}.main.{sql.quote(str(table))}"
        else:
            rows = f"({readback.read_csv_release(path)})" if kind == "csv" else f"read_parquet({place})"
        con.execute(f"CREATE TABLE {name} AS FROM {rows}").fetchall()
    except duckdb.Error as error:
        raise FileProblem(f"{path}: the previous release cannot be read ({sql.reason(error)}).") from None
    finally:
        con.execute(f"DETACH DATABASE IF EXISTS {_CATALOG}").fetchall()
    return name


def overlaps(con: sql.Connection, table: Table, original: str) -> bool:
    """Tell whether somebody contributes to several inner cells: a margin has fewer people than its parts together."""
    if not table.person:
        return False
    person, measure = sql.quote(table.person), getattr(table.method, "measure", None)
    contributes = f"{person} IS NOT NULL" + (f" AND {sql.quote(measure)} IS NOT NULL" if measure else "")
    cells = f"count(DISTINCT row({sql.quote_all(table.protected)}))"
    return bool(
        sql.fetch_row(
            con,
            f"SELECT count(*) > 0 FROM (SELECT {cells} AS n FROM {original} WHERE {contributes} "
            f"GROUP BY {person} HAVING n > 1)",
        )[0]
    )


def audit(
    rows: str,
    options: Mapping[str, Any],
    trees: Trees | None,
    value: str = "value",
    original: Mapping[str, str | None] | None = None,
) -> str:
    """Write the audit of a released table, from the parameters that its record has; `original` are further ones."""
    arguments = {
        "value": value,
        "people": "people" if options.get("measure") and value == "value" else None,
        "k": options["k"],
        "p": options.get("p"),
        "linked": options.get("linked"),
        "hierarchies": trees or None,
        "overlapping": options["overlapping"] or None,
        **(original or {}),
    }
    by_name = [f"{sql.quote(name)} := {sql.literal(item)}" for name, item in arguments.items() if item is not None]
    return f"anon.audit_table({', '.join([sql.literal(rows), sql.literal(options['by']), *by_name])})"


def open_cells(
    con: sql.Connection,
    rows: str,
    options: Mapping[str, Any],
    trees: Trees | None,
    original: Mapping[str, str | None] | None = None,
) -> int:
    """Count the cells that a reader of the file finds open; beside sums, the numbers of people are audited too.

    How far a sum has to be uncertain only the `original` tells: without it, narrow intervals of sums are not counted.
    """
    of_sums = bool(options.get("measure"))
    audited = audit(rows, options, trees, original=original if of_sums else None)
    con.execute(f"CREATE OR REPLACE TEMP TABLE {_audit_table(rows)} AS FROM {audited}").fetchall()
    counted = "fault <> 'narrow'" if of_sums and original is None else "fault IS NOT NULL"
    count = int(sql.fetch_row(con, f"SELECT count(*) FROM {_audit_table(rows)} WHERE {counted}")[0])
    if of_sums and sql.fetch_row(con, f"SELECT count(people) FROM {rows}")[0]:
        count += int(sql.fetch_row(con, f"SELECT count(fault) FROM {audit(rows, options, trees, 'people')}")[0])
    return count


def _audit_table(rows: str) -> str:
    """Return the name of the table with the audit of the released values."""
    return f"{rows}_audited"


def smallest(con: sql.Connection, rows: str) -> int | None:
    """Return the number of people of the smallest cell that is shown; None where no number of people is."""
    people: int | None = sql.fetch_row(con, f"SELECT min(people::BIGINT) FROM {rows}")[0]
    return people


def measure_hidden_value(con: sql.Connection, rows: str, options: Mapping[str, Any], trees: Trees | None) -> float:
    """Return the largest share of the value of a table's inner cells that is hidden, as a reader of the file counts it.

    Where that cannot be counted, since sums are negative or people are in several cells, it is the share of the cells.
    """
    columns = _columns(options)
    shares: list[float] = []
    for names in [options["by"], *(options.get("linked") or [])]:
        total, count, hidden, shown, least = sql.fetch_row(
            con,
            f"SELECT max(value::DOUBLE) FILTER ({_is_margin(columns, [], {})}), count(*) FILTER (is_inner), "
            f"count(*) FILTER (is_inner AND value IS NULL), coalesce(sum(value::DOUBLE) FILTER (is_inner), 0), "
            f"min(value::DOUBLE) FROM (SELECT *, {_is_margin(columns, names, trees or {})} AS is_inner "
            f"FROM {rows})",
        )
        is_counted = total and least >= 0 and not options["overlapping"]
        shares.append(max(0.0, 1 - shown / total) if is_counted else hidden / max(count, 1))
    return max(shares)


def count_cell_promises(
    con: sql.Connection, table: Table, tables: Tables, options: Mapping[str, Any]
) -> Iterator[Promise]:
    """Count what the policy promises of an aggregate table, all of it on what a reader sees."""
    helpful = "a smaller k, fewer or coarser columns, or hierarchies without levels that nobody needs"
    count = smallest(con, tables.counted)
    if count is not None:
        words = f"Every shown cell has at least {count} people."
        yield Promise("k", options["k"], count, count >= options["k"], words, helpful)
    if options.get("method") != "cell_key":  # whose margins have noise of their own, and add up to nothing
        original = {"original": tables.original, "measure": options.get("measure"), "person": table.person}
        cells = open_cells(con, tables.counted, options, tables.trees, original)
        words = (
            f"{cells} hidden {'cell' if cells == 1 else 'cells'} can be computed from the whole table, or too closely."
            if cells
            else "No hidden cell can be computed from the whole table, nor be known too closely."
        )
        yield Promise("open_cells", 0, cells, cells == 0, words, helpful)
    share, limit = measure_hidden_value(con, tables.counted, options, tables.trees), options["max_suppressed_fraction"]
    words = f"{share:.4%} of the value of the inner cells is hidden (limit {limit:.4%})."
    yield Promise("max_suppressed_fraction", limit, share, share <= limit, words, helpful)


def recount_promise(con: sql.Connection, rows: str, promise: str, entry: TableEntry) -> float | None:
    """Count a promise from the file and the hierarchies that the record has of its labels."""
    if promise == "k":
        return smallest(con, rows)
    options, trees = entry["method"]["parameters"], restore_hierarchies(con, rows, entry["cells"])
    return (
        open_cells(con, rows, options, trees)
        if promise == "open_cells"
        else measure_hidden_value(con, rows, options, trees)
    )


def find_miscounts(con: sql.Connection, rows: str, recorded: TableEntry) -> list[str]:
    """Return what the record says otherwise of the cells than the file; of sums only the original tells intervals."""
    options, cells = recorded["method"]["parameters"], recorded["cells"]
    trees = {name: list(tables) for name, tables in restore_hierarchies(con, rows, cells).items()}
    counted = entry(con, Tables(rows, rows, rows, None, trees), options)
    is_promised = "k" in (promise["name"] for promise in recorded["promises"])
    if not is_promised and smallest(con, rows) is not None:
        return ["people, and k is not promised"]
    of_file = ["cells", "hidden", "margins", "max_deviation"]
    of_file += [] if options.get("measure") else ["faults", "narrowest_interval", "median_interval"]
    return [name for name in of_file if not _alike(counted[name], cells[name])]  # type: ignore[literal-required]


def _alike(item: Any, peer: Any) -> bool:
    """Compare numbers, and what has numbers in it, up to the order in which sums were added."""
    if isinstance(item, dict) and isinstance(peer, dict):
        return item.keys() == peer.keys() and all(_alike(value, peer[name]) for name, value in item.items())
    if isinstance(item, list) and isinstance(peer, list):
        return len(item) == len(peer) and all(map(_alike, item, peer))
    return bool(item == peer or (isinstance(item, float) and isinstance(peer, float) and abs(item - peer) < _ROUNDING))


def suppression_entry(con: sql.Connection, tables: Tables, options: Mapping[str, Any]) -> SuppressedEntry:
    """Return the share of the value that is hidden: no row is left out of a sum."""
    share = measure_hidden_value(con, tables.counted, options, tables.trees)
    return {"rows": 0, "people": None, "fraction": share, "limit": options["max_suppressed_fraction"]}


def entry(con: sql.Connection, tables: Tables, options: Mapping[str, Any]) -> CellsEntry:
    """Return what the record tells of the cells, all of it computed from the written file, whose cells were counted."""
    columns, rows = _columns(options), tables.counted
    is_value = ", ".join(f"{sql.quote(name)} IS DISTINCT FROM {_TOTAL}" for name in columns)
    margins: list[MarginEntry] = []
    for *used, cells, hidden in con.execute(
        f"SELECT {is_value}, count(*), count(*) - count(value) FROM {rows} GROUP BY {is_value} ORDER BY ALL"
    ).fetchall():
        names = [name for name, is_used in zip(columns, used, strict=True) if is_used]
        share = measure_hidden_value(
            con, rows, {**options, "by": names, "linked": None, "columns": columns}, tables.trees
        )
        margins.append({"columns": names, "cells": cells, "hidden": hidden, "hidden_value": share})
    faults: dict[str, int] = {}
    narrowest = median = None
    if options.get("method") != "cell_key":
        audited = _audit_table(rows)
        counts = con.execute(f"SELECT fault, count(*) FROM {audited} WHERE fault IS NOT NULL GROUP BY ALL").fetchall()
        faults = dict(counts)
        narrowest, median = sql.fetch_row(
            con, f'SELECT min("upper" - "lower"), median("upper" - "lower") FROM {audited} WHERE isfinite("upper")'
        )
    deviation = sql.fetch_row(con, f"SELECT max(max_deviation::BIGINT) FROM {rows}")[0]
    return {
        "cells": sum(margin["cells"] for margin in margins),
        "hidden": sum(margin["hidden"] for margin in margins),
        "margins": margins,
        "faults": faults,
        "narrowest_interval": narrowest,
        "median_interval": median,
        "max_deviation": deviation,
        "hierarchies": encode_hierarchies(con, rows, tables.trees),
    }


def _columns(options: Mapping[str, Any]) -> list[str]:
    """Return the columns of all tables, each once."""
    names = [*options["by"], *(name for table in options.get("linked") or [] for name in table)]
    return list(options.get("columns") or dict.fromkeys(names))


def _is_margin(columns: Sequence[str], names: Sequence[str], trees: Trees) -> str:
    """Write the condition of cells with a value in some columns, no group of a hierarchy, and the total in others."""
    conditions = ["true"]
    for name in columns:
        is_total = f"{sql.quote(name)} IS NOT DISTINCT FROM {_TOTAL}"
        conditions.append(f"NOT ({is_total})" if name in names else is_total)
        if name in names and name in trees:  # each of its hierarchies has all values
            conditions.append(
                f"coalesce({sql.quote(name)}::VARCHAR IN "
                f"(SELECT labels[1] FROM anon._hierarchy('hierarchies', '', {sql.literal(trees[name][0])})), true)"
            )
    return " AND ".join(conditions)

"""Hierarchies of a released table in its record, by places of labels: a reader restores them from the file."""

from __future__ import annotations

from collections.abc import Mapping

from duckanon._bridge import sql
from duckanon._core.common.release_record import CellsEntry
from duckanon.job.errors import FileProblem

Trees = Mapping[str, list[str]]
"""Names of tables with hierarchies, by column."""

_ALL = -1
"""The place of a label that the file does not have: that of the group of all values, which is the total."""


def recorded(con: sql.Connection, rows: str, trees: Trees) -> dict[str, list[str]]:
    """Return, for each column and hierarchy, the place of each value among the file's labels, then its groups' places.

    They say what belongs together, and no label: a record holds no value of the data.
    """
    found: dict[str, list[str]] = {}
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
            found.setdefault(column, []).append("; ".join(" ".join(map(str, line)) for line in sorted(lines)))
    return found


def restored(con: sql.Connection, rows: str, entry: CellsEntry) -> Trees:
    """Write the hierarchies of a record as tables, with the labels of the file, and return their names."""
    found: dict[str, list[str]] = {}
    for column, texts in entry.get("hierarchies", {}).items():
        labels = [*_labels(con, rows, column), None]  # the last one, whose place is -1, is of no other group
        for number, text in enumerate(filter(None, texts), 1):
            try:
                lines = [[labels[int(place)] for place in line.split()] for line in text.split(";")]
            except (ValueError, IndexError):
                raise FileProblem(f"the record's hierarchies of {column} are not those of the file.") from None
            name = f"{rows}_{len(found)}_{number}"
            values = ", ".join(f"({', '.join(map(sql.literal, line))})" for line in lines)
            con.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS FROM (VALUES {values})").fetchall()
            found.setdefault(column, []).append(name)
    return found


def _labels(con: sql.Connection, rows: str, column: str) -> list[str | None]:
    """Return the labels of a column of the file, in an order that depends on no setting."""
    quoted = sql.name(column)
    found = con.execute(f"SELECT DISTINCT {quoted}::VARCHAR FROM {rows}").fetchall()
    return sorted((label for (label,) in found), key=lambda label: (label is None, label or ""))

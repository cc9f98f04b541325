"""The tables that plots take: relations, Arrow tables and whatever gives one, with the columns that a plot needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

_WAYS = ("to_arrow_table", "fetch_arrow_table", "arrow", "to_arrow")  # methods that give an Arrow table; the first


def table_of(plot: str, relation: Any, columns: Sequence[str] = ()) -> pa.Table:
    """Return a relation as an Arrow table that has rows and the columns that a plot needs.

    A TypeError refuses what is no table, a ValueError a table without rows or columns, by the name of the plot.
    """
    table = _arrow(relation)
    if table is None:
        raise TypeError(
            f"duckanon.plot.{plot}: relation must be a DuckDB relation or an Arrow table; "
            f"got {type(relation).__name__}."
        )
    missing = [name for name in columns if name not in table.column_names]
    if missing:
        raise ValueError(
            f"duckanon.plot.{plot}: relation must have the columns {', '.join(columns)}; "
            f"got {', '.join(table.column_names)}."
        )
    if not table.num_rows:
        raise ValueError(f"duckanon.plot.{plot}: relation must have rows; got none.")
    return table


def rows_of(plot: str, relation: Any, columns: Sequence[str]) -> list[dict[str, Any]]:
    """Return some columns of a relation, row by row."""
    rows: list[dict[str, Any]] = table_of(plot, relation, columns).select(columns).to_pylist()
    return rows


def named_tables(plot: str, relations: Any, name: str, columns: Sequence[str]) -> dict[str, pa.Table]:
    """Return several relations by the names of a mapping; one relation alone has the given name."""
    given = relations if isinstance(relations, Mapping) else {name: relations}
    if not given:
        raise ValueError(f"duckanon.plot.{plot}: relation must be a relation or several by name; got none.")
    return {str(name): table_of(plot, relation, columns) for name, relation in given.items()}


def _arrow(relation: Any) -> pa.Table | None:
    if isinstance(relation, pa.RecordBatch):
        return pa.Table.from_batches([relation])
    for way in _WAYS:
        if not isinstance(relation, pa.Table) and callable(getattr(relation, way, None)):
            relation = getattr(relation, way)()
    if callable(getattr(relation, "read_all", None)):  # DuckDB's arrow() gives a reader
        relation = relation.read_all()
    return relation if isinstance(relation, pa.Table) else None

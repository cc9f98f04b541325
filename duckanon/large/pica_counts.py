"""Promises of `anon.pica` about values, counted on a written release: no choice of a few people, no number beyond k."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import duckdb
import numpy as np
import pyarrow as pa

from duckanon._bridge import sql
from duckanon._core.encoding.column_fit import MOST_DECIMALS
from duckanon._core.encoding.column_split import OTHER
from duckanon._core.encoding.parts import ColumnParts
from duckanon._methods.releasable.safe_numbers import Bounds
from duckanon.large.workspace import SOURCE

_ENDS = "ends_of_numbers"


def counted(
    con: duckdb.DuckDBPyConnection,
    written: str,
    columns: Iterable[ColumnParts],
    bounds: Mapping[str, Bounds],
    k: int,
    rows: int,
) -> int:
    """Count what was promised of the written rows.

    Args:
        con: A database with the source.
        written: The written rows in SQL.
        columns, bounds: The columns that were drawn, and the bounds of their numbers.
        k: The people of the source who hold each choice.
        rows: How many rows there must be.

    Returns:
        The people of the source who hold the rarest choice that was written; all rows where there are no choices.

    Raises:
        AssertionError: A choice has fewer than k people, a number is beyond its bounds, or rows are missing.
    """
    (found,) = sql.one(con, f"SELECT count(*) FROM {written}")
    if found != rows:
        raise AssertionError("rows are missing in the written release.")
    (fewest,) = sql.one(con, f"SELECT count(*) FROM {SOURCE}")
    for column in columns:
        value = _value(column)
        is_choice = "TRUE" if column.regular is None else _is_beyond(con, column, bounds[column.name])
        is_label = f"value = {sql.literal(OTHER)}" if OTHER in column.outcomes else "FALSE"
        (smallest,) = sql.one(
            con,
            f"WITH chosen AS (SELECT DISTINCT {value} AS value FROM {written} WHERE {is_choice}), "
            f"held AS (SELECT {value} AS value, TRUE AS is_held FROM {SOURCE}), "
            "counts AS (SELECT chosen.value, count(is_held) AS people FROM chosen LEFT JOIN held "
            "ON chosen.value IS NOT DISTINCT FROM held.value GROUP BY chosen.value) "
            f"SELECT min(people) FROM counts WHERE ({is_label}) IS NOT TRUE",
        )
        if smallest is not None and smallest < k:
            raise AssertionError(f"a value of the written release is shared by fewer than {k} people.")
        fewest = fewest if smallest is None else min(fewest, smallest)
    return int(fewest)


def _value(column: ColumnParts) -> str:
    """Return what people are counted by: floats without what computations left behind their decimals."""
    quoted = sql.name(column.name)
    if pa.types.is_floating(column.type):
        return f"round({quoted}::DOUBLE, {MOST_DECIMALS})"
    return f"{quoted}::VARCHAR" if column.regular is None else quoted


def _is_beyond(con: duckdb.DuckDBPyConnection, column: ColumnParts, bounds: Bounds) -> str:
    """Return the condition of values that only a choice can be."""
    ends = bounds.grid.array(np.array([bounds.lowest, bounds.highest]), None).cast(column.type)
    con.register(_ENDS, pa.table({"low": ends[:1], "high": ends[1:]}))
    quoted = sql.name(column.name)
    return f"({quoted} NOT BETWEEN (SELECT low FROM {_ENDS}) AND (SELECT high FROM {_ENDS}) OR {quoted} IS NULL)"

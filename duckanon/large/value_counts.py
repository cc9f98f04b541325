"""The different values of a column and how many people have each, counted in the whole table."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from duckanon._bridge import sql
from duckanon._core.common.arrays import Ints
from duckanon.large.workspace import SOURCE, Workspace

BYTES_OF_COUNTED, BYTES_OF_VALUE = 100, 50
"""Memory of cutting a column into parts, for each record that is looked at and for each value."""


class Counted(NamedTuple):
    """The values of a column.

    Attributes:
        values: The different ones, ascending, NULL last.
        rows, people: How many rows and how many people have each.
    """

    values: pa.ChunkedArray
    rows: Ints
    people: Ints


def counted_values(work: Workspace, name: str, k: int, person: str | None = None) -> Counted | None:
    """Count the values of a column; None where they are too many to be cut into parts within the memory.

    Args:
        work: Where it is done.
        name: The column.
        k: How many people a part must have: of one value, no more are looked at.
        person: The column that tells which person a row belongs to; None: every row is another person.
    """
    quoted = sql.name(name)
    values, looked_at = sql.one(
        work.con,
        f"SELECT count(*), sum(size)::BIGINT FROM (SELECT least(count(*), {k})::BIGINT AS size FROM {SOURCE} "
        f"GROUP BY {quoted})",
    )
    if looked_at * BYTES_OF_COUNTED + values * BYTES_OF_VALUE > work.memory.part:
        return None
    people = "count(*)" if person is None else f"count(DISTINCT {sql.name(person)})"
    query = (
        f"SELECT {quoted}, count(*) AS _duckanon_rows, {people} AS _duckanon_people FROM {SOURCE} GROUP BY {quoted} "
        f"ORDER BY {quoted} ASC NULLS LAST"
    )
    path = work.folder / "values.parquet"  # values are then read as those of the parts are
    work.con.execute(f"COPY ({query}) TO {sql.literal(str(path))} (FORMAT parquet)").fetchall()
    table = pq.ParquetFile(path).read()
    path.unlink()
    return Counted(table.column(0), table.column(1).to_numpy(), table.column(2).to_numpy())

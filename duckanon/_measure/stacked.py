"""Several releases in one table: each in a column of structs of its own, and a column that says which a row is from."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

RELEASE = "_duckanon_release"
"""The column that names the release of a row (`duckanon._bridge.measured_tables`)."""


def rows_of(stacked: pa.Table, name: str) -> pa.Table:
    """Return the rows of one release; the column that holds them is the one that is not NULL."""
    rows = stacked.filter(pc.equal(stacked[RELEASE], name)).drop_columns([RELEASE])
    filled = next(column for column in rows.columns if column.null_count < len(column))
    return pa.Table.from_struct_array(filled)

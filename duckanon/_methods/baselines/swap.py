"""Independent columns: each holds its values in an order of its own."""

from __future__ import annotations

import pyarrow as pa

from duckanon._core.common.arguments import generator


def swap(table: pa.Table, seed: int | None) -> pa.Table:
    """Permute each column independently, the first one too, so that the order of the rows links nothing."""
    random = generator(seed)
    return pa.table(
        [column.combine_chunks().take(pa.array(random.permutation(table.num_rows))) for column in table.columns],
        schema=table.schema,
    )

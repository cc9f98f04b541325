"""Independent columns: each holds its values in an order of its own."""

from __future__ import annotations

import pyarrow as pa

from duckanon._core.common.arguments import generator


def swap(table: pa.Table, seed: int | None) -> pa.Table:
    """Permute each column independently and uniformly.

    Every column is permuted, the first one too, so that the order of the rows links nothing.

    Args:
        table: The rows to release.
        seed: Makes the release repeatable; None draws from the operating system's entropy.

    Returns:
        As many rows, the same columns: each holds exactly the values that it held, in an order of its own.
    """
    random = generator(seed)
    return pa.table(
        [column.combine_chunks().take(pa.array(random.permutation(table.num_rows))) for column in table.columns],
        schema=table.schema,
    )

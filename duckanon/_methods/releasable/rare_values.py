"""The check that a release has no value that fewer than k people share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from duckanon._core.common.arrays import Ints
from duckanon._core.common.codes import encode
from duckanon._core.common.people import people_in


def refuse_rare(original: pa.Table, released: pa.Table, people: Ints | None, least: Sequence[int]) -> None:
    """Count again, from the two tables only, that every released value has a column's least number of people."""
    for name, before, after, k in zip(original.column_names, original.columns, released.columns, least, strict=True):
        ((codes, count),) = encode(pa.table({"value": pa.chunked_array([*before.chunks, *after.chunks], before.type)}))
        held = codes[: len(before)].astype(np.int64)
        holders = people_in(held, people, count)
        few = (holders < k) & (np.bincount(held, minlength=count) > 0)
        if few[codes[len(before) :]].any():
            raise ValueError(
                f'column "{name}" would release a value of fewer than {k} people: the promise is not kept.'
            )

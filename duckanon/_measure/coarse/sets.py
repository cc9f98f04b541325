"""Lists of values, as ``anon.recode`` releases them for analysis, as the labels that it writes for readers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon._core.common.arrays import is_text
from duckanon._core.common.sets import NULL, QUOTED_MARKS, QUOTED_VALUES


def with_sets(table: pa.Table) -> pa.Table:
    """Return a table whose lists of texts are labels: the value where there is one, ``{a, b}`` where there are more."""
    for place, field in enumerate(table.schema):
        is_list = pa.types.is_list(field.type) or pa.types.is_large_list(field.type)
        if is_list and is_text(field.type.value_type):
            chunks = [_labels(chunk) for chunk in table.column(place).chunks]
            table = table.set_column(place, field.name, pa.chunked_array(chunks, pa.string()))
    return table


def _labels(lists: pa.Array) -> pa.Array:
    """Write lists as ``anon._list_text`` does, which gives these labels their meanings."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    values = lists.flatten().cast(pa.string())
    ends = np.concatenate([[0], np.cumsum(lengths)])
    named = pa.LargeListArray.from_arrays(pa.array(ends, pa.int64()), _members(values).fill_null(NULL))
    sets = pc.binary_join_element_wise("{", pc.binary_join(named, ", "), "}", "")
    alone = values.take(pa.array(ends[:-1], mask=lengths != 1))
    is_label = pc.fill_null(pc.or_(pc.starts_with(alone, "{"), pc.equal(alone, "*")), False)
    labels = pc.if_else(pc.and_not(pa.array(lengths == 1), is_label), alone, sets)
    return pc.if_else(lists.is_null(), pa.scalar(None, pa.string()), labels)


def _members(values: pa.Array) -> pa.Array:
    """Write values in quotation marks that would be read as something else (`common.sets`)."""
    in_marks = pc.binary_join_element_wise('"', pc.replace_substring(values, '"', '""'), '"', "")
    is_quoted = pc.or_(pc.match_substring_regex(values, QUOTED_MARKS), pc.is_in(values, pa.array(QUOTED_VALUES)))
    return pc.if_else(is_quoted, in_marks, values)

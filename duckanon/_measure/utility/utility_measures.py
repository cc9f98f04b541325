"""The measures of utility as SQL calls them: tables are aligned or coded alike, options are named as in the macros."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from duckanon._core.common.arguments import make_generator, spell_columns
from duckanon._core.common.names import unknown_column
from duckanon._core.encoding.measurement_encoding import align_release
from duckanon._core.encoding.pairs import pair_kind
from duckanon._measure.coarse.coarse_tables import read_labels, read_tables
from duckanon._measure.coarse.label_meanings import HierarchyRows
from duckanon._measure.queries import answers as queries_utility
from duckanon._measure.utility import statistics


def utility(
    original: pa.Table | None,
    released: pa.Table | None,
    *,
    hierarchies: HierarchyRows,
    log: list[str] | None,
    special: Any,
    categories: list[str] | None,
    seed: int | None,
) -> pa.Table:
    """Compare statistics."""
    read = read_tables(original, released, hierarchies)
    names = spell_columns("log", log, read.original.column_names) or []
    released = read.draw_values(make_generator(seed))
    return statistics.utility(_take_logs(read.original, names), _take_logs(released, names), special, categories)


def query_utility(
    original: pa.Table | None, released: pa.Table | None, *, hierarchies: HierarchyRows, queries: int, seed: int | None
) -> pa.Table:
    """Compare random counts."""
    random = make_generator(seed)
    original, release = align_release(original, released)
    labels = read_labels(original, release, hierarchies)
    return queries_utility.query_utility(original, release, random=random, queries=queries, labels=labels)


def _take_logs(table: pa.Table, names: list[str]) -> pa.Table:
    for name in names:
        index = table.column_names.index(name) if name in table.column_names else None
        if index is None:
            raise ValueError(unknown_column(name, table.column_names, "log"))
        column = table.column(index)
        least = pc.min(column).as_py() if pair_kind(column.type) == "number" else 0
        if least is not None and least <= 0:  # a column of NULLs alone has nothing to take a logarithm of
            raise ValueError(f'column "{name}" has no logarithms: it must hold positive numbers; leave it out of log.')
        table = table.set_column(index, name, pc.ln(column.cast(pa.float64())))
    return table

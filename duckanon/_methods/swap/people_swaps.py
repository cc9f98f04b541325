"""The thesis's methods for tables of people: columns are encoded as plain numbers, swapped, and recombined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from duckanon._core.common.arguments import generator
from duckanon._core.common.declare import report_rows
from duckanon._core.common.memory import bytes_of
from duckanon._core.common.progress import Tell, silent
from duckanon._core.encoding.whole_sources import reader_of, whole_table
from duckanon._methods.swap import svd
from duckanon._methods.swap.declared import TRIALS
from duckanon._methods.swap.pica import Partitioned
from duckanon._methods.swap.plain_columns import PlainColumns, Settings

_PURPOSES = {"whole": "one cluster", "bisect": "search", "confirm": "confirm"}


def svd_swap(
    source: object,
    *,
    tolerance: float,
    log: Sequence[str] | None,
    nulls: str,
    checks: str,
    seed: int | None,
    k: int,
    special: Any,
    categories: Sequence[str] | None,
    derived: str,
    memory: str | None = None,
    tell: Tell | None = None,
) -> pa.RecordBatchReader:
    """Swap the principal components of a table: see `svd.svd_swap`.

    ``memory`` limits the matrix of components, '2GB'; a larger one is swapped within random blocks of rows. It needs
    the settings of the thesis.
    """
    settings = Settings(k, special, categories, derived)
    options: dict[str, Any] = {"tolerance": tolerance, "checks": checks, "seed": seed, "tell": tell}
    if settings.as_in_thesis:
        limit = None if memory is None else bytes_of(memory)
        return svd.svd_swap(source, log=log, nulls=nulls, memory_limit=limit, **options)
    if memory is not None:
        raise ValueError(
            f"memory must be NULL unless k = 1, special = 'off', categories = [] and derived = 'off'; got {memory!r}."
        )
    plain = PlainColumns.of(_whole(source), None, nulls, settings, generator(seed).spawn(1)[0])
    return plain.reader(svd.svd_swap(plain.table, log=plain.log(log), nulls="error", places=plain.places, **options))


def pica(
    source: object, *, cluster_size: float | None, reference: object = None, tell: Tell | None = None, **options: Any
) -> pa.RecordBatchReader:
    """Swap independent components inside clusters of similar records; the options are those of `partitioned`.

    A ``reference`` of other people with the same columns is compared with where a cluster size is searched.
    """
    whole, others, plain = partitioned(source, None if cluster_size else reference, **options)
    released = reader_of(whole.released(cluster_size, others, tell or silent))
    return released if plain is None else plain.reader(released)


def pica_report(table: pa.Table | None, reference: pa.Table | None, *, tell: Tell, **options: Any) -> pa.Table:
    """Report the search for a cluster size; the options are those of `partitioned`."""
    if table is None:
        return report_rows([], TRIALS)
    whole, others, _ = partitioned(table, reference, **options)
    search = whole.search(others, tell)
    rows = [
        {
            "step": number,
            "purpose": _PURPOSES[step.stage],
            "cluster_size": round(step.cluster_size),
            **{f"{name}_shift": step.verdict.numbers.get(name) for name in ("distance", "ambiguity", "uncertainty")},
            **{name: step.verdict.numbers.get(name) for name in ("exact_copies", "unique_copies", "near_copies")},
            "passed": step.verdict.passed,
            "chosen": step.cluster_size == search.cluster_size,
        }
        for number, step in enumerate(search.steps, 1)
    ]
    return report_rows(rows, TRIALS)


def partitioned(
    source: object,
    reference: object,
    *,
    basis: str,
    clustering: str,
    log: Sequence[str] | None,
    nulls: str,
    checks: str,
    seed: int | None,
    k: int,
    special: Any,
    categories: Sequence[str] | None,
    derived: str,
) -> tuple[Partitioned, pa.Table | None, PlainColumns | None]:
    """Encode a table that is to be swapped in clusters.

    Also return other people in the same columns, and the plain columns, None where the table's own are plain.
    """
    settings, random = Settings(k, special, categories, derived), generator(seed)
    if settings.as_in_thesis:
        whole = Partitioned.of(source, log, nulls, basis, clustering, checks, random)
        return whole, None if reference is None else whole_table(reference, whole.encoding.schema.names), None
    table = _whole(source)
    others = None if reference is None else whole_table(reference, table.column_names)
    plain = PlainColumns.of(table, others, nulls, settings, generator(seed).spawn(1)[0])
    whole = Partitioned.of(plain.table, plain.log(log), "error", basis, clustering, checks, random, plain.places)
    return whole, plain.reference, plain


def _whole(source: object) -> pa.Table:
    table = whole_table(source)
    if table.num_rows == 0:
        raise ValueError("the table has no rows; give one that has.")
    if table.num_columns < 2:
        raise ValueError(f"cols must name at least two columns; got {table.num_columns}.")
    return table

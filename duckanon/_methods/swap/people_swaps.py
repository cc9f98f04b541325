"""The thesis's methods for tables of people: their columns are made plain first, and put together again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from duckanon._core.common.arguments import generator
from duckanon._core.common.memory import bytes_of
from duckanon._core.common.progress import Tell
from duckanon._core.encoding.whole_sources import column_names, whole_table
from duckanon._methods.swap import pica as partitioned
from duckanon._methods.swap import svd
from duckanon._methods.swap.plain_columns import PlainColumns, Settings


def svd_swap(
    source: object,
    cols: Sequence[str] | None = None,
    *,
    tolerance: float = 1.5,
    log: Sequence[str] | None = None,
    nulls: str = "error",
    checks: str = "error",
    seed: int | None = None,
    memory: str | None = None,
    k: int = 10,
    special: Any = "auto",
    categories: Sequence[str] | None = None,
    derived: str = "auto",
    tell: Tell | None = None,
) -> pa.RecordBatchReader:
    """Swap the principal components of a table.

    Parameters
    ----------
    source, cols, tolerance, log, nulls, checks, seed, tell
        As for `svd.svd_swap`.
    memory
        What the matrix of components may take, such as '2GB'; a larger one is swapped within random blocks of rows. It
        asks for the settings of the thesis: `k` of 1, `special` and `derived` ``'off'``, `categories` ``[]``. None: the
        table is held in memory.
    k
        The smallest and the largest number are the rounded means of the k most extreme, and categories that fewer than
        k people hold are merged; 1 leaves them as they are.
    special, categories, derived
        As for `spectral_release`.

    Returns
    -------
    pyarrow.RecordBatchReader
        As many rows, of the same columns and types.

    Raises
    ------
    ValueError
        As `svd.svd_swap` and `spectral_release` do.

    Examples
    --------
    >>> import numpy as np
    >>> import pyarrow as pa
    >>> from duckanon import spectral
    >>> random = np.random.default_rng(0)
    >>> height = random.normal(170, 10, 400)
    >>> people = pa.table({"height": height, "weight": height - 100 + random.normal(0, 8, 400)})
    >>> released = spectral.svd_swap(people, seed=1).read_all()
    >>> released.num_rows, released.column_names
    (400, ['height', 'weight'])
    """
    settings = Settings(k, special, categories, derived)
    options: dict[str, Any] = {"tolerance": tolerance, "checks": checks, "seed": seed, "tell": tell}
    if settings.as_in_thesis:
        limit = None if memory is None else bytes_of(memory)
        return svd.svd_swap(source, cols, log=log, nulls=nulls, memory_limit=limit, **options)
    if memory is not None:
        raise ValueError(
            f"memory must be NULL unless k = 1, special = 'off', categories = [] and derived = 'off'; got {memory!r}."
        )
    plain = PlainColumns.of(_whole(source, cols), None, nulls, settings, generator(seed).spawn(1)[0])
    return plain.reader(svd.svd_swap(plain.table, log=plain.log(log), places=plain.places, **options))


def pica(
    source: object,
    cols: Sequence[str] | None = None,
    *,
    cluster_size: float | None = None,
    basis: str = "ica",
    clustering: str = "auto",
    reference: object = None,
    log: Sequence[str] | None = None,
    nulls: str = "error",
    checks: str = "error",
    seed: int | None = None,
    k: int = 10,
    special: Any = "auto",
    categories: Sequence[str] | None = None,
    derived: str = "auto",
    tell: Tell | None = None,
) -> pa.RecordBatchReader:
    """Swap independent components inside clusters of similar records.

    Parameters
    ----------
    source, cols, cluster_size, basis, clustering, reference, log, nulls, checks, seed, tell
        As for `pica.pica`.
    k, special, categories, derived
        As for `svd_swap`.

    Returns
    -------
    pyarrow.RecordBatchReader
        As many rows (fewer after a repair), of the same columns and types.

    Raises
    ------
    ValueError
        As `pica.pica` and `spectral_release` do.

    Examples
    --------
    >>> import numpy as np
    >>> import pyarrow as pa
    >>> from duckanon import spectral
    >>> random = np.random.default_rng(0)
    >>> height = random.normal(170, 10, 400)
    >>> people = pa.table({"height": height, "weight": height - 100 + random.normal(0, 8, 400)})
    >>> released = spectral.pica(people, cluster_size=100, seed=1).read_all()
    >>> released.num_rows, released.column_names
    (400, ['height', 'weight'])
    """
    settings = Settings(k, special, categories, derived)
    options: dict[str, Any] = {"basis": basis, "clustering": clustering, "checks": checks, "seed": seed, "tell": tell}
    options["cluster_size"] = cluster_size
    if settings.as_in_thesis:
        return partitioned.pica(source, cols, reference=reference, log=log, nulls=nulls, **options)
    table = _whole(source, cols)
    others = None if reference is None or cluster_size is not None else whole_table(reference, table.column_names)
    plain = PlainColumns.of(table, others, nulls, settings, generator(seed).spawn(1)[0])
    options["places"] = plain.places
    made = partitioned.pica(plain.table, reference=plain.reference, log=plain.log(log), **options)
    return plain.reader(made)


def _whole(source: object, cols: Sequence[str] | None) -> pa.Table:
    table = whole_table(source, column_names(cols))
    if table.num_rows == 0:
        raise ValueError("the table has no rows; give one that has.")
    if table.num_columns < 2:
        raise ValueError(f"cols must name at least two columns; got {table.num_columns}.")
    return table

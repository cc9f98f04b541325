"""Releases of new records with the same statistics, for anything that can be read as Arrow batches.

The functions take a pyarrow Table, RecordBatch, Dataset or RecordBatchReader, the path of a Parquet file or of a folder
of them, or a function that opens a reader, and return a RecordBatchReader of the same columns, names and types, whose
rows are in an order that links nothing. The SQL functions of the same names are these. With a seed, a source is read
into memory and put into an order that depends on its values alone, so that the same rows give the same release in
whatever order they come (but for `svd_swap` with a limit of memory).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import pyarrow as pa

from duckanon._core.common.arguments import name_refusals
from duckanon._core.common.declare import Options, Release
from duckanon._core.common.faces import face_of
from duckanon._core.common.parameters import COLS
from duckanon._core.common.rules import ColumnNames
from duckanon._core.encoding.sources import Readable, use_source
from duckanon._core.encoding.whole_sources import read_table, sort_by_values
from duckanon._methods.baselines import additive_noise as noise
from duckanon._methods.baselines import copulas
from duckanon._methods.baselines.declared import ADDITIVE_NOISE, COPULA_SYNTHESIZE, DATA_SHUFFLE
from duckanon._methods.swap import rhs as halving
from duckanon._methods.swap import svd
from duckanon._methods.swap.declared import PICA, RHS, SPECTRAL_RHS, SVD_SWAP
from duckanon._methods.synthesize import spectral_release as spectral_synthesis
from duckanon._methods.synthesize import synthesize as sequential_synthesis
from duckanon._methods.synthesize.declared import SPECTRAL_RELEASE, SYNTHESIZE

__all__ = [
    "additive_noise",
    "copula_synthesize",
    "data_shuffle",
    "pica",
    "rhs",
    "spectral_release",
    "spectral_rhs",
    "svd_swap",
    "synthesize",
]

_Face: TypeAlias = Callable[..., pa.RecordBatchReader]
_COLS = COLS.having(
    rule=ColumnNames(null=True), meaning="The columns to release. NULL: all of the source", default=None
)


def _face(declared: Release) -> Callable[[_Face], _Face]:
    parameters = tuple(_COLS if one.name == "cols" else one for one in declared.parameters)
    face = face_of(replace(declared, parameters=parameters), "spectral")
    return lambda function: face(name_refusals(f"duckanon.spectral.{declared.name}")(function))


@_face(ADDITIVE_NOISE)
def additive_noise(source: Readable, options: Options) -> pa.RecordBatchReader:
    """Add noise to every record and correct mean and covariance for it: for comparison only.

    The released row that is nearest to a record is nearly always its own.

    Examples:
        >>> import pyarrow as pa
        >>> from duckanon import spectral
        >>> people = pa.table({"age": [20 + i % 50 for i in range(400)], "weight": [50 + i % 41 for i in range(400)]})
        >>> released = spectral.additive_noise(people, noise_fraction=0.2, seed=1).read_all()
        >>> released.num_rows, released.column_names
        (400, ['age', 'weight'])
    """
    return _run(noise.additive_noise, source, options)


@_face(COPULA_SYNTHESIZE)
def copula_synthesize(source: Readable, options: Options) -> pa.RecordBatchReader:
    """Draw new records from a normal copula with the rank correlations and distributions of the source.

    Examples:
        >>> import pyarrow as pa
        >>> from duckanon import spectral
        >>> people = pa.table({"age": [20 + i % 50 for i in range(400)], "weight": [50 + i % 41 for i in range(400)]})
        >>> spectral.copula_synthesize(people, rows=1000, k=5, seed=1).read_all().num_rows
        1000
    """
    return _run(copulas.copula_synthesize, source, options)


@_face(DATA_SHUFFLE)
def data_shuffle(source: Readable, options: Options) -> pa.RecordBatchReader:
    """Rearrange every column to the ranks of normal data with the same rank correlations.

    Examples:
        >>> import pyarrow as pa
        >>> from duckanon import spectral
        >>> people = pa.table({"age": [20 + i % 50 for i in range(400)], "weight": [50 + i % 41 for i in range(400)]})
        >>> released = spectral.data_shuffle(people, seed=1).read_all()
        >>> sorted(released["age"].to_pylist()) == sorted(people["age"].to_pylist())
        True
    """
    return _run(copulas.data_shuffle, source, options)


@_face(PICA)
def pica(source: Readable, options: Options, *, reference: Readable | None = None) -> pa.RecordBatchReader:
    """Swap independent components inside clusters of similar records.

    Args:
        reference: Other people with the same columns, anything that the source may be, to compare with during the
            search for a cluster size. Default: None, every record is compared with all others.

    Examples:
        >>> import numpy as np
        >>> import pyarrow as pa
        >>> from duckanon import spectral
        >>> random = np.random.default_rng(0)
        >>> height = random.normal(170, 10, 400)
        >>> people = pa.table({"age": height, "weight": height - 100 + random.normal(0, 8, 400)})
        >>> released = spectral.pica(people, cluster_size=100, seed=1).read_all()
        >>> released.num_rows, released.column_names
        (400, ['age', 'weight'])
    """
    return _run(svd.pica, source, options, reference=reference)


@_face(RHS)
def rhs(source: Readable, options: Options) -> pa.RecordBatchReader:
    """Replace groups, formed by splitting all columns at once, by copies of one record: for comparison only.

    Examples:
        >>> import pyarrow as pa
        >>> from duckanon import spectral
        >>> people = pa.table({"age": [20 + i % 50 for i in range(400)], "weight": [50 + i % 41 for i in range(400)]})
        >>> spectral.rhs(people, k=5, checks="off", seed=1).read_all().num_rows
        400
    """
    return _run(halving.rhs, source, options)


@_face(SPECTRAL_RELEASE)
def spectral_release(source: Readable, options: Options) -> pa.RecordBatchReader:
    """Draw new records, cluster by cluster, of values shared by many people.

    Examples:
        >>> import numpy as np
        >>> import pyarrow as pa
        >>> from duckanon import spectral
        >>> random = np.random.default_rng(0)
        >>> height = random.normal(170, 10, 400)
        >>> people = pa.table({"age": height, "weight": height - 100 + random.normal(0, 8, 400)})
        >>> released = spectral.spectral_release(people, cluster_size=100, seed=1).read_all()
        >>> released.num_rows, released.column_names
        (400, ['age', 'weight'])
    """
    return _run(spectral_synthesis.spectral_release, source, options)


@_face(SPECTRAL_RHS)
def spectral_rhs(source: Readable, options: Options) -> pa.RecordBatchReader:
    """Replace groups of at least k records, formed along principal components, by copies of one record.

    Examples:
        >>> import pyarrow as pa
        >>> from duckanon import spectral
        >>> people = pa.table({"age": [20 + i % 50 for i in range(400)], "weight": [50 + i % 41 for i in range(400)]})
        >>> released = spectral.spectral_rhs(people, k=5, seed=1).read_all()
        >>> groups = released.group_by(released.column_names).aggregate([([], "count_all")])
        >>> min(groups["count_all"].to_pylist()) >= 5
        True
    """
    return _run(halving.spectral_rhs, source, options)


@_face(SVD_SWAP)
def svd_swap(source: Readable, options: Options, *, memory: str | None = None) -> pa.RecordBatchReader:
    """Swap the principal components of a table.

    Args:
        memory: What the matrix of components may take, such as '2GB'; a larger one is swapped within random blocks of
            rows. It needs the settings of the thesis: ``k`` of 1, ``special`` and ``derived`` ``'off'``, ``categories``
            ``[]``. Default: None, the table is held in memory.

    Examples:
        >>> import numpy as np
        >>> import pyarrow as pa
        >>> from duckanon import spectral
        >>> random = np.random.default_rng(0)
        >>> height = random.normal(170, 10, 400)
        >>> people = pa.table({"age": height, "weight": height - 100 + random.normal(0, 8, 400)})
        >>> released = spectral.svd_swap(people, seed=1).read_all()
        >>> released.num_rows, released.column_names
        (400, ['age', 'weight'])
    """
    return _run(svd.svd_swap, source, options, memory=memory)


@_face(SYNTHESIZE)
def synthesize(source: Readable, options: Options) -> pa.RecordBatchReader:
    """Draw new records column by column, of values shared by many people: the release to recommend.

    Examples:
        >>> import numpy as np
        >>> import pyarrow as pa
        >>> from duckanon import spectral
        >>> random = np.random.default_rng(0)
        >>> height = random.normal(170, 10, 400)
        >>> people = pa.table({"age": height, "weight": height - 100 + random.normal(0, 8, 400)})
        >>> released = spectral.synthesize(people, seed=1).read_all()
        >>> released.num_rows, released.column_names
        (400, ['age', 'weight'])
    """
    return _run(sequential_synthesis.synthesize, source, options)


def _run(algorithm: _Face, source: Readable, options: Options, **extras: Any) -> pa.RecordBatchReader:
    """Run an algorithm on the columns of a source that a call names."""
    arguments = {name: value for name, value in options.items() if name != "cols"} | extras
    cols = options["cols"]
    if cols is not None:
        cols = [*cols, *(options.get("by") or ()), *filter(None, [options.get("person")])]
    if options["seed"] is not None and extras.get("memory") is None:
        if extras.get("reference") is not None:
            arguments["reference"] = sort_by_values(read_table(extras["reference"]))
        return algorithm(sort_by_values(read_table(source, cols)), **arguments)
    if cols is None:
        return algorithm(source, **arguments)
    with use_source(source, cols) as opened:
        return algorithm(opened, **arguments)

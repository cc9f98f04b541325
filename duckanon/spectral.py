"""Releases of new records with the same statistics, for anything that can be read as Arrow batches.

The functions take a pyarrow Table, RecordBatch, Dataset or RecordBatchReader, the path of a Parquet file, or a function
that opens a reader, and return a RecordBatchReader of the same columns, names and types, whose rows are in an order
that links nothing. The SQL functions of the same names are these.
"""

from duckanon.common.names import refuses_unknown_options
from duckanon.new_records import api

_public = refuses_unknown_options("duckanon.spectral")

additive_noise = _public(api.additive_noise)
copula_synthesize = _public(api.copula_synthesize)
data_shuffle = _public(api.data_shuffle)
pica = _public(api.pica)
rhs = _public(api.rhs)
spectral_release = _public(api.spectral_release)
spectral_rhs = _public(api.spectral_rhs)
svd_swap = _public(api.svd_swap)

__all__ = [
    "additive_noise",
    "copula_synthesize",
    "data_shuffle",
    "pica",
    "rhs",
    "spectral_release",
    "spectral_rhs",
    "svd_swap",
]

"""Releases of new records with the same statistics, for anything that can be read as Arrow batches.

The functions take a pyarrow Table, RecordBatch, Dataset or RecordBatchReader, the path of a Parquet file, or a function
that opens a reader, and return a RecordBatchReader of the same columns, names and types, whose rows are in an order
that links nothing. The SQL functions of the same names are these.
"""

from duckanon._core.common.names import refuses_unknown_options
from duckanon._methods.baselines import additive_noise as noise
from duckanon._methods.baselines import copula_releases
from duckanon._methods.swap import people_swaps
from duckanon._methods.swap import rhs as halving
from duckanon._methods.synthesize import spectral_release as synthesis

_public = refuses_unknown_options("duckanon.spectral")

additive_noise = _public(noise.additive_noise)
copula_synthesize = _public(copula_releases.copula_synthesize)
data_shuffle = _public(copula_releases.data_shuffle)
pica = _public(people_swaps.pica)
rhs = _public(halving.rhs)
spectral_release = _public(synthesis.spectral_release)
spectral_rhs = _public(halving.spectral_rhs)
svd_swap = _public(people_swaps.svd_swap)

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

"""The arrays that algorithms pass to each other, by what they hold."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Matrix: TypeAlias = NDArray[np.float64]
"""Rows by columns."""
Reals: TypeAlias = NDArray[np.floating[Any]]
"""Of either precision: what spectral releases compute in float32 where memory matters."""
Ints: TypeAlias = NDArray[np.int64]
"""Whole numbers: counts, codes, and the places of rows."""
Ints32: TypeAlias = NDArray[np.int32]
Bools: TypeAlias = NDArray[np.bool_]
Array: TypeAlias = NDArray[Any]

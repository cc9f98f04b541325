"""Quantiles of the normal distribution."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from duckanon._core.common.arrays import Floats


def find_normal_quantiles(shares: Floats) -> Floats:
    """Return the numbers below which a standard normal variable is with these probabilities."""
    return np.asarray(ndtri(shares))

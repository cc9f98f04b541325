"""Where random numbers come from: one generator per call, never shared between threads."""

import numpy as np


def generator(seed: object) -> np.random.Generator:
    """Make the random generator of one call.

    Parameters
    ----------
    seed
        A whole number of at least 0 makes what is drawn repeatable; None draws from the operating system's entropy.

    Raises
    ------
    ValueError
        For any other seed.
    """
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int) or seed < 0):
        raise ValueError(f"seed must be NULL or a whole number of at least 0; got {seed}.")
    return np.random.default_rng(seed)

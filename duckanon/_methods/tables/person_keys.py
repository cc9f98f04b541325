"""The secret numbers of people, from which the noise of a cell is drawn."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Ints

KEY_BITS = 36
"""Bits of a person's number: the sum of those of a hundred million people fits into 64."""


def person_keys(hashes: Sequence[int], secret: str) -> Ints:
    """Return the secret number of each person, from a hash under a key."""
    progress.check()
    key = hashlib.sha256(secret.encode()).digest()
    digests = [hashlib.blake2b(int(one).to_bytes(8, "big"), digest_size=8, key=key).digest() for one in hashes]
    return np.array([int.from_bytes(digest, "big") >> (64 - KEY_BITS) for digest in digests], dtype=np.int64)

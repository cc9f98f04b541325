"""Copies in tables whose records are otherwise unique: how few of them chance explains."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from duckanon.common.arrays import Ints, Matrix
from duckanon.privacy.copy_rates import Rate, rate
from duckanon.privacy.equal_rows import row_hashes

_FEW = 3  # equal rows by chance up to which these alone say little about how many more there might be
_NEAR_MISSES = 20
"""Pairs of records that differ in one number only, for each pair that is equal: 19 to 35 in surveys that have both."""
_NUMBERS = 3  # columns with more than two values from which on near misses are counted


def rare_copies(
    rows: Matrix, codes: Ints, release_parts: list[Ints], reference: Ints | None, size: int, confidence: float
) -> Rate | None:
    """Count originals with an equal released row, where hardly any record has an equal by chance.

    Parameters
    ----------
    rows
        The originals.
    codes, release_parts, reference
        Codes of the rows: the originals, parts of the release, and a reference sample or None.
    size
        Rows in a part.
    confidence
        The share of honest releases that pass.

    Returns
    -------
    Rate or None
        None where more than three pairs are equal by chance, which tell enough by themselves, or where fewer than three
        columns hold numbers.

    Notes
    -----
    No equal pair among a thousand records does not say that there are none among a thousand others: five might be
    chance. That hardly any pair differs in one number only does say so, since there are many more of these.
    """
    if sum(len(np.unique(column[:1000])) > 2 for column in rows.T) < _NUMBERS:
        return None
    equal = _equal_pairs(codes) + (0 if reference is None else int(np.isin(codes, reference).sum()))
    if equal > _FEW:
        return None
    count = len(rows)
    own_exposure = count * (count - 1) / 2 / size  # pairs of originals, in originals that each meet a part
    other_exposure = 0 if reference is None else count * len(reference) / size
    hits = sum(int(np.isin(codes, part).sum()) for part in release_parts)
    trials = count * len(release_parts)
    events = equal + _near_misses(rows)
    return rate(hits, trials, events, (1 + _NEAR_MISSES) * own_exposure + other_exposure, confidence)


def _equal_pairs(codes: npt.NDArray[np.generic]) -> int:
    counts = np.unique(codes, return_counts=True)[1]
    return int((counts * (counts - 1) // 2).sum())


def _near_misses(rows: Matrix) -> int:
    """Count the pairs of rows that differ in one column."""
    equal = _equal_pairs(row_hashes(rows))
    return sum(_equal_pairs(row_hashes(np.delete(rows, place, axis=1))) - equal for place in range(rows.shape[1]))

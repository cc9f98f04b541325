"""Repair of a release that gives records away, by leaving rows out, or its refusal."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from duckanon._core.common.arrays import Bools, Ints, Matrix
from duckanon._core.privacy.copy_rates import exact_copies, farthest, half_distances, parts
from duckanon._core.privacy.equal_rows import row_codes
from duckanon._core.privacy.neighbours import nearest
from duckanon._core.privacy.rarity import Rarity, rarity_of
from duckanon._core.privacy.self_check import BUDGET, CONFIDENCE, as_matrices, check, chosen_originals, near_copy_rate
from duckanon._core.privacy.unique_copies import unique_copies

_ROUNDS = 8  # of dropping near copies, each after another draw of halves
_REPAIRED = 0.9  # stricter than the check, whose halves are drawn anew
_AT_A_TIME = 8  # released rows around a record that are looked for together


def repair(
    original: npt.ArrayLike,
    released: npt.ArrayLike,
    random: np.random.Generator,
    *,
    budget: int = BUDGET,
    confidence: float = CONFIDENCE,
) -> Bools:
    """Choose the released rows to keep so that the checks pass; none, where the release is nothing but copies.

    Every released row nearer to an isolated record than half the way to its nearest neighbour goes. Of the rows that
    repeat a record that nobody shares, as many go as exceed what chance gives, at random: without any of them, a
    record's absence would tell as much as its presence. Where that does not suffice, records that two share, then four,
    and so on, are treated alike. An order of rows that links cannot be repaired by leaving rows out.
    """
    rows, release = as_matrices(original, released)
    confidence = min(confidence, _REPAIRED)
    keep = _without_near_copies(rows, release, budget, random, confidence)
    codes, release_codes = row_codes(rows, release)
    sharers = np.bincount(codes, minlength=int(release_codes.max(initial=0)) + 1)[release_codes]
    rarity = rarity_of(rows)
    most_sharers = 1
    while keep.any():
        excess = _excess_of_copies(codes, release_codes[keep], rarity, random, confidence)
        if excess is None:
            break
        copies = np.flatnonzero(keep & (sharers > 0) & (sharers <= most_sharers))
        keep[random.permutation(copies)[: int(np.ceil(excess * len(copies)))]] = False
        most_sharers *= 2
        if most_sharers > 2 * sharers.max():
            keep &= sharers == 0
            break
    return keep


def _excess_of_copies(
    codes: Ints, kept_codes: Ints, rarity: Rarity, random: np.random.Generator, confidence: float
) -> float | None:
    """Return the share of the copies that chance does not explain; None where it explains all."""
    size = min(len(codes), len(kept_codes))
    part_codes = [kept_codes[part] for part in parts(len(kept_codes), size, random)]
    rates = [
        exact_copies(codes, part_codes, None, size, confidence),
        unique_copies(codes, kept_codes, None, rarity, random, confidence),
    ]
    return max((1 - rate.reference / rate.value for rate in rates if not rate.passed), default=None)


def screened(
    original: npt.ArrayLike,
    released: npt.ArrayLike,
    checks: str,
    random: np.random.Generator,
    advice: str,
    budget: int = BUDGET,
) -> Bools:
    """Check a release, and repair it where ``checks`` is ``'repair'``; return the rows to keep.

    Raises:
        ValueError: Where the checks fail, and do so after a repair, or one would leave out more than half of the rows.
    """
    rows, release = as_matrices(original, released)
    keep = np.ones(len(release), bool)
    findings = check(rows, release, random, budget=budget)
    if not findings.passed and checks == "repair":
        keep = repair(rows, release, random, budget=budget)
        if 2 * keep.sum() >= len(keep):
            findings = check(rows, release[keep], random, budget=budget)
    if not findings.passed:
        raise ValueError(findings.sentence(advice))
    return keep


def _without_near_copies(
    rows: Matrix, release: Matrix, budget: int, random: np.random.Generator, confidence: float
) -> Bools:
    """Keep the released rows that are not nearer to an isolated record than half the way to its neighbour."""
    looked_at, drawn = chosen_originals(rows, len(release), budget, random)
    keep = np.ones(len(release), bool)
    reach = np.minimum(*half_distances(rows, looked_at, random, 1)[0])
    for _ in range(_ROUNDS):
        is_isolated = farthest(reach, drawn)
        _drop_around(rows[looked_at[is_isolated]], reach[is_isolated] / 2, release, keep)
        if not keep.any():
            break
        rate, splits = near_copy_rate(rows, release[keep], looked_at, drawn, random, confidence)
        if rate.passed:
            break
        reach = splits[0][0]  # to the nearest in the same half, which is farther: more is dropped
    return keep


def _drop_around(centres: Matrix, reach: Matrix, release: Matrix, keep: Bools) -> None:
    """Drop every released row that is nearer to a centre than its reach."""
    while len(centres) and keep.any():
        kept = np.flatnonzero(keep)
        distances, indices = nearest(centres, release[kept], min(_AT_A_TIME, len(kept)))
        is_near = distances < reach[:, None]
        keep[kept[indices[is_near]]] = False
        centres, reach = centres[is_near[:, -1]], reach[is_near[:, -1]]  # there may be more rows around these

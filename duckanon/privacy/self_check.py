"""What a spectral release looks for in its own rows before it returns them, and how it repairs them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from duckanon.common.arrays import Bools, Ints, Matrix
from duckanon.privacy.copy_rates import (
    Rate,
    exact_copies,
    half_distances,
    isolated,
    near_copies,
    parts,
    row_codes,
    unique_copies,
)
from duckanon.privacy.neighbours import nearest

CHECKS = ("error", "repair", "off")
_CONFIDENCE = 0.9995  # of honest releases pass each check: a false alarm stops somebody's work
_EXACT = 5_000  # originals up to which every one is looked at
_BUDGET = 2 * 10**8  # pairs of rows whose distances are looked at beyond that
_FEWEST = 400  # originals looked at, however large the table
_SEVERAL = 5_000  # originals up to which four splits are cheap
_ROUNDS = 8
_REPAIRED = 0.9  # stricter than the check, whose halves are drawn anew
_SMALLEST = 20  # originals whose halves say anything about chance
_RIVALS = 8


@dataclass(frozen=True)
class Finding:
    """One check: what was found, what chance gives, and the largest value that chance explains."""

    name: str
    count: int
    value: float
    reference: float
    limit: float

    @property
    def passed(self) -> bool:
        """Whether chance explains what was found."""
        return self.value <= self.limit


@dataclass(frozen=True)
class Findings:
    """All checks of a release, in the order ``exact_copies``, ``unique_copies``, ``near_copies``, ``row_order``."""

    checks: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return all(check.passed for check in self.checks)

    def __getitem__(self, name: str) -> Finding:
        return next(check for check in self.checks if check.name == name)

    def sentence(self, advice: str) -> str:
        """Say what was found, how many, and what to do; empty where every check passed."""
        failed = {check.name: check for check in self.checks if not check.passed}
        said = []
        for name, what in (
            ("exact_copies", "original rows come back unchanged"),
            ("unique_copies", "comparisons with a record that nobody shares find it unchanged"),
            ("near_copies", "times an isolated record has a released row nearer than half the way to any other record"),
        ):
            if name in failed:
                check = failed[name]
                said.append(f"{check.count} {what} ({check.value:.2%}, where chance explains {check.limit:.2%})")
        if "unique_copies" in failed and "exact_copies" in failed:
            del said[1]  # the same rows, counted among halves of the table
        if "row_order" in failed:
            said.append(
                f"row order links released rows to originals (AUC {failed['row_order'].value:.3f}, "
                f"where chance explains {failed['row_order'].limit:.3f})"
            )
        if not said:
            return ""
        return f"the release would give records away: {'; '.join(said)}; {advice}."


def check(
    original: npt.ArrayLike,
    released: npt.ArrayLike,
    random: np.random.Generator,
    *,
    budget: int = _BUDGET,
    confidence: float = _CONFIDENCE,
) -> Findings:
    """Look for copies of records, near copies of isolated records, and an order of rows that links.

    Parameters
    ----------
    original, released
        Matrices of equal width. Row order is checked where both have as many rows.
    random
        Draws halves, samples and rivals.
    budget
        Pairs of rows whose distance may be looked at in tables of more than 5,000 rows; 400 originals are always.
    confidence
        The share of honest releases that pass each check.

    Notes
    -----
    Section 3.1's measures miss a few verbatim copies, and outliers. Copies are counted over all rows; distances are
    those of every original up to 5,000, beyond that of some drawn at random and as many that lie farthest out, by
    the norm of the whitened row. What chance gives is taken from the originals alone: those equal to another, and two
    random halves of the table against each other.
    """
    rows, release = _both(original, released)
    codes, release_codes = row_codes(rows, release)
    size = min(len(rows), len(release))
    chosen = [release_codes[part] for part in parts(len(release), size, random)]
    looked_at, drawn = _looked_at(rows, len(release), budget, random)
    checks = [
        _finding("exact_copies", exact_copies(codes, chosen, None, size, confidence)),
        _finding("unique_copies", unique_copies(codes, release_codes, None, random, confidence)),
        _finding("near_copies", _near(rows, release, looked_at, drawn, random, confidence)[0]),
    ]
    if len(rows) == len(release):
        checks.append(_row_order(rows, release, random, confidence))
    return Findings(tuple(checks))


def repair(
    original: npt.ArrayLike,
    released: npt.ArrayLike,
    random: np.random.Generator,
    *,
    budget: int = _BUDGET,
    confidence: float = _CONFIDENCE,
) -> Bools:
    """Choose the released rows to keep so that the checks pass.

    Parameters
    ----------
    original, released, random, budget, confidence
        As in :func:`check`.

    Returns
    -------
    numpy.ndarray
        True for the rows to keep; none, where the release is nothing but copies.

    Notes
    -----
    Every released row nearer to an isolated record than half the way to its nearest neighbour goes. Of the rows that
    repeat a record that nobody shares, as many go as exceed what chance gives, at random: without any of them, a
    record's absence would tell as much as its presence. Where that does not suffice, records that two share, then
    four, and so on, are treated alike. An order of rows that links cannot be repaired by leaving rows out.
    """
    rows, release = _both(original, released)
    confidence = min(confidence, _REPAIRED)
    keep = _without_near_copies(rows, release, budget, random, confidence)
    codes, release_codes = row_codes(rows, release)
    shared = np.bincount(codes, minlength=int(release_codes.max(initial=0)) + 1)[release_codes]
    most = 1
    while keep.any():
        left = release_codes[keep]
        size = min(len(rows), len(left))
        chosen = [left[part] for part in parts(len(left), size, random)]
        found = [
            exact_copies(codes, chosen, None, size, confidence),
            unique_copies(codes, left, None, random, confidence),
        ]
        if all(one.passed for one in found):
            break
        copies = np.flatnonzero(keep & (shared > 0) & (shared <= most))
        excess = max((1 - one.reference / one.value for one in found if not one.passed), default=0.0)
        keep[random.permutation(copies)[: int(np.ceil(excess * len(copies)))]] = False
        most *= 2
        if most > 2 * shared.max():
            keep &= shared == 0
            break
    return keep


def screened(
    original: npt.ArrayLike,
    released: npt.ArrayLike,
    checks: str,
    random: np.random.Generator,
    advice: str,
    budget: int = _BUDGET,
) -> Bools:
    """Check a release, and repair it where that is asked for.

    Parameters
    ----------
    original, released, random, budget
        As in :func:`check`.
    checks
        What to do about what is found: ``'error'`` or ``'repair'``.
    advice
        What to do when it is refused.

    Returns
    -------
    numpy.ndarray
        True for the rows to keep.

    Raises
    ------
    ValueError
        Where the checks fail, and do so after a repair, or one would leave out more than half of the rows.
    """
    rows, release = _both(original, released)
    keep = np.ones(len(release), bool)
    found = check(rows, release, random, budget=budget)
    if not found.passed and checks == "repair":
        keep = repair(rows, release, random, budget=budget)
        if 2 * keep.sum() >= len(keep):
            found = check(rows, release[keep], random, budget=budget)
    if not found.passed:
        raise ValueError(found.sentence(advice))
    return keep


def _both(original: npt.ArrayLike, released: npt.ArrayLike) -> tuple[Matrix, Matrix]:
    rows, release = np.asarray(original, np.float64), np.asarray(released, np.float64)
    if len(rows) < _SMALLEST or not len(release):
        raise ValueError(
            f"checking a release needs at least {_SMALLEST} original rows and 1 released row; "
            f"got {len(rows)} and {len(release)}."
        )
    return rows, release


def _finding(name: str, found: Rate) -> Finding:
    return Finding(name, found.count, found.value, found.reference, found.limit)


def _looked_at(rows: Matrix, released: int, budget: int, random: np.random.Generator) -> tuple[Ints, Bools]:
    """Choose the originals to look at, and tell which of them were drawn at random."""
    if len(rows) <= _EXACT:
        return np.arange(len(rows)), np.ones(len(rows), bool)
    count = min(_EXACT, max(_FEWEST, budget // (len(rows) + released)))
    drawn = random.permutation(len(rows))[: count // 2]
    outlying = _whitened_norms(rows)
    outlying[drawn] = -1.0
    far = np.argpartition(outlying, -(count // 2))[-(count // 2) :]
    return np.concatenate([drawn, far]), np.arange(len(drawn) + len(far)) < len(drawn)


def _whitened_norms(rows: Matrix) -> Matrix:
    centred = rows - rows.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred)
    kept = values > values[-1] * max(rows.shape) * np.finfo(float).eps
    whitened = centred @ (vectors[:, kept] / np.sqrt(values[kept]))
    return np.asarray(np.einsum("ij,ij->i", whitened, whitened), np.float64)


def _near(
    rows: Matrix, release: Matrix, looked_at: Ints, drawn: Bools, random: np.random.Generator, confidence: float
) -> tuple[Rate, list[tuple[Matrix, Matrix]]]:
    splits = half_distances(rows, looked_at, random, 4 if len(rows) <= _SEVERAL else 1)
    pieces = parts(len(release), len(rows) // 2, random)
    distances = [nearest(rows[looked_at], release[piece], 1)[0][:, 0] for piece in pieces]
    return near_copies(distances, splits, confidence, drawn), splits


def _without_near_copies(
    rows: Matrix, release: Matrix, budget: int, random: np.random.Generator, confidence: float
) -> Bools:
    """Keep the released rows that are not nearer to an isolated record than half the way to its neighbour."""
    looked_at, drawn = _looked_at(rows, len(release), budget, random)
    keep = np.ones(len(release), bool)
    reach = np.minimum(*half_distances(rows, looked_at, random, 1)[0])
    for _ in range(_ROUNDS):
        chosen = isolated(reach, drawn)
        _drop_around(rows[looked_at[chosen]], reach[chosen] / 2, release, keep)
        if not keep.any():
            break
        found, splits = _near(rows, release[keep], looked_at, drawn, random, confidence)
        if found.passed:
            break
        reach = splits[0][0]  # to the own half only: a wider berth
    return keep


def _drop_around(centres: Matrix, reach: Matrix, release: Matrix, keep: Bools) -> None:
    """Drop every released row that is nearer to a centre than its reach."""
    while len(centres) and keep.any():
        left = np.flatnonzero(keep)
        distances, indices = nearest(centres, release[left], min(8, len(left)))
        near = distances < reach[:, None]
        keep[left[indices[near]]] = False
        centres, reach = centres[near[:, -1]], reach[near[:, -1]]  # there may be more than 8 around these


def _row_order(rows: Matrix, release: Matrix, random: np.random.Generator, confidence: float) -> Finding:
    """Measure how often a record is nearer to the row in its place than to a random released row."""
    looked_at = np.arange(len(rows)) if len(rows) <= _EXACT else random.permutation(len(rows))[:_EXACT]
    here = rows[looked_at]
    own = np.square(here - release[looked_at]).sum(axis=1)
    wins = np.zeros(len(here))
    for _ in range(_RIVALS):
        rival = np.square(here - release[random.integers(0, len(release), len(here))]).sum(axis=1)
        wins += ((own < rival) + 0.5 * (own == rival)) / _RIVALS
    # Without a link the row in place is one more rival: its rank is uniform, and wins vary by 1/12 and what rivals add.
    noise = np.sqrt((1 / 12 + 1 / (6 * _RIVALS)) / len(here))
    limit = min(1.0, 0.5 + float(ndtri(confidence) * noise))
    area = float(wins.mean())
    return Finding("row_order", round(float((area - 0.5) * 2 * len(here))), area, 0.5, limit)

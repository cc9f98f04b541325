"""Search a release for copies, near copies and an order that links rows, before it is returned; repair or refuse it.

The measures of Thesis, Section 3.1, miss a few verbatim copies, and outliers. What chance gives is taken from the
originals alone: those equal to another, and two random halves of the table against each other. A repair drops the rows
around isolated records, and as many repeats of unique records as exceed what chance gives, at random: without any of
them, a record's absence would tell as much as its presence. Large tables are looked at in a sample, so that the cost is
bounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from duckanon._core.common.arrays import Bools, Ints, Matrix
from duckanon._core.common.row_keys import number_rows
from duckanon._core.privacy import copy_rates
from duckanon._core.privacy.copies import count_unique_copies
from duckanon._core.privacy.copy_rates import Rate
from duckanon._core.privacy.neighbours import find_nearest
from duckanon._core.privacy.rarity import Rarity, measure_rarity

_CONFIDENCE = 0.9995  # the share of honest releases that pass each check: a false alarm stops somebody's work
_BUDGET = 2 * 10**8  # pairs of rows whose distances are looked at in tables of more than 5,000 rows
_EXACT = 5_000  # originals up to which every one is looked at
_FEWEST = 400  # originals looked at, however large the table
_SEVERAL = 5_000  # originals up to which four splits are cheap
_SMALLEST = 20  # originals whose halves say anything about chance
_RIVALS = 8  # random rows that each row is compared with: the variance of their wins is 1/12, and 1/48 more with eight
_ROUNDS = 8  # of dropping near copies, each after another draw of halves
_REPAIRED = 0.9  # of honest releases pass: stricter than the check, whose halves are drawn anew
_AT_A_TIME = 8  # released rows around a record that are looked for together
_PROBLEMS = {
    "exact_copies": "original rows come back unchanged",
    "unique_copies": "comparisons with a record that nobody shares find it unchanged, rare ones weighing more",
    "near_copies": "times an isolated record has a released row nearer than half the way to any other record",
}


@dataclass(frozen=True)
class Findings:
    """All checks of a release: ``exact_copies``, ``unique_copies``, ``near_copies`` and, as an AUC, ``row_order``."""

    checks: Mapping[str, Rate]

    @property
    def is_within_limit(self) -> bool:
        """Whether every check passed."""
        return all(check.is_within_limit for check in self.checks.values())

    def __getitem__(self, name: str) -> Rate:
        return self.checks[name]

    def sentence(self, advice: str) -> str:
        """Say which checks failed, on how many records, and what to do; empty where every check passed."""
        failed = {name: check for name, check in self.checks.items() if not check.is_within_limit}
        if "exact_copies" in failed:
            failed.pop("unique_copies", None)  # the same rows, weighed
        clauses = [
            f"{failed[name].count} {problem} ({failed[name].value:.2%}, where chance explains {failed[name].limit:.2%})"
            for name, problem in _PROBLEMS.items()
            if name in failed
        ]
        if "row_order" in failed:
            clauses.append(
                f"row order links released rows to originals (AUC {failed['row_order'].value:.3f}, "
                f"where chance explains {failed['row_order'].limit:.3f})"
            )
        if not clauses:
            return ""
        return f"the release would give records away: {'; '.join(clauses)}; {advice}."


def check_release(
    original: npt.ArrayLike, released: npt.ArrayLike, random: np.random.Generator, *, budget: int = _BUDGET
) -> Findings:
    """Look for copies of records, near copies of isolated records, and an order of rows that links.

    The measures of Thesis, Section 3.1, miss a few verbatim copies, and outliers. Copies are counted over all rows;
    distances are those of every original up to 5,000, beyond that of originals drawn at random and of as many that lie
    farthest out, by the norm of the whitened row. What chance gives is taken from the originals alone: those equal to
    another, and two random halves of the table against each other. Row order is checked where both tables have as many
    rows.

    In tables of more than 5,000 rows the distances of at most ``budget`` pairs are looked at, but 400 originals always.
    """
    rows, release = _take_matrices(original, released)
    codes, release_codes = number_rows(rows, release)
    size = min(len(rows), len(release))
    part_codes = [release_codes[part] for part in copy_rates.draw_parts(len(release), size, random)]
    looked_at, drawn = _choose_originals(rows, len(release), budget, random)
    checks = {
        "exact_copies": copy_rates.count_exact_copies(codes, part_codes, None, size, _CONFIDENCE),
        "unique_copies": count_unique_copies(codes, release_codes, None, measure_rarity(rows), random, _CONFIDENCE),
        "near_copies": _compare_near_copies(rows, release, looked_at, drawn, random, _CONFIDENCE)[0],
    }
    if len(rows) == len(release):
        checks["row_order"] = _measure_row_order(rows, release, random)
    return Findings(checks)


def _take_matrices(original: npt.ArrayLike, released: npt.ArrayLike) -> tuple[Matrix, Matrix]:
    """Take both tables in double precision; refuse those that are too small to check."""
    rows, release = np.asarray(original, np.float64), np.asarray(released, np.float64)
    if len(rows) < _SMALLEST or not len(release):
        raise ValueError(
            f"checking a release needs at least {_SMALLEST} original rows and 1 released row; "
            f"got {len(rows)} and {len(release)}."
        )
    return rows, release


def _choose_originals(rows: Matrix, released: int, budget: int, random: np.random.Generator) -> tuple[Ints, Bools]:
    """Choose the originals to look at, and tell which of them were drawn at random."""
    if len(rows) <= _EXACT:
        return np.arange(len(rows)), np.ones(len(rows), bool)
    count = min(_EXACT, max(_FEWEST, budget // (len(rows) + released)))
    drawn = random.permutation(len(rows))[: count // 2]
    outlying = _measure_whitened(rows)
    outlying[drawn] = -1.0
    far = np.argpartition(outlying, -(count // 2))[-(count // 2) :]
    return np.concatenate([drawn, far]), np.arange(len(drawn) + len(far)) < len(drawn)


def _measure_whitened(rows: Matrix) -> Matrix:
    centred = rows - rows.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred)
    kept = values > values[-1] * max(rows.shape) * np.finfo(float).eps
    whitened = centred @ (vectors[:, kept] / np.sqrt(values[kept]))
    return np.asarray(np.einsum("ij,ij->i", whitened, whitened), np.float64)


def _compare_near_copies(
    rows: Matrix, release: Matrix, looked_at: Ints, drawn: Bools, random: np.random.Generator, confidence: float
) -> tuple[Rate, list[tuple[Matrix, Matrix]]]:
    """Count isolated originals with a near copy; return the distances of `measure_halves` too."""
    splits = copy_rates.measure_halves(rows, looked_at, random, 4 if len(rows) <= _SEVERAL else 1)
    half_size_parts = copy_rates.draw_parts(len(release), len(rows) // 2, random)
    radii = copy_rates.find_near_radii(splits, drawn)
    distances = copy_rates.measure_parts(rows[looked_at], release, half_size_parts, radii)
    return copy_rates.count_near_copies(distances, splits, confidence, drawn), splits


def _measure_row_order(rows: Matrix, release: Matrix, random: np.random.Generator) -> Rate:
    """Measure how often a record is nearer to the row in its place than to a random released row."""
    looked_at = np.arange(len(rows)) if len(rows) <= _EXACT else random.permutation(len(rows))[:_EXACT]
    records = rows[looked_at]
    in_place = np.square(records - release[looked_at]).sum(axis=1)
    wins = np.zeros(len(records))
    for _ in range(_RIVALS):
        rival = np.square(records - release[random.integers(0, len(release), len(records))]).sum(axis=1)
        wins += ((in_place < rival) + 0.5 * (in_place == rival)) / _RIVALS
    # Without a link the row in place is one more rival: its rank is uniform, and wins vary by 1/12 and what rivals add.
    noise = np.sqrt((1 / 12 + 1 / (6 * _RIVALS)) / len(records))
    limit = min(1.0, 0.5 + NormalDist().inv_cdf(_CONFIDENCE) * float(noise))
    area = float(wins.mean())
    return Rate(area, 0.5, limit, round(float((area - 0.5) * 2 * len(records))))


def repair_release(
    original: npt.ArrayLike, released: npt.ArrayLike, random: np.random.Generator, *, budget: int = _BUDGET
) -> Bools:
    """Choose the released rows to keep so that the checks pass; none, where the release is nothing but copies.

    Every released row nearer to an isolated record than half the way to its nearest neighbour goes. Of the rows that
    repeat a record that nobody shares, as many go as exceed what chance gives, at random: without any of them, a
    record's absence would tell as much as its presence. Where that does not suffice, records that two share, then four,
    and so on, are treated alike. An order of rows that links cannot be repaired by leaving rows out.
    """
    rows, release = _take_matrices(original, released)
    keep = _drop_near_copies(rows, release, budget, random)
    codes, release_codes = number_rows(rows, release)
    sharers = np.bincount(codes, minlength=int(release_codes.max(initial=0)) + 1)[release_codes]
    rarity = measure_rarity(rows)
    most_sharers = 1
    while keep.any():
        excess = _measure_excess(codes, release_codes[keep], rarity, random)
        if excess is None:
            break
        copies = np.flatnonzero(keep & (sharers > 0) & (sharers <= most_sharers))
        keep[random.permutation(copies)[: int(np.ceil(excess * len(copies)))]] = False
        most_sharers *= 2
        if most_sharers > 2 * sharers.max():
            keep &= sharers == 0
            break
    return keep


def _measure_excess(codes: Ints, kept_codes: Ints, rarity: Rarity, random: np.random.Generator) -> float | None:
    """Return the share of the copies that chance does not explain; None where it explains all."""
    size = min(len(codes), len(kept_codes))
    part_codes = [kept_codes[part] for part in copy_rates.draw_parts(len(kept_codes), size, random)]
    rates = [
        copy_rates.count_exact_copies(codes, part_codes, None, size, _REPAIRED),
        count_unique_copies(codes, kept_codes, None, rarity, random, _REPAIRED),
    ]
    return max((1 - rate.reference / rate.value for rate in rates if not rate.is_within_limit), default=None)


def screen_release(
    original: npt.ArrayLike,
    released: npt.ArrayLike,
    checks: str,
    random: np.random.Generator,
    advice: str,
    budget: int = _BUDGET,
) -> Bools:
    """Check a release, and repair it where ``checks`` is ``'repair'``; return the rows to keep.

    Raises:
        ValueError: Where the checks fail, and do so after a repair, or one would leave out more than half of the rows.
    """
    rows, release = _take_matrices(original, released)
    keep = np.ones(len(release), bool)
    findings = check_release(rows, release, random, budget=budget)
    if not findings.is_within_limit and checks == "repair":
        keep = repair_release(rows, release, random, budget=budget)
        if 2 * keep.sum() >= len(keep):
            findings = check_release(rows, release[keep], random, budget=budget)
    if not findings.is_within_limit:
        raise ValueError(findings.sentence(advice))
    return keep


def _drop_near_copies(rows: Matrix, release: Matrix, budget: int, random: np.random.Generator) -> Bools:
    """Keep the released rows that are not nearer to an isolated record than half the way to its neighbour."""
    looked_at, drawn = _choose_originals(rows, len(release), budget, random)
    keep = np.ones(len(release), bool)
    reach = np.minimum(*copy_rates.measure_halves(rows, looked_at, random, 1)[0])
    for _ in range(_ROUNDS):
        is_isolated = copy_rates.find_farthest(reach, drawn)
        _drop_around(rows[looked_at[is_isolated]], reach[is_isolated] / 2, release, keep)
        if not keep.any():
            break
        rate, splits = _compare_near_copies(rows, release[keep], looked_at, drawn, random, _REPAIRED)
        if rate.is_within_limit:
            break
        reach = splits[0][0]  # to the nearest in the same half, which is farther: more is dropped
    return keep


def _drop_around(centres: Matrix, reach: Matrix, release: Matrix, keep: Bools) -> None:
    """Drop every released row that is nearer to a centre than its reach."""
    while len(centres) and keep.any():
        kept = np.flatnonzero(keep)
        distances, indices = find_nearest(centres, release[kept], min(_AT_A_TIME, len(kept)))
        is_near = distances < reach[:, None]
        keep[kept[indices[is_near]]] = False
        centres, reach = centres[is_near[:, -1]], reach[is_near[:, -1]]  # there may be more rows around these

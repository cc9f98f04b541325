"""Tests whether a release tells more about the originals than another sample of the same population would.

The measures of Thesis, Section 3.1 (distance, ambiguity, uncertainty) are compared with those of a reference sample of
the same size: a release fails where their distribution lies farther to the left than limit and chance allow. Beside
them stand counts of copies and attacks on membership, since the largest shift between two distributions does not see a
few verbatim rows. A bootstrap bounds each shift; for counts, exact distributions bound what chance gives. The cost is
that of the nearest neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from duckanon._core.common import progress
from duckanon._core.common.arguments import refuse_unless
from duckanon._core.common.arrays import Ints, Matrix
from duckanon._core.common.row_keys import find_distinct_rows, number_known_rows
from duckanon._core.common.rules import Whole
from duckanon._core.privacy import copy_rates
from duckanon._core.privacy.cells import ReleasedCells, count_singled_out
from duckanon._core.privacy.copies import Amounts, CopyTables, count_noisy_copies, count_unique_copies
from duckanon._core.privacy.copy_rates import Rate
from duckanon._core.privacy.densities import (
    compare_isolated_people,
    compare_membership,
    estimate_rarity,
    score_distances,
)
from duckanon._core.privacy.prediction import PredictionMeasures, measure_queries, widen_rows
from duckanon._core.privacy.rarity import ColumnCodes, count_rare_values, measure_rarity

LIMITS = {"distance": 0.05, "ambiguity": 0.10, "uncertainty": 0.10}
"""The largest leftward shift of each measure's distribution that passes."""
CHANCE = {"distance": 2.7, "ambiguity": 3.2, "uncertainty": 4.2}
"""What chance shifts: the bound of a fresh sample's shift, times the root of its rows, is smaller in 99 % of the cases
(five surveys at 300 and 1,000 rows, with a reference and without; records share their neighbours, so that more than two
independent samples would shift)."""
_FEW_ROWS = 200  # rows from which on a shift that chance explains passes; with fewer, chance explains too much to tell
_MOST_EXACT = 10_000  # rows up to which the p-value of the Kolmogorov-Smirnov test is exact, as in scipy
PASS, FAIL, TOO_FEW = "pass", "fail", "too few records to tell"
"""The answers of a test."""


@dataclass(frozen=True)
class PrivacyTest:
    """One test of a release.

    Attributes:
        value: Of the release: the median of a measure, a share of originals, an AUC.
        reference: What an honest sample has.
        limit: The largest bound of the shift, or value, that passes.
        passed: Whether it is within the limit, and rows are enough to say so.
        ks, p_value, shift, shift_bound: Of the three measures: the one-sided Kolmogorov-Smirnov test, and the largest
            leftward shift with its upper 95 % bound.
    """

    name: str
    value: float
    reference: float
    limit: float
    is_within_limit: bool
    is_enough: bool = True
    ks: float | None = None
    p_value: float | None = None
    shift: float | None = None
    shift_bound: float | None = None

    @property
    def answer(self) -> str:
        """One of `PASS`, `FAIL` and `TOO_FEW`, which is no pass."""
        return PASS if self.is_within_limit else FAIL if self.is_enough else TOO_FEW

    @property
    def test_value(self) -> float:
        """The number that is compared with the limit."""
        return self.value if self.shift_bound is None else self.shift_bound


def measure_shift(
    release: Matrix, reference: Matrix, replicates: int, random: np.random.Generator
) -> tuple[float, float]:
    """Return how far a measure's distribution lies to the left of its reference, and the upper 95 % bound of that.

    The shift is the largest difference of the distribution functions, release less reference. Originals are drawn, each
    with both of its values. The largest of many differences is biased upward, and its replicates are once more, so
    their 95 % quantile covers the truth nearly always and refuses honest releases. The basic bootstrap, twice the shift
    less the 5 % quantile, takes the bias off: in simulations (2,000 rows each; no shift, 5 % and 10 %) it covered the
    truth in 96 to 97 of 100 cases, against 99 to 100 for the quantile itself.
    """
    count = len(release)
    values = np.concatenate([release, reference])
    order = np.argsort(values, kind="stable")
    sign = np.where(order < count, 1.0, -1.0) / count
    ordered = values[order]
    ends = np.flatnonzero(np.append(ordered[1:] > ordered[:-1], True))  # a tie is passed as a whole
    order %= count
    largest = max(0.0, float(np.cumsum(sign)[ends].max()))
    drawn = np.empty(replicates)
    step = max(1, (1 << 22) // count)
    for start in range(0, replicates, step):
        progress.check()
        size = min(step, replicates - start)
        picks = random.integers(0, count, (size, count)) + np.arange(size)[:, None] * count
        weights = np.bincount(picks.reshape(-1), minlength=size * count).reshape(size, count)
        curves = np.cumsum(weights[:, order] * sign, axis=1)[:, ends]
        drawn[start : start + size] = np.maximum(0.0, curves.max(axis=1))
    return largest, max(largest, 2 * largest - float(np.quantile(drawn, 0.05)))


def compare_distributions(release: Matrix, reference: Matrix) -> tuple[float, float]:
    """Return how far the first of two equally large samples lies to the left, and the p-value of that.

    It is `scipy.stats.ks_2samp` with the alternative "greater", to the last digit, in a tenth of its time.
    """
    count = len(release)
    values = np.concatenate([release, reference])
    if np.isnan(values).any():
        return math.nan, math.nan
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    ends = np.flatnonzero(np.append(ordered[1:] > ordered[:-1], True))
    released = np.cumsum(order < count)[ends]
    statistic = float((released / count - (ends + 1 - released) / count).max())
    if count > _MOST_EXACT:  # the approximation of Hodges (1958), equation 5.3
        scaled = np.sqrt(count / 2) * statistic
        exponent = -2 * scaled**2 - 2 * scaled * (3.0 * count) / np.sqrt(2.0 * count * count * count) / 3.0
        return statistic, float(np.exp(exponent))
    steps = np.arange(round(statistic * count))
    return len(steps) / count, float(np.prod((count - steps) / (count + steps + 1.0)))


def judge_measure(
    name: str, release: Matrix, reference: Matrix, size: int, replicates: int, random: np.random.Generator
) -> PrivacyTest:
    """Test whether a measure of the originals is smaller than a fresh sample's, both of ``size`` rows.

    A shift whose upper bound is within `LIMITS` passes, however few the rows. In a small table the bound of a fresh
    sample is beyond that, by chance alone: there the limit is what chance explains, and below `_FEW_ROWS` rows, where
    chance explains nearly anything, the answer is that it cannot be told.
    """
    distance, p_value = compare_distributions(release, reference)
    largest, bound = measure_shift(release, reference, replicates, random)
    rows = min(len(release), size)
    chance = max(LIMITS[name], CHANCE[name] / math.sqrt(rows))
    limit = chance if rows >= _FEW_ROWS else LIMITS[name]
    return PrivacyTest(
        name,
        float(np.median(release)),
        float(np.median(reference)),
        limit,
        bound <= limit,
        bound <= limit or bound > chance,
        distance,
        p_value,
        largest,
        bound,
    )


_CONFIDENCE = 0.99  # of honest releases pass each of the counting tests
_EITHER = 0.995  # of honest releases pass each of two tests of which either may fail
_OVERLAPPING = 0.995  # of the test of near copies, whose halves are drawn from the same people: 3 % failed at 0.99
_CERTAIN = 0.999  # of the test of all people, who share their nearest rows, so that chance is larger than the formula
_FEWEST_RELEASED = 20  # originals whose distribution says anything
_CHEAP = 25_000_000  # pairs of rows that four splits of the table may each look at


@dataclass(frozen=True)
class PrivacySetting:
    """What a release is compared with, how its rows are coded, and how much is looked at.

    Attributes:
        k: The neighbours of the measures.
        reference: A sample of the same population without any of the originals; None: for each original, the other
            originals.
        holdout: Rows of the same population that had no part in the release, for the membership tests; None: the
            reference serves the test of isolated people.
        draws: More releases of the same originals, with the variances of their cells where they are coarse: the
            membership tests attack all of them together.
        isolated: Whether membership of the most isolated people is tested, which takes other people and a release of
            values: the distance to a coarse cell is that to everybody in it, and says more about the cell than about
            one of them.
        sample: How many originals are looked at, drawn at random; None for all. Exact copies are counted over all of
            them.
        cells: Of a coarse release: what its rows hold; ``released`` then has the means of that.
        groups: The matrix columns of each column of the table; None: each is one by itself.
        class_size: What `find_smallest_class` found, where ``released`` is a sample of the rows: it breaks
            classes.
        rounded: The release, its numbers rounded to the digits of the originals, in which copies are looked for; None:
            it has no others.
        plain: The same tables with all numbers as amounts, in which noisy copies are looked for too.
        columns: The values of each column, in which those of single people are looked for; of a coarse release none.
    """

    k: int = 5
    reference: npt.ArrayLike | None = None
    holdout: npt.ArrayLike | None = None
    draws: Sequence[tuple[Matrix, Matrix | None]] = ()
    isolated: bool = True
    sample: int | None = None
    replicates: int = 400
    cells: ReleasedCells | None = None
    groups: Sequence[slice] | None = None
    class_size: float | None = None
    rounded: npt.ArrayLike | None = None
    plain: Amounts | None = None
    columns: Sequence[ColumnCodes] = ()

    def __post_init__(self) -> None:
        refuse_unless(Whole(2), "k", self.k)
        refuse_unless(Whole(_FEWEST_RELEASED, null=True), "sample", self.sample)


def run_privacy_tests(
    original: npt.ArrayLike,
    released: npt.ArrayLike,
    random: np.random.Generator,
    setting: PrivacySetting = PrivacySetting(),
) -> list[PrivacyTest]:
    """Test whether a release tells more about the originals than a reference sample would, on comparable scales.

    Thesis, Sections 3.1 and 5.2.1, and what these leave open. A larger table has nearer rows whatever it tells, so
    release and reference are compared at the same size: the measures on a random part of the larger one; the counts
    over random parts that cover the whole release, so that no copy is missed. The tests of copies stand beside the
    measures because the largest shift between two distributions does not see a few verbatim rows.

    A row of a coarse release stands for a value drawn from its cells, each that they hold being equally likely. The
    distance of a record to it is the root of the mean squared one: 0 only where the cells hold nothing but the record,
    and the plain distance where they are values. (The distance to the nearest point of the cells would be 0 for all
    records of a generalized table, however coarse.) Rows of one class tie, so a class of k has an ambiguity of 1. An
    exact copy is a row whose cells hold nothing but the record; a unique one, a row whose cells hold the record and no
    other person.

    The nearest rows of a microaggregate are equal, so that uncertainty is 0 however many people stand behind them: such
    a release is judged by the size of its smallest class, which k people must share.
    """
    k, cells, draws = setting.k, setting.cells, setting.draws
    rows, release = np.asarray(original, np.float64), np.asarray(released, np.float64)
    tables = (setting.reference, setting.holdout)
    reference, holdout = (None if table is None else np.asarray(table, np.float64) for table in tables)
    _refuse_few(rows, release, reference, k)
    # the measures, at the same size
    looked_at = np.sort(random.permutation(len(rows))[: setting.sample])
    size = min(len(release), len(rows if reference is None else reference))
    release_parts = copy_rates.draw_parts(len(release), size, random)
    part = release_parts[0][:size]
    variances = None if cells is None else cells.variances[part]
    with progress.step(0.0, 0.3):
        measured = measure_queries(rows[looked_at], release[part], k, variances=variances)
    with progress.step(0.3, 0.6):
        expected = _measure_expected(rows, reference, looked_at, size, k, random)
    half_size_parts = copy_rates.draw_parts(len(release), len(rows) // 2, random)
    splits = copy_rates.measure_halves(rows, looked_at, random, 4 if len(rows) * len(looked_at) <= _CHEAP else 1)
    if cells is not None:
        rows, release = widen_rows(rows), widen_rows(release, cells.variances)
        reference, holdout = (None if table is None else widen_rows(table) for table in (reference, holdout))
        draws = [(widen_rows(draw, spread), None) for draw, spread in draws]
    # Near copies are those of isolated people: nobody else is looked for in every part of the release.
    distances = copy_rates.measure_parts(rows[looked_at], release, half_size_parts, copy_rates.find_near_radii(splits))
    tests = [
        judge_measure(name, getattr(measured, name), getattr(expected, name), size, setting.replicates, random)
        for name in LIMITS
    ]
    smallest = find_smallest_class(rows, release) if setting.class_size is None else setting.class_size
    if cells is None and smallest is not None:  # uncertainty, the last one, is 0 for all
        tests[-1] = PrivacyTest("class_size", smallest, k, k, smallest >= k)
    # copies, over all rows
    exact = release if setting.rounded is None or cells is not None else np.asarray(setting.rounded, np.float64)
    tests += _test_equal_rows(rows, exact, reference, release_parts, size, random, cells, setting.groups)
    tests.append(_make_rate_test("near_copies", copy_rates.count_near_copies(distances, splits, _OVERLAPPING)))
    outsiders = reference if holdout is None else holdout
    if cells is None and smallest is None:  # the centres of classes are near to those whom they stand for
        codings = [CopyTables(rows, exact, outsiders)]
        codings += [] if setting.plain is None else [CopyTables(*setting.plain[:3])]
        tests.append(_make_rate_test("noisy_copies", count_noisy_copies(codings, random, _CONFIDENCE, setting.plain)))
    if setting.columns:
        tests.append(_make_rate_test("rare_values", count_rare_values(setting.columns, random, _CONFIDENCE)))
    # membership, attacked by all releases of these people together
    releases = [release, *(np.asarray(draw, np.float64) for draw, _ in draws)]
    if holdout is not None:
        scores = score_distances(rows[looked_at], releases), score_distances(holdout, releases)
        tests.append(_make_rate_test("membership", compare_membership(*scores, _CERTAIN)))
    if outsiders is not None and setting.isolated and cells is None:
        isolated = compare_isolated_people(rows, outsiders, releases, random, _EITHER, most=len(looked_at))
        tests.append(_make_rate_test("isolated_membership", isolated))
    progress.advance(1.0)
    return tests


def _refuse_few(rows: Matrix, release: Matrix, outsiders: Matrix | None, k: int) -> None:
    if len(rows) < _FEWEST_RELEASED:
        raise ValueError(f"a privacy test needs at least {_FEWEST_RELEASED} original rows; got {len(rows)}.")
    for role, table in (("released", release), ("reference", rows if outsiders is None else outsiders)):
        if len(table) <= k:
            raise ValueError(f"a privacy test with k = {k} needs more than {k} {role} rows; got {len(table)}.")


def find_smallest_class(rows: Matrix, release: Matrix) -> float | None:
    """Return how many people share a released row at least; None where rows are not released in classes of equal ones.

    Microaggregates are: every released row has an equal, and not every original. A release of more rows than people,
    each of them several times, has no more people in a class.
    """
    if find_distinct_rows(rows).counts.min() > 1 or (count := find_distinct_rows(release).counts.min()) < 2:
        return None
    return float(np.floor(count * min(1.0, len(rows) / len(release))))


def _measure_expected(
    rows: Matrix, outsiders: Matrix | None, looked_at: Ints, size: int, k: int, random: np.random.Generator
) -> PredictionMeasures:
    """Measure what the reference, or the other originals, tell about the originals."""
    pool = rows if outsiders is None else outsiders
    chosen = random.permutation(len(pool))[:size]
    position = np.full(len(rows), -1)
    if outsiders is None:
        position[chosen] = np.arange(len(chosen))
    return measure_queries(rows[looked_at], pool[chosen], k, skip_self=position[looked_at])


def _test_equal_rows(
    rows: Matrix,
    release: Matrix,
    outsiders: Matrix | None,
    release_parts: list[Ints],
    size: int,
    random: np.random.Generator,
    cells: ReleasedCells | None,
    groups: Sequence[slice] | None,
) -> list[PrivacyTest]:
    """Count released rows that are equal to originals, to any and to those that nobody shares."""
    codes, release_codes, *other_codes = number_known_rows(rows, release, *([] if outsiders is None else [outsiders]))
    reference = alike = None
    if outsiders is not None:
        drawn = random.permutation(len(outsiders))[:size]
        reference, alike = other_codes[0][drawn], outsiders[drawn[: len(rows)]]
    copies = copy_rates.count_exact_copies(
        codes, [release_codes[part] for part in release_parts], reference, size, _EITHER
    )
    if cells is None:
        rarity = estimate_rarity(rows, groups, alike, random)
    else:  # people whom cells single out are counted, not weighed
        rarity = replace(measure_rarity(rows, groups, alike), scores=np.ones(len(rows)))
        if reference is None:  # its limit is all that is used then: that of half as many rows
            release_codes = release_codes[: len(rows) // 2]
    unique = count_unique_copies(codes, release_codes, reference, rarity, random, _CONFIDENCE)
    return [
        _make_rate_test("exact_copies", copies),
        _make_rate_test("unique_copies", unique if cells is None else _compare_singled_out(cells, unique, random)),
    ]


def _compare_singled_out(cells: ReleasedCells, copies: Rate, random: np.random.Generator) -> Rate:
    """Count originals whom the cells of a released row single out.

    Against the people of the reference whom the same cells single out, since wide cells hold one of them by chance;
    without a reference, against what chance gives among values, ``copies``.
    """
    hits, trials = count_singled_out(cells.original, cells.columns, random)
    if cells.reference is None:
        return Rate(hits / max(trials, 1), copies.reference, copies.limit, hits)
    people = random.permutation(len(cells.reference))[: len(cells.original)]  # more of them would single out fewer
    outside = count_singled_out(cells.reference[people], cells.columns, random)
    return copy_rates.compare_shares(hits, trials, *outside, _CONFIDENCE)


def _make_rate_test(name: str, share: Rate) -> PrivacyTest:
    return PrivacyTest(name, share.value, share.reference, share.limit, share.is_within_limit)

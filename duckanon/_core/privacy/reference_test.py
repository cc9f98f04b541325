"""Tests whether a release tells more about the originals than another sample of the same population would."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from duckanon._core.common.arguments import checked
from duckanon._core.common.arrays import Ints, Matrix
from duckanon._core.common.progress import Tell, silent, within
from duckanon._core.common.rules import Whole
from duckanon._core.privacy import copy_rates
from duckanon._core.privacy.cells import ReleasedCells, singled_out
from duckanon._core.privacy.close_copies import Amounts
from duckanon._core.privacy.copy_rates import Rate
from duckanon._core.privacy.densities import rarity_by_density
from duckanon._core.privacy.equal_rows import distinct_rows, known_codes
from duckanon._core.privacy.membership import distance_scores, isolated_membership, membership
from duckanon._core.privacy.noisy_copies import Coded, noisy_copies
from duckanon._core.privacy.prediction import Measures, measures, widened
from duckanon._core.privacy.rare_values import ColumnCodes, rare_values
from duckanon._core.privacy.rarity import rarity_of
from duckanon._core.privacy.shifts import LIMITS, PrivacyTest, measure_test
from duckanon._core.privacy.unique_copies import unique_copies

_CONFIDENCE = 0.99  # of honest releases pass each of the counting tests
_EITHER = 0.995  # of honest releases pass each of two tests of which either may fail
_OVERLAPPING = 0.995  # of the test of near copies, whose halves are drawn from the same people: 3 % failed at 0.99
_CERTAIN = 0.999  # of the test of all people, who share their nearest rows, so that chance is larger than the formula
_FEWEST = 20  # originals whose distribution says anything
_CHEAP = 25_000_000  # pairs of rows that four splits of the table may each look at


@checked(k=Whole(2), sample=Whole(_FEWEST, null=True))
def privacy_tests(
    original: npt.ArrayLike,
    released: npt.ArrayLike,
    random: np.random.Generator,
    *,
    reference: npt.ArrayLike | None = None,
    holdout: npt.ArrayLike | None = None,
    draws: Sequence[tuple[Matrix, Matrix | None]] = (),
    isolated: bool = True,
    k: int = 5,
    sample: int | None = None,
    replicates: int = 400,
    tell: Tell = silent,
    cells: ReleasedCells | None = None,
    groups: Sequence[slice] | None = None,
    class_size: float | None = None,
    rounded: npt.ArrayLike | None = None,
    plain: Amounts | None = None,
    columns: Sequence[ColumnCodes] = (),
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

    Args:
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
        class_size: What `smallest_class` found, where ``released`` is a sample of the rows: a sample breaks classes.
        rounded: The release, its numbers rounded to the digits of the originals, in which copies are looked for; None:
            it has no others.
        plain: The same tables with all numbers as amounts, in which noisy copies are looked for too.
        columns: The values of each column, in which those of single people are looked for; of a coarse release none.
    """
    rows, release = np.asarray(original, np.float64), np.asarray(released, np.float64)
    others, apart = (None if table is None else np.asarray(table, np.float64) for table in (reference, holdout))
    _refuse_few(rows, release, others, k)
    looked_at = np.sort(random.permutation(len(rows))[:sample])
    size = min(len(release), len(rows if others is None else others))
    release_parts = copy_rates.parts(len(release), size, random)
    part = release_parts[0][:size]
    variances = None if cells is None else cells.variances[part]
    measured = measures(rows[looked_at], release[part], k, tell=within(tell, 0.0, 0.3), variances=variances)
    expected = _expected(rows, others, looked_at, size, k, random, within(tell, 0.3, 0.6))
    half_size_parts = copy_rates.parts(len(release), len(rows) // 2, random)
    splits = copy_rates.half_distances(rows, looked_at, random, 4 if len(rows) * len(looked_at) <= _CHEAP else 1)
    if cells is not None:
        rows, release = widened(rows), widened(release, cells.variances)
        others, apart = (None if table is None else widened(table) for table in (others, apart))
        draws = [(widened(draw, spread), None) for draw, spread in draws]
    # Near copies are those of isolated people: nobody else is looked for in every part of the release.
    distances = copy_rates.part_distances(rows[looked_at], release, half_size_parts, copy_rates.near_radii(splits))
    tests = [
        measure_test(name, getattr(measured, name), getattr(expected, name), size, replicates, random)
        for name in LIMITS
    ]
    smallest = smallest_class(rows, release) if class_size is None else class_size
    if cells is None and smallest is not None:
        tests[-1] = PrivacyTest("class_size", smallest, k, k, smallest >= k)  # uncertainty, the last one, is 0 for all
    exact = release if rounded is None or cells is not None else np.asarray(rounded, np.float64)
    tests += _equal_row_tests(rows, exact, others, release_parts, size, random, cells, groups)
    tests.append(_rate_test("near_copies", copy_rates.near_copies(distances, splits, _OVERLAPPING)))
    outsiders = others if apart is None else apart
    if cells is None and smallest is None:  # the centres of classes are near to those whom they stand for
        codings = [Coded(rows, exact, outsiders)] + ([] if plain is None else [Coded(*plain[:3])])
        tests.append(_rate_test("noisy_copies", noisy_copies(codings, random, _CONFIDENCE, plain)))
    if columns:
        tests.append(_rate_test("rare_values", rare_values(columns, random, _CONFIDENCE)))
    releases = [release, *(np.asarray(draw, np.float64) for draw, _ in draws)]
    if apart is not None:
        scores = distance_scores(rows[looked_at], releases), distance_scores(apart, releases)
        tests.append(_rate_test("membership", membership(*scores, _CERTAIN)))
    if outsiders is not None and isolated and cells is None:
        found = isolated_membership(rows, outsiders, releases, random, _EITHER, most=len(looked_at))
        tests.append(_rate_test("isolated_membership", found))
    tell(1.0)
    return tests


def _refuse_few(rows: Matrix, release: Matrix, others: Matrix | None, k: int) -> None:
    if len(rows) < _FEWEST:
        raise ValueError(f"a privacy test needs at least {_FEWEST} original rows; got {len(rows)}.")
    for role, table in (("released", release), ("reference", rows if others is None else others)):
        if len(table) <= k:
            raise ValueError(f"a privacy test with k = {k} needs more than {k} {role} rows; got {len(table)}.")


def smallest_class(rows: Matrix, release: Matrix) -> float | None:
    """Return how many people share a released row at least; None where rows are not released in classes of equal ones.

    Microaggregates are: every released row has an equal, and not every original. A release of more rows than people,
    each of them several times, has no more people in a class.
    """
    if distinct_rows(rows).counts.min() > 1 or (count := distinct_rows(release).counts.min()) < 2:
        return None
    return float(np.floor(count * min(1.0, len(rows) / len(release))))


def _expected(
    rows: Matrix, others: Matrix | None, looked_at: Ints, size: int, k: int, random: np.random.Generator, tell: Tell
) -> Measures:
    """Measure what the reference, or the other originals, tell about the originals."""
    pool = rows if others is None else others
    chosen = random.permutation(len(pool))[:size]
    position = np.full(len(rows), -1)
    if others is None:
        position[chosen] = np.arange(len(chosen))
    return measures(rows[looked_at], pool[chosen], k, skip_self=position[looked_at], tell=tell)


def _equal_row_tests(
    rows: Matrix,
    release: Matrix,
    others: Matrix | None,
    release_parts: list[Ints],
    size: int,
    random: np.random.Generator,
    cells: ReleasedCells | None,
    groups: Sequence[slice] | None,
) -> list[PrivacyTest]:
    """Count released rows that are equal to originals, to any and to those that nobody shares."""
    codes, release_codes, *other_codes = known_codes(rows, release, *([] if others is None else [others]))
    reference = alike = None
    if others is not None:
        drawn = random.permutation(len(others))[:size]
        reference, alike = other_codes[0][drawn], others[drawn[: len(rows)]]
    copies = copy_rates.exact_copies(codes, [release_codes[part] for part in release_parts], reference, size, _EITHER)
    if cells is None:
        rarity = rarity_by_density(rows, groups, alike, random)
    else:  # people whom cells single out are counted, not weighed
        rarity = replace(rarity_of(rows, groups, alike), scores=np.ones(len(rows)))
        if reference is None:  # its limit is all that is used then: that of half as many rows
            release_codes = release_codes[: len(rows) // 2]
    unique = unique_copies(codes, release_codes, reference, rarity, random, _CONFIDENCE)
    return [
        _rate_test("exact_copies", copies),
        _rate_test("unique_copies", unique if cells is None else _singled_out(cells, unique, random)),
    ]


def _singled_out(cells: ReleasedCells, copies: Rate, random: np.random.Generator) -> Rate:
    """Count originals whom the cells of a released row single out.

    Against the people of the reference whom the same cells single out, since wide cells hold one of them by chance;
    without a reference, against what chance gives among values, ``copies``.
    """
    hits, trials = singled_out(cells.original, cells.columns, random)
    if cells.reference is None:
        return Rate(hits / max(trials, 1), copies.reference, copies.limit, hits)
    people = random.permutation(len(cells.reference))[: len(cells.original)]  # more of them would single out fewer
    outside = singled_out(cells.reference[people], cells.columns, random)
    return copy_rates.rate(hits, trials, *outside, _CONFIDENCE)


def _rate_test(name: str, share: Rate) -> PrivacyTest:
    return PrivacyTest(name, share.value, share.reference, share.limit, share.passed)

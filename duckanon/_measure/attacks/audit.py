"""The paired audit of a way to release, as ``anon.membership_audit`` runs it.

Releases with and without isolated people: how often an attacker is right who tells the two apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from scipy.optimize import brentq
from scipy.special import stdtrit

from duckanon._core.common import progress
from duckanon._core.common.arguments import check_by, make_generator, refuse_unless
from duckanon._core.common.arrays import Bools, Floats, Ints, Matrix, sample_rows
from duckanon._core.common.declare import report_rows
from duckanon._core.common.imports import import_function
from duckanon._core.common.rules import IN_SQL, OneOf
from duckanon._core.encoding.column_codecs import FEWEST_ROWS
from duckanon._core.encoding.measurement_encoding import fit_measure_encoding
from duckanon._core.encoding.pairs import NumberPair, Pair, pair_tables
from duckanon._core.privacy.audit import count_wins, measure_isolation
from duckanon._core.privacy.neighbours import find_nearest
from duckanon._core.privacy.normal_scores import NormalScores
from duckanon._measure.attacks.declared import AUDITED, MEMBERSHIP_AUDIT
from duckanon._methods.baselines import declared as baselines
from duckanon._methods.swap import declared as swap
from duckanon._methods.synthesize import declared as synthesize

TOLERANCE = 0.60
"""The largest mean win rate that passes: an attacker who would be right once in two times is right three in five."""
WORST_TOLERANCE = 0.75
"""The largest win rate of a single person: right three times of four."""
PASS, FAIL, TOO_FEW = "pass", "fail", "too few releases to tell"
"""The answers of an audit."""
_ISOLATED = 0.05  # of the people, the farthest from everybody else
_CONFIDENCE = 0.95
_NEIGHBOURS = 5
_QUERIES = 300  # sets of three columns
_BINS = 20  # of the numbers in queries
_USUAL = 0.05  # the share of people from which on a number is a value of its own in queries
_FEW_VALUES = 12
_BELOW_ONE = 1 - 1e-9  # a true rate of 1 explains a rate of 1 without error, and so do smaller ones
_BITS = np.array([bin(byte).count("1") for byte in range(256)], np.uint8)

SCALES = ("standardised", "normal_scores")


class Released(NamedTuple):
    """A release as points, and its values and those of all people as codes for queries, a column each."""

    points: Matrix
    codes: Ints
    people: Ints


@dataclass(frozen=True)
class Finding:
    """How often one attack was right, over all people and for the one whom it recognizes most often."""

    attack: str
    scale: str | None
    rates: Floats
    with_person: int  # releases that a person is part of, about as many as those without

    @property
    def mean(self) -> float:
        """The mean over people."""
        return float(self.rates.mean())

    @property
    def standard_error(self) -> float:
        """Of the mean, over people: who is part of a release is drawn for each of them."""
        return float(self.rates.std(ddof=1) / np.sqrt(len(self.rates)))

    @property
    def bounds(self) -> tuple[float, float]:
        """The lower and the upper one-sided bound of the mean, each with a confidence of 95 %."""
        reach = float(stdtrit(len(self.rates) - 1, _CONFIDENCE)) * self.standard_error
        return max(0.0, self.mean - reach), min(1.0, self.mean + reach)

    @property
    def worst(self) -> float:
        """The largest win rate."""
        return float(self.rates.max())

    @property
    def worst_standard_error(self) -> float:
        """Of that person's win rate, over releases."""
        return rate_error(self.worst, self.with_person)

    @property
    def worst_bound(self) -> float:
        """The lower bound of the largest win rate, corrected for its being the largest of all people's."""
        return lower_bound(self.worst, self.with_person, 1 - (1 - _CONFIDENCE) / len(self.rates))

    @property
    def answer(self) -> str:
        """One of `PASS`, `FAIL` and `TOO_FEW`, which is no pass."""
        low, high = self.bounds
        if low > TOLERANCE or self.worst_bound > WORST_TOLERANCE:
            return FAIL
        return PASS if high <= TOLERANCE else TOO_FEW


def rate_error(rate: float, releases: int) -> float:
    """Return the standard error of a win rate between so many releases with a person and as many without.

    Hanley and McNeil (1982), for scores that are exponentially distributed.
    """
    both, either = rate / (2 - rate), 2 * rate**2 / (1 + rate)
    variance = rate * (1 - rate) + (releases - 1) * (both + either - 2 * rate**2)
    return float(np.sqrt(max(variance, 0.0)) / releases)


def lower_bound(rate: float, releases: int, confidence: float) -> float:
    """Return the smallest true rate at which chance explains the one found; no lower than 0.5 is looked for."""
    reach = NormalDist().inv_cdf(confidence)

    def excess(true: float) -> float:
        return rate - true - reach * rate_error(true, releases)

    return 0.5 if excess(0.5) <= 0 else float(brentq(excess, 0.5, min(rate, _BELOW_ONE)))


def draw_isolated_people(points: Matrix, count: int, random: np.random.Generator) -> Ints:
    """Draw people from the most isolated 5 %, on either scale; nobody who has an equal."""
    ranks = []
    for scaled in (points, NormalScores(points)(points)):
        apart = measure_isolation(scaled)
        rank = np.empty(len(points))
        rank[np.argsort(-apart, kind="stable")] = np.arange(len(points))
        ranks.append(np.where(apart > 0, rank, np.inf))
    best = np.minimum(*ranks)
    order = np.argsort(best, kind="stable")[: max(count, round(_ISOLATED * len(points)))]
    return np.sort(random.permutation(order[np.isfinite(best[order])])[:count])


def memberships(releases: int, people: int, random: np.random.Generator) -> Bools:
    """Draw a half of the people for every other release; the one after it holds the other half."""
    halves = [random.permutation(people) < people // 2 for _ in range(releases // 2)]
    return np.array([half ^ is_second for half in halves for is_second in (False, True)])


def audit_pairs(
    points: Matrix,
    columns: int,
    release: Callable[[Ints, np.random.Generator], Released],
    *,
    people: int,
    releases: int,
    random: np.random.Generator,
) -> list[Finding]:
    """Release a table with one half of some isolated people and with the other, again and again, and attack each.

    In place of those who are left out, a release holds as many people who are not isolated, so that all are equally
    large. An attacker knows a person's values, and says which of two releases the person is part of: the one whose
    nearest row, or five nearest rows, are nearer; or the one with more rows that agree with the person in three
    columns, over 300 sets of columns, each counting as a share of what it finds on average. The table has so many
    columns.
    """
    targets = draw_isolated_people(points, people, random)
    if len(targets) < 2:
        raise ValueError("nobody is isolated: everybody has an equal in these columns; there is nobody to look for.")
    rest = random.permutation(np.setdiff1d(np.arange(len(points)), targets))
    spare, always = rest[: len(targets)], rest[len(targets) :]
    is_member = memberships(releases, len(targets), random)
    scales: dict[str, Callable[[Matrix], Matrix]] = dict(zip(SCALES, (np.asarray, NormalScores(points)), strict=True))
    rows = {name: scale(points)[targets] for name, scale in scales.items()}
    of_queries = random.spawn(1)[0]  # the releases do not depend on the number of columns
    triples = np.array([of_queries.permutation(columns)[:3] for _ in range(_QUERIES)])
    distances: dict[tuple[str, str], list[Floats]] = {
        (attack, name): [] for attack in ("nearest_row", "nearest_rows") for name in scales
    }
    counts = np.empty((releases, len(targets), len(triples)))
    for number, is_inside in enumerate(is_member):
        with progress.step(number / releases, (number + 1) / releases):
            progress.advance(0.0)
            released = release(np.sort(np.concatenate([always, np.where(is_inside, targets, spare)])), random)
            for name, scale in scales.items():
                near = find_nearest(rows[name], scale(released.points), min(_NEIGHBOURS, len(released.points)))[0]
                distances["nearest_row", name].append(near[:, 0])
                distances["nearest_rows", name].append(near.mean(axis=1))
            counts[number] = _agreeing(released.people[targets], released.codes, triples)
    findings = [
        Finding(attack, name, count_wins(np.stack(series), is_member), releases // 2)
        for (attack, name), series in distances.items()
    ]
    evidence = (counts / (counts.mean(axis=0) + 1)).sum(axis=2)
    return [*findings, Finding("queries", None, count_wins(-evidence, is_member), releases // 2)]


def _agreeing(people: Ints, released: Ints, triples: Ints) -> Floats:
    """Count, for each person and set of columns, the released rows that agree with the person in all of them."""
    counts = np.empty((len(people), len(triples)))
    for place, person in enumerate(people):
        progress.check()
        agrees = np.packbits((released == person).T, axis=1)
        counts[place] = _BITS[np.bitwise_and.reduce(agrees[triples], axis=1)].sum(axis=1, dtype=np.int64)
    return counts


def query_codes(pairs: Sequence[Pair]) -> tuple[Ints, Ints]:
    """Take the columns of both tables as codes: numbers that many share by themselves, others by twentieths."""
    codes = [_bin_pair(pair) if isinstance(pair, NumberPair) else (pair.original, pair.released) for pair in pairs]
    original, released = (np.column_stack([pair[side] for pair in codes]).astype(np.int64) for side in (0, 1))
    return original, released


def _bin_pair(pair: NumberPair) -> tuple[Ints, Ints]:
    known = pair.original[~np.isnan(pair.original)]
    values, counts = np.unique(known, return_counts=True)
    usual = values if len(values) <= _FEW_VALUES else values[counts >= _USUAL * len(known)]
    rest = known[~np.isin(known, usual)]
    edges = np.unique(np.quantile(rest, np.arange(1, _BINS) / _BINS)) if len(rest) else np.zeros(0)

    def codes(numbers: Floats) -> Ints:
        place = np.minimum(np.searchsorted(usual, numbers), max(len(usual) - 1, 0))
        is_usual = usual[place] == numbers if len(usual) else np.zeros(len(numbers), bool)
        result = np.where(is_usual, place, len(usual) + np.searchsorted(edges, numbers, "right"))
        return np.asarray(np.where(np.isnan(numbers), -1, result), np.int64)

    return codes(pair.original), codes(pair.released)


METHODS = {
    function.name: function
    for function in (*swap.FUNCTIONS, *synthesize.FUNCTIONS, *baselines.FUNCTIONS)
    if function.name in AUDITED
}
"""The releases that can be audited."""
_KEPT_BACK = ("tbl", "cols", "seed", "key", "person", "reference", "by", "rows")
"""Parameters of theirs that are no options here."""


@check_by(MEMBERSHIP_AUDIT)
def membership_audit(
    table: pa.Table | None,
    *,
    method: str,
    options: Mapping[str, Any] | None,
    releases: int,
    people: int,
    max_rows: int,
    log: list[str] | None,
    special: Any,
    categories: list[str] | None,
    derived: str,
    seed: int | None,
) -> pa.Table:
    """Release a table with and without isolated people, and tell how well an attacker knows who is part of which.

    `log`, `special` and `categories` are the release's own too, where it has these options. A row is an attack of
    :func:`duckanon._measure.attacks.audit.audit_pairs`.
    """
    random = make_generator(seed)
    rows = 0 if table is None else table.num_rows
    if table is None or rows < 2 * FEWEST_ROWS:
        raise ValueError(f"an audit needs at least {2 * FEWEST_ROWS} rows; got {rows}.")
    if 4 * people > rows:
        raise ValueError(f"people must be at most a quarter of the rows, {rows // 4}; got {people}.")
    if rows > max_rows:
        table = table.take(pa.array(sample_rows(max_rows, rows, random)))
    encoding = fit_measure_encoding(table, log, special, categories, derived)
    make = _maker(method, table.column_names, options or {}, {"log": log, "special": special, "categories": categories})

    def release(places: Ints, draw: np.random.Generator) -> Released:
        reader = make(table.take(pa.array(places)), seed=int(draw.integers(2**31)))
        released = reader.read_all().select(table.column_names)
        people_codes, codes = query_codes(pair_tables(table, released))
        return Released(encoding.matrix(released), codes, people_codes)

    points = encoding.matrix(table)
    findings = audit_pairs(points, table.num_columns, release, people=people, releases=releases, random=random)
    return report_rows(
        [
            {
                "attack": finding.attack,
                "scale": finding.scale,
                "people": len(finding.rates),
                "releases": releases,
                "win_rate": finding.mean,
                "standard_error": finding.standard_error,
                "win_rate_bound": finding.bounds[1],
                "tolerance": TOLERANCE,
                "worst_rate": finding.worst,
                "worst_standard_error": finding.worst_standard_error,
                "worst_bound": finding.worst_bound,
                "worst_tolerance": WORST_TOLERANCE,
                "pass": finding.answer == PASS,
                "answer": finding.answer,
            }
            for finding in findings
        ],
        MEMBERSHIP_AUDIT.schema,
    )


def _maker(
    method: str, cols: list[str], options: Mapping[str, Any], coding: Mapping[str, Any]
) -> Callable[..., pa.RecordBatchReader]:
    """Return what releases a table by a method, with its options; refuse those that it does not have or allow."""
    declared = METHODS[method]
    known = [one.name for one in declared.flat if one.name not in _KEPT_BACK]
    for name in options:
        refuse_unless(OneOf(*known), f"an option of {method}", name)
    if faults := declared.faults(declared.defaults | {"cols": cols} | dict(options), IN_SQL):
        raise ValueError(" ".join(faults))
    asked = {"checks": "off", **coding, **options}
    arguments = declared.defaults | {name: asked[name] for name in known if name in asked}
    return lambda table, seed: import_function(declared.algorithm)(table, **arguments | {"seed": seed})

"""An audit of anon.dp_table: what an attacker learns who knows all but one person, against the epsilon that is claimed.

    python -m tests.release.dp_audit [draws]

Two tables differ in one person for every draw: the groups of a table are independent, so each block of groups is a draw
of its own, with people of its own, and one call yields thousands. The attacker knows both tables, the code and the
scale of the noise, and asks whether the likelihood ratio of a block is above a cut. The cut is chosen on a half of the
draws; on the other half the shares of blocks above it have Clopper-Pearson limits, which bound epsilon from below:
p <= exp(epsilon) q + delta.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import beta

import duckanon
from duckanon._bridge.sql import Connection

CONFIDENCE = 0.95

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Case:
    """Two neighbouring blocks of groups, and what is asked of them."""

    name: str
    rows: str  # FROM-less rows of a block without the person: patient, place (in the block), x
    person: str  # rows of the person in addition
    aggregates: str
    epsilon: float
    options: str = ""
    delta: float = 0.0
    groups: int = 1  # of a block

    def call(self, con: Connection, blocks: int, with_person: bool) -> Floats:
        """Return the aggregates of all blocks, one row a block; NaN where nothing was released."""
        rows = f"{self.rows} UNION ALL {self.person}" if with_person else self.rows
        con.execute(
            f"""CREATE OR REPLACE TEMP TABLE audited AS SELECT block * 1000 + patient AS patient, block, place, x
            FROM range({blocks}) AS b(block), ({rows}) AS r(patient, place, x)"""
        ).fetchall()
        con.execute(
            f"CREATE OR REPLACE TEMP TABLE blocks AS FROM range({blocks}) AS b(block), range({self.groups}) AS g(place)"
        ).fetchall()
        groups = f"delta := {self.delta}" if self.delta else "groups := 'blocks'"
        drawn = con.execute(
            f"""SELECT * EXCLUDE (block, place) FROM blocks LEFT JOIN anon.dp_table('audited', ['block', 'place'],
            {self.epsilon}, aggregates := {self.aggregates}, person := 'patient', {groups}, unaccounted := true
            {self.options}) USING (block, place) ORDER BY block, place"""
        ).fetchnumpy()
        columns = [np.ma.filled(np.ma.asarray(column, dtype=np.float64), np.nan) for column in drawn.values()]
        return np.stack(columns, axis=1).reshape(blocks, -1)


CASES = [
    Case("count", "VALUES (1, 0, 0), (2, 0, 0)", "VALUES (9, 0, 0)", "['count']", 1.0),
    Case("sum", "VALUES (1, 0, 3)", "VALUES (9, 0, 1e30)", "['sum(x)']", 1.0, ", bounds := MAP {'x': [-2, 10]}"),
    Case(
        "sum of many rows",
        "VALUES (1, 0, 3)",
        "SELECT 9, 0, 10 FROM range(50)",
        "['sum(x)']",
        1.0,
        ", bounds := MAP {'x': [0, 10]}",
    ),
    Case(
        "mean",
        "SELECT p, 0, 100 FROM range(20) AS r(p)",
        "VALUES (99, 0, -1e300)",
        "['mean(x)']",
        1.0,
        ", bounds := MAP {'x': [0, 100]}",
    ),
    Case(
        "quantile",
        "SELECT p, 0, 100 * p FROM range(2) AS r(p)",
        "VALUES (99, 0, 100)",
        "['quantile(x, 0.5)']",
        2.0,
        ", bounds := MAP {'x': [0, 100]}",
    ),
    Case(
        "thresholded groups", "SELECT p, 0, 0 FROM range(7) AS r(p)", "VALUES (99, 0, 0)", "['count']", 1.0, delta=0.01
    ),
    Case("a group of one person", "VALUES (1, 1, 0)", "VALUES (99, 0, 0)", "['count']", 1.0, delta=0.01, groups=2),
    Case(
        "many rows in three groups",
        "SELECT p, p % 3, 0 FROM range(6) AS r(p)",
        "SELECT 99, i % 3, 0 FROM range(80) AS r(i)",
        "['count', 'rows']",
        1.0,
        ", max_groups := 3, max_rows := 4",
        groups=3,
    ),
    Case(
        "many rows in many groups",
        "SELECT p, p % 8, 0 FROM range(16) AS r(p)",
        "SELECT 99, i % 8, 0 FROM range(80) AS r(i)",
        "['count', 'rows']",
        1.0,
        ", max_groups := 1, max_rows := 4",
        groups=8,
    ),
    Case(
        "all aggregates together",
        "SELECT p, 0, 40 FROM range(20) AS r(p)",
        "SELECT 99, 0, 100 FROM range(3)",
        "['count', 'rows', 'sum(x)', 'mean(x)']",
        2.0,
        ", max_rows := 3, bounds := MAP {'x': [0, 100], 'sum(x)': [0, 300]}",
    ),
]


def lower_bound(case: Case, draws: int, con: Connection, confidence: float = CONFIDENCE) -> float:
    """Return the epsilon that the draws prove."""
    without, with_person = (case.call(con, 2 * draws, present) for present in (False, True))
    score = _ratio(without[:draws], with_person[:draws])
    scores_without, scores_with = score(without), score(with_person)
    best, cut, is_above = -np.inf, 0.0, True
    for at in np.unique(
        np.quantile(np.concatenate([scores_without[:draws], scores_with[:draws]]), np.linspace(0, 1, 201))
    ):
        for above in (True, False):
            p, q = (_share(scores[:draws], at, above) for scores in (scores_with, scores_without))
            for high, low in ((p, q), (q, p)):
                bound = _bound(high * draws, low * draws, draws, case.delta, confidence)
                if bound > best:
                    best, cut, is_above = bound, at, above
    p, q = (_share(scores[draws:], cut, is_above) * draws for scores in (scores_with, scores_without))
    return max(_bound(*pair, draws, case.delta, confidence) for pair in ((p, q), (q, p)))


def _ratio(without: Floats, with_person: Floats) -> Callable[[Floats], Floats]:
    """Return the statistic: by output the logarithm of the Laplace densities around the two means, added up.

    Values alternate with their standard errors, of which the first is the noise's. What has no standard error, a
    quantile, and whether there is a value at all, are told by how often they occur in the first half of the draws.
    """
    columns = without.shape[1] // 2

    def of(draws: Floats) -> Floats:
        total = np.zeros(len(draws))
        for place in range(columns):
            value, error = draws[:, 2 * place], np.concatenate([without, with_person])[:, 2 * place + 1]
            if np.isnan(error).all():
                total += _by_frequency(without[:, 2 * place], with_person[:, 2 * place], value)
                continue
            scale = float(np.nanmedian(error)) / np.sqrt(2)
            center, moved = (_median(some[:, 2 * place]) for some in (without, with_person))
            near = np.abs(value - center) / scale - np.abs(value - moved) / scale
            released = _by_frequency(
                np.isnan(without[:, 2 * place]), np.isnan(with_person[:, 2 * place]), np.isnan(value)
            )
            total += np.where(np.isnan(value), released, near)
        return total

    return of


def _median(values: Floats) -> float:
    return 0.0 if np.isnan(values).all() else float(np.nanmedian(values))


def _by_frequency(without: npt.NDArray[np.generic], with_person: npt.NDArray[np.generic], value: Floats) -> Floats:
    """Return the logarithm of how much more frequent a value is with the person, in twenty classes of values."""
    cuts = np.unique(np.quantile(np.concatenate([without, with_person]).astype(float), np.linspace(0, 1, 21)))
    counts = [
        np.bincount(np.searchsorted(cuts, some, "right"), minlength=len(cuts) + 1) + 1
        for some in (without, with_person)
    ]
    return np.log(counts[1] / counts[0])[np.searchsorted(cuts, value, "right")]


def _share(scores: Floats, cut: float, is_above: bool) -> float:
    return float(np.mean(scores >= cut if is_above else scores < cut))


def _bound(high: float, low: float, draws: int, delta: float, confidence: float) -> float:
    """Return what counts of an event on two neighbouring tables prove: ln((p - delta) / q) at the limits of both."""
    tail = (1 - confidence) / 2
    least = 0.0 if high < 1 else float(beta.ppf(tail, high, draws - high + 1))
    most = 1.0 if low > draws - 1 else float(beta.ppf(1 - tail, low + 1, draws - low))
    return float(np.log((least - delta) / most)) if least > delta else 0.0


def main() -> None:
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    con = duckanon.connect()
    print(f"{'case':<28}{'claimed':>10}{'proven':>10}")
    for case in CASES:
        print(f"{case.name:<28}{case.epsilon:>10}{lower_bound(case, draws, con):>10.3f}", flush=True)


if __name__ == "__main__":
    main()

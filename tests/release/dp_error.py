"""The error of anon.dp_table beside that of OpenDP called directly, at the same epsilon for the whole call.

    python -m tests.release.dp_error [draws]

Directly means what OpenDP's users write: clamp, then count, sum or quantile, each with noise; a mean is a noisy sum
divided by a noisy count with half of epsilon each. Every group is a draw.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import opendp.prelude as dp

import duckanon

EPSILON = 1.0
PEOPLE = 200
BOUNDS = (0, 100)
SHARE = 0.5

Floats = npt.NDArray[np.float64]


def compared(draws: int) -> Iterator[tuple[str, float, float]]:
    """Yield each aggregate with the root mean square error of dp_table and of OpenDP."""
    dp.enable_features("contrib")
    values = [int(37 + 41 * np.sin(i)) for i in range(PEOPLE)]  # from -4 to 78
    clamped = np.clip(values, *BOUNDS)
    truth = {"count": PEOPLE, "sum": clamped.sum(), "mean": clamped.mean(), "quantile": np.quantile(clamped, SHARE)}
    con = duckanon.connect()
    con.execute(f"CREATE TABLE g AS FROM range({draws}) AS t(g)").fetchall()
    con.execute(f"CREATE TABLE t AS FROM g, (SELECT unnest({values}) AS x)").fetchall()
    calls = {"count": "count", "sum": "sum(x)", "mean": "mean(x)", "quantile": f"quantile(x, {SHARE})"}
    direct = _direct()
    for name, call in calls.items():
        bounds = "" if name == "count" else f"bounds := MAP {{'x': {list(BOUNDS)}}},"
        rows = con.execute(
            f"""SELECT COLUMNS('{name}.*') FROM anon.dp_table('t', ['g'], {EPSILON}, ['{call}'],
            {bounds} groups := 'g', unaccounted := true)"""
        ).fetchall()
        ours = np.array([row[0] for row in rows], dtype=float)
        theirs = np.array([direct[name](values) for _ in range(draws)], dtype=float)
        yield name, _error(ours, truth[name]), _error(theirs, truth[name])


def _direct() -> dict[str, Callable[[list[int]], float]]:
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()

    def noisy(steps: dp.Transformation, epsilon: float) -> dp.Measurement:
        return dp.binary_search_chain(lambda scale: steps >> dp.m.then_laplace(scale=scale), d_in=1, d_out=epsilon)

    count = space >> dp.t.then_count()
    total = space >> dp.t.then_clamp(BOUNDS) >> dp.t.then_sum()
    half_sum, half_count = noisy(total, EPSILON / 2), noisy(count, EPSILON / 2)
    quantile = dp.binary_search_chain(
        lambda scale: (
            space
            >> dp.t.then_clamp(BOUNDS)
            >> dp.m.then_private_quantile(dp.max_divergence(), candidates=list(range(101)), alpha=SHARE, scale=scale)
        ),
        d_in=1,
        d_out=EPSILON,
    )
    return {
        "count": noisy(count, EPSILON),
        "sum": noisy(total, EPSILON),
        "mean": lambda values: half_sum(values) / half_count(values),
        "quantile": quantile,
    }


def _error(drawn: Floats, truth: float) -> float:
    return float(np.sqrt(np.mean((drawn - truth) ** 2)))


def main() -> None:
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 40_000
    print(f"{'aggregate':<12}{'dp_table':>12}{'OpenDP':>12}{'ratio':>8}")
    for name, ours, direct in compared(draws):
        print(f"{name:<12}{ours:>12.4f}{direct:>12.4f}{ours / direct:>8.3f}", flush=True)


if __name__ == "__main__":
    main()

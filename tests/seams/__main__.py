"""``python -m tests.seams``: the whole matrix with its counts, or some functions; ``--quick``: as in `make test`.

Prints, for each function, the tables that it met, the calls with rows and refused, processor seconds and faults; then
each fault with its statement.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile

import duckanon
from tests.seams.bench import Bench
from tests.seams.known_faults import KNOWN
from tests.seams.matrix import look_at, places, public


def main() -> int:
    """Run the matrix; return 1 where it has faults that are not known."""
    parser = argparse.ArgumentParser(prog="python -m tests.seams", description=__doc__)
    parser.add_argument("functions", nargs="*", help="all where none is named")
    parser.add_argument("--quick", action="store_true", help="what `make test` runs")
    given = parser.parse_args()
    con = duckanon.connect()
    con.execute("SET threads = 1").fetchall()
    benches: dict[str, Bench] = {}
    totals, faults = [0, 0, 0, 0.0], []
    print(f"{'function':24} {'tables':>7} {'rows':>7} {'refused':>8} {'seconds':>8} {'faults':>7}")
    with tempfile.TemporaryDirectory() as folder:
        tempfile.tempdir = folder
        os.chdir(folder)
        for function in given.functions or public():
            found = []
            for place in places(function, given.quick):
                if place.table not in benches:
                    benches[place.table] = Bench(con, place.table)
                found.append(look_at(benches[place.table], place))
            refused = sum(outcome.refusal is not None for outcome in found)
            broken = [(outcome, *fault) for outcome in found for fault in outcome.faults]
            row = [len(found), sum(outcome.rows is not None for outcome in found), refused]
            seconds = sum(outcome.seconds for outcome in found)
            print(f"{function:24} {row[0]:7} {row[1]:7} {refused / max(1, row[0]):8.0%} {seconds:8.1f} {len(broken):7}")
            totals = [total + one for total, one in zip(totals, [*row, seconds], strict=True)]
            faults += broken
    print(
        f"{len(benches)} tables, {totals[0]} calls: {totals[1]} with rows, {totals[2]} refused; {totals[3]:.0f} seconds"
    )
    for outcome, kind, detail in faults:
        mark = "known " if (outcome.drawn.function, kind) in KNOWN else ""
        print(f"\n{mark}{kind}: {outcome.drawn.statement}\n    {detail}")
    return int(any((outcome.drawn.function, kind) not in KNOWN for outcome, kind, _ in faults))


if __name__ == "__main__":
    sys.exit(main())

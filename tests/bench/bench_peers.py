"""Other packages from PyPI, each in an environment of its own that `make bench-peers` makes: whole programs on Adult.

A program reads the table from CSV and answers. Where a peer writes a release, ours is held to the same promise.
"""

from __future__ import annotations

import sys
import tempfile
from functools import partial
from pathlib import Path

import duckdb

from tests.bench.bench_start import run
from tests.bench.harness import ROOT, Task
from tests.sqltest import find_data

PEERS = ROOT / "build" / "peers"
COLS = ["age", "education", "sex", "race"]
OURS = "import duckanon; con = duckanon.connect(); con.execute(\"CREATE TABLE t AS FROM 'people.csv'\"); {}"
READ = "import pandas; t = pandas.read_csv('people.csv', skipinitialspace=True); "
MONDRIAN = f"""
import anonypy
for name in {COLS[1:]}: t[name] = t[name].astype('category')
rows = anonypy.Preserver(t, {COLS}, 'occupation').anonymize_k_anonymity(k=10)
pandas.DataFrame(rows).to_csv('release.csv')
"""
LATTICE = f"""
from anjana.anonymity import k_anonymity
levels = {{}}
for name in ('education', 'sex', 'race'):
    levels[name] = {{0: t[name].values, 1: ['*'] * len(t)}}
ages = t['age'].values
levels['age'] = {{0: ages, 1: [f'[{{a // 10 * 10}}, {{a // 10 * 10 + 10}}[' for a in ages], 2: ['*'] * len(t)}}
k_anonymity(t[{COLS}], [], {COLS}, 10, 5, levels).to_csv('release.csv')
"""
PROGRAMS = {
    "k_anonymity": ("pycanon", f"con.sql(\"FROM anon.k_anonymity('t', {COLS})\").fetchall()",
                    f"from pycanon import anonymity; anonymity.k_anonymity(t, {COLS})"),
    "l_diversity": ("pycanon", f"con.sql(\"FROM anon.l_diversity('t', {COLS}, 'occupation')\").fetchall()",
                    f"from pycanon import anonymity; anonymity.l_diversity(t, {COLS}, ['occupation'])"),
    "t_closeness": ("pycanon", f"con.sql(\"FROM anon.t_closeness('t', {COLS}, 'occupation')\").fetchall()",
                    f"from pycanon import anonymity; anonymity.t_closeness(t, {COLS}, ['occupation'])"),
    "recode, k = 10": ("anonypy", f"con.sql(\"COPY (FROM anon.recode('t', {COLS}, 10, keep := ['occupation'])) "
                       "TO 'release.csv'\")", MONDRIAN),
    "generalize, k = 10": ("anjana", f"con.sql(\"COPY (FROM anon.generalize('t', {COLS}, 10)) TO 'release.csv'\")",
                           LATTICE),
}  # fmt: skip


def folder(rows: int) -> Path:
    """Write the first rows of Adult to a folder, as people.csv."""
    made = Path(tempfile.mkdtemp())
    duckdb.sql(f"COPY (FROM '{find_data('adult.csv')}' LIMIT {rows}) TO '{made}/people.csv'")
    return made


def run_program(python: Path | str, program: str, place: Path) -> int:
    """Run a program in the folder; return its peak memory in KB."""
    return run(str(python), "-c", f"import os; os.chdir({str(place)!r})\n{program}")


TASKS = (
    [
        Task(
            f"{name}, Adult, from CSV",
            [32_561],
            folder,
            partial(run_program, sys.executable, OURS.format(ours)),
            partial(run_program, PEERS / peer / "bin" / "python", READ + theirs),
            peer,
            2,
            of_child=True,
        )
        for name, (peer, ours, theirs) in PROGRAMS.items()
        if (PEERS / peer / "bin" / "python").exists()
    ]
    if find_data("adult.csv")
    else []
)

"""The release job against what it cannot do without: its method, and one COPY of the rows."""

from __future__ import annotations

import tempfile
from pathlib import Path

import duckdb

import duckanon
from tests.bench.harness import Task

COLUMNS = 8
METHODS = {"suppress_cells": "nulls := 'value'", "generalize": ""}

POLICY = """
[source]
path = "people.parquet"
[target]
path = "release.parquet"
[columns]
id = "identifier"
diagnosis = "sensitive"
{columns}
[method]
name = "{method}"
[promises]
k = 10
l = 2
"""


def prepared(rows: int) -> Path:
    """A folder with a table of eight quasi-identifiers, of two to nine values, and a policy for each method."""
    folder = Path(tempfile.mkdtemp())
    columns = ", ".join(f"(hash(i, {place}) % {2 + place}) ** 2 // {2 + place} AS q{place}" for place in range(COLUMNS))
    with duckdb.connect() as con:
        con.execute(
            f"COPY (SELECT i AS id, {columns}, ['flu', 'cold', 'asthma', 'gout'][1 + (hash(i) % 4)::INTEGER] AS "
            f"diagnosis FROM range({rows}) AS t(i)) TO '{folder}/people.parquet'"
        ).fetchall()
    roles = "\n".join(f'q{place} = "quasi_identifier"' for place in range(COLUMNS))
    for method in METHODS:
        (folder / f"{method}.toml").write_text(POLICY.format(method=method, columns=roles), encoding="utf-8")
    return folder


def job(method: str, folder: Path) -> None:
    from duckanon.job import release

    release(folder / f"{method}.toml")


def by_hand(method: str, folder: Path) -> None:
    """Call the function, and write what it returns."""
    columns = [f"q{place}" for place in range(COLUMNS)]
    promise = "sensitive := 'diagnosis', l := 2" if method == "generalize" else METHODS[method]
    with duckanon.connect() as con:
        con.execute(f"CREATE TABLE people AS FROM '{folder}/people.parquet'").fetchall()
        con.execute(
            f"COPY (FROM anon.{method}('people', {columns}, 10, keep := ['diagnosis'], {promise})) "
            f"TO '{folder}/by_hand.parquet'"
        ).fetchall()


TASKS = [
    Task(
        f"release job, {method}, 8 columns",
        [10**5, 10**6],
        prepared,
        lambda folder, method=method: job(method, folder),
        lambda folder, method=method: by_hand(method, folder),
        f"{method} and COPY",
    )
    for method in METHODS
]

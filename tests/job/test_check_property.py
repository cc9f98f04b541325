"""What policy check accepts, the release does not refuse as a fault of the policy: drawn policies of awkward tables."""

from __future__ import annotations

import json
import random
import zlib
from pathlib import Path
from typing import Any

import duckdb
import pytest

from duckanon.job import JobError, PolicyError, check, run
from duckanon.job.policy import Table
from tests.awkward import TABLES, Awkward

METHODS = ("generalize", "recode", "suppress_cells", "boxes", "microaggregate", "protect_table", "svd_swap")
_MODELS = Table.model_fields["method"].annotation.__args__
SLOW = ("synthesize", "spectral_release", "pica")
FIELDS = {model.model_fields["name"].annotation.__args__[0]: set(model.model_fields) for model in _MODELS}
SAMPLE = ("nulls", "rows_of_nobody", "names_of_results", "towns")
"""Tables of every run: NULLs, rows of nobody, names that releases have, hierarchies."""


def draw_policy(draw: random.Random, table: Awkward, methods: tuple[str, ...]) -> str:
    """Write a policy with roles, a method, its options and promises by chance, some of which make no sense."""
    method = draw.choice(methods)
    makes_cells, makes_classes = method == "protect_table", method in METHODS[:5]
    names = list(table.columns)
    roles: dict[str, Any] = {"rid": "drop"}
    given = "free" if makes_classes else "drop" if makes_cells else "numeric"
    others = [given, "drop"] if not makes_classes and not makes_cells else ["sensitive", given, "drop", "identifier"]
    for name in names:
        roles[name] = draw.choice(["quasi_identifier", "quasi_identifier", *(["drop"] if makes_cells else others)])
    for name in names[12:]:
        roles[name] = "drop"
    if table.person and draw.random() < 0.8:
        roles[table.person] = "person"
    options: dict[str, Any] = {}
    kept = [name for name, role in roles.items() if role in ("sensitive", "free")]
    if makes_classes and kept and draw.random() < 0.7:
        options["narrowing"] = kept
    protected = [name for name, role in roles.items() if role == "quasi_identifier"]
    possible: dict[str, Any] = {
        "methods": {name: draw.choice(["interval", "prefix", "calendar", "round", "top"]) for name in protected[:1]},
        "weights": dict.fromkeys(protected[:1], 2),
        "by": protected[:1],
        "nulls": draw.choice(["category", "any", "value"]),
        "population": draw.choice([10, 100_000]),
        "measure": draw.choice(names),
        "box": draw.choice(["parts", "cell", "rounded"]),
        "output": draw.choice(["interval", "value", "mean"]),
        "l": 2,
    }
    for name in draw.sample(
        [name for name in possible if name in FIELDS[method]], k=1 if FIELDS[method] & possible.keys() else 0
    ):
        options |= {name: possible[name]} if draw.random() < 0.5 else {}
    promises: dict[str, Any] = {"k": draw.choice([2, 3, 5])} if makes_classes or makes_cells else {"prediction": True}
    promises |= {"max_suppressed_fraction": 0.5} if draw.random() < 0.5 else {}
    if makes_classes:
        has_sensitive = "sensitive" in roles.values()
        promises |= draw.choice([{}, {"l": 2}, {"t": 0.5}, {"max_small_changes": 0}] if has_sensitive else [{}])
    lines = ['kind = "aggregate"'] if makes_cells else []
    lines += ["[source]", 'path = "table.parquet"', "[target]", f'path = "release{draw.choice([".parquet", ".csv"])}"']
    lines += ["[columns]", *(f"{quoted(name)} = {quoted(role)}" for name, role in roles.items())]
    lines += ["[method]", f"name = {quoted(method)}", *(f"{name} = {_toml(value)}" for name, value in options.items())]
    lines += ["[promises]", *(f"{name} = {_toml(value)}" for name, value in promises.items())]
    if table.hierarchies and draw.random() < 0.7:
        lines += ["[hierarchies]", *(f'{name} = "{name}.csv"' for name in table.hierarchies if name in protected)]
    return "\n".join(lines) + "\n"


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{quoted(key)} = {_toml(item)}" for key, item in value.items()) + " }"
    return json.dumps(value)


def judge(folder: Path, text: str) -> str | None:
    """Return what the release refuses of a policy that check accepts; None where they agree."""
    path = folder / "policy.toml"
    path.write_text(text, encoding="utf-8")
    try:
        check.check_policy(path)
    except JobError:
        return None
    try:
        run.release(path, dry_run=True)
    except PolicyError as error:  # which cells are suppressed is chance, and so is what narrows them down
        return None if "suppress_cells" in text and "narrows down" in str(error) else str(error)
    except JobError:
        return None
    return None


@pytest.fixture
def make(folder: Path, database: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(check, "connection", run.connection)

    def write(name: str) -> None:
        database.execute(f"COPY ({TABLES[name].query}) TO '{folder}/table.parquet'").fetchall()
        for column, query in TABLES[name].hierarchies.items():
            database.execute(f"COPY ({query}) TO '{folder}/{column}.csv'").fetchall()

    return write


def _agree(names: tuple[str, ...], methods: tuple[str, ...], rounds: int, folder: Path, make: Any) -> None:
    accepted = 0
    for name in names:
        make(name)
        for number in range(rounds):
            text = draw_policy(random.Random(zlib.crc32(f"{name} {number}".encode())), TABLES[name], methods)
            # what a method draws by chance may be refused once: suppress_cells, for one
            refused = judge(folder, text) and judge(folder, text)
            assert refused is None, f"{name} {number}: {refused}\n{text}"
            accepted += 1
    assert accepted == len(names) * rounds


def test_what_check_accepts_the_release_does_not_refuse(folder: Path, make: Any) -> None:
    _agree(SAMPLE, METHODS, 1, folder, make)


@pytest.mark.thorough
@pytest.mark.parametrize("name", [name for name in TABLES if name not in ("no_row", "wide")])
def test_what_check_accepts_of_any_awkward_table_the_release_does_not_refuse(
    name: str, folder: Path, make: Any
) -> None:
    _agree((name,), METHODS, 5, folder, make)
    _agree((name,), SLOW, 1, folder, make)

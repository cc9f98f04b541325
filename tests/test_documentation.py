"""README's examples, typed as they stand, print what it shows."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest

from duckanon.cli import statements

ROOT = Path(__file__).parent.parent
EXAMPLE = re.compile(r"```sql\n((?:(?!```).)*)```\n```text\n((?:(?!```).)*)```", re.DOTALL)


@pytest.fixture(scope="module")
def clinic() -> duckdb.DuckDBPyConnection:
    import duckanon

    con = duckanon.connect()
    for statement in statements.split((ROOT / "examples" / "population.sql").read_text(encoding="utf-8")):
        statements.run(con, statement)
    return con


@pytest.mark.skipif(duckdb.__version__ < "2", reason="the outputs are drawn by DuckDB 2.0")
def test_examples_print_what_is_shown(clinic: duckdb.DuckDBPyConnection) -> None:
    examples = EXAMPLE.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(examples) >= 3
    for script, shown in examples:
        printed = "".join(statements.run(clinic, statement) for statement in statements.split(script))
        assert printed == shown, f"{script}\nprints\n{printed}"


def test_example_scripts_run(
    clinic: duckdb.DuckDBPyConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "build" / "demo").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    for path in sorted((ROOT / "examples").glob("*.sql")):
        for statement in statements.split(path.read_text(encoding="utf-8")):
            statements.run(clinic, statement)
    assert (tmp_path / "build" / "demo" / "swapped.csv").stat().st_size > 1_000_000

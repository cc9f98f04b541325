"""The examples of a release every night: cron's script tells the cases apart, Airflow's task returns numbers only."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

NIGHTLY = Path(__file__).parent.parent.parent / "examples" / "nightly"


@pytest.mark.parametrize(
    ("code", "left_with", "said"),
    [(0, 0, ""), (1, 1, "a promise is broken"), (2, 2, "does not fit"), (3, 3, "read or written"), (130, 4, "stopped")],
)
def test_the_script_of_cron_tells_the_cases_apart(tmp_path: Path, code: int, left_with: int, said: str) -> None:
    command = tmp_path / "duckanon"
    command.write_text(f'#!/bin/sh\necho "$@" > "{tmp_path}/called"\nexit {code}\n')
    command.chmod(0o755)
    done = subprocess.run(
        [NIGHTLY / "nightly.sh", "policy.toml"],
        env={"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (tmp_path / "called").read_text() == "release policy.toml\n"
    assert done.returncode == left_with
    assert said in done.stdout
    assert bool(done.stdout) == bool(said)  # cron sends mail where something is said


def test_the_task_of_airflow_returns_numbers_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def release(policy: Path) -> dict[str, Any]:
        return {
            "tables": [
                {
                    "name": "visits",
                    "output": {"path": "release.parquet", "rows": 90},
                    "suppressed": {"fraction": 0.01},
                    "promises": [{"name": "k", "asked": 10, "measured": 11, "passed": True, "words": "..."}],
                }
            ]
        }

    job = ModuleType("duckanon.job")
    job.release = release  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "duckanon.job", job)
    monkeypatch.setattr("duckanon.job", job, raising=False)
    spec = importlib.util.spec_from_file_location("airflow_dag", NIGHTLY / "airflow_dag.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.release_visits() == {
        "visits": {"released_rows": 90, "suppressed_fraction": 0.01, "promises": {"k": 11}}
    }

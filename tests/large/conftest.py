from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from duckanon.large import workspace
from duckanon.large.workspace import Budget

ROWS = 3_000


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a part have a few hundred rows, so that small tables have many parts."""
    monkeypatch.setattr(workspace, "budget", lambda memory: Budget(300 * 10**6, 200_000))


@pytest.fixture
def spill(tmp_path: Path) -> Path:
    folder = tmp_path / "spill"
    folder.mkdir()
    return folder


@pytest.fixture(scope="session")
def people() -> pa.Table:
    draw = np.random.default_rng(5)
    days = draw.integers(0, 15_000, ROWS).astype(np.int32)
    pay = np.round(draw.lognormal(10, 1, ROWS), 2)
    pay[:2] = 9_876_543.21, 0.07  # nobody else is near
    return pa.table(
        {
            "age": draw.integers(18, 90, ROWS),
            "pay": pay,
            "day": pa.array(days).cast(pa.date32()),
            "sex": draw.choice(["f", "m"], ROWS),
            "job": draw.choice(list("abcdefghijklm"), ROWS),
            "person": pa.array(draw.integers(0, ROWS // 3, ROWS), mask=draw.random(ROWS) < 0.01),
            "number": np.arange(ROWS),
        }
    )

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from duckanon._bridge import registration


@pytest.fixture
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give Python's caches, the prepared catalog among them, a folder of their own, with a quote in its name."""
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "it's"))
    registration._path.cache_clear()
    yield tmp_path / "it's"
    registration._path.cache_clear()


@pytest.fixture
def unprepared(caches: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let macros be parsed: there is no prepared catalog, and none is written."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

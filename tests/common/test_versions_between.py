"""The versions that the workflow `versions` draws: within the range that pyproject.toml admits, each by a seed."""

from __future__ import annotations

import tomllib
from pathlib import Path

from tests.versions_between import OLDEST, draw_versions, oldest_versions, version_key

ROOT = Path(__file__).parent.parent.parent


def test_versions_are_drawn_from_the_oldest_on() -> None:
    oldest = {"duckdb": "1.5.0", "numpy": "1.26.0"}
    offered = {"duckdb": ["2.0.0", "1.10.0", "1.5.0", "1.4.4"], "numpy": ["2.3.1", "1.26.0", "1.25.2"]}
    draws = [draw_versions(oldest, offered, str(seed)) for seed in range(60)]
    assert {draw["duckdb"] for draw in draws} == {"2.0.0", "1.10.0", "1.5.0"}
    assert {draw["numpy"] for draw in draws} == {"2.3.1", "1.26.0"}
    assert draws == [draw_versions(oldest, offered, str(seed)) for seed in range(60)]


def test_the_oldest_versions_are_those_of_the_package() -> None:
    """What `oldest.txt` names is the lower end of each dependency, so that no tested range is another."""
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    lower = dict(wish.partition(",")[0].split(">=") for wish in wanted)
    for name, version in oldest_versions(OLDEST.read_text("utf-8")).items():
        parts = version_key(lower[name])
        assert version_key(version)[: len(parts)] == parts, name

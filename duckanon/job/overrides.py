"""Options of the command line that override the policy."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def changes_of(*, no_formulas: bool = False, **given: str | Path | None) -> dict[str, Any]:
    """Return what is given from outside, by the names of the policy."""
    source: dict[str, Any] = {}
    if given.get("source") is not None:
        source["path"] = _outside(given["source"])
    if given.get("table") is not None:
        source |= {"table": given["table"], "query": None}
    if given.get("query") is not None:
        source |= {"query": given["query"], "table": None}
    found: dict[str, Any] = {"source": source} if source else {}
    if given.get("target") is not None:
        found["target"] = {"path": _outside(given["target"])}
    for name in ("report", "plan"):
        if given.get(name) is not None:
            found[name] = _outside(given[name])
    if given.get("memory") is not None:
        found["memory"] = given["memory"]
    if no_formulas:
        found["no_formulas"] = True
    return found


def _outside(path: str | Path | None) -> str:
    text = str(path)
    return text if "://" in text else str(Path.cwd() / Path(text).expanduser())

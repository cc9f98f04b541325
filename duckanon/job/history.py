"""Two records of runs compared: what changed between two releases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return what is different in the newer of two records, a line each.

    Args:
        old, new: Records, as `duckanon.job.release` returns them.
    """
    lines = [f"{old.get('finished')} -> {new.get('finished')}"]
    for name in ("duckanon", "duckdb", "python", "outcome"):
        lines += _changed(name, old.get(name), new.get(name))
    if _hash(old.get("policy")) != _hash(new.get("policy")):
        lines.append("policy: changed")
    before = {table["name"]: table for table in old["tables"]}
    after = {table["name"]: table for table in new["tables"]}
    lines += [f"{name}: no longer released" for name in before.keys() - after.keys()]
    lines += [f"{name}: released for the first time" for name in after.keys() - before.keys()]
    for name in after:
        if name in before:
            lines += [f"{name}: {line}" for line in _of_table(before[name], after[name])]
    lines += [f"warning: {warning}" for warning in new.get("warnings", [])]
    return lines


def _hash(part: Any) -> Any:
    return part.get("sha256") if isinstance(part, dict) else None


def _changed(name: str, old: Any, new: Any) -> Iterator[str]:
    if old != new:
        yield f"{name}: {_shown(old)} -> {_shown(new)}"


def _shown(value: Any) -> str:
    return "-" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def _of_table(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    yield from _changed("original rows", old["rows"], new["rows"])
    yield from _changed("original people", old["people"], new["people"])
    yield from _changed("released rows", old["output"]["rows"], new["output"]["rows"])
    yield from _changed("released people", old["output"]["people"], new["output"]["people"])
    yield from _changed("suppressed", old["suppressed"]["fraction"], new["suppressed"]["fraction"])
    if _hash(old) == _hash(new):
        yield "original: the same rows, released again: two releases of one table reveal more than one"
    yield from _changed("method", old["method"]["name"], new["method"]["name"])
    parameters = old["method"]["parameters"], new["method"]["parameters"]
    for name in sorted(parameters[0].keys() | parameters[1].keys()):
        yield from _changed(f"parameter {name}", parameters[0].get(name), parameters[1].get(name))
    by_parts = [(table.get("memory") or {}).get("by_parts", False) for table in (old, new)]
    yield from _changed("processed in partitions", *by_parts)
    roles = [{column["name"]: column["role"] for column in table["columns"]} for table in (old, new)]
    for name in sorted(roles[0].keys() | roles[1].keys()):
        yield from _changed(f"column {name}", roles[0].get(name), roles[1].get(name))
    kept = [{promise["name"]: promise for promise in table["promises"]} for table in (old, new)]
    for name in sorted(kept[0].keys() | kept[1].keys()):
        values = [promises.get(name, {}) for promises in kept]
        yield from _changed(f"promise {name}, asked", values[0].get("asked"), values[1].get("asked"))
        yield from _changed(f"promise {name}, measured", values[0].get("measured"), values[1].get("measured"))
    yield from _difference_attack(old, new)


def _difference_attack(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    """Say what the difference of both gives away, if the newer run compared its classes with the older release."""
    change = new.get("changes")
    if change is None or change["previous_sha256"] != old["output"]["sha256"]:
        yield "classes: not compared: the newer run did not have the older release"
        return
    yield (
        f"classes: {change['classes_in_both']} in both, {change['classes_before'] - change['classes_in_both']} gone, "
        f"{change['classes'] - change['classes_in_both']} new"
    )
    yield (
        f"classes that differ by fewer than k {change['counted']}: {change['small_changes']} "
        f"({change['came_in_small_changes']} came, {change['went_in_small_changes']} went)"
    )

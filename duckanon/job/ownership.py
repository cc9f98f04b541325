"""Whose record and report are in the places of a job: two policies that share one would lose the other's."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

from duckanon.job import record
from duckanon.job.errors import FileProblem
from duckanon.job.places import Places
from duckanon.job.policy_file import PolicyFile

_POLICY_OF_REPORT = re.compile(r"<dt>Policy</dt><dd>([^<]*)<")


def check_owner(file: PolicyFile, where: Places) -> list[str]:
    """Return warnings where the release that is replaced is that of another policy, or has another record.

    Raises:
        FileProblem: The record or the report that is in its place belongs to another release of another policy.
    """
    ours = {target.name for target in where.targets.values()} | {table.table for table in where.tables.values()}
    found = _record(where.record)
    theirs = _outputs(found)
    policy = str((found.get("policy") or {}).get("path"))
    is_other = bool(theirs) and policy != file.path.name
    if is_other and not ours & theirs:
        raise FileProblem(_sentence(where.record, "record", policy))
    if where.report and not is_other and (other := _policy_of_report(where.report)) not in (None, file.path.name):
        raise FileProblem(_sentence(where.report, "report", str(other)))
    warnings = [
        f"{beside.name}: it is the record of the replaced release, not of the new one; remove it."
        for target in where.targets.values()
        if (beside := target.with_name(f"{target.name}.record.json")) != where.record
        and target.name in _outputs(_record(beside))
    ]
    if is_other:
        warnings.append(f"{where.record.name}: the release that is replaced was made by another policy, {policy}.")
    return warnings


def _outputs(found: dict[str, Any]) -> set[Any]:
    """Return the names of the files and tables that a record is about."""
    return {table.get("output", {}).get("path") for table in found["tables"] if isinstance(table, dict)}


def _sentence(path: Path, what: str, policy: str) -> str:
    return f"{path}: it is the {what} of another policy, {policy}, which would be lost; name another, or remove it."


def _record(path: Path) -> dict[str, Any]:
    try:
        return record.read(path)
    except FileProblem:  # there is none, or something else, which was never protected
        return {"tables": []}


def _policy_of_report(path: Path) -> str | None:
    try:
        found = _POLICY_OF_REPORT.search(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return None
    return html.unescape(found[1]).strip() if found else None

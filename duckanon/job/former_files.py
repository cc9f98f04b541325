"""The files of former releases, which a job may replace: known by their content, never by their names alone.

What a query reads of a file's size or time is told by nobody, so that a file at the target could be what the rows come
from. A release is only replaced where a record says that it is one, by its hash; a record or a report where it says
itself what it is.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from duckanon._core.common.own_files import Replaceable
from duckanon._core.common.release_record import Record
from duckanon.job.errors import FileProblem
from duckanon.job.record import load
from duckanon.job.sources import hash_of

if TYPE_CHECKING:
    from duckanon.job.places import Places
    from duckanon.job.policy_file import PolicyFile

_POLICY_OF_REPORT = re.compile(r"<dt>Policy</dt><dd>([^<]*)<")


def replaceable(where: Places) -> Replaceable:
    """Return what tells which files of a job may be replaced."""
    own: dict[Path, Callable[[Path], bool]] = dict.fromkeys(where.written, lambda path: False)  # a plan is never
    own |= {target: partial(_is_released, where.record) for target in where.targets.values()}
    own |= {page: lambda path: _policy_of_report(path) is not None for page in (where.report, where.refusal) if page}
    own[where.record] = lambda path: _record_at(path) is not None
    return Replaceable(own, _error)


def _error(path: Path) -> FileProblem:
    return FileProblem(
        f"{path}: duckanon did not write this file, or it was changed or lost its record since, so that it is not "
        "replaced; move it away, or name another."
    )


def _is_released(record: Path, target: Path) -> bool:
    """Tell whether a record, the job's or the one beside the target, has the hash of the file that is there."""
    hashes = {_outputs(_record_at(path)).get(target.name) for path in (record, _beside(target))} - {None}
    try:
        return bool(hashes) and hash_of([target]) in hashes
    except OSError:
        return False


def _beside(target: Path) -> Path:
    return target.with_name(f"{target.name}.record.json")


def check_owner(file: PolicyFile, where: Places) -> list[str]:
    """Return warnings where the release that is replaced is that of another policy, or has another record.

    Two policies that share a record or a report would lose the other's: that is refused.
    """
    ours = {target.name for target in where.targets.values()} | {table.table for table in where.tables.values()}
    found = _record_at(where.record)
    theirs = _outputs(found)
    policy = str((found.get("policy") or {}).get("path")) if found else ""
    is_other = bool(theirs) and policy != file.path.name
    lost = "which would be lost; name another, or remove it."
    if is_other and not ours & theirs.keys():
        raise FileProblem(f"{where.record}: it is the record of another policy, {policy}, {lost}")
    if where.report and not is_other and (other := _policy_of_report(where.report)) not in (None, file.path.name):
        raise FileProblem(f"{where.report}: it is the report of another policy, {other}, {lost}")
    warnings = [
        f"{beside.name}: it is the record of the replaced release, not of the new one; remove it."
        for target in where.targets.values()
        if (beside := _beside(target)) != where.record and target.name in _outputs(_record_at(beside))
    ]
    if is_other:
        warnings.append(f"{where.record.name}: the release that is replaced was made by another policy, {policy}.")
    return warnings


def _outputs(found: Record | None) -> dict[str | None, str | None]:
    """Return the names of the files and tables that a record is about, and their hashes."""
    tables = found["tables"] if found else []
    outputs = [table.get("output") or {} for table in tables if isinstance(table, dict)]
    return {output.get("path"): output.get("sha256") for output in outputs}


def _record_at(path: Path) -> Record | None:
    try:
        return cast(Record, load(path))  # of which an older version may have written less
    except FileProblem:  # there is none, or something else
        return None


def _policy_of_report(path: Path) -> str | None:
    try:
        found = _POLICY_OF_REPORT.search(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return None
    return html.unescape(found[1]).strip() if found else None

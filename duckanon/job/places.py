"""Where the files of a job are, and that none of them takes the place of another."""

from __future__ import annotations

import fnmatch
import os
from dataclasses import dataclass
from pathlib import Path

from duckanon.job.errors import FileProblem
from duckanon.job.formats import is_server
from duckanon.job.policy import Target
from duckanon.job.policy_file import PolicyFile
from duckanon.job.sources import files_of, named_in


@dataclass(frozen=True)
class Places:
    """The files that a job writes.

    Attributes
    ----------
    targets
        The releases that are files, by the names of the tables.
    tables
        The releases that are tables of servers, by the names of the tables.
    record, report, plan
        The other files.
    """

    targets: dict[str, Path]
    tables: dict[str, Target]
    record: Path
    report: Path | None
    plan: Path | None

    @property
    def others(self) -> list[Path]:
        """The files beside the releases."""
        return [path for path in (self.record, self.report, self.plan) if path is not None]

    @property
    def refusal(self) -> Path | None:
        """Where the report of a broken promise goes: the report of the release that stays in place is left alone."""
        return self.report and self.report.with_name(f"{self.report.stem}.not-released{self.report.suffix}")

    def shown(self, name: str) -> str:
        """Return what messages call the release of a table."""
        return target_name(self.tables[name]) if name in self.tables else str(self.targets[name])


def target_name(target: Target) -> str:
    """Return what messages call a target: never an address, in which a password may stand."""
    return f"{target.table} (postgresql)" if is_server(target.path) else target.path


def places(file: PolicyFile) -> Places:
    """Return the places of a job's files, after it is sure that no original would be overwritten."""
    policy = file.policy
    tables = {name: table.target for name, table in policy.tables.items() if is_server(table.target.path)}
    targets = {name: file.place(table.target.path) for name, table in policy.tables.items() if name not in tables}
    first = next(iter(targets.values()), None) or file.place(next(iter(tables.values())).table or "")
    record = file.place(policy.record) if policy.record else first.with_name(f"{first.name}.record.json")
    found = Places(
        targets,
        tables,
        record,
        file.place(policy.report) if policy.report else None,
        file.place(policy.plan) if policy.plan else None,
    )
    written = [*targets.values(), *found.others, *([found.refusal] if found.refusal else [])]
    _check_apart(written)
    for path in written:
        _check_no_original(file, path)
    return found


def _check_apart(paths: list[Path]) -> None:
    seen: set[str] = set()
    for path in paths:
        real = os.path.realpath(path)
        if real in seen:
            raise FileProblem(f"{path}: two files of the job would have this name.")
        seen.add(real)


def _check_no_original(file: PolicyFile, path: Path) -> None:
    """Refuse to write where originals are: under the same name, a link, another name of the same file, or a glob."""
    for table in file.policy.tables.values():
        read = [*files_of(file, table.source), *(file.place(place) for place in table.hierarchies.values()), file.path]
        if table.reference:
            read.append(file.place(table.reference))
        if any(path.exists() and source.exists() and os.path.samefile(path, source) for source in read):
            raise FileProblem(f"{path}: the job reads this file, and must not overwrite it.")
        patterns = named_in(file, table.source.query or "")
        if table.source.path and not is_server(table.source.path):
            patterns.append(str(file.place(table.source.path)))
        for pattern in patterns:
            if _is_named_by(path, pattern):
                raise FileProblem(f"{path}: the job reads this file, now or in the next run; name another.")


def _is_named_by(path: Path, pattern: str) -> bool:
    if os.path.exists(path) and os.path.exists(pattern) and os.path.samefile(path, pattern):
        return True
    return fnmatch.fnmatch(os.path.realpath(path), os.path.realpath(pattern))

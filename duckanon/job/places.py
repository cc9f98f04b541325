"""Where the files of a job are, and that none of them takes the place of another."""

from __future__ import annotations

import fnmatch
import glob
import os
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from duckanon._core.common import outbox
from duckanon.job.errors import FileProblem
from duckanon.job.formats import is_server
from duckanon.job.originals import Originals
from duckanon.job.policy import Target
from duckanon.job.policy_file import PolicyFile
from duckanon.job.sources import files_of, named_in


@dataclass(frozen=True)
class Places:
    """The files that a job writes.

    Attributes:
        targets: The releases that are files, by the names of the tables.
        tables: The releases that are tables of servers, by the names of the tables.
        record, report, plan: The other files.
    """

    targets: dict[str, Path]
    tables: dict[str, Target]
    record: Path
    report: Path | None
    plan: Path | None

    @property
    def written(self) -> list[Path]:
        """All files that the job may write; a plan that is there is only read."""
        plan = None if self.plan and self.plan.exists() else self.plan
        others = (plan, self.report, self.refusal, self.record)
        return [*self.targets.values(), *(path for path in others if path is not None)]

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
    """Return the places of a job's files, none of which is that of another."""
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
    _check_apart(found.written)
    return found


def originals(file: PolicyFile, where: Places, previous: str | Path | None = None) -> Originals:
    """Return what a job is known to read, after it is sure that it writes none of it.

    What else a query opens is told by DuckDB when it reads; only files that a glob has not found yet, since the job has
    still to write them, are looked for in the text.

    Raises:
        FileProblem: A file would be read and written.
    """
    read = [file.path]
    if file.policy.key and file.policy.key.file:
        read.append(file.place(file.policy.key.file))
    if where.plan and where.plan not in where.written:
        read.append(where.plan)
    for table in file.policy.tables.values():
        read += [*files_of(file, table.source), *(file.place(place) for place in table.hierarchies.values())]
        if table.reference:
            read.append(file.place(table.reference))
        named = named_in(file, table.source)
        read += [Path(name) for name in named if os.path.exists(name)]
        for path in where.written:
            if any(_is_found_by(path, name) for name in named if glob.has_magic(name)):
                raise FileProblem(f"{path}: the job reads this file, now or in the next run; name another.")
    found = Originals(where.written, read)
    if previous and not any(_is_same(Path(previous), target) for target in where.targets.values()):
        found.add([Path(previous)])
    return found


def _check_apart(paths: list[Path]) -> None:
    seen: set[str] = set()
    for path in paths:
        real = os.path.realpath(path)
        if real in seen:
            raise FileProblem(f"{path}: two files of the job would have this name.")
        seen.add(real)


def _is_found_by(path: Path, pattern: str) -> bool:
    any_depth = (pattern, pattern.replace("**/", ""))  # two stars are also no folder at all
    return any(fnmatch.fnmatch(os.path.realpath(path), os.path.realpath(one)) for one in any_depth)


def _is_same(path: Path, other: Path) -> bool:
    return path.exists() and other.exists() and os.path.samefile(path, other)


class Outbox(outbox.Outbox):
    """The files of one run; a file that cannot be written ends the job."""

    problem: ClassVar[type[Exception]] = FileProblem

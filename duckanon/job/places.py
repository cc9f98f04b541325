"""Where the files of a job are: none takes the place of another, of a file that is read, or of another policy's.

The files of former releases, which a job may replace: known by their content, never by their names alone.

What a query reads of a file's size or time is told by nobody, so that a file at the target could be what the rows come
from. A release is only replaced where a record says that it is one, by its hash; a record or a report where it says
itself what it is.
"""

from __future__ import annotations

import fnmatch
import glob
import html
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast

from duckanon._bridge import sql
from duckanon._core.account.storage import counter_path
from duckanon._core.common import outbox
from duckanon._core.common.own_files import Replaceable
from duckanon._core.common.release_record import Record
from duckanon.job.errors import FileProblem
from duckanon.job.policy import Table, Target, is_server
from duckanon.job.policy_file import PolicyFile
from duckanon.job.record import load
from duckanon.job.sources import files_of, hash_of, paths_in

if TYPE_CHECKING:
    pass
    from duckanon.job.policy_file import PolicyFile


_POLICY_OF_REPORT = re.compile(r"<dt>Policy</dt><dd>([^<]*)<")


def replaceable(where: Places) -> Replaceable:
    """Return what tells which files of a job may be replaced."""
    checks: dict[Path, Callable[[Path], bool]] = dict.fromkeys(where.written, lambda path: False)  # a plan is never
    checks |= {target: partial(_is_of_record, where.record) for target in where.targets.values()}
    checks |= {page: lambda path: _policy_of_report(path) is not None for page in (where.report, where.refusal) if page}
    checks[where.record] = lambda path: _record_at(path) is not None
    return Replaceable(checks, _error)


def _error(path: Path) -> FileProblem:
    return FileProblem(
        f"{path}: duckanon did not write this file, or it was changed or lost its record since, so that it is not "
        "replaced; move it away, or name another."
    )


def _is_of_record(record: Path, target: Path) -> bool:
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
    record = _record_at(where.record)
    theirs = _outputs(record)
    policy = str((record.get("policy") or {}).get("path")) if record else ""
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


def _outputs(record: Record | None) -> dict[str | None, str | None]:
    """Return the names of the files and tables that a record is about, and their hashes."""
    tables = record["tables"] if record else []
    outputs = [table.get("output") or {} for table in tables if isinstance(table, dict)]
    return {output.get("path"): output.get("sha256") for output in outputs}


def _record_at(path: Path) -> Record | None:
    try:
        return cast(Record, load(path))  # of which an older version may have written less
    except FileProblem:  # there is none, or something else
        return None


def _policy_of_report(path: Path) -> str | None:
    try:
        match = _POLICY_OF_REPORT.search(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return None
    return html.unescape(match[1]).strip() if match else None


@dataclass(frozen=True)
class Places:
    """The files that a job writes."""

    targets: dict[str, Path]  # the releases that are files, by the names of the tables
    tables: dict[str, Target]  # the releases that are tables of servers, by the names of the tables
    record: Path
    report: Path | None
    plans: dict[str, Path]  # by the names of the tables

    @property
    def written(self) -> list[Path]:
        """All files that the job may write; a plan that is there is only read."""
        plans = [path for path in self.plans.values() if not path.exists()]
        paths = (*plans, self.report, self.refusal, self.record)
        return [*self.targets.values(), *(path for path in paths if path is not None)]

    @property
    def only_read(self) -> list[Path]:
        """The plans that are there."""
        return [path for path in self.plans.values() if path.exists()]

    @property
    def refusal(self) -> Path | None:
        """Where the report of a broken promise goes: the report of the release that stays in place is left alone."""
        return self.report and self.report.with_name(f"{self.report.stem}.not-released{self.report.suffix}")

    def show(self, name: str) -> str:
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
    report = file.place(policy.report) if policy.report else None
    plans = {name: file.place(plan) for name in policy.tables if (plan := policy.plan_of(name))}
    paths = Places(targets, tables, record, report, plans)
    seen: set[str] = set()
    for path in paths.written:
        if os.path.realpath(path) in seen:
            raise FileProblem(f"{path}: two files of the job would have this name.")
        seen.add(os.path.realpath(path))
    return paths


def originals(file: PolicyFile, where: Places, previous: str | Path | None = None) -> Originals:
    """Return what a job is known to read, after it is sure that it writes none of it.

    What else a query opens is told by DuckDB when it reads; only files that a glob has not found yet, since the job has
    still to write them, are looked for in the text.
    """
    read = [file.path]
    if file.policy.key and file.policy.key.file:
        read.append(file.place(file.policy.key.file))
    if account := file.policy.account:
        read += [file.place(path) for path in (account.path, account.key.file) if path]
        read.append(counter_path(file.place(account.path)))
    if file.policy.cohorts and file.policy.cohorts.erase:
        read.append(file.place(file.policy.cohorts.erase))
    read += where.only_read
    for name, table in file.policy.tables.items():
        _check_files_at_hand(file, name, table)
        read += files_of(file, table.source)
        read += [file.place(path) for paths in table.hierarchies.values() for path in paths]
        if table.reference:
            read.append(file.place(table.reference))
        before = getattr(table.method, "previous", None)
        if before and file.place(before) not in where.targets.values():
            read.append(file.place(before))
        named = paths_in(file, table.source)
        read += [Path(name) for name in named if os.path.exists(name)]
        for path in where.written:
            if any(_is_found_by(path, name) for name in named if glob.has_magic(name)):
                raise FileProblem(f"{path}: the job reads this file, now or in the next run; name another.")
    files = Originals(where.written, read, replaceable(where))
    there = [target for target in where.targets.values() if target.exists()]
    if previous and not (os.path.exists(previous) and any(os.path.samefile(previous, target) for target in there)):
        files.add([Path(previous)])
    return files


def _check_files_at_hand(file: PolicyFile, name: str, table: Table) -> None:
    """Refuse hierarchies and references that are not there, before any table is read."""
    named = [(("hierarchies", column), path) for column, paths in table.hierarchies.items() for path in paths]
    for place, path in [*named, (("reference",), table.reference)]:
        if path and not glob.has_magic(path) and not file.place(path).exists():
            raise FileProblem(str(file.wrong(name, place, f"{'.'.join(place)}: there is no file {path}.")))


def _is_found_by(path: Path, pattern: str) -> bool:
    any_depth = (pattern, pattern.replace("**/", ""))  # two stars are also no folder at all
    return any(fnmatch.fnmatch(os.path.realpath(path), os.path.realpath(one)) for one in any_depth)


class Originals:
    """The files that a job has read so far, none of which it may write, by whatever name they are reached.

    Two names are of one file if they lead to the same place, or if its device and its number are the same. File systems
    give the number of a file that is gone to a new one, such as the lock of a job whose policy is replaced meanwhile:
    no name that was read leads to the new one, and it has another size or time.
    """

    def __init__(self, written: Iterable[Path], read: Iterable[Path] = (), former: Replaceable | None = None) -> None:
        self._written = list(written)
        self._former = former
        self._read: set[str] = set()
        self._states: dict[tuple[int, int], list[tuple[Path, os.stat_result]]] = {}
        self.add(read)

    def add(self, paths: Iterable[Path]) -> None:
        """Remember files that are read, and refuse where the job would write one of them."""
        for path in paths:
            self._read.add(os.path.realpath(path))
            if state := _state(path):
                self._states.setdefault(_number(state), []).append((path, state))
        for path in self._written:
            self.refuse(path)
            if self._is_read(outbox.lock_path(path)):
                raise FileProblem(
                    f"{outbox.lock_path(path)}: the job reads this file, and must not use it as its lock."
                )

    def refuse(self, path: Path) -> None:
        """Refuse to write a file that was read, and to replace one that is no former release."""
        if self._is_read(path):
            raise FileProblem(f"{path}: the job reads this file, and must not overwrite it; name another.")
        if self._former:
            self._former.refuse(path)

    def _is_read(self, path: Path) -> bool:
        if os.path.realpath(path) in self._read:
            return True
        state = _state(path)
        return state is not None and any(
            _leads_to(name, state)  # it is still there under the name that was read
            or (before.st_size, before.st_mtime_ns) == (state.st_size, state.st_mtime_ns)  # it was moved
            for name, before in self._states.get(_number(state), [])
        )

    @contextmanager
    def watch(self, con: sql.Connection) -> Iterator[Callable[[], None]]:
        """Remember all that DuckDB opens as long as the block lasts; give a function that looks before the end."""
        with sql.watch_files(con) as so_far:

            def look() -> None:
                self.add(so_far())
                if self._former:
                    self._former.look()

            yield look
            look()


def _state(path: Path) -> os.stat_result | None:
    try:
        return os.stat(path)
    except (OSError, ValueError):  # what DuckDB reads elsewhere, on a server, is no file here
        return None


def _leads_to(path: Path, state: os.stat_result) -> bool:
    now = _state(path)
    return now is not None and _number(now) == _number(state)


def _number(state: os.stat_result) -> tuple[int, int]:
    return state.st_dev, state.st_ino


class Outbox(outbox.Outbox):
    """The files of one run; a file that cannot be written ends the job."""

    problem: ClassVar[type[Exception]] = FileProblem

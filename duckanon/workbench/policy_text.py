"""A policy file that is edited in place: comments stay, every change is written at once, any can be undone.

The changes that the workbench makes to a policy: to the part that holds its table, or to the whole.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import tomlkit

from duckanon.job import policy_file
from duckanon.job.errors import FileProblem, PolicyError
from duckanon.job.policy import Table
from duckanon.job.policy_file import PolicyFile


class Conflict(Exception):  # noqa: N818 - it says what happened
    """The policy was changed elsewhere since the window showed it."""


@dataclass(frozen=True)
class Line:
    """A line that a change wrote, with its number in the file, or one that it took away, without a number."""

    number: int | None
    text: str


@dataclass(frozen=True)
class Change:
    """What the last change did to the file."""

    what: str
    lines: list[Line]


class PolicyText:
    """The text of a policy file, and what it said before.

    Attributes:
        path: The file.
        name: The table that is edited.
        text: What the file says.
        last: The last change.
        refusals: How many changes were refused since another window had changed the policy.
    """

    def __init__(self, path: Path, table: str | None = None) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._past: list[str] = []
        self._file: PolicyFile | None = None
        self.last: Change | None = None
        self.refusals = 0
        self.text = self._on_disk()
        tables = policy_file.read(path).policy.tables
        if table is not None and table not in tables:
            raise PolicyError(f"{path}: it has no table {table}; its tables are {', '.join(tables)}.")
        self.name = table or next(iter(tables))

    @property
    def version(self) -> str:
        """What a window sends with a change, to tell which text it has seen."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]

    @property
    def can_undo(self) -> bool:
        """Whether there is a change to undo."""
        return bool(self._past)

    def table(self) -> Table:
        """Return the table of the policy; raises PolicyError where a change elsewhere made it wrong."""
        return self.file().policy.tables[self.name]

    def file(self) -> PolicyFile:
        """Return the policy as it is now; raises PolicyError where a change elsewhere made it wrong."""
        with self._lock:
            if self._file is None or self._file.text != self.text:
                self._file = policy_file.read(self.path, text=self.text)
            return self._file

    def look(self) -> bool:
        """Read the file again where another program wrote it, and tell whether it did."""
        with self._lock:
            text = self._on_disk()
            if text == self.text:
                return False
            self._past.append(self.text)
            self.last = Change("changed by another program", _lines(self.text, text))
            self.text = text
            return True

    def edit(self, seen: str, words: str, change: Callable[[Any, Any], None]) -> None:
        """Change the policy as a window asks that saw the version `seen`, and write it.

        Args:
            seen: The version that the window shows.
            words: The change in words.
            change: Gets the document and the part of it that holds the table, and changes them.

        Raises:
            Conflict: The policy is another one by now; nothing is changed.
        """
        with self._lock:
            self.refuse_old(seen)
            document = tomlkit.parse(self.text)
            part: Any = document["tables"][self.name] if "tables" in document else document
            change(document, part)
            text = tomlkit.dumps(document)
            if text == self.text:
                return
            policy_file.read(self.path, text=text)  # a wrong one is refused before it is written
            self._write(text)
            self._past.append(self.text)
            self.last = Change(words, _lines(self.text, text))
            self.text = text

    def undo(self, seen: str) -> None:
        """Write what the policy said before the last change."""
        with self._lock:
            self.refuse_old(seen)
            if self._past:
                before = self._past.pop()
                self._write(before)
                self.last = Change("undone", _lines(self.text, before))
                self.text = before

    def refuse_old(self, seen: str) -> None:
        """Refuse what a window asks that saw another version."""
        self.look()
        if seen != self.version:
            self.refusals += 1
            raise Conflict("Another window, or another program, changed the policy. Nothing was changed; look again.")

    def _on_disk(self) -> str:
        try:
            return self.path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError):
            raise FileProblem(f"{self.path}: the policy cannot be read.") from None

    def _write(self, text: str) -> None:
        """Write the whole file beside the old one and rename it, so that a crash leaves one of both."""
        place = self.path.resolve()  # a link stays one
        try:
            handle, name = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.")
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as file:
                    file.write(text)
                os.chmod(name, place.stat().st_mode)
                os.replace(name, place)
            except BaseException:
                os.unlink(name)
                raise
        except OSError as error:
            raise FileProblem(f"{self.path}: the policy cannot be written ({error.strerror}).") from None


def _lines(before: str, after: str) -> list[Line]:
    """Return the lines that a change wrote, and those that it only took away."""
    old, new = before.splitlines(), after.splitlines()
    lines = []
    for kind, start, end, new_start, new_end in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "delete":
            lines += [Line(None, text) for text in old[start:end]]
        elif kind != "equal":
            lines += [Line(number + 1, new[number]) for number in range(new_start, new_end) if new[number].strip()]
    return lines


Edit = Callable[[Any, Any], None]
"""Takes the document and the part of it that holds the table."""

TERMS = ("recipient", "purpose", "legal_basis", "valid_until", "reviewers")


def role(column: str, value: str) -> Edit:
    """Give a column a role; what else the policy says of it stays."""

    def change(document: Any, part: Any) -> None:
        columns = _section(document, part, "columns")
        if isinstance(columns.get(column), Mapping):
            columns[column]["role"] = value
        else:
            columns[column] = value

    return change


def method(name: str) -> Edit:
    """Choose the method; options of another method are taken away, narrowing columns stay."""

    def change(document: Any, part: Any) -> None:
        chosen = _section(document, part, "method")
        if chosen["name"] == name:
            return
        for option in [option for option in chosen if option not in ("name", "narrowing")]:
            del chosen[option]
        chosen["name"] = name

    return change


def promise(name: str, value: float | int | bool | None) -> Edit:
    """Promise a number; None takes the promise away."""

    def change(document: Any, part: Any) -> None:
        promises = _section(document, part, "promises")
        if value is None:
            promises.pop(name, None)
        else:
            promises[name] = value

    return change


def hierarchy(column: str, path: str | None) -> Edit:
    """Name the file of a column's hierarchy; None takes it away."""

    def change(document: Any, part: Any) -> None:
        hierarchies = _section(document, part, "hierarchies")
        if path is None:
            hierarchies.pop(column, None)
        else:
            hierarchies[column] = path

    return change


def terms(fields: Mapping[str, str]) -> Edit:
    """Say who gets the release and why; an empty text takes an entry away."""

    def change(document: Any, _: Any) -> None:
        said = _section(document, document, "release")
        for name in TERMS:
            text = fields.get(name, "").strip()
            if not text:
                said.pop(name, None)
            elif name == "valid_until":
                said[name] = date.fromisoformat(text)
            elif name == "reviewers":
                said[name] = [one.strip() for one in text.split(";") if one.strip()]
            else:
                said[name] = text

    return change


def narrowing(column: str) -> Edit:
    """Let a kept column narrow down others, as somebody decided."""

    def change(document: Any, part: Any) -> None:
        chosen = _section(document, part, "method")
        listed = list(chosen.get("narrowing", []))
        if column not in listed:
            chosen["narrowing"] = [*listed, column]

    return change


def _section(document: Any, part: Any, key: str) -> Any:
    """Return a section of a table: its own, or the one that is said for all tables; a new one where there is none."""
    if key not in part and key not in document:
        part[key] = tomlkit.table()
    return part[key] if key in part else document[key]

"""The history of the shell: whole statements, kept in a file of the home folder where there is one."""

from __future__ import annotations

import os
import sys
from pathlib import Path

LONGEST = 5000
"""Statements that are kept."""


def history_file() -> Path | None:
    """Return the file, None for somebody without a home: no HOME, and a user whom the system does not know."""
    home = os.path.expanduser("~")
    return None if home.startswith("~") or os.environ.get("HOME") == "" else Path(home) / ".duckanon_history"


class History:
    r"""Statements that were typed, one after the other in a file that only its owner can read.

    A statement of several lines is one entry: its lines end with ``\r\n`` but for the last, as Python's own shell has
    it. Every statement is written when it was typed, so that several shells can share the file. Where the file cannot
    be used, that is said once, and the shell goes on without it.
    """

    def __init__(self, file: Path | None) -> None:
        self._file = file

    def entries(self) -> list[str]:
        """Read the entries, the oldest first; a file that has grown too long is cut."""
        if self._file is None:
            return []
        try:
            text = self._file.read_bytes().decode(errors="replace") if self._file.exists() else ""
            entries = text.replace("\r\n", "\r").split("\n")
            entries = [entry.replace("\r", "\n") for entry in entries if entry.strip()]
            if len(entries) > LONGEST:
                self._file.write_bytes("".join(map(_line, entries[-LONGEST:])).encode())
        except OSError as error:
            self._give_up(error)
            return []
        return entries[-LONGEST:]

    def add(self, entry: str) -> None:
        """Write an entry behind the others."""
        if self._file is None:
            return
        try:
            descriptor = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(_line(entry).encode(errors="replace"))
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        print(f"duckanon: the history was not saved; {self._file}: {error.strerror}.", file=sys.stderr)
        self._file = None


def _line(entry: str) -> str:
    return entry.replace("\r", "").replace("\n", "\r\n") + "\n"

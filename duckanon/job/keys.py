"""The key of pseudonyms: from a file or the environment, never shown."""

from __future__ import annotations

import os
from pathlib import Path

from duckanon.job.errors import FileProblem
from duckanon.job.policy_file import PolicyFile

_SHORTEST = 16
"""Characters: a shorter key could be found by trying."""


class Secret:
    """A key that does not show itself when it is printed."""

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the key, to be handed to a query as a parameter."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(...)"


def read(file: PolicyFile) -> Secret | None:
    """Read the key that a policy points to; its errors tell neither the key nor what stands in the key's place."""
    key = file.policy.key
    if key is None:
        return None
    if key.environment is not None:
        value, where = os.environ.get(key.environment, ""), "the environment variable of key.environment"
    else:
        where = "the file of key.file"
        try:
            value = file.place(Path(key.file or "")).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise FileProblem(f"{file.path}: {where} cannot be read.") from None
    value = value.strip()
    if len(value) < _SHORTEST:
        what = "is not set" if not value else f"must have a key of at least {_SHORTEST} characters"
        raise FileProblem(f"{file.path}: {where} {what}.")
    return Secret(value)


def warnings(file: PolicyFile) -> list[str]:
    """Say where others than this user may read the file of the key; Windows does not tell by the mode of a file."""
    key = file.policy.key
    if key is None or key.file is None or os.name == "nt" or not file.place(key.file).stat().st_mode & 0o077:
        return []
    return ["the file of key.file may be read or written by others; let nobody but its user do so (chmod 600)."]

"""The keys of pseudonyms and of the account: from a file or the environment, never shown."""

from __future__ import annotations

import os
from pathlib import Path

from duckanon._core.common.release_record import KEY_WARNING
from duckanon.job.errors import FileProblem
from duckanon.job.policy import Key
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
    return _read(file, file.policy.key, "key") if file.policy.key else None


def read_of_account(file: PolicyFile) -> Secret | None:
    """Read the key of the policy's account."""
    return _read(file, file.policy.account.key, "account.key") if file.policy.account else None


def _read(file: PolicyFile, key: Key, name: str) -> Secret:
    if key.environment is not None:
        value, where = os.environ.get(key.environment, ""), f"the environment variable of {name}.environment"
    else:
        where = f"the file of {name}.file"
        try:
            value = file.place(Path(key.file or "")).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise FileProblem(f"{file.path}: {where} cannot be read.") from None
    value = value.strip()
    if len(value) < _SHORTEST:
        fault = "is not set" if not value else f"must have a key of at least {_SHORTEST} characters"
        raise FileProblem(f"{file.path}: {where} {fault}.")
    return Secret(value)


def warnings(file: PolicyFile) -> list[str]:
    """Say where others than this user may read the file of the key; Windows does not tell by the mode of a file."""
    policy = file.policy
    keys = {"key": policy.key, "account.key": policy.account.key if policy.account else None}
    return [
        f"the file of {name}.file {KEY_WARNING}"
        for name, key in keys.items()
        if key and key.file and os.name != "nt" and file.place(key.file).stat().st_mode & 0o077
    ]

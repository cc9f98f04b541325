"""The ways in which a release job fails, each with an exit code of its own."""

from __future__ import annotations

import re
from typing import ClassVar

from duckanon._core.common.release_record import Record

_CREDENTIALS = re.compile(r"(?<=://)\S*@|(?i:password|passwd|passfile|sslpassword)\s*=\s*[^\s&']+")
"""Where passwords stand in addresses of servers: before the host, and among the parameters."""


class JobError(Exception):
    """A release job that ended without a release; its text is one or more whole sentences, without a value of the data.

    Attributes:
        exit_code: What the command ``duckanon release`` returns.
    """

    exit_code: ClassVar[int] = 3

    def __init__(self, text: str) -> None:
        super().__init__(_CREDENTIALS.sub("...", text))


class PromiseBroken(JobError):  # noqa: N818 - it says what happened
    """The release was made, and does not keep what the policy promises; or no release can.

    Attributes:
        record: The record of the run, if it came so far: what was asked and what was measured.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, text: str, record: Record | None = None) -> None:
        super().__init__(text)
        self.record = record


class Differs(JobError):  # noqa: N818 - it says what happened
    """A release, its record, its report or its policy say different things."""

    exit_code: ClassVar[int] = 1


class PolicyError(JobError):
    """The policy cannot be understood, contradicts itself, or does not fit the table."""

    exit_code: ClassVar[int] = 2


class Cancelled(JobError):  # noqa: N818 - it says what happened
    """The job was cancelled; the previous release stays in place."""

    exit_code: ClassVar[int] = 130


class FileProblem(JobError):  # noqa: N818 - it says what happened
    """A source could not be read, or a target could not be written."""

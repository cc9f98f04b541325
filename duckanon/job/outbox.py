"""The files of a release job, which appear under their names only when all is well."""

from __future__ import annotations

from typing import ClassVar

from duckanon._core.common import outbox
from duckanon.job.errors import FileProblem


class Outbox(outbox.Outbox):
    """The files of one run; a file that cannot be written ends the job."""

    problem: ClassVar[type[Exception]] = FileProblem

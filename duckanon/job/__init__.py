"""The release job: from a table to a file that may leave, checked as written, with a record of what was done."""

from __future__ import annotations

from duckanon.job.errors import Cancelled, FileProblem, JobError, PolicyError, PromiseBroken
from duckanon.job.run import release

__all__ = ["Cancelled", "FileProblem", "JobError", "PolicyError", "PromiseBroken", "release"]

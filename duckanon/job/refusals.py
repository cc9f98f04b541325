"""Refusals of our functions as the job's errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from duckanon._bridge import sql
from duckanon.job import narrowing
from duckanon.job.errors import FileProblem, PolicyError, PromiseBroken
from duckanon.job.policy_file import PolicyFile

_UNREACHABLE = re.compile(r"must be at most the number|asks for more|cannot|no release|too few|could not|is left")
"""How our functions say that no release of this table keeps a promise; all other refusals are about parameters."""


@contextmanager
def translate_errors(file: PolicyFile, table: str | None = None) -> Iterator[None]:
    """Turn refusals of our functions into the job's errors; what DuckDB says beyond them may quote a person's value.

    What is refused of a table's columns is said in the words of the policy, with their lines.
    """
    policy = file.path
    try:
        yield
    except duckdb.Error as error:
        why = sql.why(error)
        if not why.startswith("anon."):
            raise FileProblem(f"{policy}: the release failed ({why}).") from None
        narrowed = narrowing.refused(file, table, narrowing.told(why)) if table else None
        if narrowed:
            raise narrowed from None
        if _UNREACHABLE.search(why):
            raise PromiseBroken(
                f"{why}. What may help: a smaller k or l, fewer or coarser quasi-identifiers, or a larger "
                "max_suppressed_fraction."
            ) from None
        raise PolicyError(f"{policy}: {why}.") from None

"""What is known of an account's releases elsewhere: by its counter, and by the last release's record and report.

An account that lacks a release which one of them knows was deleted, emptied, set back to an older copy, or is another
one, and would count joint promises wrongly. The job stops then, until a person decides (`duckanon account adopt`).
"""

from __future__ import annotations

import hashlib
import html
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from duckanon._core.account.counter import counter_path, read_counter
from duckanon._core.account.entries import Listed
from duckanon._core.account.releases import Releases
from duckanon._core.account.storage import AccountError
from duckanon.job.errors import FileProblem
from duckanon.job.places import Places
from duckanon.job.policy_file import PolicyFile

_NUMBER = re.compile(r'<data value="([^"]*)" data-path="/(account/releases|tables/\d+/output/(?:sha256|people))">')
"""Numbers of a report that stand in the record, too."""


@dataclass(frozen=True)
class Witness:
    """What knows of releases that the account should have.

    Attributes:
        words: What is wrong with an account that lacks them.
        releases: How many releases it knows; 0 where it does not say.
        account: The identity of the account that had them, where an earlier version did not leave it out.
        marks: The mark of the last of them, or the hashes of what was written.
    """

    words: str
    releases: int = 0
    account: str | None = None
    marks: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """What an adoption recognizes it by."""
        return hashlib.sha256(json.dumps([self.releases, self.account, sorted(self.marks)]).encode()).hexdigest()

    @property
    def is_of_releases(self) -> bool:
        """Whether it knows releases; else it is a counter that is missing, or damaged."""
        return bool(self.releases or self.marks)

    def lost(self, listed: Sequence[Listed]) -> int:
        """Return how many releases the account lacks at least."""
        return max(self.releases - (listed[-1].release if listed else 0), 1) if self.is_of_releases else 0


def lacking(file: PolicyFile, where: Places, releases: Releases | None, identity: str | None) -> list[Witness]:
    """Return what knows of releases that the account lacks; the account may not be there."""
    listed = releases.listed() if releases else []
    known = {one.mark for one in listed} | {one.sha256 for one in listed}
    assert file.policy.account is not None
    found = []
    for witness in _witnesses(file, where, file.place(file.policy.account.path), listed):
        # an earlier version counted tables, and recorded no identity
        count = 0 if not listed else listed[-1].release if witness.account else len(listed)
        is_other = witness.account is not None and witness.account != identity
        has_all = not is_other and witness.releases <= count and known.issuperset(witness.marks)
        is_adopted = releases is not None and releases.is_adopted(witness.key)
        if not (witness.is_of_releases and (has_all or is_adopted)):
            found.append(witness)
    return found


def refuse_lacking(file: PolicyFile, where: Places, releases: Releases | None, identity: str | None) -> None:
    """Raise FileProblem where the account lacks a release that is known elsewhere."""
    if found := lacking(file, where, releases, identity):
        assert file.policy.account is not None
        raise FileProblem(
            f"{file.place(file.policy.account.path)}: the account {found[0].words}, so that joint promises would be "
            "counted without what is lost; restore the account and its counter from a backup, or let a person decide "
            f"with duckanon account adopt {file.path.name}."
        )


def is_of_table(file: PolicyFile, name: str, one: Listed, listed: Sequence[Listed]) -> bool:
    """Tell whether an entry of the account is of a policy's table.

    Entries of earlier versions do not say in which folder the policy is: they are of the first policy of their name
    that enters a release since.
    """
    ours, own = (file.path.name, name), folder_of(file)
    folders = [entry.folder for entry in listed if (entry.policy, entry.name) == ours and entry.folder]
    is_own = one.folder == own or (one.folder is None and own in (folders or [own])[:1])
    return (one.policy, one.name) == ours and is_own


def folder_of(file: PolicyFile) -> str:
    """Return the folder of a policy, from that of its account: both may move together."""
    assert file.policy.account is not None
    folders = (os.path.realpath(path.parent) for path in (file.path, file.place(file.policy.account.path)))
    own, of_account = map(Path, folders)
    try:
        return Path(os.path.relpath(own, of_account)).as_posix()
    except ValueError:  # another drive of Windows
        return own.as_posix()


def _witnesses(file: PolicyFile, where: Places, account: Path, listed: Sequence[Listed]) -> Iterator[Witness]:
    counter = None
    try:
        counter = read_counter(account)
        if counter is None and any(one.folder for one in listed):
            yield Witness(f"has no counter {counter_path(account).name} beside it any more")
    except AccountError:
        yield Witness(f"has a counter {counter_path(account).name} that cannot be read")
    if counter and counter.last:
        yield Witness(_words(counter.releases, "its counter"), counter.releases, counter.account, (counter.last,))
    is_ours = any(is_of_table(file, name, one, listed) for name in file.policy.tables for one in listed)
    if where.record.exists() and (found := _of_record(where.record, is_ours)):
        yield found
    if where.report and where.report.exists() and (found := _of_report(where.report)):
        yield found


def _of_record(path: Path, is_ours: bool) -> Witness | None:
    """Return what a record knows; one without an account only where the account has releases of this policy."""
    try:
        found: Any = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):  # something else
        return None
    if not isinstance(found, dict) or not isinstance(found.get("tables"), list):
        return None
    account = found.get("account")
    if found.get("outcome") != "released" or not (is_ours or isinstance(account, dict)):
        return None
    outputs = [one.get("output") for one in found["tables"] if isinstance(one, dict)]
    # the people are counted of what was entered
    hashes = [one.get("sha256") for one in outputs if isinstance(one, dict) and one.get("people") is not None]
    account = account if isinstance(account, dict) else {}
    releases = account.get("releases") if isinstance(account.get("releases"), int) else 0
    return _of_release(f"the record {path.name}", releases or 0, account.get("id"), hashes)


def _of_report(path: Path) -> Witness | None:
    try:
        numbers = {name: json.loads(html.unescape(value)) for value, name in _NUMBER.findall(path.read_text("utf-8"))}
        releases = int(numbers["account/releases"])
    except (OSError, ValueError, TypeError, KeyError):  # something else, or of a policy without an account
        return None
    hashes = [numbers.get(name.replace("people", "sha256")) for name in numbers if name.endswith("people")]
    return _of_release(f"the report {path.name}", releases, None, hashes)


def _of_release(name: str, releases: int, account: str | None, hashes: Sequence[str | None]) -> Witness | None:
    marks = tuple(str(one) for one in hashes if one)
    return Witness(_words(releases, name), releases, account, marks) if releases or marks else None


def _words(releases: int, name: str) -> str:
    return f"lacks {f'the last of {releases} releases' if releases > 1 else 'a release'} that {name} knows"

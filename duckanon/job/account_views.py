"""An account as its owner sees it: its releases, what they leave together, and a person that is forgotten."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from duckanon._bridge import sql
from duckanon._core.account.entries import Entry
from duckanon._core.account.releases import Releases
from duckanon._core.account.storage import Account
from duckanon.job import keys, policy_file
from duckanon.job.account import problems
from duckanon.job.errors import FileProblem, PolicyError
from duckanon.job.policy_file import PolicyFile


@contextmanager
def _opened(policy: str) -> Iterator[tuple[PolicyFile, Account, Releases]]:
    file = policy_file.read(policy)
    secret = keys.read_of_account(file)
    if secret is None or file.policy.account is None:
        raise PolicyError(f"{file.path}: the policy has no [account].")
    with problems(), Account(file.place(file.policy.account.path), secret.reveal()) as account:
        yield file, account, Releases(account)


def show(policy: str) -> list[str]:
    """Return a line about each release of a policy's account."""
    with _opened(policy) as (_, _, releases):
        return [
            f"{one.number}  {one.made}  {one.policy}  {one.name}: {one.people} people in {one.classes} classes"
            for one in releases.listed()
        ] or ["no releases yet"]


def check(policy: str) -> tuple[list[str], bool]:
    """Count all releases again; return a line about each, and whether they keep the joint promises of the policy."""
    with _opened(policy) as (file, account, releases):
        if account.query("PRAGMA integrity_check") != [("ok",)]:
            raise FileProblem(f"{account.path}: the file of the account is damaged; restore it from a backup.")
        tables = file.policy.tables.values()
        asked_k = max((table.promises.joint_k or 0 for table in tables), default=0)
        asked_l = max((table.promises.joint_l or 0 for table in tables), default=0)
        asked_t = min((one.promises.joint_t for one in tables if one.promises.joint_t is not None), default=None)
        lines, is_kept = [], True
        for release, counts in releases.joint():
            assert not isinstance(release, Entry)
            line, is_kept = f"{release.number}  {release.name}: joint_k = {counts.k}", (counts.k or 0) >= asked_k
            for column in sorted(counts.left):
                left, distance = counts.values_left(column), counts.distance(column)
                line += f", joint_l of {column} = {left}"
                is_kept &= (left or 0) >= asked_l
                if asked_t is not None:
                    line += f", joint_t of {column} = " + ("unknown" if distance is None else f"{distance:.3g}")
                    is_kept &= distance is not None and distance <= asked_t
            lines.append(line)
        return lines or ["no releases yet"], is_kept


def forget(policy: str, person: str, connect: Callable[[], sql.Connection]) -> list[str]:
    """Make a person of an account unrecognizable, even to who has the key.

    Args:
        policy: The file of the policy.
        person: The person, as the source names them; where the policy releases pseudonyms, the same.
        connect: Opens a connection with the functions.
    """
    with _opened(policy) as (file, account, releases):
        names = {person}
        key = keys.read(file)
        if key and any(table.person and table.columns[table.person].pseudonym for table in file.policy.tables.values()):
            con = connect()
            try:
                found = con.execute("SELECT anon.pseudonym($person, $key)", {"person": person, "key": key.reveal()})
                names.add(str(found.fetchall()[0][0]))
            finally:
                con.close()
        is_found = [releases.forget(account.keyed("person", name)) for name in sorted(names)]
    if not any(is_found):
        raise FileProblem(f"{account.path}: the account knows no such person.")
    return ["forgotten: nobody can tell any more which entries were this person's"]

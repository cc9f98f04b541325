"""An account as its owner sees it: its releases, what they leave together, what it lost, a person that is forgotten."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import duckdb

from duckanon._bridge import sql
from duckanon._core.account.entries import Listed
from duckanon._core.account.releases import Releases
from duckanon._core.account.storage import Account, is_missing
from duckanon._core.common.amounts import counted
from duckanon.job import keys, policy_file, sources
from duckanon.job.account import problems
from duckanon.job.account_witnesses import lacking, refuse_lacking
from duckanon.job.cohorts import erased_people
from duckanon.job.errors import FileProblem, PolicyError
from duckanon.job.places import places
from duckanon.job.policy_file import PolicyFile


@contextmanager
def _opened(policy: str, *, is_shown: bool = False) -> Iterator[tuple[PolicyFile, Account, Releases]]:
    file, path, key = _account_of(policy)
    with problems():
        if is_missing(path):
            refuse_lacking(file, places(file), None, None)
        with Account(path, key) as account:
            releases = Releases(account)
            if not is_shown:
                refuse_lacking(file, places(file), releases, account.identity)
            yield file, account, releases


def _account_of(policy: str) -> tuple[PolicyFile, Path, str]:
    file = policy_file.read(policy)
    secret = keys.read_of_account(file)
    if secret is None or file.policy.account is None:
        raise PolicyError(f"{file.path}: the policy has no [account].")
    return file, file.place(file.policy.account.path), secret.reveal()


def show(policy: str) -> list[str]:
    """Return a line about each table that was released, and about each adoption."""
    with _opened(policy, is_shown=True) as (file, account, releases):
        lines = [
            f"{one.release}  {one.made}  {one.policy_path}  {one.name}: {counted(one.people, 'person', 'people')} in "
            f"{counted(one.classes, 'class', 'classes')}"
            for one in releases.listed()
        ] or ["no releases yet"]
        lines += [
            f"{made}  adopted, although the account {words}; lost: {counted(lost, 'release', 'releases')}"
            for made, lost, words in releases.adoptions()
        ]
        return lines + [f"the account {one.words}" for one in lacking(file, places(file), releases, account.identity)]


def adopt(policy: str, *, accepts_loss: bool) -> list[str]:
    """Go on with an account that lacks releases, which joint promises will never count: a person's decision.

    Args:
        policy: The file of the policy.
        accepts_loss: Whether the person said so; else what is lost is said, and nothing is changed.
    """
    file, path, key = _account_of(policy)
    with ExitStack() as stack, problems():
        account = None if is_missing(path) else stack.enter_context(Account(path, key))
        releases = Releases(account) if account else None
        found = lacking(file, places(file), releases, account.identity if account else None)
        if not found:
            return ["nothing was changed: no release is known that the account lacks"]
        listed = releases.listed() if releases else []
        words, lost = ", and ".join(one.words for one in found), max(one.lost(listed) for one in found)
        missed = (
            f"joint promises will not count {counted(lost, 'release', 'releases')}"
            if lost
            else "none of its releases is known to be lost"
        )
        if not accepts_loss:
            raise FileProblem(
                f"{path}: the account {words}: {missed}; restore a backup, or add --accept-loss "
                "to go on (nothing was changed)."
            )
        if releases is None:
            releases = Releases(stack.enter_context(Account(path, key, create=True)))
        releases.adopt([one.key for one in found], lost, words)
    return [f"adopted: {missed}; the account says so from now on"]


def check(policy: str) -> tuple[list[str], bool]:
    """Count all releases again; return a line about each, and whether they keep the joint promises of the policy."""
    with _opened(policy) as (file, account, releases):
        if account.query("PRAGMA integrity_check") != [("ok",)]:
            raise FileProblem(f"{account.path}: the file of the account is damaged; restore it from a backup.")
        tables = file.policy.tables.values()
        asked_k = max((table.promises.joint_k or 0 for table in tables), default=0)
        asked_l = max((table.promises.joint_l or 0 for table in tables), default=0)
        asked_t = min((one.promises.joint_t for one in tables if one.promises.joint_t is not None), default=None)
        lines: list[str] = []
        names: list[str] = []
        is_kept = True
        for one, counts in releases.joint():
            assert isinstance(one, Listed)
            is_same = one.release == len(lines)  # tables of a release count together: the line of the last one is true
            names = [*(names if is_same else ()), one.name]
            lines = lines[:-1] if is_same else lines
            line, is_kept = f"{one.release}  {', '.join(names)}: joint_k = {counts.k}", (counts.k or 0) >= asked_k
            for column in sorted(counts.left):
                left, distance = counts.values_left(column), counts.distance(column)
                line += f", joint_l of {column} = {left}"
                is_kept &= (left or 0) >= asked_l
                if asked_t is not None:
                    line += f", joint_t of {column} = " + ("unknown" if distance is None else f"{distance:.3g}")
                    is_kept &= distance is not None and distance <= asked_t
            lines.append(line)
        return lines or ["no releases yet"], is_kept


def forget(policy: str, person: str, connect: Callable[[], sql.Connection], *, returns: bool = True) -> list[str]:
    """Make a person of an account unrecognizable, even to who has the key.

    Args:
        policy: The file of the policy.
        person: The person, as the source names them; where the policy releases pseudonyms, the same.
        connect: Opens a connection with the functions.
        returns: Whether a policy whose last release has the person may release them again.
    """
    with _opened(policy) as (file, account, releases):
        names = {person}
        key = keys.read(file)
        con = connect()
        try:
            if key and any(one.person and one.columns[one.person].pseudonym for one in file.policy.tables.values()):
                found = con.execute("SELECT anon.pseudonym($person, $key)", {"person": person, "key": key.reveal()})
                names.add(str(found.fetchall()[0][0]))
            _refuse_in_source(con, file, person)
        finally:
            con.close()
        is_found = [releases.forget(account.keyed("person", name), returns=returns) for name in sorted(names)]
    if not any(is_found):
        raise FileProblem(f"{account.path}: the account knows no such person.")
    return ["forgotten: nobody can tell any more which entries were this person's"]


def _refuse_in_source(con: sql.Connection, file: PolicyFile, person: str) -> None:
    """Refuse a person whom the next release would count as somebody new: one of the table, and not to be erased."""
    if person in erased_people(con, file):
        return
    con.execute(f"SET file_search_path = {sql.literal(str(file.path.parent.resolve()))}").fetchall()
    for name, table in file.policy.tables.items():
        if not table.method.makes_classes or table.person is None:
            continue
        try:
            query = sources.open_source(con, table.source, sources.files_of(file, table.source)).query
            is_there = f"SELECT count(*) FROM ({query}) WHERE {sql.name(table.person)}::VARCHAR = $person"
            (count,) = con.execute(is_there, {"person": person}).fetchall()[0]
            con.execute("USE memory.main").fetchall()
        except duckdb.Error as error:
            raise sources.unreadable(table.source, error) from None
        if count:
            raise FileProblem(
                f"{file.path}: the person is still in the source of {name}, and the next release would count them as "
                "somebody new; take them out of the source first, or list them in cohorts.erase."
            )

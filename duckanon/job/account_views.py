"""An account as its owner sees it: its releases, what they leave together, what it lost, a person that is forgotten.

The budgets of an account as its owner sets and sees them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from pathlib import Path

import duckdb

from duckanon._bridge import sql
from duckanon._core.account.budget import count_lost_answers, list_budgets, make_amount, set_limit, update_answers
from duckanon._core.account.entries import TableRelease
from duckanon._core.account.releases import Releases
from duckanon._core.account.storage import Account, is_missing
from duckanon._core.common.arrays import spell_count
from duckanon.job import keys, policy_file, sources
from duckanon.job.account import lacking, problems, refuse_lacking
from duckanon.job.cohorts import find_erased_people
from duckanon.job.errors import FileProblem, PolicyError
from duckanon.job.places import places
from duckanon.job.policy_file import PolicyFile


@contextmanager
def _open_account(policy: str, *, is_shown: bool = False) -> Iterator[tuple[PolicyFile, Account, Releases]]:
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
    with _open_account(policy, is_shown=True) as (file, account, releases):
        lines = [
            f"{entry.release}  {entry.moment}  {entry.policy_path}  {entry.name}: "
            f"{spell_count(entry.people, 'person', 'people')} in {spell_count(entry.classes, 'class', 'classes')}"
            for entry in releases.list_tables()
        ] or ["no releases yet"]
        lines += [
            f"{moment}  adopted, although the account {words}; lost: {spell_count(lost, 'release', 'releases')}"
            for moment, lost, words in releases.list_adoptions()
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
        gaps = lacking(file, places(file), releases, account.identity if account else None)
        if not gaps:
            return ["nothing was changed: no release is known that the account lacks"]
        listed = releases.list_tables() if releases else []
        words, lost = ", and ".join(one.words for one in gaps), max(one.count_lost(listed) for one in gaps)
        missed = (
            f"joint promises will not count {spell_count(lost, 'release', 'releases')}"
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
        releases.adopt([one.key for one in gaps], lost, words)
    return [f"adopted: {missed}; {'the account says so from now on' if lost else 'its counter was written anew'}"]


def check(policy: str) -> tuple[list[str], bool]:
    """Count all releases again; return a line about each, and whether they keep the joint promises of the policy."""
    with _open_account(policy) as (file, account, releases):
        if account.query("PRAGMA integrity_check") != [("ok",)]:
            raise FileProblem(f"{account.path}: the file of the account is damaged; restore it from a backup.")
        tables = file.policy.tables.values()
        asked_k = max((table.promises.joint_k or 0 for table in tables), default=0)
        asked_l = max((table.promises.joint_l or 0 for table in tables), default=0)
        asked_t = min((one.promises.joint_t for one in tables if one.promises.joint_t is not None), default=None)
        lines: list[str] = []
        names: list[str] = []
        is_kept = True
        for entry, counts in releases.joint():
            assert isinstance(entry, TableRelease)
            is_same = entry.release == len(lines)  # tables of a release count together: the line of the last is true
            names = [*(names if is_same else ()), entry.name]
            lines = lines[:-1] if is_same else lines
            line, is_kept = f"{entry.release}  {', '.join(names)}: joint_k = {counts.k}", (counts.k or 0) >= asked_k
            for column in sorted(counts.left):
                left, distance = counts.count_values_left(column), counts.distance(column)
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
    with _open_account(policy) as (file, account, releases):
        names = {person}
        key = keys.read(file)
        con = connect()
        try:
            if key and any(one.person and one.columns[one.person].pseudonym for one in file.policy.tables.values()):
                cursor = con.execute("SELECT anon.pseudonym($person, $key)", {"person": person, "key": key.reveal()})
                names.add(str(cursor.fetchall()[0][0]))
            _refuse_in_source(con, file, person)
        finally:
            con.close()
        is_found = [releases.forget(account.hash_value("person", name), returns=returns) for name in sorted(names)]
    if not any(is_found):
        raise FileProblem(f"{account.path}: the account knows no such person.")
    return ["forgotten: nobody can tell any more which entries were this person's"]


def _refuse_in_source(con: sql.Connection, file: PolicyFile, person: str) -> None:
    """Refuse a person whom the next release would count as somebody new: one of the table, and not to be erased."""
    if person in find_erased_people(con, file):
        return
    con.execute(f"SET file_search_path = {sql.literal(str(file.path.parent.resolve()))}").fetchall()
    for name, table in file.policy.tables.items():
        if not table.method.makes_classes or table.person is None:
            continue
        try:
            query = sources.open_source(con, table.source, sources.files_of(file, table.source)).query
            is_there = f"SELECT count(*) FROM ({query}) WHERE {sql.quote(table.person)}::VARCHAR = $person"
            (count,) = con.execute(is_there, {"person": person}).fetchall()[0]
            con.execute("USE memory.main").fetchall()
        except duckdb.Error as error:
            raise sources.unreadable(table.source, error) from None
        if count:
            raise FileProblem(
                f"{file.path}: the person is still in the source of {name}, and the next release would count them as "
                "somebody new; take them out of the source first, or list them in cohorts.erase."
            )


def limit(path: str, dataset: str, consumer: str | None, epsilon: float, delta: float) -> None:
    """Set the budget of a data set, or of one of its consumers; the account is made where there is none."""
    with problems():
        wanted = make_amount(epsilon, delta)
        with Account(path, None, create=True) as account:
            set_limit(account, dataset, consumer, wanted)


def show_budget(path: str) -> list[str]:
    """Return a line about each budget of an account."""
    with problems(), Account(path, None) as account:
        lines = [
            f"{budget.dataset}{'' if budget.consumer is None else f', consumer {budget.consumer}'}: epsilon "
            f"{_plain(budget.spent.epsilon)} of {_plain(budget.limit.epsilon)} and delta {_plain(budget.spent.delta)} "
            f"of {_plain(budget.limit.delta)} spent in {budget.answers} answers"
            for budget in list_budgets(account)
        ] or ["no budgets yet"]
        if lost := count_lost_answers(account):
            lines.append(f"{lost} more answers are known by its counter: nothing is spent until --accept-loss")
        return lines


def accept_loss(path: str) -> None:
    """Go on with an account that has lost answers: what they spent is spent again."""
    with problems(), Account(path, None) as account:
        update_answers(account)


def _plain(number: Decimal) -> str:
    """Write a number without zeros at its end."""
    return f"{number.normalize():f}" if number else "0"

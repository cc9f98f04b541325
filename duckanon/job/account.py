"""The account of a job: what its release, together with all before it, leaves to who knows a person in each.

The entry is made between the decision to publish and the first rename (`outbox.Outbox.publish`): a run that is killed
before it has published nothing, one that is killed after it is completed by the next run.
"""

from __future__ import annotations

import tempfile
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa

from duckanon._bridge import sql
from duckanon._core.account.joint import JointCounts, classes_of_people, row_classes
from duckanon._core.account.releases import Entry, Releases, hashed
from duckanon._core.account.storage import Account, AccountError
from duckanon._core.common import progress
from duckanon._core.common.people import person_numbers
from duckanon._core.common.release_record import AccountEntry
from duckanon.job import keys
from duckanon.job.errors import FileProblem
from duckanon.job.keys import Secret
from duckanon.job.policy_file import PolicyFile
from duckanon.job.promises import Promise
from duckanon.job.table_result import TableResult

_HELP = "cohorts, coarser quasi-identifiers, publishing less often, or a smaller promise"


class JobAccount:
    """The account of one run."""

    def __init__(self, account: Account, file: PolicyFile, key: Secret | None) -> None:
        self.account = account
        self.releases = Releases(account)
        self._file = file
        self._key = key
        self._latest = self.releases.latest()
        self._entries: list[Entry] = []

    def has(self, mark: str) -> bool:
        """Tell whether a run that was killed had entered its release."""
        with problems():
            return self.releases.has(mark)

    def count(self, con: sql.Connection, made: Mapping[str, TableResult]) -> AccountEntry:
        """Count all releases together with those of this run, and add the joint promises to these."""
        with problems():
            self._latest = self.releases.latest()
            self._entries = [
                self._entry(con, name, one) for name, one in made.items() if one.table.method.makes_classes
            ]
            last = deque(self.releases.joint(self._entries), maxlen=1)
            counts = last[0][1] if last else JointCounts.of_nobody(0)
            count = len(self.releases.listed()) + len(self._entries)
        for one in made.values():
            one.promises += list(_promised(one, counts, count))
        assert self._file.policy.account is not None
        return {
            "path": Path(self._file.policy.account.path).name,
            "releases": count,
            "people": int(counts.is_seen.sum()),
            "joint_k": counts.k,
        }

    def commit(self, mark: str) -> None:
        """Enter what was counted."""
        with problems():
            self.releases.enter(self._entries, mark, self._latest)

    def _entry(self, con: sql.Connection, name: str, made: TableResult) -> Entry:
        """Return the entry of a table: of its people and values only keyed hashes."""
        table, account = made.table, self.account
        person = sql.name(table.person or "")
        sensitive = table.named("sensitive")
        others = [f"{sql.name(column)}::VARCHAR AS {sql.name(f'sensitive {column}')}" for column in sensitive]
        found = con.sql(
            f"SELECT {', '.join([f'{person}::VARCHAR AS whose', sql.names(made.form.classes), *others])} "
            f"FROM {made.tables.counted} WHERE {person} IS NOT NULL"
        ).to_arrow_table()
        who = person_numbers(found["whose"])
        people = int(who.max(initial=-1)) + 1
        classes = classes_of_people(who, row_classes(found.select(made.form.classes)), people)
        firsts = np.empty(people, np.int64)
        firsts[who[::-1]] = np.arange(len(who))[::-1]
        values = {}
        for column in sensitive:
            pairs = pa.table({"class": classes[who], "value": found[f"sensitive {column}"]})
            pairs = pairs.group_by(["class", "value"]).aggregate([])
            hashes = hashed(account, f"value of {column.lower()}", pairs["value"].to_pylist(), progress.check)
            values[column.lower()] = (pairs["class"].to_numpy(), hashes)
        is_pseudonym = table.columns[table.person or ""].is_pseudonym
        naming = self._key.reveal() if self._key and is_pseudonym else None
        return Entry(
            policy=self._file.path.name,
            name=name,
            sha256=made.entry["output"]["sha256"],
            naming=account.keyed("key of pseudonyms", naming),
            people=hashed(account, "person", found["whose"].take(pa.array(firsts)).to_pylist(), progress.check),
            classes=classes,
            values=values,
        )


@contextmanager
def opened(file: PolicyFile, key: Secret | None, *, dry_run: bool) -> Iterator[JobAccount | None]:
    """Open the account of a policy, if it has one; a dry run makes no file."""
    if file.policy.account is None:
        yield None
        return
    path = file.place(file.policy.account.path)
    secret = keys.read_of_account(file)
    assert secret is not None
    with ExitStack() as stack:
        if dry_run and not path.exists():
            path = Path(stack.enter_context(tempfile.TemporaryDirectory())) / path.name
        with problems():
            account = stack.enter_context(Account(path, secret.reveal(), create=True))
            found = JobAccount(account, file, key)
        yield found


@contextmanager
def problems() -> Iterator[None]:
    """Turn what is wrong with an account into the job's errors."""
    try:
        yield
    except AccountError as error:
        raise FileProblem(str(error)) from None


def _promised(made: TableResult, counts: JointCounts, releases: int) -> Iterator[Promise]:
    promises = made.table.promises
    if promises.joint_k is not None:
        measured = counts.k or 0
        words = (
            f"Over all releases of the account ({releases}), at least {measured} people share every list of classes."
            if measured >= promises.joint_k
            else f"Over all releases of the account ({releases}), the rarest list of classes is that of {measured} "
            f"{'person' if measured == 1 else 'people'}; {promises.joint_k} were promised."
        )
        yield Promise("joint_k", promises.joint_k, measured, measured >= promises.joint_k, words, _HELP)
    for column in made.table.named("sensitive") if promises.joint_l is not None else ():
        asked, left = promises.joint_l or 0, counts.values_left(column.lower()) or 0
        words = (
            f"Over all releases of the account ({releases}), at least {left} values of {column} remain for everybody."
        )
        yield Promise(f"joint_l of {column}", asked, left, left >= asked, words, _HELP)

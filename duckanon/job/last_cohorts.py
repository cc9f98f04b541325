"""The last release of a policy's table, of which cohorts keep records: found, checked, and read row by row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from duckanon._bridge import sql
from duckanon._core.account.entries import Listed
from duckanon._core.common.arrays import Ints
from duckanon.job import account_entries, readback, sources, warehouse
from duckanon.job.account import JobAccount
from duckanon.job.account_entries import Values
from duckanon.job.errors import FileProblem
from duckanon.job.places import target_name
from duckanon.job.policy import Table, is_server, source_format
from duckanon.job.policy_file import PolicyFile

_CATALOG, _ROWS, _FETCHED = "last_cohorts", "last_cohorts_rows", "last_cohorts_rows_fetched"


@dataclass(frozen=True)
class LastRelease:
    """The last release of a table: what the account knows of it and of earlier ones, its rows, and whose they are.

    The rows have the columns of the new release, in its types; the person only where a pseudonym is released.
    """

    listed: Listed
    rows: str
    owners: Ints
    values: Mapping[str, Values]
    earlier: Sequence[Listed] = ()


@contextmanager
def last_release(
    con: sql.Connection, ledger: JobAccount, file: PolicyFile, name: str, previous: Path | None, applied: str
) -> Iterator[LastRelease | None]:
    """Find the last release of this policy's table, and refuse what is not that; None before the first."""
    table = file.policy.tables[name]
    is_on_server = previous is None and is_server(table.target.path)
    try:
        same = ledger.of_table(name, lambda: _hashes_if_there(con, table) if is_on_server else _hash_of(previous))
        if not same:
            yield None
        elif is_on_server:
            yield replace(_on_server(con, ledger, table, name, same, applied), earlier=same)
        else:
            yield replace(_in_file(con, ledger, table, name, same[-1], previous, applied), earlier=same)
    finally:
        con.execute(f"DETACH DATABASE IF EXISTS {_CATALOG}").fetchall()
        con.execute(f"DROP TABLE IF EXISTS {_ROWS}").fetchall()


def _in_file(
    con: sql.Connection,
    ledger: JobAccount,
    table: Table,
    name: str,
    listed: Listed,
    path: Path | None,
    applied: str,
) -> LastRelease:
    if path is None or listed.sha256 not in _hash_of(path):
        raise FileProblem(
            f"{path}: cohorts continue release {listed.release} of the account, and this is not its file; put it "
            "back there, or name it with --previous."
        )
    target = table.target.model_copy(update={"path": str(path)})
    form = readback.shape(con, name, table.model_copy(update={"target": target}), applied)
    form = replace(form, kind=source_format(str(path)) or form.kind)
    rows = readback.file_rows(con, form, path, _CATALOG)
    rows = f"SELECT {readback.restored(form, sql.columns(con, applied))} FROM ({rows})"
    return _read(con, ledger, table, listed, rows, str(path))


def _on_server(
    con: sql.Connection, ledger: JobAccount, table: Table, name: str, same: list[Listed], applied: str
) -> LastRelease:
    """Read the table that is on the server.

    It may be an earlier release than the account's last: a run that was killed between its entry and the commit of the
    server has published nothing. What it would have given away is counted all the same.
    """
    hashes = _hashes(con, table)
    query = f"SELECT * FROM {_FETCHED}"
    shown = target_name(table.target)
    listed = next((one for one in reversed(same) if one.sha256 in hashes), None)
    if listed is None:
        raise FileProblem(
            f"{shown}: cohorts continue release {same[-1].release} of the account, and this is not its table; restore "
            "it."
        )
    form = readback.shape(con, name, table, applied)
    con.execute(f"CREATE TEMP TABLE {_ROWS} AS {warehouse.in_order(con, query)}").fetchall()
    rows = f"SELECT {readback.restored(form, sql.columns(con, applied))} FROM {_ROWS}"
    return _read(con, ledger, table, listed, rows, shown)


def _hash_of(path: Path | None) -> set[str]:
    return {sources.hash_of([path])} if path and path.exists() else set()


def _hashes(con: sql.Connection, table: Table) -> set[str]:
    """Return the hashes of the table that is on the server, which is fetched."""
    query = warehouse.fetched_table(con, table.target, _FETCHED)
    # an earlier version entered the second one, which is the same with the same version of DuckDB
    return {warehouse.digest(con, query), warehouse.fingerprint(con, query)}


def _hashes_if_there(con: sql.Connection, table: Table) -> set[str]:
    try:
        return _hashes(con, table)
    except FileProblem:  # the first release of a policy, whose name another one has
        return set()


def _read(con: sql.Connection, ledger: JobAccount, table: Table, listed: Listed, rows: str, shown: str) -> LastRelease:
    owners = ledger.releases.owners(listed.number)
    values = account_entries.read_values(con, ledger.account, rows, table.named("sensitive"))
    if sql.one(con, f"SELECT count(*) FROM ({rows})")[0] != len(owners):
        raise FileProblem(f"{shown}: release {listed.release} of the account was not made with cohorts.")
    return LastRelease(listed, rows, owners, values)

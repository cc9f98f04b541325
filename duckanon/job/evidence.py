"""What an auditor gets of a release: policy, record, report, versions, coarse labels, what `verify` says; no data."""

from __future__ import annotations

import hashlib
import importlib.metadata
import io
import json
import platform
import re
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb

from duckanon._bridge import sql
from duckanon._core.common.release_record import Record, TableEntry
from duckanon.job import methods, policy_file, record, signing, verification
from duckanon.job.consistency import COUNTED, list_promises, promise_names
from duckanon.job.errors import Differs, FileProblem
from duckanon.job.places import Places, places
from duckanon.job.policy import Table
from duckanon.job.policy_file import PolicyFile
from duckanon.job.record_checks import kind_of

_PACKAGES = ("duckanon", "duckdb", "numpy", "pyarrow", "scikit-learn", "scipy")
_PASSWORD = re.compile(r"(?<=://)[^/\s\"'@]*@")
_NOT_ALWAYS = ("linked_k", "max_confidence", "max_small_changes", "known_events")
"""Promises of tables together, or of a release that has a former one."""
_ALWAYS = {"k", "known_events", "open_cells", "max_suppressed_fraction"}
_ONLY_ASKED = {kind for counted in COUNTED.values() for kind in counted.as_} - _ALWAYS
"""What no record has unless the policy promises it."""
_RECORDED_AS = {"c": "recursive l", "known_events": None}  # which says how many events are known, not how many people
_EARLIEST = (1980, 1, 1, 0, 0, 0)  # of a zip file: the same evidence is the same file

_README = """\
Evidence of a release by duckanon. It holds no value of the data: hierarchies and plans are described by their hashes
and by labels that are no values. Nothing in verify.txt differs: otherwise no evidence is written.
{note}
"""


_README_FOR_RECIPIENTS = """\
The record of a release by duckanon, without what it says of the original. With the released files beside it:
duckanon verify RELEASE --record record.json --key KEY.pub
The public key in here proves nothing by itself: get it from whoever made the release, by another way.
"""
_FOR_RECIPIENTS = ("record.json", "report.html", "public_key.pem")


def evidence(
    con: sql.Connection,
    policy: str | Path,
    target: str | Path,
    trusted: Sequence[str] = (),
    *,
    is_for_recipients: bool = False,
) -> list[str]:
    """Write the evidence of a policy's last release to a zip file, and return the names of what is in it.

    `trusted` are the public keys of which one must have signed the record. Recipients get less than auditors: the
    record without what it says of the original, the report and the public key.
    """
    file, target = policy_file.read(policy), Path(target)
    where = places(file)
    run = record.read(where.record)
    if run["outcome"] != "released":
        raise FileProblem(f"{where.record}: the record is not of a release.")
    if run["policy"] != {"path": file.path.name, "sha256": file.sha256}:
        raise FileProblem(f"{file.path}: the policy was changed after the release; release it again, then collect.")
    if any("rows" not in table for table in run["tables"]):
        raise FileProblem(f"{where.record}: the record is a copy for recipients; put the record of the release there.")
    _compare_with_policy(file, where, run)
    parts = dict(_parts(con, file, where, run, trusted))
    if is_for_recipients:
        parts = {name: parts[name] for name in _FOR_RECIPIENTS if name in parts}
        parts["record.json"] = record.text(signing.copy_for_recipients(run)).encode()
        parts["README.txt"] = _README_FOR_RECIPIENTS.encode()
    hashes = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in sorted(parts.items()))
    parts["sha256.txt"] = hashes.encode()
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as together:
        for name, content in sorted(parts.items()):
            together.writestr(zipfile.ZipInfo(name, _EARLIEST), content, zipfile.ZIP_DEFLATED)
    try:
        with target.open("xb") as opened:
            opened.write(written.getvalue())
    except OSError as error:
        raise FileProblem(f"{target}: the evidence cannot be written ({error.strerror}).") from None
    return sorted(parts)


def _compare_with_policy(file: PolicyFile, where: Places, run: Record) -> None:
    """Refuse a record of other tables, columns, methods or promises than the policy's."""
    entries = {entry["name"]: entry for entry in run["tables"]}
    if entries.keys() != file.policy.tables.keys():
        raise Differs(f"{where.record}: the record is not of the tables of the policy.")
    for name, table in file.policy.tables.items():
        entry, path = entries[name], table.target.table if name in where.tables else where.targets[name].name
        options = json.loads(json.dumps(methods.parameters(table)))
        options.pop("max_suppressed_fraction", None)  # among the promises
        wrong = [
            *(["target.path"] if entry["output"]["path"] != path else []),
            *(["columns"] if entry["columns"] != record.columns_of(table) else []),
            *(["method.name"] if entry["method"]["name"] != table.method.name else []),
            *(f"method.{part}" for part in options if entry["method"]["parameters"].get(part) != options[part]),
            *_differing_promises(table, entry),
        ]
        if wrong:
            raise Differs(f"{where.record}: the record says otherwise than the policy of {name}: {', '.join(wrong)}.")
    if run["release"] != file.policy.release.model_dump(mode="json"):
        raise Differs(f"{where.record}: the record says otherwise than the policy who gets the release, and why.")
    if where.report and not run["report"]:
        raise Differs(f"{where.record}: the record has no hash of the report, which the policy names.")
    if where.report and run["report"] and run["report"]["path"] != where.report.name:
        raise Differs(f"{where.record}: the record is of another report than {where.report}, which the policy names.")


def _differing_promises(table: Table, entry: TableEntry) -> Iterator[str]:
    """Yield the promises of a policy that a record does not have, or of another number."""
    kinds = [kind_of(one)[0] for one in entry["promises"]]
    for name in promise_names(table.promises):
        counts = [one for one in entry["promises"] if kind_of(one)[0] in COUNTED[name].as_]
        asked = [one["asked"] for one in counts if kind_of(one)[0] == _RECORDED_AS.get(name, name)]
        promised = getattr(table.promises, name)
        # aggregate tables have another default; where a promise is only asked for, its numbers are those of the test
        is_number = name in table.promises.model_fields_set and not isinstance(promised, bool)
        is_other = is_number and any(number != promised for number in asked)
        if is_other or not (counts or name in _NOT_ALWAYS):
            yield f"promises.{name}"
    asked_kinds = {kind for name in list_promises(table) for kind in COUNTED[name].as_}
    yield from (f"promises.{kind}" for kind in dict.fromkeys(kinds) if kind in _ONLY_ASKED - asked_kinds)


def _parts(
    con: sql.Connection, file: PolicyFile, where: Places, run: Record, trusted: Sequence[str]
) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of the evidence."""
    shown = _PASSWORD.sub("", file.text)
    note = "" if shown == file.text else "policy.toml is shown without passwords: its hash is not that of the record."
    yield "README.txt", _README.format(note=note).encode()
    yield "policy.toml", shown.encode()
    yield "record.json", record.text(run).encode()
    if where.report and run["report"]:
        yield "report.html", _bytes(where.report)
    versions = {name: importlib.metadata.version(name) for name in _PACKAGES}
    yield "versions.json", _json({"python": platform.python_version(), **versions})
    yield "verify.txt", _verify_files(con, where, run, trusted).encode()
    if signature := run.get("signature"):
        yield "public_key.pem", signing.public_pem(signature["public_key"]).encode()
    hierarchies = {
        f"{name}.{column}" + (f".{number}" if number > 1 else ""): _hierarchy(con, file.place(path))
        for name, table in file.policy.tables.items()
        for column, paths in table.hierarchies.items()
        for number, path in enumerate(paths, 1)
    }
    if hierarchies:
        yield "hierarchies.json", _json(hierarchies)
    plans = {name: _plan(con, path) for name, path in where.plans.items() if path.is_file()}
    if plans:
        yield "plan.json", _json(plans if len(file.policy.tables) > 1 else next(iter(plans.values())))


def _verify_files(con: sql.Connection, where: Places, run: Record, trusted: Sequence[str]) -> str:
    """Return what `duckanon verify` says of the released files and the report, or refuse what differs."""
    files = [*where.targets.values(), *([where.report] if where.report and run["report"] else [])]
    findings = verification.verify(con, run, files, trusted)
    if refusal := verification.refusal(findings):
        raise Differs(f"{where.record}: {refusal}")
    return verification.summary(findings) + "".join(f"{name}: on a server: not verified.\n" for name in where.tables)


def _hierarchy(con: sql.Connection, path: Path) -> dict[str, Any]:
    """Describe a hierarchy: its hash, how many values it has, and the labels of each level that are no values."""
    quoted = sql.literal(str(path))
    rows = f"read_parquet({quoted})" if path.suffix == ".parquet" else f"read_csv({quoted}, all_varchar = true)"
    try:
        con.execute(f"CREATE OR REPLACE TEMP TABLE described AS FROM {rows}").fetchall()
        leaf, *levels = map(sql.quote, sql.columns(con, "described"))
        labels = [
            con.execute(
                f"SELECT {level}::VARCHAR AS label, count(*) FROM described "
                f"WHERE label NOT IN (SELECT {leaf}::VARCHAR FROM described WHERE {leaf} IS NOT NULL) "
                "GROUP BY label ORDER BY label"
            ).fetchall()
            for level in levels
        ]
        values = sql.fetch_row(con, "SELECT count(*) FROM described")[0]
    except duckdb.Error as error:
        raise FileProblem(f"{path}: the hierarchy cannot be read ({sql.reason(error)}).") from None
    return {"sha256": _hash(path), "values": values, "levels": [dict(level) for level in labels]}


def _plan(con: sql.Connection, path: Path) -> dict[str, Any]:
    """Describe a plan: its hash, and the method and the number of labels of each column."""
    try:
        con.execute(f"CREATE OR REPLACE TEMP TABLE planned AS FROM read_parquet({sql.literal(str(path))})").fetchall()
        query = "SELECT column_name, method, distinct_after FROM anon.explain_plan('planned') ORDER BY column_name"
        rows = con.execute(query).fetchall()
    except duckdb.Error as error:
        raise FileProblem(f"{path}: the plan cannot be read ({sql.reason(error)}).") from None
    return {
        "sha256": _hash(path),
        "columns": [{"column": column, "method": method, "labels": labels} for column, method, labels in rows],
    }


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise FileProblem(f"{path}: the report cannot be read ({error.strerror}).") from None


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()

"""What an auditor gets of a release: policy, record, report, versions, coarse labels, what `verify` says; no data."""

from __future__ import annotations

import hashlib
import importlib.metadata
import io
import json
import platform
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb

from duckanon._bridge import sql
from duckanon._core.common.release_record import Record
from duckanon.job import policy_file, record, verification
from duckanon.job.errors import FileProblem
from duckanon.job.places import Places, places
from duckanon.job.policy_file import PolicyFile

_PACKAGES = ("duckanon", "duckdb", "numpy", "pyarrow", "scikit-learn", "scipy")
_PASSWORD = re.compile(r"(?<=://)[^/\s\"'@]*@")
_EARLIEST = (1980, 1, 1, 0, 0, 0)  # of a zip file: the same evidence is the same file

_README = """\
Evidence of a release by duckanon. It holds no value of the data: hierarchies and plans are described by their hashes
and by labels that are no values. "differs" in verify.txt means that the released file is not the one of the record.
{note}
"""


def evidence(con: sql.Connection, policy: str | Path, target: str | Path) -> list[str]:
    """Write the evidence of a policy's last release to a zip file, and return the names of what is in it."""
    file, target = policy_file.read(policy), Path(target)
    where = places(file)
    run = record.read(where.record)
    if run["outcome"] != "released":
        raise FileProblem(f"{where.record}: the record is not of a release.")
    if run["policy"]["sha256"] != file.sha256:
        raise FileProblem(f"{file.path}: the policy was changed after the release; release it again, then collect.")
    parts = dict(_parts(con, file, where, run))
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


def _parts(con: sql.Connection, file: PolicyFile, where: Places, run: Record) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of the evidence."""
    shown = _PASSWORD.sub("", file.text)
    note = "" if shown == file.text else "policy.toml is shown without passwords: its hash is not that of the record."
    yield "README.txt", _README.format(note=note).encode()
    yield "policy.toml", shown.encode()
    yield "record.json", record.text(run).encode()
    if where.report and where.report.is_file():
        yield "report.html", where.report.read_bytes()
    versions = {name: importlib.metadata.version(name) for name in _PACKAGES}
    yield "versions.json", _json({"python": platform.python_version(), **versions})
    yield "verify.txt", _verified(con, where, run).encode()
    found = {
        f"{name}.{column}" + (f".{number}" if number > 1 else ""): _hierarchy(con, file.place(path))
        for name, table in file.policy.tables.items()
        for column, paths in table.hierarchies.items()
        for number, path in enumerate(paths, 1)
    }
    if found:
        yield "hierarchies.json", _json(found)
    plans = {name: _plan(con, path) for name, path in where.plans.items() if path.is_file()}
    if plans:
        yield "plan.json", _json(plans if len(file.policy.tables) > 1 else next(iter(plans.values())))


def _verified(con: sql.Connection, where: Places, run: Record) -> str:
    """Return what `duckanon verify` says of the released files."""
    files = list(where.targets.values())
    on_server = "".join(f"{name}: on a server: not verified.\n" for name in where.tables)
    return (verification.summary(verification.verify(con, run, files)) if files else "") + on_server


def _hierarchy(con: sql.Connection, path: Path) -> dict[str, Any]:
    """Describe a hierarchy: its hash, how many values it has, and the labels of each level that are no values."""
    quoted = sql.literal(str(path))
    rows = f"read_parquet({quoted})" if path.suffix == ".parquet" else f"read_csv({quoted}, all_varchar = true)"
    try:
        con.execute(f"CREATE OR REPLACE TEMP TABLE described AS FROM {rows}").fetchall()
        leaf, *levels = map(sql.name, sql.columns(con, "described"))
        labels = [
            con.execute(
                f"SELECT {level}::VARCHAR AS label, count(*) FROM described "
                f"WHERE label NOT IN (SELECT {leaf}::VARCHAR FROM described WHERE {leaf} IS NOT NULL) "
                "GROUP BY label ORDER BY label"
            ).fetchall()
            for level in levels
        ]
        values = sql.one(con, "SELECT count(*) FROM described")[0]
    except duckdb.Error as error:
        raise FileProblem(f"{path}: the hierarchy cannot be read ({sql.why(error)}).") from None
    return {"sha256": _hash(path), "values": values, "levels": [dict(level) for level in labels]}


def _plan(con: sql.Connection, path: Path) -> dict[str, Any]:
    """Describe a plan: its hash, and the method and the number of labels of each column."""
    try:
        con.execute(f"CREATE OR REPLACE TEMP TABLE planned AS FROM read_parquet({sql.literal(str(path))})").fetchall()
        query = "SELECT column_name, method, distinct_after FROM anon.explain_plan('planned') ORDER BY column_name"
        rows = con.execute(query).fetchall()
    except duckdb.Error as error:
        raise FileProblem(f"{path}: the plan cannot be read ({sql.why(error)}).") from None
    return {
        "sha256": _hash(path),
        "columns": [{"column": column, "method": method, "labels": labels} for column, method, labels in rows],
    }


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()

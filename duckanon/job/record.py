"""The record of a run: what was read, done, promised and measured; no seed, no key, no value of the data."""

from __future__ import annotations

import json
import math
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb

import duckanon
from duckanon.job import methods, promises
from duckanon.job.errors import FileProblem
from duckanon.job.policy import Table
from duckanon.job.policy_file import PolicyFile
from duckanon.job.promises import Promise, Tables
from duckanon.job.sources import Original


def now() -> str:
    """Return the time, as records write it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def begun(file: PolicyFile) -> dict[str, Any]:
    """Return a record at the beginning of a run."""
    return {
        "duckanon": duckanon.__version__,
        "duckdb": duckdb.__version__,
        "python": platform.python_version(),
        "started": now(),
        "finished": None,
        "outcome": None,
        "policy": {"path": file.path.name, "sha256": file.sha256},
        "tables": [],
        "warnings": [],
    }


def of_table(
    con: duckdb.DuckDBPyConnection, name: str, table: Table, original: Original, tables: Tables, output: dict[str, Any]
) -> dict[str, Any]:
    """Return the entry of a table, without its promises."""
    rows, people = promises.people(con, table, original.table)
    return {
        "name": name,
        "source": Path(original.label).name,
        "rows": rows,
        "people": people,
        "sha256": original.sha256,
        "output": output,
        "method": {"name": table.method.name, "parameters": methods.parameters(table)},
        "columns": [
            {"name": column, "role": role.role, "treatment": methods.treatment(table, column)}
            for column, role in table.columns.items()
        ],
        "suppressed": promises.left_out(con, table, tables),
        "promises": [],
    }


def broken(record: dict[str, Any]) -> bool:
    """Tell whether a promise of a record is broken."""
    return any(not promise["passed"] for table in record["tables"] for promise in table["promises"])


def broken_words(promises_by_table: dict[str, list[Promise]]) -> str:
    """Say which promises are broken, with what was reached and what would help."""
    sentences = []
    for name, of_table_promises in promises_by_table.items():
        for promise in of_table_promises:
            if not promise.passed:
                reached = "nothing" if promise.measured is None else f"{promise.measured:.6g}"
                sentences.append(
                    f"{name}: {promise.name}: promised {promise.asked:g}, measured {reached}. {promise.words} "
                    f"What may help: {promise.help}."
                )
    return "\n".join(sentences)


def text(record: dict[str, Any]) -> str:
    """Write a record as JSON, which has no infinite numbers."""
    return json.dumps(_plain(record), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read(path: str | Path) -> dict[str, Any]:
    """Read a record."""
    try:
        record = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no JSON"
        raise FileProblem(f"{path}: the record cannot be read ({why}).") from None
    if not isinstance(record, dict) or not isinstance(record.get("tables"), list):
        raise FileProblem(f"{path}: it is no record of a release.")
    return record

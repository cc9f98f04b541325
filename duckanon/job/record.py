"""The record of a run: what was read, done, promised and measured; no seed, no key, no value of the data.

Two records tell what changed between two releases.
"""

from __future__ import annotations

import json
import math
import platform
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import duckdb
from pydantic import ConfigDict, TypeAdapter, ValidationError

import duckanon
from duckanon._bridge import sql
from duckanon._core.common.release_record import ColumnEntry, OutputEntry, Record, TableEntry, TermsEntry
from duckanon.job import aggregates, methods, promises
from duckanon.job.errors import FileProblem
from duckanon.job.policy import Table
from duckanon.job.policy_file import PolicyFile
from duckanon.job.promises import Promise, Tables
from duckanon.job.sources import Original

_SCHEMA = TypeAdapter(list[Record], config=ConfigDict(strict=True, extra="forbid", allow_inf_nan=False))
"""Of a list, since a typed dictionary by itself takes no configuration from outside."""

_LONGEST = 18
"""Digits of a whole number: with more it would be no count of rows, and none that every reader of JSON has."""


def now() -> str:
    """Return the time, as records write it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def begin_record(file: PolicyFile) -> Record:
    """Return a record at the beginning of a run."""
    return {
        "duckanon": duckanon.__version__,
        "duckdb": duckdb.__version__,
        "python": platform.python_version(),
        "started": now(),
        "finished": None,
        "outcome": None,
        "policy": {"path": file.path.name, "sha256": file.sha256},
        "release": cast(TermsEntry, file.policy.release.model_dump(mode="json")),
        "tables": [],
        "report": None,
        "warnings": [],
    }


def of_table(
    con: sql.Connection,
    name: str,
    table: Table,
    original: Original,
    tables: Tables,
    output: OutputEntry,
    parameters: dict[str, Any],
) -> TableEntry:
    """Return the entry of a table, without its promises."""
    rows, people = promises.people(con, table, original.table)
    return {
        "name": name,
        "source": Path(original.label).name,
        "rows": rows,
        "people": people,
        "sha256": original.sha256,
        "output": output,
        "method": {"name": table.method.name, "parameters": parameters},
        "columns": columns_of(table),
        "suppressed": aggregates.suppression_entry(con, tables, parameters)
        if table.method.makes_cells
        else promises.suppression_entry(con, table, tables),
        "promises": [],
    }


def columns_of(table: Table) -> list[ColumnEntry]:
    """Return what the record tells of the columns of a policy."""
    return [
        {"name": column, "role": cast(Any, role.role), "treatment": methods.treatment(table, column)}
        for column, role in table.columns.items()
    ]


def describe_broken(promises_by_table: dict[str, list[Promise]]) -> str:
    """Say which promises are broken, with what was reached and what would help."""
    return "\n".join(
        f"{name}: {broken.name}: promised {broken.asked:g}, "
        f"measured {'nothing' if broken.measured is None else f'{broken.measured:.6g}'}. {broken.words} "
        f"What may help: {broken.help}."
        for name, of_one_table in promises_by_table.items()
        for broken in of_one_table
        if not broken.passed
    )


def text(record: Record) -> str:
    """Write a record as JSON, which has no infinite numbers."""
    return json.dumps(_plain(record), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read(path: str | Path) -> Record:
    """Read a record, all of whose fields are there and are what they must be (`release_record` is the schema)."""
    document = load(path)
    try:
        (record,) = _SCHEMA.validate_python([document])
    except ValidationError as error:
        raise FileProblem(f"{path}: the record is damaged: {_fault(document, error)}.") from None
    return record


def load(path: str | Path) -> dict[str, Any]:
    """Read the JSON of a record, of which only the names of its releases are of interest."""
    try:
        document = json.loads(
            Path(path).read_text(encoding="utf-8"),
            object_pairs_hook=_refuse_repeated,
            parse_constant=_finite,
            parse_float=_finite,
            parse_int=_whole,
        )
        json.dumps(document, ensure_ascii=False).encode()  # half a character is none
    except (OSError, ValueError, RecursionError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no JSON"
        why = str(error) if isinstance(error, _AmbiguousError) else why
        raise FileProblem(f"{path}: the record cannot be read ({why}).") from None
    if not isinstance(document, dict) or not isinstance(document.get("tables"), list):
        raise FileProblem(f"{path}: it is no record of a release.")
    return document


class _AmbiguousError(ValueError):
    """JSON that readers take in different ways, or not at all."""


def _refuse_repeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse an object that says something twice: two readers would believe different things."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise _AmbiguousError("it says something twice")
    return fields


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise _AmbiguousError("it has a number that JSON does not have")
    return number


def _whole(text: str) -> int:
    if len(text) > _LONGEST:
        raise _AmbiguousError("it has a number of too many digits")
    return int(text)


def _fault(document: Any, error: ValidationError) -> str:
    """Say what is wrong first, and where; never what was written there."""
    problem = error.errors(include_url=False, include_input=False)[0]
    shown, value = "", document
    for part in problem["loc"][1:]:  # the first is the place of the record among those that were read
        if isinstance(value, dict) and (part in value or problem["type"] == "missing"):
            shown, value = f"{shown}.{part}" if shown else str(part), value.get(str(part))
        elif isinstance(value, list) and isinstance(part, int):
            shown, value = f"{shown}[{part}]", value[part]
    fault = {
        "missing": "is missing",
        "extra_forbidden": "is no field of a record",
        "string_pattern_mismatch": "is not written as the job writes it",
        "value_error": "is no name of a file",
    }.get(
        problem["type"],
        re.sub(r"^[A-Z]\w+ should (be|have)", r"must \1", problem["msg"]).replace("dictionary", "table"),
    )
    return f"{shown} {fault}"


def differences(old: Record, new: Record) -> list[str]:
    """Return what is different in the newer of two records, a line each."""
    lines = [f"{old.get('finished')} -> {new.get('finished')}"]
    for name in ("duckanon", "duckdb", "python", "outcome"):
        lines += _describe_change(name, old.get(name), new.get(name))
    if _hash(old.get("policy")) != _hash(new.get("policy")):
        lines.append("policy: changed")
    before = {table["name"]: table for table in old["tables"]}
    after = {table["name"]: table for table in new["tables"]}
    lines += [f"{name}: no longer released" for name in before.keys() - after.keys()]
    lines += [f"{name}: released for the first time" for name in after.keys() - before.keys()]
    for name in after:
        if name in before:
            lines += [f"{name}: {line}" for line in _of_table(before[name], after[name])]
    lines += [f"warning: {warning}" for warning in new.get("warnings", [])]
    return lines


def _hash(part: Any) -> Any:
    return part.get("sha256") if isinstance(part, dict) else None


def _describe_change(name: str, old: Any, new: Any) -> Iterator[str]:
    if old != new:
        yield f"{name}: {_format_value(old)} -> {_format_value(new)}"


def _describe_changes(subject: str, old: Mapping[str, object], new: Mapping[str, object]) -> Iterator[str]:
    for name in sorted(old.keys() | new.keys()):
        yield from _describe_change(f"{subject} {name}", old.get(name), new.get(name))


def _format_value(value: Any) -> str:
    return "-" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def _of_table(old: TableEntry, new: TableEntry) -> Iterator[str]:
    for unit in ("rows", "people"):
        yield from _describe_change(f"original {unit}", old[unit], new[unit])
    yield from _describe_change("released rows", old["output"]["rows"], new["output"]["rows"])
    yield from _describe_change("released people", old["output"]["people"], new["output"]["people"])
    yield from _describe_change("suppressed", old["suppressed"]["fraction"], new["suppressed"]["fraction"])
    if _hash(old) == _hash(new):
        yield "original: the same rows, released again: two releases of one table reveal more than one"
    yield from _describe_change("method", old["method"]["name"], new["method"]["name"])
    yield from _describe_changes("parameter", old["method"]["parameters"], new["method"]["parameters"])
    by_parts = ["memory" in table and table["memory"]["by_parts"] for table in (old, new)]
    yield from _describe_change("processed in partitions", *by_parts)
    roles = [{column["name"]: column["role"] for column in table["columns"]} for table in (old, new)]
    yield from _describe_changes("column", *roles)
    kept = [{promise["name"]: promise for promise in table["promises"]} for table in (old, new)]
    for name in sorted(kept[0].keys() | kept[1].keys()):
        before, after = (promises.get(name) for promises in kept)
        yield from _describe_change(f"promise {name}, asked", before and before["asked"], after and after["asked"])
        yield from _describe_change(
            f"promise {name}, measured", before and before["measured"], after and after["measured"]
        )
    yield from _difference_attack(old, new)


def _difference_attack(old: TableEntry, new: TableEntry) -> Iterator[str]:
    """Say what the difference of both gives away, if the newer run compared its classes with the older release."""
    change = new.get("changes")
    if change is None or change["previous_sha256"] != old["output"]["sha256"]:
        yield "classes: not compared: the newer run did not have the older release"
        return
    yield (
        f"classes: {change['classes_in_both']} in both, {change['classes_before'] - change['classes_in_both']} gone, "
        f"{change['classes'] - change['classes_in_both']} new"
    )
    yield (
        f"classes that differ by fewer than k {change['counted']}: {change['small_changes']} "
        f"({change['came_in_small_changes']} came, {change['went_in_small_changes']} went)"
    )

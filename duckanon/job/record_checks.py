"""Contradictions within a record: what its numbers say of each other, whoever wrote them down."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath
from typing import Annotated, Any

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from duckanon._bridge import sql
from duckanon._core.common.release_record import Count, PromiseEntry, Record, Share, TableEntry
from duckanon._methods.linked.declared import RELEASE_LINKED, ROW_COUNT
from duckanon._methods.synthesize.declared import K
from duckanon.job import aggregates
from duckanon.job.methods import SHARED_VALUES, treatments
from duckanon.job.policy import format_of
from duckanon.job.policy_methods import MODELS
from duckanon.job.promise_sentences import is_sentence_of

_AT_LEAST = ("k", "linked_k", "known_events", "l", "joint_k", "joint_l")
_BELOW = ("recursive l",)
_AT_MOST = (
    *("t", "joint_t", "max_confidence", "max_suppressed_fraction", "max_small_changes", "max_correlation_difference"),
    *("max_marginal_difference", "max_detectability_auc", "prediction", "rare_values", "rows_of_people", "open_cells"),
)
PROMISES = (*_AT_LEAST, *_BELOW, *_AT_MOST)
"""The kinds of promises, by how what was measured is compared with what was asked."""

_OF_COLUMNS = ("l", "recursive l", "t", "joint_l", "joint_t", "max_confidence")
_ROUNDING = 1e-9
_IN_WORDS = re.compile(r"(?<![\w.])\d+(?:\.(\d+))?(?:e-?\d+)?(?!\w)(%?)")

Contradiction = tuple[str, str, str]
"""A table (or "record"), what is contradictory, and the sentence about it."""


class _Given(TypedDict, total=False):
    """The parameters of a method that stand elsewhere in a policy."""

    k: Annotated[int, Field(ge=2)] | None
    known: Count
    max_suppressed_fraction: Share
    max_confidence: Share
    l: float  # noqa: E741 - as the functions call it
    l_kind: str
    c: float
    t: Share
    sensitive: str
    nulls: str
    hierarchies: list[str]
    by: list[str]
    overlapping: bool


_GIVEN = TypeAdapter(list[_Given], config=ConfigDict(extra="forbid", strict=True))


def kind_of(promise: PromiseEntry) -> tuple[str, str]:
    """Return the kind of a promise, and the column or measure that it is about."""
    name = promise["name"]
    kind, _, about = name.partition(": ") if name.startswith("prediction: ") else name.partition(" of ")
    return kind, about


def is_kept(promise: PromiseEntry) -> bool:
    """Tell whether what was measured keeps what was asked."""
    (kind, _), asked, measured = kind_of(promise), promise["asked"], promise["measured"]
    if measured is None:
        return False
    if kind in _AT_LEAST:
        return measured >= asked - _ROUNDING
    return measured < asked if kind in _BELOW else kind in _AT_MOST and measured <= asked + _ROUNDING


def contradictions(record: Record) -> Iterator[Contradiction]:
    """Find what a record that the job wrote cannot say."""
    tables = record["tables"]
    for name, is_wrong, words in (
        ("outcome", record["outcome"] != "released", "the record is not of a release"),
        ("finished", not record["started"] <= (record["finished"] or ""), "the run did not end after it began"),
        ("tables", _has_repeated(table["name"] for table in tables), "two tables have the same name"),
        ("files", _has_repeated(table["output"]["path"] or "" for table in tables), "two releases have the same name"),
        ("report", not record["report"] and any("measures" in one for one in tables), "its hash is missing"),
    ):
        if is_wrong:
            yield "record", name, words
    for table in tables:
        faults = [*_of_table(table)] or [*_of_promises(record, table)]
        yield from ((table["name"], name, words) for name, words in faults)
    for name, kind in (("account", "joint_k"), ("linked", "known_events")):
        if name not in record and any(one["name"] == kind for table in tables for one in table["promises"]):
            yield "record", name, f"it is missing, and {kind} is promised"
    if "linked" in record:
        events = [table for table in tables if table["method"]["name"] == RELEASE_LINKED.name]
        asked = {one["asked"] for table in tables for one in table["promises"] if one["name"] == "known_events"}
        if record["linked"]["tables"] != [table["name"] for table in events] or asked != {record["linked"]["k"]}:
            yield "record", "linked", "its tables, or its k, are others than those of the tables"
    joint = {one["measured"] for table in tables for one in table["promises"] if one["name"] == "joint_k"}
    if joint and "account" in record and joint != {record["account"]["joint_k"]}:
        yield "record", "account", "its joint_k is another than that of the promise"


def _has_repeated(names: Iterable[str]) -> bool:
    lower = [sql.fold_name(name) for name in names]
    return len(set(lower)) < len(lower)


def _of_table(table: TableEntry) -> Iterator[tuple[str, str]]:
    """Compare the parts of a table's entry that promises depend on."""
    output, columns, method = table["output"], table["columns"], table["method"]["name"]
    if output["sha256"] is None or not output["path"]:
        yield "sha256", "the record has no hash of the release"
    elif output["format"] not in ("postgresql", format_of(output["path"])):
        yield "format", "it is not that of the file's name"
    elif output["format"] != "postgresql" and PurePath(output["path"]).name != output["path"]:
        yield "path", "the record names a folder"
    originals = [name in table for name in ("rows", "people", "sha256", "suppressed")]
    if any(originals) and not all(originals):
        yield "original", "the record has a part of what it says of the original"
    if _has_repeated(column["name"] for column in columns) or _has_repeated(output["columns"]):
        yield "columns", "two columns have the same name"
    model = MODELS.get(method)
    if model is None:
        yield "method", "there is no method of that name"
        return
    for column in columns:
        treatment = column["treatment"].removeprefix("shifted per person, then ")
        if treatment not in treatments(method, column["role"]):
            yield "columns", f"{column['name']} cannot become what the record says"
    if unexplained := find_unexplained_columns(table, output["columns"]):
        yield "columns", f"the record does not explain {', '.join(unexplained)}"
    quasi = {column["name"] for column in columns if column["role"] == "quasi_identifier"}
    if set(output["labels"]) != (quasi if model.makes_classes else set()):
        yield "labels", "they are not those of the quasi-identifiers"
    options = table["method"]["parameters"]
    method_options = {name: value for name, value in options.items() if name in model.model_fields and name != "name"}
    try:
        model.model_validate({"name": method, **method_options})
        _GIVEN.validate_python([{name: value for name, value in options.items() if name not in method_options}])
    except ValidationError as error:
        place = next((str(part) for part in error.errors()[0]["loc"] if isinstance(part, str)), "one")
        yield "parameters", f"{place} is not a parameter of {method}, or must have another value"
    if (model.makes_classes and not options.get("k")) or (model.makes_cells and not _tells_cells(table, quasi)):
        yield "parameters", "the record does not say how the release was made"


def _tells_cells(table: TableEntry, quasi: set[str]) -> bool:
    """Tell whether the entry of an aggregate table says how it was made, and that its audit found nothing."""
    options, cells = table["method"]["parameters"], table.get("cells")
    summed = [column["name"] for column in table["columns"] if column["treatment"] == "summed"]
    return (
        cells is not None
        and not cells["faults"]
        and {"k", "overlapping", "max_suppressed_fraction"} <= options.keys()
        and set(options.get("by") or ()) == quasi
        and summed == [name for name in [options.get("measure")] if name]
        and cells["hierarchies"].keys() == set(options.get("hierarchies") or ())
    )


def find_unexplained_columns(table: TableEntry, names: Sequence[str]) -> list[str]:
    """Return columns of a file that the record does not explain, and those of the record that the file lacks."""
    method, left = table["method"], list(names)
    missing = []
    for column in table["columns"]:
        if column["treatment"] in ("dropped", "summed"):
            continue
        name = column["name"]
        ways = ([name], [f"'{name}"], [f"{name}_lo", f"{name}_hi"])  # in a CSV file formulas and intervals
        held = next((way for way in ways if set(way) <= set(left)), None)
        if held is None:
            missing.append(name)
        else:
            left = [other for other in left if other not in held]
    counts = (ROW_COUNT,) if method["parameters"].get("counts") else ()
    box = ("box",)
    additions = {"boxes": box, "microaggregate": box, "protect_table": aggregates.ADDED, RELEASE_LINKED.name: counts}
    return [*missing, *(name for name in left if name not in additions.get(method["name"], ()))]


def _of_promises(record: Record, table: TableEntry) -> Iterator[tuple[str, str]]:
    """Compare promises with what was measured, with the parameters of the method and with the suppressed."""
    promises, options = {one["name"]: one for one in table["promises"]}, table["method"]["parameters"]
    if len(promises) < len(table["promises"]):
        yield "promises", "one is recorded twice"
    sensitive = [column["name"] for column in table["columns"] if column["role"] == "sensitive"]
    for name, promise in promises.items():
        kind, about = kind_of(promise)
        if kind not in PROMISES or (about not in sensitive if kind in _OF_COLUMNS else about and kind != "prediction"):
            yield name, "there is no such promise"
        elif not (is_kept(promise) and promise["passed"]):
            yield name, "the promise is broken, by the record's own numbers"
        elif not is_sentence_of(kind, about, promise["words"]):
            yield name, "its sentence is not that of the promise"
        elif wrong := _other_numbers(record, table, promise):
            yield name, f"its sentence says {wrong}, which is no number of the record"
    if missing := [name for name in _list_required(table) if name not in promises]:
        yield "promises", f"{', '.join(missing)} is missing"
    for name, promise in promises.items():
        kind = "k" if name == "known_events" and "known" in options else kind_of(promise)[0]
        if kind in ("k", "max_suppressed_fraction", "max_confidence") and promise["asked"] != options.get(
            kind, promise["asked"]
        ):
            yield name, "the method was called with another number"
    if "suppressed" in table and "max_suppressed_fraction" in promises:
        yield from _of_suppressed(table, promises["max_suppressed_fraction"])
    change = table.get("changes")
    if change:
        measured = [one["measured"] for one in table["promises"] if one["name"] == "max_small_changes"]
        smaller = min(change["classes"], change["classes_before"])
        if measured not in ([], [change["small_changes"]]) or change["classes_in_both"] > smaller:
            yield "changes", "the numbers of classes contradict each other"


def _of_suppressed(table: TableEntry, promise: PromiseEntry) -> Iterator[tuple[str, str]]:
    """Compare who was suppressed with the rows and people before and after."""
    gone, output = table["suppressed"], table["output"]
    is_person = "person" in (column["role"] for column in table["columns"])
    pairs: list[tuple[Any, Any]] = [(gone["fraction"], promise["measured"]), (gone["limit"], promise["asked"])]
    pairs.append((table["people"] is not None, is_person))
    if "cells" in table:
        pairs += [(gone["rows"], 0), (gone["people"], None)]
    if MODELS[table["method"]["name"]].makes_classes and "cohorts" not in table:  # which may have former people
        pairs.append((table["rows"] - output["rows"], gone["rows"]))
        before, after, part, whole = table["people"], output["people"], gone["rows"], table["rows"]
        pairs += [(one is not None, is_person) for one in (after, gone["people"])]
        if gone["people"] is not None and before is not None and after is not None:
            pairs.append((before - after, gone["people"]))
            is_of_rows = table["method"]["name"] == RELEASE_LINKED.name
            part, whole = (part, whole) if is_of_rows else (gone["people"], before)
        pairs.append((round(part / max(whole, 1), 9), round(gone["fraction"], 9)))
    if any(one != other for one, other in pairs):
        yield "suppressed", "the numbers of who was suppressed contradict each other"


def _list_required(table: TableEntry) -> Iterator[str]:
    """Yield the promises that every release by its method has."""
    method, options = table["method"]["name"], table["method"]["parameters"]
    yield "max_suppressed_fraction"
    if method == RELEASE_LINKED.name:
        yield "known_events"
    elif MODELS[method].makes_classes:
        yield "k"
        if "sensitive" in options and options.get("l", 1) > 1:
            yield f"{'recursive l' if options.get('l_kind') == 'recursive' else 'l'} of {options['sensitive']}"
        if "sensitive" in options and "t" in options:
            yield f"t of {options['sensitive']}"
    elif MODELS[method].makes_cells:
        if options.get("method") != "cell_key":
            yield "open_cells"
    else:
        yield next((one["name"] for one in table["promises"] if kind_of(one)[0] == "prediction"), "prediction")
        if method in SHARED_VALUES:
            yield "rare_values"


def _other_numbers(record: Record, table: TableEntry, promise: PromiseEntry) -> str | None:
    """Return a number in the sentence of a promise that is none of the record's, to the digits that are written."""
    if "suppressed" not in table and promise["name"] == "max_suppressed_fraction":
        return None  # which counts who is not in a copy for recipients
    words = promise["words"]
    names = [column["name"] for one in record["tables"] for column in one["columns"]]
    for name in sorted([*names, *(one["name"] for one in record["tables"])], key=len, reverse=True):
        words = words.replace(name, "") if re.search(r"\d", name) else words
    gone = table.get("suppressed", {})
    known: list[Any] = [K.default, gone.get("rows", 0) / max(table.get("rows", 1), 1)]  # the share of rows
    parts = (promise, table, table["output"], gone, record.get("account", {}), record.get("linked", {}))
    known += [value for part in parts for value in part.values()]
    known += [value for one in record["tables"] for value in one["method"]["parameters"].values()]
    numbers = [float(value) for value in known if type(value) in (int, float)]
    for match in _IN_WORDS.finditer(words.replace(",", "")):
        value, is_percent = float(match[0].rstrip("%")), bool(match[2])
        precision = 0.500001 * 10.0 ** -len(match[1] or "") if "e" not in match[0] else value / 100
        if not any(abs(number * (100 if is_percent else 1) - value) <= precision for number in numbers):
            return match[0]
    return None

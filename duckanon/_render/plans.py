"""Stored plans as they are read for rendering: one object per released column, checked for what SQL could not say."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

_NEEDED = ("column_name", "covers", "lower", "label", "released")
_LOST = (
    "plan must have a column released, a STRUCT of its columns; got one without, as plans come back from CSV: store it "
    "as a table or as Parquet."
)
_OPEN = (None, "-inf", "-infinity")
"""Beginnings of a bucket that holds everything below the next."""
_TIME = re.compile(r"(\d{4,}-\d\d-\d\d)(?: (\d\d:\d\d:\d\d)(?:\.(\d+))?)?")


@dataclass(frozen=True)
class Bucket:
    """The beginning of a bucket, or the value or prefix that it is for, and its label."""

    lower: str | None
    label: str | None


@dataclass(frozen=True)
class PlannedColumn:
    """The generalization of one column."""

    name: str  # as the table spells it
    covers: str | None  # what buckets hold: number, time, value or prefix; None: there are none, all is the rest
    buckets: tuple[Bucket, ...]  # in the order in which `anon.apply_plan` searches them
    null_label: str | None
    rest_label: str | None  # of what is in no bucket

    @property
    def labels(self) -> list[str | None]:
        """All labels that a row may get, each once."""
        return list(dict.fromkeys([*(bucket.label for bucket in self.buckets), self.null_label, self.rest_label]))


def read_plan(plan: Any) -> list[PlannedColumn]:
    """Read a plan: an Arrow table, anything that Arrow can read as one, or the path of a Parquet file."""
    table = _table(plan)
    missing = [name for name in _NEEDED[:-1] if name not in table.column_names]
    if missing:
        raise ValueError(f"plan must be a table as anon.plan makes it; got one without the column {missing[0]}.")
    if "released" not in table.column_names or not pa.types.is_struct(table.schema.field("released").type):
        raise ValueError(_LOST)
    if table.num_rows == 0:
        raise ValueError("plan must have rows; got none: make one with anon.plan.")
    rows_of_column: dict[str, list[dict[str, Any]]] = {}
    for row in table.select(_NEEDED[:-1]).to_pylist():
        rows_of_column.setdefault(str(row["column_name"]).lower(), []).append(row)
    names = [field.name for field in table.schema.field("released").type]
    return [_column(name, rows_of_column.get(name.lower())) for name in names]


def _table(plan: Any) -> pa.Table:
    if isinstance(plan, str | os.PathLike):
        path = Path(plan)
        if not path.exists():
            raise ValueError(f"plan must be a table or the path of a Parquet file; there is no file {path}.")
        try:
            return pq.read_table(path)
        except pa.ArrowInvalid as error:
            raise ValueError(f"plan must be a table or the path of a Parquet file; {path} is none.") from error
    if isinstance(plan, pa.Table):
        return plan
    if hasattr(plan, "__arrow_c_stream__"):
        return pa.table(plan)
    raise ValueError(f"plan must be an Arrow table or the path of a Parquet file; got a {type(plan).__name__}.")


def _column(name: str, rows: list[dict[str, Any]] | None) -> PlannedColumn:
    """Gather the rows of one column, in the order in which they are searched."""
    if rows is None:
        return PlannedColumn(name, None, (), None, None)
    covered = {row["covers"] for row in rows} - {"null", "rest"}
    if len(covered) > 1 or not covered <= {"number", "time", "value", "prefix"}:
        raise ValueError(f'plan must cover column "{name}" by one of number, time, value or prefix; got another mix.')
    covers = next(iter(covered), None)
    buckets = [
        Bucket(None if row["lower"] is None else str(row["lower"]), row["label"])
        for row in rows
        if row["covers"] == covers
    ]
    ordered = _by_lower_end(name, covers, buckets) if covers in ("number", "time") else _by_text(name, buckets)
    labels = (_largest(row["label"] for row in rows if row["covers"] == kind) for kind in ("null", "rest"))
    return PlannedColumn(name, covers, tuple(ordered), *labels)


def _largest(labels: Iterable[str | None]) -> str | None:
    """Return the last of several labels, as `anon.apply_plan` takes it."""
    return max((label for label in labels if label is not None), key=str.encode, default=None)


def _by_lower_end(name: str, covers: str, buckets: list[Bucket]) -> list[Bucket]:
    """Put buckets of numbers or times in order; only the first may be open below."""
    place = number_of if covers == "number" else time_of
    opened = [bucket for bucket in buckets if bucket.lower in _OPEN]
    closed = [(place(bucket.lower), bucket) for bucket in buckets if bucket.lower not in _OPEN]
    if len(opened) > 1 or any(found is None for found, _ in closed):
        kind = "numbers" if covers == "number" else "times such as 2024-05-01 12:00:00"
        raise ValueError(
            f'plan must say by {kind} where the buckets of column "{name}" begin; one of them may be open.'
        )
    ends = [found for found, _ in closed]
    if len(set(ends)) < len(ends):
        raise ValueError(f'plan must have one bucket that begins at a place; column "{name}" has two.')
    return opened + [bucket for _, bucket in sorted(closed, key=lambda pair: pair[0])]  # type: ignore[arg-type,return-value]


def _by_text(name: str, buckets: list[Bucket]) -> list[Bucket]:
    """Put buckets of texts in order, byte by byte as DuckDB compares them."""
    label_of_text: dict[str, str | None] = {}
    for bucket in buckets:
        if bucket.lower is None:
            raise ValueError(f'plan must say which values the buckets of column "{name}" hold; got NULL.')
        if label_of_text.setdefault(bucket.lower, bucket.label) != bucket.label:
            raise ValueError(f'plan must have one label for a value; column "{name}" has two.')
    return [Bucket(text, label_of_text[text]) for text in sorted(label_of_text, key=str.encode)]


def number_of(text: str | None) -> float | None:
    """Return the number that a text says, None where it says none or one without an end."""
    try:
        number = float(str(text))
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def time_of(text: str | None) -> tuple[int, str] | None:
    """Return a key by which times are in order, None for what is no time of this era: the length of a year, the time.

    The text is `time_text`'s, which has no zeros at its end: it stands before all longer ones that begin as it does.
    """
    shortest = time_text(text)
    return None if shortest is None else (shortest.index("-"), shortest)


def time_text(text: str | None) -> str | None:
    """Return a time as the shortest text: without midnight, and without zeros after the seconds."""
    match = _TIME.fullmatch(str(text))
    if match is None:
        return None
    day, clock, fraction = match[1], match[2] or "00:00:00", (match[3] or "").rstrip("0")
    if fraction:
        return f"{day} {clock}.{fraction}"
    return day if clock == "00:00:00" else f"{day} {clock}"

"""No trace of one person in what all others show: releases with and without a person, and with another value of hers.

A person is *odd* in a column if her value is beyond those of all others, has more digits than theirs, or is a category
or a NULL that nobody else has. What the labels of a coarse release say is decided by at least k people if:

1. *her value is nobody's business*: with another value that is as odd, all others have the very same labels;
2. *nothing names her*: no end of a label is her value, or has more digits than the values of all others; a set names a
   category, or NULL, only if k people have it;
3. *she is left out, she is gone*: where she is suppressed, all others have the labels that they have without her;
4. *company costs no more than it must*: where her labels in `by` cannot stay, at most k - 1 others lose theirs with her.

With and without her the classes may differ, since a search finds others for one person more: how many labels do is
counted and told, and nothing is required of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from duckanon.boxes.functions import HIGH, boxes
from duckanon.generalize.plans import plan
from duckanon.microaggregate.functions import microaggregate
from duckanon.recode.functions import recode
from tests.release.test_recode import recoded

NUMBERS, WORDS = ["age", "income", "born"], ["job"]
Labels = dict[int, tuple]
"""By person: the labels that are released."""


class Case(NamedTuple):
    """A table of people and, last, an odd one; the same with another odd value; and which column she is odd in."""

    table: pa.Table
    other: pa.Table
    column: str
    k: int

    @property
    def without(self) -> pa.Table:
        return self.table.slice(0, self.table.num_rows - 1)


def random_case(number: int) -> Case:
    """Draw a table of some forty people with ties, units, dates and rare categories."""
    random = np.random.default_rng(number)
    k, rows = int(random.integers(2, 6)), int(random.integers(16, 70))
    unit = float(random.choice([1, 10, 500]))
    columns: dict[str, Any] = {
        "age": random.integers(18, int(random.choice([24, 40, 90])), rows + 1).astype(float),
        "income": np.round(random.lognormal(6, random.choice([0.2, 1.0]), rows + 1)) * unit,
        "born": random.integers(0, 9000, rows + 1),
    }
    jobs = random.choice(["clerk", "cook", "nurse", "judge", "smith"], rows + 1, p=[0.5, 0.25, 0.15, 0.07, 0.03])
    odd = [
        ("age", 400.0, 4e5), ("age", -300.0, -7e4), ("income", 1e9, 1e14), ("income", unit * 300.25, unit * 300.37),
        ("born", 60_000, 90_000), ("job", "spy", None), ("job", "astronaut", "pope"),
    ]  # fmt: skip
    name, first, second = odd[random.integers(len(odd))]
    tables = []
    for value in (first, second):
        of_all = {**columns, "job": jobs.tolist()}
        of_all[name] = [*list(of_all[name][:-1]), value]
        born = pa.array(np.asarray(of_all["born"], np.int32)).cast(pa.date32())
        tables.append(
            pa.table(
                {
                    "age": pa.array(of_all["age"], pa.float64()),
                    "income": pa.array(of_all["income"], pa.float64()),
                    "born": born,
                    "job": pa.array(of_all["job"], pa.string()),
                    "id": range(rows + 1),
                }
            )
        )
    return Case(tables[0], tables[1], name, k)


def by_recoding(table: pa.Table, k: int) -> Labels:
    return {row[0]: row[1:] for row in recoded(table, NUMBERS + WORDS, k, narrowing=["id"])}


def by_intervals(table: pa.Table) -> Labels:
    return {row["id"]: tuple((row[n], row[HIGH + n]) for n in NUMBERS) for row in table.to_pylist()}


def by_boxes(table: pa.Table, k: int, **options: Any) -> Labels:
    given = {"statistics": None, "l": 1, "epsilon": None, "box": "parts", "effort": "default", "seconds": None}
    given |= {"person": None, "keeps_person": False, "by": None, "top_code": False, "refused": None}
    given |= {"narrowing": ["id", "job"]} | options
    return by_intervals(boxes(table, cols=NUMBERS, k=k, **given))


def by_groups(table: pa.Table, k: int) -> Labels:
    given = {"method": "mdav", "label": "interval", "by": None, "person": None, "keeps_person": False}
    return by_intervals(microaggregate(table, cols=NUMBERS, k=k, narrowing=["id", "job"], refused=None, **given))


def by_plan(table: pa.Table, k: int) -> Labels:
    """The rows of a plan: what everybody's labels are made of."""
    more = {"_duckanon_rank": pa.nulls(table.num_rows), "_duckanon_person": pa.nulls(table.num_rows)}
    source = pa.table({**{n: table[n] for n in NUMBERS + WORDS}, **more, "_duckanon_rows": [1] * table.num_rows})
    made = plan(
        source, None, cols=NUMBERS + WORDS, k=k, beta=0.1, population=None, weights=None, hierarchies=None, methods=None,
        max_suppressed_fraction=0.1, has_person=False, has_sensitive=False, l=1, l_kind="distinct", c=3, t=None,
        is_ordered=None, refused=None, unfit=None,
    )  # fmt: skip
    return {row: tuple(made.column(name)[row].as_py() for name in ("column_name", "lower", "upper", "label"))
            for row in range(made.num_rows)}  # fmt: skip


METHODS: dict[str, Callable[[pa.Table, int], Labels]] = {
    "recode": by_recoding,
    "boxes": by_boxes,
    "microaggregate": by_groups,
}

"""No trace of one person in what all others show: releases with and without a person, and with another value of hers.

A person is *odd* in a column if her value is beyond those of all others, has more digits than theirs, or is a category
or a NULL that nobody else has. What the labels of a coarse release say is decided by at least k people if:

1. *her value is nobody's business*: with another value that is as odd, all others have the very same labels (digits
   beyond the unit of all others, the same in that unit);
2. *nothing names her*: no end of a label is her value, or has more digits than the values of all others; a set names a
   category, or NULL, only if k people have it;
3. *she is left out, she is gone*: where she is suppressed, all others have the labels that they have without her;
4. *company costs no more than it must*: where her labels in `by` cannot stay, at most k - 1 others lose theirs, too.

With and without her the classes may differ, since a search finds others for one person more: how many labels do is
counted and told, and nothing is required of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from duckanon._core.common.labels import read_set
from duckanon._core.numbers.ends import HIGH_PREFIX
from duckanon._core.numbers.parts import cut_column
from duckanon._core.numbers.support import find_support
from duckanon._methods.boxes.boxed_table import boxes, read_numbers
from duckanon._methods.boxes.declared import BOXES
from duckanon._methods.microaggregate.declared import MICROAGGREGATE
from duckanon._methods.microaggregate.microaggregated_table import microaggregate
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
        ("age", 400.0, 4e5), ("age", -300.0, -7e4), ("income", 1e9, 1e14),
        ("income", unit * 300 + 0.25, unit * 300 + 0.37),
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
    return {row["id"]: tuple((row[n], row[HIGH_PREFIX + n]) for n in NUMBERS) for row in table.to_pylist()}


def by_boxes(table: pa.Table, k: int, **options: Any) -> Labels:
    given = BOXES.defaults | {"cols": NUMBERS, "k": k, "narrowing": ["id", "job"]} | options
    return by_intervals(boxes(table, **BOXES.arguments(given)))


def by_groups(table: pa.Table, k: int) -> Labels:
    given = MICROAGGREGATE.defaults | {"cols": NUMBERS, "k": k, "label": "interval", "narrowing": ["id", "job"]}
    return by_intervals(microaggregate(table, **MICROAGGREGATE.arguments(given)))


def by_parts(table: pa.Table, k: int) -> Labels:
    """The coded values and the parts of all columns, which boxes are made of."""
    labels: dict[int, list] = {row: [] for row in range(table.num_rows)}
    for name in NUMBERS:
        numbers = read_numbers(table, [name])[name]
        support = find_support(table.schema.field(name).type, numbers, k)
        parts = cut_column(numbers, k, support)
        ends = zip(support.round_and_clip(numbers), parts.lower[parts.number], parts.upper[parts.number], strict=True)
        for row, of_row in enumerate(ends):
            labels[row].append(of_row)
    return {row: tuple(of_row) for row, of_row in labels.items()}


METHODS: dict[str, tuple[Callable[[pa.Table, int], Labels], int]] = {
    "parts": (by_parts, 1),
    "recode": (by_recoding, 6),
    "microaggregate": (by_groups, 8),
    "boxes": (by_boxes, 120),
}
"""How each method is called, and of how many tables it releases one: boxes take a tenth of a second."""


def differing(one: Labels, other: Labels, odd: int) -> int:
    """Count the labels of all but the odd person that differ."""
    return sum(
        a != b for person in one if person != odd for a, b in zip(one[person], other[person], strict=True)
    )  # fmt: skip


def named_by_few(case: Case, labels: Labels) -> list[str]:
    """List what labels of recode name and fewer than k people of the table decide."""
    found = []
    jobs = case.table.column("job").to_pylist()
    for *numbers, job in labels.values():
        members = read_set(job)
        found += [str(one) for one in members if one != "other" and jobs.count(one) < case.k]
        for name, label in zip(NUMBERS[:2], numbers[:2], strict=True):
            values = case.without.column(name).to_pylist()
            unit = next((u for u in (10_000, 1000, 100, 10, 1) if sum(v % u > 0 for v in values) < case.k), 1)
            ends = [float(end) for end in re.findall(r"-?[\d.]+(?:e\+?\d+)?", label or "")]
            found += [f"{name} {end}" for end in ends if end % unit or not min(values) <= end <= max(values)]
    return found


def check_tables(numbers: Sequence[int]) -> None:
    """Release random tables by all methods; tell how many labels differ."""
    changed, with_another, labels, named = 0, 0, 0, []
    for number in numbers:
        case = random_case(number)
        odd = case.table.num_rows - 1
        for place, (method, every) in enumerate(METHODS.values()):
            if (number + place) % every:
                continue
            made = method(case.table, case.k)
            changed += differing(made, method(case.other, case.k), odd)
            labels += sum(map(len, made.values()))
            if method is by_recoding:
                named += named_by_few(case, made)
                with_another += differing(by_recoding(case.without, case.k), made, odd)
    told = (
        f"{changed} of {labels} labels of others tell an odd person's value, and {len(named)} name what few people "
        f"decide ({named[:3]}); {with_another} of recode differ without that person."
    )
    assert (changed, len(named)) == (0, 0), told


@pytest.mark.thorough
def test_others_show_nothing_of_an_odd_person() -> None:
    check_tables(range(60))


@pytest.mark.thorough
def test_others_show_nothing_of_an_odd_person_in_700_tables() -> None:
    check_tables(range(60, 760))


@pytest.mark.parametrize("number", range(4))
def test_who_is_suppressed_is_gone(number: int) -> None:
    """A group of `by` with one person cannot be released, and all others have the labels that they have without her."""
    case = random_case(number)
    wards = pa.array(["a"] * (case.table.num_rows - 1) + ["b"])
    options = {"narrowing": ["id"], "by": ["ward"], "max_suppressed_fraction": 1.0}
    of_both = case.table.append_column("ward", wards)
    of_others = case.without.append_column("ward", wards.slice(0, case.without.num_rows))
    made = [recoded(table, NUMBERS + WORDS, case.k, **options) for table in (of_both, of_others)]
    assert made[0] == made[1]
    assert len(made[0]) == case.without.num_rows


def test_one_judge_costs_few_clerks_their_label(shared: duckdb.DuckDBPyConnection) -> None:
    """The fifty F clerks all lost both labels to one F judge."""
    shared.execute("""CREATE OR REPLACE TABLE staff AS
        SELECT 'F' AS sex, 'clerk' AS job, 20 + i % 40 AS age FROM range(50) AS r(i)
        UNION ALL SELECT 'M', 'clerk', 20 + i % 40 FROM range(50) AS r(i)
        UNION ALL SELECT 'F', 'judge', 33""").fetchall()
    for method in ("boxes", "microaggregate"):
        call = f"anon.{method}('staff', ['age'], 5, by := ['sex', 'job'])"
        found = shared.execute(f"SELECT sex, job, count(*) FROM {call} GROUP BY ALL ORDER BY ALL").fetchall()
        assert found == [("F", "clerk", 46), ("F", None, 5), ("M", "clerk", 50)]

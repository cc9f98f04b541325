"""`python -m tests.bench.linked_attacks [demo] [groceries] [hospital]`: somebody looks for 400 people of a release.

They know the class of a person, some true events, and perhaps how many rows or which record the person has. A person of
the same class is a candidate whose released rows may be these events, each another one.
"""

from __future__ import annotations

import functools
import itertools
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import duckanon
from duckanon._bridge.sql import Connection
from duckanon.cli import demo_command, statements
from tests import hospital, sqltest

ATTACKED = 400
GROCERIES = Path("..") / "prototypes" / "linked" / "groceries.csv.gz"
"""Beside the folder of real data."""

Event = tuple[Any, ...]
"""The table of a row and its cells: values where it is true, labels where it is released."""


@dataclass(frozen=True)
class Dataset:
    """Linked tables in a database, and how they are released."""

    name: str
    tables: Sequence[str]
    person: str
    cols: Mapping[str, Sequence[str]]  # by table
    k: int
    options: str
    known: int = 2
    classes: str | None = None  # a query of people and their classes
    hierarchies: Mapping[str, str] | None = None


def demo(con: Connection, people: int = 200_000, k: int = 10) -> Dataset:
    """Make the visits of the demo's clinic, with classes by sex and twenty years."""
    con.execute(f"SET VARIABLE people = {people}; SET enable_progress_bar = false").fetchall()
    for statement in statements.split(statements.script(demo_command.FILES / "population.sql")):
        con.execute(statement).fetchall()
    con.execute(
        """CREATE OR REPLACE TABLE people AS
           SELECT patient_id, sex, date_diff('year', dob, DATE '2026-01-01') // 20 AS age FROM patients"""
    ).fetchall()
    cols = {"visits": ("visited", "department", "days_in_hospital")}
    options = "class := ['sex', 'age'], people := 'people'"
    return Dataset(
        "demo", ["visits"], "patient_id", cols, k, options, classes="SELECT patient_id, sex, age FROM people"
    )


def groceries(con: Connection, k: int = 5) -> Dataset:
    """Read baskets of items, each the history of a person; the levels are those of the shop."""
    con.execute(f"CREATE OR REPLACE TABLE baskets AS FROM read_csv('{sqltest.data_file(str(GROCERIES))}')").fetchall()
    con.execute("CREATE OR REPLACE TABLE items AS SELECT DISTINCT item, l2, l1 FROM baskets").fetchall()
    options = (
        "hierarchies := MAP {'item': 'items'}, ladder := [MAP {'item': '0'}, MAP {'item': '1'}, MAP {'item': '2'}]"
    )
    return Dataset("groceries", ["baskets"], "tid", {"baskets": ("item",)}, k, options, hierarchies={"item": "items"})


def generated(con: Connection, people: int = 100_000, k: int = 10) -> Dataset:
    """Make a hospital of three tables, with classes by sex and twenty years."""
    hospital.fill(con, people)
    return Dataset(
        "hospital",
        hospital.TABLES,
        "patient",
        {"visits": ("day", "ward"), "diagnoses": ("day", "code"), "labs": ("day", "test", "value")},
        k,
        f"class := ['sex', 'age'], {hospital.OPTIONS}",
        classes="SELECT patient, sex, age FROM patients",
        hierarchies=hospital.HIERARCHIES,
    )


class Attacker:
    """Somebody who has a release with true keys, or the tables themselves without names."""

    def __init__(self, con: Connection, data: Dataset, *, is_released: bool = True) -> None:
        self._data = data
        self._random = np.random.default_rng(0)
        if is_released:
            cols = list(dict.fromkeys(col for own in data.cols.values() for col in own))
            con.execute(
                f"CREATE OR REPLACE TABLE released AS FROM anon.release_linked({data.tables}, '{data.person}', {cols}, "
                f"{data.k}, known := {data.known}, keep := ['{data.person}'], seed := 1, {data.options})"
            ).fetchall()
        found = con.execute(data.classes).fetchall() if data.classes else []
        self._class_of = {whose: tuple(others) for whose, *others in found}
        self._paths = {
            column: {leaf: set(path) for leaf, *path in con.execute(f"FROM {table}").fetchall()}
            for column, table in (data.hierarchies or {}).items()
        }
        self.events: dict[Any, list[Event]] = defaultdict(list)
        self.records: dict[Any, list[Event]] = defaultdict(list)
        for table, own in data.cols.items():
            shown = f"released WHERE table_name = '{table}'" if is_released else table
            texts = [f"{column}::VARCHAR" for column in own]
            for into, columns, source in ((self.events, own, table), (self.records, texts, shown)):
                found = con.execute(f"SELECT {data.person}, {', '.join(columns)} FROM {source}").fetchall()
                for whose, *cells in found:
                    into[whose].append((table, *cells))
        self._holders: dict[tuple[Any, ...], dict[Any, list[int]]] = defaultdict(lambda: defaultdict(list))
        self._texts: dict[tuple[str, str], set[str]] = defaultdict(set)
        for whose, record in self.records.items():
            for place, label in enumerate(record):
                self._holders[self._class_of.get(whose), label][whose].append(place)
                for column, text in zip(data.cols[label[0]], label[1:], strict=True):
                    self._texts[label[0], column].add(text)
        self._labels_of = functools.cache(self._labels_that_cover)

    def _labels_that_cover(self, event: Event) -> list[Event]:
        table, *cells = event
        texts = [
            [text for text in self._texts[table, column] if self._may_be(column, text, cell)]
            for column, cell in zip(self._data.cols[table], cells, strict=True)
        ]
        return [(table, *label) for label in itertools.product(*texts)]

    def _may_be(self, column: str, text: str | None, value: Any) -> bool:
        if text is None or value is None:
            return text == value or text == "*"
        if text in ("*", str(value)) or text in self._paths.get(column, {}).get(value, ()):
            return True
        if text.startswith("["):
            low, high = text.strip("[)").split(", ")
            return float(low) <= value < float(high)
        return hasattr(value, "month") and text in _periods(value)

    def people(self, events: int) -> list[Any]:
        """Choose people who have so many events or more."""
        able = sorted(whose for whose, own in self.events.items() if len(own) >= events)
        chosen = self._random.permutation(len(able))[:ATTACKED]
        return [able[place] for place in chosen.tolist()]

    def candidates(self, whose: Any, events: int, *, counts: bool = False) -> int:
        """Count who may be a person of whom so many true events are known; also how many rows are released."""
        own = self.events[whose]
        known = [own[place] for place in self._random.permutation(len(own))[:events].tolist()]
        fitting: list[dict[Any, list[int]]] = []
        for event in known:
            places: dict[Any, list[int]] = defaultdict(list)
            for label in self._labels_of(event):
                for other, rows in self._holders.get((self._class_of.get(whose), label), {}).items():
                    places[other] += rows
            fitting.append(places)
        everybody = set.intersection(*(set(places) for places in fitting))
        if counts:
            everybody = {other for other in everybody if len(self.records[other]) == len(self.records[whose])}
        return sum(_has_each_another([places[other] for places in fitting]) for other in everybody)

    def shares(self, events: int, *, counts: bool = False) -> tuple[int, float, float]:
        """Return how many people were looked for, and the shares of those found alone, and among 1 to k - 1."""
        found = [self.candidates(whose, events, counts=counts) for whose in self.people(events)]
        few = [0 < count < self._data.k for count in found]
        return len(found), float(np.mean([count == 1 for count in found])), float(np.mean(few))

    def of_records(self) -> tuple[int, float, float]:
        """Return the same for somebody who knows the whole record that was released."""
        held = Counter(self._record(whose) for whose in self.records)
        found = [held[self._record(whose)] for whose in self.people(1) if whose in self.records]
        return (
            len(found),
            float(np.mean([one == 1 for one in found])),
            float(np.mean([n < self._data.k for n in found])),
        )

    def _record(self, whose: Any) -> tuple[Any, ...]:
        return self._class_of.get(whose), *sorted(map(str, self.records[whose]))


@functools.cache
def _periods(day: Any) -> frozenset[str]:
    year, month = f"{day:%Y}", day.month
    return frozenset((f"{day:%Y-%m}", f"{year}-Q{(month + 2) // 3}", f"{year}-H{(month + 5) // 6}", year))


def _has_each_another(places: Sequence[Sequence[int]]) -> bool:
    """Tell whether each event can have a row of its own."""
    return any(len(set(chosen)) == len(chosen) for chosen in itertools.product(*places))


def main() -> None:
    """Print the shares for the data sets that were named, or all."""
    for make in (demo, groceries, generated):
        if sys.argv[1:] and make.__name__ not in sys.argv[1:]:
            continue
        con = duckanon.connect()
        data = make(con)
        for is_released in (False, True):
            attacker = Attacker(con, data, is_released=is_released)
            rows = {f"{events} events": attacker.shares(events) for events in range(1, data.known + 3)}
            rows[f"{data.known} events and the number of rows"] = attacker.shares(data.known, counts=True)
            rows["the whole record"] = attacker.of_records()
            for name, (people, alone, few) in rows.items():
                what = f"{data.name}, {'released' if is_released else 'original'}, k = {data.k}: {name}"
                print(f"{what}: {people} people, {alone:.1%} alone, {few:.1%} among 1 to k - 1", flush=True)


if __name__ == "__main__":
    main()

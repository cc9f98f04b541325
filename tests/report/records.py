"""A small release with its record, as a job writes it, and the page of it as the tests read it."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import duckdb

from duckanon import report

EXTREME = 987654
"""The income of one person, far above all others."""
RARE = "astronaut"
"""The occupation of one person."""

VOID = {"meta", "br", "hr", "img", "input", "link"}


def make_tables(con: duckdb.DuckDBPyConnection, extreme: int = EXTREME, rare: str = RARE) -> None:
    """Make `people`, `released` with coarser ages, and `others`, who are in neither."""
    con.execute(
        f"""CREATE OR REPLACE TABLE people AS
            SELECT 'P' || i AS person_id, 20 + i * 7 % 60 AS age, CASE WHEN i % 2 = 0 THEN 'F' ELSE 'M' END AS sex,
                   CASE WHEN i = 5 THEN {extreme} ELSE 1000 + i * 13 % 400 END AS income,
                   CASE WHEN i = 5 THEN '{rare}' ELSE ['nurse', 'clerk', 'cook'][1 + i % 3] END AS occupation
            FROM range(400) AS t(i);
            CREATE OR REPLACE TABLE released AS
            SELECT CASE WHEN age < 50 THEN '<50' ELSE '[50, 80)' END AS age, sex, income, occupation FROM people
            WHERE person_id <> 'P5';
            CREATE OR REPLACE TABLE others AS
            SELECT age, sex, income + 3 AS income, occupation FROM people WHERE person_id <> 'P5'"""
    ).fetchall()


def entry(**changes: Any) -> dict[str, Any]:
    """Return the entry of the table in a record, without its measures."""
    roles = {
        "person_id": ("identifier", "dropped"),
        "age": ("quasi_identifier", "generalized"),
        "sex": ("quasi_identifier", "kept as it is"),
        "income": ("sensitive", "kept as it is"),
        "occupation": ("free", "kept as it is"),
    }
    return {
        "name": "people",
        "source": "/secret/folder/warehouse.duckdb",
        "rows": 400,
        "people": 400,
        "sha256": "0123456789abcdef" * 4,
        "output": {"path": "out/release.parquet", "format": "parquet", "rows": 399, "people": 399, "sha256": "cd" * 32},
        "method": {"name": "generalize", "parameters": {"k": 10, "seed": 987123}},
        "columns": [{"name": name, "role": role, "treatment": done} for name, (role, done) in roles.items()],
        "suppressed": {"rows": 1, "people": 1, "fraction": 0.0025, "limit": 0.01},
        "promises": [{"name": "k", "asked": 10, "measured": 11, "passed": True, "words": "Every class has 10 people."}],
    } | changes


def record(*tables: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return the record of a run."""
    return {
        "duckanon": "0.1.0",
        "duckdb": "2.0.0",
        "python": "3.11.7",
        "started": "2026-11-16T02:00:00+00:00",
        "finished": "2026-11-16T02:01:10+00:00",
        "outcome": "released",
        "policy": {"path": "/secret/folder/policy.toml", "sha256": "ef" * 32},
        "tables": list(tables),
    } | changes


def measured_record(con: duckdb.DuckDBPyConnection) -> tuple[dict[str, Any], dict[str, list[report.Figure]]]:
    """Return a record with measures and the figures of its table."""
    make_tables(con)
    table = entry()
    table["measures"] = report.measured(con, "people", "released", table, "others")
    return record(table), {"people": report.figures(con, "people", "released", table, "others")}


class Page(HTMLParser):
    """What stands in a page: elements with their attributes and texts, and whether all of them were closed."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None], list[str]]] = []
        self._open: list[tuple[str, list[str]]] = []
        self.feed(html)
        self.close()
        assert self._open == [], self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        texts: list[str] = []
        self.elements.append((tag, dict(attrs), texts))
        if tag not in VOID:
            self._open.append((tag, texts))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs), []))

    def handle_endtag(self, tag: str) -> None:
        opened, _ = self._open.pop()
        assert opened == tag, f"</{tag}> closes <{opened}>"

    def handle_data(self, data: str) -> None:
        for _, texts in self._open:
            texts.append(data)

    def all(self, tag: str) -> list[tuple[dict[str, str | None], str]]:
        return [(attributes, "".join(texts)) for name, attributes, texts in self.elements if name == tag]


def at(record: dict[str, Any], pointer: str) -> Any:
    """Return what stands at a JSON pointer."""
    value: Any = record
    for key in pointer.split("/")[1:]:
        key = key.replace("~1", "/").replace("~0", "~")
        value = value[int(key)] if isinstance(value, list) else value[key]
    return value

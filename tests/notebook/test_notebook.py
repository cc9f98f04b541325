"""The extension of notebooks, without a notebook: views of results, and what a shell is asked for."""

from __future__ import annotations

import re
import sys
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest

import duckanon
from duckanon.notebook import views


def test_class_sizes_are_bars(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE people AS SELECT (sqrt(2 * i))::INTEGER AS age FROM range(5000) AS t(i)").fetchall()
    sizes = con.sql("FROM anon.class_sizes('people', ['age'])")
    html = views.of_relation(sizes)
    assert html
    assert html.count("<tr>") == 1 + views.MOST_BARS + 1  # header, bars, and all larger sizes together
    counts = [int(line[2].replace(",", "")) for line in re.findall(r"<td[^>]*>([^<]*)</td>" * 3, html)]
    assert sum(counts) == 5000
    assert html.startswith('<div style="max-width:640px"><svg ')  # of duckanon.plot, above the numbers
    assert "<title" in html


def test_other_results_are_left_to_the_notebook(con: duckdb.DuckDBPyConnection) -> None:
    assert views.of_relation(con.sql("SELECT 1 AS class_size")) is None
    empty = con.sql("SELECT 1 AS class_size, 1 AS classes, 1 AS rows, 1.0 AS cumulative_fraction WHERE false")
    assert views.of_relation(empty) is None


def test_compared_releases_are_a_map_and_names_are_no_markup() -> None:
    names = ["release", "kind", "measure", "value", "reference_value"]
    rows = [("<script>", "privacy", "distance", 0.5, 0.4), ("b", "privacy", "distance", None, 0.4)]
    rows.append(("b", "utility", "mean", 0, None))
    html = views.view(names, rows)
    assert html
    assert "<script>" not in html
    assert "<th>&lt;script&gt;</th><th>b</th><th>another sample</th>" in html
    assert html.count("<tr>") == 3
    assert "<svg" not in html  # a map needs two measures
    rows = [
        (name, kind, measure, value, 0.4, True)
        for name, value in (("<script>", 0.5), ("b", 0.3))
        for kind, measure in (("privacy", "distance"), ("utility", "correlation"))
    ]
    drawn = views.view([*names, "pass"], rows)
    assert drawn
    assert "<svg" in drawn
    assert "<script>" not in drawn


class Formatter:
    def __init__(self) -> None:
        self.types: dict[Any, Any] = {}

    def for_type(self, kind: type, function: Any) -> None:
        self.types[kind] = function

    def for_type_by_name(self, module: str, name: str, function: Any) -> None:
        self.types[f"{module}.{name}"] = function

    def pop(self, kind: Any, default: Any = None) -> Any:
        return self.types.pop(kind, default)


class Events:
    def __init__(self) -> None:
        self.callbacks: list[Any] = []

    def register(self, event: str, callback: Any) -> None:
        assert event == "pre_run_cell"
        self.callbacks.append(callback)

    def unregister(self, event: str, callback: Any) -> None:
        self.callbacks.remove(callback)


def test_connections_are_registered_when_a_cell_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those in variables, and jupysql's; a closed one is passed over, and a taken name is only a warning."""
    registered: list[Any] = []

    def register(con: duckdb.DuckDBPyConnection | None = None) -> None:
        registered.append(con)
        if con is not None:
            con.execute("SELECT 1").fetchall()

    def refuse(con: duckdb.DuckDBPyConnection) -> None:
        raise ValueError("the name anon is taken")

    monkeypatch.setattr("duckanon.notebook.register", register)
    formatter, events = Formatter(), Events()
    shell = SimpleNamespace(
        user_ns={"n": 1}, events=events, display_formatter=SimpleNamespace(formatters={"text/html": formatter})
    )
    duckanon.load_ipython_extension(shell)
    duckanon.load_ipython_extension(shell)
    assert registered == [None]  # the default connection, once
    assert len(events.callbacks) == 1
    assert len(formatter.types) == 2
    own, jupysql, closed, engine = (duckdb.connect() for _ in range(4))
    closed.close()
    shell.user_ns |= {"closed": closed, "own": own}
    manager = SimpleNamespace(
        connections={
            "x": SimpleNamespace(_connection=jupysql),
            "y": SimpleNamespace(_connection=1),
            # as SQLAlchemy wraps what duckdb-engine wraps, opened before the extension was loaded
            "z": SimpleNamespace(
                _connection=SimpleNamespace(
                    connection=SimpleNamespace(dbapi_connection=SimpleNamespace(wrapped=engine, notices=[]))
                )
            ),
        }
    )
    monkeypatch.setitem(sys.modules, "sql.connection", SimpleNamespace(ConnectionManager=manager))
    events.callbacks[0]()
    assert registered == [None, closed, own, jupysql, engine]
    monkeypatch.setattr("duckanon.notebook.register", refuse)
    with pytest.warns(UserWarning, match="taken"):
        events.callbacks[0]()
    duckanon.unload_ipython_extension(shell)
    assert events.callbacks == []
    assert formatter.types == {}

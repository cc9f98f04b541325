"""Values that look like a label: every release tells them from the labels that it makes up, and measures read both."""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import duckanon
from duckanon import large

K = 5
LIKE_LABELS = [
    "*",
    "other",
    "Total",
    "[1, 2)",
    "{a,b}",
    "<5",
    "NULL",
    "",
    " ",
    ">=90",
    "[1, 2]",
    "a",
    "{other}",
    "b, c",
]
ALL, REST = object(), object()

Row = dict[str, Any]


def people(*, is_shared: bool) -> list[Row]:
    """Give each value that looks like a label to many people, or to one of them, beside values that only one has."""
    texts = [text for text in LIKE_LABELS for _ in range(9 if is_shared else 1)]
    texts += ["x"] * 30 + ["y"] * 30 + [f"rare {i}" for i in range(8)]
    rows = enumerate(texts)
    return [{"rid": i, "label": text, "topic": ["*", "other", "b"][i % 3], "age": 20 + i * 7 % 9} for i, text in rows]


def meaning(label: str | None) -> set[object]:
    """Read a label by what the reference says of labels."""
    if label is None:
        return {None}
    if label == "*":
        return {ALL}
    if label == "other":
        return {REST}
    if label.startswith("{") and label.endswith("}"):
        return set_meaning(label[1:-1])
    return {label}


def set_meaning(text: str) -> set[object]:
    found: set[object] = set()
    while text:
        if text[0] == '"':
            end = 1
            while text[end] != '"' or text[end : end + 2] == '""':
                end += 2 if text[end] == '"' else 1
            found.add(text[1:end].replace('""', '"'))
            text = text[end + 1 :]
            assert not text or text.startswith(", "), text
            text = text[2:]
        else:
            member, _, text = text.partition(", ")
            found.add({"NULL": None, "other": REST}.get(member, member))
    return found


def entry_meaning(entry: str | None) -> set[object]:
    """Read an entry of a list: a value, but for the label of the rest and values in quotation marks."""
    is_written = entry is not None and (entry in ("other", "{other}") or entry.startswith('{"'))
    return meaning(entry) if is_written else {entry}


def cell_meaning(cell: Any) -> set[object]:
    return set().union(*map(entry_meaning, cell)) if isinstance(cell, list) else meaning(cell)


def covers(cell: Any, value: object, named: set[object]) -> bool:
    """Tell whether a cell holds a value; of the rest, all values that no cell of the column names."""
    held = cell_meaning(cell)
    return ALL in held or value in held or (REST in held and value not in named)


def named_by(cells: list[Any]) -> set[object]:
    return set().union(*map(cell_meaning, cells)) - {ALL, REST}


def call(con: duckdb.DuckDBPyConnection, query: str) -> list[Row]:
    return con.sql(query).to_arrow_table().to_pylist()


def linked(con: duckdb.DuckDBPyConnection, _: Path) -> list[Row]:
    options = "keep := ['rid'], narrowing := ['rid'], max_suppressed_fraction := 1, seed := 1"
    return call(con, f"FROM anon.release_linked(['t'], 'person', ['label', 'topic'], {K}, known := 1, {options})")


def by_hierarchy(con: duckdb.DuckDBPyConnection, _: Path, method: str = "recode") -> list[Row]:
    con.execute(
        "CREATE OR REPLACE TEMP TABLE tree AS SELECT DISTINCT label, left(label, 1) || '..' AS one, '*' AS two FROM t"
    ).fetchall()
    options = "keep := ['rid'], narrowing := ['rid'], hierarchies := MAP {'label': 'tree'}"
    return call(con, f"FROM anon.{method}('t', ['label', 'topic'], {K}, {options})")


def rendered(con: duckdb.DuckDBPyConnection, _: Path) -> list[Row]:
    con.execute(f"CREATE OR REPLACE TEMP TABLE plan AS FROM anon.plan('t', ['label', 'topic'], {K})").fetchall()
    applied = "FROM anon.apply_plan('t', 'plan', keep := ['rid']) ORDER BY rid"
    query = duckanon.render(con.sql("FROM plan").to_arrow_table(), "duckdb", "t", keep=["rid"])
    assert sorted(call(con, query), key=lambda row: row["rid"]) == call(con, applied)
    return call(con, applied)


def in_parts(con: duckdb.DuckDBPyConnection, folder: Path, method: str = "recode") -> list[Row]:
    table, target = con.sql("FROM t").to_arrow_table(), folder / "released.parquet"
    getattr(large, method)(table, target, ["label", "topic"], K, keep=["rid"], narrowing=["rid"])
    return call(con, f"FROM '{target}'")


def in_memory(con: duckdb.DuckDBPyConnection, _: Path, method: str = "recode", options: str = "") -> list[Row]:
    given = f"'t', ['label', 'topic'], {K}, keep := ['rid'], narrowing := ['rid']{options}"
    return call(con, f"FROM anon.{method}({given})")


RELEASES: dict[str, Callable[[duckdb.DuckDBPyConnection, Path], list[Row]]] = {
    "generalize": functools.partial(in_memory, method="generalize"),
    "prefix": functools.partial(in_memory, method="generalize", options=", methods := {'label': 'prefix'}"),
    "recode": in_memory,
    "lists": functools.partial(in_memory, options=", output := 'value'"),
    "recode by hierarchy": by_hierarchy,
    "generalize by hierarchy": functools.partial(by_hierarchy, method="generalize"),
    "plan": rendered,
    "linked": linked,
    "recode in parts": in_parts,
    "generalize in parts": functools.partial(in_parts, method="generalize"),
}


def load(con: duckdb.DuckDBPyConnection, rows: list[Row]) -> None:
    con.register("given", pa.Table.from_pylist(rows))
    con.execute("CREATE OR REPLACE TEMP TABLE t AS SELECT *, rid AS person FROM given ORDER BY rid").fetchall()


@pytest.mark.parametrize(
    ("method", "is_shared"), [*((method, True) for method in RELEASES), ("generalize", False), ("recode", False)]
)
def test_labels_hold_the_value_of_their_row(
    shared: duckdb.DuckDBPyConnection, tmp_path: Path, method: str, is_shared: bool
) -> None:
    rows = people(is_shared=is_shared)
    load(shared, rows)
    released = RELEASES[method](shared, tmp_path)
    assert released
    for column in ("label", "topic"):
        values = {row["rid"]: row[column] for row in rows}
        cells = [row[column] for row in released]
        is_tree = "hierarchy" in method and column == "label"
        holders = Counter(values.values())
        of_cell: dict[object, set[object]] = defaultdict(set)
        for row in released:
            cell, value = row[column], values[row["rid"]]
            of_cell[str(cell)].add(value)
            is_prefix = isinstance(cell, str) and cell.endswith("*") and value.startswith(cell.rstrip("*"))
            is_ancestor = is_tree and cell == value[:1] + ".."
            assert covers(cell, value, named_by(cells)) or is_prefix or is_ancestor, (column, cell, value)
        # whoever is called by one value has it, and made-up labels are no value that many have
        for cell in cells:
            held = of_cell[str(cell)]
            if str(cell) in values.values() and holders[str(cell)] >= K and cell not in ("*", "{other}"):
                assert held == {cell}, (column, cell, held)
        if not is_tree:
            assert (
                named_by(cells) <= {value for value, size in holders.items() if size >= K} | {None}
                or method == "prefix"
            )
    sizes = Counter((str(row["label"]), str(row["topic"])) for row in released)
    assert method == "linked" or min(sizes.values()) >= K


@pytest.mark.parametrize("method", ["generalize", "recode", "lists"])
def test_one_person_changes_no_label_of_others(shared: duckdb.DuckDBPyConnection, tmp_path: Path, method: str) -> None:
    """Whose rare value becomes one that looks like a label."""
    rows = [row for row in people(is_shared=False) if row["label"] not in LIKE_LABELS]
    for text in ("other", "{other}", '{"other"}'):
        load(shared, [row | {"label": text} if row["label"] == "rare 0" else row for row in rows])
        shown = [row["label"] for row in RELEASES[method](shared, tmp_path)]
        members = {
            part for cell in shown for part in (cell if isinstance(cell, list) else cell.strip("{}").split(", "))
        }
        assert "other" in members
        assert members <= {"x", "y", "other", "*"}
        assert "{other}" not in shown


@pytest.mark.thorough
@pytest.mark.parametrize(("method", "is_shared"), [("recode", True), ("lists", True), ("generalize", False)])
def test_measures_read_what_releases_write(
    shared: duckdb.DuckDBPyConnection, tmp_path: Path, method: str, is_shared: bool
) -> None:
    rows = people(is_shared=is_shared)
    load(shared, rows)
    released = RELEASES[method](shared, tmp_path)
    shared.register("shown", pa.Table.from_pylist(released))
    shared.execute("CREATE OR REPLACE TEMP TABLE r AS FROM shown").fetchall()
    cols = ["label", "topic"]
    named = {column: named_by([row[column] for row in released]) for column in cols}
    expected = [
        sum(all(covers(cells[column], row[column], named[column]) for column in cols) for cells in released)
        for row in rows
    ]
    found = call(shared, f"SELECT rid, candidates FROM anon.containment_candidates('t', 'r', {cols}) ORDER BY rid")
    assert [row["candidates"] for row in found] == expected
    risk = shared.execute(f"SELECT average_risk FROM anon.containment_risk('t', 'r', {cols}) LIMIT 1").fetchall()[0]
    assert risk == pytest.approx((sum(Fraction(1, one) for one in expected if one) / len(rows),))
    for column in cols:
        values = {row[column] for row in rows}
        loss = sum(
            Fraction(sum(covers(row[column], value, named[column]) for value in values) - 1, len(values) - 1)
            for row in released
        )
        ncp = shared.execute(f"SELECT ncp FROM anon.generalization_loss('t', 'r', ['{column}']) LIMIT 1").fetchall()[0]
        assert ncp == pytest.approx((float(loss + len(rows) - len(released)) / len(rows),))


def test_a_table_is_its_own_release(shared: duckdb.DuckDBPyConnection) -> None:
    """Whatever its values look like: they are read as themselves."""
    load(shared, people(is_shared=True))
    found = shared.execute(
        """SELECT (SELECT average_risk FROM anon.containment_risk('t', 't', ['label', 'topic']) LIMIT 1),
                  (SELECT average_risk FROM anon.reidentification_risk('t', ['label', 'topic']) LIMIT 1),
                  (SELECT max(ncp) FROM anon.generalization_loss('t', 't', ['label', 'topic']))"""
    ).fetchall()
    assert found == [(pytest.approx(found[0][1]), found[0][1], 0)]


@pytest.mark.parametrize("is_shared", [True, False], ids=["many", "one"])
@pytest.mark.parametrize("method", ["synthesize", "spectral_release"])
def test_new_records_keep_values_and_name_the_rest(
    shared: duckdb.DuckDBPyConnection, method: str, is_shared: bool
) -> None:
    rows = people(is_shared=is_shared) * 4  # every value of somebody is that of four
    load(shared, [row | {"rid": i} for i, row in enumerate(rows)])
    call_of_method = f"anon.{method}('t', ['label', 'age'], k := {K}, seed := 1)"
    shown = {row["label"] for row in call(shared, f"SELECT DISTINCT label FROM {call_of_method}")}
    held = {value for value, size in Counter(row["label"] for row in rows).items() if size >= K + K // 4}
    assert shown <= held | {"{{other}}" if is_shared else "other"}
    assert len(shown - held) == 1


@pytest.mark.thorough
def test_tables_tell_a_value_from_the_margin(shared: duckdb.DuckDBPyConnection) -> None:
    load(shared, people(is_shared=True))
    made = f"anon.protect_table('t', ['label', 'topic'], k := {K}, max_suppressed_fraction := 1)"
    shared.execute(f"CREATE OR REPLACE TEMP TABLE cells AS FROM {made}").fetchall()
    rows = people(is_shared=True)
    for cell in call(shared, "FROM cells WHERE published"):
        wanted = {column: cell[column].replace('{"Total"}', "Total") for column in ("label", "topic")}
        own = [row for row in rows if all(cell[c] == "Total" or row[c] == wanted[c] for c in wanted)]
        assert len(own) == cell["people"], cell
    assert call(shared, """FROM cells WHERE label = '{"Total"}' AND topic = 'Total'""")[0]["people"] == 9
    assert (
        call(shared, f"FROM anon.audit_table('cells', ['label', 'topic'], k := {K}, original := 't') WHERE fault <> ''")
        == []
    )

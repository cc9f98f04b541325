"""What is printed is what the format promises, and safe to look at and to open."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckanon.cli import output, statements
from duckanon.cli.output import Style

CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""What a terminal obeys or turns around; lines end with a line feed."""

ATTACK = "a\x1b[31mred\x1b]0;title\x07 \u009b2J \x7f \u202egpj \r over"


SIGNS = ("=", "+", "-", "@", "＝")
"""A cell that begins with one of them is computed."""


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def printed(con: duckdb.DuckDBPyConnection, query: str, **style: Any) -> str:
    return statements.run(con, query, Style(**style))


def strict(text: str) -> Any:
    """Read JSON as the standard has it: Python's own reader takes NaN, Infinity and repeated names as well."""

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    def pairs(members: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len({name for name, _ in members}) == len(members), f"a name comes twice in {members}"
        return dict(members)

    return json.loads(text, parse_constant=refuse, object_pairs_hook=pairs)


def test_json_has_no_nan_and_no_infinity(con: duckdb.DuckDBPyConnection) -> None:
    query = """SELECT 'nan'::DOUBLE AS a, '-inf'::FLOAT AS b, ['inf'::DOUBLE, 1.5] AS c,
                      {'NaN': 'nan'::DOUBLE, 't': 'NaN, "-Infinity": inf \\'} AS d, MAP {'x': 'inf'::DOUBLE} AS e,
                      '{"x": [NaN, -Infinity]}'::JSON AS f, NULL::DOUBLE AS g"""
    assert strict(printed(con, query, output_format="json")) == [
        {
            "a": "NaN",
            "b": "-Infinity",
            "c": ["Infinity", 1.5],
            "d": {"NaN": "NaN", "t": 'NaN, "-Infinity": inf \\'},
            "e": {"x": "Infinity"},
            "f": {"x": ["NaN", "-Infinity"]},
            "g": None,
        }
    ]


def test_json_tells_columns_of_the_same_name_apart(con: duckdb.DuckDBPyConnection) -> None:
    query = "SELECT 1 AS a, 2 AS a, 3 AS a_1, 4 AS A, 5 AS a"
    assert strict(printed(con, query, output_format="json")) == [{"a": 1, "a_2": 2, "a_1": 3, "A": 4, "a_3": 5}]


@given(
    texts=st.lists(st.text(max_size=12), min_size=1, max_size=3),
    numbers=st.lists(st.floats(width=64), min_size=1, max_size=3),
    names=st.lists(st.sampled_from(["a", "A", "a_1", "NaN", "\x1b[1m", '"', "\u2028"]), min_size=3, max_size=3),
)
def test_json_is_json_and_loses_nothing(
    shared: duckdb.DuckDBPyConnection, texts: list[str], numbers: list[float], names: list[str]
) -> None:
    written = ", ".join(
        f'{value} AS "{name}"'.replace('"""', '""""')
        for value, name in zip(("$texts", "$numbers::DOUBLE[]", "$first"), names, strict=True)
    )
    relation = shared.sql(f"SELECT {written}", params={"texts": texts, "numbers": numbers, "first": texts[0]})
    text = output.format_result(relation, Style("json"))
    assert not CONTROL.search(text)
    (record,) = strict(text)
    seen_texts, seen_numbers, first = record.values()
    assert (seen_texts, first) == (texts, texts[0])
    for number, seen in zip(numbers, seen_numbers, strict=True):
        assert float(seen) == number or (math.isnan(number) and seen == "NaN")


@pytest.mark.parametrize("output_format", output.FORMATS)
def test_control_characters_are_shown_and_not_obeyed(con: duckdb.DuckDBPyConnection, output_format: str) -> None:
    relation = con.sql("SELECT $text AS value, [$text] AS list", params={"text": ATTACK})
    relation = relation.project(f'*, 1 AS "name{ATTACK}"')
    screen = Terminal()
    output.writer(screen)(output.format_result(relation, Style(output_format)))
    assert "red" in screen.getvalue()
    assert not CONTROL.search(screen.getvalue())
    if output_format != "csv":  # the others need no terminal to be safe: somebody pages through them later
        assert not CONTROL.search(output.format_result(relation, Style(output_format)))


def test_a_file_of_csv_holds_the_values_as_they_are(con: duckdb.DuckDBPyConnection) -> None:
    relation = con.sql("SELECT $text AS value", params={"text": f"{ATTACK}\n=1"})
    file = io.StringIO(newline="")
    output.writer(file)(output.format_result(relation, Style("csv")))
    file.seek(0)
    assert list(csv.reader(file)) == [["value"], [f"{ATTACK}\n=1"]]


def test_errors_do_not_command_the_terminal(con: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(duckdb.ConversionException) as raised:
        con.execute("SELECT CAST($1 AS INTEGER)", ["\x1b[2J\u009b1m"]).fetchall()
    said = statements.sentence(raised.value)
    assert "Could not convert string '\\e[2J\\u009b1m'" in said
    assert not CONTROL.search(said)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<img src=x onerror=alert(1)>", "&lt;img src=x onerror=alert(1)>"),
        ("[click](javascript:alert(1))", "[click]\\(javascript:alert(1))"),
        ("![](https://example.org/pixel)", "![]\\(https://example.org/pixel)"),
        ("a|b `code` \\| &lt;", "a\\|b \\`code\\` \\\\\\| &amp;lt;"),
        ("two\nlines\r\nthree", "two<br>lines<br>three"),
    ],
)
def test_markdown_shows_a_cell_as_it_is(con: duckdb.DuckDBPyConnection, text: str, shown: str) -> None:
    relation = con.sql("SELECT $text AS value", params={"text": text})
    assert output.format_result(relation, Style("markdown")) == f"| value |\n| --- |\n| {shown} |\n"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("=1+1", "'=1+1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"),
        ("-2+3", "'-2+3"),
        ("\t=1", "'\t'=1"),
        (" =1", "' =1"),
        ('"=1"', '\'"=1"'),
        ("＝1+1", "'＝1+1"),
        ("a;=1", "a;'=1"),
        ("a\n=1", "a\n'=1"),
        ("-5", "-5"),
        ("+4.5e-3", "+4.5e-3"),
        ("-3%", "-3%"),
        ("12-14", "12-14"),
        ("a=b", "a=b"),
        ("", ""),
    ],
)
def test_csv_without_formulas(con: duckdb.DuckDBPyConnection, text: str, written: str) -> None:
    relation = con.sql('SELECT $text AS value, -1 AS number, -0.5 AS "=name"', params={"text": text})
    rows = list(csv.reader(io.StringIO(output.format_result(relation, Style("csv", formulas=False)), newline="")))
    assert rows == [["value", "number", "'=name"], [written, "-1", "-0.5"]]


@given(text=st.text(alphabet="=+-@;,\t\r\n\"' 1a＝", max_size=12))
def test_no_spreadsheet_finds_a_formula(shared: duckdb.DuckDBPyConnection, text: str) -> None:
    """Whatever it splits at, and whether or not it heeds quotes: no cell begins with a sign of formulas."""
    relation = shared.sql("SELECT 1 AS number, $text AS value", params={"text": text})
    printed_text = output.format_result(relation, Style("csv", formulas=False))
    for separators in (r"[;\n\r]", r"[\t\n\r]"):
        for cell in re.split(separators, printed_text):
            assert not cell.lstrip(' "\t').startswith(SIGNS), (text, cell)
    _, (_, value) = csv.reader(io.StringIO(printed_text, newline=""))
    assert not value.startswith(SIGNS) or re.fullmatch(r"[-+]1+", value)
    assert text == value or re.sub("'", "", value) == re.sub("'", "", text)


def test_numbers_are_set_right_and_lists_left(con: duckdb.DuckDBPyConnection) -> None:
    query = "SELECT 1 AS a, 2.5::DECIMAL(4, 1) AS b, [1] AS c, [0.5::DOUBLE] AS d, 'x' AS e"
    assert printed(con, query, output_format="markdown").splitlines()[1] == "| ---: | ---: | --- | --- | --- |"


def test_rows_of_a_table(con: duckdb.DuckDBPyConnection) -> None:
    query = "SELECT i AS number FROM range(100) AS t(i)"
    assert "│     77 │" not in printed(con, query)
    assert "│     77 │" in printed(con, query, max_rows=100)
    assert printed(con, query, max_rows=4).count("\n") < printed(con, query).count("\n")

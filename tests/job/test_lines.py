"""The lines of values of TOML files."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckanon.job.policy_file import line_of
from tests.profiles import cheap

DOCUMENT = '''\
# a comment with [brackets] = "and more"
title = "first"

[source]
"strange key = 1" = 3   # [promises]
query = """
[promises]
k = 5
"""
list = [
  1,
  { inner = 2 },
]
dotted.name = 7

[tables.visits.promises]
k = 10

[[array]]
a = 1
[[array]]
a = 2
[array.part]
b = 3
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("title",), 2),
        (("source",), 4),
        (("source", "strange key = 1"), 5),
        (("source", "query"), 6),
        (("source", "list", 1, "inner"), 12),
        (("source", "dotted", "name"), 14),
        (("tables", "visits", "promises", "k"), 17),
        (("tables", "visits", "promises", "l"), 16),
        (("promises", "k"), 1),
        (("array", 0, "a"), 20),
        (("array", 1, "a"), 22),
        (("array", 1, "part", "b"), 24),
    ],
)
def test_the_line_of_a_value(path: tuple[str | int, ...], line: int) -> None:
    assert line_of(DOCUMENT, path) == line


@pytest.mark.thorough
@cheap
@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["C"]), min_size=1),
        st.dictionaries(
            st.text(st.characters(exclude_categories=["C"])), st.text(st.characters(exclude_categories=["C"]))
        ),
        max_size=4,
    )
)
def test_any_names_and_values_are_found(document: dict[str, dict[str, str]]) -> None:
    lines: list[str] = []
    where = {}
    for table, values in document.items():
        lines.append(f"[{quoted(table)}]")
        where[table,] = len(lines)
        for key, value in values.items():
            lines += ["# [comment]", f"{quoted(key)} = {quoted(value)}"]
            where[table, key] = len(lines)
    assert {path: line_of("\n".join(lines), path) for path in where} == where


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)

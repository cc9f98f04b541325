"""The declarations of functions, read from the headers of macro files."""

from __future__ import annotations

from duckanon._bridge import macros
from tests import signatures
from tests.signatures import ParameterDeclaration

SQL = """-- anon.narrow: the first lines are a sentence.
--     width        column of the result, described first
--     k, width     least number of people,
--                  continued [a whole number, at least 2]
--     nulls        as in anon.k_anonymity
--     kinds        which ones, such as ['a', 'b']
-- test: tests/assess/narrow.test
CREATE OR REPLACE MACRO anon.narrow() AS TABLE
SELECT 1;
COMMENT ON MACRO TABLE anon.narrow IS
    'It''s one sentence, '
    'in two lines.';
"""


def declared(sql: str, parameters: str) -> signatures.FunctionDeclaration:
    file = macros.MacroFile("narrow", "assess", parameters, needs_python=False, is_table=True, sql=sql)
    return signatures.declared_function(file)


def test_headers_declare_parameters() -> None:
    function = declared(SQL, "tbl, k, width := 10_000, nulls := 'value', kinds := ['a', 'b'], rest := NULL")
    assert (function.name, function.stage, function.summary) == ("narrow", "assess", "It's one sentence, in two lines.")
    tbl, k, width, nulls, kinds, rest = function.parameters
    assert tbl == ParameterDeclaration("tbl", None, "name of the table or view", "a text")
    assert k == ParameterDeclaration("k", None, "least number of people, continued", "a whole number, at least 2")
    assert width == ParameterDeclaration("width", "10_000", k.meaning, k.allowed)
    assert nulls.default == "'value'"
    assert nulls.meaning.startswith("'value': NULL is a value;")
    assert nulls.allowed == "one of 'value', 'drop', 'any'"
    assert kinds == ParameterDeclaration("kinds", "['a', 'b']", "which ones, such as ['a', 'b']", "")
    assert rest == ParameterDeclaration("rest", "NULL", "", "")


def test_a_function_may_have_no_parameters() -> None:
    assert declared(SQL, "").parameters == ()

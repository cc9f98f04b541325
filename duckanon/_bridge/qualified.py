"""Macros with qualified calls: the functions that one calls are DuckDB's own, whatever the user has called a macro.

DuckDB looks up the names in a macro's body when the macro is called, along the search path of the caller: a user's
macro ``random`` or ``hash`` would run in place of the builtin. So every call is written ``system.main.random()`` before
the macros are created, and so are the calls behind lists (``[1, 2]`` is ``list_value(1, 2)``), structs
(``{'a': 1}`` is ``struct_pack("a" := 1)``) and choices of columns (``COLUMNS(lambda name: ...)`` is
``COLUMNS(list_filter(*, lambda name: ...))``). The files of ``sql/`` stay as one would write them.

Some functions of DuckDB are macros themselves, and what these call is looked up in the same way: ``list_sum(x)`` is
written ``list_aggregate(x, 'sum')``; the tests refuse others.

What only the grammar calls keeps its name: operators, subscripts and rows, whose functions (``+``, ``array_extract``)
nobody replaces by accident.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""(?P<comment>--[^\n]*)
      | (?P<text>'(?:[^']|'')*')
      | (?P<quoted>"(?:[^"]|"")*")
      | (?P<space>\s+)
      | (?P<word>[A-Za-z_]\w*)
      | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)

_SYNTAX = {"coalesce"}
"""Written like functions, in lower case, and none."""

_LIST_AGGREGATES = {f"list_{name}": name for name in ("sum", "min", "max", "product", "bool_and")}
"""Macros of DuckDB, and the aggregate that each calls."""

_BUILTIN = "system.main."


def qualify(sql: str) -> str:
    """Write the catalog and schema of DuckDB's own functions before every call of one.

    Keywords are in capitals, functions in small letters with the parenthesis at their name, subscripts with the bracket
    at what they are of.

    Examples:
        >>> print(qualify("SELECT abs(x), [x, 2], t[1], anon.f(x) FROM range(3) AS t(x)"))
        SELECT system.main.abs(x), system.main.list_value(x, 2), t[1], anon.f(x) FROM system.main.range(3) AS t(x)
        >>> print(qualify("SELECT {'of x': list(x)}"))
        SELECT system.main.struct_pack("of x" := system.main.list(x))
    """
    signature = _SIGNATURE.search(sql)
    end = signature.end() if signature else 0
    return _qualify_text(sql[:end]) + _qualify_text(sql[end:])


_SIGNATURE = re.compile(r"^CREATE OR REPLACE MACRO .*?\) AS\b", re.MULTILINE | re.DOTALL)
"""It ends with the one AS that the name of a function can follow, and not an alias."""


def _qualify_text(sql: str) -> str:
    tokens = [(match.lastgroup or "", match[0]) for match in _TOKEN.finditer(sql)]
    written: list[str] = []
    opened: list[str] = []  # the function or aggregate that each bracket belongs to, where it is one of _CLOSED
    before = ""  # the last token that is neither space nor comment
    for place, (kind, token) in enumerate(tokens):
        after = tokens[place + 1][1] if place + 1 < len(tokens) else ""
        is_in_struct = opened[-1:] == ["struct_pack"]
        if kind == "word" and after == "(" and _is_call(token, before):
            written.append(_BUILTIN + ("list_aggregate" if token in _LIST_AGGREGATES else token))
        elif is_in_struct and kind == "text" and after == ":":
            written.append('"' + token[1:-1].replace("''", "'").replace('"', '""') + '" ')
        elif is_in_struct and token == ":" and tokens[place - 1][0] == "text":
            written.append(":=")
        elif kind == "other" and token in "([{":
            function = _function_of_bracket(token, tokens[place - 1], after)
            opened.append(function or _LIST_AGGREGATES.get(tokens[place - 1][1], ""))
            written.append(_OPENED.get(function, token))
        elif kind == "other" and token in ")]}":
            written.append(_CLOSED.get(opened.pop(), token))
        else:
            written.append(token)
        if kind not in ("space", "comment"):
            before = token
    return "".join(written)


def _is_call(word: str, before: str) -> bool:
    """Tell a function from a keyword, a function of ``anon``, and the columns of an alias: ``AS t(x)``."""
    return word == word.lower() and word not in _SYNTAX and before not in (".", "AS")


_OPENED = {
    "list_value": f"{_BUILTIN}list_value(",
    "struct_pack": f"{_BUILTIN}struct_pack(",
    "list_filter": f"({_BUILTIN}list_filter(*, ",
}
_CLOSED = {
    "list_value": ")",
    "struct_pack": ")",
    "list_filter": "))",
    **{name: f", '{name}')" for name in _LIST_AGGREGATES.values()},
}
"""By the function or the aggregate that a bracket belongs to: what it is replaced by, and the one that closes it."""


def _function_of_bracket(bracket: str, previous: tuple[str, str], after: str) -> str:
    """Name the function that a bracket stands for; nothing where it stands for none: ``x[1]``, ``VARCHAR[]``."""
    kind, token = previous
    if bracket == "[" and (kind == "space" or (kind == "other" and token not in ")]}")):
        return "list_value"
    if bracket == "(" and token == "COLUMNS" and after == "lambda":
        return "list_filter"
    return "struct_pack" if bracket == "{" else ""


@dataclass(frozen=True)
class MacroFile:
    """One macro, its comment, and what it needs: a file of ``sql/``, or written from a declaration."""

    name: str
    stage: str
    parameters: str
    needs_python: bool
    is_table: bool
    sql: str

    @property
    def is_public(self) -> bool:
        """Whether the macro is meant for users: helpers begin with an underscore."""
        return not self.name.startswith("_")

    @property
    def calls(self) -> set[str]:
        """The macros that this one calls and that must therefore exist before it."""
        code = re.sub(r"--[^\n]*", "", self.sql)
        return set(re.findall(r"\banon\.(\w+)\(", code)) - {self.name}

    @functools.cached_property
    def immune_sql(self) -> str:
        """The macro as it is created: a user's macros do not take the place of the functions that it calls."""
        return qualify(self.sql)

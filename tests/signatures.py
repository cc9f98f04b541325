"""The declaration of a public function: its parameters with their defaults, their meanings and the values they allow.

A function that is pure SQL declares itself in its macro file: the parameters in its signature, their meanings in the
header. A line of the header names one or several parameters, then, after two spaces or more, what they mean::

    --     k, l    least number of people in a class [a whole number, at least 2]
    --             continued here
    --     person  as in anon.k_anonymity

Text in square brackets at the end says which values are allowed. ``as in`` takes meaning and values from another
function. Lines that name no parameter, such as those of result columns, are passed over. The contract stands in lines
of its own, ``-- promises: OneRow(), InvariantUnder('order')``, in the words of `duckanon._core.common.contracts`. A
function that needs Python is declared in its package's ``declared.py``.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from duckanon._bridge.generated import PUBLIC
from duckanon._bridge.macros import macro_files
from duckanon._bridge.qualified import MacroFile
from duckanon._bridge.sql_text import literal
from duckanon._core.common import contracts
from duckanon._core.common.contracts import Promise

COMMON = {
    "tbl": "name of the table or view [a text]",
    "cols": "columns that the function uses [a list of names]",
    "original": "name of the table that the release was made from [a text]",
    "released": "name of the released table [a text]",
    "boxed": "name of a table of intervals, such as `anon.boxes` returns [a text]",
}
"""Parameters that mean the same in most functions, for headers that do not describe them."""

_LINE = re.compile(r"--     (?P<names>\w+(?:(?:, | \| )\w+)*)(?:  +|: )(?P<text>\S.*)")
_MORE = re.compile(r"--      +(?P<text>\S.*)")
_ALLOWED = re.compile(r"(?P<meaning>.*) \[(?P<allowed>(?!')[^\[\]]+)\]")
_REFERENCE = re.compile(r"as in `?anon\.(?P<name>\w+)`?\b")


@dataclass(frozen=True)
class ParameterDeclaration:
    """A parameter: its default in SQL (None where it is required), its meaning, and the values that it allows."""

    name: str
    default: str | None
    meaning: str = ""
    allowed: str = ""


@dataclass(frozen=True)
class FunctionDeclaration:
    """A public function: its name and stage, its comment, and its parameters in the order of a call."""

    name: str
    stage: str
    summary: str
    parameters: tuple[ParameterDeclaration, ...]
    promises: tuple[Promise, ...] = ()


@functools.cache
def declared_function(file: MacroFile) -> FunctionDeclaration:
    """Return the declaration of a public function, from its package's ``declared.py`` or from its macro file."""
    declared = PUBLIC.get(file.name)
    promises = declared.promises if declared else header_promises(file.sql)
    parameters = _declared(file) or _parameters(file)
    return FunctionDeclaration(file.name, file.stage, _summary(file.sql), parameters, promises)


def header_promises(sql: str) -> tuple[Promise, ...]:
    """Return the contract that the header of a macro file declares; none where there is none."""
    found = re.search(r"^-- promises: (.*(?:\n--           .*)*)", sql, re.MULTILINE)
    text = found[1].replace("\n--", " ") if found else ""
    words = {name: value for name, value in vars(contracts).items() if not name.startswith("_")}
    return tuple(eval(f"({text},)", {"__builtins__": {}}, words)) if text else ()


def _declared(file: MacroFile) -> tuple[ParameterDeclaration, ...]:
    """Return the parameters that a package declares in Python; none where the function is described in its file."""
    declared = PUBLIC.get(file.name)
    return tuple(
        ParameterDeclaration(one.name, None if one.is_required else literal(one.default), one.meaning, one.allowed)
        for one in (declared.flat if declared else ())
    )


def _parameters(file: MacroFile) -> tuple[ParameterDeclaration, ...]:
    texts = COMMON | _header_texts(file.sql)
    defaults = [part.partition(" := ")[::2] for part in _split(file.parameters)]
    return tuple(_described(name, default or None, texts.get(name, "")) for name, default in defaults)


def _described(name: str, default: str | None, text: str) -> ParameterDeclaration:
    """Return a parameter with what a header says of it, or what that refers to."""
    if (reference := _REFERENCE.match(text)) and (same := _same_parameter(reference["name"], name)):
        return ParameterDeclaration(name, default, same.meaning, same.allowed)
    if split := _ALLOWED.fullmatch(text):
        return ParameterDeclaration(name, default, split["meaning"], split["allowed"])
    return ParameterDeclaration(name, default, text)


def _same_parameter(function: str, name: str) -> ParameterDeclaration | None:
    """Return the parameter of this name that another function describes; None where it does not."""
    for file in macro_files():
        if file.name == function:
            for parameter in _declared(file):
                if parameter.name == name:
                    return parameter
            text = (COMMON | _header_texts(file.sql)).get(name)
            return _described(name, None, text) if text else None
    return None


def _header_texts(sql: str) -> dict[str, str]:
    """Return what the header of a macro file says of each name, lines joined."""
    texts: dict[str, str] = {}
    names: list[str] = []
    for line in sql.partition("\nCREATE ")[0].splitlines():
        if found := _LINE.fullmatch(line):
            names = re.split(r", | \| ", found["names"])
            texts |= dict.fromkeys(names, found["text"])
        elif names and (more := _MORE.fullmatch(line)):
            texts |= {name: f"{texts[name]} {more['text']}" for name in names}
        else:
            names = []
    return texts


def _split(parameters: str) -> list[str]:
    """Split the parameters of a signature at their commas, those in brackets and quotes apart."""
    return re.findall(r"(?:\[[^\]]*\]|\{[^}]*\}|'[^']*'|[^,\s]|(?<!,)\s+)+", parameters)


def _summary(sql: str) -> str:
    """Return the comment of a macro."""
    comment = re.search(r"^COMMENT ON .*? IS\s+(.*);", sql, re.MULTILINE | re.DOTALL)
    return "".join(re.findall(r"'((?:[^']|'')*)'", comment[1])).replace("''", "'") if comment else ""

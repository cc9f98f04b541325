"""Calls of our functions in a text of SQL: which options are named, which values stand there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_TOKEN = re.compile(
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]* | [()\[\]{},] | \w+\s*(?::=|=>) | [^'"()\[\]{},\w]+ | \w+""",
    re.VERBOSE,
)


class Call(NamedTuple):
    """A call.

    Attributes:
        name: The function, without ``anon.``.
        positional: The arguments without a name, as they are written.
        options: The arguments with one.
    """

    name: str
    positional: list[str]
    options: dict[str, str]

    def texts(self, place: int) -> list[str]:
        """Return the texts in quotes of an argument without a name; the argument itself where it is a name."""
        if place >= len(self.positional):
            return []
        argument = self.positional[place]
        found = [text.replace("''", "'") for text in re.findall(r"'((?:[^']|'')*)'", argument)]
        return found or ([argument] if re.fullmatch(r"\w+", argument) else [])


def calls_of(statement: str, name: str = r"\w+") -> Iterator[Call]:
    """Yield the calls of a function, or of any.

    Examples:
        >>> next(calls_of("FROM anon.plan('t', ['a', 'b'], k := 5, persn := 'id') LIMIT 3"))
        Call(name='plan', positional=["'t'", "['a', 'b']"], options={'k': '5', 'persn': "'id'"})
    """
    for found in re.finditer(rf"\banon\s*\.\s*({name})\s*\(", statement, re.IGNORECASE):
        yield _call(found[1].lower(), statement[found.end() :])


def _call(name: str, rest: str) -> Call:
    call, depth, option, argument = Call(name, [], {}), 1, "", ""
    for token in _TOKEN.findall(rest):
        depth += (token in ("(", "[", "{")) - (token in (")", "]", "}"))
        if depth == 0 or (depth == 1 and token == ","):
            if option:
                call.options[option] = argument.strip()
            elif argument.strip():
                call.positional.append(argument.strip())
            option = argument = ""
            if depth == 0:
                break
        elif depth == 1 and not argument.strip() and re.fullmatch(r"\w+\s*(?::=|=>)", token):
            option = re.split(r"\W", token)[0]
        elif not token.startswith("--"):
            argument += token
    return call

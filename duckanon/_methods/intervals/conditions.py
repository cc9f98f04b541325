"""Conditions on the columns of a table, as text: read into a tree, never run as SQL.

- A condition is one comparison, or several that are joined by AND, OR, NOT and parentheses.
- A comparison is ``column < value`` or ``value < column``, with any of ``= <> != < <= > >=``;
  ``column [NOT] BETWEEN value AND value``; ``column [NOT] IN (value, ...)``; or ``column IS [NOT] NULL``.
- A value is a number, a text, TRUE, FALSE, ``DATE '2020-01-31'`` or ``TIMESTAMP '2020-01-31 12:00:00'``.
- A column is a word, or any name in double quotes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import NoReturn, TypeAlias

# A value as it is written; times are texts until the type of their column is known.
Value: TypeAlias = Fraction | str | bool


@dataclass(frozen=True)
class Test:
    """A comparison of a column with values."""

    column: str  # its name as it is written
    operator: str  # one of ``= <> < <= > >=``, ``BETWEEN``, ``IN`` and ``NULL``
    # what it is compared with: one value, two for ``BETWEEN``, any number for ``IN``, none for ``NULL``
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Not:
    """A condition that holds where its part is false."""

    part: Condition


@dataclass(frozen=True)
class Joined:
    """A condition that holds where all of its parts do, or any."""

    is_and: bool
    parts: tuple[Condition, ...]


Condition: TypeAlias = Test | Not | Joined

_TOKEN = re.compile(
    r"""\s*(?:(?P<text>'(?:[^']|'')*')
      | (?P<quoted>"(?:[^"]|"")+")
      | (?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,3})?(?![\w.]))
      | (?P<word>[^\W\d]\w*)
      | (?P<sign><=|>=|<>|!=|==|[=<>(),]))""",
    re.VERBOSE,
)
_WORDS = {"AND", "OR", "NOT", "BETWEEN", "IN", "IS", "NULL", "TRUE", "FALSE", "DATE", "TIMESTAMP"}
_COMPARISONS = {"=": "=", "==": "=", "<>": "<>", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_TURNED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_LONGEST = 10_000  # characters
_DEEPEST = 50  # parentheses and NOTs within each other


def parse(text: object) -> Condition:
    """Read a condition, or refuse anything that is not one.

    Examples:
        >>> parse("sbp >= 140")
        Test(column='sbp', operator='>=', values=(Fraction(140, 1),))
    """
    if not isinstance(text, str) or not text.strip():
        shown = "NULL" if text is None else repr(text)
        raise ValueError(f"condition must be a text such as 'sbp >= 140 AND age BETWEEN 30 AND 40'; got {shown}.")
    if len(text) > _LONGEST:
        raise ValueError(f"condition must have at most {_LONGEST} characters; got {len(text)}.")
    return _Reader(text).condition()


class _Reader:
    """Reads a condition token by token, from left to right."""

    def __init__(self, text: str) -> None:
        self.tokens: list[tuple[str, str]] = []
        place = 0
        while text[place:].strip():
            match = _TOKEN.match(text, place)
            if match is None:
                _refuse(text[place:].strip())
            self.tokens.append((str(match.lastgroup), match[str(match.lastgroup)]))
            place = match.end()
        self.tokens.append(("end", ""))
        self.place = 0

    def condition(self) -> Condition:
        condition = self.either(0)
        if self.tokens[self.place][0] != "end":
            self.refuse()
        return condition

    def either(self, depth: int) -> Condition:
        return self.joined("OR", lambda: self.joined("AND", lambda: self.single(depth)))

    def joined(self, word: str, read: Callable[[], Condition]) -> Condition:
        parts = [read()]
        while self.takes(word):
            parts.append(read())
        return parts[0] if len(parts) == 1 else Joined(word == "AND", tuple(parts))

    def single(self, depth: int) -> Condition:
        if depth > _DEEPEST:
            raise ValueError(f"condition must not nest more than {_DEEPEST} parentheses; got more.")
        if self.takes("NOT"):
            return Not(self.single(depth + 1))
        if self.takes("("):
            inner = self.either(depth + 1)
            self.expect(")")
            return inner
        return self.comparison()

    def comparison(self) -> Condition:
        value = self.value()
        if value is not None:
            sign = self.comparison_sign()
            return Test(self.column(), _TURNED[sign], (value,))
        column = self.column()
        if self.takes("IS"):
            is_not = self.takes("NOT")
            self.expect("NULL")
            return _turned(Test(column, "NULL", ()), is_not)
        is_not = self.takes("NOT")
        if self.takes("BETWEEN"):
            low = self.needed_value()
            self.expect("AND")
            return _turned(Test(column, "BETWEEN", (low, self.needed_value())), is_not)
        if self.takes("IN"):
            self.expect("(")
            values = [self.needed_value()]
            while self.takes(","):
                values.append(self.needed_value())
            self.expect(")")
            return _turned(Test(column, "IN", tuple(values)), is_not)
        if is_not:
            self.refuse()
        return Test(column, self.comparison_sign(), (self.needed_value(),))

    def comparison_sign(self) -> str:
        kind, token = self.tokens[self.place]
        if kind != "sign" or token not in _COMPARISONS:
            self.refuse()
        self.place += 1
        return _COMPARISONS[token]

    def column(self) -> str:
        kind, token = self.tokens[self.place]
        if kind == "quoted":
            self.place += 1
            return token[1:-1].replace('""', '"')
        if kind != "word" or token.upper() in _WORDS:
            self.refuse()
        self.place += 1
        return token

    def needed_value(self) -> Value:
        value = self.value()
        if value is None:
            self.refuse()
        return value

    def value(self) -> Value | None:
        """Read a value, if there is one."""
        kind, token = self.tokens[self.place]
        word = token.upper() if kind == "word" else ""
        if word in ("DATE", "TIMESTAMP") and self.tokens[self.place + 1][0] == "text":
            self.place += 1
            kind, token = self.tokens[self.place]
        if kind == "number":
            self.place += 1
            return Fraction(token)
        if kind == "text":
            self.place += 1
            return token[1:-1].replace("''", "'")
        if word in ("TRUE", "FALSE"):
            self.place += 1
            return word == "TRUE"
        return None

    def takes(self, word: str) -> bool:
        """Take a keyword or a sign, if it comes next."""
        kind, token = self.tokens[self.place]
        is_next = kind in ("word", "sign") and token.upper() == word
        self.place += is_next
        return is_next

    def expect(self, word: str) -> None:
        if not self.takes(word):
            self.refuse()

    def refuse(self) -> NoReturn:
        _refuse(" ".join(token for _, token in self.tokens[self.place :]).strip())


def _turned(test: Test, is_not: bool) -> Condition:
    return Not(test) if is_not else test


def _refuse(rest: str) -> NoReturn:
    where = f"something else from {rest[:40]!r} on" if rest else "one that ends too early"
    raise ValueError(
        "condition must compare columns with values, such as 'sbp >= 140 AND age BETWEEN 30 AND 40', joined by AND, OR "
        f"and NOT; got {where}."
    )

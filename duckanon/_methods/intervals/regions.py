"""Conditions on the columns of a table, as text, and the regions where they hold: read into a tree, never run as SQL.

- A condition is one comparison, or several that are joined by AND, OR, NOT and parentheses.
- A comparison is ``column < value`` or ``value < column``, with any of ``= <> != < <= > >=``;
  ``column [NOT] BETWEEN value AND value``; ``column [NOT] IN (value, ...)``; or ``column IS [NOT] NULL``.
- A value is a number, a text, TRUE, FALSE, ``DATE '2020-01-31'`` or ``TIMESTAMP '2020-01-31 12:00:00'``.
- A column is a word, or any name in double quotes.

A set of values is a list of boundaries between values: a boundary lies just before a value, `(value, 0)`, or just after
it, `(value, 1)`, and the set reaches from each boundary with an even index to the next one.  NULL belongs to it or not,
beside all values.  A region maps columns to sets, and holds where all of them do.  A condition is a list of regions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import NoReturn, TypeAlias

import numpy as np

from duckanon._core.common.arrays import Bools, Floats

# A value as it is written; times are texts until the type of their column is known.
Value: TypeAlias = Fraction | str | bool


@dataclass(frozen=True)
class ColumnTest:
    """A comparison of a column with values."""

    column: str  # its name as it is written
    operator: str  # one of ``= <> < <= > >=``, ``BETWEEN``, ``IN`` and ``NULL``
    # what it is compared with: one value, two for ``BETWEEN``, any number for ``IN``, none for ``NULL``
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Negation:
    """A condition that holds where its part is false."""

    part: Condition


@dataclass(frozen=True)
class Junction:
    """A condition that holds where all of its parts do, or any."""

    is_and: bool
    parts: tuple[Condition, ...]


Condition: TypeAlias = ColumnTest | Negation | Junction

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


def parse_condition(text: object) -> Condition:
    """Read a condition, or refuse anything that is not one.

    Examples:
        >>> parse_condition("sbp >= 140")
        ColumnTest(column='sbp', operator='>=', values=(Fraction(140, 1),))
    """
    if not isinstance(text, str) or not text.strip():
        shown = "NULL" if text is None else repr(text)
        raise ValueError(f"condition must be a text such as 'sbp >= 140 AND age BETWEEN 30 AND 40'; got {shown}.")
    if len(text) > _LONGEST:
        raise ValueError(f"condition must have at most {_LONGEST} characters; got {len(text)}.")
    return _ConditionReader(text).condition()


class _ConditionReader:
    """Reads a condition token by token, from left to right."""

    def __init__(self, text: str) -> None:
        self.tokens: list[tuple[str, str]] = []
        position = 0
        while text[position:].strip():
            match = _TOKEN.match(text, position)
            if match is None:
                _refuse(text[position:].strip())
            self.tokens.append((str(match.lastgroup), match[str(match.lastgroup)]))
            position = match.end()
        self.tokens.append(("end", ""))
        self.index = 0

    def condition(self) -> Condition:
        condition = self.read_either(0)
        if self.tokens[self.index][0] != "end":
            self.refuse()
        return condition

    def read_either(self, depth: int) -> Condition:
        return self.read_junction("OR", lambda: self.read_junction("AND", lambda: self.read_single(depth)))

    def read_junction(self, word: str, read: Callable[[], Condition]) -> Condition:
        parts = [read()]
        while self.takes(word):
            parts.append(read())
        return parts[0] if len(parts) == 1 else Junction(word == "AND", tuple(parts))

    def read_single(self, depth: int) -> Condition:
        if depth > _DEEPEST:
            raise ValueError(f"condition must not nest more than {_DEEPEST} parentheses; got more.")
        if self.takes("NOT"):
            return Negation(self.read_single(depth + 1))
        if self.takes("("):
            inner = self.read_either(depth + 1)
            self.expect(")")
            return inner
        return self.read_comparison()

    def read_comparison(self) -> Condition:
        value = self.value()
        if value is not None:
            sign = self.read_sign()
            return ColumnTest(self.column(), _TURNED[sign], (value,))
        column = self.column()
        if self.takes("IS"):
            is_not = self.takes("NOT")
            self.expect("NULL")
            return _negate(ColumnTest(column, "NULL", ()), is_not)
        is_not = self.takes("NOT")
        if self.takes("BETWEEN"):
            low = self.require_value()
            self.expect("AND")
            return _negate(ColumnTest(column, "BETWEEN", (low, self.require_value())), is_not)
        if self.takes("IN"):
            self.expect("(")
            values = [self.require_value()]
            while self.takes(","):
                values.append(self.require_value())
            self.expect(")")
            return _negate(ColumnTest(column, "IN", tuple(values)), is_not)
        if is_not:
            self.refuse()
        return ColumnTest(column, self.read_sign(), (self.require_value(),))

    def read_sign(self) -> str:
        kind, token = self.tokens[self.index]
        if kind != "sign" or token not in _COMPARISONS:
            self.refuse()
        self.index += 1
        return _COMPARISONS[token]

    def column(self) -> str:
        kind, token = self.tokens[self.index]
        if kind == "quoted":
            self.index += 1
            return token[1:-1].replace('""', '"')
        if kind != "word" or token.upper() in _WORDS:
            self.refuse()
        self.index += 1
        return token

    def require_value(self) -> Value:
        value = self.value()
        if value is None:
            self.refuse()
        return value

    def value(self) -> Value | None:
        """Read a value, if there is one."""
        kind, token = self.tokens[self.index]
        word = token.upper() if kind == "word" else ""
        if word in ("DATE", "TIMESTAMP") and self.tokens[self.index + 1][0] == "text":
            self.index += 1
            kind, token = self.tokens[self.index]
        if kind == "number":
            self.index += 1
            return Fraction(token)
        if kind == "text":
            self.index += 1
            return token[1:-1].replace("''", "'")
        if word in ("TRUE", "FALSE"):
            self.index += 1
            return word == "TRUE"
        return None

    def takes(self, word: str) -> bool:
        """Take a keyword or a sign, if it comes next."""
        kind, token = self.tokens[self.index]
        is_next = kind in ("word", "sign") and token.upper() == word
        self.index += is_next
        return is_next

    def expect(self, word: str) -> None:
        if not self.takes(word):
            self.refuse()

    def refuse(self) -> NoReturn:
        _refuse(" ".join(token for _, token in self.tokens[self.index :]).strip())


def _negate(test: ColumnTest, is_not: bool) -> Condition:
    return Negation(test) if is_not else test


def _refuse(rest: str) -> NoReturn:
    where = f"something else from {rest[:40]!r} on" if rest else "one that ends too early"
    raise ValueError(
        "condition must compare columns with values, such as 'sbp >= 140 AND age BETWEEN 30 AND 40', joined by AND, OR "
        f"and NOT; got {where}."
    )


Boundary: TypeAlias = tuple[float, int]
FIRST: Boundary = (-np.inf, 0)
LAST: Boundary = (np.inf, 1)
_MOST = 1000  # regions of a condition at most: a few comparisons have a few, nested ORs may multiply


@dataclass(frozen=True)
class ValueSet:
    """A set of values of one column."""

    boundaries: tuple[Boundary, ...]  # ascending, an even number of them
    has_null: bool = False  # whether NULL belongs to it

    @property
    def is_empty(self) -> bool:
        """Whether nothing belongs to it."""
        return not self.boundaries and not self.has_null

    def complement(self, has_null: bool) -> ValueSet:
        """Return all other values, with NULL or without."""
        ends = [FIRST, *self.boundaries, LAST]
        pairs = zip(ends[::2], ends[1::2], strict=True)
        return ValueSet(tuple(end for pair in pairs if pair[0] < pair[1] for end in pair), has_null)

    def within(self, other: ValueSet) -> ValueSet:
        """Return the values that belong to both."""
        common: list[Boundary] = []
        for start, stop in self.ranges():
            for other_start, other_stop in other.ranges():
                if max(start, other_start) < min(stop, other_stop):
                    common += [max(start, other_start), min(stop, other_stop)]
        return ValueSet(tuple(common), self.has_null and other.has_null)

    def ranges(self) -> list[tuple[Boundary, Boundary]]:
        """Return the ranges of which it consists."""
        return list(zip(self.boundaries[::2], self.boundaries[1::2], strict=True))


def unite_ranges(ranges: list[tuple[Boundary, Boundary]]) -> ValueSet:
    """Return the values that belong to any of these ranges; ranges may be empty."""
    joined: list[Boundary] = []
    for start, stop in sorted(ranges):
        if start >= stop:
            continue
        if joined and start <= joined[-1]:
            joined[-1] = max(joined[-1], stop)
        else:
            joined += [start, stop]
    return ValueSet(tuple(joined))


Region: TypeAlias = Mapping[str, ValueSet]


def find_regions(
    condition: Condition, set_of: Callable[[ColumnTest], ValueSet], holds: bool, is_negated: bool = False
) -> list[Region]:
    """Find the regions, which may overlap, where a condition, or its negation, holds, or where it does not.

    As in SQL it does not hold where it is unknown, for NULL. NOT is moved inward: what is unknown stays unknown.
    """
    if isinstance(condition, Negation):
        return find_regions(condition.part, set_of, holds, not is_negated)
    if isinstance(condition, Junction):
        parts = [find_regions(part, set_of, holds, is_negated) for part in condition.parts]
        # NOT turns AND into OR, and so does looking for where it does not hold.
        if condition.is_and == (is_negated == (not holds)):
            return _intersect_all(parts)
        return _refuse_many([region for part in parts for region in part])
    values = set_of(condition)
    if is_negated:
        values = values.complement(has_null=False)
    if not holds:
        values = values.complement(has_null=not values.has_null)
    return [] if values.is_empty else [{condition.column.lower(): values}]


def _intersect_all(parts: list[list[Region]]) -> list[Region]:
    common: list[Region] = [{}]
    for part in parts:
        pairs = _refuse_many([(region, other) for region in common for other in part])
        met = (_intersect(region, other) for region, other in pairs)
        common = [region for region in met if region is not None]
    return common


def _intersect(region: Region, other: Region) -> Region | None:
    """Return the intersection of two regions; None where it is empty."""
    common = dict(region)
    for column, values in other.items():
        common[column] = values.within(common[column]) if column in common else values
        if common[column].is_empty:
            return None
    return common


def separate_regions(overlapping: list[Region]) -> list[Region]:
    """Cut overlapping regions into regions that do not overlap and cover the same."""
    disjoint: list[Region] = []
    for region in overlapping:
        pieces = [region]
        for earlier in disjoint:
            pieces = _refuse_many([rest for piece in pieces for rest in _subtract(piece, earlier)])
        disjoint = _refuse_many(disjoint + pieces)
    return disjoint


def _subtract(region: Region, other: Region) -> list[Region]:
    """Return a region without another, in pieces that do not overlap."""
    pieces: list[Region] = []
    rest: Region | None = region
    for column, values in other.items():
        if rest is None:
            break
        outside = _intersect(rest, {column: values.complement(has_null=not values.has_null)})
        if outside is not None:
            pieces.append(outside)
        rest = _intersect(rest, {column: values})
    return pieces


def _refuse_many(regions: list) -> list:  # type: ignore[type-arg]
    if len(regions) > _MOST:
        raise ValueError(f"condition must be simpler; it falls into more than {_MOST} regions.")
    return regions


@dataclass(frozen=True)
class ColumnEnds:
    """The intervals of a column."""

    # low, high: one per box: their ends, infinite where they are open; in steps where the column has only whole steps
    low: Floats
    high: Floats
    is_null: Bools  # one per box: where there is no value, in an exact column
    has_steps: bool  # whether there are no values between the steps

    def meets(self, values: ValueSet) -> Bools:
        """Tell which intervals have a value in a set."""
        is_met = self.is_null & values.has_null
        for start, stop in values.ranges():
            starts_before = (self.high > start[0]) | ((self.high == start[0]) & (start[1] == 0))
            stops_after = (self.low < stop[0]) | ((self.low == stop[0]) & (stop[1] == 1))
            is_met |= ~self.is_null & starts_before & stops_after
        return is_met

    def share(self, values: ValueSet) -> Floats:
        """Return which share of each interval lies in a set.

        An interval with one open end counts as that end, and one with two as half inside, unless all of it is.
        """
        step = 1.0 if self.has_steps else 0.0
        low = np.where(np.isfinite(self.low), self.low, self.high)
        high = np.where(np.isfinite(self.high), self.high, self.low)
        is_known = np.isfinite(low) & ~self.is_null
        low, high = np.where(is_known, low, 0.0), np.where(is_known, high, 0.0)
        width = high - low + step
        inside = np.zeros(len(low))
        for start, stop in values.ranges():
            inside += np.clip(np.minimum(high + step, stop[0]) - np.maximum(low, start[0]), 0.0, None)
        points = ColumnEnds(low, high, np.zeros(len(low), bool), self.has_steps).meets(values).astype(np.float64)
        known = np.where(width > 0, inside / np.where(width > 0, width, 1.0), points)
        is_all = values.boundaries == (FIRST, LAST)
        open_share = 1.0 if is_all else 0.5 if values.boundaries else 0.0
        unknown = np.where(self.is_null, float(values.has_null), open_share)
        return np.asarray(np.where(is_known, known, unknown))

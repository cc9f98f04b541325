"""One planned column as an expression: CASE over the buckets, in a form that every engine understands.

What a row gets may be a label or the number of a label: an `Outcome` says which. All tests are such that NULL, NaN and
values that the plan has never seen get what `anon.apply_plan` gives them.

The type of a column: given by the caller, or guessed from the texts of a plan.

A plan says what its buckets hold, not the type of the column that it was made for. Most SQL is the same for all types;
where it is not, a guess may only lead to a refusal, which the caller answers by saying the type.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from sqlglot import exp

from duckanon._core.common import arrays as arrow_types
from duckanon._render.dialects import Dialect, column
from duckanon._render.plans import Bucket, PlannedColumn, number_of, time_text

UNKNOWN = "unknown"
SHORT = "short"
"""Numbers of which each is a double: comparing them needs no cast."""
NUMBER = "number"
DECIMAL = "decimal"
FLOAT = "float"
BOOLEAN = "boolean"
DATE = "date"
TIMESTAMP = "timestamp"
ZONED = "timestamp with time zone"
TEXT = "text"
OTHER = "other"

IS_NUMBER = {SHORT, NUMBER, DECIMAL, FLOAT}
IS_TIME = {DATE, TIMESTAMP, ZONED}

_TYPES_OF_KIND = {
    SHORT: "TINYINT SMALLINT INT MEDIUMINT UTINYINT USMALLINT UINT",
    NUMBER: "BIGINT UBIGINT INT128 UINT128 INT256 UINT256",
    DECIMAL: "DECIMAL BIGDECIMAL UDECIMAL MONEY SMALLMONEY",
    FLOAT: "FLOAT DOUBLE",
    BOOLEAN: "BOOLEAN BIT",
    DATE: "DATE DATE32",
    TIMESTAMP: "TIMESTAMP TIMESTAMP_S TIMESTAMP_MS TIMESTAMP_NS TIMESTAMPNTZ DATETIME DATETIME2 DATETIME64",
    ZONED: "TIMESTAMPTZ TIMESTAMPLTZ",
    TEXT: "TEXT VARCHAR CHAR NCHAR NVARCHAR BPCHAR ENUM NAME",
}
_KIND_OF_TYPE = {name: kind for kind, names in _TYPES_OF_KIND.items() for name in names.split()}


def kinds_of_columns(types: Any) -> dict[str, str]:
    """Return the kinds of columns, given their types as `duckanon.render` takes them, by their names in lower case."""
    if types is None:
        return {}
    if isinstance(types, pa.Schema):
        return {field.name.lower(): _arrow_kind(field.type) for field in types}
    if isinstance(types, Mapping) and all(isinstance(part, str) for pair in types.items() for part in pair):
        return {name.lower(): _kind_of_name(type_name) for name, type_name in types.items()}
    raise ValueError(f"types must be a pyarrow.Schema or a dictionary such as {{'age': 'INTEGER'}}; got {types!r}.")


def _arrow_kind(arrow_type: pa.DataType) -> str:
    is_ = pa.types
    if is_.is_dictionary(arrow_type):
        return _arrow_kind(arrow_type.value_type)
    if is_.is_timestamp(arrow_type):
        return TIMESTAMP if arrow_type.tz is None else ZONED
    if is_.is_integer(arrow_type):
        return SHORT if arrow_type.bit_width <= 32 else NUMBER
    tests = (
        (is_.is_decimal, DECIMAL),
        (is_.is_floating, FLOAT),
        (is_.is_boolean, BOOLEAN),
        (is_.is_date, DATE),
        (arrow_types.is_text, TEXT),
    )
    return next((kind for holds, kind in tests if holds(arrow_type)), OTHER)


def _kind_of_name(name: str) -> str:
    try:
        parsed = exp.DataType.build(name, dialect="duckdb")
    except Exception as error:
        raise ValueError(f"types must name types as DuckDB's DESCRIBE does, such as INTEGER; got {name!r}.") from error
    return _KIND_OF_TYPE.get(parsed.this.name, OTHER) if isinstance(parsed.this, exp.DataType.Type) else OTHER


_LOOKS = (
    (BOOLEAN, re.compile(r"true|false")),
    (FLOAT, re.compile(r"[+-]?(\d+\.\d*|\d*\.\d+|\d+(?=[eE]))([eE][+-]?\d+)?|[+-]?inf(inity)?|nan")),
    (TIMESTAMP, re.compile(r"\d{4,}-\d\d-\d\d \d\d:\d\d.*")),
)


def guess_kind(texts: Iterable[str]) -> str:
    """Guess the kind of a column whose values are these texts; one text that is of no kind makes all of them text."""
    known = list(texts)
    return next((kind for kind, look in _LOOKS if known and all(look.fullmatch(text) for text in known)), UNKNOWN)


Outcome = Callable[[str | None], exp.Expression]
"""Writes what a row with a label gets."""

CHAIN = 16
"""Buckets that are compared one after the other; more are halved first, so that 500 take some thirteen comparisons.

In DuckDB, which works through blocks of rows, halves of 8 to 32 are equally fast; other engines compare row by row.
"""

MANY = 200
"""Texts from which on a column is joined with a list of them: engines test the branches of CASE one by one."""

_DIGITS = 15
"""Digits of a decimal that an engine turns into the nearest double, whatever way it takes."""


@dataclass(frozen=True)
class Lookup:
    """A list of texts that a column is joined with: what is compared with them, and what each gets."""

    name: str
    key: exp.Expression
    entries: Sequence[Bucket]

    @property
    def text(self) -> exp.Column:
        """The list's column of texts; NULL where a row has found none."""
        return column(f"{self.name}_text")

    @property
    def outcome(self) -> exp.Column:
        """The list's column of what a text gets."""
        return column(f"{self.name}_label")


@dataclass(frozen=True)
class Recoder:
    """Writes the expression of one column."""

    planned: PlannedColumn
    kind: str  # what is known of its type (`duckanon._render.expressions`)
    dialect: Dialect
    outcome: Outcome
    place: int  # the column's number, for the names of lists

    def expression(self) -> exp.Expression:
        """Return the expression."""
        source = column(self.planned.name)
        case = exp.Case().when(source.is_(exp.null()), self.outcome(self.planned.null_label), copy=False)
        rest = self.outcome(self.planned.rest_label)
        if not self.planned.buckets:
            return case.else_(rest, copy=False)
        if self.planned.covers in ("number", "time"):
            unreadable = self._unreadable(source)
            if unreadable is not None:
                case = case.when(unreadable, rest, copy=False)
            return self._between_ends(case)
        # a label that is found in a list may be NULL, and its text is not
        looked_up = [(exp.not_(lookup.text.is_(exp.null())), lookup.outcome) for lookup in self.lookups()]
        for condition, outcome in looked_up or self._write_tests():
            case = case.when(condition, outcome, copy=False)
        return case.else_(rest, copy=False)

    def lookups(self) -> list[Lookup]:
        """Return the lists that the table must be joined with: none where CASE does."""
        buckets = self.planned.buckets
        if self.planned.covers not in ("value", "prefix") or len(buckets) < MANY or not self.dialect.joins_lists:
            return []
        if self.planned.covers == "value":
            return [] if self.kind == DECIMAL else [Lookup(self._list_name(0), self._text(), buckets)]
        if any(self._begins_the_next(index) for index in range(len(buckets))):
            return []  # which of two prefixes counts is a matter of order
        lengths = sorted({len(bucket.lower or "") for bucket in buckets})
        entries = {length: [bucket for bucket in buckets if len(bucket.lower or "") == length] for length in lengths}
        return [Lookup(self._list_name(length), self._beginning(length), entries[length]) for length in lengths]

    def _list_name(self, length: int) -> str:
        return f"_duckanon_list_{self.place}_{length}"

    def _text(self) -> exp.Expression:
        return self.dialect.text(column(self.planned.name))

    def _beginning(self, length: int) -> exp.Expression:
        """Return the first characters of the column's text."""
        whole = self.dialect.cast_to_text(column(self.planned.name))
        cut = exp.Substring(this=whole, start=exp.Literal.number(1), length=exp.Literal.number(length))
        return self.dialect.exact(cut)

    def _unreadable(self, source: exp.Column) -> exp.Expression | None:
        """Return the test for what is not a number or a time at all, where the engine would not stop at it."""
        if self.dialect.name == "duckdb" and self.planned.covers == "number" and self.kind not in IS_NUMBER:
            return self._number().is_(exp.null())
        if self.dialect.name == "sqlite":  # where each value has a type of its own, and all of them can be compared
            types = ("integer", "real") if self.planned.covers == "number" else ("text",)
            return exp.not_(exp.func("TYPEOF", source.copy(), dialect="sqlite").isin(*types))
        return None

    def _number(self) -> exp.Expression:
        """Return the column as the double by which a plan finds its bucket."""
        source = column(self.planned.name)
        if self.kind == SHORT:
            return source
        if self.dialect.name == "duckdb" and self.kind not in IS_NUMBER:
            return exp.TryCast(this=source, to=exp.DataType.build("double"))
        return exp.cast(source, exp.DataType.build("double"))

    def _between_ends(self, case: exp.Case) -> exp.Expression:
        """Return the CASE with a search among buckets of numbers or times: the last that begins at or before the value.

        NaN is below nothing, here as in DuckDB, where it is above all numbers: it gets the last bucket.
        """
        value = self._number() if self.planned.covers == "number" else column(self.planned.name)
        # neighbours with one label are one bucket
        buckets = [next(same) for _, same in itertools.groupby(self.planned.buckets, key=lambda bucket: bucket.label)]
        return self._search_case(case, value, buckets)

    def _search_case(self, case: exp.Case, value: exp.Expression, buckets: Sequence[Bucket]) -> exp.Expression:
        """Return a CASE, which may have begun with other tests, with a search among some of the buckets."""
        if len(buckets) > CHAIN:
            middle = len(buckets) // 2
            below = exp.LT(this=value.copy(), expression=self._end(buckets[middle]))
            case = case.when(below, self._search_case(exp.Case(), value, buckets[:middle]), copy=False)
            return case.else_(self._search_case(exp.Case(), value, buckets[middle:]), copy=False)
        for bucket, following in itertools.pairwise(buckets):
            below = exp.LT(this=value.copy(), expression=self._end(following))
            case = case.when(below, self.outcome(bucket.label), copy=False)
        return case.else_(self.outcome(buckets[-1].label), copy=False)

    def _end(self, bucket: Bucket) -> exp.Expression:
        """Return where a bucket begins as a literal."""
        if self.planned.covers == "number":
            number = number_of(bucket.lower)
            assert number is not None  # only the first bucket is open
            return number_literal(number)
        moment = time_text(bucket.lower)
        assert moment is not None
        if self.dialect.name == "sqlite":  # times are texts there: the shortest stands before all that begin so
            return exp.Literal.string(moment)
        if self.kind == ZONED:
            clock = "" if " " in moment else " 00:00:00"
            return exp.cast(exp.Literal.string(f"{moment}{clock}+00:00"), exp.DataType.build("timestamptz"))
        return exp.cast(exp.Literal.string(moment), exp.DataType.build("timestamp" if " " in moment else "date"))

    def _write_tests(self) -> list[tuple[exp.Expression, exp.Expression]]:
        """Return the tests and outcomes of a column of values or prefixes: one for all texts with the same label."""
        by_test: dict[tuple[int, str | None], list[int]] = {}
        alone: list[int] = []
        for index, bucket in enumerate(self.planned.buckets):
            length = len(bucket.lower or "") if self.planned.covers == "prefix" else 0
            if self.planned.covers == "prefix" and self._begins_the_next(index):
                alone.append(index)
            elif bucket.label != self.planned.rest_label or self.planned.covers == "prefix":
                by_test.setdefault((length, bucket.label), []).append(index)
        tests = [(length, label, indexes) for (length, label), indexes in by_test.items()]
        tests += [(len(self._lower(index)), self.planned.buckets[index].label, [index]) for index in alone]
        return [
            (self._test(length, indexes), self.outcome(label))
            for length, label, indexes in sorted(tests, key=lambda test: -test[0])  # the longer prefix counts
        ]

    def _lower(self, index: int) -> str:
        return self.planned.buckets[index].lower or ""

    def _begins_the_next(self, index: int) -> bool:
        """Tell whether the next text begins with this one, as only prefixes made by hand do."""
        return index + 1 < len(self.planned.buckets) and self._lower(index + 1).startswith(self._lower(index))

    def _test(self, length: int, indexes: Sequence[int]) -> exp.Expression:
        """Return the test whether the column is one of some texts, or begins with one of them."""
        texts = [self._lower(index) for index in indexes]
        if self.planned.covers == "value":
            if self.kind == DECIMAL:  # 2.50 is 2.5 to some engines
                return _among(column(self.planned.name), [exp.Literal.number(text) for text in texts])
            return _among(self._text(), [self.dialect.literal(text) for text in texts])
        test = _among(self._beginning(length), [self.dialect.literal(text) for text in texts]) if length else exp.true()
        if self._begins_the_next(indexes[0]):  # where the next text is reached, the search does not come back to this
            following = self.dialect.literal(self._lower(indexes[0] + 1))
            return exp.And(this=test, expression=exp.LT(this=self._text(), expression=following))
        return test


def _among(value: exp.Expression, choices: list[exp.Expression]) -> exp.Expression:
    if len(choices) == 1:
        return exp.EQ(this=value, expression=choices[0])
    return exp.In(this=value, expressions=choices)


def number_literal(number: float) -> exp.Expression:
    """Return a double as a literal that every engine reads as that double: with an exponent where digits are many."""
    if number < 0:
        return exp.Neg(this=number_literal(-number))
    if number.is_integer() and number < 2**53:
        return exp.Literal.number(str(int(number)))
    text = repr(number)
    is_plain = "e" not in text and len(text.replace(".", "").lstrip("0")) <= _DIGITS
    return exp.Literal.number(text if is_plain or "e" in text else f"{text}e0")

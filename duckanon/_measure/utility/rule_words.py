"""Rules of a table in words, and the rows that they are about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from duckanon._core.common.arrays import Bools, Floats
from duckanon._core.encoding.arrow import is_moment
from duckanon._core.encoding.formulas import Formula
from duckanon._core.encoding.parts import ColumnParts
from duckanon._methods.synthesize.implication_rules import AllowedPairs, AllowedRanges, Implications, Ordered, Rows

_SHOWN = 3  # choices that a rule lists
_NOTHING = 1e-6  # a constant that no formula names
_DAY = 86_400_000  # milliseconds


class Rule(NamedTuple):
    """A rule.

    Attributes:
        kind: ``excluded``, ``limit``, ``order`` or ``formula``.
        words: The rule as a sentence.
        column, other: The column that the rule is about, and the one that it depends on.
        source: The rule itself.
        choice: The choice that it begins with, where it does.
    """

    kind: str
    words: str
    column: int
    other: int
    source: AllowedPairs | AllowedRanges | Ordered | Formula
    choice: int = -1

    def premise(self, rows: Rows) -> Bools:
        """Tell which rows a rule is about."""
        if isinstance(self.source, AllowedPairs):
            return np.asarray((rows.codes[self.other] == self.choice) & (rows.codes[self.column] >= 0))
        if isinstance(self.source, AllowedRanges):
            return np.asarray((rows.codes[self.other] == self.choice) & ~np.isnan(rows.numbers[self.column]))
        if isinstance(self.source, Ordered):
            return ~np.isnan(rows.numbers[self.column]) & ~np.isnan(rows.numbers[self.other])
        found = ~np.isnan(rows.numbers[self.column])
        for index in self.source.sources:
            found &= ~np.isnan(rows.numbers[index])
        return found

    def broken(self, rows: Rows, tolerance: float) -> Bools:
        """Tell which rows break a rule; a formula by more than a tolerance."""
        if isinstance(self.source, Formula):
            computed = self.source.computed([rows.numbers[index] for index in self.source.sources])
            return self.premise(rows) & (np.abs(computed - rows.numbers[self.column]) > tolerance)
        return self.premise(rows) & self.source.broken(rows)


def written_rules(columns: Sequence[ColumnParts], found: Implications, formulas: Sequence[Formula]) -> Iterator[Rule]:
    """Write rules in words: they name values that at least k people stand behind, and nobody's alone."""
    for pair in found.pairs:
        for choice in np.flatnonzero(~pair.allowed.all(axis=1)).tolist():
            excluded = [_is(columns[pair.second], code) for code in np.flatnonzero(~pair.allowed[choice]).tolist()]
            more = f" or {len(excluded) - _SHOWN} more" if len(excluded) > _SHOWN else ""
            words = f"if {_is(columns[pair.first], choice)}, never {' or '.join(excluded[:_SHOWN])}{more}"
            yield Rule("excluded", words, pair.second, pair.first, pair, choice)
    for limits in found.ranges:
        for choice in np.flatnonzero(np.isfinite(limits.low) | np.isfinite(limits.high)).tolist():
            number = columns[limits.number]
            ends = [
                f"{side} {_written(float(end[choice]), number.type)}"
                for side, end in (("above", limits.low), ("below", limits.high))
                if np.isfinite(end[choice])
            ]
            words = f"if {_is(columns[limits.column], choice)}, {number.name} is {' and '.join(ends)}"
            yield Rule("limit", words, limits.number, limits.column, limits, choice)
    for order in found.ordered:
        words = f"{columns[order.first].name} is at most {columns[order.second].name}"
        words += _constant(-order.offset, columns[order.second].type)
        yield Rule("order", words, order.first, order.second, order)
    for formula in formulas:
        yield Rule("formula", _formula(columns, formula), formula.column, formula.sources[0], formula)


def _is(column: ColumnParts, code: int) -> str:
    if code == len(column.outcomes):
        return f"{column.name} has a regular number" if column.outcomes else f"{column.name} has a number"
    value: Any = column.outcomes[code]
    if value is None:
        return f"{column.name} is NULL"
    quoted = f"'{value}'" if isinstance(value, str) else str(value)
    return f"{column.name} is {quoted}"


def _written(number: float, type_: pa.DataType) -> str:
    if not is_moment(type_):
        return f"{number:g}"
    whole = pa.array([round(number)], pa.int32() if type_.bit_width == 32 else pa.int64())
    return str(whole.cast(type_)[0].as_py())


def _formula(columns: Sequence[ColumnParts], formula: Formula) -> str:
    column, names = columns[formula.column], [columns[index].name for index in formula.sources]
    if formula.logged:
        factors = [f"{name}^{factor:g}" for name, factor in zip(names, formula.factors, strict=True)]
        return f"{column.name} is {np.exp(formula.constant):.4g} * {' * '.join(factors)}"
    terms = [
        name if factor == 1 else f"{factor:g} * {name}" for name, factor in zip(names, formula.factors, strict=True)
    ]
    constant = formula.constant if formula.factors == (1.0,) else float(f"{formula.constant:.4g}")
    return f"{column.name} is {' + '.join(terms)}{_constant(constant, column.type)}"


def _constant(constant: float, type_: pa.DataType) -> str:
    """Write what is added to a number, or to a date."""
    if abs(constant) <= _NOTHING:
        return ""
    written: object = f"{abs(constant):.9g}"
    if pa.types.is_date(type_):
        written = f"{abs(constant) / (_DAY if type_.bit_width == 64 else 1):g} days"
    elif is_moment(type_):
        unit = pa.duration(type_.unit)
        written = pa.scalar(round(abs(constant)), pa.int64()).cast(unit).as_py()
    return f" {'+' if constant > 0 else '-'} {written}"


def tolerance_of(column: ColumnParts, numbers: Floats) -> float:
    """Return how far a computed number may be from one that is rounded as a column is."""
    known = np.abs(numbers[~np.isnan(numbers)])
    decimals = column.regular.decimals if column.regular is not None and pa.types.is_floating(column.type) else 0
    digits = 1e-9 if decimals is None else 10.0**-decimals
    return float(digits + 1e-6 * known.max(initial=0.0))

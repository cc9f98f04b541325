"""Columns of a table as codes, each with the labels that classes of codes have."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon._core.common.arrays import Array, Floats, Ints, run_lengths, run_starts
from duckanon._core.common.labels import Scale
from duckanon._core.common.made_labels import EVERYTHING, listed_value, rest_label, set_label, value_label
from duckanon._core.common.values import exact_numbers
from duckanon._core.numbers.ends import typed_ends
from duckanon._core.numbers.parts import part_numbers
from duckanon._core.numbers.support import Support
from duckanon._methods.generalize.leaves import as_text
from duckanon._methods.recode.column_losses import Column

SEPARATOR, NULL_MARK = "\x1f", "\x1e"
"""Marks of a list of values as text: between two of them, and for NULL (``anon._recoded`` reads it)."""


@dataclass(frozen=True)
class Coding(ABC):
    """A column as codes."""

    name: str
    column: Column  # as the search sees it
    codes: Array  # of each row

    @abstractmethod
    def texts(self, codes: Array, starts: Ints) -> pa.Array:
        """Return the label of each class, given the codes of its rows, which follow each other, as a dictionary."""

    @abstractmethod
    def values(self, codes: Array, starts: Ints) -> tuple[pa.Array, ...]:
        """Return what each class says as values: its ends, or the list of its values as text (`SEPARATOR`).

        As dictionaries: what many classes say is written once.
        """

    def of(self, column: pa.ChunkedArray) -> Self:
        """Return the same coding for other rows of the same table."""
        return replace(self, codes=self._codes_of(column).astype(np.int32))

    @abstractmethod
    def _codes_of(self, column: pa.ChunkedArray) -> Array:
        """Return the codes of values; all of them occur in the column that was encoded."""


@dataclass(frozen=True)
class NumberCoding(Coding):
    """Numbers, dates or moments: parts with published ends, ascending, and NULL behind them.

    The first and the last code are open: what lies below an end that k people share and above it, or, where k people
    share none, the outermost parts.
    """

    lower: Floats  # the ends of the parts; of what lies beyond a shared end, a number that is only computed with
    upper: Floats
    scale: Scale  # how ends are written
    kind: pa.DataType
    support: Support | None  # the column's unit and ends; None where all of it is NULL

    def _codes_of(self, column: pa.ChunkedArray) -> Array:
        known, is_known, _ = exact_numbers(self.name, column)
        codes = np.full(len(is_known), len(self.lower))
        if len(known):
            assert self.support is not None
            known = known + 0.0  # -0.0 + 0.0 is 0.0
            before, after = self.support.is_shared
            inside = slice(int(before), len(self.lower) - after)
            numbers = before + part_numbers(self.lower[inside], self.upper[inside], self.support.coded(known))
            is_below, is_above = self.support.beyond(known)
            numbers[is_below] = 0
            numbers[is_above] = len(self.lower) - 1
            codes[is_known] = numbers
        return codes

    def texts(self, codes: Array, starts: Ints) -> pa.Array:
        """Return the label of each class: ``[20, 34]``, ``<=34``, one number, NULL, or ``*`` for NULLs among others."""
        return _labelled(codes, starts, self.column.size, self._text)

    def _text(self, first: int, last: int) -> str | None:
        parts = len(self.lower)
        if last == parts:
            return None if first == parts else EVERYTHING
        low, high = (self.scale.text(end) for end in (self.lower[first], self.upper[last]))
        if first == 0 or last == parts - 1:
            return EVERYTHING if last - first == parts - 1 else f"<={high}" if first == 0 else f">={low}"
        return low if low == high else f"[{low}, {high}]"

    def values(self, codes: Array, starts: Ints) -> tuple[pa.Array, ...]:
        """Return the lower and the upper end of each class; NULL where it is open, both where it says nothing."""
        pairs, places = _extremes(codes, starts, self.column.size)
        indices = pa.array(places, pa.int32())
        if not len(self.lower):
            nothing = pa.DictionaryArray.from_arrays(indices, pa.nulls(1, self.kind))
            return nothing, nothing
        first, last = np.divmod(pairs, self.column.size)
        parts, says_nothing = len(self.lower), last == len(self.lower)
        at_first = pa.array(np.where(says_nothing, 0, first), mask=says_nothing | (first == 0))
        at_last = pa.array(np.where(says_nothing, 0, last), mask=says_nothing | (last == parts - 1))
        low, high = typed_ends(self.kind, self.lower, self.upper, has_unit=True)
        # both columns have the same codes, and the macro reads those of the first for the pairs
        return tuple(pa.DictionaryArray.from_arrays(indices, ends) for ends in (low.take(at_first), high.take(at_last)))


@dataclass(frozen=True)
class TreeCoding(Coding):
    """Values of a hierarchy in the order of its tree.

    The root stands for everything: the hierarchy's own values, others that k people have, None for NULL if they do,
    and their label where fewer have one, as entries of a list (`listed_value`).
    """

    paths: Sequence[tuple[str, ...] | None]  # by code: the labels from the value up to below the root; None for NULL
    root: str
    leaves_below: dict[tuple[int, str], list[str]]  # by level and label: the hierarchy's values, if they occur or not
    everything: Sequence[str | None]

    def _codes_of(self, column: pa.ChunkedArray) -> Array:
        leaves = [None if path is None else path[0] for path in self.paths]
        return _places(self.name, column, leaves, None)

    def texts(self, codes: Array, starts: Ints) -> pa.Array:
        """Return the lowest common ancestor of each class."""
        return _labelled(codes, starts, self.column.size, self._text)

    def _text(self, first: int, last: int) -> str | None:
        level, label = self._ancestor(first, last)
        return value_label(label) if level == 0 and label is not None else label

    def _ancestor(self, first: int, last: int) -> tuple[int, str | None]:
        """Return the level and the label of the ancestor of two codes."""
        one, other = self.paths[first], self.paths[last]
        if one is None and other is None:
            return 0, None
        if one is not None and other is not None:
            for level, (label, other_label) in enumerate(zip(one, other, strict=True)):
                if label == other_label and one[level:] == other[level:]:
                    return level, label
        return -1, self.root

    def values(self, codes: Array, starts: Ints) -> tuple[pa.Array, ...]:
        """Return the values below each class's ancestor, as text."""
        return (_labelled(codes, starts, self.column.size, self._listed),)

    def _listed(self, first: int, last: int) -> str | None:
        level, label = self._ancestor(first, last)
        if label is None:
            return None
        if level < 0:
            return _list_text(self.everything)
        return _list_text([listed_value(leaf) for leaf in self.leaves_below.get((level, label), [label])])


@dataclass(frozen=True)
class SetCoding(Coding):
    """Values without an order; one may be NULL, and the last code may stand for rare ones.

    These are called `rest_label`: naming a value of fewer than k people would reveal its few people.
    """

    named: Sequence[str | None]  # by code: the value as text, None for NULL
    has_rest: bool  # whether one more code stands for all others

    @cached_property
    def _rest(self) -> str:
        return rest_label(self.named)

    def _codes_of(self, column: pa.ChunkedArray) -> Array:
        return _places(self.name, column, self.named, len(self.named) if self.has_rest else None)

    def texts(self, codes: Array, starts: Ints) -> pa.Array:
        """Return the set of each class: ``{a, b}``, or the one value that it has (`set_label`)."""
        return self._labelled(codes, starts, set_label)

    def values(self, codes: Array, starts: Ints) -> tuple[pa.Array, ...]:
        """Return the list of each class's values, as text."""
        return (self._labelled(codes, starts, _list_text),)

    def _listed(self, members: tuple[int, ...]) -> list[str | None]:
        values = [self.named[member] for member in members if member < len(self.named)]
        listed = [listed_value(value) for value in sorted(value for value in values if value is not None)]
        return [*listed, *[self._rest] * (len(values) < len(members)), *[None] * (None in values)]

    def _labelled(self, codes: Array, starts: Ints, label: Callable[[list[str | None]], str | None]) -> pa.Array:
        members = _members(codes, starts)
        numbers = {of_class: number for number, of_class in enumerate(dict.fromkeys(members))}
        indices = np.array([numbers[of_class] for of_class in members], np.int32)
        return _dictionary(indices, [label(self._listed(of_class)) for of_class in numbers])


def _list_text(values: Sequence[str | None]) -> str:
    return SEPARATOR.join(NULL_MARK if value is None else value for value in values)


def _places(name: str, column: pa.ChunkedArray, known: Sequence[str | None], pooled: int | None) -> Array:
    """Return the place of each value among those that are known; where there is a place for others, theirs."""
    if column.null_count == len(column):
        return np.full(len(column), known.index(None) if None in known else pooled)
    found = pc.index_in(as_text(name, column), pa.array(known, pa.large_string()))
    if pooled is None and found.null_count:
        raise AssertionError("a value does not occur in the column that was encoded.")
    return np.asarray(found.fill_null(-1 if pooled is None else pooled))


def _extremes(codes: Array, starts: Ints, size: int) -> tuple[Ints, Ints]:
    """Return the different pairs of a class's smallest and largest code, as first * size + last, and each class's."""
    first, last = (extreme.reduceat(codes, starts).astype(np.int64) for extreme in (np.minimum, np.maximum))
    pairs, places = np.unique(first * size + last, return_inverse=True)
    return pairs, places.reshape(-1)


def _labelled(codes: Array, starts: Ints, size: int, label: Callable[[int, int], str | None]) -> pa.Array:
    """Return the labels of classes, given their smallest and largest code; each different pair is labelled once."""
    pairs, indices = _extremes(codes, starts, size)
    return _dictionary(indices, [label(*divmod(pair, size)) for pair in pairs.tolist()])


def _dictionary(indices: Array, labels: list[str | None]) -> pa.Array:
    """Return labels by their places; the same label has the same place."""
    places = {label: place for place, label in enumerate(dict.fromkeys(label for label in labels if label is not None))}
    at = np.array([places.get(label, -1) if label is not None else -1 for label in labels], np.int32)[indices]
    return pa.DictionaryArray.from_arrays(pa.array(at, mask=at < 0), pa.array(list(places), pa.string()))


def _members(codes: Array, starts: Ints) -> list[tuple[int, ...]]:
    """Return the different codes of each class, ascending."""
    numbers = np.arange(len(starts)).repeat(run_lengths(starts, len(codes)))
    size = int(codes.max(initial=0)) + 1
    pairs = np.sort(numbers * size + codes)
    pairs = pairs[run_starts(pairs)]
    class_starts = run_starts(pairs // size)
    values = (pairs % size).tolist()
    ends = [*class_starts.tolist()[1:], len(values)]
    return [tuple(values[start:end]) for start, end in zip(class_starts.tolist(), ends, strict=True)]

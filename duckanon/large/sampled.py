"""A sample of a table that tells what the whole does: who holds which value, and who is at the ends.

Rows are drawn by a hash. Of values that are rare in what was drawn, up to k rows of each are added, and of numbers the
k lowest and the k highest: a value that k people of the table hold has k holders here, and one that fewer hold has
fewer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from duckanon._core.common.arrays import Floats, Ints
from duckanon._core.encoding.arrow import kind_of
from duckanon._core.encoding.identifiers import MOST_CATEGORIES
from duckanon._core.encoding.parts import doubles
from duckanon.large.survey import Drawing

_PLACE = "_duckanon_place"


@dataclass(frozen=True)
class Sample:
    """Rows of a table: those that were drawn, and after them those that were added."""

    table: pa.Table
    drawn: int  # how many were drawn


def sampled(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, k: int, rows: int, wanted: int, seed: int | None
) -> Sample:
    """Read a table of numbers, texts, booleans, dates and times once, and draw `wanted` of its rows.

    Of a value, and at an end, k rows are enough. `seed` decides which rows: the same of a table that comes in the same
    order. NaN, infinity and texts of more values than a release can tell apart are refused.
    """
    drawing, done = Drawing(rows, wanted, seed), 0
    kinds = {field.name: kind_of(field.name, field.type) for field in schema}
    held = {name: _Holders(name, k, kind == "category") for name, kind in kinds.items()}
    ends = {name: _Ends(name, k) for name, kind in kinds.items() if kind != "category"}
    drawn, others = [pa.table(schema.empty_table())], []
    for batch in batches:
        chosen = drawing.rows(done, batch.num_rows)
        drawn.append(pa.Table.from_batches([batch]).take(pa.array(chosen)))
        left = np.setdiff1d(np.arange(batch.num_rows), chosen, assume_unique=True)
        kept = [seen.read(batch.column(name), chosen, left, done) for name, seen in held.items()]
        kept += [seen.read(batch.column(name), left, done) for name, seen in ends.items()]
        places = np.unique(np.concatenate(kept))
        if len(places):
            added = pa.Table.from_batches([batch]).take(pa.array(places))
            others.append(added.append_column(_PLACE, pa.array(places + done)))
        done += batch.num_rows
    table = pa.concat_tables(drawn)
    count = table.num_rows
    if others:
        seen_places = [one.places() for one in held.values()] + [one.places() for one in ends.values()]
        added = pa.concat_tables(others)
        added = added.filter(pa.array(np.isin(added.column(_PLACE).to_numpy(), np.concatenate(seen_places))))
        table = pa.concat_tables([table, added.drop_columns([_PLACE])])
    return Sample(table.combine_chunks(), count)


class _Holders:
    """Up to k rows of every value, beside those that were drawn."""

    def __init__(self, name: str, k: int, is_category: bool) -> None:
        self._name, self._k, self._is_category = name, k, is_category
        self._drawn: dict[Any, int] = {}
        self._kept: dict[Any, list[int]] = {}
        self._is_open = True

    def read(self, array: pa.Array, drawn: Ints, left: Ints, first: int) -> Ints:
        """Look at the next rows; return those to be kept, for now."""
        if not self._is_open:
            return np.zeros(0, np.int64)
        if pa.types.is_temporal(array.type) and not pa.types.is_interval(array.type):  # Python has not all of them
            array = array.view(pa.int64() if array.type.bit_width == 64 else pa.int32())
        coded = array.dictionary_encode(null_encoding="encode")
        values, indices = coded.dictionary.to_pylist(), coded.indices.to_numpy()
        if len({*values, *self._kept}) > MOST_CATEGORIES + 1:
            return self._close()
        counts = np.bincount(indices[drawn], minlength=len(values))
        of_left = indices[left]
        order = np.argsort(of_left, kind="stable")
        begins = np.searchsorted(of_left[order], np.arange(len(values) + 1))
        chosen = []
        for code, value in enumerate(values):
            kept = self._kept.setdefault(value, [])
            self._drawn[value] = self._drawn.get(value, 0) + int(counts[code])
            missing = self._k - len(kept)
            if missing > 0:
                rows = left[order[begins[code] : min(begins[code] + missing, begins[code + 1])]]
                kept += (rows + first).tolist()
                chosen.append(rows)
        return np.concatenate(chosen) if chosen else np.zeros(0, np.int64)

    def _close(self) -> Ints:
        if self._is_category:
            raise ValueError(
                f'column "{self._name}" has more than {MOST_CATEGORIES:,} different values; '
                "leave it out of cols or generalize it first."
            )
        self._is_open, self._kept = False, {}
        return np.zeros(0, np.int64)

    def places(self) -> Ints:
        """Return the rows of values of which fewer than k were drawn."""
        rare = [rows for value, rows in self._kept.items() if self._drawn[value] < self._k]
        return np.array([row for rows in rare for row in rows], np.int64)


class _Ends:
    """The k lowest and the k highest numbers of a column."""

    def __init__(self, name: str, k: int) -> None:
        self._name, self._k = name, k
        self._lowest: tuple[Floats, Ints] = (np.zeros(0), np.zeros(0, np.int64))
        self._highest = self._lowest

    def read(self, array: pa.Array, left: Ints, first: int) -> Ints:
        """Look at the next rows; return those to be kept, for now."""
        numbers = doubles(array)
        is_null = np.isnan(numbers)
        if int(is_null.sum()) > array.null_count or np.isinf(numbers).any():
            raise ValueError(f'column "{self._name}" holds NaN or infinity; remove these rows or set them to NULL.')
        rows = left[~is_null[left]]
        self._lowest = self._joined(self._lowest, numbers[rows], rows + first)
        self._highest = self._joined(self._highest, -numbers[rows], rows + first)
        places = self.places()
        return places[places >= first] - first

    def _joined(self, before: tuple[Floats, Ints], numbers: Floats, rows: Ints) -> tuple[Floats, Ints]:
        lowest = _least(numbers, self._k)
        numbers, rows = np.append(before[0], numbers[lowest]), np.append(before[1], rows[lowest])
        lowest = _least(numbers, self._k)
        return numbers[lowest], rows[lowest]

    def places(self) -> Ints:
        """Return the rows that are kept."""
        return np.append(self._lowest[1], self._highest[1])


def _least(numbers: Floats, count: int) -> Ints:
    if len(numbers) <= count:
        return np.arange(len(numbers))
    return np.argpartition(numbers, count - 1)[:count]

"""One column's distribution, to be drawn from: no value shared by fewer than k people has a place in it.

Values shared by at least k people keep their shares. All other numbers are drawn between the ends of groups of at least
k people, whose values follow each other: half of them on either side of the group's median. Groups that follow each
other meet midway, and a group that ends a run ends by its quartile, so that nobody's outermost number shows. Cutting
groups costs a sort of the rows. `refuse_rare` counts the promise again, from the two tables alone.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon._core.common.arrays import Bools, Floats, Ints, find_run_starts
from duckanon._core.common.codes import encode_columns, read_float_bits
from duckanon._core.common.people import NOBODY, count_people
from duckanon._methods.releasable.grids import Grid, find_free_places


def measure_groups(numbers: Floats, rows: Ints, people: Ints, is_grouped: Bools, heads: Ints) -> Floats:
    """Return between which numbers each group is drawn: the low end, the median, the high end; and the share below it.

    Groups that follow each other meet midway. Where a run ends, its outermost number is one person's: the group ends as
    far beyond its quartile as that is from its median, but not beyond a value that many hold. The outermost groups of a
    column end at the quartile.

    Args:
        numbers, rows: The values in ascending order, and how many rows have each.
        people: How many people have each, with their first row in the group.
        is_grouped, heads: Which values are in groups, and the first one of each group.
    """
    members = np.flatnonzero(is_grouped)
    group = np.searchsorted(heads, members, side="right") - 1
    tails = members[np.searchsorted(group, np.arange(len(heads)), side="right") - 1]
    up_to = np.cumsum(np.where(is_grouped, people, 0))
    first, last = up_to[heads] - people[heads] + 1, up_to[tails]
    quarter = (last - first + 1) // 4

    def between(first_person: Ints, second_person: Ints) -> Floats:
        """Return the number midway between those of two people of each group."""
        low, high = (
            numbers[np.searchsorted(up_to, np.clip(place, first, last))] for place in (first_person, second_person)
        )
        return np.asarray(low / 2 + high / 2)

    middle = between((first + last) // 2, (first + last + 1) // 2)
    follows = np.concatenate([[False], heads[1:] == tails[:-1] + 1, [False]])
    ends = []
    for quartile, outermost, beyond, meets in (
        (between(first + quarter, first + quarter + 1), heads, heads - 1, follows[:-1]),
        (between(last - quarter, last - quarter - 1), tails, tails + 1, follows[1:]),
    ):
        is_last = (beyond < 0) | (beyond == len(numbers))
        second_person = numbers[np.where(is_last, outermost, beyond)]
        with np.errstate(over="ignore"):
            reach = quartile + (quartile - middle)
        inside = np.clip(reach, np.minimum(second_person, quartile), np.maximum(second_person, quartile))
        ends.append(np.where(meets, numbers[outermost] / 2 + second_person / 2, np.where(is_last, quartile, inside)))
    before = np.concatenate([[0], np.cumsum(rows)])
    at_middle = sum(before[np.searchsorted(numbers, middle, side)] for side in ("left", "right")) / 2
    below = (at_middle - before[heads]) / (before[tails + 1] - before[heads])
    return np.stack([ends[0], middle, ends[1], below])


class Pieces(NamedTuple):
    """A distribution in pieces, which follow each other in the order of the values.

    Attributes:
        rows: How many rows each piece stands for.
        value: A category's code, or a number's place.
        low, middle, high: The ends of pieces of numbers, and the median; NaN for pieces of one value.
        below: The share of the piece's rows that are drawn below the median, evenly, as those above it are.
    """

    rows: Ints
    value: Ints
    low: Floats
    middle: Floats
    high: Floats
    below: Floats

    def at(self, levels: Floats) -> tuple[Ints, Floats]:
        """Return the piece at each level from 0 to 1, and which share of the piece lies below."""
        ends = np.cumsum(self.rows)
        position = levels * ends[-1]
        piece = np.minimum(np.searchsorted(ends, position, side="right"), len(ends) - 1)
        return piece, np.clip((position - ends[piece] + self.rows[piece]) / self.rows[piece], 0.0, 1.0)


def of_values(codes: Ints, people: Ints | None, k: int) -> Pieces:
    """Return the pieces of codes from 0 shared by at least k people; the others' rows are those of nobody.

    The shares of the others go to these in proportion. There may be no piece at all.
    """
    count = int(codes.max(initial=-1)) + 1
    kept = np.flatnonzero(count_people(codes, people, count) >= k)
    return Pieces(np.bincount(codes, minlength=count)[kept], kept, *np.full((4, len(kept)), np.nan))


class Numbers(NamedTuple):
    """The distribution of a column of numbers.

    Attributes:
        pieces: In their order; none where fewer than k people hold any number.
        rare: The places shared by fewer than k people, ascending.
    """

    grid: Grid
    pieces: Pieces
    rare: Ints
    lowest: int
    highest: int

    def draw(self, piece: Ints, share: Floats) -> Ints:
        """Return the places of draws, by piece and by the share of the piece that lies below.

        A draw that falls on a number of fewer than k people is moved to the nearest one shared by k people, or nobody;
        a range without any is refused.
        """
        places = self.pieces.value[piece]
        between = np.flatnonzero(~np.isnan(self.pieces.low)[piece])
        low, middle, high, below = (shape[piece[between]] for shape in self.pieces[2:])
        share = share[between]
        is_below = share < below
        start, end = np.where(is_below, low, middle), np.where(is_below, middle, high)
        share = np.where(is_below, share, share - below) / np.where(is_below, below, 1 - below)
        # The weighted form cannot leave the ends, and cannot overflow, as start + share * (end - start) can.
        numbers = (1 - share) * start + share * end
        places[between] = np.clip(self.grid.nearest(numbers), self.lowest, self.highest)
        free = find_free_places(places, self.rare, self.grid.step, self.lowest, self.highest)
        if free is None:
            raise ValueError("no number is releasable.")
        return free


def sort_places(places: Ints, people: Ints | None) -> tuple[Ints, Ints | None]:
    """Sort places; return the person of each, too."""
    if people is None:
        return np.sort(places), None
    order = np.argsort(places, kind="stable")
    return places[order], people[order]


def of_numbers(
    grid: Grid, places: Ints, people: Ints | None, k: int, held: Ints | None = None, grouped: Ints | None = None
) -> Numbers:
    """Return the distribution of numbers, given the place of each row's value, at least one, in the grid.

    Numbers of fewer than k people between two that more people hold make a run. A run of at least k people is cut into
    groups; one of fewer counts with the nearest number shared by k people, as the outermost ones do: they are coded.
    Where these are rows of a larger table, `held` are the places that k people of the table share. Those in `grouped`
    count as if fewer held them.
    """
    ordered, person_of_row = sort_places(places, people)
    is_new = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    value_of_row = np.cumsum(is_new) - 1
    starts = np.flatnonzero(is_new)
    rows = np.diff(starts, append=len(ordered))
    values = ordered[starts]
    numbers = grid.numbers(values)
    is_held = count_people(value_of_row, person_of_row, len(values)) >= k
    if held is not None:
        is_held |= np.isin(values, held)
    if grouped is not None:
        is_held &= ~np.isin(values, grouped)
    is_grouped = _is_in_group(is_held, value_of_row, person_of_row, k)
    heads = _find_heads(is_grouped, starts, len(ordered), person_of_row, k)
    shapes = np.full((4, len(values)), np.nan)
    if len(heads):
        people_at = rows if person_of_row is None else _count_first_rows(value_of_row, starts, person_of_row, heads)
        shapes[:, heads] = measure_groups(numbers, rows, people_at, is_grouped, heads)
    counted = _assign_pieces(numbers, is_held, is_grouped, heads)
    has_piece = counted >= 0
    piece_rows = np.bincount(counted[has_piece], rows[has_piece], len(values)).astype(np.int64)
    used = np.flatnonzero(piece_rows)
    pieces = Pieces(piece_rows[used], values[used], *shapes[:, used])
    return Numbers(grid, pieces, values[~is_held], int(ordered[0]), int(ordered[-1]))


def measure_distance(before: Ints, after: Ints, rows: Ints) -> float:
    """Return the Kolmogorov-Smirnov distance of two lists of places in ascending order, each of so many rows."""
    shares = np.concatenate([[0.0], np.cumsum(rows) / rows.sum()])
    places = np.concatenate([before, after])
    order = np.argsort(places, kind="stable")  # of two lists that are sorted: they are merged
    ends = find_run_starts(places[order[::-1]])
    seen = len(order) - ends
    up_to = np.concatenate([[0], np.cumsum(order < len(before))])[seen]
    return float(np.abs(shares[up_to] - shares[seen - up_to]).max())


def _is_in_group(is_held: Bools, value_of_row: Ints, person_of_row: Ints | None, k: int) -> Bools:
    """Tell of each value whether it belongs to a run, between values that many hold, of at least k people."""
    run = np.cumsum(is_held, dtype=np.int64)
    rare_rows = np.flatnonzero(~is_held[value_of_row])
    person_of_rare_row = None if person_of_row is None else person_of_row[rare_rows]
    people = count_people(run[value_of_row[rare_rows]], person_of_rare_row, int(run[-1]) + 1)
    return np.asarray(~is_held & (people >= k)[run])


def _find_heads(is_grouped: Bools, starts: Ints, rows: int, person_of_row: Ints | None, k: int) -> Ints:
    """Cut runs into groups of at least k people; return the first value of each group.

    ``starts`` has the first row of each value, and ``whose`` the person of each row, both in the order of the values.
    """
    edges = np.flatnonzero(np.diff(is_grouped, prepend=False, append=False)).tolist()
    if person_of_row is None:
        return _find_heads_of_rows(edges, starts, rows, k)
    first_rows = [*starts.tolist(), rows]
    before = _find_rows_before(person_of_row)
    heads: list[int] = []
    for begin, end in zip(edges[::2], edges[1::2], strict=True):
        value = begin
        while value < end:
            heads.append(value)
            enough = _find_last_row(first_rows[value], first_rows[end], before, k)
            if enough is None:
                break
            # Each value has a row at least, so that the next group begins at most so many values further.
            value = bisect_left(first_rows, enough, value + 1, min(end, value + enough - first_rows[value]))
        if enough is None and heads[-1] > begin:
            heads.pop()  # what is left at the end is too little for a group of its own
    return np.array(heads, dtype=np.int64)


def _find_heads_of_rows(edges: list[int], starts: Ints, rows: int, k: int) -> Ints:
    """Do the same where every row is another person: the value at which k rows are reached is known for all at once."""
    following = np.searchsorted(starts, starts + k).tolist()
    heads: list[int] = []
    for begin, end in zip(edges[::2], edges[1::2], strict=True):
        last = int(np.searchsorted(starts, (starts[end] if end < len(starts) else rows) - k, side="right"))
        value = begin
        while value < last:  # k rows and more are left
            heads.append(value)
            value = following[value]
    return np.array(heads, dtype=np.int64)


def _find_last_row(start: int, end: int, before: Ints, k: int) -> int | None:
    """Return the row before which the rows from `start` on are those of k people; None if they are not before `end`."""
    window = 4 * k
    while True:
        seen = np.cumsum(before[start : min(start + window, end)] < start)
        if len(seen) and seen[-1] >= k:
            return start + int(np.searchsorted(seen, k)) + 1
        if start + window >= end:
            return None
        window *= 2


def _find_rows_before(person_of_row: Ints) -> Ints:
    """Return the row of the same person that comes before each row, -1 for none; for nobody's, the last of all."""
    by_person = np.argsort(person_of_row, kind="stable")
    is_same = person_of_row[by_person[1:]] == person_of_row[by_person[:-1]]
    before = np.full(len(person_of_row), -1)
    before[by_person[1:]] = np.where(is_same, by_person[:-1], -1)
    before[person_of_row == NOBODY] = len(person_of_row)
    return before


def _count_first_rows(value_of_row: Ints, starts: Ints, person_of_row: Ints, heads: Ints) -> Ints:
    """Count the people of each value's group who have no lower value in it."""
    group = np.searchsorted(heads, value_of_row, side="right") - 1
    is_first = _find_rows_before(person_of_row) < starts[heads[np.maximum(group, 0)]]
    return np.bincount(value_of_row[is_first], minlength=len(starts))


def _assign_pieces(numbers: Floats, is_held: Bools, is_grouped: Bools, heads: Ints) -> Ints:
    """Return the value whose piece counts the rows of each value; -1 where there is none.

    Values that many hold count for themselves, those of groups with the first of the group, the others with the nearest
    value that many hold.
    """
    counted = np.full(len(numbers), -1)
    held, grouped = np.flatnonzero(is_held), np.flatnonzero(is_grouped)
    counted[held] = held
    if len(heads):
        counted[grouped] = heads[np.searchsorted(heads, grouped, side="right") - 1]
    rest = np.flatnonzero(~is_held & ~is_grouped)
    if len(held) and len(rest):
        after = np.searchsorted(held, rest)
        above, below = held[np.minimum(after, len(held) - 1)], held[np.maximum(after - 1, 0)]
        is_nearer = abs(numbers[above] - numbers[rest]) < abs(numbers[rest] - numbers[below])
        counted[rest] = np.where(is_nearer, above, below)
    return counted


def refuse_rare(
    original: pa.Table,
    released: pa.Table,
    people: Ints | None,
    least: Sequence[int],
    labels: Sequence[str | None] | None = None,
) -> None:
    """Count again, from the two tables only, that every released value has a column's least number of people.

    The label of a column is no value, whoever has a value that is written so.
    """
    for index, (name, k) in enumerate(zip(original.column_names, least, strict=True)):
        before, after = original.column(index), released.column(index)
        if labels is not None and labels[index] is not None:
            after = after.filter(pc.fill_null(pc.not_equal(after.cast(pa.string()), labels[index]), True))
        if _shows_few(before, after, people, k):
            raise ValueError(
                f'column "{name}" would release a value of fewer than {k} people: the promise is not kept.'
            )


def _shows_few(before: pa.ChunkedArray, after: pa.ChunkedArray, people: Ints | None, k: int) -> bool:
    """Tell whether a value is shown that fewer than k people have, and somebody."""
    if people is None and pa.types.is_floating(before.type):
        values, rows = np.unique(read_float_bits(before), return_counts=True)
        few, shown = values[rows < k], np.sort(read_float_bits(after))
        return bool(len(few)) and bool((few[np.minimum(np.searchsorted(few, shown), len(few) - 1)] == shown).any())
    ((codes, count),) = encode_columns(
        pa.table({"value": pa.chunked_array([*before.chunks, *after.chunks], before.type)})
    )
    held = codes[: len(before)].astype(np.int64)
    holders = count_people(held, people, count)
    is_few = (holders < k) & (np.bincount(held, minlength=count) > 0)
    return bool(is_few[codes[len(before) :]].any())

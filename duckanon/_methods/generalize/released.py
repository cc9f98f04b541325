"""Plans as the released rows alone decide them: what labels say, where they end, and how many rows have each.

The search looks at all rows. Whoever it leaves out must not show in what the others are called: `>=30` in the place of
30 would tell that somebody is older, a label for NULL that somebody's value is missing. So its groups are given their
labels as if the released rows were the whole table, and all rows are called and counted again by these.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from duckanon._core.common.arrays import Bools, Floats, Ints
from duckanon._core.common.labels import MICROSECONDS_PER_DAY
from duckanon._methods.generalize.leaves import DayLeaves, Holders, Leaves, NumberLeaves, TextLeaves, no_leaves
from duckanon._methods.generalize.methods import Bucket, Coarsening, Top
from duckanon._methods.generalize.recoding.classes import Groups, combine
from duckanon._methods.generalize.recoding.column_moves import ColumnRecoding
from duckanon._methods.generalize.recoding.sensitive import Sensitive


@dataclass(frozen=True)
class Promise:
    """Conditions on every released class of a table."""

    holders: Holders  # who has the combinations of the table
    k: int  # how many people make a value one that may be named
    least: int  # how many people a class has
    limit: int  # how many rows may be left out
    sensitive: Sensitive | None  # what is asked of its sensitive values; None: nothing

    def kept(self, parts: Sequence[Ints], sizes: Sequence[int]) -> Bools:
        """Tell which combinations are in classes that keep it, given the label of each in every column."""
        classes = Groups(*combine(list(parts), list(sizes)))
        is_kept = self.holders.people(classes.of_entry, len(classes.keys)) >= self.least
        if self.sensitive is not None:
            is_kept = self.sensitive.kept(classes.of_entry, is_kept)
        return np.asarray(is_kept[classes.of_entry])


@dataclass(frozen=True)
class Labels:
    """The labels of a table's columns."""

    # coarsenings, groups: how the columns are generalized, and the groups of their leaves
    coarsenings: Sequence[Coarsening]
    groups: Sequence[ColumnRecoding]
    is_released: Bools  # which combinations of the table are released

    @cached_property
    def buckets(self) -> list[list[Bucket]]:
        """The rows of the plan, of each column."""
        return [own.buckets(groups) for own, groups in zip(self.coarsenings, self.groups, strict=True)]


def labels_of_released(found: Labels, promise: Promise) -> Labels:
    """Label the groups that a search has found as the rows that it releases decide.

    Fewer than k people beyond a value that others could be called by are left out too, where so many may be. Others
    that are left out may fall into a released class by their new labels. Where that class would then break what is
    asked of its sensitive values, labels are those that all rows decide.
    """
    is_extreme = np.zeros(len(found.is_released), bool)
    for own, groups in zip(found.coarsenings, found.groups, strict=True):
        is_extreme |= own.extremes(groups)[own.column.codes]
    tried = [found.is_released & ~is_extreme] if (found.is_released & is_extreme).any() else []
    if not found.is_released.all():
        tried.append(found.is_released)
    labels = (_labels_of(found, is_told, promise) for is_told in tried if is_told.any())
    return next((own for own in labels if own is not None), found)


def _labels_of(found: Labels, is_told: Bools, promise: Promise) -> Labels | None:
    """Label groups as some combinations decide; None where these, or enough of all, would not be released then."""
    holders = promise.holders.taken(is_told)
    pairs = [
        _fitted(own, groups, is_told, holders, promise.k)
        for own, groups in zip(found.coarsenings, found.groups, strict=True)
    ]
    labels = Labels([own for own, _ in pairs], [groups for _, groups in pairs], is_told)
    if not all(_is_ascending(buckets) for buckets in labels.buckets):
        return None
    codes = [_label_codes(buckets) for buckets in labels.buckets]
    parts = [
        code[bucket_of_leaf(buckets, own.column)][own.column.codes]
        for buckets, code, own in zip(labels.buckets, codes, found.coarsenings, strict=True)
    ]
    is_kept = promise.kept(parts, [int(code.max()) + 1 for code in codes])
    is_promised = is_kept[is_told].all() and promise.holders.rows[~is_kept].sum() <= promise.limit
    return replace(labels, is_released=is_kept) if is_promised else None


def _fitted(
    coarsening: Coarsening, groups: ColumnRecoding, is_released: Bools, holders: Holders, k: int
) -> tuple[Coarsening, ColumnRecoding]:
    """Return a column and its groups as if only some combinations of the table were there."""
    column = coarsening.column
    left = column.found(is_released)
    groups = replace(groups, group_of_leaf=groups.group_of_leaf[left])
    if left[0] >= column.size:  # only NULL
        return Top(no_leaves(holders), k), groups
    return coarsening.fitted(column.taken(is_released, holders, k)), groups


def counted(buckets: Sequence[Bucket], column: Leaves, rows: Ints, is_released: Bools) -> list[Bucket]:
    """Write the released rows of each label of a column into the first of its buckets."""
    codes = _label_codes(buckets)
    label = codes[bucket_of_leaf(buckets, column)][column.codes[is_released]]
    left = np.bincount(label, rows[is_released], int(codes.max()) + 1).astype(np.int64)
    first = np.unique(codes, return_index=True)[1].tolist()
    result = list(buckets)
    for place, size in zip(first, left.tolist(), strict=True):
        result[place] = result[place]._replace(rows=size)
    return result


def _label_codes(buckets: Sequence[Bucket]) -> Ints:
    """Return a number for the label of each bucket."""
    numbers: dict[str | None, int] = {}
    return np.array([numbers.setdefault(bucket.label, len(numbers)) for bucket in buckets], np.int64)


def bucket_of_leaf(buckets: Sequence[Bucket], column: Leaves) -> Ints:
    """Return the place of the bucket that each leaf of a column falls into, NULL's last: as anon.apply_plan does."""
    rest = next(place for place, bucket in enumerate(buckets) if bucket.covers == "rest")
    places = np.full(len(column.rows), rest, np.int64)
    if isinstance(column, TextLeaves):
        by_text = {bucket.lower: place for place, bucket in enumerate(buckets) if bucket.covers in ("value", "prefix")}
        is_prefix = any(bucket.covers == "prefix" for bucket in buckets)
        lengths = sorted({len(text or "") for text in by_text}) if is_prefix else [None]
        for leaf, text in enumerate(column.texts):
            places[leaf] = next((by_text[text[:end]] for end in lengths if text[:end] in by_text), rest)
    else:
        runs = [place for place, bucket in enumerate(buckets) if bucket.covers in ("number", "time")]
        if runs:
            starts = np.array([_bound(buckets[place]) for place in runs])
            places[: column.size] = np.array(runs)[np.searchsorted(starts, _positions(column), side="right") - 1]
    if column.has_null:
        places[-1] = len(buckets) - 1
    return places


def _is_ascending(buckets: Sequence[Bucket]) -> bool:
    """Tell whether buckets begin one after the other.

    A sample's classes may have fewer than k people. If some of an end's are left out, the end, which has k, would lie
    beyond the bucket that follows.
    """
    starts = [_bound(bucket) for bucket in buckets if bucket.covers in ("number", "time")]
    return all(low < high for low, high in itertools.pairwise(starts))


def _bound(bucket: Bucket) -> float:
    """Return where a bucket of numbers or moments begins: these in microseconds since 1970."""
    if bucket.lower is None:
        return -np.inf
    if bucket.covers == "number":
        return float(bucket.lower)
    return float(np.datetime64(bucket.lower.removesuffix("+00"), "us").astype(np.int64))


def _positions(column: Leaves) -> Floats:
    """Return the numbers of a column, or its moments in microseconds since 1970."""
    if isinstance(column, DayLeaves):
        return np.asarray(column.days * float(MICROSECONDS_PER_DAY), np.float64)
    assert isinstance(column, NumberLeaves)
    return column.positions

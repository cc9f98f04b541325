"""Values of single people that a release shows, column by column: a column that is released whole, in any order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from duckanon._core.common.arrays import Ints
from duckanon._core.privacy.copy_rates import Rate, code_count, labelled_rate, parts, rate


class ColumnCodes(NamedTuple):
    """The values of a column as numbers, equal ones as the same; None where there are no other people."""

    original: Ints
    released: Ints
    others: Ints | None


def rare_values(columns: Sequence[ColumnCodes], random: np.random.Generator, confidence: float) -> Rate:
    """Count the values that only one person has and the release shows, in the column where this tells most.

    With other people: of the values that one of all these people has, chance shows as many of members as of others, so
    that the members among those whose value is shown are a draw without replacement. Without them: of the values that
    one person of a random half of the table has, as many are shown by half of the release as by the other half of the
    table. Each column has its share of the false alarms.
    """
    alone = 1 - (1 - confidence) / max(len(columns), 1)
    found = [
        _among_halves(column, random, alone) if column.others is None else _among_others(column, alone)
        for column in columns
    ]
    return max(found, key=lambda one: one.value - one.limit, default=Rate(0.0, 0.0, 0.0, 0))


def _among_others(column: ColumnCodes, confidence: float) -> Rate:
    assert column.others is not None
    people = np.concatenate([column.original, column.others])
    codes = code_count(people, column.released)
    is_single = np.bincount(people, minlength=codes)[people] == 1
    is_shown = np.bincount(column.released, minlength=codes)[people] > 0
    members = int(is_single[: len(column.original)].sum())
    return labelled_rate(is_shown[is_single], members, confidence)


def _among_halves(column: ColumnCodes, random: np.random.Generator, confidence: float) -> Rate:
    codes = code_count(column.original, column.released)
    order = random.permutation(len(column.original))
    half, rest = order[: len(order) // 2], order[len(order) // 2 :]
    counts = np.bincount(column.original[half], minlength=codes)
    single = np.flatnonzero(counts == 1)
    usual = np.bincount(column.original[rest], minlength=codes)[single] > 0
    drawn = parts(len(column.released), len(rest), random)
    hits = np.zeros(len(single))
    for part in drawn:
        hits += np.bincount(column.released[part], minlength=codes)[single] > 0
    return rate(float(hits.sum()) / len(drawn), len(single), float(usual.sum()), len(single), confidence)

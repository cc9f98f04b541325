"""Rows out: the rows that have to go so that k people hold every choice of a person's rows."""

from __future__ import annotations

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Floats, Ints, Ints32, run_starts
from duckanon._methods.linked.choices import Chains, Rows, chains, choices, has_any, keys
from duckanon._methods.linked.dense_numbers import held_by
from duckanon._methods.linked.sensitive_values import Told


def rows_out(
    rows: Rows, items: Ints, k: int, told: Told | None = None, most: float = 1, eligible: Bools | None = None
) -> Bools | None:
    """Tell which rows go; None where that would be more than the share `most` of them.

    Choices of one row are covered first, then those of two and one, since a row that goes for a pair may leave another
    one too rare. Each person covers their violated choices by the row that is in most of them for what goes with it.
    Only `eligible` rows go, where the others keep the promise by themselves.
    """
    gone = np.zeros(rows.size, np.bool_)
    equal = chains(rows.person, items, eligible)
    numbers = np.append(items, 0)
    is_choice = choices(rows.sets, equal.before)
    counts = (rows.sets < rows.size).sum(axis=1)
    for size in range(1, rows.sets.shape[1] + 1):
        sets = rows.sets[is_choice & (counts <= size)]
        sets = sets[~has_any(sets, gone)]
        held = keys(sets, numbers)
        while True:
            progress.check()
            bad = _violated(sets, held, k, rows, told)
            if not len(bad):
                break
            out = cover(rows.person, sets[bad], equal, eligible, by_loss=True)
            gone |= out
            if gone.mean() > most:
                return None
            stays = ~has_any(sets, out)
            sets, held = sets[stays], held[stays]
    return gone


def _violated(sets: Ints32, held: Ints, k: int, rows: Rows, told: Told | None) -> Ints:
    is_bad = held_by(held) < k
    if told is not None:
        is_bad |= told.is_violated(held, rows.person[sets[:, 0]])
    return np.flatnonzero(is_bad)


def cover(person: Ints, violated: Ints32, equal: Chains, eligible: Bools | None, by_loss: bool = False) -> Bools:
    """Return rows that are in all violated choices, chosen person by person, greedily by the choices they are in.

    A row takes the later ones of its chain with it, else a choice would be held by these; `by_loss` counts them.
    """
    size = len(person)
    is_out = np.zeros(size + 1, np.bool_)
    is_eligible = np.append(np.ones(size, np.bool_) if eligible is None else eligible, False)
    lengths = np.bincount(equal.chain)
    losses = np.append(lengths[equal.chain] - equal.place if by_loss else np.ones(size), 1.0)
    lowest = np.full(len(lengths), size, np.int64)
    while len(violated):
        # the last row of a chain in a choice; the earlier ones would take it with them
        is_last = np.ones(violated.shape, np.bool_)
        for place in range(violated.shape[1]):
            is_last &= equal.before[violated[:, [place]]] != violated
        hits = np.bincount(violated[is_last & is_eligible[violated]], minlength=size + 1)
        if not hits.any():
            raise AssertionError("a violated choice has no row that may change.")
        taken = _best_of_person(person, np.flatnonzero(hits), hits / losses)
        lowest[equal.chain[taken]] = np.minimum(lowest[equal.chain[taken]], equal.place[taken])
        is_out[:-1] = equal.place >= lowest[equal.chain]
        violated = violated[~has_any(violated, is_out[:-1])]
    return is_out[:-1]


def _best_of_person(person: Ints, rows: Ints, scores: Floats) -> Ints:
    """Return the row of each person that has the largest score; of several, any.

    The first one would be of the first table: on a hospital's tables, that lost 2.5 % more.
    """
    order = np.lexsort((scattered(rows), -scores[rows], person[rows]))
    ordered = rows[order]
    return ordered[run_starts(person[ordered])]


def scattered(numbers: Ints) -> Ints:
    """Return an order that has nothing to do with the numbers, and is the same each time."""
    return (numbers + 1) * 2_654_435_761 % 4_294_967_291

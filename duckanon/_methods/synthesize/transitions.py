"""Choices that follow others: as often as in the table, whatever trees find worth a split."""

from __future__ import annotations

import numpy as np

from duckanon._core.common.arrays import Floats, Ints
from duckanon._core.common.people import people_in
from duckanon._methods.synthesize.leaf_draws import FEWEST, drawn_choices, noisy, rounded_by_chance

MOST_CHOICES = 16
"""Choices of a column up to which transitions are counted: of more, most are made by few people."""
_ROUNDS = 20
_WIDEST = 4.0  # times as often, or as seldom, as a tree says


def transition_factors(
    last: Ints, own: Ints, people: Ints, leaves: Ints, shares: Floats, k: int, random: np.random.Generator
) -> Floats:
    """Return by how much the share of each choice is multiplied, given the choice of the last row.

    A tree leaves out what may be chance. Its shares times these factors give every transition as often as the table
    has it; where few people make it, with noise, and as the tree says where fewer than three do.

    Args:
        last, own: The choices of the last rows and of those that follow.
        people: Whose they are.
        leaves: The leaf of each row.
        shares: Those of choices, by leaf.
        k: Transitions of fewer than 3 k people get noise.
        random: Where chance comes from.
    """
    lasts, choices = int(last.max(initial=0)) + 1, shares.shape[1]
    made = last * choices + own
    counts = np.bincount(made, minlength=lasts * choices)
    is_few = people_in(made, people, lasts * choices).reshape(lasts, choices) < FEWEST
    wanted = noisy(counts, k, random).reshape(lasts, choices).astype(np.float64)
    cells, place = np.unique(leaves * lasts + last, return_inverse=True)
    sizes, of_leaf, of_last = np.bincount(place), shares[cells // lasts], cells % lasts
    factors: Floats = np.ones((lasts, choices))
    for _ in range(_ROUNDS):
        found = of_leaf * factors[of_last]
        found *= (sizes / np.maximum(found.sum(axis=1), 1e-12))[:, None]
        sums = np.zeros((lasts, choices))
        np.add.at(sums, of_last, found)
        wider = factors * wanted / np.maximum(sums, 1e-12)
        factors = np.where(is_few | (sums <= 0), factors, np.clip(wider, 1 / _WIDEST, _WIDEST))
    return factors


def drawn_transitions(shares: Floats, cells: Ints, last: Ints, random: np.random.Generator) -> Ints:
    """Draw a choice for every row, after each choice of the last row as often as is expected there.

    Args:
        shares: Of choices, by cell; at least one is positive in each.
        cells: The cell of each row.
        last: The choice of the last row.
        random: Where chance comes from.
    """
    codes: Ints = np.empty(len(cells), np.int64)
    for choice in np.unique(last).tolist():
        here = np.flatnonzero(last == choice)
        names, place = np.unique(cells[here], return_inverse=True)
        own = shares[names] / shares[names].sum(axis=1, keepdims=True)
        wanted = rounded_by_chance(np.bincount(place) @ own, len(here), random)
        codes[here] = drawn_choices(own, place, wanted, random)
    return codes

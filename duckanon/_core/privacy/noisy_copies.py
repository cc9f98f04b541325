"""Released rows that are a person's but for a little noise: far nearer to one person than to anybody else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from duckanon._core.common.arrays import Bools, Ints, Matrix
from duckanon._core.privacy.close_copies import Amounts, close_copies, tests_of
from duckanon._core.privacy.copy_rates import Rate, labelled_rate, rate
from duckanon._core.privacy.neighbours import nearest

_FACTORS = (3.0, 8.0, 20.0)
"""How much nearer a row is to a person than to the next: of 5 % of the rows, with noise of .05 standard deviations, the
first finds most in the surveys at hand, of 1 % with .01 the last."""
_PAIRS = 10**8  # of a released row and a person that are looked at; beyond, rows and people are drawn at random


class Coded(NamedTuple):
    """Members, the release and other people, where there are any, as matrices with one encoding."""

    rows: Matrix
    release: Matrix
    others: Matrix | None


def noisy_copies(
    codings: Sequence[Coded], random: np.random.Generator, confidence: float, amounts: Amounts | None = None
) -> Rate:
    """Count people to whom a released row is nearer than to anybody else by a factor, but not equal.

    With other people: were the release another sample, members and others would be hit alike, so that the members
    among all who are hit are a draw without replacement, whatever the release looks like and however its rows cluster.
    Without them, the rows of the other members hit people for comparison. Equal rows are counted elsewhere. Each factor
    in each encoding of the same rows, and each test of `close_copies`, has its share of the false alarms; the one that
    tells most counts.
    """
    first = codings[0]
    size = max(1, int((_PAIRS / 2) ** 0.5))
    people, others, queries = (
        np.sort(random.permutation(count)[:size])
        for count in (len(first.rows), 0 if first.others is None else len(first.others), len(first.release))
    )
    tests = len(_FACTORS) * len(codings) + (0 if amounts is None else len(tests_of(amounts)))
    alone = 1 - (1 - confidence) / tests
    found = [] if amounts is None else close_copies(amounts, (people, others, queries), alone)
    for coded in codings:
        pool = coded.rows[people]
        if coded.others is not None:
            pool = np.concatenate([pool, coded.others[others]])
        distances, places = nearest(coded.release[queries], pool, 2)
        count = min(len(queries), len(pool))
        usual = nearest(pool[:count], pool, 2, skip_self=np.arange(count)) if coded.others is None else None
        for factor in _FACTORS:
            hit = _hit(distances, places, factor, len(pool))
            if usual is None:
                found.append(labelled_rate(hit, len(people), alone))
            else:  # as many rows of the table hit people for comparison, or fewer where it has no more
                expected = float(_hit(*usual, factor, len(pool)).sum())
                trials = len(pool) * count / len(queries)
                found.append(rate(float(hit.sum()), len(pool), expected, trials, alone))
    return max(found, key=lambda one: one.value - one.limit)


def _hit(distances: Matrix, places: Ints, factor: float, people: int) -> Bools:
    """Tell which people a row comes nearer to than to the next person by the factor, without being equal."""
    is_near = (distances[:, 0] > 0) & (factor * distances[:, 0] < distances[:, 1])
    hit = np.zeros(people, bool)
    hit[places[is_near, 0]] = True
    return hit

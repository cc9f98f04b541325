"""Sensitive values of people, and how sure somebody is of one who knows a choice of a person's rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from duckanon._core.common.arrays import Bools, Ints, Ints32, run_lengths, run_starts

_ROUNDING = 1e-9


class Told(NamedTuple):
    """The sensitive values of the people of a class."""

    starts: Ints  # where each person's values begin in `values`, and a last entry for their end
    values: Ints  # numbers from 0
    most: float  # the largest share of one value that is allowed

    def is_too_sure(self, held: Ints | Ints32, person: Ints) -> Bools:
        """Tell for each choice of a person whether too many of the people who hold it have one value.

        `held` numbers the choices; every person holds one at most once.
        """
        counts = self.starts[person + 1] - self.starts[person]
        choice = np.repeat(held, counts)
        first = np.repeat(self.starts[person], counts)
        own = np.arange(len(first)) - np.repeat(np.cumsum(counts) - counts, counts)
        value = self.values[first + own]
        order = np.lexsort((value, choice))
        pairs = np.stack([choice[order], value[order]], axis=1)
        starts = run_starts(pairs)
        having = run_lengths(starts, len(pairs))
        ordered = np.sort(held)
        of_pair = pairs[starts, 0]
        people = np.searchsorted(ordered, of_pair, side="right") - np.searchsorted(ordered, of_pair, side="left")
        sure = of_pair[having > self.most * people + _ROUNDING]
        return np.isin(held, sure)

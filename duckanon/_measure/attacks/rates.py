"""Rates of success of an attack, and the part that is due to the release, with confidence intervals."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import NamedTuple


class Risk(NamedTuple):
    """The gain of an attack over its baseline, from 0 to 1, with a confidence interval."""

    value: float
    lower: float
    upper: float


def wilson(successes: float, attacks: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return the middle of Wilson's interval for a rate, and half its width.

    E. B. Wilson, Probable inference, the law of succession, and statistical inference, 1927. The interval stays inside
    0 to 1, and has a width even where all attacks succeed or none does. Successes may be fractional: a guess among m
    rows of which one is right counts 1 / m.
    """
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    denominator = attacks + z * z
    spread = successes * (attacks - successes) / attacks
    return (successes + z * z / 2) / denominator, z / denominator * math.sqrt(max(spread, 0.0) + z * z / 4)


def risk_columns(
    attack: tuple[float, int], control: tuple[float, int] | None, naive: tuple[float, int], confidence: float
) -> dict[str, float | None]:
    """Return shares of success and the risk with its interval, as attacks report them; None without attacks.

    The baseline is the attack on the control group, or the naive one without a group.
    """
    risk = excess_risk(attack, naive if control is None else control, confidence) if attack[1] else (None, None, None)
    shares = (None if one is None or not one[1] else one[0] / one[1] for one in (attack, control, naive))
    names = ("success", "control_success", "naive_success", "risk", "risk_lower", "risk_upper")
    return dict(zip(names, (*shares, *risk), strict=True))


def excess_risk(attack: tuple[float, int], baseline: tuple[float, int], confidence: float = 0.95) -> Risk:
    """Compare an attack on the originals with its baseline, both as successes and number of attacks.

    (attack - baseline) / (1 - baseline): Giomi et al., A unified framework for quantifying privacy risk in synthetic
    data, 2022, equation 2: what the release tells about its own people beyond what it tells about everyone. Rates are
    the middles of Wilson's intervals, whose errors are carried through the formula to first order; everything is cut at
    0 and 1.
    """
    (a, a_error), (c, c_error) = wilson(*attack, confidence), wilson(*baseline, confidence)
    value = (a - c) / (1 - c)
    error = math.hypot(a_error / (1 - c), c_error * (1 - a) / (1 - c) ** 2)
    return Risk(*(min(max(end, 0.0), 1.0) for end in (value, value - error, value + error)))

"""Numbers about an original that a report may show: one person hardly moves them, none is about fewer than k.

Somebody who knows everybody but one person could compute the last one's values from an exact statistic. So shares,
correlations and differences come in steps of at least ten people's weight: one person moves a share by 1/n, and a
correlation by the product of two standardised values over n, which is below 10/n for all but extreme people. Pictures
are drawn from the same rounded numbers, since the coordinates of an SVG can be read.
"""

from __future__ import annotations

import math
from typing import Any

from duckanon._core.common.release_record import TableEntry

_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
_WEIGHT = 10  # people who together move a statistic by the step it is rounded to
NOT_TOLD = _STEPS[-1]
"""The step from which on nothing is told: shares would be 0, 0.5 or 1, and fewer than 20 people could move them."""
USUAL_K = 10  # where the release promised no k, as new records do not


def step_for(people: int) -> float:
    """Return the step that statistics of so many people are rounded to."""
    return next((step for step in _STEPS if step * people >= _WEIGHT), _STEPS[-1])


def round_to_step(value: float | None, step: float) -> float | None:
    """Round to a step; what is no number is None, and so is what is not told.

    Examples:
        >>> round_to_step(0.1234, 0.05), round_to_step(float("nan"), 0.05), round_to_step(0.1234, NOT_TOLD)
        (0.1, None, None)
    """
    if value is None or not math.isfinite(value) or step >= NOT_TOLD:
        return None
    return round(round(value / step) * step, 6) + 0.0


def significant(value: float | None, digits: int = 2) -> float | None:
    """Round to some digits that count; what is no number is None.

    Examples:
        >>> significant(0.012345)
        0.012
    """
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.{digits}g}")


def k_of_release(table: TableEntry) -> int:
    """Return the k of a release: that of its method or, without one, of its promises; at least the usual one."""
    candidates = [(table.get("method") or {}).get("parameters", {}).get("k")]
    candidates += [promise.get("asked") for promise in table.get("promises", []) if promise.get("name") == "k"]
    whole = [k for k in candidates if isinstance(k, int) and not isinstance(k, bool)]
    return max([*whole[:1], 2]) if whole else USUAL_K


def is_small(count: Any, k: int) -> bool:
    """Tell whether a count is of so few people that the report says only `fewer than k`."""
    return isinstance(count, int) and 0 < count < k

"""Suggestions for columns that nobody has decided yet: no decision is asked for without a hint."""

from __future__ import annotations

from duckanon.workbench.bench import Glance
from duckanon.workbench.counts import Risk

_ADDS = 0.001
"""Share of the people, from which on a column that makes them unique is suggested as one that others may know."""


def suggestion(column: Glance, now: Risk, with_it: Risk) -> str:
    """Say which role to choose for a column, and why.

    Args:
        column: What was seen in it.
        now: The risk of the columns that others may know.
        with_it: The risk if they may know this column, too.
    """
    if column.follows:
        return f"the same as for {' and '.join(column.follows)}, from which it follows."
    if column.seen == "constant":
        return "“identifies nobody”: it says the same about everybody."
    if column.seen == "weight":
        return "“not needed”, unless results are weighted by it: an exact weight can point at a person."
    people = max(with_it.people, 1)
    if with_it.unique - now.unique >= _ADDS * people:
        shares = f"with it {100 * with_it.unique / people:.3g} % of the people are unique, without it "
        return f"“others may know it”: {shares}{100 * now.unique / people:.3g} %."
    return (
        "“others may know it” if a neighbour, a colleague or a register could know it: it makes hardly anybody unique, "
        "so that protecting it costs little. Else “identifies nobody”."
    )

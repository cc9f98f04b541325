"""The budgets of an account as its owner sets and sees them."""

from __future__ import annotations

from decimal import Decimal

from duckanon._core.account.budget import amount, budgets, set_limit
from duckanon._core.account.storage import Account
from duckanon.job.account import problems


def limit(path: str, dataset: str, consumer: str | None, epsilon: float, delta: float) -> None:
    """Set the budget of a data set, or of one of its consumers; the account is made where there is none."""
    with problems():
        wanted = amount(epsilon, delta)
        with Account(path, None, create=True) as account:
            set_limit(account, dataset, consumer, wanted)


def show(path: str) -> list[str]:
    """Return a line about each budget of an account."""
    with problems(), Account(path, None) as account:
        return [
            f"{one.dataset}{'' if one.consumer is None else f', consumer {one.consumer}'}: epsilon "
            f"{_plain(one.spent.epsilon)} of {_plain(one.limit.epsilon)} and delta {_plain(one.spent.delta)} of "
            f"{_plain(one.limit.delta)} spent in {one.answers} answers"
            for one in budgets(account)
        ] or ["no budgets yet"]


def _plain(number: Decimal) -> str:
    """Write a number without zeros at its end."""
    return f"{number.normalize():f}" if number else "0"

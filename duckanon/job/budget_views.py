"""The budgets of an account as its owner sets and sees them."""

from __future__ import annotations

from decimal import Decimal

from duckanon._core.account.budget import amount, budgets, count_answers, lost_answers, set_limit
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
        found = [
            f"{one.dataset}{'' if one.consumer is None else f', consumer {one.consumer}'}: epsilon "
            f"{_plain(one.spent.epsilon)} of {_plain(one.limit.epsilon)} and delta {_plain(one.spent.delta)} of "
            f"{_plain(one.limit.delta)} spent in {one.answers} answers"
            for one in budgets(account)
        ] or ["no budgets yet"]
        if lost := lost_answers(account):
            found.append(f"{lost} more answers are known by its counter: nothing is spent until --accept-loss")
        return found


def accept_loss(path: str) -> None:
    """Go on with an account that has lost answers: what they spent is spent again."""
    with problems(), Account(path, None) as account:
        count_answers(account)


def _plain(number: Decimal) -> str:
    """Write a number without zeros at its end."""
    return f"{number.normalize():f}" if number else "0"

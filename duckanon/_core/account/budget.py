"""Budgets of differential privacy in an account: how much of epsilon and delta may be given away, and was.

A data set has a limit for all answers together, and may have one for each consumer beside it. Amounts are decimal
numbers, as they are written: three times 0.1 is 0.3. They are kept as text, since SQLite would compute with floats.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from duckanon._core.account.storage import Account, AccountError, read_counter, update_counter

_EVERYBODY = ""  # the consumer of a data set's own limit; that of an answer without one, too

_TABLES = [
    """
    CREATE TABLE budget_limits (
        dataset TEXT NOT NULL, consumer TEXT NOT NULL, epsilon TEXT NOT NULL, delta TEXT NOT NULL,
        PRIMARY KEY (dataset, consumer));
    CREATE TABLE budget_spent (
        dataset TEXT NOT NULL, consumer TEXT NOT NULL, epsilon TEXT NOT NULL, delta TEXT NOT NULL,
        answers INTEGER NOT NULL, PRIMARY KEY (dataset, consumer));
    CREATE TABLE budget_answers (
        number INTEGER PRIMARY KEY AUTOINCREMENT, moment TEXT NOT NULL, dataset TEXT NOT NULL, consumer TEXT NOT NULL,
        epsilon TEXT NOT NULL, delta TEXT NOT NULL, question TEXT NOT NULL)
    """
]

_EXACT = decimal.Context(prec=800, traps=[decimal.Inexact, decimal.InvalidOperation])
"""Sums of floats as they are written have fewer digits, whatever their exponents."""


@dataclass(frozen=True)
class Amount:
    """Epsilon and delta together."""

    epsilon: Decimal
    delta: Decimal

    def __add__(self, other: Amount) -> Amount:
        return Amount(_EXACT.add(self.epsilon, other.epsilon), _EXACT.add(self.delta, other.delta))

    def __sub__(self, other: Amount) -> Amount:
        return Amount(_EXACT.subtract(self.epsilon, other.epsilon), _EXACT.subtract(self.delta, other.delta))

    def __le__(self, other: Amount) -> bool:
        return self.epsilon <= other.epsilon and self.delta <= other.delta

    @property
    def texts(self) -> tuple[str, str]:
        """Both as they are stored."""
        return str(self.epsilon), str(self.delta)


_NOTHING = Amount(Decimal(0), Decimal(0))


@dataclass(frozen=True)
class Budget:
    """A limit, and what was spent of it."""

    dataset: str
    consumer: str | None  # None: all consumers together
    limit: Amount
    spent: Amount
    answers: int


def make_amount(epsilon: float, delta: float) -> Amount:
    """Return an amount from floats, as they are written; it is finite and not negative."""
    price = Amount(Decimal(repr(float(epsilon))), Decimal(repr(float(delta))))
    if not (price.epsilon.is_finite() and price.delta.is_finite() and min(price.epsilon, price.delta) >= 0):
        raise AccountError("epsilon and delta of a budget must be finite numbers of at least 0.")
    return price


def set_limit(account: Account, dataset: str, consumer: str | None, limit: Amount) -> None:
    """Set how much may be spent in all, of a data set or by one of its consumers; what was spent stays spent."""
    for name, text in (("data set", dataset), ("consumer", consumer)):
        if text is not None and not text.strip():
            raise AccountError(f"the {name} of a budget must have a name.")
    account.prepare("budget", _TABLES)
    with account.transaction() as con:
        con.execute(
            "INSERT OR REPLACE INTO budget_limits VALUES (?, ?, ?, ?)", (dataset, consumer or _EVERYBODY, *limit.texts)
        )


def spend(account: Account, dataset: str, consumer: str | None, price: Amount, question: str) -> None:
    """Spend an amount, or refuse it with an AccountError: after this the answer may be drawn.

    A data set without a limit is refused, and where consumers have limits, one without; and so is an account that was
    deleted, emptied or set back to an older copy: it would spend again what was spent.
    """
    account.prepare("budget", _TABLES)
    who = consumer or _EVERYBODY
    with account.transaction() as con:
        if lost := count_lost_answers(account):
            raise AccountError(
                f"{account.path}: the account lacks {lost} of the answers that its counter knows, and would spend what "
                "they spent again; restore both from a backup, or let a person decide with duckanon account budget "
                "--accept-loss."
            )
        limits, spent = _read_limits(account), _read_expenses(account)
        of_dataset = {name: expense for (of, name), expense in spent.items() if of == dataset}
        before, answers = of_dataset.get(who, (_NOTHING, 0))
        if (dataset, _EVERYBODY) not in limits:
            raise AccountError(f"data set {dataset} has no budget; duckanon account budget sets one.")
        _refuse_beyond(f"data set {dataset}", limits[dataset, _EVERYBODY], _add_up(of_dataset), price)
        if any(of == dataset and name for of, name in limits):
            if who == _EVERYBODY or (dataset, who) not in limits:
                asked = f"consumer {consumer} has none" if consumer else "no consumer was named"
                raise AccountError(f"consumers of data set {dataset} have budgets of their own, and {asked}.")
            _refuse_beyond(f"consumer {who} of data set {dataset}", limits[dataset, who], before, price)
        moment = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        con.execute(
            "INSERT OR REPLACE INTO budget_spent VALUES (?, ?, ?, ?, ?)",
            (dataset, who, *(before + price).texts, answers + 1),
        )
        con.execute(
            "INSERT INTO budget_answers VALUES (NULL, ?, ?, ?, ?, ?, ?)",
            (moment, dataset, who, *price.texts, question),
        )
    update_answers(account)


def count_lost_answers(account: Account) -> int:
    """Return how many answers the counter beside an account knows that the account does not have."""
    counter = read_counter(account.path)
    return max((counter.answers if counter else 0) - _count_answers(account), 0)


def update_answers(account: Account) -> None:
    """Write how many answers there are into the counter beside the account: it never knows of more."""
    account.prepare("budget", _TABLES)
    with account.transaction():
        update_counter(account.path, answers=_count_answers(account))


def _count_answers(account: Account) -> int:
    return int(account.query("SELECT coalesce(max(number), 0) FROM budget_answers")[0][0])


def list_budgets(account: Account) -> list[Budget]:
    """List all limits with what was spent of them, in the order of their names; a data set before its consumers."""
    account.prepare("budget", _TABLES)
    limits, spent = _read_limits(account), _read_expenses(account)
    budgets = []
    for dataset, consumer in sorted(limits):
        expenses = {who: price for (of, who), price in spent.items() if of == dataset and consumer in (_EVERYBODY, who)}
        answers = sum(count for _, count in expenses.values())
        budgets.append(Budget(dataset, consumer or None, limits[dataset, consumer], _add_up(expenses), answers))
    return budgets


def _refuse_beyond(holder: str, limit: Amount, spent: Amount, price: Amount) -> None:
    if not spent + price <= limit:
        left = limit - spent
        raise AccountError(
            f"the budget of {holder} would be exceeded: epsilon {max(left.epsilon, 0):f} and delta "
            f"{max(left.delta, 0):f} are left of it, and the answer costs {price.epsilon:f} and {price.delta:f}."
        )


def _read_limits(account: Account) -> dict[tuple[str, str], Amount]:
    rows = account.query("SELECT dataset, consumer, epsilon, delta FROM budget_limits")
    return {(str(of), str(who)): Amount(Decimal(str(epsilon)), Decimal(str(delta))) for of, who, epsilon, delta in rows}


def _read_expenses(account: Account) -> dict[tuple[str, str], tuple[Amount, int]]:
    rows = account.query("SELECT dataset, consumer, epsilon, delta, answers FROM budget_spent")
    return {
        (str(of), str(who)): (Amount(Decimal(str(epsilon)), Decimal(str(delta))), int(str(answers)))
        for of, who, epsilon, delta, answers in rows
    }


def _add_up(spent: Mapping[str, tuple[Amount, int]]) -> Amount:
    return sum((price for price, _ in spent.values()), _NOTHING)

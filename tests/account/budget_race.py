"""Processes that spend one budget at the same time, some of which are killed: nobody may spend more than there is.

    python -m tests.account.budget_race [processes]

All processes wait for one signal, then each spends a thousandth of the budget again and again until it is refused, and
writes a line after each amount that it was granted. A fifth is killed at random moments. In the end the budget must be
spent exactly, every granted line must stand in the account, and the file must be whole.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from duckanon._core.account.budget import list_budgets, make_amount, set_limit, spend
from duckanon._core.account.storage import Account, AccountError

LIMIT, PRICE = 3.0, 0.003


@dataclass(frozen=True)
class Outcome:
    """The state of an account after a race."""

    processes: int
    killed: int
    granted: int  # amounts that processes know to have
    answers: int  # amounts that the account has
    listed: int  # rows of the list of answers
    spent: Decimal
    limit: Decimal
    is_whole: bool
    seconds: float

    @property
    def is_overspent(self) -> bool:
        return (
            self.spent > self.limit or self.spent != Decimal(str(PRICE)) * self.answers or self.listed != self.answers
        )


def race(processes: int, folder: Path, killed: float = 0.2, limit: float = LIMIT, pause: float = 0.02) -> Outcome:
    """Let processes spend one budget, and return what came of it."""
    path, granted = folder / "account.sqlite", folder / "granted"
    with Account(path, None, create=True) as account:
        set_limit(account, "d", None, make_amount(limit, 0))
    gate, opened = os.pipe()
    children = []
    for number in range(processes):
        child = os.fork()
        if child == 0:
            _spend(path, granted, gate, opened, number)
        children.append(child)
    begin = time.monotonic()
    os.close(gate)
    os.close(opened)  # all begin
    victims = random.sample(children, int(killed * processes))
    for victim in victims:
        time.sleep(random.random() * pause)
        os.kill(victim, signal.SIGKILL)
    ended = [os.waitpid(child, 0)[1] for child in children]
    with Account(path, None) as account:
        (budget,) = list_budgets(account)
        (listed,) = account.query("SELECT count(*) FROM budget_answers")[0]
        is_whole = account.query("PRAGMA integrity_check") == [("ok",)]
    return Outcome(
        processes,
        sum(os.WIFSIGNALED(status) for status in ended),
        len(granted.read_text().splitlines()) if granted.exists() else 0,
        budget.answers,
        int(str(listed)),
        budget.spent.epsilon,
        budget.limit.epsilon,
        is_whole,
        time.monotonic() - begin,
    )


def _spend(path: Path, granted: Path, gate: int, opened: int, number: int) -> None:
    """Spend until refused: the life of a process, which ends here."""
    os.close(opened)
    os.read(gate, 1)
    code = 0
    try:
        while True:
            try:
                with Account(path, None) as account:
                    spend(account, "d", None, make_amount(PRICE, 0), f"process {number}")
            except AccountError as error:
                if "would be exceeded" in str(error):
                    break
                continue  # another process holds the file
            descriptor = os.open(granted, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
            os.write(descriptor, f"{number}\n".encode())
            os.close(descriptor)
    except BaseException:
        code = 1
    finally:
        os._exit(code)


def main() -> None:
    processes = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    with tempfile.TemporaryDirectory() as folder:
        outcome = race(processes, Path(folder), pause=0.2)  # kills all along the race
    print(outcome)
    print("overspent:", outcome.is_overspent)


if __name__ == "__main__":
    main()

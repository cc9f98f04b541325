"""Budgets of an account: decimal numbers, limits of data sets and consumers, processes that race and are killed."""

from __future__ import annotations

import os
import threading
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckanon._core.account.budget import list_budgets, make_amount, set_limit, spend
from duckanon._core.account.releases import Releases
from duckanon._core.account.storage import Account, AccountError, Counter, read_counter
from duckanon.cli.main import main
from tests.account.budget_race import race
from tests.profiles import cheap

KEY = "a key that nobody else has"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Account(tmp_path / "account.sqlite", None, create=True) as account:
        set_limit(account, "visits", None, make_amount(0.3, 1e-6))
    return tmp_path / "account.sqlite"


def test_a_budget_is_spent_to_its_end_and_no_further(path: Path) -> None:
    with Account(path, None) as account:
        for _ in range(3):  # as floats, three times 0.1 are more than 0.3
            spend(account, "visits", None, make_amount(0.1, 0), "count")
        with pytest.raises(
            AccountError, match=r"data set visits would be exceeded: epsilon 0\.0 and delta 0\.000001 are"
        ):
            spend(account, "visits", None, make_amount(1e-9, 0), "count")
        (budget,) = list_budgets(account)
        assert (budget.spent.epsilon, budget.answers) == (Decimal("0.3"), 3)
        set_limit(account, "visits", None, make_amount(0.5, 1e-6))
        with pytest.raises(AccountError, match="would be exceeded"):
            spend(account, "visits", None, make_amount(0.1, 2e-6), "count")
        spend(account, "visits", None, make_amount(0.2, 1e-6), "count")
        with pytest.raises(AccountError, match="data set others has no budget"):
            spend(account, "others", None, make_amount(0.1, 0), "count")


def test_consumers_have_budgets_within_that_of_the_data_set(path: Path) -> None:
    with Account(path, None) as account:
        set_limit(account, "visits", "anna", make_amount(0.2, 0))
        set_limit(account, "visits", "otto", make_amount(0.2, 0))
        spend(account, "visits", "anna", make_amount(0.2, 0), "count")
        with pytest.raises(AccountError, match="consumer anna of data set visits would be exceeded"):
            spend(account, "visits", "anna", make_amount(0.1, 0), "count")
        with pytest.raises(AccountError, match="data set visits would be exceeded"):
            spend(account, "visits", "otto", make_amount(0.2, 0), "count")
        spend(account, "visits", "otto", make_amount(0.1, 0), "count")
        for stranger, words in ((None, "no consumer was named"), ("hanna", "consumer hanna has none")):
            with pytest.raises(AccountError, match=words):
                spend(account, "visits", stranger, make_amount(0, 0), "count")


@cheap
@given(st.lists(st.floats(0, 1e3, allow_subnormal=True), max_size=20), st.floats(0, 1e3))
def test_amounts_add_up_exactly(prices: list[float], limit: float) -> None:
    total = sum((make_amount(entry, 0) for entry in prices), make_amount(0, 0))
    assert total.epsilon == sum((Decimal(repr(entry)) for entry in prices), Decimal(0)) or len(str(total.epsilon)) > 28
    assert (total <= make_amount(limit, 0)) == (total.epsilon <= Decimal(repr(limit)))


@pytest.mark.parametrize("wrong", [(float("nan"), 0), (-1, 0), (1, -1e-9), (float("inf"), 0)])
def test_amounts_are_finite_and_not_negative(wrong: tuple[float, float]) -> None:
    with pytest.raises(AccountError, match="finite numbers of at least 0"):
        make_amount(*wrong)


def test_a_budget_needs_no_key_and_an_account_may_get_one_later(path: Path) -> None:
    with Account(path, None) as account, pytest.raises(AccountError, match="opened without its key"):
        account.hash_value("person", "anna")
    with Account(path, KEY) as account:
        first = account.hash_value("person", "anna")
    with Account(path, KEY) as account:
        assert account.hash_value("person", "anna") == first
        assert len(list_budgets(account)) == 1
    with pytest.raises(AccountError, match="another key"):
        Account(path, KEY + "!")


def test_threads_of_one_process_spend_what_is_there(path: Path) -> None:
    granted = []

    def work() -> None:
        for _ in range(5):
            with Account(path, None) as account:
                try:
                    spend(account, "visits", None, make_amount(0.03, 0), "count")
                except AccountError:
                    continue
                granted.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(granted) == 10


@pytest.mark.thorough
@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks processes")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_racing_processes_spend_the_budget_and_no_more(tmp_path: Path) -> None:
    outcome = race(20, tmp_path, killed=0.3, limit=0.15)
    assert not outcome.is_overspent
    assert outcome.is_whole
    assert outcome.killed > 0
    assert outcome.granted <= outcome.answers <= outcome.granted + outcome.killed
    assert outcome.spent == outcome.limit


def test_the_command_sets_and_shows_budgets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "account.sqlite")
    assert main(["account", "budget", path]) == 3
    assert main(["account", "budget", path, "--dataset", "visits", "--epsilon", "-1"]) == 3
    assert main(["account", "budget", path, "--dataset", "visits"]) == 2
    assert not os.path.exists(path)
    assert main(["account", "budget", path, "--dataset", "visits", "--epsilon", "3", "--delta", "1e-6"]) == 0
    with Account(path, None) as account:
        spend(account, "visits", None, make_amount(0.25, 0), "count")
    capsys.readouterr()
    assert main(["account", "budget", path, "--dataset", "visits", "--consumer", "anna", "--epsilon", "1"]) == 0
    assert capsys.readouterr().out == (
        "visits: epsilon 0.25 of 3 and delta 0 of 0.000001 spent in 1 answers\n"
        "visits, consumer anna: epsilon 0 of 1 and delta 0 of 0 spent in 0 answers\n"
    )


@pytest.mark.parametrize("loss", ["set back", "emptied", "made anew"])
def test_an_account_that_lost_answers_spends_nothing_until_a_person_decides(
    loss: str, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It had 0.3 to spend: 0.2 are spent, the account is lost, and 0.3 would be spent again."""
    with Account(path, None) as account:
        spend(account, "visits", None, make_amount(0.1, 0), "count")
    older = path.read_bytes()
    with Account(path, None) as account:
        spend(account, "visits", None, make_amount(0.1, 0), "count")
    if loss == "set back":
        path.write_bytes(older)
    else:
        path.write_bytes(b"") if loss == "emptied" else path.unlink()
        with Account(path, None, create=True) as account:
            set_limit(account, "visits", None, make_amount(0.3, 1e-6))
    lost = 1 if loss == "set back" else 2
    for _ in range(2):
        with (
            Account(path, None) as account,
            pytest.raises(AccountError, match=f"lacks {lost} of the answers that its counter knows"),
        ):
            spend(account, "visits", None, make_amount(0.1, 0), "count")
    assert main(["account", "budget", str(path)]) == 0
    assert f"{lost} more answers are known by its counter" in capsys.readouterr().out
    assert main(["account", "budget", str(path), "--accept-loss"]) == 0
    assert "counter" not in capsys.readouterr().out
    with Account(path, None) as account:
        spend(account, "visits", None, make_amount(0.1, 0), "count")
        assert [entry.answers for entry in list_budgets(account)] == [3 - lost]


def test_releases_and_answers_share_a_counter(path: Path) -> None:
    with Account(path, KEY, create=True) as account:
        spend(account, "visits", None, make_amount(0.1, 0), "count")
        Releases(account).count()
        spend(account, "visits", None, make_amount(0.1, 0), "count")
        assert read_counter(path) == Counter(account.identity or "", 0, None, 2)

"""Rules answer for every value, whatever its type is: what they do not allow is a sentence, not a failure."""

from __future__ import annotations

import datetime
import decimal
import inspect
from typing import Any

import numpy as np
import pytest

from duckanon._core.common import rules

RULES = [
    rules.Whole(1, 3),
    rules.Number(above=0, below=1),
    rules.OneOf("a", "b"),
    rules.Text("a"),
    rules.Flag(),
    rules.ColumnNames(),
    rules.ColumnName(),
    rules.TableName(),
    rules.Tables("a"),
    rules.Tables("a", named=True),
    rules.MapOf("a", rules.Text("a")),
    rules.ListOf(rules.Text("a"), "a"),
    rules.Either((rules.Text("a"), rules.Flag())),
]
VALUES = [
    None, True, np.True_, 5, -(2**70), 2.5, float("nan"), float("inf"), 1j, decimal.Decimal("sNaN"), "", " ", b"a",
    datetime.date(2020, 1, 1), [], [None], [5], ["a", 5], {}, {"a": None}, {5: 5}, {"a": "a"}, {"a"}, np.arange(3),
    object,
]  # fmt: skip


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
def test_a_rule_answers_for_values_of_every_type(rule: Any) -> None:
    assert {type(rule.holds(value)) for value in VALUES} == {bool}
    assert not rule.holds(object())


def test_every_rule_is_asked() -> None:
    """Rules end with two methods, and are classes of the module whose name has no underscore."""
    found = {one for _, one in inspect.getmembers(rules, inspect.isclass) if hasattr(one, "holds")}
    assert {one for one in found if not one.__name__.startswith("_")} - {rules.Rule} == set(map(type, RULES))

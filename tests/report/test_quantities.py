"""One meaning for each quantity: every promise that a job counts has one, and a share of people is none of rows."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

import duckanon.job
from duckanon import report
from duckanon._core.common import quantities
from duckanon.cli.release_command import summary
from duckanon.job.policy import Promises
from tests.report.records import Page, entry, record

OPTIONS = {"l_kind", "c"}
"""Settings of promises, which promise nothing themselves."""


def counted_promises() -> set[str]:
    """Return the names of the promises that the code of jobs makes, without the columns in them."""
    found = set()
    for path in Path(duckanon.job.__file__).parent.glob("*.py"):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "Promise":
                name = call.args[0]
                if isinstance(name, ast.JoinedStr):
                    name = name.values[0]
                if isinstance(name, ast.Constant):
                    found.add(str(name.value).split(": ")[0].removesuffix(" of "))
    return found


def test_every_promise_has_a_meaning() -> None:
    counted = counted_promises()
    assert {"k", "l", "recursive l", "prediction", "max_suppressed_fraction", "joint_t"} <= counted
    assert counted <= quantities.list_promises()
    assert set(Promises.model_fields) - OPTIONS <= quantities.list_promises()
    for name in quantities.list_promises():
        assert "{" not in quantities.explain_promise(name)
        assert len(quantities.explain_promise(name)) > 10


SUPPRESSED: list[tuple[dict[str, Any], str]] = [
    ({"suppressed": {"rows": 1600, "people": 80, "fraction": 0.08, "limit": 0.1}}, "people"),
    ({"suppressed": {"rows": 1600, "people": None, "fraction": 0.6, "limit": 0.7}, "people": None}, "rows"),
    (
        {
            "suppressed": {"rows": 1600, "people": 80, "fraction": 0.6, "limit": 0.7},
            "method": {"name": "release_linked", "parameters": {"k": 10, "max_suppressed_fraction": 0.7}},
        },
        "rows",
    ),
    ({"suppressed": {"rows": 0, "people": None, "fraction": 0.2, "limit": 0.5}, "cells": {"hidden": 1}}, "value"),
]


@pytest.mark.parametrize(("changes", "unit"), SUPPRESSED)
def test_what_is_suppressed_is_counted_in_one_unit(changes: dict[str, Any], unit: str) -> None:
    """8 % of the people with 62 % of the rows had been "rows suppressed" of 8 %."""
    table = entry(promises=[{"name": "max_suppressed_fraction", "asked": 0.1, "measured": 0.08, "passed": True}])
    table["method"]["parameters"]["max_suppressed_fraction"] = 0.1
    table |= changes
    assert quantities.choose_unit(table) == unit
    words = {"people": "share of the people", "rows": "share of the rows", "value": "share of the value"}
    assert quantities.explain_entry(table, "max_suppressed_fraction").startswith(words.pop(unit))
    if unit == "value":  # whose page has parts of its own
        return
    text = " ".join(Page(report.html(record(table), {})).all("body")[0][1].split())
    assert "max_suppressed_fraction share of the " + unit in text
    assert f"of the {unit}), which did not fit" in text
    assert not [other for other in words.values() if other in text.lower()]


def test_a_parameter_that_is_called_as_a_promise_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    """The l of boxes counts values of a column in a box; a class may still have one sensitive value."""
    table = entry(method={"name": "boxes", "parameters": {"k": 10, "l": 3}})
    text = " ".join(Page(report.html(record(table), {})).all("dl")[1][1].split())
    assert "Values at least epsilon apart in each column of a box (l of boxes, no l-diversity)" in text
    assert "ifferent sensitive values" not in text
    told = summary(record(table))  # type: ignore[arg-type]
    assert "boxes with l = 3: values at least epsilon apart in each column of a box" in told
    other = entry(method={"name": "recode", "parameters": {"k": 10, "l": 3}})
    assert "Different sensitive values in a class (l)" in " ".join(
        Page(report.html(record(other), {})).all("dl")[1][1].split()
    )
    assert "recode with l" not in summary(record(other))  # type: ignore[arg-type]

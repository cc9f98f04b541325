"""The tool that changes the code: its places, and the tests that it finds for them."""

from __future__ import annotations

import ast
import random
from pathlib import Path

from tests.mutants.__main__ import Reached, related_tests
from tests.mutants.blocks import ROOT, source_files
from tests.mutants.sites import changes_of, sites_of


def test_a_mutant_is_another_module_that_can_be_compiled() -> None:
    chosen = random.Random(1).sample(source_files(), 15)
    for site in [random.Random(path.as_posix()).choice(sites_of(path) or [None]) for path in chosen]:
        if site is not None:
            source = (ROOT / site.path).read_bytes()
            changed = site.mutate(source)
            assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(source)), site


def changes(text: str) -> list[str]:
    return list(changes_of(ast.parse(text, mode="eval").body))


def test_changes() -> None:
    assert changes("a < b") == ["(a <= b)"]
    assert changes("a is not None") == ["(a is None)"]
    assert changes("a + b") == ["(a - b)"]
    assert changes("a or 0") == ["(a and 0)"]
    assert changes("3") == ["4"]
    assert changes("not a") == ["(a)"]
    assert changes("count(rows, people)") == ["count(people, rows)"]
    assert changes("f'{a}' + b") == changes("isinstance(a, b)") == changes("True") == []


def test_the_tests_of_a_mutant_execute_its_block_and_stay_within_a_budget() -> None:
    site = sites_of(Path("duckanon/_core/common/names.py"))[0]
    reached = [
        Reached("slow", 50.0, frozenset([site.block])),
        Reached("quick", 0.1, frozenset([site.block])),
        Reached("elsewhere", 0.1, frozenset(["duckanon/_core/common/names.py:other:0"])),
    ]
    assert related_tests(site, reached, 90) == ["quick", "slow"]
    assert related_tests(site, reached, 1) == ["quick"]

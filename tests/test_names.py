"""How functions and variables are named, as CONTRIBUTING says: a stranger searches for verbs and nouns."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

IRREGULAR = frozenset({
    "begun", "bought", "bound", "broken", "built", "caught", "chosen", "done", "drawn", "fallen", "found", "frozen",
    "given", "gone", "grown", "held", "hidden", "kept", "known", "laid", "left", "lost", "made", "met", "own", "paid",
    "said", "seen", "sent", "shown", "sold", "spent", "taken", "taught", "thought", "told", "won", "written",
})  # fmt: skip
"""Participles that do not end in -ed."""

VERBS = frozenset({"embed", "exceed", "feed", "need", "proceed", "seed", "speed", "succeed"})
"""What ends in -ed and is no participle."""

ALLOWED = frozenset({
    "duckanon/report/measures.py:measured", "duckanon/report/page.py:broken",
    "duckanon/report/page.py:counted", "duckanon/report/page.py:measured",
})  # fmt: skip
"""Public names, and those that the templates of reports have."""

BANNED = frozenset({"found", "given", "made", "one", "others", "own", "some", "told", "what", "whose"})
"""Names of variables that say what happened to a thing, not what it is."""

CLEAN = (
    "_bridge", "_core", "_extension", "_measure", "_methods", "_render", "cli", "dbt", "job", "large", "notebook",
    "plot", "postgresql", "report", "spark", "spectral.py", "workbench",
)  # fmt: skip
"""The packages, and modules beside them, in which no variable has such a name any more, but for `FEW` each."""

FEW = 6


@functools.cache
def modules() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text("utf-8")) for path in sorted((ROOT / "duckanon").rglob("*.py"))}


def is_participle(word: str) -> bool:
    return word in IRREGULAR or (word.endswith("ed") and len(word) > 3 and word not in VERBS)


def is_property(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any("property" in ast.unparse(decorator) for decorator in function.decorator_list)


def banned_names(tree: ast.Module) -> Iterator[str]:
    """Yield names that are bound beyond a comprehension or lambda of one line."""
    within = set()
    for node in ast.walk(tree):
        is_short = isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp | ast.Lambda)
        if is_short and (node.end_lineno or 0) - node.lineno < 2:
            within |= {id(part) for part in ast.walk(node)}
    for node in ast.walk(tree):
        name = node.arg if isinstance(node, ast.arg) else None
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            name = node.id
        if name in BANNED and id(node) not in within:
            yield f"{node.lineno}: {name}"


def test_functions_are_verbs() -> None:
    """A property is a noun, and may be one of those: `written`, the files."""
    named = [
        f"{path.relative_to(ROOT)}:{function.name}"
        for path, tree in modules().items()
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        and is_participle(function.name.strip("_").split("_")[0])
        and not is_property(function)
    ]
    assert set(named) - ALLOWED == set()


@pytest.mark.parametrize("package", CLEAN)
def test_variables_say_what_they_are(package: str) -> None:
    place = ROOT / "duckanon" / package
    found = [
        f"{path.name}:{name}"
        for path, tree in modules().items()
        if place in (path, *path.parents)
        for name in banned_names(tree)
    ]
    assert len(found) <= FEW, found


MOST_PARAMETERS = 8

MANY_PARAMETERS = frozenset({"duckanon/job/run.py:release", "duckanon/spark/checks.py:individual_risk"})
"""What users call with the options of a policy or of an SQL function."""


def declared_algorithms() -> set[str]:
    """Return the functions that declarations name, which take the parameters of SQL."""
    return {
        text.value.replace(".", "/").replace(":", ".py:")
        for path, tree in modules().items()
        if path.name == "declared.py"
        for text in ast.walk(tree)
        if isinstance(text, ast.Constant) and isinstance(text.value, str) and text.value.startswith("duckanon.")
    }


def test_functions_have_few_parameters() -> None:
    """What travels together is a frozen dataclass with a name of the field."""
    long = {
        f"{path.relative_to(ROOT)}:{function.name}"
        for path, tree in modules().items()
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for names in [[*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]]
        if sum(name.arg not in ("self", "cls") for name in names) > MOST_PARAMETERS
    }
    assert long - declared_algorithms() == MANY_PARAMETERS

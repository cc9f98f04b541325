"""The blocks of a module: runs of statements that execute together, each with a number.

The body of a function, of a branch, of a loop or of a handler is a block. `reach` notes which blocks each test
executes, `sites` says in which block a mutant lies: the tests of a mutant are those that execute its block.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MUTATED = ("_core", "_methods", "_measure", "job")
"""The packages of `duckanon` in which a wrong number could be released. What is above them shows or calls."""


def source_files() -> list[Path]:
    """List the modules that are mutated, relative to the project's root."""
    return sorted(
        path.relative_to(ROOT) for package in MUTATED for path in (ROOT / "duckanon" / package).glob("**/*.py")
    )


@dataclass(frozen=True)
class Block:
    """A run of statements."""

    name: str  # module, function and number within it: it stays when other functions change
    statement: ast.AST  # whose body it is
    body: list[ast.stmt]


def blocks_of(tree: ast.Module, path: str) -> Iterator[Block]:
    """Yield the blocks of all functions of a module, those of functions within functions with the outer name."""
    for name, function in _functions_of(tree, ""):
        for number, (statement, body) in enumerate(_bodies_of(function)):
            yield Block(f"{path}:{name}:{number}", statement, body)


def _functions_of(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.FunctionDef]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            name = f"{prefix}{child.name}"
            if isinstance(child, ast.FunctionDef):
                yield name, child
            yield from _functions_of(child, f"{name}.")
        elif isinstance(child, ast.stmt):
            yield from _functions_of(child, prefix)


def _bodies_of(statement: ast.AST) -> Iterator[tuple[ast.AST, list[ast.stmt]]]:
    """Yield the blocks of a statement and of those within it, from top to bottom, but not of inner functions."""
    for body in bodies_directly_in(statement):
        yield statement, body
        for inner in body:
            if not isinstance(inner, ast.FunctionDef | ast.ClassDef):
                yield from _bodies_of(inner)


def bodies_directly_in(statement: ast.AST) -> Iterator[list[ast.stmt]]:
    """Yield the blocks that a statement has itself."""
    for field in ("body", "orelse", "finalbody"):
        body = getattr(statement, field, None)
        if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
            yield body
    for handler in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield handler.body

"""The places of the code that a mutant may change, and what it becomes there.

A comparison turns round or moves its end, a sum becomes a difference, a number grows by one, two arguments change
places, a condition is always or never true. Messages, annotations and defaults stay as they are, and so do constants of
a module: another value of a tuned number is no fault.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.blocks import ROOT, Block, blocks_of, bodies_directly_in

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
SILENT = (ast.Raise, ast.Assert, ast.JoinedStr, ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)
"""What is not looked into: messages, and functions within functions, which have their own turn."""


@dataclass(frozen=True)
class Site:
    """A place and what it becomes."""

    path: str  # of the module, from the project's root
    line: int
    start: int  # in bytes of the file
    end: int
    new: str
    block: str  # the block that contains it

    def mutate(self, source: bytes) -> bytes:
        """Return the module's text with the change."""
        return source[: self.start] + self.new.encode() + source[self.end :]

    def __str__(self) -> str:
        source = (ROOT / self.path).read_bytes()
        old = " ".join(source[self.start : self.end].decode().split())
        return f"{self.path}:{self.line}: {old}  ->  {self.new}"


def sites_of(path: Path) -> list[Site]:
    """List the sites of a module in the order of its lines."""
    source = (ROOT / path).read_bytes()
    first_bytes = [0]
    for line in source.splitlines(keepends=True):
        first_bytes.append(first_bytes[-1] + len(line))
    sites = []
    for block in blocks_of(ast.parse(source), path.as_posix()):
        for node in expressions_of(block):
            for new in changes_of(node):
                start = first_bytes[node.lineno - 1] + node.col_offset
                end = first_bytes[node.end_lineno - 1] + node.end_col_offset
                sites.append(Site(path.as_posix(), node.lineno, start, end, new, block.name))
    return sorted(sites, key=lambda site: (site.start, site.end, site.new))


def expressions_of(block: Block) -> Iterator[ast.expr]:
    """Yield the expressions of a block that may change, but not those of the blocks within it."""
    for statement in block.body:
        is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if not is_text and not isinstance(statement, SILENT):
            inner = {id(child) for body in bodies_directly_in(statement) for child in body}
            yield from _expressions_in(statement, inner)


def _expressions_in(node: ast.AST, inner: set[int]) -> Iterator[ast.expr]:
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "handlers", "cases"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or id(child) in inner or isinstance(child, SILENT):
                continue
            if isinstance(child, ast.expr):
                if isinstance(node, ast.If | ast.While | ast.IfExp) and name == "test":
                    child.is_condition = True  # type: ignore[attr-defined]
                yield child
            yield from _expressions_in(child, inner)


def changes_of(node: ast.expr) -> Iterator[str]:
    """Yield what an expression may become."""
    changed = copy.deepcopy(node)
    if isinstance(changed, ast.Compare) and type(changed.ops[0]) in COMPARISONS:
        changed.ops[0] = COMPARISONS[type(changed.ops[0])]()
        yield f"({ast.unparse(changed)})"
    elif isinstance(changed, ast.BinOp) and type(changed.op) in OPERATORS and not _is_message(changed):
        changed.op = OPERATORS[type(changed.op)]()
        yield f"({ast.unparse(changed)})"
    elif isinstance(changed, ast.BoolOp):
        changed.op = ast.Or() if isinstance(changed.op, ast.And) else ast.And()
        yield f"({ast.unparse(changed)})"
    elif isinstance(changed, ast.UnaryOp) and isinstance(changed.op, ast.Not):
        yield f"({ast.unparse(changed.operand)})"
    elif isinstance(changed, ast.Constant) and type(changed.value) is int:
        yield repr(changed.value + 1)
    elif isinstance(changed, ast.Call) and _can_swap(changed):
        changed.args[:2] = changed.args[1::-1]
        yield ast.unparse(changed)
    if getattr(node, "is_condition", False):
        yield "False"
        yield "True"


def _is_message(node: ast.BinOp) -> bool:
    """Tell whether an operation joins texts."""
    return any(
        isinstance(part, ast.JoinedStr) or (isinstance(part, ast.Constant) and isinstance(part.value, str))
        for part in ast.walk(node)
    )


def _can_swap(call: ast.Call) -> bool:
    """Tell whether a call's first two arguments are different names."""
    first_two = call.args[:2]
    return (
        len(first_two) == 2
        and all(isinstance(argument, ast.Name | ast.Attribute) for argument in first_two)
        and ast.unparse(first_two[0]) != ast.unparse(first_two[1])
        and not (isinstance(call.func, ast.Name) and call.func.id in ("isinstance", "max", "min", "zip"))
    )

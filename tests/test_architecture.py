"""The shape of the source tree: sizes of files, what stands where, and that nothing points outside the repository."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent

LONGEST_LINE = 120
"""Characters of a line, in SQL as in Python, where ruff checks it."""

LONGEST_MODULE = 300
"""Lines of a Python module: more than one idea, or one that should be taken apart."""

PUBLIC_FACES = {"__init__.py", "py.typed", "spectral.py"}
"""What may stand at the top of the package beside the packages."""

OUTSIDE = re.compile(r"\bERRATA\b|\.\./shared\b")
"""Documents that a reader of the repository does not have; `REFERENCES.md` is what the code cites."""


def macros() -> list[Path]:
    return sorted((ROOT / "sql").rglob("*.sql"))


def modules() -> list[Path]:
    return sorted((ROOT / "duckanon").rglob("*.py"))


def numbered_lines(path: Path) -> list[tuple[str, str]]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [(f"{path.relative_to(ROOT)}:{number}", line) for number, line in enumerate(lines, 1)]


def test_lines_of_sql_fit_on_a_screen() -> None:
    too_long = [where for path in macros() for where, line in numbered_lines(path) if len(line) > LONGEST_LINE]
    assert macros()
    assert too_long == []


def test_no_module_has_outgrown_its_file() -> None:
    sizes = {str(path.relative_to(ROOT)): len(numbered_lines(path)) for path in modules()}
    assert {name: size for name, size in sizes.items() if size > LONGEST_MODULE} == {}


def test_nothing_but_public_faces_and_packages_at_the_top() -> None:
    entries = [entry for entry in (ROOT / "duckanon").iterdir() if entry.name != "__pycache__"]
    stray = [entry.name for entry in entries if not (entry / "__init__.py").exists()]
    assert set(stray) <= PUBLIC_FACES | {"sql"}  # sql: an installed package carries the macros inside


def test_no_file_points_outside_the_repository() -> None:
    pointing = [where for path in macros() + modules() for where, line in numbered_lines(path) if OUTSIDE.search(line)]
    assert pointing == []

"""The shape of the source tree: sizes of files, what stands where, and that nothing points outside the repository."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

from hatchling.builders.wheel import WheelBuilder

from duckanon._bridge.generated import PUBLIC, write_query
from duckanon._bridge.macros import macro_files

ROOT = Path(__file__).parent.parent

LONGEST_LINE = 120
"""Characters of a line, in SQL as in Python, where ruff checks it."""

LONGEST_MODULE = 600
"""Lines of a Python module: more would be more than one idea."""

PUBLIC_FACES = {"__init__.py", "py.typed", "spectral.py"}
"""What may stand at the top of the package beside the packages."""

PUBLIC_PACKAGES = {"cli", "dbt", "job", "large", "notebook", "plot", "postgresql", "report", "spark", "workbench"}
"""The packages that users import or run; all others begin with an underscore."""

SAYS_ALL = re.compile(r"\b(ASC|DESC)\s+NULLS\s+(FIRST|LAST)$")
"""The end of a term of ORDER BY that leaves nothing to settings."""

LIBRARIES = {"numpy", "pyarrow", "scipy", "sklearn", "threadpoolctl"}

MAY_BE_INSIDE = re.compile(rf"(?m)[^\n](?:from|import)\b(?:[^\n\\]|\\\n)*\b(?:{'|'.join(sorted(LIBRARIES))})\b")
"""An import that does not begin its line, or what looks like one: only such files are parsed."""

OUTSIDE = ("ERRATA", "../shared")
"""Documents that a reader of the repository does not have; `REFERENCES.md` is what the code cites."""


@functools.cache
def macros() -> tuple[Path, ...]:
    return tuple(sorted((ROOT / "sql").rglob("*.sql")))


@functools.cache
def modules() -> tuple[Path, ...]:
    return tuple(sorted((ROOT / "duckanon").rglob("*.py")))


@functools.cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@functools.cache
def code_of(macro: Path) -> str:
    """Return a macro without its comments."""
    return re.sub(r"--[^\n]*", "", text_of(macro))


def holds_only_caches(entry: Path) -> bool:
    """Whether it is a folder of compiled modules, or what is left of a package that was moved."""
    return entry.is_dir() and all("__pycache__" in path.parts or path.is_dir() for path in entry.rglob("*"))


def numbered_lines(path: Path) -> list[tuple[str, str]]:
    name = path.relative_to(ROOT)
    return [(f"{name}:{number}", line) for number, line in enumerate(text_of(path).splitlines(), 1)]


def test_no_lambda_is_told_places() -> None:
    """In DuckDB's Spark mode places begin at 0: only list_reduce has lambdas of two parameters."""
    for path in macros():
        code = code_of(path)
        assert len(re.findall(r"lambda \w+, \w+", code)) == code.count("list_reduce("), path.name


def test_lines_of_sql_fit_on_a_screen() -> None:
    too_long = [where for path in macros() for where, line in numbered_lines(path) if len(line) > LONGEST_LINE]
    assert macros()
    assert too_long == []


def test_no_module_has_outgrown_its_file() -> None:
    sizes = {str(path.relative_to(ROOT)): len(text_of(path).splitlines()) for path in modules()}
    assert {name: size for name, size in sizes.items() if size > LONGEST_MODULE} == {}


def test_nothing_but_public_faces_and_packages_at_the_top() -> None:
    entries = [entry for entry in (ROOT / "duckanon").iterdir() if not holds_only_caches(entry)]
    stray = [entry.name for entry in entries if not (entry / "__init__.py").exists()]
    assert set(stray) <= PUBLIC_FACES | {"sql", "examples"}  # which an installed package carries inside


def test_packages_are_public_and_documented_or_private() -> None:
    """A name without an underscore is a promise to users: the architecture says what each public package is for."""
    packages = {path.parent.name for path in (ROOT / "duckanon").glob("*/__init__.py")}
    assert {name for name in packages if not name.startswith("_")} == PUBLIC_PACKAGES
    page = text_of(ROOT / "docs" / "contributing" / "architecture.md")
    assert {name for name in packages if f"`{name}/`" not in page} == set()


def test_users_are_never_sent_to_private_packages() -> None:
    """The pages for users import public names only; other pages are for those who change the code."""
    pages = [ROOT / "README.md", *(ROOT / "duckanon").glob("*/README.md")]
    pages += [path for folder in ("docs", "sql", "examples") for path in (ROOT / folder).rglob("*.md")]
    pages = [path for path in pages if path.parent.name != "contributing"]
    private = re.compile(r"\b(?:import|from) duckanon\._|\bduckanon\._(?!_)")
    assert [where for path in pages for where, line in numbered_lines(path) if private.search(line)] == []


def test_the_wheel_has_every_macro_and_no_picture() -> None:
    packed = {Path(file.distribution_path) for file in WheelBuilder(str(ROOT)).recurse_included_files()}
    assert {Path("duckanon/sql") / path.relative_to(ROOT / "sql") for path in macros()} <= packed
    assert Path("duckanon/examples/population.sql") in packed
    assert [path for path in packed if path.suffix in {".svg", ".png"} or path.parts[0] != "duckanon"] == []


def test_no_file_points_outside_the_repository() -> None:
    files = [path for path in macros() + modules() if any(name in text_of(path) for name in OUTSIDE)]
    assert [
        where for path in files for where, line in numbered_lines(path) if any(name in line for name in OUTSIDE)
    ] == []


def test_libraries_are_imported_at_the_top_of_modules() -> None:
    """Inside a function the import would run on a thread of DuckDB's, where some extension modules crash later."""
    inside = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in modules()
        if MAY_BE_INSIDE.search(text_of(path))
        for function in ast.walk(ast.parse(text_of(path)))
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if (isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in LIBRARIES)
        or (isinstance(node, ast.Import) and any(alias.name.partition(".")[0] in LIBRARIES for alias in node.names))
    ]
    assert inside == []


def test_every_order_says_which_way_it_goes() -> None:
    """A connection may have set default_order and default_null_order: no result of ours depends on them."""
    vague = []
    for path in macros():
        code = code_of(path)
        for order in re.finditer(r"\bORDER BY\b", code):
            vague += [f"{path.name}: {term}" for term in order_terms(code[order.end() :]) if not SAYS_ALL.search(term)]
        for call in re.finditer(r"\blist_sort\(", code):
            if not re.search(r"'(ASC|DESC)'\s*,\s*'NULLS (FIRST|LAST)'$", call_text(code[call.end() :])):
                vague.append(f"{path.name}: list_sort")
        vague += [f"{path.name}: {call}" for call in re.findall(r"\b(?:list_reverse_sort|array_sort)\(", code)]
    assert vague == []


def order_terms(code: str) -> list[str]:
    """Split what follows ORDER BY into its terms, up to the end of the bracket or statement, or to a frame."""
    clause = re.split(r"\b(?:ROWS|RANGE)\s+(?:UNBOUNDED|BETWEEN)\b|;", call_text(code))[0]
    terms, depth = [""], 0
    for letter in clause:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            terms.append("")
        else:
            terms[-1] += letter
    return [term.strip() for term in terms]


def call_text(code: str) -> str:
    """Return the text up to the bracket that closes what was open before it."""
    depth = 0
    for index, letter in enumerate(code):
        depth += (letter in "([{") - (letter in ")]}")
        if depth < 0:
            return code[:index].rstrip()
    return code


def test_the_way_of_a_recode_can_be_read() -> None:
    """The architecture shows on one page the macros that a call runs, and the modules that its algorithm imports."""
    recode = PUBLIC["recode"]
    options = {"tbl": "t", "cols": ["a", "b"], "k": 5, "hierarchies": {"a": "tree"}, "keep": ["c"], "by": ["d"]}
    options |= {"person": "p", "sensitive": "s", "l": 2, "output": "value"}
    files = {file.name: file for file in macro_files()}
    macros = {"recode"}
    asked = set(re.findall(r"\banon\.(\w+)\(", write_query(recode, recode.defaults | options)))
    while asked:
        macros |= asked
        asked = {name for macro in asked for name in files[macro].calls & files.keys()} - macros
    assert len(macros) <= 25, sorted(macros)
    modules = set()
    wanted = {recode.algorithm.partition(":")[0]}
    while wanted:
        modules |= wanted
        wanted = {name for module in wanted for name in imports_of(module)} - modules
    assert len(modules) <= 40, sorted(modules)


def imports_of(module: str) -> set[str]:
    """The modules of the package that a module imports."""
    found = set()
    for node in ast.walk(ast.parse(text_of(path_of(module)))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("duckanon"):
            for name in node.names:
                full = f"{node.module}.{name.name}"
                found.add(full if path_of(full).exists() else str(node.module))
    return found


def path_of(module: str) -> Path:
    return ROOT / f"{module.replace('.', '/')}.py"

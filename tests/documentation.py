"""The documentation as the tests read it: examples that can be run, headings with their anchors, links."""

from __future__ import annotations

import ast
import contextlib
import functools
import io
import itertools
import re
import shlex
import shutil
import textwrap
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb

from duckanon._bridge import macros
from duckanon._render import dialects
from duckanon.cli import main, statements
from tests import signatures
from tests.sqltest import registered

ROOT = Path(__file__).parent.parent
REPOSITORY = "https://github.com/duckanon/duckanon/blob/main/"
"""Where README's links lead, since its text is also the page of the package: the same files as here."""

STAGES = macros.STAGES
PAGES = tuple(
    path
    for pattern in ("*.md", "docs/**/*.md", "sql/**/*.md", "examples/**/*.md", "duckanon/*/*.md", "tests/bench/*.md")
    for path in sorted(ROOT.glob(pattern))
)
"""All pages of the documentation."""

ON_SPARK = (ROOT / "duckanon" / "spark" / "README.md", ROOT / "docs" / "tutorials" / "6-spark.md")
"""Pages whose examples need Spark."""

ELSEWHERE = (
    *ON_SPARK,
    ROOT / "duckanon" / "large" / "README.md",
    ROOT / "duckanon" / "postgresql" / "README.md",
    ROOT / "examples" / "release" / "README.md",
)
"""Pages whose examples are run by tests of their own."""

EXAMPLE = re.compile(
    r"^```(?P<language>sql|console|python|toml title=\"(?P<file>[\w.]+)\")\n"
    r"(?P<code>.*?)^```\n(?:```text\n(?P<shown>.*?)^```\n)?",
    re.MULTILINE | re.DOTALL,
)
"""Code that is run, and the output below it, if it prints any: SQL, one command after ``$``, Python, or a file."""

PAGES_WITH_EXAMPLES = tuple(
    page for page in PAGES if page not in ELSEWHERE and EXAMPLE.search(page.read_text(encoding="utf-8"))
)

PAGES_DRAWN = (ROOT / "sql" / "README.md", *PAGES_WITH_EXAMPLES)
"""Pages of which something is drawn."""

LIST = re.compile(
    r"(?<=<!-- functions: drawn by python -m tests.update_documentation -->\n).*?(?=<!-- end of functions -->)",
    re.DOTALL,
)
"""Where the functions are listed, in README and in ``sql/README.md``."""

ROADS = re.compile(
    r"(?<=<!-- roads: drawn by python -m tests.update_documentation -->\n).*?(?=<!-- end of roads -->)", re.DOTALL
)
"""Where ``sql/README.md`` says what runs where."""

ENTRY = re.compile(r"^### anon\.(?P<name>\w+)\n.*?(?=^##|\Z)", re.MULTILINE | re.DOTALL)
"""A function in the reference: its name as heading, and all up to the next heading."""

OPTIONS = re.compile(
    r"(?<=<!-- options: drawn by python -m tests.update_documentation -->\n).*?(?=<!-- end of options -->)", re.DOTALL
)
"""Where an entry of the reference shows how the function is called, with a table of its options."""

MARKERS = "<!-- options: drawn by python -m tests.update_documentation -->\n<!-- end of options -->"
"""What stands around the table of an entry; drawing adds it to an entry that has none."""

LONGEST_CALL = 80
"""Characters of a call on one line, as wide as the site shows; a longer one is broken between two parameters."""

QUESTIONS = {
    "catalog": "what is there?",
    "assess": "who can be picked out of this table?",
    "risk": "how risky is each record, by the measures of statistical offices?",
    "pseudonymize": "how do records of a person stay together without a name?",
    "generalize": "which coarser values make it k-anonymous?",
    "release": "which new table can be given away?",
    "measure": "what would an attacker learn, and what did the analyst lose?",
}


FEW = 10_000
"""As many people are in the files: a table that one looks at for the first time should answer within seconds."""


def make_files(folder: Path) -> None:
    """Write the people of ``examples/population.sql`` into a folder.

    All of them are the table ``patients`` of the database ``clinic.duckdb``; `FEW` of them are in ``people.csv`` and
    ``people.parquet``. The script itself is there too, as in the repository.
    """
    (folder / "examples").mkdir()
    shutil.copy(ROOT / "examples" / "population.sql", folder / "examples")
    with duckdb.connect(folder / "clinic.duckdb") as connection:  # the script calls no function of ours
        for statement in statements.split((ROOT / "examples" / "population.sql").read_text(encoding="utf-8")):
            connection.execute(statement).fetchall()
        for name in ("people.csv", "people.parquet"):
            connection.execute(f"COPY (FROM patients LIMIT {FEW}) TO '{folder / name}'").fetchall()


class Clinic:
    """A folder where examples run, with the files of `make_files`, and a connection with the table ``patients``.

    The connection is to a database of its own, attached to the one in which everything is registered.
    """

    _numbers = itertools.count()

    def __init__(self, files: Path, folder: Path, people: int | None = None) -> None:
        shutil.copytree(files, folder, dirs_exist_ok=True)
        self.folder = folder
        self._variables: dict[str, Any] = {}
        self.connection = registered().cursor()
        self._database = f"examples_{next(self._numbers)}"
        self.run(
            "sql",
            f"""ATTACH ':memory:' AS {self._database};
                USE {self._database};
                ATTACH 'clinic.duckdb' AS clinic (READ_ONLY);
                CREATE TABLE patients AS FROM clinic.patients {f"LIMIT {people}" if people else ""};
                DETACH clinic""",
        )

    def run(self, language: str, code: str) -> str:
        """Run an example in the folder and return what it prints."""
        printed = io.StringIO()
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(printed):
            if language == "sql":
                for statement in statements.split(code):
                    print(statements.run(self.connection, statement), end="")
            elif language == "console":
                command = shlex.split(code.removeprefix("$ "))
                assert command[0] == "duckanon", code
                assert main.main(command[1:]) == 0, code
            elif language == "python":
                exec(code, self._variables)
            else:
                (self.folder / language.partition('"')[2].rstrip('"')).write_text(code, encoding="utf-8")
        return printed.getvalue().rstrip("\n") + "\n" if printed.getvalue() else ""

    def close(self) -> None:
        self._variables.clear()
        self.connection.execute(f"USE memory; DETACH {self._database}").fetchall()
        self.connection.close()


def picture_texts(picture: Path) -> list[str]:
    """Return what is written in a picture: other versions of matplotlib draw the same by other paths."""
    return re.findall(r"<(?:text|title|desc)\b[^>]*>([^<]*)<", picture.read_text(encoding="utf-8"))


def headings(text: str) -> list[str]:
    """Return the headings of a page without the signs of their level."""
    return re.findall(r"^#+ (.*)$", _without_blocks(text), re.MULTILINE)


def links(text: str) -> list[str]:
    """Return where the links of a page lead to."""
    return re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", _without_blocks(text)))


def linked_file(page: Path, target: str) -> Path | None:
    """Return the file of the repository that a link leads to, or None where it leads elsewhere."""
    name = target.partition("#")[0]
    if name.startswith(REPOSITORY):
        return ROOT / name.removeprefix(REPOSITORY)
    if name.startswith("https://"):
        return None
    return (page.parent / name).resolve() if name else page


def _without_blocks(text: str) -> str:
    """Return the text of a page without its blocks of code, where # begins a comment."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(text: str) -> list[str]:
    """Return the anchors that GitHub gives the headings of a page.

    Letters become lower case, spaces become hyphens; of the other characters only hyphens and underscores stay. Where
    an anchor exists already, a number follows.
    """
    seen: Counter[str] = Counter()
    names = []
    for heading in headings(text):
        name = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        names.append(f"{name}-{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return names


@functools.cache
def page_anchors(page: Path) -> frozenset[str]:
    """Return the anchors of a page, which many links lead to."""
    return frozenset(anchors(page.read_text(encoding="utf-8")))


def entries(stage: str) -> dict[str, str]:
    """Return the entries of a stage's reference by the names of the functions, heading included."""
    return {entry["name"]: entry[0] for entry in ENTRY.finditer(_reference(stage))}


_LITERAL = re.compile(
    r"`[^`]*`|(?:MAP )?\{'[^}]*\}|\[(?:'[^\]]*)?\]|'[^' ]+'"
    r"|\banon\.\w+|\bSTRUCT\([\w, ]+\)|\b(?:NULL|true|false)\b"
)
"""SQL in a sentence, and what is in backticks already."""


def _as_code(literal: re.Match[str]) -> str:
    return literal[0] if literal[0].startswith("`") else f"`{literal[0]}`"


def _reference(stage: str) -> str:
    return (ROOT / "sql" / stage / "README.md").read_text(encoding="utf-8")


def with_options(text: str) -> str:
    """Draw the call and the table of options of every entry of a page."""
    files = {file.name: file for file in macros.macro_files()}

    def draw_entry(entry: re.Match[str]) -> str:
        options = option_table(signatures.declared_function(files[entry["name"]]))
        written = entry[0]
        if not OPTIONS.search(written):  # a new entry: behind its sentence
            heading, sentence, rest = written.split("\n\n", 2)
            written = f"{heading}\n\n{sentence}\n\n{MARKERS}\n\n{rest}"
        return OPTIONS.sub(lambda _: options, written)

    return ENTRY.sub(draw_entry, text)


def option_table(function: signatures.FunctionDeclaration) -> str:
    """Draw how a function is called, and a table of its options: default, meaning, allowed values."""
    calls = [each.name + (f" := {each.default}" if each.default else "") for each in function.parameters]
    call = textwrap.fill(", ".join(calls).replace(" := ", "\0:=\0"), LONGEST_CALL - 4)
    call = f"\n{textwrap.indent(call, '    ')}\n" if "\n" in call or len(call) > LONGEST_CALL - 20 else call
    lines = ["", "```", f"anon.{function.name}({call})".replace("\0", " "), "```", ""]
    if function.parameters:
        is_stated = any(each.allowed for each in function.parameters)
        rows = [["option", "default", "meaning", "allowed values"], ["---"] * 4]
        for each in function.parameters:
            default = "required" if each.default is None else f"`{each.default}`"
            meaning = each.meaning[:1].upper() + each.meaning[1:]
            texts = [_LITERAL.sub(_as_code, text) for text in (meaning, each.allowed)]
            rows.append([f"`{each.name}`", default, *texts])
        for row in rows:
            lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row[: 4 if is_stated else 3])} |")
        lines.append("")
    return "\n".join([*lines, ""])


def function_names() -> str:
    """Draw README's index: a table of the stages, each with its functions by name."""
    lines = ["", "| stage | functions |", "| --- | --- |"]
    for stage in STAGES:
        names = ", ".join(f"`{name}`" for name in entries(stage))
        lines.append(f"| [{stage}]({REPOSITORY}sql/{stage}/README.md) | {names} |")
    return "\n".join([*lines, "", ""])


def function_list(connection: duckdb.DuckDBPyConnection) -> str:
    """Draw the list of ``sql/README.md``: for every function its name, linked with its entry, and its comment."""
    comments = dict(connection.execute("SELECT name, description FROM anon.functions()").fetchall())
    lines = []
    for stage in STAGES:
        lines += ["", f"**[{stage.capitalize()}]({stage}/README.md)**: {QUESTIONS[stage]}", ""]
        for name, anchor in _entry_anchors(stage).items():
            lines.append(f"- [`anon.{name}`]({stage}/README.md#{anchor}): {comments[f'anon.{name}']}")
    return "\n".join([*lines, "", ""])


def exported(package: str) -> list[str]:
    """Return what a package of duckanon lists in ``__all__``, without loading it; nothing where there is none."""
    path = ROOT / "duckanon" / package / "__init__.py"
    if not path.exists():
        return []
    for statement in ast.parse(path.read_text(encoding="utf-8")).body:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
            return list(ast.literal_eval(statement.value))
    return []


def road_table() -> str:
    """Draw which function runs where: in memory, larger than memory, on Spark, as SQL of another engine."""
    large, spark = exported("large"), exported("spark")
    is_python = {file.name: file.needs_python for file in macros.macro_files()}
    lines = [
        "",
        "| function | in memory | larger than memory | on Spark | rendered |",
        "| --- | --- | --- | --- | --- |",
    ]
    for stage in STAGES:
        for name, anchor in _entry_anchors(stage).items():
            cells = [
                f"[`anon.{name}`]({stage}/README.md#{anchor})",
                "Python" if is_python[name] else "SQL",
                f"`duckanon.large.{name}`" if name in large else "",
                f"`duckanon.spark.{name}`" if name in spark else "",
                f"`duckanon.{dialects.RENDERED[name]}`" if name in dialects.RENDERED else "",
            ]
            lines.append(f"| {' | '.join(cells)} |".replace("|  |", "| |").replace("|  |", "| |"))
    return "\n".join([*lines, "", ""])


def _entry_anchors(stage: str) -> dict[str, str]:
    """Return the anchors of a stage's entries by the names of the functions, in the order of the page."""
    text = _reference(stage)
    names = [re.fullmatch(r"anon\.(\w+)", heading) for heading in headings(text)]
    return {found[1]: anchor for found, anchor in zip(names, anchors(text), strict=True) if found}

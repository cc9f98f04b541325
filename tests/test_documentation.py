"""The documentation is true: examples print what is shown, every function has its entry, every link leads somewhere."""

from __future__ import annotations

import doctest
import importlib
import re
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

import duckanon
from duckanon._bridge import generated, macros
from duckanon._render import checks, dialects
from tests import documentation, signatures
from tests.documentation import EXAMPLE, ROOT, Clinic

PUBLIC = [file for file in macros.macro_files() if file.is_public]
SCRIPTS = [path for path in sorted((ROOT / "examples").glob("*.sql")) if path.stem != "population"]
LONG_SCRIPTS = {"boxes", "generalize", "measure", "road"}
"""For the thorough run: the pages of the reference call the same functions, and `make demo` runs the whole road."""
LONG_PAGES = {
    *(ROOT / "sql" / stage / "README.md" for stage in ("generalize", "measure", "release")),
    ROOT / "examples" / "plots" / "README.md",
    *(ROOT / "docs" / "tutorials").glob("*.md"),
    *(ROOT / "docs" / "how-to" / f"{name}.md" for name in ("compare-releases", "linked-tables", "sensitive-columns")),
}
"""For the thorough run: they take two minutes."""
MODULES_WITH_EXAMPLES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in sorted((ROOT / "duckanon").rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]
ENOUGH = 25_000
"""People for the scripts: more than the largest bucket that one of them asks for (20,000 rows), and soon done."""
CITATION = re.compile(r'REFERENCES\.md`*, "?([A-Z][\w ]+\w)"?, points? ((?:\d+(?:, | and | to )?)+)')


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("clinic")
    documentation.make_files(folder)
    return folder


@pytest.mark.thorough
@pytest.mark.skipif(duckdb.__version__ < "2", reason="the outputs are drawn by DuckDB 2.0")
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.thorough if page in LONG_PAGES else ())
        for page in documentation.PAGES_WITH_EXAMPLES
    ],
    ids=_name,
)
def test_examples_print_what_is_shown(page: Path, files: Path, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8")
    with closing(Clinic(files, tmp_path)) as clinic:
        for example in EXAMPLE.finditer(text):
            printed = clinic.run(example["language"], example["code"])
            assert printed == (example["shown"] or ""), f"{example['code']}\nprints\n{printed}"
    drawn = {picture.name: documentation.picture_texts(picture) for picture in tmp_path.glob("*.svg")}
    shown = [page.parent / name for name in documentation.links(text) if re.fullmatch(r"\w+\.svg", name)]
    assert drawn == {picture.name: documentation.picture_texts(picture) for picture in shown}


@pytest.mark.thorough
@pytest.mark.parametrize(
    "script",
    [pytest.param(path, marks=pytest.mark.thorough if path.stem in LONG_SCRIPTS else ()) for path in SCRIPTS],
    ids=_name,
)
def test_example_scripts_run(script: Path, files: Path, tmp_path: Path) -> None:
    (tmp_path / "build" / "demo").mkdir(parents=True)
    with closing(Clinic(files, tmp_path, people=ENOUGH)) as clinic:
        clinic.run("sql", script.read_text(encoding="utf-8"))
    if script.stem == "demo":
        assert (tmp_path / "build" / "demo" / "swapped.csv").stat().st_size > 100_000


@pytest.mark.parametrize("file", PUBLIC, ids=lambda file: file.name)
def test_every_function_has_an_entry_in_the_reference(file: macros.MacroFile) -> None:
    entry = documentation.entries(file.stage).get(file.name)
    page = f"sql/{file.stage}/README.md"
    assert entry, f"{page} has no entry for anon.{file.name}"
    shown = documentation.OPTIONS.findall(entry)
    drawn = documentation.option_table(signatures.declared_function(file))
    assert shown == [drawn], f"{page}: python -m tests.update_documentation draws the options of anon.{file.name}"
    module = generated.DECLARED_IN.get(file.name) if file.name in generated.PUBLIC else None
    source = f"../../{module.replace('.', '/')}.py" if module else f"{file.name}.sql"
    assert f"[source]({source})" in entry, f"{page}: the entry of anon.{file.name} does not link its source"
    examples = "".join(example["code"] for example in EXAMPLE.finditer(entry) if example["language"] == "sql")
    assert f"anon.{file.name}(" in examples, f"{page}: the entry of anon.{file.name} has no example"


@pytest.mark.parametrize("file", PUBLIC, ids=lambda file: file.name)
def test_every_parameter_has_a_meaning(file: macros.MacroFile) -> None:
    declared = signatures.declared_function(file)
    shown = ", ".join(each.name + (f" := {each.default}" if each.default else "") for each in declared.parameters)
    assert shown == file.parameters
    missing = [each.name for each in declared.parameters if not each.meaning]
    assert file.needs_python or missing == [], f"sql/{file.stage}/{file.name}.sql does not say what {missing} mean"


def test_the_reference_has_no_other_entries() -> None:
    described = [(stage, name) for stage in documentation.STAGES for name in documentation.entries(stage)]
    assert sorted(described) == sorted((file.stage, file.name) for file in PUBLIC)


def test_every_function_is_complete(con: duckdb.DuckDBPyConnection) -> None:
    """A comment that is a sentence, a `.test` file, a place in examples/."""
    examples = "\n".join(path.read_text(encoding="utf-8") for path in SCRIPTS)
    rows = con.execute(
        """SELECT DISTINCT function_name, comment FROM duckdb_functions()
           WHERE database_name = 'anon' AND NOT starts_with(function_name, '_')"""
    ).fetchall()
    comments = dict(rows)
    assert comments.keys() == {file.name for file in PUBLIC}
    for file in PUBLIC:
        assert comments[file.name], f"anon.{file.name} has no comment"
        assert comments[file.name].endswith("."), f"the comment of anon.{file.name} is not a sentence"
        assert (ROOT / "tests" / file.stage / f"{file.name}.test").exists(), f"anon.{file.name} has no .test file"
        assert f"anon.{file.name}(" in examples, f"anon.{file.name} is in no file of examples/"


def test_the_table_says_what_runs_where() -> None:
    """Every function has its line, every road that exists is in it, and none that does not."""
    public = {file.name for file in PUBLIC}
    shown = documentation.ROADS.search((ROOT / "sql" / "README.md").read_text(encoding="utf-8"))
    assert shown
    assert shown[0] == documentation.road_table(), "python -m tests.update_documentation draws the table anew"
    assert re.findall(r"^\| \[`anon\.(\w+)`\]", shown[0], re.MULTILINE) == [
        name for stage in documentation.STAGES for name in documentation.entries(stage)
    ]
    assert dialects.RENDERED.keys() <= public
    called = {check for call in dialects.RENDERED.values() for check in re.findall(r"render_check\('(\w+)'", call)}
    assert called == set(checks.CHECKS)
    for package in ("large", "spark"):
        drawn = set(re.findall(rf"`duckanon\.{package}\.(\w+)`", shown[0]))
        assert drawn == public & set(documentation.exported(package))


def test_the_lists_have_every_function(con: duckdb.DuckDBPyConnection) -> None:
    drawn = {
        ROOT / "README.md": documentation.function_names(),
        ROOT / "sql" / "README.md": documentation.function_list(con),
    }
    for page, expected in drawn.items():
        shown = documentation.LIST.search(page.read_text(encoding="utf-8"))
        assert shown
        assert shown[0] == expected, "python -m tests.update_documentation draws the list anew"
    assert expected.count("\n- [`anon.") == len(PUBLIC)


def test_readme_is_short_and_leads_on_from_the_package_page() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    lines = text.splitlines()
    assert len(lines) < 300
    assert max(map(len, lines)) < 1000
    assert [target for target in documentation.links(text) if not target.startswith("https://")] == []


def test_a_new_entry_gets_its_table() -> None:
    """The page of a function added by hand has no markers yet: they come with the table, and stay."""
    entry = "### anon.k_map\n\nReturns something. [source](k_map.sql)\n\n```sql\nFROM x\n```\n"
    drawn = documentation.with_options(entry)
    assert drawn.index("[source]") < drawn.index(documentation.MARKERS.splitlines()[0]) < drawn.index("FROM x")
    assert "| `k` |" in drawn
    assert documentation.with_options(drawn) == drawn


def test_pages_name_this_version() -> None:
    for page, words in {
        "README.md": "dist/duckanon-{}-py3",
        "CITATION.cff": "version: {}\n",
        "CHANGELOG.md": "## {}",
    }.items():
        assert words.format(duckanon.__version__) in (ROOT / page).read_text(encoding="utf-8"), page


@pytest.mark.parametrize("page", documentation.PAGES, ids=_name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in documentation.links(page.read_text(encoding="utf-8")):
        anchor = target.partition("#")[2]
        if file := documentation.linked_file(page, target):
            assert file.exists(), f"{_name(page)} links {target}"
            assert not anchor or anchor in documentation.page_anchors(file), f"{_name(page)} links {target}"


@pytest.mark.parametrize("module", MODULES_WITH_EXAMPLES)
def test_examples_in_docstrings_are_true(module: str) -> None:
    results = doctest.testmod(importlib.import_module(module))
    assert results.attempted
    assert results.failed == 0


def test_cited_corrections_exist() -> None:
    """`REFERENCES.md, Boxes, point 7` in the code means a heading of that page and an item of its list."""
    sections = re.split(r"^## ", (ROOT / "REFERENCES.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    points = {section.partition("\n")[0]: set(re.findall(r"^(\d+)\. ", section, re.MULTILINE)) for section in sections}
    for path in [*ROOT.glob("duckanon/**/*.py"), *ROOT.glob("sql/**/*.sql")]:
        text = re.sub(r"\s*\n\s*(?:--|#)?\s*", " ", path.read_text(encoding="utf-8"))
        for heading, numbers in CITATION.findall(text):
            assert heading in points, f"{_name(path)} cites REFERENCES.md, {heading}"
            assert set(re.findall(r"\d+", numbers)) <= points[heading], f"{_name(path)}: {heading}, points {numbers}"

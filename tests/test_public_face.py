"""What `import duckanon` gives, and that every public function refuses columns and options that there are not."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import duckanon
from duckanon import large, postgresql, spectral
from duckanon._core.common.names import find_nearest_name, match_columns
from duckanon._core.encoding.whole_sources import sort_by_values

ROOT = Path(__file__).parent.parent
PACKAGES = ("large", "plot", "postgresql", "report", "spark", "spectral")
FUNCTIONS = ("connect", "register", "release", "render", "render_check")
CALLABLE = [
    *(pytest.param(getattr(duckanon, name), id=name) for name in ("release", "render", "render_check")),
    *(pytest.param(getattr(large, name), id=f"large.{name}") for name in large.__all__ if name != "Released"),
    *(pytest.param(getattr(spectral, name), id=f"spectral.{name}") for name in spectral.__all__),
    *(pytest.param(getattr(postgresql, name), id=f"postgresql.{name}") for name in ("read", "write")),
]
PEOPLE = pa.table(
    {"age": list(range(40, 240)), "zip": [row % 7 for row in range(200)], "pay": [row % 11 for row in range(200)]}
)


def test_everything_public_is_listed_and_loaded_when_it_is_asked_for() -> None:
    """In a process of its own: nothing is loaded yet there."""
    script = (
        "import sys, duckanon\n"
        "print(sorted({name.partition('.')[0] for name in sys.modules} & {'duckdb', 'numpy', 'pyarrow', 'pydantic'}))\n"
        "print(*dir(duckanon))"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    loaded, listed = ran.stdout.splitlines()
    assert loaded == "[]"
    assert {*PACKAGES, *FUNCTIONS} <= set(listed.split())
    assert set(listed.split()) == {*duckanon.__all__, "load_ipython_extension", "unload_ipython_extension"}


def test_names_are_what_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in FUNCTIONS:
        assert getattr(duckanon, name).__name__ == name
    monkeypatch.setattr(duckanon, "import_module", lambda name: name)  # pyspark and matplotlib need not be there
    for name in PACKAGES:
        assert duckanon.__getattr__(name) == f"duckanon.{name}"
        assert importlib.util.find_spec(f"duckanon.{name}") is not None
    with pytest.raises(AttributeError, match="has no attribute 'releases'"):
        _ = duckanon.releases


def test_no_package_takes_the_place_of_a_function() -> None:
    """Python puts a package that was imported where the function of its name would be."""
    entries = {path.stem for path in (ROOT / "duckanon").iterdir()}
    assert not entries & set(FUNCTIONS)


@pytest.mark.parametrize("function", CALLABLE)
def test_unknown_options_are_refused_with_the_nearest(function: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match=r'^duckanon\.[a-z_.]*: there is no option "tabel"; '):
        function(tabel=1)


def test_the_nearest_option_is_named() -> None:
    with pytest.raises(TypeError) as caught:
        large.boxes(PEOPLE, None, ["age"], 5, persn="zip")
    assert str(caught.value) == 'duckanon.large.boxes: there is no option "persn"; did you mean "person"?'


@pytest.mark.parametrize(
    "name",  # each opens a database, which takes a second
    ["boxes", *(pytest.param(name, marks=pytest.mark.thorough) for name in large.__all__[2:])],
)
def test_large_releases_refuse_unknown_columns(name: str) -> None:
    given: dict[str, Any] = {"cols": ["age", "zpi"]} | ({} if name == "pica" else {"k": 5})
    with pytest.raises(ValueError, match=rf'^anon\.{name}: column "zpi" in cols does not exist; did you mean "zip"\?$'):
        getattr(large, name)(PEOPLE, None, **given)


@pytest.mark.thorough
@pytest.mark.parametrize("name", [name for name in large.__all__ if name not in ("Released", "pica")])
@pytest.mark.parametrize("option", ["keep", "person", "narrowing"])
def test_options_of_large_releases_refuse_unknown_columns(name: str, option: str) -> None:
    if name == "synthesize" and option != "person":
        return  # new records have no columns that are kept
    given = {option: "zpi" if option == "person" else ["zpi"]}
    with pytest.raises(
        ValueError, match=rf'^anon\.{name}: column "zpi" in {option} does not exist; did you mean "zip"'
    ):
        getattr(large, name)(PEOPLE, None, ["age", "zip"], k=5, **given)


@pytest.mark.parametrize("name", spectral.__all__)
def test_spectral_releases_refuse_unknown_columns(name: str) -> None:
    given = {"k": 5} if name in ("rhs", "spectral_rhs") else {}
    with pytest.raises(
        ValueError, match=rf'^duckanon\.spectral\.{name}: column "zpi" does not exist; did you mean "zip"\?$'
    ):
        getattr(spectral, name)(PEOPLE, ["pay", "zpi"], **given)


@pytest.mark.parametrize("option", ["log", "categories", "special"])
def test_options_of_spectral_releases_refuse_unknown_columns(option: str) -> None:
    given = {option: {"zpi": [0]} if option == "special" else ["zpi"]}
    for release in (spectral.svd_swap, spectral.pica, spectral.spectral_release):
        if option != "log" or release is not spectral.spectral_release:
            sentence = rf'^duckanon\.spectral\.\w+: column "zpi" in {option} does not exist; did you mean "zip"\?$'
            with pytest.raises(ValueError, match=sentence):
                release(PEOPLE, ["pay", "zip"], **given)


def test_a_server_is_not_asked_for_unknown_columns(con: Any) -> None:
    con.execute("CREATE TABLE people AS SELECT 40 AS age, 7 AS zip").fetchall()
    for given in ({"cols": ["zpi"]}, {"cols": ["age"], "person": "zpi"}):
        with pytest.raises(
            ValueError, match=r'^duckanon\.postgresql\.write: column "zpi" does not exist; did you mean'
        ):
            postgresql.write(con, "people", "postgresql://nowhere/none", "target", k=2, **given)


def test_every_function_of_spark_is_declared_public() -> None:
    """Without Spark: its functions refuse options by `public`, and columns by `find_column`, in shared sentences."""
    folder = ROOT / "duckanon" / "spark"
    trees = {path.stem: ast.parse(path.read_text(encoding="utf-8")) for path in folder.glob("*.py")}
    functions = {
        node.name: [decorator.id for decorator in node.decorator_list if isinstance(decorator, ast.Name)]
        for tree in trees.values()
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
    }
    listed = next(
        ast.literal_eval(node.value)
        for node in trees["__init__"].body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", None) == "__all__"
    )
    assert [name for name in listed if "public" not in functions[name]] == []
    shared = {node.name: ast.unparse(node) for node in trees["frames"].body if isinstance(node, ast.FunctionDef)}
    assert "refuse_unknown_options('duckanon.spark')" in shared["public"]
    assert "unknown_column(name, frame.columns, parameter)" in shared["find_column"]


def test_memory_is_an_amount_wherever_it_is_taken() -> None:
    """A limit that all rows fit in changes nothing but their order, which a seed then does not look after."""
    thesis: dict[str, Any] = {"k": 1, "special": "off", "categories": [], "derived": "off", "checks": "off", "seed": 1}
    held = spectral.svd_swap(PEOPLE, ["zip", "pay"], **thesis).read_all()
    ordered = sort_by_values(PEOPLE.select(["zip", "pay"]))
    assert spectral.svd_swap(ordered, ["zip", "pay"], memory="2GB", **thesis).read_all() == held
    for function in (
        large.boxes,
        large.recode,
        large.microaggregate,
        large.pica,
        large.generalize,
        large.synthesize,
        duckanon.release,
    ):
        assert "memory" in inspect.signature(function).parameters
    with pytest.raises(ValueError, match=r"^duckanon\.spectral\.svd_swap: memory must be an amount such as '800MB'"):
        spectral.svd_swap(PEOPLE, ["zip", "pay"], memory=2000, **thesis)


def test_names_are_matched_without_regard_to_case() -> None:
    assert match_columns("cols", ["ZIP", "Age"], ["age", "zip"]) == ["zip", "age"]
    assert find_nearest_name("Persn", ["person", "k"]) == "person"
    assert find_nearest_name("shoe", ["person", "k"]) is None
    with pytest.raises(ValueError, match=r'^column "shoe" in keep does not exist; the columns are age, zip\.$'):
        match_columns("keep", ["age", "shoe"], ["age", "zip"])
    assert match_columns("cols", ["Ä"], ["Ä", "ä"]) == ["Ä"]


def test_refusals_of_faces_are_sentences_that_name_the_function(tmp_path: Path) -> None:
    """A path that is no Parquet file, a type that nothing is computed with, a table that is given twice."""
    (tmp_path / "people.parquet").write_text("age,zip")
    with pytest.raises(ValueError, match=r"^duckanon\.spectral\.rhs: \S+ is no Parquet file; give the path of one\.$"):
        spectral.rhs(tmp_path / "people.parquet", k=5, seed=1)
    spans = PEOPLE.append_column("span", pa.array([(1, 2, 3)] * PEOPLE.num_rows, pa.month_day_nano_interval()))
    with pytest.raises(ValueError, match=r'^duckanon\.spectral\.synthesize: column "span" must hold numbers'):
        spectral.synthesize(spans, ["span", "zip"], k=5, seed=1)
    with pytest.raises(TypeError, match=r'duckanon\.spectral\.rhs: there is no option "tbl"'):
        spectral.rhs(PEOPLE, ["age", "zip"], k=5, tbl="people")

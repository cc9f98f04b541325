"""A parameter is written in one place, the declaration, and appears everywhere."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from duckanon._bridge.generated import DECLARATIONS, PUBLIC
from duckanon._core.common.declare import Function
from duckanon._core.common.imports import import_function

ROOT = Path(__file__).parent.parent

ADDED = """Parameter("patience", OneOf("little", "much"), "How long to wait", "little"), Parameter(
            "effort","""

LOOK = """
import inspect, json, sys
import duckanon
from duckanon._core.common.imports import import_function
from duckanon._bridge.macros import macro_files
from duckanon.cli.shell import Completer
from tests.signatures import declared_function
from duckanon.job.policy_methods import Recode

con = duckanon.connect()
con.execute("CREATE TABLE people AS SELECT i % 7 AS age FROM range(70) AS t(i)").fetchall()
found = {}
found["sql"] = con.execute("SELECT parameters FROM anon.functions() WHERE name = 'anon.recode'").fetchone()[0]
try:
    con.execute("FROM anon.recode('people', ['age'], 5, patience := 'none')")
except Exception as error:
    found["refused"] = str(error)
found["reaches"] = "no"
try:
    con.execute("FROM anon.recode('people', ['age'], 5, patience := 'much')").fetchall()
except Exception as error:  # the algorithm has no such argument
    found["reaches"] = str(error)
found["large"] = str(inspect.signature(duckanon.large.recode)) + duckanon.large.recode.__doc__
found["policy"] = sorted(Recode.model_fields)
(file,) = [file for file in macro_files() if file.name == "recode"]
found["reference"] = [one.name + one.meaning for one in declared_function(file).parameters]
text = "FROM anon.recode('people', ['age'], 5, pat"
found["completion"] = Completer(con, lambda: text)("pat", 0)
if "spark" in sys.argv:
    found["spark"] = str(inspect.signature(duckanon.spark.recode)) + duckanon.spark.recode.__doc__
print(json.dumps(found))
"""


@pytest.mark.thorough
def test_a_parameter_that_is_declared_once_appears_everywhere(tmp_path: Path) -> None:
    skipped = shutil.ignore_patterns("__pycache__", "catalog.duckdb-*")
    shutil.copytree(ROOT / "duckanon", tmp_path / "duckanon", ignore=skipped)
    (tmp_path / "sql").symlink_to(ROOT / "sql")
    declared = tmp_path / "duckanon/_methods/recode/declared.py"
    text = declared.read_text()
    before = 'Parameter(\n            "effort",'
    assert text.count(before) == 1
    declared.write_text(text.replace(before, ADDED))
    has_spark = importlib.util.find_spec("pyspark") is not None
    run = [sys.executable, "-c", LOOK, *(["spark"] if has_spark else [])]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert "patience := 'little'" in found["sql"]
    assert found["refused"] == "anon.recode: patience must be one of 'little', 'much'; got 'none'."
    assert "anon.recode: it failed unexpectedly (TypeError in calls.py" in found["reaches"]
    assert "patience='little'" in found["large"]
    assert "How long to wait" in found["large"]
    assert "patience" in found["policy"]
    assert "patienceHow long to wait" in found["reference"]
    assert found["completion"] == "patience := "
    if has_spark:
        assert "patience='little'" in found["spark"]


@pytest.mark.parametrize("declared", DECLARATIONS, ids=lambda declared: declared.name)
def test_a_declaration_is_complete(declared: Function) -> None:
    if declared.algorithm:
        assert callable(import_function(declared.algorithm))
    names = [one.name for one in declared.flat]
    assert len(set(names)) == len(names)
    optional = [not one.is_required for one in declared.flat]
    assert optional == sorted(optional), "parameters without a default come first"
    for one in declared.flat:
        assert one.meaning, one.name
        assert not one.meaning.endswith("."), one.name
        assert one.is_required or one.rule.holds(one.default), one.name
    if declared.is_public:
        assert declared.summary.endswith("."), declared.name


def test_public_functions_have_one_declaration_or_one_macro_file() -> None:
    files = {path.stem for path in (ROOT / "sql").glob("*/[a-z]*.sql")}
    assert not files & PUBLIC.keys()

"""The places where analysts work: Jupyter with jupysql, marimo, dbt, a fresh environment (`make test-places`)."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from tests import release_check

ROOT = Path(__file__).parent.parent.parent
BIN = Path(sys.executable).parent

NEEDED = ("IPython", "nbclient", "sql", "marimo", "dbt.adapters.duckdb")


def has(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


pytestmark = pytest.mark.skipif(
    not all(has(module) for module in NEEDED), reason="make test-places installs notebooks and dbt"
)


def executed(cells: list[str], folder: Path) -> list[list[dict]]:
    """Run cells in a kernel and return the outputs of each."""
    import nbclient
    import nbformat

    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    return [cell.outputs for cell in notebook.cells]


def test_the_jupyter_notebook_goes_the_whole_road(tmp_path: Path) -> None:
    import nbformat

    notebook = nbformat.read(ROOT / "examples" / "notebooks" / "clinic.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells)  # nobody's results are kept in the repository
    cells = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    outputs = executed(cells, tmp_path)
    html = [output["data"].get("text/html", "") for cell in outputs for output in cell if "data" in output]
    assert sum("<caption>Class sizes</caption>" in view for view in html) == 2
    assert any("quasi-identifier" in view for view in html)
    released = duckdb.sql(
        f"SELECT min(n) FROM (SELECT count(*) AS n FROM '{tmp_path}/released.parquet' GROUP BY sex, age, zip)"
    )
    assert released.fetchall()[0][0] >= 10


def test_the_cells_of_the_tutorial_run(tmp_path: Path) -> None:
    """The blocks of the page that are cells with magics, in one kernel."""
    page = (ROOT / "docs" / "tutorials" / "3-notebook.md").read_text(encoding="utf-8")
    cells = re.findall(r"^```ipython\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    with duckdb.connect(tmp_path / "clinic.duckdb") as con:
        con.execute("CREATE TABLE patients AS SELECT 'P' || i AS patient_id, i % 50 AS age FROM range(100) AS t(i)")
    outputs = executed(cells, tmp_path)
    assert "identifier" in str(outputs[-1])


def test_connections_of_all_kinds_are_registered(tmp_path: Path) -> None:
    """Opened before or after the extension was loaded, by DuckDB or by SQLAlchemy; and the default connection."""
    question = "SELECT count(*) > 50 AS found FROM anon.functions()"
    outputs = executed(
        [
            "%load_ext sql\nimport duckdb\nbefore = duckdb.connect()\n%sql duckdb:// --alias earlier",
            "%load_ext duckanon\n%load_ext duckanon",
            f"%sql before --alias before\n%sql {question}",
            f"duckdb.sql('{question}').fetchall()",
            "after = duckdb.connect()",
            f"%sql after --alias after\n%sql {question}",
            "%sql duckdb:///clinic.duckdb --alias engine",
            f"%sql {question}",
            "closed = duckdb.connect()\nclosed.close()",
            "1 + 1",
            "%unload_ext duckanon",
            f"%sql earlier\n%sql {question}",
        ],
        tmp_path,
    )
    texts = ["".join(str(output.get("data", "")) for output in cell) for cell in outputs]
    for place in (2, 3, 5, 7, 11):
        assert "True" in texts[place], texts[place]
    assert "2" in texts[9]


def test_the_marimo_notebook_goes_the_whole_road() -> None:
    spec = importlib.util.spec_from_file_location("clinic_marimo", ROOT / "examples" / "notebooks" / "clinic_marimo.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    _, definitions = module.app.run()
    (k,) = definitions["clinic"].execute("SELECT k FROM anon.k_anonymity('released', ['sex', 'age', 'zip'])").fetchone()
    assert k >= 10
    assert len(definitions["roles"]) == 5


def dbt(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(BIN / "dbt"), "--no-use-colors", *arguments, "--project-dir", str(folder), "--profiles-dir", str(folder)],
        cwd=folder,
        env={**os.environ, "DBT_SEND_ANONYMOUS_USAGE_STATS": "false", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def test_the_dbt_project_releases_a_table_and_notices_a_broken_promise(tmp_path: Path) -> None:
    project = shutil.copytree(ROOT / "examples" / "dbt", tmp_path / "dbt")
    built = dbt(project, "build")
    assert built.returncode == 0, built.stdout
    assert "PASS=3" in built.stdout
    released = project / "released_patients.parquet"
    columns = "sex, dob, zip"
    assert duckdb.sql(f"FROM (SELECT count(*) AS n FROM '{released}' GROUP BY {columns}) WHERE n < 10").fetchall() == []
    model = project / "models" / "released_patients.sql"  # somebody thinks that leaving out the numbers is enough
    config = model.read_text(encoding="utf-8").partition("SELECT")[0]
    model.write_text(config + f"SELECT {columns}, diagnosis FROM {{{{ ref('patients') }}}}", encoding="utf-8")
    broken = dbt(project, "build", "--select", "released_patients")
    assert broken.returncode == 1, broken.stdout
    assert "k_anonymous" in broken.stdout
    assert "FAIL 1" in broken.stdout


@pytest.mark.thorough
def test_what_is_published_runs_in_empty_environments(tmp_path: Path) -> None:
    """`make release-check`: the wheel with its demo and extension, and the source archive."""
    assert release_check.main(["--folder", str(tmp_path / "release")]) == 0

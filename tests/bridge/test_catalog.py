"""Registering: what is seen where, and what is left alone."""

from __future__ import annotations

import gc
import hashlib
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import duckdb
import pytest

import duckanon
from duckanon._bridge import catalog, macros
from duckanon._bridge.registration import sql_folder

ROOT = Path(__file__).parent.parent.parent
LISTED = "SELECT count(*) > 0 FROM anon.functions()"


def test_registering_twice_is_harmless(own_con: duckdb.DuckDBPyConnection) -> None:
    before = own_con.execute("FROM anon.functions()").fetchall()
    assert duckanon.register(own_con) is own_con
    assert own_con.execute("FROM anon.functions()").fetchall() == before
    own_con.execute("CREATE TABLE t AS SELECT 1 AS i").fetchall()
    assert own_con.execute("FROM anon.swap('t', ['i'])").fetchall() == [(1,)]


def test_several_threads_register_at_once() -> None:
    con = duckdb.connect()
    con.execute("CREATE TABLE t AS SELECT 1 AS i").fetchall()
    failures: list[BaseException] = []

    def register() -> None:
        try:
            cursor = duckanon.register(con.cursor())
            assert cursor.execute("FROM anon.swap('t', ['i'])").fetchall() == [(1,)]
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=register) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    con.close()
    assert failures == []


@pytest.mark.thorough
@pytest.mark.usefixtures("unprepared")
def test_registering_that_failed_can_be_done_again(monkeypatch: pytest.MonkeyPatch) -> None:
    con = duckdb.connect()
    parsed = catalog._parse
    with monkeypatch.context() as patch:
        patch.setattr(catalog, "_parse", lambda script: [*parsed(script), "SELECT error('stopped')"])
        with pytest.raises(duckdb.Error, match="stopped"):
            duckanon.register(con)
    duckanon.register(con)
    assert con.execute(LISTED).fetchall() == [(True,)]
    con.close()


@pytest.mark.thorough
def test_default_connection_gets_it() -> None:
    code = "import duckanon, duckdb; duckanon.register(); print(duckdb.sql('FROM anon.functions()').fetchall()[0][0])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "anon.functions"
    assert done.stderr == ""


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("code", "absent"),
    [
        ("import duckanon", "duckdb numpy pyarrow scipy sklearn matplotlib jinja2 pydantic"),
        ("from duckanon.cli.arguments import parser; parser()", "duckdb numpy pyarrow scipy sklearn"),
        ("import duckanon; duckanon.connect().close()", "pyarrow.compute scipy sklearn matplotlib jinja2 pydantic"),
    ],
)
def test_what_nobody_asked_for_is_not_imported(code: str, absent: str) -> None:
    """The libraries of the algorithms take seconds to load: only a function that needs them does."""
    look = f"import sys; {code}; print(*(name for name in {absent.split()} if name in sys.modules))"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for _ in range(2 if "connect" in code else 1):  # the first that connects may write the catalog, and imports more
        done = subprocess.run(
            [sys.executable, "-c", look], capture_output=True, text=True, check=True, cwd=ROOT, env=environment
        )
    assert done.stdout.strip() == ""


FIRST_CALLS = {
    "scipy sklearn": [
        "k_anonymity('t', ['a', 'b'])",
        "generalize('t', ['a', 'b'], 5)",
        "recode('t', ['a', 'b'], 5)",
        "microaggregate('t', ['a', 'x'], 5)",
        "additive_noise('t', ['x', 'y'])",
        "svd_swap('t', ['a', 'x', 'y'])",
        "pica('t', ['a', 'x', 'y'], cluster_size := 300)",
        "spectral_rhs('t', ['a', 'x', 'y'], 5)",
        "utility('t', 'r', ['a', 'x', 'y'])",
        "query_utility('t', 'r', ['a', 'x', 'y'])",
        "contradictions('t', 'r', ['a', 'x', 'y'])",
        "prediction_risk('t', 'r', ['a', 'x', 'y'])",
    ],
    "scipy.stats sklearn": [
        "generalize('t', ['a', 'b'], 5, population := 20000)",
        "spectral_release('t', ['a', 'b', 'x', 'y'])",
        "privacy_test('t', 'r', ['a', 'x', 'y'])",
        "verdict('t', 'r', ['a', 'x', 'y'])",
        "protect_table('t', ['b', 'c'])",
    ],
    "sklearn": ["kernel_utility('t', 'r', ['x', 'y'])"],
    "sklearn.ensemble sklearn.cluster": ["synthesize('t', ['a', 'b', 'x', 'y'])"],
}
"""By the libraries that none of the calls may import: those of the first two rows in one process each."""


@pytest.mark.thorough
@pytest.mark.parametrize("absent", FIRST_CALLS)
def test_first_calls_import_what_they_need(absent: str) -> None:
    """The first query of a process waits for imports: scipy.stats takes two seconds, scikit-learn three."""
    columns = "20 + hash(i) % 60 AS a, hash(i, 1) % 2 AS b, hash(i, 2) % 3 AS c, hash(i, 3) % 9999 / 7 AS x"
    table = f"SELECT {columns}, round(hash(i, 4) % 9999 / 9, 2) AS y FROM range"
    code = f"""
import sys, duckanon
con = duckanon.connect()
con.execute("SET enable_progress_bar = false")
con.execute("CREATE TABLE t AS {table}(300) AS s(i); CREATE TABLE r AS {table}(1000, 1300) AS s(i)")
for call in {FIRST_CALLS[absent]}:
    con.execute(f"FROM anon.{{call}}").fetchall()
    print(*(f"{{call}}: {{name}}" for name in {absent.split()} if name in sys.modules), end="")"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr


def test_cursors_and_threads_see_it(own_con: duckdb.DuckDBPyConnection) -> None:
    own_con.execute("CREATE TABLE t AS SELECT i FROM range(10) AS t(i)").fetchall()
    found: list[object] = []

    def look() -> None:
        cursor = own_con.cursor()
        found.append(cursor.execute("SELECT count(*) FROM anon.swap('t', ['i'])").fetchall())
        cursor.close()

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    look()
    assert found == [[(10,)], [(10,)]]


def test_functions_outlive_whoever_registered_them() -> None:
    con = duckdb.connect()
    helper = con.cursor()
    duckanon.register(helper)
    helper.close()
    del helper
    gc.collect()
    con.execute("CREATE TABLE t AS SELECT i FROM range(5000) AS t(i)").fetchall()
    assert con.execute("SELECT sum(i) FROM anon.swap('t', ['i'])").fetchall() == [(5000 * 4999 // 2,)]
    con.close()


def test_an_unfinished_result_is_left_alone() -> None:
    con = duckdb.connect()
    con.execute("SELECT i FROM range(100_000) AS t(i)")
    first = con.fetchmany(3)
    duckanon.register(con)
    assert first + con.fetchall() == [(i,) for i in range(100_000)]
    con.close()


def test_nothing_is_written_to_the_file(tmp_path: Path) -> None:
    path = tmp_path / "clinic.duckdb"
    with duckdb.connect(str(path)) as con:
        con.execute("CREATE TABLE patients AS SELECT i AS id FROM range(10) AS t(i)").fetchall()
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    con = duckanon.connect(path)
    con.execute("SELECT sum(id) FROM anon.swap('patients', ['id'])").fetchall()
    con.close()
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["clinic.duckdb"]


def test_a_file_opened_read_only_works_by_plain_names(tmp_path: Path) -> None:
    path = tmp_path / "clinic.duckdb"
    with duckdb.connect(str(path)) as con:
        con.execute("CREATE TABLE patients AS SELECT i AS id, i % 2 AS sex FROM range(10) AS t(i)").fetchall()
    con = duckanon.connect(path, read_only=True)
    assert con.execute("SELECT sum(id) FROM anon.swap('patients', ['id'])").fetchall() == [(45,)]
    assert con.execute("SELECT column_name FROM anon.column_profile('patients')").fetchall() == [("id",), ("sex",)]
    with pytest.raises(duckdb.InvalidInputException, match="read-only"):
        con.execute("CREATE TABLE mine AS SELECT 1 AS i").fetchall()
    con.close()


def test_a_database_called_anon_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "anon.duckdb"
    duckdb.connect(str(path)).close()
    before = path.read_bytes()
    with pytest.raises(ValueError, match="the name anon is taken by the database file"):
        duckanon.connect(path)
    assert path.read_bytes() == before


def test_tables_by_any_name(own_con: duckdb.DuckDBPyConnection) -> None:
    own_con.execute("CREATE SCHEMA clinic; CREATE TABLE clinic.visits AS SELECT 1 AS i").fetchall()
    own_con.execute('CREATE TABLE "two words" AS SELECT 2 AS i; CREATE TABLE "Größe" AS SELECT 3 AS i').fetchall()
    own_con.execute("CREATE TEMP TABLE mine AS SELECT 4 AS i").fetchall()
    for name, value in (("clinic.visits", 1), ("memory.clinic.visits", 1), ("two words", 2), ("Größe", 3), ("mine", 4)):
        assert own_con.execute(f"FROM anon.swap('{name}', ['i'])").fetchall() == [(value,)]


def test_macro_files_say_what_they_are() -> None:
    python_backed = {file.name for file in macros.macro_files() if file.needs_python}
    for file in macros.macro_files():
        if not (sql_folder() / file.stage / f"{file.name}.sql").exists():
            continue  # written from a declaration
        assert file.sql.startswith(f"-- anon.{file.name}: "), file.name
        code = re.sub(r"--[^\n]*", "", file.sql)
        needs = "_anon_" in code or file.calls & python_backed
        assert file.needs_python or not needs, f"{file.name}: the header lacks `-- needs: python`"
        if file.is_public:
            assert f"-- test: tests/{file.stage}/{file.name}.test\n" in file.sql, file.name
            assert len(file.sql.splitlines()) <= 125, f"{file.name} has outgrown its file"


ARGUMENTS = {  # of the functions that take more than a table and columns
    "column_profile": "",
    "direct_identifiers": "",
    "quasi_identifiers": "",
    "small_classes": ", ['a'], 3",
    "risky_rows": ", ['a'], 3",
    "l_diversity": ", ['a'], 'b'",
    "l_diversity_classes": ", ['a'], 'b'",
    "t_closeness": ", ['a'], 'b'",
    "t_closeness_classes": ", ['a'], 'b'",
    "population_uniques": ", ['a', 'b'], 1000, interactions := [['a', 'b']]",
    "k_map": ", ['a'], 'plain'",
    "delta_presence": ", ['a'], 'plain'",
    "sensitive_risk": ", ['a'], 'b'",
    "sensitive_risk_classes": ", ['a'], 'b'",
    "hierarchy_level": ", 'a', 'tree', 100",
    "quantile_partition": ", 'a', k := 2",
    "sampled_partition": ", 'a', 2",
    "optimal_partition": ", 'a', 2",
    "apply_partition": ", 'a', 'partition'",
    "plan": ", ['a', 'b'], 2",
    "apply_plan": ", 'plan'",
    "plan_coverage": ", 'plan'",
    "generalize": ", ['a', 'b'], 2",
    "boxes": ", ['a', 'b'], 5",
    "microaggregate": ", ['a', 'b'], 5",
    "suppress_cells": ", ['a', 'b'], 5",
    "recode": ", ['a', 'b'], 5, effort := 'quick'",
    "label_boxes": ", 'boxes', ['a', 'b']",
    "unflatten_boxes": "",
    "optimal_uncertainty": ", ['a', 'b'], 5",
    "swap": ", ['a', 'b'], seed := 1",
    "svd_swap": ", ['a', 'b'], checks := 'off', seed := 1",
    "pica": ", ['a', 'b'], cluster_size := 100, checks := 'off', seed := 1",
    "pica_report": ", ['a', 'b'], basis := 'pca', clustering := 'bisect', seed := 1",
    "spectral_release": ", ['a', 'b'], seed := 1",
    "synthesize": ", ['a', 'b'], seed := 1",
    "membership_audit": ", ['a', 'b'], method := 'data_shuffle', releases := 4, seed := 1",
    "spectral_rhs": ", ['a', 'b'], 2, seed := 1",
    "rhs": ", ['a', 'b'], 2, checks := 'off', seed := 1",
    "additive_noise": ", ['a', 'b'], seed := 1",
    "data_shuffle": ", ['a', 'b'], seed := 1",
    "copula_synthesize": ", ['a', 'b'], seed := 1",
    "split_reference": ", seed := 1",
    "assess": "",
    "kept_column_risk": ", ['a'], ['b']",
}


@pytest.mark.thorough
def test_no_name_of_ours_hides_a_table(con: duckdb.DuckDBPyConnection) -> None:
    """A table may be called like a step of a macro: query_table() would take the step for it."""
    files = {file.name: file for file in macros.macro_files()}

    def steps(name: str) -> set[str]:
        own = set(re.findall(r"(?:WITH|\),) (\w+) AS (?:(?:NOT )?MATERIALIZED )?\(", files[name].sql))
        return own.union(*(steps(called) for called in files[name].calls & files.keys()))

    names = {name: {step for step in steps(name) if not step.startswith("_duckanon")} for name in files}
    for name in {"plain"}.union(*names.values()):
        con.execute(f"CREATE TABLE {name} AS SELECT i % 7 AS a, i % 3 AS b FROM range(420) AS t(i)").fetchall()
    con.execute("CREATE TABLE plan AS FROM anon.plan('plain', ['a', 'b'], 2)").fetchall()
    con.execute("CREATE TABLE partition AS FROM anon.sampled_partition('plain', 'a', 2)").fetchall()
    con.execute("CREATE TABLE boxes AS SELECT 1 AS box, {'lo': 0, 'hi': 9} AS a, {'lo': 0, 'hi': 9} AS b").fetchall()
    con.execute("CREATE TABLE tree AS SELECT i AS leaf, '*' AS root FROM range(7) AS t(i)").fetchall()
    others = ("membership_audit", "dp_table")  # nobody is isolated; numbers differ from call to call
    for file in macros.macro_files():
        if file.is_public and file.parameters.startswith("tbl") and file.name not in others:
            arguments = ARGUMENTS.get(file.name, ", ['a']")
            expected = sorted(map(str, con.execute(f"FROM anon.{file.name}('plain'{arguments})").fetchall()))
            for name in names[file.name]:
                found = con.execute(f"FROM anon.{file.name}('{name}'{arguments})").fetchall()
                assert sorted(map(str, found)) == expected, (file.name, name)


@pytest.mark.thorough
def test_the_wheel_carries_the_macros(tmp_path: Path) -> None:
    pytest.importorskip("hatchling")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    build = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert build.returncode == 0, build.stderr
    wheel = next(tmp_path.glob("*.whl"))
    subprocess.run([sys.executable, "-m", "zipfile", "-e", str(wheel), str(tmp_path / "site")], check=True)
    code = f"""
import sys
sys.path.insert(0, {str(tmp_path / "site")!r})
import duckanon
from duckanon._bridge import registration, registry
print(registration.sql_folder())
print(duckanon.connect().execute("FROM anon.functions()").fetchall()[0][0])
from duckanon import report
print(report.html({{**dict.fromkeys(("duckanon", "duckdb", "python", "started", "finished", "policy")),
                    "outcome": "released", "tables": []}}, {{}}).count("color-scheme: light dark"))
from duckanon._extension import shim
print(shim.SOURCE.with_name(shim.LIBRARY).exists() or shim._compiler() is None)
"""
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    folder, first, styles, has_shim = done.stdout.split()
    assert folder == str(tmp_path / "site" / "duckanon" / "sql")
    assert first == "anon.functions"
    assert styles == "1"
    assert has_shim == "True"


@pytest.mark.thorough
@pytest.mark.parametrize("schema", ["anon", "Anon"])
def test_a_schema_called_anon_is_refused(schema: str) -> None:
    """DuckDB would call anon.swap ambiguous, before and after."""
    con = duckdb.connect()
    con.execute(f'CREATE SCHEMA "{schema}"; CREATE TABLE "{schema}".mine AS SELECT 1 AS i').fetchall()
    with pytest.raises(ValueError, match=r"^duckanon.register: the database memory has a schema called \w+, so that"):
        duckanon.register(con)
    con.execute(f'DROP SCHEMA "{schema}" CASCADE').fetchall()
    assert duckanon.register(con).execute(LISTED).fetchall() == [(True,)]
    con.execute(f'CREATE SCHEMA "{schema}"').fetchall()
    with pytest.raises(ValueError, match="has a schema called"):
        duckanon.register(con)
    con.close()


@pytest.mark.parametrize(
    "theirs",
    ["TABLE anon._signatures_of_mine AS SELECT 1 AS i", "VIEW anon.mine AS SELECT 1 AS i", "MACRO anon.mine() AS 1"],
)
def test_a_database_in_memory_called_anon_keeps_what_is_in_it(theirs: str) -> None:
    con = duckdb.connect()
    con.execute(f"ATTACH ':memory:' AS anon; CREATE {theirs}").fetchall()
    with pytest.raises(ValueError, match=r"^duckanon.register: the name anon is taken by a database in memory"):
        duckanon.register(con)
    found = con.execute("SELECT count(*) FROM duckdb_functions() WHERE function_name = 'k_anonymity'").fetchall()
    assert found == [(0,)]
    con.close()


@pytest.mark.thorough
def test_a_database_that_the_script_was_run_in_can_be_registered() -> None:
    """The script of `duckanon sql` has no functions that need Python; registering brings them."""
    con = duckdb.connect()
    con.execute(macros.script()).fetchall()
    con.execute("CREATE TABLE t AS SELECT 1 AS i").fetchall()
    assert duckanon.register(con).execute("FROM anon.swap('t', ['i'])").fetchall() == [(1,)]
    con.close()


FORKED = """
import os, threading
import duckdb, duckanon
from duckanon._bridge import registration, registry
from duckanon._core.common import resources

con = duckanon.connect()
con.execute("CREATE TABLE t AS SELECT i FROM range(5000) AS t(i)").fetchall()
con.execute("FROM anon.swap('t', ['i'])").fetchall()
held = threading.Event()
done = threading.Event()

def hold():  # as threads do that register, park rows and compute at the moment of the fork
    with registration._REGISTERING, registry.WAITING._lock, resources._SINGLE_THREAD._lock:
        held.set()
        done.wait()

threading.Thread(target=hold, daemon=True).start()
held.wait()
child = os.fork()
if child == 0:
    other = duckanon.connect()
    other.execute("CREATE TABLE t AS SELECT i FROM range(5000) AS t(i)").fetchall()
    rows = other.execute("SELECT count(*), sum(i) FROM anon.swap('t', ['i'])").fetchall()
    os._exit(0 if rows == [(5000, 12497500)] else 1)
done.set()
_, status = os.waitpid(child, 0)
raise SystemExit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.thorough
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_can_open_a_database_of_its_own() -> None:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FORKED], timeout=60, capture_output=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr.decode()[-2000:]

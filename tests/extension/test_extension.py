"""The extension in the stock shell: what a user types there, and what may stand in its way."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

import duckanon
from duckanon._bridge import macros
from duckanon._extension import extension_file as files
from duckanon._extension import shim
from tests.extension.shells import extension_file, run_shell, stock_shell

PEOPLE = """
CREATE TABLE people AS SELECT hash(i) % 90 AS age, hash(i + 1) % 7 AS zip, round(hash(i + 2) % 10007 / 7, 2) AS income
FROM range(3000) AS r(i);
"""

RELEASES = {
    "recode": "FROM anon.recode('people', ['age', 'zip'], 5, keep := ['income'])",
    "swap": "FROM anon.swap('people', ['age', 'zip', 'income'], seed := 1)",
    "svd_swap": "FROM anon.svd_swap('people', ['age', 'income'], seed := 1)",
    "k_anonymity": "FROM anon.k_anonymity('people', ['age', 'zip'])",
    "population_uniques": "FROM anon.population_uniques('people', ['age', 'zip'], 80000)",
}

TYPES = """
SET TimeZone = 'America/New_York';
CREATE TYPE mood AS ENUM ('sad', 'ok', 'glad');
CREATE TABLE t AS SELECT i::TINYINT AS i8, i::UBIGINT AS u64, i::HUGEINT AS h, (i / 7)::DECIMAL(9, 3) AS d9,
    (i / 7)::DECIMAL(30, 5) AS d30, (i / 3)::FLOAT AS f, DATE '2020-01-01' + i::INT AS d,
    TIMESTAMP '2020-01-01 01:02:03.5' + to_days(i::INT) AS ts,
    TIMESTAMPTZ '2020-01-01 01:02:03+00' + to_days(i::INT) AS tz, TIME '01:02:03' AS tm,
    CASE WHEN i % 3 = 0 THEN NULL ELSE 'é' || i || repeat('x', i::INT) END AS s,
    (CASE i % 3 WHEN 0 THEN 'sad' WHEN 1 THEN 'ok' END)::mood AS m, i % 2 = 0 AS b,
    CASE WHEN i % 5 = 0 THEN NULL ELSE i END AS n, ('00000000-0000-0000-0000-0000000000' || (10 + i))::UUID AS u
FROM range(20) AS r(i);
"""
COLUMNS = ["i8", "u64", "h", "d9", "d30", "f", "d", "ts", "tz", "tm", "s", "m", "b", "n", "u"]


def rows_of(con: duckdb.DuckDBPyConnection, query: str) -> list[str]:
    texts = con.execute(f"SELECT CAST(COLUMNS(*) AS VARCHAR) FROM ({query})").fetchall()
    return sorted("|".join("NULL" if value is None else value for value in row) for row in texts)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name", ["recode", *(pytest.param(name, marks=pytest.mark.shell) for name in RELEASES if name != "recode")]
)
def test_a_release_is_the_same_as_in_python(name: str) -> None:
    con = duckanon.connect()
    con.execute(PEOPLE).fetchall()
    expected = rows_of(con, RELEASES[name])
    con.close()
    done = run_shell(f".nullvalue NULL\n{PEOPLE}SELECT CAST(COLUMNS(*) AS VARCHAR) FROM ({RELEASES[name]});")
    assert sorted(done.stdout.splitlines()) == expected, done.stderr


@pytest.mark.shell
def test_macros_are_those_of_the_script() -> None:
    """Where they need no Python they have the same words: their `.test` files run with the script alone."""
    listed = """
        SELECT function_name, parameters, macro_definition FROM duckdb_functions()
        WHERE database_name = 'anon' AND NOT internal AND macro_definition IS NOT NULL;"""

    def sort_words(line: str) -> str:
        """Sort a macro's words: DuckDB writes the lists of EXCLUDE and REPLACE in another order in each process."""
        name, _, definition = line.partition("|")
        return f"{name}|{' '.join(sorted(re.findall('[A-Za-z0-9]+|.', definition)))}"

    script = f"ATTACH ':memory:' AS anon;\n{macros.script()}\n{listed}"
    of_script = map(sort_words, run_shell(script, loads=False).stdout.splitlines())
    needs_python = {file.name for file in macros.macro_files() if file.needs_python} | {"_random"}
    plain = {line for line in of_script if line.partition("|")[0] not in needs_python}
    assert len(plain) > 250
    assert plain - set(map(sort_words, run_shell(listed).stdout.splitlines())) == set()


@pytest.mark.shell
def test_fifteen_types_there_and_back() -> None:
    back = f"anon._identity('t', {COLUMNS})"
    same = f"SELECT count(*) FROM (FROM t EXCEPT ALL FROM {back})"
    types = "SELECT " + " || ' ' || ".join(f"typeof(any_value({name}))" for name in COLUMNS)
    done = run_shell(f"{TYPES}{same};\nSELECT count(*) FROM {back};\n{types} FROM t;\n{types} FROM {back};")
    apart, rows, before, after = done.stdout.splitlines()
    assert (apart, rows) == ("0", "20"), done.stderr
    assert after == before.replace("ENUM('sad', 'ok', 'glad')", "VARCHAR")


@pytest.mark.thorough
def test_errors_are_sentences_and_the_script_goes_on() -> None:
    done = run_shell(
        f"{PEOPLE}FROM anon.recode('people', ['age', 'nope'], 5);\n"
        "FROM anon.recode('people', ['age'], 1);\nSELECT 'after';"
    )
    assert 'Error: anon.recode: column "nope" does not exist in people.' in done.stderr
    assert "Error: anon.recode: k must be a whole number of at least 2; got 1." in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout.split() == ["after"]


@pytest.mark.shell
def test_loading_again_and_other_databases(tmp_path: Path) -> None:
    path, load = tmp_path / "people.duckdb", f"LOAD '{extension_file()}';\n"
    count = "SELECT count(*) FROM anon.swap('people', ['age']);\n"
    script = f"{load}{PEOPLE}{count}.open {path}\n{load}{PEOPLE}{count}.open -readonly {path}\n{load}{count}"
    attached = f".open :memory:\n{load}ATTACH '{path}' AS other (READ_ONLY); USE other;\n{count}SELECT 'end';"
    done = run_shell(script + attached)
    assert done.stdout.split() == ["3000", "3000", "3000", "3000", "end"], done.stderr
    assert done.stderr == ""


@pytest.mark.shell
def test_eight_threads() -> None:
    done = run_shell(
        "SET threads = 8;\nCREATE TABLE t AS SELECT i, random() AS x FROM range(300_000) AS r(i);\n"
        "SELECT count(*), sum(i) FROM anon._identity('t', ['i', 'x']);"
    )
    assert done.stdout.split() == ["300000|44999850000"], done.stderr


@pytest.mark.shell
def test_variables_of_another_python_do_not_matter(tmp_path: Path) -> None:
    env = {"PYTHONHOME": "/nowhere", "PYTHONPATH": str(tmp_path)}
    (tmp_path / "ctypes.py").write_text("raise SystemExit")
    done = run_shell(f"{PEOPLE}SELECT count(*) FROM anon.swap('people', ['age']);", env=env)
    assert done.stdout.split() == ["3000"], done.stderr


@pytest.mark.shell
def test_a_name_that_is_taken_is_refused() -> None:
    done = run_shell(f"CREATE SCHEMA anon;\nLOAD '{extension_file()}';\nSELECT 'after';", loads=False)
    assert "duckanon: the database memory has a schema called anon" in done.stderr
    assert done.stdout.split() == ["after"]


def changed(path: Path, old: bytes, new: bytes) -> Path:
    """Write the extension with another text in its block."""
    content = extension_file().read_bytes()
    start = content.rindex(b"DUCKANON\0")
    block = content[start : start + files.BLOCK_BYTES].replace(old, new)
    path.mkdir()
    (path / files.NAME).write_bytes(
        content[:start] + block[: files.BLOCK_BYTES].ljust(files.BLOCK_BYTES, b"\0") + content[-534:]
    )
    return path / files.NAME


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (
            f"\0{duckanon.__version__}\0",
            "\x000.0.9\0",
            f"duckanon: this extension was written by duckanon 0.0.9, and {duckanon.__version__} is installed; "
            "renew it: duckanon extension.",
        ),
        (sys.executable, "/gone/python", "duckanon: the Python that the extension was written for is gone"),
        (str(files.libpython()), "/gone/libpython.so", "duckanon: Python's library cannot be loaded"),
        ("DUCKANON", "duckanon", "duckanon: the extension does not say which Python to start"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(old: str, new: str, sentence: str, tmp_path: Path) -> None:
    path = changed(tmp_path / "other", old.encode(), new.encode())
    done = run_shell(f"LOAD '{path}';\nSELECT 'after';", loads=False)
    assert sentence in done.stderr
    assert done.stdout.split() == ["after"]


@pytest.mark.shell
def test_register_and_load_on_one_database(tmp_path: Path) -> None:
    code = f"""
import duckdb, duckanon
for first in ("register", "load"):
    con = duckdb.connect(config={{"allow_unsigned_extensions": True}})
    con.execute("CREATE TABLE t AS SELECT i FROM range(9) AS r(i)").fetchall()
    for step in (("register", "load") if first == "register" else ("load", "register")):
        if step == "register":
            duckanon.register(con)
        else:
            con.execute("LOAD '{extension_file()}'").fetchall()
        print(con.execute("SELECT count(*), sum(i) FROM anon.swap('t', ['i'])").fetchall())
    con.close()
print(sorted(name for name in globals() if not name.startswith("__")))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout.splitlines()[:4] == ["[(9, 36)]"] * 4, done.stderr
    assert done.stdout.splitlines()[4] == "['con', 'duckanon', 'duckdb', 'first', 'step']"


@pytest.mark.shell
def test_install_from_a_repository(tmp_path: Path) -> None:
    version = subprocess.run([str(stock_shell()), "--version"], capture_output=True, text=True, check=True).stdout
    folder = files.write_repository(tmp_path / "repository", (version.split()[0],))
    script = f"INSTALL duckanon FROM '{folder}';\nLOAD duckanon;\nSELECT count(*) > 0 FROM anon.functions();"
    done = run_shell(script, loads=False, env={"HOME": str(tmp_path)})
    assert done.stdout.split() == ["true"], done.stderr


@pytest.mark.thorough
def test_the_command_says_what_to_do(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "duckanon.cli", "extension", "--to", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f"    LOAD '{tmp_path / files.NAME}';\n" in done.stdout
    assert "duckdb -unsigned" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == [files.NAME]


def test_a_python_without_a_library_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(files, "_library_folders", list)
    with pytest.raises(ValueError, match=r"^duckanon extension: this Python \(.*\) has no shared library \w+"):
        files.write_extension(tmp_path)


def test_a_package_without_the_shim_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", "")  # no compiler
    monkeypatch.setattr(shim, "LIBRARY", "no.so")
    with pytest.raises(ValueError, match=r"^duckanon extension: this package was built without its C part, and there"):
        files.write_extension(tmp_path)
    assert os.listdir(tmp_path) == []


@pytest.mark.shell
def test_forty_loads_and_quits() -> None:
    call = f"{PEOPLE}SELECT count(*) FROM anon.swap('people', ['age']);"
    for number in range(40):
        done = run_shell(call if number % 10 == 0 else "SELECT 3000;")
        assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["3000"], ""), number

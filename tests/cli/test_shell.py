"""The shell: its commands, scripts that are piped into it, its history, homes that are missing."""

from __future__ import annotations

import io
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from duckanon.cli import shell, statements
from duckanon.cli.output import Style
from duckanon.cli.shell import History
from tests.cli.test_cli import talk
from tests.cli.test_output import Terminal


def followed(con: duckdb.DuckDBPyConnection, script: str) -> str:
    """Pipe a script into the shell and return what it wrote."""
    written: list[str] = []
    shell.Shell(con, Style("csv"), write=written.append).read(io.StringIO(script))
    return "".join(written)


def test_read_runs_a_file(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    inner, outer = tmp_path / "two words.sql", tmp_path / "outer.sql"
    inner.write_text("CREATE TABLE t AS\n  SELECT 42 AS answer; -- done;\n.mode json\n", encoding="utf-8")
    outer.write_text(f".read '{inner}'\nFROM t", encoding="utf-8")
    assert talk(con, f".read {outer}", ".mode") == '[{"answer": 42}]\njson\n\n'


def test_read_stops_at_the_first_error(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    file = tmp_path / "job.sql"
    file.write_text("SELECT 1 AS a;\nFROM nope;\nCREATE TABLE released AS SELECT 2 AS b;\n", encoding="utf-8")
    written = talk(con, ".mode csv", f".read {file}", "SELECT count(*) AS tables FROM (SHOW TABLES);")
    assert written == "a\n1\nError: Catalog Error: Table with name nope does not exist!\ntables\n0\n\n"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (".read", ".read: name one file of SQL."),
        (".read nope.sql", "nope.sql: No such file or directory."),
        (".read 'nope.sql", ".read: a quote is missing."),
        (".mode xml", ".mode: the mode must be one of table, csv, json, markdown; got xml."),
        (".maxrows many", ".maxrows: the count must be a whole number from 1 to 10000"),
        (".maxrows 0", ".maxrows: the count must be a whole number from 1 to 10000"),
        (".timing maybe", ".timing: it is on or off; got maybe."),
        (".schema nope", ".schema: there is no table or view like nope."),
        (".nope", ".nope is not a command of this shell; .help lists them."),
    ],
)
def test_wrong_commands_are_one_sentence(con: duckdb.DuckDBPyConnection, line: str, said: str) -> None:
    written = talk(con, line)
    assert written.startswith("Error: ")
    assert said in written
    assert written.count("\n") == 2


def test_a_file_that_reads_itself(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    file = tmp_path / "self.sql"
    file.write_text(f"SELECT 1 AS a;\n.read {file}\n", encoding="utf-8")
    assert f"Error: .read: {file} is being read already.\n" in talk(con, f".read {file}")
    assert "being read" not in talk(con, ".mode csv", ".read /dev/null", ".read /dev/null")


def test_help_names_every_command(con: duckdb.DuckDBPyConnection) -> None:
    written = talk(con, ".help")
    for name in (".read", ".mode", ".schema", ".tables", ".maxrows", ".functions", ".timing", ".help", ".quit"):
        assert f"\n{name}" in written


def test_functions_are_listed_by_a_part_of_their_names(con: duckdb.DuckDBPyConnection) -> None:
    listed = [line for line in followed(con, ".functions k_an\n").split("\n") if line.startswith("anon.")]
    assert [line.split("(")[0] for line in listed] == ["anon.k_anonymity"]
    assert "there is no function like nothing" in talk(con, ".functions nothing")


def test_a_misspelt_column_is_named_with_the_nearest(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE patients AS SELECT 1 AS age, 2 AS zip").fetchall()
    said = talk(con, "FROM anon.k_anonymity('patients', ['age', 'zpi']);")
    assert said.startswith('Error: anon.k_anonymity: column "zpi" does not exist in patients; did you mean "zip"?\n')
    said = talk(con, "FROM anon.boxes('patients', ['age'], 2, by := ['zpi']);")
    assert 'column "zpi" does not exist in patients; did you mean "zip"?' in said


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("FROM anon.k_anonymity('staff', ['sa", ["salary", "sauna"]),
        ("FROM anon.k_anonymity('staff', ['salary', 'sa", ["salary", "sauna"]),
        ("SELECT sa", ["salary", "sauna"]),
    ],
)
def test_tab_in_a_list_offers_columns(con: duckdb.DuckDBPyConnection, line: str, offered: list[str]) -> None:
    con.execute('CREATE TABLE staff AS SELECT 1 AS salary, 2 AS sauna, 3 AS "sa\'d"').fetchall()
    completer = shell.Completer(con, lambda: line)
    found = [completer("sa", place) for place in range(4)]
    if "[" in line:  # nothing but columns, as they are written in quotes
        assert found == ["sa''d", *offered, None]
    assert set(offered) <= set(found)


def test_maxrows(con: duckdb.DuckDBPyConnection) -> None:
    query = "SELECT i AS number FROM range(100) AS t(i);"
    written = talk(con, ".maxrows", ".maxrows 100", ".maxrows", query)
    assert written.startswith("as DuckDB has it\n100\n")
    assert all(f"│ {number:6} │" in written for number in range(100))


@pytest.fixture
def clinic() -> Iterator[duckdb.DuckDBPyConnection]:
    """Tables of all kinds; of our own catalog, only what must not be listed."""
    con = duckdb.connect()
    con.execute(
        """ATTACH ':memory:' AS anon; CREATE TABLE anon._signatures AS SELECT 1 AS i;
           CREATE TABLE patients (id INTEGER PRIMARY KEY, "Home ZIP" VARCHAR);
           CREATE SCHEMA ward; CREATE TABLE ward."bed no" AS SELECT 1 AS i;
           ATTACH ':memory:' AS archive; CREATE TABLE archive.old AS SELECT 1 AS i;
           CREATE INDEX zips ON patients ("Home ZIP");
           CREATE VIEW adults AS SELECT * FROM patients WHERE id > 18;
           CREATE TEMP TABLE mine AS SELECT 1 AS i"""
    ).fetchall()
    yield con
    con.close()


def test_tables_are_listed_as_they_have_to_be_written(clinic: duckdb.DuckDBPyConnection) -> None:
    assert talk(clinic, ".tables") == 'mine\nadults\npatients\nward."bed no"\narchive.main.old\n\n'
    assert talk(clinic, ".tables P%") == "patients\n\n"
    for name in statements.object_names(clinic):
        assert clinic.execute(f"FROM {name} LIMIT 0").fetchall() == []
    clinic.execute("USE ward").fetchall()
    assert talk(clinic, ".tables").startswith('mine\nmain.adults\nmain.patients\n"bed no"\n')


def test_the_schema_makes_the_same_tables_again(clinic: duckdb.DuckDBPyConnection) -> None:
    written = talk(clinic, ".schema")
    assert 'CREATE TABLE patients(id INTEGER PRIMARY KEY, "Home ZIP" VARCHAR);' in written
    assert "_signatures" not in written
    only = talk(clinic, ".schema patients")
    assert only.count("CREATE") == 2
    with duckdb.connect() as again:
        again.execute(only + talk(clinic, ".schema adults")).fetchall()
        assert again.execute("DESCRIBE adults").fetchall() == clinic.execute("DESCRIBE adults").fetchall()


def test_names_of_tables_do_not_command_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setattr(sys, "stdin", io.StringIO(".tables\n.schema\n"))
    with duckdb.connect() as con:
        con.execute('CREATE TABLE "\x1b[2J" AS SELECT 1 AS i').fetchall()
        shell.run_shell(con, Style())
    assert screen.getvalue().startswith('"\\e[2J"\nCREATE TABLE "\\e[2J"(i')
    assert "\x1b" not in screen.getvalue()


def test_a_piped_script_prints_results_only(con: duckdb.DuckDBPyConnection) -> None:
    script = "SELECT 1\n  AS a; SELECT 'x;\ny' AS b;\r\n.mode json\n\n-- nothing\nSELECT 3 AS c"
    assert followed(con, script) == 'a\n1\nb\n"x;\ny"\n[{"c": 3}]\n'


def test_a_piped_script_stops_at_its_first_error(con: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(duckdb.CatalogException):
        followed(con, "SELECT 1 AS a;\nFROM nope;\nCREATE TABLE released AS SELECT 1 AS i;\n")
    assert con.execute("SHOW TABLES").fetchall() == []


def test_long_statements_take_no_square_of_time(
    con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looking at all that was typed after every line would: only a line with a semicolon can end a statement."""
    looks = []
    is_complete = statements.is_complete
    monkeypatch.setattr(statements, "is_complete", lambda text: looks.append(text) or is_complete(text))
    rows = ",\n".join(f"({i})" for i in range(3000))
    assert followed(con, f"CREATE TABLE t AS FROM (VALUES\n{rows}\n) AS _(i);\nSELECT sum(i) AS s FROM t;\n") == (
        "s\n4498500\n"
    )
    assert len(looks) == 2


def remembered(con: duckdb.DuckDBPyConnection, *lines: str) -> list[str]:
    typed, entries = iter(lines), []

    def read_line(_: str) -> str:
        try:
            return next(typed)
        except StopIteration:
            raise EOFError from None

    shell.Shell(con, read_line=read_line, write=lambda _: None, remember=entries.append).loop()
    return entries


def test_history_keeps_whole_statements(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    file = tmp_path / "job.sql"
    file.write_text("SELECT 'from a file';\n", encoding="utf-8")
    entries = remembered(
        con, "SELECT 1 -- one;", "  AS a", "", ";", "", f".read {file}", "FROM nope;", "SELECT 'a", "  b';"
    )
    assert entries == ["SELECT 1 -- one;\n  AS a\n\n;", f".read {file}", "FROM nope;", "SELECT 'a\n  b';"]


def test_the_history_file_gives_back_what_it_was_given(tmp_path: Path) -> None:
    file = tmp_path / "history"
    entries = ["SELECT 1;", "SELECT 'a\n\n  b' -- ö;\n  AS x;", ".tables"]
    for entry in entries:
        History(file).add(entry)
    assert History(file).entries() == entries
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.write_bytes(b"SELECT 1;\nan old line\nbroken \xff\n")  # of a version that kept lines, and of somebody else
    assert History(file).entries() == ["SELECT 1;", "an old line", "broken \ufffd"]


def test_a_long_history_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell, "LONGEST", 3)
    file = tmp_path / "history"
    for number in range(5):
        History(file).add(f"SELECT\n{number};")
    assert History(file).entries() == [f"SELECT\n{number};" for number in (2, 3, 4)]
    assert file.read_bytes().count(b";\n") == 3


def test_no_home_no_history(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def nobody(_: int) -> None:
        raise KeyError("getpwuid(): uid not found")

    monkeypatch.setattr("pwd.getpwuid", nobody)
    monkeypatch.delenv("HOME")
    assert shell.history_file() is None
    monkeypatch.setenv("HOME", "")
    assert shell.history_file() is None
    nothing = History(None)
    nothing.add("SELECT 1;")
    assert nothing.entries() == []
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("home", ["/nonexistent", "/dev/null", "/proc"])
def test_a_home_that_cannot_be_used_is_said_once(home: str, capsys: pytest.CaptureFixture[str]) -> None:
    kept = History(Path(home) / ".duckanon_history")
    assert kept.entries() == []
    for entry in ("SELECT 1;", "SELECT 2;"):
        kept.add(entry)
    err = capsys.readouterr().err
    assert err.startswith(f"duckanon: the history was not saved; {home}/.duckanon_history: ")
    assert len(err.splitlines()) == 1


@pytest.mark.thorough
def test_a_shell_for_nobody_with_a_script_on_its_input() -> None:
    """The whole way in a process: an unknown user without HOME, no banner and no prompts, an exit code."""
    code = (
        "import pwd, sys\n"
        "def nobody(uid): raise KeyError(uid)\n"
        "pwd.getpwuid = nobody\n"
        "from duckanon.cli.main import main\n"
        "sys.exit(main(['shell', '--format', 'csv']))\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "HOME"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        input="SELECT 1 AS a;\nFROM anon.swap('nope', ['a']);\nSELECT 2 AS b;\n",
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert (done.returncode, done.stdout) == (1, "a\n1\n")
    assert done.stderr == "anon.swap: Table with name nope does not exist.\n"

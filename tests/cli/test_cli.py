"""The command line, as a user would type it."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pytest

import duckanon
from duckanon._bridge import macros
from duckanon.cli import main as cli
from duckanon.cli import shell, statements
from duckanon.cli.shell import History


def command(*arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run `duckanon` in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "duckanon.cli", *arguments], input=stdin, capture_output=True, text=True, check=False
    )


def output(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Run `duckanon` in this process: much the same, and quicker."""
    try:
        code = cli.main(arguments)
    except SystemExit as stopped:
        code = int(stopped.code or 0)
    printed = capsys.readouterr()
    return code, printed.out, printed.err


@pytest.fixture
def registered_once(con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the command line work on the test's own connection, instead of registering everything again."""
    monkeypatch.setattr(duckanon, "connect", lambda *_: con)


@pytest.mark.usefixtures("registered_once")
def test_several_statements_print_their_results(capsys: pytest.CaptureFixture[str]) -> None:
    script = """CREATE TABLE t AS SELECT i FROM range(3) AS t(i); INSERT INTO t VALUES (9);
                SELECT count(*) AS n FROM t; SELECT 'a;b' AS s"""
    code, out, err = output(capsys, "-c", script, "--format", "csv")
    assert (code, out, err) == (0, "n\n4\ns\na;b\n", "")


@pytest.mark.usefixtures("registered_once")
def test_it_stops_at_the_first_error(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = output(capsys, "-c", "SELECT 1 AS a; FROM nope; SELECT 2 AS b", "--format", "csv")
    assert (code, out) == (1, "a\n1\n")
    assert err == "Catalog Error: Table with name nope does not exist!\n"


@pytest.mark.usefixtures("registered_once")
@pytest.mark.parametrize(
    ("output_format", "expected"),
    [
        ("csv", 'n,"a ""b""",d\n1,"x,y",2020-01-01\n,a|b,\n'),
        ("json", '[{"n": 1, "a \\"b\\"": "x,y", "d": "2020-01-01"},\n {"n": null, "a \\"b\\"": "a|b", "d": null}]\n'),
        ("markdown", '| n | a "b" | d |\n| ---: | --- | --- |\n| 1 | x,y | 2020-01-01 |\n|  | a\\|b |  |\n'),
    ],
)
def test_formats(capsys: pytest.CaptureFixture[str], output_format: str, expected: str) -> None:
    query = '''SELECT * FROM (VALUES (1, 'x,y', DATE '2020-01-01'), (NULL, 'a|b', NULL)) AS t(n, "a ""b""", d)'''
    code, out, _ = output(capsys, "-c", query, "--format", output_format)
    assert code == 0
    assert out == expected
    if output_format == "json":
        assert json.loads(out)[1] == {"n": None, 'a "b"': "a|b", "d": None}


@pytest.mark.usefixtures("registered_once")
def test_json_of_nested_and_wide_values(capsys: pytest.CaptureFixture[str]) -> None:
    query = "SELECT [1, NULL] AS l, {'k': 'v'} AS s, 12345678901234567890::UBIGINT AS u, 0.5 AS x, true AS b"
    _, out, _ = output(capsys, "-c", query, "--format", "json")
    assert json.loads(out) == [{"l": [1, None], "s": {"k": "v"}, "u": 12345678901234567890, "x": 0.5, "b": True}]


@pytest.mark.usefixtures("registered_once")
def test_the_table_is_duckdbs_own(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = output(capsys, "-c", "SELECT 42 AS answer")
    assert "┌────────┐" in out
    assert "│ answer │" in out


def test_run_a_file_with_a_database(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database, file = tmp_path / "clinic.duckdb", tmp_path / "job.sql"
    file.write_text(
        "-- the monthly export\nCREATE TABLE p AS SELECT i FROM range(5) AS t(i);\n"
        "SELECT sum(i) AS s FROM anon.swap('p', ['i']);\n"
    )
    assert output(capsys, "run", str(file), "--db", str(database), "--create", "--format", "csv") == (0, "s\n10\n", "")
    with duckdb.connect(str(database), read_only=True) as con:
        assert con.execute("SELECT count(*) FROM p").fetchall() == [(5,)]
    assert (
        output(capsys, "-c", "SELECT count(*) AS n FROM p", "--db", str(database), "--read-only", "--format", "csv")[1]
        == "n\n5\n"
    )


@pytest.mark.usefixtures("registered_once")
def test_run_with_its_statements(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "job.sql"
    script.write_text("-- one\nSELECT 1 AS a;\nSELECT 2 AS b;\n", encoding="utf-8")
    code, out, err = output(capsys, "run", str(script), "--echo", "--format", "csv")
    assert (code, err) == (0, "")
    assert out == "\n-- one\nSELECT 1 AS a;\na\n1\n\nSELECT 2 AS b;\nb\n2\n"


@pytest.mark.thorough
def test_run_from_standard_input() -> None:
    done = command("run", "-", "--format", "csv", stdin="SELECT 1 AS a;")
    assert (done.returncode, done.stdout, done.stderr) == (0, "a\n1\n", "")


@pytest.mark.thorough
def test_functions_is_the_same_as_the_macro(capsys: pytest.CaptureFixture[str], con: duckdb.DuckDBPyConnection) -> None:
    _, out, _ = output(capsys, "functions", "--format", "json")
    listed = [tuple(row.values()) for row in json.loads(out)]
    assert listed == con.execute("FROM anon.functions()").fetchall()
    _, out, _ = output(capsys, "functions")
    assert "\nanon.swap(tbl, cols, seed := NULL)\n    Permutes each column independently" in out
    assert out.count("\n") == 2 * len(listed)


@pytest.mark.thorough
def test_sql_prints_a_script_that_needs_no_python(capsys: pytest.CaptureFixture[str]) -> None:
    code, script, _ = output(capsys, "sql")
    assert code == 0
    with duckdb.connect() as con:
        con.execute(script).fetchall()
        names = {name for (name,) in con.execute("SELECT name FROM anon.functions()").fetchall()}
    pure = {f"anon.{file.name}" for file in macros.macro_files() if file.is_public and not file.needs_python}
    assert names == pure
    assert "anon.column_profile" in names
    assert "anon.swap" not in names


WRONG = {
    "FROM anon.swap('nope', ['a'])": "Table with name nope does not exist",
    "FROM anon.swap('t', ['nope'])": 'anon.swap: column "nope" does not exist in t.',
    "FROM anon.swap('t', 'a')": "cols must be a list of column names such as ['age', 'zip'], each once; got 'a'.",
    "FROM anon.swap('t', [])": "cols must be a list of column names such as ['age', 'zip'], each once; got [].",
    "FROM anon.swap('t', ['a', 'a'])": "each once; got ['a', 'a'].",
    "FROM anon.swap('t', ['a'], seed := -1)": "seed must be NULL or a whole number of at least 0; got -1.",
    "FROM anon.swap('t', ['a'], seed := 0.5)": "seed must be NULL or a whole number of at least 0; got 0.5.",
    "FROM anon.swap('t')": "anon.swap: cols is missing; it takes tbl, cols, seed.",
    "FROM anon.swap('t', ['a'], sed := 1)": "anon.swap: there is no option sed; did you mean seed?",
    "FROM anon.swap('t', ['l'])": 'column "l" holds values of a type that cannot be released',
    "FROM anon.swap(t2, ['a'])": "t2",
    "FROM anon.swap('t', ['z'])": "TIME WITH TIME ZONE, which cannot be released",
    "SELECT anon.distinct_for_alpha(2, 100)": "anon.distinct_for_alpha: alpha must be between 0 and 1",
    "FROM anon.swapp('t', ['a'])": "anon.swapp: there is no such function; did you mean anon.swap?",
    "FROM anon.column_profile('')": "",
    "FROM anon.column_profile(NULL)": "anon.column_profile: tbl must be the name of a table",
    "SELEC 1": "syntax error",
    "SELECT 'a'::INTEGER": "Could not convert string 'a' to INT32",
    "SELECT (1": "syntax error",
}


@pytest.mark.usefixtures("registered_once")
@pytest.mark.parametrize("query", WRONG)
def test_wrong_calls_answer_with_one_sentence(capsys: pytest.CaptureFixture[str], query: str) -> None:
    code, _, err = output(
        capsys, "-c", f"CREATE TABLE t AS SELECT 1 AS a, [1] AS l, '10:00:00+01'::TIMETZ AS z; {query}"
    )
    assert code == 1
    assert WRONG[query] in err
    assert err.endswith("\n")
    assert len(err.splitlines()) == 1
    assert len(err) < 250
    assert "Traceback" not in err
    assert "Python exception" not in err
    assert "Could not convert string 'anon" not in err
    assert "LINE 1" not in err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["run", "nope.sql"], "nope.sql: No such file or directory"),
        (["-c", "SELECT 1", "--db", "/nowhere/x.duckdb"], "/nowhere/x.duckdb"),
        (["frobnicate"], "frobnicate is neither a command (shell, run, functions, sql, "),
        (["--format", "xml", "-c", "SELECT 1"], "invalid choice: 'xml'"),
        (["-c"], "expected one argument"),
        (["run"], "FILE.sql"),
        (["run", "x.sql", "--nope"], "--nope"),
    ],
)
def test_wrong_command_lines(capsys: pytest.CaptureFixture[str], arguments: list[str], expected: str) -> None:
    code, out, err = output(capsys, *arguments)
    assert (code, out) == (1, "")
    assert expected in err
    assert len(err.splitlines()) == 1


def test_the_exit_code_is_that_of_the_process() -> None:
    done = command("frobnicate")
    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments", [["--help"], ["shell", "--help"], ["run", "--help"], ["functions", "--help"], ["sql", "--help"], []]
)
def test_help_everywhere(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    code, out, err = output(capsys, *arguments)
    assert (code, err) == (0, "")
    assert out.startswith("usage: duckanon")


@pytest.mark.thorough
def test_a_reader_that_goes_away_is_no_error() -> None:
    done = subprocess.run(
        f"{sys.executable} -m duckanon.cli -c 'FROM range(200000)' --format csv | head -1",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "range\n"
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("SELECT 1; SELECT 2", ["SELECT 1", "SELECT 2"]),
        ("SELECT ';' ; ;; -- done; really\n", ["SELECT ';'"]),
        (
            "SELECT 'it''s; ' AS \"a;\"\"b\"; SELECT $$ ; $$; SELECT $x$ $$; $x$",
            ["SELECT 'it''s; ' AS \"a;\"\"b\"", "SELECT $$ ; $$", "SELECT $x$ $$; $x$"],
        ),
        ("/* a; b */ SELECT 1 /* c; */; -- x\nSELECT 2 - 1", ["/* a; b */ SELECT 1 /* c; */", "-- x\nSELECT 2 - 1"]),
        ("SELECT 4 / 2; SELECT $1", ["SELECT 4 / 2", "SELECT $1"]),
        ("", []),
        ("-- nothing", []),
    ],
)
def test_splitting(script: str, expected: list[str]) -> None:
    assert list(statements.split(script)) == expected


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("SELECT 1;", True),
        ("SELECT 1", False),
        ("SELECT ';", False),
        ("SELECT 1; -- x", True),
        ("SELECT 1; SELECT", False),
        ('SELECT ";', False),
        ("/* ; ", False),
    ],
)
def test_completeness_of_what_was_typed(text: str, complete: bool) -> None:
    assert statements.is_complete(text) == complete


def talk(con: duckdb.DuckDBPyConnection, *lines: str) -> str:
    """Type lines into the shell and return what it wrote."""
    typed, written = iter(lines), []

    def read_line(prompt: str) -> str:
        try:
            return next(typed)
        except StopIteration:
            raise EOFError from None

    shell.Shell(con, read_line=read_line, write=written.append).loop()
    return "".join(written)


def test_shell_runs_statements_over_several_lines(con: duckdb.DuckDBPyConnection) -> None:
    written = talk(
        con,
        "CREATE TABLE t AS",
        "  SELECT i FROM range(4) AS t(i);",
        "SELECT sum(i) AS total",
        "FROM anon.swap('t', ['i']);",
    )
    assert "total" in written
    assert "6" in written


def test_shell_goes_on_after_an_error(con: duckdb.DuckDBPyConnection) -> None:
    written = talk(con, "FROM nope;", "SELECT 42 AS answer;")
    assert "Error: Catalog Error: Table with name nope does not exist!\n" in written
    assert "answer" in written


def test_shell_commands(con: duckdb.DuckDBPyConnection) -> None:
    written = talk(
        con,
        ".help",
        ".functions",
        ".timing on",
        ".mode csv",
        "SELECT 1 AS a;",
        ".timing off",
        "SELECT 2 AS b;",
        ".nope",
        ".quit",
        "SELECT 3 AS c;",
    )
    assert ".timing on|off" in written
    assert "anon.swap" in written
    assert "a\n1\nRun time: " in written
    assert written.count("Run time") == 1
    assert written.endswith("b\n2\nError: .nope is not a command of this shell; .help lists them.\n")


@pytest.mark.thorough
def test_completion(con: duckdb.DuckDBPyConnection) -> None:
    """Names that no other test has: tables of the whole process are completed."""
    con.execute('CREATE TABLE sleepers AS SELECT 1 AS snoring_since, 2 AS "Loud ZIP"').fetchall()
    complete = shell.Completer(con).matches
    assert "anon.swap(" in complete("anon.sw")
    assert complete("anon.column_p") == ["anon.column_profile("]
    assert complete("sleepe") == ["sleepers"]
    assert complete("snoring_") == ["snoring_since"]
    assert complete("loud") == ['"Loud ZIP"']
    assert "approx_count_distinct(" in complete("approx_c")
    assert "SELECT" in complete("SEL")
    assert "select" in complete("sel")
    assert complete("zzz") == []


@pytest.mark.thorough
def test_the_shell_on_a_terminal(tmp_path: Path) -> None:
    """A real terminal: completion by TAB, whole statements in the history of the home folder, Ctrl-D to leave."""
    main, side = pty.openpty()
    environment = {**os.environ, "HOME": str(tmp_path), "TERM": "dumb"}
    process = subprocess.Popen(
        [sys.executable, "-m", "duckanon.cli", "shell"], stdin=side, stdout=side, stderr=side, env=environment
    )
    os.close(side)
    seen = ""

    def wait_for(text: str, since: int = 0) -> None:
        nonlocal seen
        deadline = time.monotonic() + 900
        while text not in seen[since:]:
            assert time.monotonic() < deadline, seen
            if select.select([main], [], [], 1)[0]:
                seen += os.read(main, 65536).decode(errors="replace")

    def answered(typed: bytes, result: str) -> None:
        """Type, and wait for a result and for the prompt after it: line editing draws prompts anew, too."""
        since = len(seen)
        os.write(main, typed)
        wait_for(result, since)
        wait_for("duckanon> ", seen.index(result, since))

    try:
        wait_for("duckanon> ")
        answered(b"SELECT count(*) > 1 AS many FROM anon.funct\t);\n", "true")
        assert "anon.functions()" in seen
        answered(b"SELECT 40 +\n  2 AS sum;\n", "│    42 │")
        answered(b"\x10\n", "│    42 │")  # Ctrl-P: the statement before
        answered(b"\x10\x10\x10\n", "true")  # the first one: single lines are not kept
        os.write(main, b"\x04")
        assert process.wait(timeout=900) == 0
    finally:
        process.kill()
        os.close(main)
    first, second = "SELECT count(*) > 1 AS many FROM anon.functions();", "SELECT 40 +\n  2 AS sum;"
    entries = [first, second, second, first]
    assert History(tmp_path / ".duckanon_history").entries() == entries

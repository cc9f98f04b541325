"""What is wrong with a policy: one sentence with the line, and never a key."""

from __future__ import annotations

from pathlib import Path

import pytest

from duckanon.job import FileProblem, PolicyError, consistency, keys, policy_file
from tests.job.conftest import POLICY

WRONG = {
    "k = 10": {
        "k = 1": "line 19: promises.k must be at least 2; got 1.",
        'k = "ten"': "line 19: promises.k must be a whole number; got 'ten'.",
        "k = 10\nK = 3": "line 20: promises.K is not a field of a policy.",
        "k = 10\nt = 2": "line 20: promises.t must be at most 1; got 2.",
        "l = 2": "line 18: promises.k must say how many people every class of suppress_cells has.",
        "k = ten": "line 19: it is no TOML; invalid value.",
    },
    'name = "suppress_cells"': {
        'name = "supress"': "line 16: method.name must be one of",
        'name = "suppress_cells"\nseed = 3': "line 17: method.seed is not a field of a policy.",
        'name = "suppress_cells"\nimportance = ["x"]': "line 17: method.importance: x must be one of age, sex.",
        'name = "suppress_cells"\nnulls = "any"': 'line 17: method.nulls must be "value" where people are counted.',
        'name = "svd_swap"': "line 19: promises.k cannot be counted for svd_swap",
        'name = "boxes"\nby = ["age", "sex"]': "line 17: method.by must leave a column to protect.",
    },
    'sex = "quasi_identifier"': {
        'sex = "quasi"': "line 12: columns.sex.role must be one of",
        'sex = "numeric"': "line 12: columns.sex: numeric is for synthesize, spectral_release, svd_swap and pica",
        'sex = "person"': "line 12: columns must have at most one person",
        'sex = "pseudonym"': "line 12: columns.sex needs a key",
        'sex = { role = "free", pseudonym = true }': "line 12: columns.sex: pseudonym is for a person",
        'sex = { role = "free", key = "my secret" }': "line 12: columns.sex.key is not a field of a policy",
    },
    'path = "release.parquet"': {
        'path = "release.xlsx"': "line 5: target.path must end in one of .parquet, .csv, .csv.gz, .duckdb, .db, or",
        'file = "release.parquet"': "line 4: target.path is missing.",
        'path = "release.parquet"\ntable = "x"': "line 6: target.table is for DuckDB files and servers",
        'path = "r.csv"\n[tables.t]\nreference = "other.csv"': "line 7: reference is compared where",
    },
    'path = "people.parquet"': {
        'path = "people.parquet"\ntypes = { age = "VARCHAR" }': "line 3: source.types is for CSV files",
        'query = "FROM p"\ntypes = { age = "VARCHAR" }': "line 3: source.types is for CSV files",
        'path = "people.duckdb"': "line 1: source.table must say which table of the database is meant.",
        "query = \"SELECT anon.pseudonym(name, 'my secret') FROM people\"": "line 2: source.query must not call",
    },
}


def checked(folder: Path, text: str) -> str:
    path = folder / "policy.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(PolicyError) as error:
        consistency.check(policy_file.read(path))
    return str(error.value).removeprefix(f"{path}, ")


@pytest.mark.parametrize(("before", "after"), [(before, after) for before, afters in WRONG.items() for after in afters])
def test_errors_say_the_line(before: str, after: str, tmp_path: Path) -> None:
    sentence = checked(tmp_path, POLICY.replace(before, after))
    assert sentence.startswith(WRONG[before][after])
    assert all(line.endswith(".") for line in sentence.split("\n"))
    assert "my secret" not in sentence


@pytest.mark.parametrize(
    ("before", "after", "value"),
    [
        ('name = "suppress_cells"', 'name = "supress"', "supress"),
        ('sex = "quasi_identifier"', 'sex = "quasi"', "quasi"),
    ],
)
def test_a_value_that_is_none_of_those_is_named(before: str, after: str, value: str, tmp_path: Path) -> None:
    assert checked(tmp_path, POLICY.replace(before, after)).splitlines()[0].endswith(f"; got {value!r}.")


SECRET = "0123456789abcdef-not-to-be-seen"


@pytest.mark.parametrize(
    "key",
    [
        f'key = "{SECRET}"',
        f'[key]\nvalue = "{SECRET}"',
        f'[key]\nenvironment = "{SECRET}"',
        f'[key]\nenvironment = "KEY"\nfile = "{SECRET}"',
        f"[key]\nfile = ['{SECRET}']",
        f'[key]\nenvironment = "{SECRET}',
        f"[key]\nenvironment = {SECRET}",
    ],
)
def test_a_key_in_a_policy_is_refused_and_not_shown(key: str, tmp_path: Path) -> None:
    text = POLICY + key if key.startswith("[") else key + "\n" + POLICY
    sentence = checked(tmp_path, text)
    assert SECRET not in sentence
    assert "line" in sentence or "end" in sentence


@pytest.mark.parametrize("place", ["environment", "file"])
def test_a_key_that_is_not_there_is_not_shown_either(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = "KEY_OF_JOB" if place == "environment" else SECRET
    path = tmp_path / "policy.toml"
    path.write_text(f'{POLICY}[key]\n{place} = "{value}"\n', encoding="utf-8")
    monkeypatch.setenv("KEY_OF_JOB", "too short")
    with pytest.raises(FileProblem) as error:
        keys.read(policy_file.read(path))
    assert SECRET not in str(error.value)
    assert "too short" not in str(error.value)
    monkeypatch.setenv("KEY_OF_JOB", SECRET)
    (tmp_path / SECRET).write_text(SECRET + "\n", encoding="utf-8")
    secret = keys.read(policy_file.read(path))
    assert secret is not None
    assert secret.reveal() == SECRET
    assert SECRET not in repr(secret)


def test_the_lines_of_several_tables(tmp_path: Path) -> None:
    columns = '[tables.{0}.columns]\nage = "quasi_identifier"\n[tables.{0}.target]\npath = "{0}.csv"\n'
    common = '[source]\npath = "people.parquet"\n[method]\nname = "recode"\n[promises]\nk = 10\n'
    text = common + columns.format("a") + columns.format("b") + "[tables.b.promises]\nk = 1\n"
    assert checked(tmp_path, text) == "line 16: tables.b.promises.k must be at least 2; got 1."
    text = common.replace("10", "1") + columns.format("a")
    assert checked(tmp_path, text) == "line 6: tables.a.promises.k must be at least 2; got 1."
    text = common + columns.format("a") + "[tables.a.promises]\nt = 0.1\n"
    assert checked(tmp_path, text) == "line 12: promises.t needs a column with the role sensitive."


def test_all_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    text = POLICY.replace("k = 10", 'k = 1\nl = "two"').replace('sex = "quasi_identifier"', 'sex = "quasi"')
    said = checked(tmp_path, text).replace(f"{tmp_path}/policy.toml, ", "").split("\n")
    assert [line.split(" must be")[0] for line in said] == [
        "line 12: columns.sex.role",
        "line 19: promises.k",
        "line 20: promises.l",
    ]
    text = POLICY.replace("k = 10", "l = 2").replace('id = "identifier"', 'id = "person"')
    assert checked(tmp_path, text).split("\n") == [
        "line 9: columns must have at most one person; give other keys the role identifier.",
        f"{tmp_path}/policy.toml, line 18: promises.k must say how many people every class of suppress_cells has.",
    ]


def test_what_is_given_from_outside_replaces_what_belongs_to_the_place(tmp_path: Path) -> None:
    """A table of a server, given a file in its place, needs no name; types of CSV files are not those of others."""
    path = tmp_path / "policy.toml"
    server = 'path = "postgresql://server/clinic"\ntable = "released"\nreplace = true'
    text = POLICY.replace('path = "release.parquet"', server)
    path.write_text(text.replace('"people.parquet"', '"people.csv"\ntypes = { age = "VARCHAR" }'), encoding="utf-8")
    changes = policy_file.changes_of(source="people.parquet", target="here.parquet")
    consistency.check(policy_file.read(path, changes))

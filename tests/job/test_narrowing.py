"""Columns that narrow down others: drafted as comments, named by policy check and by the release, all at once."""

from __future__ import annotations

import tomllib
from pathlib import Path

import duckdb
import pytest

from duckanon._core.privacy.narrowing import NarrowPairs, describe_pairs
from duckanon.job import check, draft, policy_file, refusals, run
from duckanon.job.errors import PolicyError
from duckanon.job.refusals import read_judged_pairs

SURVEY = """
    SELECT DATE '1940-01-01' + (hash(i) % 22_000)::INTEGER AS date_of_birth,
           ['f', 'm'][1 + (hash(i, 1) % 2)::INTEGER] AS sex,
           2030 - year(date_of_birth) AS v1, strftime(date_of_birth, '%d.%m.%Y') AS v2,
           (hash(i, 2) % 1000)::INTEGER AS v3
    FROM range(600) AS r(i)
"""

POLICY = """\
[source]
path = "survey.parquet"

[target]
path = "release.parquet"

[columns]
date_of_birth = "quasi_identifier"
sex = "quasi_identifier"
v1 = "sensitive"
v2 = "free"
v3 = "free"

[method]
name = "generalize"

[promises]
k = 10
max_suppressed_fraction = 0.05
"""

WAYS_OUT = "give it the role quasi_identifier or drop, or name it in narrowing under [method]."


@pytest.fixture
def survey(folder: Path, database: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a survey and its policy."""
    monkeypatch.setattr(check, "connection", run.connection)
    database.execute(f"COPY ({SURVEY}) TO '{folder}/survey.parquet'").fetchall()
    (folder / "policy.toml").write_text(POLICY)
    return folder


def _lines(policy: Path) -> list[str]:
    return [
        f"{policy}, line 10: columns.v1 narrows down date_of_birth; {WAYS_OUT}",
        f"{policy}, line 11: columns.v2 narrows down date_of_birth; {WAYS_OUT}",
    ]


@pytest.mark.thorough
def test_check_names_all_columns_with_their_lines(survey: Path) -> None:
    with pytest.raises(PolicyError) as error:
        check.check_policy(survey / "policy.toml")
    assert str(error.value).split("\n") == _lines(survey / "policy.toml")
    assert len(check.check_policy(survey / "policy.toml", with_data=False)) == 1
    (survey / "policy.toml").write_text(POLICY.replace('"generalize"', '"generalize"\nnarrowing = ["v1", "v2"]'))
    assert len(check.check_policy(survey / "policy.toml")) == 1


def test_the_release_speaks_the_words_of_the_policy(survey: Path) -> None:
    file = policy_file.read(survey / "policy.toml")
    pairs = NarrowPairs([("v1", "date_of_birth"), ("v2", "date_of_birth")], [])
    with pytest.raises(PolicyError) as error, refusals.translate_errors(file, "table"):
        raise duckdb.InvalidInputException(f"anon.recode: {describe_pairs(pairs)}")
    assert str(error.value).split("\n") == _lines(survey / "policy.toml")


def test_pairs_are_read_from_a_refusal() -> None:
    pairs = NarrowPairs([("a", "x"), ("b c", "y")], [("d", "x"), ("e", "y")])
    assert read_judged_pairs(f"anon.boxes: {describe_pairs(pairs)}") == [
        ("a", "x", True),
        ("b c", "y", True),
        ("d", "x", None),
        ("e", "y", None),
    ]
    assert read_judged_pairs("anon.boxes: k must be a whole number; got 1.") == []


@pytest.mark.thorough
def test_a_draft_shows_what_the_release_would_refuse(survey: Path) -> None:
    roles = {"date_of_birth": "quasi_identifier", "sex": "quasi_identifier", "v1": "sensitive", "v2": "?", "v3": "?"}
    with run.connection() as con:
        con.execute(f"CREATE TABLE memory.main.drafted AS {SURVEY}").fetchall()
        comments, option = draft.narrowing_comments(con, roles)
    assert "#   v1 narrows down date_of_birth\n#   v2 narrows down date_of_birth\n#" in comments
    assert comments.endswith("# all the same, list them in narrowing under [method].\n")
    assert option == '# narrowing = ["v1"]\n'  # what nobody decided may become anything
    assert tomllib.loads(comments + option) == {}

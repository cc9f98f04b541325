"""The panel beside each page: what would stop the release, and the command that does the same on a terminal."""

from __future__ import annotations

import html
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from starlette.testclient import TestClient

from duckanon.job import check, run
from duckanon.job.run import release
from duckanon.workbench import site as sites
from duckanon.workbench.site import Site
from tests.workbench.conftest import PEOPLE, POLICY

DECIDED = POLICY.replace('occupation = "?"', 'occupation = "free"').replace('xq = "?"', 'xq = "drop"')


def panel(client: TestClient, page: str = "columns") -> str:
    text = html.unescape(re.sub(r"<[^>]*>", " ", client.get(f"/token/{page}").text.partition("<aside")[2]))
    return " ".join(text.split())


def write(site: Site, text: str) -> None:
    site.policy.path.write_text(text, encoding="utf-8")
    site.policy.look()


@pytest.fixture
def telling(site: Site, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """Return the workbench of a table whose diagnosis tells the age; what would stop the release is looked for."""
    monkeypatch.setattr(check, "connection", run.connection)  # of the tests, which is open
    monkeypatch.setattr(sites, "check_policy", check.check_policy)
    monkeypatch.setattr(sites, "_SETTLED", 0.0)
    con = run.connection()
    con.execute(
        f"COPY (SELECT * REPLACE ('d' || age AS diagnosis) FROM ({PEOPLE})) TO '{folder}/people.parquet'"
    ).fetchall()
    yield site
    con.execute(f"COPY ({PEOPLE}) TO '{folder}/people.parquet'").fetchall()


@pytest.mark.thorough
def test_the_panel_says_what_would_stop_the_release(client: TestClient, telling: Site) -> None:
    """It is what `duckanon policy check` says: of the rows of the file, and of the policy by itself."""
    write(telling, DECIDED)
    assert "Looking for what would stop the release" in panel(client)
    telling.works.get("stop").wait(60)
    said = panel(client, "release")
    assert "The release would stop : columns.diagnosis narrows down age;" in said
    write(telling, DECIDED.replace('name = "generalize"', 'name = "generalize"\nnarrowing = ["diagnosis"]'))
    panel(client)
    telling.works.get("stop").wait(60)
    assert "Nothing was found that would stop the release" in panel(client)
    write(telling, DECIDED + "joint_k = 5\n")
    assert re.search(r"The release would stop : promises\.joint_k", panel(client))


def test_undecided_columns_are_said_once(client: TestClient, site: Site) -> None:
    said = panel(client)
    assert "2 columns are undecided; the release stops until all are decided" in said
    assert "The release would stop" not in said
    assert site.works.get("stop") is None


METHODS = {
    "generalize": DECIDED.replace('name = "generalize"', 'name = "generalize"\nnarrowing = ["occupation"]') + "l = 2\n",
    "boxes": DECIDED.replace('sex = "quasi_identifier"', 'sex = "drop"').replace('"generalize"', '"boxes"\nl = 2'),
}


@pytest.mark.thorough
@pytest.mark.parametrize("method", METHODS)
def test_the_command_does_the_same_on_a_terminal(
    client: TestClient, site: Site, folder: Path, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run as it is printed: it counts people as the panel does, and releases what the job releases."""
    write(site, METHODS[method])
    monkeypatch.chdir(folder)

    def rows(page: str) -> tuple[list[str], list[tuple[object, ...]]]:
        program, option, statements = shlex.split(site._command(page))
        assert (program, option) == ("duckanon", "-c")
        con = site.bench.con.cursor()
        con.execute("DROP SCHEMA IF EXISTS terminal CASCADE; CREATE SCHEMA terminal; USE terminal").fetchall()
        result = con.execute(statements.removesuffix(" LIMIT 10"))
        return [column[0] for column in result.description or []], result.fetchall()

    names, (counted,) = rows("risk")
    risk = site.bench.risk(site.bench.quasi_identifiers())
    found = dict(zip(names, counted, strict=True))
    assert (found["k"], found["people"], found["singletons"]) == (risk.k, risk.people, risk.unique)
    names, printed = rows("preview")
    site.start("preview")
    preview = site.works.get("preview").wait(60)
    assert preview.error is None
    release(folder / "policy.toml")
    file = duckdb.sql(f"FROM '{folder}/release.parquet'")
    assert preview.result.after_columns == file.columns  # in the same order
    assert sorted(names) == sorted(file.columns)
    listed = ", ".join(names)
    written = duckdb.sql(f"SELECT {listed} FROM '{folder}/release.parquet'").fetchall()
    assert sorted(map(str, printed)) == sorted(map(str, written))


@pytest.mark.thorough
def test_an_erased_column_has_no_distribution(client: TestClient, site: Site) -> None:
    """A value drawn within `*` is distributed as the original."""
    write(site, DECIDED.replace("k = 10", "k = 400"))
    site.start("distribution", "age")
    site.works.get("distribution").wait(60)
    page = client.get("/token/hierarchy?column=age").text
    assert "age is erased: every row of the release says the same there." in page
    assert "shares in the sample" not in page

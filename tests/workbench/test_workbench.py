"""The workbench without a browser: it edits the policy, counts, refuses strangers, and shows no rare value."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from duckanon.workbench import bench as benches
from duckanon.workbench.app import application
from duckanon.workbench.policy_text import PolicyText
from duckanon.workbench.site import PAGES, Site
from tests.workbench.conftest import POLICY, RARE


def act(client: TestClient, site: Site, action: str, page: str = "columns", **form: Any) -> str:
    """Send a form as the page does, and return the page that follows."""
    data = {"seen": site.policy.version, "page": page} | form
    answer = client.post(f"/token/act/{action}", data=data)
    assert answer.status_code == 200, answer.text
    return html.unescape(answer.text)


def test_every_page_is_shown_and_says_what_it_counted(client: TestClient, site: Site) -> None:
    for page, words in PAGES.items():
        text = client.get(f"/token/{page}").text
        assert f"<h1>{words}</h1>" in text
        assert "people are unique in the 2 columns" in text
        assert RARE not in text
        assert not re.search(r"\bP\d+\b", text)
    first = client.get("/token/columns").text
    names = re.findall(r'aria-label="What (\w+) is"', first)
    assert set(names[:2]) == {"occupation", "xq"}  # undecided ones first
    suggested = re.findall(r"<strong>Suggestion:</strong> (.*?)</span>", first)
    assert len(suggested) == 2  # no decision without a hint
    assert "“others may know it”: with it" in suggested[0] + suggested[1]
    assert "For example nurse" in first or "For example clerk" in first or "For example cook" in first


def test_a_role_is_written_shown_and_undone(client: TestClient, site: Site, folder: Path) -> None:
    before = site.bench.risk(["age", "sex"])
    page = act(client, site, "role", column="occupation", role="quasi_identifier")
    assert 'occupation = "quasi_identifier"  # undecided: no hint' in (folder / "policy.toml").read_text()
    assert '11  occupation = "quasi_identifier"' in page  # the line that was written
    assert "unique in the 3 columns" in page
    after = site.bench.risk(["age", "sex", "occupation"])
    assert after.unique > before.unique
    assert f'id="unique">{after.unique:,}<' in page
    page = act(client, site, "undo")
    assert (folder / "policy.toml").read_text() == POLICY
    assert "unique in the 2 columns" in page
    assert re.search(r'value="\?" selected', page)


def test_an_old_window_is_refused_and_both_are_told(client: TestClient, site: Site, folder: Path) -> None:
    old = site.policy.version
    act(client, site, "role", column="xq", role="drop")
    page = act(client, site, "role", seen=old, column="xq", role="free")
    assert "Another window, or another program, changed the policy" in page
    assert 'xq = "drop"' in (folder / "policy.toml").read_text()
    assert site.policy.refusals == 1  # of which the events tell the other window
    assert 'data-refusals="1"' in page
    act(client, site, "role", column="xq", role="free")
    (folder / "policy.toml").write_text(POLICY)  # an editor
    assert "changed the policy" in act(client, site, "role", seen=site.policy.version, column="xq", role="drop")
    assert (folder / "policy.toml").read_text() == POLICY


def test_strangers_and_other_pages_are_refused(client: TestClient, site: Site) -> None:
    for address in ("/", "/columns", "/tokem/columns", "/token/../columns"):
        assert client.get(address).status_code == 404
    data = {"seen": site.policy.version, "column": "xq", "role": "drop"}
    assert client.post("/token/act/role", data=data, headers={"Origin": "https://evil.example"}).status_code == 403
    assert site.policy.text == POLICY
    elsewhere = TestClient(application(site), base_url="http://evil.example")
    assert elsewhere.get("/token/columns").status_code == 400
    answer = client.get("/token/columns")
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert not re.search(r"(?:https?:)?//\w", answer.text)
    assert not re.search(r"<[^>]* (?:on\w+|style)=", answer.text)


@pytest.mark.parametrize(
    ("action", "form"),
    [
        ("role", {"column": "nobody", "role": "free"}),
        ("role", {"column": "xq", "role": "king"}),
        ("promise", {"name": "seed", "value": "1"}),
        ("method", {"method": "DROP TABLE"}),
        ("start", {"kind": "rocket"}),
        ("nothing", {}),
    ],
)
def test_a_wrong_form_changes_nothing(client: TestClient, site: Site, action: str, form: dict[str, str]) -> None:
    data = {"seen": site.policy.version} | form
    assert client.post(f"/token/act/{action}", data=data).status_code == 400
    assert site.policy.text == POLICY


def test_promises_and_terms_are_written(client: TestClient, site: Site, folder: Path) -> None:
    act(client, site, "promise", "method", name="k", value="5")
    act(client, site, "promise", "method", name="t", value="0.3")
    act(client, site, "promise", "method", name="t", value="0.3", none="yes")
    assert "no number or date" in act(client, site, "promise", "method", name="k", value="many")
    page = act(client, site, "promise", "method", name="k", value="1")
    assert "promises.k must be at least 2" in page
    act(client, site, "terms", "release", recipient="A <b>", valid_until="2027-12-31", reviewers="X; Y")
    text = (folder / "policy.toml").read_text()
    assert "k = 5" in text
    assert "\nt = " not in text
    assert 'recipient = "A <b>"\nvalid_until = 2027-12-31\nreviewers = ["X", "Y"]' in text
    assert '<b>"' not in client.get("/token/release").text.replace("&lt;", "").replace("&gt;", "")


def tree(client: TestClient, site: Site, do: str, column: str = "occupation", level: int = 0, **form: Any) -> str:
    """Change the hierarchy of a column as its page does."""
    draft = site.editor.draft(column).version
    return act(client, site, "hierarchy", "hierarchy", column=column, level=level, draft=draft, do=do, **form)


def numbers(page: str) -> dict[str, str]:
    """Return the numbers of the members that a page of a hierarchy lists, by their names."""
    return {name: number for number, name in re.findall(r'<label for="member-(\d+)">([^<]*)</label>', page)}


def test_a_tree_of_categories_is_built_by_hand(client: TestClient, site: Site, folder: Path) -> None:
    act(client, site, "role", column="occupation", role="quasi_identifier")
    assert "Build the hierarchy of occupation" in client.get("/token/method").text
    page = html.unescape(client.get("/token/hierarchy?column=occupation").text)
    members = numbers(page)
    assert set(members) == {"nurse", "clerk", "cook"}
    assert RARE not in page
    checked = {f"member:{members[name]}": "on" for name in ("cook", "clerk")}
    page = tree(client, site, "move", to="new", name=" service  staff ", **checked)
    assert "2 members were moved." in page
    assert "Not saved yet." in page
    assert RARE not in page
    rare = re.search(r'name="rare:(\d+)"', page)
    assert rare
    page = tree(client, site, "move", to="new", name="other", **{f"rare:{rare[1]}": "on"})
    page = tree(client, site, "add")
    assert "Level 2: 3 groups" in page
    page = html.unescape(client.get("/token/hierarchy?column=occupation&level=1").text)
    above = numbers(page)
    assert set(above) == {"nurse", "service staff", "other"}  # one that was named is shown, whoever is in it
    page = tree(
        client,
        site,
        "move",
        level=1,
        to="new",
        name="known",
        **{f"member:{above[one]}": "on" for one in ("nurse", "service staff")},
    )
    page = tree(client, site, "rename", level=1, group=0, name="none")
    page = tree(client, site, "back", level=1)
    assert "The last change was taken back." in page
    page = tree(client, site, "save")
    assert "Saved as <strong>occupation_hierarchy.csv" in page
    assert (folder / "occupation_hierarchy.csv").read_text().splitlines() == [
        "value,level_1,level_2,everything",
        f"{RARE},other,other,*",
        "clerk,service staff,known,*",
        "cook,service staff,known,*",
        "nurse,nurse,known,*",
    ]
    assert site.policy.table().hierarchies == {"occupation": ["occupation_hierarchy.csv"]}
    act(client, site, "undo")
    assert "No hierarchy is saved yet" in client.get("/token/hierarchy?column=occupation").text


def test_a_hierarchy_of_a_file_is_changed_and_the_file_stays(client: TestClient, site: Site, folder: Path) -> None:
    """What a running release, or the policy before an undo, names is never overwritten."""
    written = "value,group,all\nnurse,care,*\ndentist,care,*\ncook,service,*\n"
    (folder / "occupation_hierarchy.csv").write_text(written)
    text = POLICY.replace('occupation = "?"', 'occupation = "quasi_identifier"')
    (folder / "policy.toml").write_text(f'{text}\n[hierarchies]\noccupation = "occupation_hierarchy.csv"\n')
    site.policy.look()
    page = client.get("/token/hierarchy?column=occupation").text
    assert "Saved as <strong>occupation_hierarchy.csv</strong>" in page
    assert "dentist" not in page  # whom nobody is
    groups = {name: number for number, name in re.findall(r'<h3 id="group-(\d+)">(\w+)<', page)}
    assert set(groups) == {"care", "service", "other"}  # the clerk is in no group of the file
    tree(client, site, "merge", group=groups["service"], into=groups["care"])
    old = site.editor.draft("occupation").version - 1
    page = act(client, site, "hierarchy", "hierarchy", column="occupation", draft=old, do="split", group="0")
    assert "Another window changed this hierarchy" in page
    assert "Another group of this level has that name" in tree(client, site, "rename", group=0, name="care")
    tree(client, site, "save")
    assert (folder / "occupation_hierarchy.csv").read_text() == written
    assert site.policy.table().hierarchies == {"occupation": ["occupation_hierarchy_2.csv"]}
    assert "dentist,care,*" in (folder / "occupation_hierarchy_2.csv").read_text()
    for wrong in ({"do": "split", "group": "77"}, {"do": "move", "to": "-1", "member:0": "on"}, {"do": "dance"}):
        data = {"seen": site.policy.version, "column": "occupation", "level": "0"} | wrong
        data["draft"] = str(site.editor.draft("occupation").version)
        assert client.post("/token/act/hierarchy", data=data).status_code == 400


def test_a_file_that_gives_a_value_two_groups_is_not_read(client: TestClient, site: Site, folder: Path) -> None:
    (folder / "occupation_hierarchy.csv").write_text("value,group\nnurse,care\ncook,service\nnurse,service\n")
    text = POLICY.replace('occupation = "?"', 'occupation = "quasi_identifier"')
    (folder / "policy.toml").write_text(f'{text}\n[hierarchies]\noccupation = "occupation_hierarchy.csv"\n')
    site.policy.look()
    page = client.get("/token/hierarchy?column=occupation").text
    assert "occupation_hierarchy.csv: it must give each value one label of each level." in page


@pytest.mark.thorough
def test_hierarchies_of_numbers_begin_with_ranges(client: TestClient, site: Site, folder: Path) -> None:
    assert "no number" in tree(client, site, "begin", "age", kind="ranges", width="-1")
    tree(client, site, "begin", "age", kind="ranges", width="5")
    tree(client, site, "save", "age")
    assert '20,"[20, 25)","[20, 30)","[20, 40)","[0, 40)",*' in (folder / "age_hierarchy.csv").read_text()
    act(client, site, "start", "preview", kind="preview")
    made = site.works.get("preview").wait(60)
    assert made.error is None
    ages = {row[made.result.after_columns.index("age")] for row in made.result.after}
    assert all(re.fullmatch(r"\[\d+, \d+\)|\*", str(age)) for age in ages), ages
    tree(client, site, "none", "age")
    assert "age" not in site.policy.table().hierarchies
    tree(client, site, "begin", "occupation", kind="prefixes", length="1")
    assert "Level 1: 4 groups" in client.get("/token/hierarchy?column=occupation").text  # a********, c***, c****, n****


@pytest.mark.thorough
def test_trials_come_point_by_point(client: TestClient, site: Site) -> None:
    act(client, site, "start", "method", kind="curve")
    curve = site.works.get("curve").wait(60)
    assert [k for k, _, _ in curve.result] == [3, 5, 10, 20, 50]
    losses = [loss for _, loss, _ in curve.result]
    assert losses[0] < losses[-1]
    page = client.get("/token/method").text
    assert "Information loss over k: k = 3" in page
    act(client, site, "start", "method", kind="distribution", column="age")
    site.works.get("distribution").wait(60)
    assert "age: shares in the sample" in client.get("/token/hierarchy?column=age").text


@pytest.mark.thorough
def test_methods_are_compared(client: TestClient, site: Site) -> None:
    act(client, site, "start", "method", kind="map")
    compared = {one.method: one for one in site.works.get("map").wait(900).result}
    assert set(compared) == {"generalize", "recode", "suppress_cells", "synthesize"}
    assert all(one.failed is None for one in compared.values()), compared
    assert 0 < compared["generalize"].risk <= 0.1  # classes of ten or more


@pytest.mark.thorough
def test_the_preview_is_shown_only_to_who_asks(client: TestClient, site: Site) -> None:
    assert "Before: rows" not in client.get("/token/preview").text
    act(client, site, "start", "preview", kind="preview")
    made = site.works.get("preview").wait(60)
    assert made.error is None
    page = client.get("/token/part/preview").text
    assert "Before: rows of the original" in page
    assert "diagnosis" in page
    assert dict(made.result.kept)["diagnosis"] >= 1
    for name in ("columns", "risk", "method", "release"):
        assert "Before: rows" not in client.get(f"/token/{name}").text


def decide(client: TestClient, site: Site) -> None:
    act(client, site, "role", column="occupation", role="drop")
    act(client, site, "role", column="xq", role="drop")


@pytest.mark.thorough
def test_a_release_is_that_of_the_click(client: TestClient, site: Site, folder: Path) -> None:
    act(client, site, "start", "release", kind="released")
    refused = site.works.get("released").wait(60)
    assert "columns must be decided" in refused.error
    decide(client, site)
    clicked = site.policy.text
    act(client, site, "start", "release", kind="released")
    act(client, site, "promise", "method", name="k", value="40")  # after the click
    made = site.works.get("released").wait(120)
    assert made.error is None
    assert made.result["tables"][0]["promises"][0]["asked"] == 10
    assert (folder / "release.parquet").exists()
    page = html.unescape(client.get("/token/release").text)
    assert "✓ Released. Every promise was counted" in page
    assert "The policy was changed since." in page
    assert made.lines[0] == "reading table"
    assert client.get("/token/download/policy").text == site.policy.text != clicked
    assert "Release report" in client.get("/token/download/report").text
    assert client.get("/token/download/..%2Fpeople.parquet").status_code == 404
    assert client.get("/token/download/people.parquet").status_code == 404


def test_a_broken_promise_is_told_and_nothing_is_released(client: TestClient, site: Site, folder: Path) -> None:
    decide(client, site)
    act(client, site, "method", "method", method="suppress_cells")
    act(client, site, "promise", "method", name="l", value="4")  # of three diagnoses
    act(client, site, "start", "release", kind="released")
    broken = site.works.get("released").wait(60)
    assert "promised 4" in broken.error
    page = html.unescape(client.get("/token/release").text)
    assert "✗ Not released: a promise is broken." in page
    assert "What may help" in page
    assert not (folder / "release.parquet").exists()


def test_closing_ends_the_work(client: TestClient, site: Site, folder: Path) -> None:
    decide(client, site)
    act(client, site, "start", "release", kind="released")
    work = site.works.get("released")
    assert site.works.stop()
    assert not work.is_running
    assert work.error in ("Cancelled.", None)
    assert sorted(path.name for path in folder.glob(".*")) == []


def test_cancelled_work_says_so(client: TestClient, site: Site) -> None:
    def endless(work: Any) -> None:
        while True:
            work.cursor(site.bench.con).execute("SELECT count(*) FROM range(100_000_000)").fetchall()

    work = site.works.start("curve", endless, site._trial_key())
    page = act(client, site, "cancel", "method", kind="curve")
    work.wait(10)
    assert work.error == "Cancelled."
    assert "Cancelled." in client.get("/token/method").text
    assert page


def test_a_policy_that_became_wrong_is_told(client: TestClient, site: Site, folder: Path) -> None:
    (folder / "policy.toml").write_text(POLICY.replace("k = 10", 'k = "ten"'))
    site.policy.look()
    page = client.get("/token/columns").text
    assert "promises.k must be a whole number" in page
    act(client, site, "undo")
    assert site.policy.text == POLICY


@pytest.mark.parametrize("columns", [["age"], ["age", "sex"], ["age", "sex", "occupation", "diagnosis"], []])
def test_risk_is_that_of_plain_counts(site: Site, columns: list[str]) -> None:
    rows = site.bench.con.cursor().execute(f"SELECT {', '.join([*columns, 'person_id'])} FROM people").fetchall()
    classes: dict[tuple[Any, ...], set[str]] = {}
    for *values, person in rows:
        classes.setdefault(tuple(values), set()).add(person)
    risk = site.bench.risk(columns)
    assert risk.k == min(map(len, classes.values()))
    assert risk.unique == len(set().union(*(people for people in classes.values() if len(people) == 1), set()))
    assert risk.people == 600


@pytest.mark.thorough
def test_a_sample_holds_whole_people_and_is_said(site: Site, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table of several rows a person, a weight, and a policy of two tables of which one is opened."""
    con = site.bench.con.cursor()
    con.execute(
        f"""COPY (SELECT 'P' || (i // 3) AS person_id, 20 + (hash(i // 3) % 60)::INTEGER AS age,
                         5.0 + (hash(i // 3, 1) % 9) AS design_weight FROM range(900) AS t(i))
            TO '{folder}/visits.parquet'"""
    ).fetchall()
    (folder / "both.toml").write_text(
        """[promises]
k = 10

[tables.people]
source = { path = "people.parquet" }
target = { path = "a.parquet" }
columns = { person_id = "person", age = "quasi_identifier" }
method = { name = "generalize" }

[tables.visits]
source = { path = "visits.parquet" }
target = { path = "b.parquet" }
columns = { person_id = "person", age = "?", design_weight = "drop" }
method = { name = "generalize" }
"""
    )
    monkeypatch.setattr(benches, "MOST_PEOPLE", 40)
    try:
        for name in ("people", "sample"):
            con.execute(f"DROP TABLE {name}").fetchall()
        other = Site(PolicyText(folder / "both.toml", "visits"), "/token")
        assert other.opening.wait(60).error is None
        people, rows = con.execute("SELECT count(DISTINCT person_id), count(*) FROM sample").fetchall()[0]
        assert (people, rows, other.bench.is_sampled) == (40, 120, True)
        client = TestClient(application(other), base_url="http://127.0.0.1:8000")
        assert "a sample of 40 people" in client.get("/token/columns").text
        act(client, other, "role", column="age", role="quasi_identifier")
        assert 'age = "quasi_identifier", design_weight' in (folder / "both.toml").read_text()
        other.bench.weight = "design_weight"  # of larger tables assess finds it
        assert "design_weight weights the rows" in client.get("/token/risk").text
        act(client, other, "promise", "method", name="k", value="5")  # which is said for both tables
        assert "[promises]\nk = 5\n" in (folder / "both.toml").read_text()
        assert other.works.stop()
    finally:
        for name in ("people", "sample"):
            con.execute(f"CREATE OR REPLACE TABLE {name} AS FROM '{folder}/people.parquet'").fetchall()

"""The workbench in Chromium: from a file to a release by clicks alone, other windows, cancelled work, accessibility."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.browser.conftest import CHROMIUM
from tests.workbench.conftest import POLICY

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium; Debian's package is called chromium"),
]

PEOPLE = """
    SELECT 'P' || i AS person_id, 20 + (hash(i) % 60)::INTEGER AS age, ['f', 'm'][1 + (i % 2)] AS sex,
           ['flu', 'asthma', 'cold'][1 + (hash(i, 2) % 3)::INTEGER] AS diagnosis,
           round(.5 + (hash(i, 3) % 100) / 100, 2) AS weight,
           CASE WHEN i = 5 THEN 'astronaut' ELSE ['nurse', 'clerk', 'cook'][1 + (hash(i, 1) % 3)::INTEGER] END
               AS occupation
    FROM range({rows}) AS t(i)
"""
SURVEY = """
    SELECT 100000 + i AS respondent, 4000 + i // 2 AS hh, 18 + (hash(i) % 70)::INTEGER AS age,
           ['male', 'female'][1 + (hash(i, 1) % 2)::INTEGER] AS sex,
           ['Bern', 'Uri', 'Zug'][1 + (hash(i, 2) % 3)::INTEGER] AS region,
           (2000 + hash(i, 4) % 9000)::DOUBLE AS income, round(.5 + (hash(i, 5) % 200) / 100, 2) AS weight,
           (hash(i, 6) % 7)::INTEGER AS q1, (hash(i, 8) % 11)::INTEGER AS trust, 'CH' AS country,
           (hash(i, 9) % 900)::INTEGER AS cq
    FROM range({rows}) AS t(i)
"""
REGISTER = """
    SELECT 'P' || lpad((i // 3)::VARCHAR, 6, '0') AS patient_id,
           ['Ann', 'Bob', 'Cem', 'Eve'][1 + (hash(i // 3) % 4)::INTEGER] || ' ' ||
           ['Kaya', 'Rossi'][1 + (hash(i // 3, 1) % 2)::INTEGER] AS name,
           DATE '1930-01-01' + (hash(i // 3, 2) % 30000)::INTEGER AS born,
           ['f', 'm'][1 + (hash(i // 3, 3) % 2)::INTEGER] AS sex,
           lpad((8000 + hash(i // 3, 4) % 60)::VARCHAR, 5, '0') AS zip,
           DATE '2025-01-01' + (hash(i, 5) % 365)::INTEGER AS admitted,
           ['I10', 'E11', 'J45', 'C50', 'F32'][1 + (hash(i, 6) % 5)::INTEGER] AS icd,
           (hash(i, 8) % 12)::INTEGER AS stay, (hash(i, 9) % 2)::BOOLEAN AS flag, 'x' || (hash(i, 10) % 40) AS dcode
    FROM range({rows}) AS t(i)
"""
ELSEWHERE = POLICY.replace("xq =", "weight =")
SOON = 180_000  # milliseconds that a page may take on a busy machine

Start = Callable[..., tuple[str, "subprocess.Popen[str]"]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start `duckanon workbench` on a file, and return its address."""
    started: list[subprocess.Popen[str]] = []

    def begin(source: str, rows: int = 600, people: str = PEOPLE) -> tuple[str, subprocess.Popen[str]]:
        duckdb.execute(f"COPY ({people.format(rows=rows)}) TO '{tmp_path}/people.parquet'").fetchall()
        command = [sys.executable, "-m", "duckanon.cli", "workbench", str(tmp_path / source), "--no-open"]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stderr
        for line in process.stderr:
            if found := re.search(r"http://127\.0\.0\.1:\d+/\S{32}", line):
                return found[0], process
        raise AssertionError("the workbench did not start")

    yield begin
    for process in started:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.wait(60)


@pytest.fixture
def window(browser: Any) -> Iterator[Callable[..., Any]]:
    """Open windows that fail for complaints of the browser and for requests to anywhere else."""
    complaints: list[str] = []
    context = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)

    def opened(address: str) -> Any:
        host = re.match(r"http://[^/]+/", address)
        assert host
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda one: None if one.url.startswith(host[0]) else complaints.append(one.url))
        page.goto(address)
        page.get_by_role("heading", name="Risk now").wait_for(timeout=SOON)
        return page

    yield opened
    context.close()
    assert complaints == []


def test_a_table_that_is_read_while_its_page_is_made_is_shown(start: Start, browser: Any) -> None:
    address, _ = start("people.parquet")
    page = browser.new_page()
    made = '<div id="page"><div id="part-opening" data-reload="yes"></div></div>'
    script = f'<script src="{address}/static/page.js" defer></script>'
    late = f'<!DOCTYPE html><html><head>{script}</head><body data-root="{address}">{made}</body></html>'
    page.route(f"{address}/columns", lambda route: route.fulfill(body=late, content_type="text/html"), times=1)
    page.goto(f"{address}/columns")
    page.get_by_role("heading", name="Risk now").wait_for(timeout=SOON)
    page.close()


def faults(page: Any) -> list[str]:
    """Return what axe-core finds, with the elements."""
    axe = pytest.importorskip("axe_core_python.sync_playwright", reason="make test-browser installs axe-core").Axe()
    found = axe.run(page)["violations"]
    return [f"{one['id']}: {node['html'][:200]}" for one in found for node in one["nodes"]]


def shown_everywhere(page: Any, address: str, columns: tuple[str, ...] = ()) -> None:
    """Look at all pages on a phone, and in the dark: nothing is wider than the screen, and axe finds no fault."""
    names = ["columns", "risk", "method", "preview", "release", *(f"hierarchy?column={name}" for name in columns)]
    for width, scheme in ((390, "light"), (1280, "dark")):
        page.set_viewport_size({"width": width, "height": 844})
        page.emulate_media(color_scheme=scheme)
        for name in names:
            page.goto(f"{address}/{name}")
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (name, width)
            assert faults(page) == [], (name, width, scheme)
    page.set_viewport_size({"width": 1280, "height": 900})
    page.emulate_media(color_scheme="light")


def tab_to(page: Any, place: str) -> None:
    """Press Tab until an element has the focus, which everybody can who has no mouse."""
    for _ in range(200):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == place:
            return
    raise AssertionError(f"{place} is not reached by the keyboard")


class Clicks:
    """Clicks and choices of a person, counted."""

    def __init__(self, page: Any) -> None:
        self.page, self.count = page, 0

    def on(self, role: str, name: str) -> None:
        self.page.get_by_role(role, name=name).first.click()
        self.count += 1

    def choose(self, column: str, role: str) -> None:
        self.page.get_by_label(f"What {column} is").select_option(role)
        self.page.locator("[aria-busy]").wait_for(state="detached", timeout=SOON)
        self.count += 1


def test_from_a_file_to_a_release_by_clicks_alone(start: Start, window: Any, tmp_path: Path) -> None:
    address, process = start("people.parquet")
    page = window(address)
    clicks = Clicks(page)
    assert faults(page) == []
    undecided = page.locator("tr.open th").all_inner_texts()
    assert undecided
    assert page.locator("tr.open .advice").count() == len(undecided)  # no decision without a hint
    for name in [text.split()[0] for text in undecided]:
        clicks.choose(name, "drop")
    assert "undecided" not in page.locator("aside").inner_text()
    assert 'weight = "drop"' in (tmp_path / "people.policy.toml").read_text()
    clicks.on("link", "2 Risk")
    page.get_by_text("How the risk moved").wait_for()
    assert faults(page) == []
    clicks.on("link", "3 Method")
    assert page.locator("output[for=k]").inner_text() == "10"
    assert faults(page) == []
    clicks.on("link", "4 Preview")
    assert "astronaut" not in page.content()
    clicks.on("button", "Show the preview")
    page.get_by_text("After: rows of the release").wait_for(timeout=SOON)
    assert faults(page) == []
    clicks.on("link", "5 Release")
    clicks.on("button", "Release")
    page.get_by_text("✓ Released. Every promise").wait_for(timeout=SOON)
    assert faults(page) == []
    assert clicks.count <= 6 + len(undecided)
    released = duckdb.execute(
        f"SELECT min(n) FROM (SELECT count(*) AS n FROM '{tmp_path}/people_release.parquet' GROUP BY age, sex)"
    ).fetchall()
    assert released[0][0] >= 10
    with page.expect_download() as saved:
        page.get_by_role("link", name="download the policy").click()
    assert Path(saved.value.path()).read_text() == (tmp_path / "people.policy.toml").read_text()
    shown_everywhere(page, address, ("sex",))
    before = {path.name for path in tmp_path.iterdir()}
    page.close()
    assert process.wait(60) == 0  # closing the last window ends the work and the process
    assert {path.name for path in tmp_path.iterdir()} == before
    assert not [name for name in before if name.startswith(".")]


def test_a_policy_made_elsewhere_two_windows_and_a_broken_promise(start: Start, window: Any, tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(ELSEWHERE, encoding="utf-8")
    address, process = start("policy.toml")
    one, other = window(address), window(address)
    Clicks(one).choose("weight", "drop")
    other.get_by_text("The policy was changed in another window").wait_for(timeout=SOON)
    Clicks(other).choose("weight", "free")
    other.get_by_text("Nothing was changed; look again").wait_for(timeout=SOON)
    one.get_by_text("Another window tried to change an older version").wait_for(timeout=SOON)
    assert 'weight = "drop"  # undecided: no hint' in file.read_text()
    other.close()
    Clicks(one).choose("occupation", "quasi_identifier")
    assert "unique in the 3 columns" in one.locator("aside").inner_text()
    one.get_by_role("button", name="Undo").click()
    one.get_by_text("unique in the 2 columns").wait_for(timeout=SOON)
    assert one.get_by_label("What occupation is").input_value() == "?"
    one.get_by_label("What occupation is").focus()
    one.keyboard.press("n")  # "names a person: drop it", by the keyboard alone
    one.keyboard.press("Tab")
    one.get_by_text("occupation: identifier").wait_for(timeout=SOON)
    assert one.evaluate("document.activeElement.id") == "role-person_id"  # the next one, in a page that is new
    one.goto(f"{address}/method")
    one.get_by_label("l: different").fill("5")  # of three diagnoses
    one.get_by_text("promise l = 5").wait_for(timeout=SOON)
    one.get_by_label("suppress_cells").check()
    one.get_by_text("method suppress_cells").wait_for(timeout=SOON)
    one.goto(f"{address}/release")
    one.get_by_role("button", name="Release", exact=True).click()
    one.get_by_text("✗ Not released: a promise is broken").wait_for(timeout=SOON)
    assert faults(one) == []
    assert not (tmp_path / "release.parquet").exists()
    assert process.poll() is None


def test_a_cancelled_run_leaves_nothing(start: Start, window: Any, tmp_path: Path) -> None:
    decided = ELSEWHERE.replace('"?"', '"quasi_identifier"').replace('"generalize"', '"recode"')
    (tmp_path / "policy.toml").write_text(decided, encoding="utf-8")
    address, _ = start("policy.toml", rows=200_000)
    page = window(address)
    page.goto(f"{address}/release")
    page.get_by_role("button", name="Release", exact=True).click()
    page.get_by_text("recode of 200000 rows").first.wait_for(timeout=SOON)
    page.get_by_role("button", name="Cancel").click()
    page.get_by_text("Cancelled.").wait_for(timeout=SOON)
    assert {path.name for path in tmp_path.iterdir()} == {"people.parquet", "policy.toml"}


def test_a_hierarchy_is_built_without_a_mouse(start: Start, window: Any, tmp_path: Path) -> None:
    decided = ELSEWHERE.replace('occupation = "?"', 'occupation = "quasi_identifier"')
    (tmp_path / "policy.toml").write_text(decided, encoding="utf-8")
    address, _ = start("policy.toml")
    page = window(address)
    page.goto(f"{address}/hierarchy?column=occupation")
    places = dict(page.eval_on_selector_all(".members label", "all => all.map(one => [one.innerText, one.htmlFor])"))
    tab_to(page, "name")
    page.keyboard.type("service")
    for name in ("clerk", "cook"):
        tab_to(page, places[name])
        page.keyboard.press("Space")
    tab_to(page, "do-move")
    page.keyboard.press("Enter")
    page.get_by_text("2 members were moved.").wait_for(timeout=SOON)
    assert page.evaluate("document.activeElement.id") == "do-move"
    assert "astronaut" not in page.content()
    tab_to(page, "add")
    page.keyboard.press("Enter")
    page.get_by_text("Level 2: 3 groups").wait_for(timeout=SOON)
    tab_to(page, "save")
    page.keyboard.press("Enter")
    page.get_by_text("Saved as occupation_hierarchy.csv").first.wait_for(timeout=SOON)
    assert "cook,service,service,*" in (tmp_path / "occupation_hierarchy.csv").read_text()
    assert 'occupation = "occupation_hierarchy.csv"' in (tmp_path / "policy.toml").read_text()
    assert faults(page) == []


ROLE_OF = {"others may know it": "quasi_identifier", "identifies nobody": "free", "not needed": "drop"}


@pytest.mark.parametrize("people", [SURVEY, REGISTER], ids=["survey", "register"])
def test_no_decision_is_made_without_a_hint(start: Start, window: Any, people: str) -> None:
    """Who follows every suggestion of two files that nobody knows comes to a release, and decides nothing unadvised."""
    address, _ = start("people.parquet", rows=1500, people=people)
    page = window(address)
    clicks, unadvised = Clicks(page), 0
    names = [text.split()[0] for text in page.locator("tr.open th").all_inner_texts()]
    assert page.locator("table.roles tbody tr").count() >= 10
    for name in names:
        row = page.locator("tr", has=page.get_by_label(f"What {name} is", exact=True))
        hint = row.locator(".advice").inner_text() if row.locator(".advice").count() else ""
        unadvised += not hint
        first = re.search(r"“([^”]*)”", hint)
        source = re.search(r"the same as for (\S+?)[, ]", hint)
        role = ROLE_OF[first[1]] if first else page.get_by_label(f"What {source[1]} is", exact=True).input_value()  # type: ignore[index]
        clicks.choose(name, role)
    page.goto(f"{address}/method")
    for control in page.locator("main input:visible").all():  # each is described, by words that stand beside it
        described = control.get_attribute("aria-describedby")
        words = page.locator(f"#{described}").inner_text() if described else ""
        label = page.locator(f"label[for='{control.get_attribute('id')}']").inner_text()
        unadvised += not words and ":" not in label
    assert unadvised == 0
    page.goto(f"{address}/release")
    for _ in range(3):
        clicks.on("button", "Release")
        page.locator("#start-released").wait_for(timeout=SOON)
        again = page.get_by_role("button", name="all the same, and write that into the policy")
        if not again.count():
            break
        again.first.click()  # the refusal says why, and what to do
        page.locator("[aria-busy]").wait_for(state="detached", timeout=SOON)
    page.get_by_text("✓ Released. Every promise").wait_for(timeout=SOON)

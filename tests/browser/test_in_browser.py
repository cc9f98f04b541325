"""The report in a real browser: Debian's Chromium, driven by Playwright (`make test-browser`)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from duckanon import report
from tests.browser.conftest import CHROMIUM
from tests.report.records import at, measured_record

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium; Debian's package is called chromium"),
]

PHONE, DESK = 390, 1100


@pytest.fixture(scope="module")
def run(shared: duckdb.DuckDBPyConnection) -> Any:
    return measured_record(shared)


@pytest.fixture
def show(browser: Any, run: Any, tmp_path: Path) -> Iterator[Any]:
    """Open the report, or another page, and fail for anything that the browser complains about or loads."""
    complaints: list[str] = []
    pages = []

    def shown(width: int = DESK, scheme: str = "light", html: str | None = None) -> Any:
        file = tmp_path / "report.html"
        file.write_text(html or report.html(*run), encoding="utf-8")
        page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: None if request.url == file.as_uri() else complaints.append(request.url))
        page.goto(file.as_uri())
        pages.append(page)
        return page

    yield shown
    for page in pages:
        page.close()
    assert complaints == []


def brightness(colour: str) -> float:
    return sum(float(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(",")[:3]) / 3


def test_numbers_are_those_of_the_record(show: Any, run: Any) -> None:
    shown = show().eval_on_selector_all(
        "data", "all => all.map(one => [one.dataset.path, one.value, one.innerText, one.getClientRects().length])"
    )
    assert len(shown) > 60
    for path, value, text, places in shown:
        assert json.loads(value) == at(run[0], path)
        assert text
        assert places > 0, f"{path} is not to be seen"


@pytest.mark.parametrize("width", [320, PHONE, 768, DESK])
def test_nothing_is_wider_than_the_screen(show: Any, width: int) -> None:
    page = show(width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    outside = page.evaluate(
        """width => [...document.querySelectorAll('body *')].filter(one => !one.closest('svg, thead')
               && one.getBoundingClientRect().right > width + 1).map(one => one.outerHTML.slice(0, 100))""",
        width,
    )
    assert outside == []


def test_long_names_do_not_make_a_phone_scroll(show: Any, run: Any) -> None:
    record, figures = json.loads(json.dumps(run[0])), run[1]
    long_name = "a" * 300
    record["tables"][0]["columns"][1]["name"] = long_name
    record["tables"][0]["promises"][0] |= {"name": long_name, "measured": long_name, "words": long_name}
    page = show(PHONE, html=report.html(record, figures))
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_letters_in_pictures_can_be_read(show: Any, width: int) -> None:
    heights = show(width).eval_on_selector_all("svg text", "all => all.map(one => one.getBoundingClientRect().height)")
    assert len(heights) > 50
    assert min(heights) > 7


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_the_ground(show: Any, scheme: str) -> None:
    page = show(scheme=scheme)
    ground, ink, letters = page.evaluate(
        """[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color,
            getComputedStyle(document.querySelector('svg text')).fill]"""
    )
    assert (brightness(ground) > 128) == (scheme == "light")
    assert abs(brightness(ground) - brightness(ink)) > 150
    assert letters == ink


def test_paper_is_white_and_shows_everything(show: Any, tmp_path: Path) -> None:
    page = show(scheme="dark")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    page.pdf(path=str(tmp_path / "report.pdf"), format="A4")
    assert (tmp_path / "report.pdf").stat().st_size > 20_000
    too_high = page.eval_on_selector_all("figure", "all => all.filter(one => one.offsetHeight > 980).length")
    assert too_high == 0  # of the 1,122 pixels of a page, less its margins


@pytest.mark.parametrize("paper", ["A4", "Letter"])
def test_a_survey_of_28_columns_is_signed_on_two_pages(show: Any, run: Any, tmp_path: Path, paper: str) -> None:
    """And its annex has at most eight; nothing that stays together is so high that it leaves half a page empty."""
    record, figures = json.loads(json.dumps(run[0])), run[1]
    table = record["tables"][0]
    more = [f"income_{number}" for number in range(28 - len(table["columns"]))]
    table["columns"] += [{"name": name, "role": "free", "treatment": "released as it is"} for name in more]
    table["measures"]["narrowing"] += [{"kept": name, "k": 1, "narrows": []} for name in more]
    utility = table["measures"]["utility"]
    utility["marginals"] += [{"column": name, "distance": 0.01} for name in more]
    utility["correlations"] += [
        {"column": one, "other": other, "original": 0.1, "released": 0.1}
        for one in more
        for other in more
        if one < other
    ]
    page = show(688 if paper == "A4" else 710, html=report.html(record, figures))
    page.pdf(path=str(tmp_path / "report.pdf"), format=paper)
    assert len(re.findall(rb"/Type\s*/Page\b", (tmp_path / "report.pdf").read_bytes())) <= 2 + 8
    page.emulate_media(media="print")
    height = 1017 if paper == "A4" else 950  # of a sheet, less its margins
    assert page.evaluate("document.querySelector('.annex').getBoundingClientRect().top + scrollY") <= 2 * height
    heights = page.eval_on_selector_all("figure, .signatures, .verdict", "all => all.map(one => one.offsetHeight)")
    assert max(heights) < height / 2


def test_a_broken_promise_is_seen_without_scrolling(show: Any, run: Any) -> None:
    record = json.loads(json.dumps(run[0])) | {"outcome": "promise broken"}
    record["tables"][0]["promises"][0] |= {"passed": False, "measured": 3}
    page = show(PHONE, html=report.html(record, run[1]))
    box = page.locator("[role=alert]").bounding_box()
    assert box["y"] < 200
    assert "Do not release" in page.locator("[role=alert] h2").inner_text()


def test_links_of_the_contents_lead_to_headings(show: Any) -> None:
    page = show()
    for target in page.eval_on_selector_all("nav a", "all => all.map(one => one.getAttribute('href'))"):
        assert page.locator(target).count() == 1

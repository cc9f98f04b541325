"""The report: its numbers are the record's, its structure holds, and it gives nobody away."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckanon import report
from duckanon.report import safe
from duckanon.report.pictures import shares_of
from tests.report.records import EXTREME, RARE, Page, at, entry, make_tables, measured_record, record

HOSTILE = """<script>alert("x")</script><img src=x onerror='y'>&amp;{{ 7 * 7 }}"""

Run = tuple[dict[str, Any], dict[str, list[report.Figure]]]


@pytest.fixture(scope="module")
def run(shared: duckdb.DuckDBPyConnection) -> Run:
    return measured_record(shared)


def changed(run: Run, **changes: Any) -> dict[str, Any]:
    """Return the record with another table."""
    table = copy.deepcopy(run[0]["tables"][0]) | changes
    return record(table)


@pytest.mark.thorough
def test_every_number_is_that_of_the_record(run: Run) -> None:
    shown = Page(report.html(*run)).all("data")
    assert len(shown) > 60
    for attributes, text in shown:
        value = at(run[0], attributes["data-path"] or "")
        if (attributes["data-path"] or "").endswith("/measured") and isinstance(value, float):
            value = float(f"{value:.2g}")
        assert json.loads(attributes["value"] or "") == value
        if isinstance(value, int | float) and not isinstance(value, bool) and "under" not in text:
            number = float(text.removesuffix(" %").replace(",", ""))
            assert number == pytest.approx(value * (100 if "%" in text else 1), rel=0.005, abs=0.005)
    paths = {attributes["data-path"] for attributes, _ in shown}
    for part in ("classes", "risk", "narrowing", "prediction", "utility"):
        assert any(f"/measures/{part}/" in (path or "") for path in paths), part


def test_the_page_is_whole_and_needs_nothing_else(run: Run) -> None:
    html = report.html(*run)
    page = Page(html)
    ids = [attributes["id"] for _, attributes, _ in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for attributes, _ in page.all("a"):
        assert (attributes["href"] or "").startswith("#")
        assert (attributes["href"] or "")[1:] in ids
    assert page.all("script") == page.all("img") == page.all("link") == []
    assert not re.search(r"(?:https?:)?//(?!www\.w3\.org/)\w", html)
    assert not [name for _, attributes, _ in page.elements for name in attributes if name.startswith("on")]
    assert len(page.all("h1")) == 1


def test_every_picture_has_words(run: Run) -> None:
    figures = run[1]["people"]
    titles = [figure.title for figure in figures]
    assert {figure.part for figure in figures} == {"classes", "prediction", "utility"}
    assert len(titles) == len(set(titles)) >= 5
    page = Page(report.html(*run))
    drawn = page.all("svg")
    assert len(drawn) == len(figures)
    texts = {attributes["id"]: text for tag in ("title", "desc") for attributes, text in page.all(tag) if attributes}
    for attributes, _ in drawn:
        assert attributes["role"] == "img"
        title, description = (attributes["aria-labelledby"] or "").split()
        assert texts[title] in titles
        assert len(texts[description]) > 40


@pytest.mark.thorough
def test_hostile_names_stay_text(run: Run, con: duckdb.DuckDBPyConnection) -> None:
    table = copy.deepcopy(run[0]["tables"][0])
    table["name"] = table["method"]["name"] = HOSTILE
    table["method"]["parameters"][HOSTILE] = HOSTILE
    for column in table["columns"]:
        column |= {"name": HOSTILE, "role": HOSTILE, "treatment": HOSTILE}
    for promise in table["promises"]:
        promise |= {"name": HOSTILE, "measured": HOSTILE, "words": HOSTILE, "passed": False}
    for row in table["measures"]["utility"]["correlations"]:
        row |= {"column": HOSTILE, "other": HOSTILE}
    quoted = '"' + HOSTILE.replace('"', '""') + '"'
    con.execute(f"CREATE TABLE odd AS SELECT i % 2 AS {quoted}, i % 40 AS b FROM range(300) AS t(i)").fetchall()
    odd = entry(columns=[{"name": name, "role": "quasi_identifier", "treatment": ""} for name in (HOSTILE, "b")])
    odd["measures"] = report.measured(con, "odd", "odd", odd)
    figures = report.figures(con, "odd", "odd", odd)
    assert len(figures) > 2
    page = Page(report.html(record(table, outcome=HOSTILE), {HOSTILE: figures}))
    assert page.all("script") == page.all("img") == []
    assert HOSTILE in page.all("h1")[0][1]


@pytest.mark.thorough
@pytest.mark.parametrize("outcome", ["promise broken", "dry run", "released"])
def test_a_broken_promise_stands_first(run: Run, outcome: str) -> None:
    broken = [{"name": "l", "asked": 3, "measured": 2, "passed": False, "words": "A class has two illnesses."}]
    page = Page(report.html(changed(run, promises=broken) | {"outcome": outcome}, run[1]))
    assert page.all("h2")[0][1].startswith("✗ Do not release: 1 promise is broken")
    alert = next(text for attributes, text in page.all("div") if attributes.get("role") == "alert")
    assert "A class has two illnesses." in alert
    assert "Released" not in page.all("h2")[0][1]


def test_a_promise_without_an_answer_is_not_kept(run: Run) -> None:
    unknown = [{"name": "distance", "asked": 0.05, "measured": None, "passed": None, "words": ""}]
    assert "1 promise is broken" in report.html(changed(run, promises=unknown), run[1])


def test_a_kept_promise_is_said_to_be_where_nothing_lies_below_it(run: Run) -> None:
    """A column that the policy declares free and that leaves fewer than k people turns the headline amber."""
    table = copy.deepcopy(run[0]["tables"][0])
    for row in table["measures"]["prediction"]:
        row["passed"] = True
    for row in table["measures"]["narrowing"]:
        row["k"] = 10_000
    assert Page(report.html(record(table), run[1])).all("h2")[0][1] == "✓ Released"
    free = table["measures"]["narrowing"][0]
    free["k"] = 1
    next(column for column in table["columns"] if column["name"] == free["kept"])["role"] = "free"
    page = Page(report.html(record(table), run[1]))
    assert page.all("h2")[0][1] == "! Released, and somebody has to decide: 1 caveat"
    caveat = next(text for _, text in page.all("li") if "declares free" in text)
    assert f"{free['kept']} too, which the policy declares free, finds as few as 1 person; k is" in caveat
    table["measures"]["prediction"][0]["passed"] = False
    assert "2 caveats" in Page(report.html(record(table), run[1])).all("h2")[0][1]
    dry = Page(report.html(run[0] | {"outcome": "dry run"}, run[1]))
    assert dry.all("h2")[0][1] == "Dry run: nothing was written"


def test_a_run_that_did_not_come_far_has_a_report() -> None:
    """A broken promise before anything was written or measured."""
    table = {name: value for name, value in entry().items() if name in ("name", "source", "rows", "method", "columns")}
    table["promises"] = [{"name": "k", "asked": 10, "measured": 3, "passed": False}]
    page = Page(report.html(record(table, outcome="promise broken"), {}))
    assert "1 promise is broken" in page.all("h2")[0][1]
    assert page.all("svg") == []


def test_warnings_are_shown(run: Run) -> None:
    page = Page(report.html(run[0] | {"warnings": [f"last.parquet {HOSTILE}"]}, {}))
    assert "last.parquet <script>" in " ".join(text for _, text in page.all("li"))


@pytest.mark.thorough
def test_linked_tables_have_a_section_of_what_is_not_promised(run: Run) -> None:
    exposure = [{"knows": "3 events", "people": 400, "unique": 0.025, "under_k": 0.0725}]
    linked = {"tables": ["visits", "labs"], "k": 10, "known": 2, "exposure": exposure}
    page = Page(report.html(run[0] | {"linked": linked}, {}))
    assert ("linked", "Tables of events together") in [
        (attributes.get("id"), text) for attributes, text in page.all("h2")
    ]
    shown = {attributes.get("data-path"): text for attributes, text in page.all("data")}
    assert shown["/linked/exposure/0/unique"] == "2.5 %"
    assert shown["/linked/exposure/0/under_k"] == "7.25 %"
    assert "Tables of events" not in report.html(run[0], {})


def test_accounts_and_cohorts_are_told_but_not_of_a_few_people(run: Run) -> None:
    cohorts = {"people": 399, "waiting": 12, "mean_wait": 1.0, "longest_wait": 2, "stale": 3, "mean_stale": 1.625}
    cohorts |= {"longest_stale": 4, "coarser": 14, "pooled": 0, "erased": 1, "count_error": 0.031}
    account = {"path": "account.sqlite", "releases": 2, "people": 411, "joint_k": 11}
    page = Page(report.html(changed(run, cohorts=cohorts) | {"account": account}, {}))
    text = " ".join(page.all("body")[0][1].split())
    for words in (
        "2 releases of 411 people, this one included; all together leave everybody at least 11 candidates",
        "12 people, on average for 1 release, at most for 2",
        "3.1 % on average",
    ):
        assert words in text
    assert "fewer than 10 people, on average" not in text
    shown = {attributes.get("data-path") for attributes, _ in page.all("data")}
    assert {
        f"/tables/0/cohorts/{name}"
        for name in ("waiting", "mean_wait", "longest_wait", "coarser", "pooled", "count_error")
    } == {path for path in shown if "/cohorts/" in (path or "")}
    first = account | {"releases": 1, "people": 1, "joint_k": 1}
    text = " ".join(Page(report.html(run[0] | {"account": first}, {})).all("body")[0][1].split())
    assert "1 release of 1 person, this one included; all together leave everybody at least 1 candidate" in text
    assert "out of date" not in text


def test_an_empty_release_has_a_report(con: duckdb.DuckDBPyConnection) -> None:
    make_tables(con)
    con.execute("DELETE FROM released").fetchall()
    table = entry()
    table["measures"] = report.measured(con, "people", "released", table, "others")
    assert table["measures"] | {"step": 0} == {
        "step": 0,
        "classes": None,
        "risk": None,
        "coarseness": [],
        "narrowing": [],
        "erased": [],
        "prediction": None,
        "utility": None,
    }
    assert report.figures(con, "people", "released", table, "others") == []
    Page(report.html(record(table), {}))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("method", "call"),
    [
        ("generalize", "anon.generalize('people', ['age', 'sex'], 10, keep := ['income', 'occupation'])"),
        ("recode", "anon.recode('people', ['age', 'sex'], 10, keep := ['income', 'occupation'])"),
        ("suppress_cells", "anon.suppress_cells('people', ['age', 'sex'], 10, keep := ['income', 'occupation'])"),
        ("boxes", "anon.boxes('people', ['age', 'income'], 10, keep := ['occupation'])"),
        ("microaggregate", "anon.microaggregate('people', ['age', 'income'], 10, keep := ['occupation'])"),
        ("svd_swap", "anon.svd_swap('people', ['age', 'sex', 'income', 'occupation'], seed := 1)"),
        ("synthesize", "anon.synthesize('people', ['age', 'sex', 'income', 'occupation'], seed := 1)"),
        ("spectral_release", "anon.spectral_release('people', ['age', 'sex', 'income', 'occupation'], seed := 1)"),
    ],
)
def test_every_method_has_a_report(method: str, call: str, con: duckdb.DuckDBPyConnection) -> None:
    for name, first in (("people", 0), ("others", 1000)):
        con.execute(
            f"""CREATE TABLE {name} AS
                SELECT 'P' || i AS person_id,
                       20 + CAST(hash(i) % 60 AS INTEGER) AS age,
                       CASE hash(i, 1) % 2 WHEN 0 THEN 'F' ELSE 'M' END AS sex,
                       round(1e3 * (1 + hash(i, 2) % 99991 / 99991), 2) AS income,
                       CASE hash(i, 3) % 3 WHEN 0 THEN 'nurse' WHEN 1 THEN 'clerk' ELSE 'cook' END AS occupation
                FROM range({first}, {first} + 600) AS t(i)"""
        ).fetchall()
    con.execute(f"CREATE TABLE released AS FROM {call}").fetchall()
    table = entry(method={"name": method, "parameters": {"k": 10}})
    if method in ("boxes", "microaggregate"):
        next(column for column in table["columns"] if column["name"] == "income")["role"] = "quasi_identifier"
    table["measures"] = report.measured(con, "people", "released", table, "others")
    classes = table["measures"]["classes"]
    assert (classes["after"] is None) == (method in ("svd_swap", "spectral_release", "synthesize"))
    if classes["after"]:
        assert classes["after"]["smallest"] >= 10
    assert len(table["measures"]["utility"]["columns"]) >= 3
    figures = report.figures(con, "people", "released", table, "others")
    assert len(figures) >= 3
    Page(report.html(record(table), {"people": figures}))


def test_settings_of_single_columns_are_not_shown(run: Run) -> None:
    """They may hold values: cuts, codes, names of categories."""
    parameters = {"k": 10, "special": {"income": [EXTREME]}, "cuts": [{"at": EXTREME}], "tolerance": 1.5}
    html = report.html(changed(run, method={"name": "generalize", "parameters": parameters}), {})
    assert str(EXTREME) not in html.replace(",", "")
    assert "Tolerance" in html


def test_secrets_places_and_hashes_of_the_original_are_not_told(run: Run) -> None:
    """A hash of the original lets somebody who knows nearly all of it try the rest."""
    table = run[0]["tables"][0]
    html = report.html(changed(run, source="postgresql://admin:hunter2@10.0.0.1/clinic"), run[1])
    for secret in (table["sha256"], "987123", "/secret", "hunter2", "10.0.0.1"):
        assert secret not in html
    assert table["output"]["sha256"] in html


def test_fewer_than_k_people_are_not_counted(run: Run) -> None:
    """One left out of 400: neither the 1 nor the 400, of which the released 399 would leave it."""
    html = report.html(*run)
    text = " ".join(text for _, text in Page(html).all("section"))
    assert "fewer than 10 rows" in text
    assert not re.search(r"\b400\b", text)
    assert "399, and fewer than 10 more" in text
    many = {"rows": 40, "people": 40, "fraction": 0.1, "limit": 0.2}
    assert "400" in " ".join(text for _, text in Page(report.html(changed(run, suppressed=many), {})).all("section"))


@pytest.mark.parametrize("gone", [{"rows": 3, "people": 3}, {"rows": 37, "people": 3}, {"rows": 3, "people": None}])
def test_a_promise_does_not_count_them_either(run: Run, gone: dict[str, int | None]) -> None:
    promise = {"name": "max_suppressed_fraction", "asked": 0.01, "measured": 0.007543, "passed": True}
    promise["words"] = "3 people were suppressed (0.7543%)."
    html = report.html(changed(run, suppressed=gone | {"fraction": 0.007543, "limit": 0.01}, promises=[promise]), {})
    text = Page(html).all("body")[0][1]
    assert "0.0075" not in html
    assert "0.754" not in html
    assert "3 people" not in text
    assert "fewer than 10" in text


def test_a_promise_tells_no_exact_statistic(run: Run) -> None:
    promise = {"name": "correlation", "asked": 0.05, "measured": 0.012345678, "passed": True, "words": ""}
    html = report.html(changed(run, promises=[promise]), {})
    assert "0.012" in html
    assert "0.0123" not in html


def test_no_value_of_a_person_leaves(run: Run) -> None:
    """The income and the occupation of one person of the original, who was left out."""
    everything = json.dumps(run[0]["tables"][0]["measures"]) + report.html(*run)
    for value in (str(EXTREME), f"{EXTREME:,}", RARE, f"{EXTREME:.2g}"):
        assert value not in everything
    names = {"nurse", "clerk", "cook"}
    assert not names & set(re.findall(r"\w+", json.dumps(run[0]["tables"][0]["measures"])))


def test_pictures_do_not_reach_to_an_extreme(con: duckdb.DuckDBPyConnection) -> None:
    """What is drawn of the original is the same with another millionaire, whose income sets no end of an axis."""
    drawn = []
    for extreme in (EXTREME, 5 * EXTREME):
        make_tables(con, extreme=extreme)
        column = pa.chunked_array([pa.array([row[0] for row in con.execute("SELECT income FROM people").fetchall()])])
        drawn.append(shares_of("income", column, column, 10))
    assert drawn[0] == drawn[1] != []


@pytest.mark.thorough
def test_many_rows_of_one_person_are_one_person(con: duckdb.DuckDBPyConnection) -> None:
    """Thirty visits of the one astronaut are no thirty astronauts."""
    con.execute(
        """CREATE TABLE visits AS
           SELECT i // 2 AS person_id, i % 7 AS ward, ['nurse', 'clerk'][1 + i % 2] AS occupation
           FROM range(800) AS t(i)
           UNION ALL SELECT 5000, 3, 'astronaut' FROM range(30);
           CREATE TABLE left_over AS SELECT ward, occupation FROM visits"""
    ).fetchall()
    roles = {"person_id": "person", "ward": "quasi_identifier", "occupation": "free"}
    table = entry(columns=[{"name": name, "role": role, "treatment": ""} for name, role in roles.items()])
    table["measures"] = report.measured(con, "visits", "left_over", table)
    figures = report.figures(con, "visits", "left_over", table)
    assert figures
    assert not [figure.title for figure in figures if "astronaut" in figure.svg + figure.alt]
    assert con.execute("SELECT count(*) FROM duckdb_tables() WHERE table_name LIKE 'duckanon_report%'").fetchall() == [
        (0,)
    ]


def test_classes_and_risk_are_those_of_the_functions(run: Run, shared: duckdb.DuckDBPyConnection) -> None:
    measures = run[0]["tables"][0]["measures"]
    sizes = [
        row[0] for row in shared.execute("SELECT count(*) FROM released GROUP BY age, sex ORDER BY ALL").fetchall()
    ]
    assert measures["classes"]["after"]["smallest"] == min(sizes)
    assert sum(band["fraction"] for band in measures["classes"]["after"]["bands"]) == pytest.approx(1, abs=0.001)
    expected = shared.execute(
        """SELECT maximum_risk, average_risk, fraction_at_risk
           FROM anon.reidentification_risk('released', ['age', 'sex']) WHERE attacker = 'prosecutor'"""
    ).fetchall()[0]
    assert tuple(measures["risk"]["after"].values()) == pytest.approx(expected, rel=0.01)
    before = shared.execute(
        """SELECT average_risk, fraction_at_risk
           FROM anon.reidentification_risk('people', ['age', 'sex']) WHERE attacker = 'prosecutor'"""
    ).fetchall()[0]
    rounded = measures["risk"]["before"]
    assert (rounded["average"], rounded["fraction_at_risk"]) == pytest.approx(before, abs=measures["step"] / 2 + 1e-9)


def test_numbers_about_the_original_come_in_steps(run: Run) -> None:
    measures = run[0]["tables"][0]["measures"]
    assert measures["step"] == 0.05  # ten of 400 people
    original = [band["fraction"] for band in measures["classes"]["before"]["bands"]]
    original += [measures["risk"]["before"]["average"], measures["utility"]["largest_correlation_difference"]]
    original += [row["original"] for row in measures["utility"]["correlations"]]
    assert original
    for value in original:
        assert value / 0.05 == pytest.approx(round(value / 0.05), abs=1e-6)


@pytest.mark.thorough
def test_new_records_have_no_classes(con: duckdb.DuckDBPyConnection) -> None:
    make_tables(con)
    table = entry(method={"name": "svd_swap", "parameters": {}})
    con.execute("CREATE TABLE new_people AS SELECT age, sex, income + 1 AS income FROM people").fetchall()
    table["measures"] = report.measured(con, "people", "new_people", table)
    assert table["measures"]["classes"]["after"] is None
    assert table["measures"]["narrowing"] == []
    assert "belong to nobody" in report.html(record(table), {})


@pytest.mark.thorough
def test_a_column_that_cannot_be_compared_is_named(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE nested AS SELECT i % 5 AS a, [i] AS b, i % 11 AS c FROM range(200) AS t(i)").fetchall()
    table = entry(columns=[{"name": name, "role": "free", "treatment": "kept"} for name in "abc"])
    table["measures"] = report.measured(con, "nested", "nested", table)
    assert table["measures"]["classes"] is None
    assert table["measures"]["utility"]["columns"] == ["a", "c"]
    assert "Not compared, since their values or labels are not comparable: b." in " ".join(
        text for _, text in Page(report.html(record(table), {})).all("p")
    )


@given(
    st.lists(st.integers(-50, 50), min_size=1, max_size=200),
    st.sampled_from(["number", "text", "day"]),
    st.integers(2, 12),
)
def test_every_part_of_a_distribution_has_enough_people(values: list[int], kind: str, least: int) -> None:
    column = {
        "number": lambda: pa.array(values),
        "text": lambda: pa.array([f"v{value % 9}" for value in values]),
        "day": lambda: pa.array(np.array(values, "timedelta64[D]") * 200 + np.datetime64("2000-01-01")),
    }[kind]()
    rows = shares_of("x", pa.chunked_array([column]), pa.chunked_array([column]), least)
    assert len(rows) != 1
    for row in rows:
        assert row["original"] == row["released"]
        assert row["original"] >= round(least / len(values), 2)
    if rows:
        assert sum(row["original"] for row in rows) == pytest.approx(1, abs=0.005 * len(rows) + 1e-9)


@given(st.integers(20, 10**7))
def test_a_step_is_the_weight_of_ten_people(people: int) -> None:
    assert safe.step_for(people) * people >= 10


def test_a_picture_that_could_not_be_drawn_is_named(run: Run) -> None:
    def refuse(*_: object) -> None:
        raise duckdb.Error("a value of somebody")

    drawn = report.pictures._try_picture("Kernel components in pairs", "utility", refuse)
    figures = [figure for figure in run[1]["people"] if "components" not in figure.title] + [drawn]
    page = report.html(run[0], {"people": figures})
    assert "<strong>Kernel components in pairs</strong>: It could not be drawn" in page
    assert "a value of somebody" not in page
    assert page.count("<figure>") == len(figures) - 1


TERMS = {
    "recipient": "Institute for Labour Research",
    "purpose": "a study",
    "legal_basis": None,
    "valid_until": "2027-12-31",
    "reviewers": ["A. Nwosu", "B. Lind"],
}


def test_the_first_page_says_to_whom_and_why_and_what_is_missing(run: Run) -> None:
    page = Page(report.html(run[0] | {"release": TERMS}, {}))
    facts = dict(zip((text for _, text in page.all("dt")), (text for _, text in page.all("dd")), strict=True))
    assert facts["Recipient"] == "Institute for Labour Research"
    assert facts["Legal basis"] == "missing in the policy"
    lines = [text for attributes, text in page.all("p") if attributes.get("class") == "line"]
    assert [line.startswith(name) for line, name in zip(lines, TERMS["reviewers"], strict=True)] == [True, True]
    nothing = Page(report.html(*run))
    assert len([text for _, text in nothing.all("dd") if text == "missing in the policy"]) == len(TERMS)
    for outcome in ("dry run", "promise broken"):
        assert "Signatures" not in report.html(run[0] | {"outcome": outcome}, {}).replace("signatures", "")


def test_a_release_that_is_no_longer_valid_is_a_caveat(run: Run) -> None:
    late = report.html(run[0] | {"release": TERMS | {"valid_until": "2026-11-15"}}, {})
    assert "to be used until" in late
    assert "to be used until" not in report.html(run[0] | {"release": TERMS | {"valid_until": "2026-11-16"}}, {})


def test_the_largest_risk_is_that_of_the_smallest_group(run: Run) -> None:
    table = copy.deepcopy(run[0]["tables"][0])
    for row in table["measures"]["narrowing"]:
        row["k"] = {"income": 1, "occupation": 5}[row["kept"]]
    worst = next(
        text for attributes, text in Page(report.html(record(table), {})).all("p") if "worst" in str(attributes)
    )
    assert worst.endswith("and income finds as few as 1 person: a chance of 100 % to pick the right one.")
    table["promises"].append({"name": "l of income", "asked": 2, "measured": 2, "passed": True, "words": ""})
    worst = next(
        text for attributes, text in Page(report.html(record(table), {})).all("p") if "worst" in str(attributes)
    )
    assert worst.endswith("and occupation finds as few as 5 people: a chance of 20 % to pick the right one.")


def test_columns_are_counted_by_their_labels(run: Run) -> None:
    """Sex stayed as it is, so that its typical label would be a value."""
    ages, sexes = run[0]["tables"][0]["measures"]["coarseness"]
    assert (ages, sexes) == (
        {"column": "age", "labels": 2, "typical": "<50"},
        {"column": "sex", "labels": 2, "typical": None},
    )


def test_a_typical_label_names_no_rare_value(con: duckdb.DuckDBPyConnection) -> None:
    make_tables(con)
    con.execute(
        f"""CREATE TABLE merged AS
            SELECT CASE WHEN occupation IN ('nurse', '{RARE}') THEN '{{nurse, {RARE}}}' ELSE 'others' END AS occupation
            FROM people WHERE occupation <> 'cook'"""
    ).fetchall()
    role = [{"name": "occupation", "role": "quasi_identifier", "treatment": ""}]
    (told,) = report.measured(con, "people", "merged", entry(columns=role))["coarseness"]
    assert told == {"column": "occupation", "labels": 2, "typical": None}


def test_ten_correlations_stand_for_all(run: Run) -> None:
    table = copy.deepcopy(run[0]["tables"][0])
    table["measures"]["utility"]["correlations"] = [
        {"column": f"c{i}", "other": "x", "original": 0.0, "released": i / 100} for i in range(30)
    ]
    page = report.html(record(table), {})
    told = re.findall(r"(c\d+) and x", page)
    assert told == [f"c{i}" for i in range(29, 19, -1)]


def test_questions_of_the_law_are_answered_by_a_person(run: Run) -> None:
    text = " ".join(Page(report.html(*run)).all("main")[0][1].split())
    for question in ("Singling out", "Linkability", "Inference", "expert determination", "safe harbor", "2025/327"):
        assert question in text
    assert "people, k: 10 promised, 11 counted" in text
    assert "judgements of the person who signs" in text
    assert all("No " in sentence for sentence in re.findall(r"[^.]*complies[^.]*", text))

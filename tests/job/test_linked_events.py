"""Tables of events released together: their promise is counted on the files, and what would tell more is refused."""

from __future__ import annotations

import json
from collections import Counter
from itertools import combinations
from pathlib import Path

import duckdb
import pytest

from duckanon.cli.main import main
from duckanon.job import PolicyError, PromiseBroken, policy_file, release, run
from duckanon.job.check import check_policy
from duckanon.job.consistency import check_exact_events
from duckanon.job.draft import draft
from duckanon.job.linked_counts import LinkedPart, LinkedTables
from duckanon.job.linked_release import _sensitive, count_known_events
from duckanon.job.policy import Table
from tests.job.conftest import LINKED_PEOPLE, LINKED_POLICY


def policy(hospital: Path, *replacements: tuple[str, str]) -> Path:
    text = LINKED_POLICY
    for before, after in replacements:
        assert before in text
        text = text.replace(before, after)
    (hospital / "policy.toml").write_text(text, encoding="utf-8")
    return hospital / "policy.toml"


def holders_by_brute_force() -> dict[tuple, set[str]]:
    """Read the files as a receiver does: people of the same class who have any visit, two, or a visit and a result."""
    classes = dict(duckdb.sql("SELECT patient, age FROM 'patients_out.parquet'").fetchall())
    rows: dict[str, list[tuple]] = {one: [] for one in classes}
    for one, *label in duckdb.sql(
        "SELECT pid, ward, day FROM read_csv('visits_out.csv', all_varchar = true)"
    ).fetchall():
        rows[one].append(("visits", *label))
    for one, *label in duckdb.sql("SELECT patient, test FROM 'labs_out.parquet'").fetchall():
        rows[one].append(("labs", *label))
    held: dict[tuple, set[str]] = {}
    for one, own in rows.items():
        for some in (tuple(sorted(some)) for size in (0, 1, 2) for some in combinations(own, size)):
            if sum(label[0] == "labs" for label in some) < 2:
                held.setdefault((classes[one], some), set()).add(one)
    return held


def smallest_by_brute_force() -> int:
    return min(map(len, holders_by_brute_force().values()))


def test_events_are_released_together_and_counted_on_their_files(
    hospital: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = release(hospital / "policy.toml")
    assert [table["name"] for table in record["tables"]] == ["patients", "visits", "labs"]
    for table in record["tables"]:
        promise = {one["name"]: one for one in table["promises"]}["known_events"]
        assert (promise["asked"], promise["measured"]) == (5, smallest_by_brute_force())
        assert "any 2 events (visits: 2, labs: 1)" in promise["words"]
    keys = [
        set(duckdb.sql(f"SELECT DISTINCT {one}").fetchall())
        for one in (
            "patient FROM 'patients_out.parquet'",
            "pid FROM 'visits_out.csv'",
            "patient FROM 'labs_out.parquet'",
        )
    ]
    assert keys[1] <= keys[0]
    assert keys[2] <= keys[0]
    three, with_rows, with_absent, whole = record["linked"]["exposure"]
    assert (three["knows"], whole["people"]) == ("3 events", LINKED_PEOPLE)
    assert three["unique"] <= three["under_k"] <= whole["under_k"]
    assert with_rows["knows"] == "2 events and the number of all rows"
    assert with_absent["knows"] == "2 events and one that the person does not have"
    names = [table["output"]["path"] for table in record["tables"]]
    assert main(["verify", *names]) == 0
    assert "visits: known_events: confirmed: " in capsys.readouterr().out
    (path,) = hospital.glob("*.record.json")
    honest = path.read_text()
    record["linked"]["exposure"][0]["unique"] += 0.1
    path.write_text(json.dumps(record))
    assert main(["verify", *names]) == 1
    assert "linked: DIFFERS: attackers find another share of the people" in capsys.readouterr().out
    path.write_text(honest)
    text = (hospital / "visits_out.csv").read_text()
    changed = text.splitlines()
    changed[1] = changed[1].replace(changed[1].split(",")[1], "another ward", 1)
    (hospital / "visits_out.csv").write_text("\n".join(changed) + "\n")
    assert main(["verify", *names]) == 1
    assert "labs: known_events: DIFFERS: 1, recorded as " in capsys.readouterr().out


def test_an_event_that_a_person_does_not_have_tells_who_it_is(database: duckdb.DuckDBPyConnection) -> None:
    """Of ten people with two events, one lacks the third that all others have; these lack none that could be known."""
    con = database.cursor()
    con.execute("CREATE TEMP TABLE a AS SELECT p, e FROM range(10) AS t(p), range(3) AS s(e) WHERE p > 0 OR e < 2")
    tables = LinkedTables(con, [LinkedPart("shown", "a", "p", ["e"], 1)])
    more, _, absent, _ = tables.exposure(5)
    assert (more["people"], more["unique"], more["under_k"]) == (10, 0, 0)
    assert (absent["people"], absent["unique"], absent["under_k"]) == (1, 1, 1)


@pytest.mark.thorough
def test_a_release_that_breaks_the_promise_is_not_published(hospital: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels that somebody changes after the method are found: one row of a ward that nobody else has."""
    from duckanon.job import linked_release

    together = linked_release.release_together

    def changed(job: run.Run, people: dict, events: dict) -> None:
        together(job, people, events)
        name = events["visits"].released
        job.con.execute(f"UPDATE {name} SET ward = 'x' WHERE rowid = (SELECT min(rowid) FROM {name})").fetchall()

    with monkeypatch.context() as patched:
        patched.setattr(linked_release, "release_together", changed)
        with pytest.raises(PromiseBroken, match=r"known_events: promised 5, measured 1\. Whoever knows any 2 events"):
            release(hospital / "policy.toml")
    assert not list(hospital.glob("*_out.*"))
    days = 'name = "release_linked"\nladder = [{ day = "day" }]'
    with pytest.raises(PromiseBroken, match=r"rows would have to be left out \(\d+ rows of visits"):
        release(policy(hospital, ('name = "release_linked"', days)))
    weeks = 'name = "release_linked"\nladder = [{ day = "week" }]'
    with pytest.raises(PolicyError, match=r"ladder must give columns\.day of visits one of day, month, .*got week"):
        release(policy(hospital, ('name = "release_linked"', weeks)))
    with pytest.raises(PolicyError, match=r"max_confidence must be at least 0\.\d+, the largest share"):
        release(policy(hospital, ("[tables.visits]", "[tables.visits]\npromises = { max_confidence = 0.3 }")))


@pytest.mark.thorough
def test_known_events_tell_little_about_sensitive_columns(hospital: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The largest share, the fewest values and the distance are those that a receiver counts, and verify confirms."""
    limits = {"max_confidence": 0.8, "l": 4, "t": 0.3}
    written = ", ".join(f"{name} = {limit}" for name, limit in limits.items())
    record = release(policy(hospital, ("[tables.visits]", f"[tables.visits]\npromises = {{ {written} }}")))
    values: dict[str, set[str]] = {}
    for one, value in duckdb.sql("SELECT pid, diagnosis FROM 'visits_out.csv'").fetchall():
        values.setdefault(one, set()).add(value)
    everybody = Counter(value for own in values.values() for value in own)
    found = [Counter(value for one in people for value in values[one]) for people in holders_by_brute_force().values()]
    sizes = [len(people) for people in holders_by_brute_force().values()]
    expected = {
        "max_confidence": max(max(one.values()) / size for one, size in zip(found, sizes, strict=True)),
        "l": min(map(len, found)),
        "t": max(
            sum(abs(one[value] / one.total() - everybody[value] / everybody.total()) for value in everybody) / 2
            for one in found
        ),
    }
    promises = {one["name"]: one for one in record["tables"][1]["promises"]}
    for name, limit in limits.items():
        promise = promises[f"{name} of diagnosis"]
        assert promise["passed"]
        assert (promise["asked"], promise["measured"]) == (limit, pytest.approx(expected[name]))
    assert main(["verify", *(table["output"]["path"] for table in record["tables"])]) == 0
    shown = capsys.readouterr().out
    assert all(f"visits: {name} of diagnosis: confirmed: " in shown for name in limits)


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ('taken = "drop"', 'taken = "free"', "columns.taken is a date, more exact than the labels"),
        ('taken = "drop"', 'taken = "pseudonym"', "columns.taken: a pseudonym beside the person's links rows"),
        (
            'age = "quasi_identifier"',
            'age = "quasi_identifier"\nhouse = "pseudonym"',
            "columns.house: a pseudonym beside the person's links people",
        ),
        (
            'age = "quasi_identifier"',
            'age = "quasi_identifier"\nday = "free"',
            "columns.day is a quasi_identifier of visits",
        ),
        ('pid = { role = "person", pseudonym = true }', 'pid = "person"', "pseudonym = true }, since it releases"),
        ("known_events = 1 }", "known_events = 1, t = 0.2 }", "promises.t needs a column with the role sensitive"),
        (
            "[tables.visits]",
            '[tables.visits]\npromises = { l = 2, l_kind = "entropy" }',
            'promises.l must be a whole number, and l_kind "distinct"',
        ),
        ("known_events = 1 }", "known_events = 1, linked_k = 2 }", "promises.linked_k is not for release_linked"),
        ("known_events = 1 }", "known_events = 1, k = 4 }", "promises.k must be the same for all tables"),
        ("known_events = 1 }", "max_confidence = 0.5 }", "promises.max_confidence needs a column with the role sens"),
        ("k = 5\n", "k = 5\nknown_events = 5\n", "known_events must be at most 4; got 5"),
        (
            "[tables.labs]",
            '[tables.labs]\nmethod = { name = "release_linked", counts = "bands" }',
            "method.counts must be",
        ),
        (
            "[tables.labs]",
            '[tables.labs]\nmethod = { name = "release_linked", class = ["test"] }',
            "method.class is for a",
        ),
        ('name = "release_linked"', 'name = "recode"', "promises.known_events is for tables that release_linked"),
    ],
)
def test_policies_that_tell_more_than_is_counted_are_refused(
    hospital: Path, before: str, after: str, says: str
) -> None:
    path = policy(hospital, (before, after))
    with pytest.raises(PolicyError) as error:
        check_policy(path, with_data=False)
    assert says in str(error.value)
    assert ", line " in str(error.value)


DAY = "(DATE '2025-01-01' + patient::INTEGER)"


@pytest.mark.parametrize(
    ("table", "column", "values", "says"),
    [
        ("labs", "taken", f"strftime({DAY}, '%Y-%m-%d')", "holds dates, more exact than"),
        ("labs", "taken", f"strftime({DAY}, '%d.%m.%Y')", "holds dates"),
        ("labs", "taken", f"CASE WHEN patient % 3 = 0 THEN '' ELSE strftime({DAY}, '%-m/%-d/%y') END", "holds dates"),
        ("labs", "taken", f"strftime({DAY}, '%d %b %Y 10:15')", "holds dates"),
        ("labs", "taken", f"strftime({DAY}, '%Y%m%d')::INTEGER", "holds dates"),
        ("labs", "taken", f"epoch({DAY})::BIGINT", "holds dates"),
        ("labs", "taken", f"epoch_ms({DAY})::VARCHAR", "holds dates"),
        ("labs", "taken", f"[{DAY}]", "is a date"),
        ("labs", "taken", "['iron is low', '12345678', '2025', '1.5'][1 + patient % 4]", None),
        ("labs", "taken", "CASE WHEN patient = 1 THEN '2025-01-01' ELSE 'unknown' END", None),
        ("labs", "taken", "patient * 1000", None),
        ("patients", "first_visit", DAY, "is a date, more exact"),
        ("patients", "first_visit", f"strftime({DAY}, '%d/%m/%Y')", "holds dates"),
        ("patients", "household", "md5((patient // 3)::VARCHAR)", "links people, as the key of a household does"),
        ("patients", "household_size", "2 + patient % 2", None),
        ("patients", "marker", "md5((patient // 3)::VARCHAR)", None),
    ],
)
def test_what_tells_of_events_and_is_not_counted_is_found(
    hospital: Path, database: duckdb.DuckDBPyConnection, table: str, column: str, values: str, says: str | None
) -> None:
    """A date is exact whatever its type is, in the table of people, too; the key of a household links people."""
    before = 'taken = "drop"' if table == "labs" else 'age = "quasi_identifier"'
    path = policy(hospital, (before, f'age = "quasi_identifier"\n{column} = "free"'))
    query = f"SELECT patient, {values} AS {column} FROM '{table}.parquet'"
    types = {row[0]: row[1] for row in database.execute(f"DESCRIBE {query}").fetchall()}
    found = check_exact_events(database, policy_file.read(path), table, types, query)
    assert (says is None) == (found is None)
    assert found is None or f"columns.{column} {says}" in str(found)


@pytest.mark.thorough
def test_dates_as_text_stop_the_job(hospital: Path, database: duckdb.DuckDBPyConnection) -> None:
    """The check finds them in a sample of the rows, as the release does; narrowing lets them pass."""
    database.execute(
        "COPY (SELECT * REPLACE (strftime(taken, '%d.%m.%Y') AS taken) FROM 'labs.parquet') TO 'labs.parquet'"
    ).fetchall()
    role = ('taken = "drop"', 'taken = "free"')
    for refuse in (check_policy, release):
        with pytest.raises(PolicyError, match=r"line \d+: columns\.taken holds dates"):
            refuse(policy(hospital, role))
    assert len(check_policy(policy(hospital, role), with_data=False)) == 3
    narrowing = ("[tables.labs]", '[tables.labs]\nmethod = { name = "release_linked", narrowing = ["taken"] }')
    assert release(policy(hospital, role, narrowing))["outcome"] == "released"


@pytest.mark.thorough
def test_columns_of_two_types_and_people_without_events(hospital: Path, database: duckdb.DuckDBPyConnection) -> None:
    """A date that is a text in one table is refused; people without events are in their class all the same."""
    path = policy(hospital, ('taken = "drop"', 'day = "quasi_identifier"'))
    database.execute(
        "COPY (SELECT patient, test, taken::VARCHAR AS day FROM 'labs.parquet') TO 'labs.parquet'"
    ).fetchall()
    with pytest.raises(PolicyError, match=r"columns.day has the type VARCHAR here and DATE in visits"):
        release(path)
    database.execute(
        "COPY (SELECT patient, test, day::DATE AS day FROM 'labs.parquet' WHERE patient > 10) TO 'labs.parquet'"
    ).fetchall()
    database.execute("COPY (FROM 'visits.parquet' WHERE pid > 10) TO 'visits.parquet'").fetchall()
    record = release(path)
    assert record["tables"][0]["output"]["people"] == LINKED_PEOPLE
    assert duckdb.sql("SELECT DISTINCT day FROM 'labs_out.parquet'").fetchall() == [("*",)], "fewer are known of labs"
    assert record["linked"]["known"] == 2


@pytest.mark.thorough
def test_one_table_of_events_with_classes_bands_and_a_ladder(
    hospital: Path, database: duckdb.DuckDBPyConnection, capsys: pytest.CaptureFixture[str]
) -> None:
    first = "row_number() OVER (PARTITION BY pid ORDER BY day, ward) = 1"
    database.execute(
        f"COPY (SELECT *, pid % 2 AS arm FROM 'visits.parquet' QUALIFY pid % 3 > 0 OR {first}) TO 'visits.parquet'"
    ).fetchall()
    text = (
        LINKED_POLICY[: LINKED_POLICY.index("[tables.patients]")]
        + LINKED_POLICY[LINKED_POLICY.index("[tables.visits]") : LINKED_POLICY.index("[tables.labs]")]
    )
    ladder = 'ladder = [{ day = "quarter" }, { day = "year" }, { ward = "*" }]\ncounts = "bands"\nclass = ["arm"]\n'
    text = text.replace('name = "release_linked"\n', f'name = "release_linked"\n{ladder}')
    (hospital / "policy.toml").write_text(text + 'arm = "quasi_identifier"\n', encoding="utf-8")
    (table,) = release(hospital / "policy.toml")["tables"]
    days = {
        row[0]
        for row in duckdb.sql("SELECT DISTINCT day FROM read_csv('visits_out.csv', all_varchar = true)").fetchall()
    }
    assert days <= {"2025", *(f"2025-Q{number}" for number in range(1, 5))}
    bands = duckdb.sql("SELECT arm, row_count, count(DISTINCT pid) FROM 'visits_out.csv' GROUP BY ALL").fetchall()
    assert len(bands) > 2
    assert min(people for _, _, people in bands) >= 5
    treatments = {column["name"]: column["treatment"] for column in table["columns"]}
    assert treatments["arm"] == "released as it is, the class of a person"
    assert main(["verify", "visits_out.csv"]) == 0
    assert "known_events: confirmed" in capsys.readouterr().out


@pytest.mark.thorough
def test_a_draft_for_people_with_several_rows_names_the_method(
    hospital: Path, database: duckdb.DuckDBPyConnection
) -> None:
    database.execute(
        "COPY (SELECT 'P' || (1000 + pid) AS patient_id, * EXCLUDE (pid) FROM 'visits.parquet') TO 'visits.parquet'"
    ).fetchall()
    texts = []
    for file in ("visits.parquet", "patients.parquet"):
        con = run.connection()
        texts.append(draft(con, str(hospital / file), None, None))
    assert "To release which rows are one person's: release_linked" in texts[0]
    assert "release_linked" not in texts[1]


def test_the_events_of_a_person_are_known_only_where_a_pseudonym_links_them(
    database: duckdb.DuckDBPyConnection,
) -> None:
    con = database.cursor()
    con.execute("CREATE TEMP TABLE visits_out AS SELECT p, p % 2 AS ward FROM range(10) AS t(p)")
    linked = LinkedTables(con, [LinkedPart("visits", "visits_out", "p", ["ward"], 1)])
    releases = {}
    for name, is_shown in (("visits", True), ("people", False)):
        method = {"name": "release_linked"} if is_shown else {"name": "recode"}
        person = {"role": "person", "pseudonym": is_shown}
        table = {
            "source": {"path": "a.parquet"},
            "target": {"path": "b.parquet"},
            "columns": {"p": person, "ward": "quasi_identifier"},
            "method": method,
            "promises": {"k": 5},
        }
        releases[name] = (Table.model_validate(table), None, None)
    ((name, (promise,)),) = count_known_events(linked, releases).items()  # type: ignore[arg-type]
    assert (name, promise.name, promise.asked, promise.measured, promise.passed) == (
        "visits",
        "known_events",
        5,
        5,
        True,
    )


def test_of_two_tables_with_the_same_sensitive_column_the_stricter_promise_shapes_the_labels() -> None:
    """The other sensitive column is counted all the same, but one only shapes; an `l` of 1 asks for nothing."""
    promises = {
        "visits": {"max_confidence": 0.8, "l": 2, "t": 0.2},
        "labs": {"max_confidence": 0.6, "l": 3, "t": 0.4},
        "doses": {"max_confidence": 0.5, "l": 1},
    }
    tables = {
        name: Table.model_validate(
            {
                "source": {"path": "a.parquet"},
                "target": {"path": f"{name}.parquet"},
                "columns": {"p": {"role": "person", "pseudonym": True}, column: "sensitive"},
                "method": {"name": "release_linked"},
                "promises": {"k": 5, **promises[name]},
            }
        )
        for name, column in [("visits", "diagnosis"), ("labs", "Diagnosis"), ("doses", "drug")]
    }
    expected = {"sensitive": "Diagnosis", "max_confidence": 0.6, "l": 3, "t": 0.2}
    assert _sensitive(tables) == expected
    assert _sensitive({"doses": tables["doses"]}) == {"sensitive": "drug", "max_confidence": 0.5}

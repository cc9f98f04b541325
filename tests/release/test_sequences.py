"""anon.synthesize of people with several rows: what they keep, what never comes out, and what an attacker finds."""

from __future__ import annotations

import datetime
from collections import Counter, defaultdict
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ks_2samp

import duckanon
from duckanon import spectral
from duckanon._core.encoding.column_split import SplitOptions
from duckanon._core.encoding.parts import read_doubles
from duckanon._methods.releasable.safe_numbers import SafeNumbers
from duckanon._methods.synthesize import sequential_draw
from duckanon._methods.synthesize.sequence_columns import (
    Lengths,
    SequenceColumns,
    Sequences,
    cap_numbers,
    find_personal_columns,
    rank_among,
    subtract_columns,
)
from duckanon._methods.synthesize.sequential_draw import Stage, StageColumn, draw_transitions, fit_transitions
from duckanon.cli import statements
from duckanon.cli.demo_command import FILES
from tests.profiles import dear

START = datetime.date(2024, 1, 1)
DEPARTMENTS = ["medicine", "surgery", "psychiatry"]


def released(table: pa.Table, **options: Any) -> pa.Table:
    """Release people with a seed, unless told otherwise."""
    options = {"seed": 1, "person": "patient", "nulls": "category", **options}
    return spectral.synthesize(table, **options).read_all()


def clinic(people: int, seed: int) -> pa.Table:
    """Make patients: stays do not overlap, nobody comes back after death, chronic ones come every few weeks."""
    random = np.random.default_rng(seed)
    made: list[dict[str, Any]] = []
    for patient in range(people):
        chronic = bool(random.random() < 0.3)
        day, department = int(random.integers(0, 200)), random.choice(DEPARTMENTS, p=[0.6, 0.3, 0.1])
        weight = round(float(random.normal(75, 12)))
        own = []
        for visit in range(1 + random.poisson(4 if chronic else 0.8)):
            if visit:
                day += 7 * int(random.integers(1, 4)) if chronic else int(random.exponential(40))
                department = random.choice([department, *DEPARTMENTS], p=[0.7, 0.15, 0.1, 0.05])
                weight += int(random.integers(-1, 2)) * int(random.random() < 0.5)
            stay = 2 + int(random.poisson(2)) if department == "surgery" else int(random.geometric(0.5)) - 1
            own.append((day, stay, department, weight))
            day += stay
        death = day + int(random.integers(0, 60)) if random.random() < 0.2 else None
        sex = random.choice(["F", "M"])
        for start, stay, where, kilograms in own:
            made.append(
                {
                    "patient": f"P{patient}",
                    "sex": sex,
                    "chronic": chronic,
                    "death": None if death is None else START + datetime.timedelta(death),
                    "admitted": START + datetime.timedelta(start),
                    "discharged": START + datetime.timedelta(start + stay),
                    "department": where,
                    "weight": kilograms,
                }
            )
    return pa.Table.from_pylist([made[place] for place in random.permutation(len(made))])


def histories(table: pa.Table, *order: str) -> list[list[dict[str, Any]]]:
    """Return the rows of each person, in order."""
    found = defaultdict(list)
    for row in table.to_pylist():
        found[row["patient"]].append(row)
    return [sorted(rows, key=lambda row: [row[name] for name in order]) for rows in found.values()]


def pairs_of(table: pa.Table, *order: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    return [pair for rows in histories(table, *order) for pair in pairwise(rows)]


def contradictions(table: pa.Table) -> dict[str, int]:
    """Count what never happens in `clinic`."""
    found: Counter[str] = Counter()
    for rows in histories(table, "admitted", "discharged"):
        for name in ("sex", "chronic", "death"):
            found[name] += len({row[name] for row in rows}) > 1
        for row in rows:
            found["discharged before admitted"] += row["discharged"] < row["admitted"]
            found["after death"] += row["death"] is not None and row["discharged"] > row["death"]
    for last, row in pairs_of(table, "admitted", "discharged"):
        found["overlap"] += row["admitted"] < last["discharged"]
    return {rule: count for rule, count in found.items() if count}


# What is promised


@pytest.mark.thorough
def test_rules_within_a_person_are_kept() -> None:
    table = clinic(600, 1)
    assert contradictions(table) == {}
    assert contradictions(released(table)) == {}


@pytest.mark.thorough
def test_histories_are_like_those_of_the_table() -> None:
    """Numbers of rows, gaps, stays, transitions and numbers that stay as they were, of 1,000 people."""
    table = clinic(1000, 2)
    made = released(table)
    before, after = (histories(one, "admitted", "discharged") for one in (table, made))
    assert len(before) == len(after)
    assert ks_2samp([len(one) for one in before], [len(one) for one in after]).statistic < 0.03
    pairs = [pairs_of(one, "admitted", "discharged") for one in (table, made)]
    gaps = [[(row["admitted"] - last["admitted"]).days for last, row in one] for one in pairs]
    assert ks_2samp(*gaps).statistic < 0.08
    moves = [Counter((last["department"], row["department"]) for last, row in one) for one in pairs]
    assert all(abs(moves[0][move] / len(pairs[0]) - moves[1][move] / len(pairs[1])) < 0.04 for move in moves[0])
    stays = [np.mean([row["weight"] == last["weight"] for last, row in one]) for one in pairs]
    assert abs(stays[0] - stays[1]) < 0.1
    chronic = [[len(rows) for rows in one if rows[0]["chronic"]] for one in (before, after)]
    assert abs(np.mean(chronic[0]) - np.mean(chronic[1])) < 0.6


@st.composite
def people_with_rows(draw: st.DrawFn) -> tuple[pa.Table, int, str | None]:
    """Tables of people with up to nine rows: dates, timestamps or whole numbers that order them, or nothing; NULLs."""
    people = draw(st.integers(60, 120))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    lengths = np.minimum(random.geometric(draw(st.floats(0.2, 0.9)), people), 9)
    patient = np.repeat(np.arange(people), lengths)
    rows = len(patient)
    kind = draw(st.sampled_from(["date", "timestamp", "whole", "none"]))
    when = random.integers(0, 100, people)[patient] + random.integers(0, 200, rows)
    table = pa.table(
        {
            "patient": patient,
            "group": random.choice(["a", "b", "c"], people)[patient],
            "text": random.choice(["x", "y", "z", "rare"], rows, p=[0.5, 0.3, 0.19, 0.01]),
            "amount": np.round(np.exp(random.normal(size=rows)), draw(st.integers(0, 2))),
        }
    )
    order = {"date": "when", "timestamp": "when", "whole": "when", "none": None}[kind]
    if kind == "whole":
        table = table.append_column("when", pa.array(when))
    elif order is not None:
        unit = datetime.timedelta(days=1) if kind == "date" else datetime.timedelta(minutes=7)
        first = START if kind == "date" else datetime.datetime(2024, 1, 1)
        is_null = random.random(rows) < draw(st.sampled_from([0.0, 0.2]))
        values = [None if none else first + int(one) * unit for none, one in zip(is_null, when, strict=True)]
        table = table.append_column("when", pa.array(values))
    return table, draw(st.integers(3, 8)), order


@pytest.mark.thorough
@dear
@given(people_with_rows(), st.integers(0, 3))
def test_promises_counted_by_hand(drawn: tuple[pa.Table, int, str | None], seed: int) -> None:
    """New numbers of people, lengths and values shared by enough people, columns of people that do not change."""
    table, k, order = drawn
    options: dict[str, Any] = {"k": k, "leaf": 10, "keep_out": 5, "order_by": order, "seed": seed}
    try:
        made = released(table, **options)
    except ValueError as refusal:
        assert "too few numbers" in str(refusal) or "no value shared" in str(refusal)  # noqa: PT017
        return
    assert made.column_names == table.column_names
    assert made.schema.types[1:] == table.schema.types[1:]
    people = set(made.column("patient").to_pylist())
    assert people == set(range(1, len(people) + 1))
    before, after = ([len(rows) for rows in histories(one)] for one in (table, made))
    # where fewer than k people have several rows, every new row is a person's
    assert len(after) == (len(before) if sum(length > 1 for length in before) >= k else table.num_rows)
    assert max(after) <= sorted(before)[-k]
    held = Counter(min(length, sorted(before)[-k]) for length in before)
    assert all(held[length] >= 3 or held[length] == 0 for length in set(after))
    for name in table.column_names[1:]:
        holders = defaultdict(set)
        for row in table.to_pylist():
            holders[row[name]].add(row["patient"])
        least = k if name in ("group", "text") else 3
        assert all(len(holders[one]) >= least for one in made.column(name).to_pylist() if one in holders), name
    if Counter(before)[1] < len(before) - 2 * k:
        assert all(len({row["group"] for row in rows}) == 1 for rows in histories(made))
    assert released(table, **options).equals(made)


def test_rows_are_told_apart_by_position_length_and_the_row_before() -> None:
    """The order by brute force, and the cut where fewer than k people go on."""
    people = np.array([3, 3, 3, 3, 3, 8, 8, 5, 5, 5])
    order = np.array([2.0, 1, 3, 5, 4, 7, 6, 1, 3, 2])
    found = Sequences.of(people, [order], 2, np.random.default_rng(1))
    assert found.lengths.tolist() == [3, 3, 2]  # two people have three rows, one has five
    assert found.firsts.tolist() == [1, 7, 6]
    assert sorted(zip(found.later.tolist(), found.before.tolist(), found.position.tolist(), strict=True)) == [
        (0, 1, 1),
        (2, 0, 2),
        (5, 6, 1),
        (8, 9, 2),
        (9, 7, 1),
    ]


def test_transitions_are_those_of_the_table_where_trees_tell_none_apart() -> None:
    """One leaf for all: factors give every transition its share, but for those of fewer than three people."""
    random = np.random.default_rng(3)
    people = np.repeat(np.arange(2000), 2)
    last = random.choice(3, 4000, p=[0.5, 0.3, 0.2])
    own = np.where(random.random(4000) < 0.2, last, random.choice(3, 4000, p=[0.6, 0.3, 0.1]))
    last[:2], own[:2] = 3, 2  # one person
    shares = np.bincount(own)[None] / 4000
    leaves = np.zeros(4000, np.int64)
    factors = fit_transitions(last, own, people, leaves, shares, 10, random)
    assert len(factors) == 4  # one for each choice of a last row: others count as the first
    assert factors[3].tolist() == [1.0, 1.0, 1.0]
    cells = last  # one leaf, and what the last row was
    drawn = draw_transitions(shares * factors, cells, last, random)
    for one in range(3):
        before, after = (np.bincount(rows[last == one], minlength=3) for rows in (own, drawn))
        assert np.abs(before - after).max() <= 1
    few = [
        draw_transitions(np.array([[0.6, 0.4]]), np.zeros(1, np.int64), np.zeros(1, np.int64), random)[0]
        for _ in range(400)
    ]
    assert 0.3 < np.mean(few) < 0.5  # not what is most likely, every time


def test_numbers_of_next_rows_are_drawn_below_the_limit_of_each() -> None:
    """The days to the next row of people who die, say; without the limits many numbers are beyond."""
    random, people = np.random.default_rng(1), np.arange(600)
    days = pa.array(random.integers(0, 50, 600).astype(np.int32))
    gap = subtract_columns(
        "gap",
        pa.array(np.zeros(600, np.int32)).cast(pa.date32()),
        days.cast(pa.date32()),
        people,
        SplitOptions(10, {}, [], "error", random),
    )
    numbers = rank_among(SafeNumbers.of(gap, people, 10), people)
    kind = cap_numbers("kind", random.integers(0, 2, 600), 1)
    columns = StageColumn("kind", kind, kind, people, None), StageColumn("gap", gap, gap, people, numbers)
    stage = Stage(columns[:1], columns[1:], people, 20, 10, "off", random)
    given = {"kind": (random.integers(0, 2, 400),) * 2}
    highest = random.integers(5, 50, 400).astype(np.float64)
    beyond = []
    for limits in ({}, {"gap": highest}):
        quantiles = {"gap": numbers.quantiles(people, people)}
        drawn, is_broken = stage.draw(0, people, 400, given, quantiles, limits)
        assert not is_broken.any()
        beyond.append(int((read_doubles(numbers.grid.array(drawn["gap"][1], None)) > highest).sum()))
    assert beyond[0] > 100
    assert beyond[1] == 0


def test_numbers_and_many_choices_stay_as_often_as_in_the_table() -> None:
    """Seven next rows of ten have the weight of the row before, and the ward, one of twenty: by chance hardly any."""
    random, shape = np.random.default_rng(1), (200, 4)
    weight, ward = random.normal(75, 12, shape).round().astype(np.int64), random.integers(0, 20, shape)
    for values in (weight, ward):
        for visit in range(1, 4):
            stays = random.random(200) < 0.7
            values[stays, visit] = values[stays, visit - 1]
    table = pa.table(
        {
            "patient": np.repeat(np.arange(200), 4),
            "visit": np.tile(np.arange(4), 200),
            "weight": weight.ravel(),
            "ward": [f"w{one}" for one in ward.ravel()],
        }
    )
    pairs = pairs_of(released(table, order_by="visit"), "visit")
    assert len(pairs) == 600
    for name in ("weight", "ward"):
        assert 0.5 < np.mean([last[name] == row[name] for last, row in pairs]) < 0.9


def test_transitions_are_counted_of_columns_of_up_to_sixteen_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of more, most are made by few people; numbers that follow others are drawn without."""
    counted = []

    def fit(last: np.ndarray, following: np.ndarray, *others: Any) -> np.ndarray:
        counted.append(len(np.unique(following)))
        return fit_transitions(last, following, *others)

    monkeypatch.setattr(sequential_draw, "fit_transitions", fit)
    row = np.arange(900)
    random = np.random.default_rng(1)
    table = pa.table(
        {
            "patient": row // 3,
            "day": row % 3,
            "ward": [f"w{code}" for code in random.integers(0, 16, 900)],
            "room": [f"r{code}" for code in random.integers(0, 17, 900)],
            "dose": np.where(random.random(900) < 0.4, 0.0, random.normal(size=900)),
        }
    )
    released(table, k=3, order_by="day")
    assert counted
    assert set(counted) == {16}


def test_numbers_of_rows_stand_for_three_people_or_nobody() -> None:
    lengths = np.repeat([1, 2, 3, 5, 6, 9], [30, 2, 12, 1, 9, 4])
    found = Lengths.of(lengths, 10)
    drawn = found.draw(found.column.codes, np.random.default_rng(1))
    assert np.bincount(found.column.codes).min() >= 10
    assert set(drawn.tolist()) == {1, 3, 6, 9}
    assert np.abs(np.mean(drawn) - np.mean(lengths)) < 0.3


def test_limits_of_numbers_are_drawn_for_people_with_several_rows() -> None:
    """The dose of three people comes out in some releases only, that of two never, that of many always."""
    people = np.repeat(np.arange(240), 2)
    dose = np.repeat(np.repeat(np.arange(60), np.tile([2, 3, 7], 20)), 2)
    table = pa.table({"visit": np.tile([0, 1], 240), "dose": dose})
    shown = np.zeros(3)
    for seed in range(30):
        reading = SplitOptions(10, {}, [], "error", np.random.default_rng(seed))
        sequences = Sequences.of(people, [table.column("visit").to_numpy()], 10, np.random.default_rng(seed))
        numbers = SequenceColumns.of(table, people, reading, sequences, [], None).numbers[1]
        values = np.rint(read_doubles(numbers.grid.array(numbers.rare, None))).astype(int)
        shown += 1 - np.bincount(values % 3, minlength=3) / 20
    assert shown[0] == 0
    assert 0.1 < shown[1] / 30 < 0.45
    assert shown[2] == 30


def test_columns_of_people_may_differ_for_two() -> None:
    """One person with a typo does not change which columns are the person's."""
    person = np.repeat(np.arange(100), 3)
    sex = np.repeat(np.where(np.arange(100) % 2, "F", "M"), 3)
    for exceptions, expected in ((0, ["sex", "same"]), (2, ["sex", "same"]), (3, ["same"])):
        changed = sex.copy()
        changed[: 3 * exceptions : 3] = "?"
        table = pa.table({"sex": changed, "visit": np.tile([1, 2, 3], 100), "same": np.zeros(300)})
        assert find_personal_columns(table, person) == expected


# What an attacker finds


def test_what_one_person_alone_did_does_not_come_out() -> None:
    """Neither four hundred visits, nor a gap of ten years, nor two events that never follow each other."""
    random = np.random.default_rng(5)
    person = np.repeat(np.arange(300), 4)
    step = np.tile(np.arange(4), 300)
    day = np.repeat(random.integers(0, 300, 300), 4) + 10 * step + random.integers(0, 5, 1200)
    event = np.where(step % 2 == 0, random.choice(["a", "b"], 1200), random.choice(["c", "d"], 1200))
    before = np.roll(event, 1)
    event[(before == "a") & (event == "d")] = "c"
    event[(before == "b") & (event == "c")] = "d"  # a is followed by c, b by d
    often = np.concatenate([person, np.full(400, 999)])
    days, events = np.concatenate([day, np.arange(400)]), np.concatenate([event, np.tile(["a", "c"], 200)])
    days[3] += 3650
    events[[4, 5]] = ["a", "d"]
    table = pa.table(
        {
            "patient": often,
            "day": [START + datetime.timedelta(int(one)) for one in days],
            "event": events,
            "score": random.normal(size=1600).round(1),
        }
    )
    for seed in range(3):
        made = released(table, seed=seed)
        pairs = pairs_of(made, "day")
        assert max(len(rows) for rows in histories(made, "day")) == 4
        assert max((row["day"] - last["day"]).days for last, row in pairs) < 100
        moves = Counter((last["event"], row["event"]) for last, row in pairs if last["day"] < row["day"])
        assert moves[("a", "d")] == 0
        assert moves[("a", "c")] > 50


def membership_advantage(release: Callable[[pa.Table, int], pa.Table], rounds: int) -> float:
    """Return how often, of releases with and without a person of unusual rows, the one with them is nearer to them."""
    wins = []
    for number in range(rounds):
        table = clinic(150, number)
        unusual = [
            {
                "patient": "target",
                "sex": "F",
                "chronic": True,
                "death": None,
                "admitted": START + datetime.timedelta(30 + 25 * visit),
                "discharged": START + datetime.timedelta(40 + 25 * visit),
                "department": "psychiatry",
                "weight": 104 + visit,
            }
            for visit in range(5)
        ]
        distances = []
        for place, more in enumerate((unusual, [])):
            everybody = pa.concat_tables([table, pa.Table.from_pylist(more, table.schema)])
            made = release(everybody, 2 * number + place).to_pylist()
            nearest = [min(map(lambda row, own=own: _distance(row, own), made)) for own in unusual]
            distances.append(np.mean(nearest))
        wins.append(0.5 if distances[0] == distances[1] else float(distances[0] < distances[1]))
    return float(np.mean(wins))


def _distance(one: dict[str, Any], other: dict[str, Any]) -> float:
    """Compare two rows: deviations of numbers, and one for each other category."""
    stays = [(row["discharged"] - row["admitted"]).days for row in (one, other)]
    texts = sum(one[name] != other[name] for name in ("sex", "chronic", "department"))
    return texts + abs(one["weight"] - other["weight"]) / 12 + abs(stays[0] - stays[1]) / 2


@pytest.mark.thorough
def test_an_unusual_person_is_found_in_copies_and_hardly_in_new_people() -> None:
    """Of 12 pairs, the standard error of a guess is .14; of 24, 15 were right."""
    assert membership_advantage(lambda table, _: table, 3) == 1.0
    assert membership_advantage(lambda table, seed: released(table, seed=seed), 12) <= 0.85


# Several tables


@pytest.mark.thorough
def test_a_parent_and_its_children_joined_and_split(con: duckdb.DuckDBPyConnection) -> None:
    """Every child has a parent, parents without children stay as many, and children go with their parents."""
    con.execute(
        """CREATE TABLE patients AS
           SELECT 1000 + i AS id, CASE WHEN hash(i) // 64 % 2 = 0 THEN 'F' ELSE 'M' END AS sex,
                  20 + (hash(i, 'age') // 64 % 60)::INTEGER AS age
           FROM range(600) AS t(i);
           CREATE TABLE visits AS
           SELECT id AS patient, DATE '2025-01-01' + (60 * visit + hash(id, visit) // 64 % 30)::INTEGER AS visited,
                  CASE WHEN sex = 'F' AND hash(id, visit) // 64 % 3 > 0 THEN 'gynaecology' ELSE 'medicine' END AS ward
           FROM patients, range(4) AS v(visit) WHERE visit < age // 20 - 1 + hash(id) // 4096 % 2"""
    ).fetchall()
    con.execute(
        """CREATE TABLE linked AS FROM patients LEFT JOIN visits ON visits.patient = patients.id;
           CREATE TABLE made AS FROM anon.synthesize('linked', ['sex', 'age', 'visited', 'ward'], person := 'id',
                                                     nulls := 'category', seed := 1);
           CREATE TABLE new_patients AS SELECT DISTINCT id, sex, age FROM made;
           CREATE TABLE new_visits AS SELECT id AS patient, visited, ward FROM made WHERE visited IS NOT NULL"""
    ).fetchall()

    def one(query: str) -> Any:
        return con.execute(query).fetchall()[0][0]

    assert one("SELECT count(*) = 600 AND count(DISTINCT id) = 600 AND max(id) = 600 FROM new_patients")
    assert one("SELECT count(*) FROM made WHERE (visited IS NULL) <> (ward IS NULL)") == 0
    assert one("SELECT count(*) FROM new_visits WHERE patient NOT IN (SELECT id FROM new_patients)") == 0
    children = """SELECT count(visited) FROM {0}patients LEFT JOIN {0}visits ON patient = id GROUP BY id"""
    before, after = ([count for (count,) in con.execute(children.format(new)).fetchall()] for new in ("", "new_"))
    assert before.count(0) > 50
    assert ks_2samp(before, after).statistic < 0.04
    by_age = (
        "SELECT corr(age, visits) FROM (SELECT age, count(visited) AS visits FROM {0}patients LEFT JOIN {0}visits "
        "ON patient = id GROUP BY id, age)"
    )
    assert abs(one(by_age.format("")) - one(by_age.format("new_"))) < 0.1
    wards = (
        "SELECT count(*) FILTER (sex = 'M') FROM {0}visits JOIN {0}patients ON patient = id WHERE ward = 'gynaecology'"
    )
    assert one(wards.format("")) == one(wards.format("new_")) == 0


# The demo


@pytest.mark.thorough
def test_visits_of_the_demo() -> None:
    """Numbers of visits, gaps and transitions between departments of 10,000 patients are within .02."""
    con = duckanon.connect(":memory:")
    con.execute("SET VARIABLE people = 10000").fetchall()
    for statement in statements.split(statements.script(FILES / "population.sql")):
        con.execute(statement).fetchall()
    con.execute(
        """CREATE TABLE made AS FROM anon.synthesize('visits',
           ['sex', 'dob', 'occupation', 'visited', 'department', 'days_in_hospital', 'diagnosis'],
           person := 'patient_id', nulls := 'category', seed := 1)"""
    ).fetchall()
    found = [measured(con, table) for table in ("visits", "made")]
    for name in ("numbers", "gaps"):
        assert ks_2samp(found[0][name], found[1][name]).statistic <= 0.02, name
    moves = [Counter(one["moves"]) for one in found]
    leaving = [Counter(last for last, _ in one.elements()) for one in moves]
    for last, own in moves[0]:  # of those who come from a department
        shares = [one[last, own] / of[last] for one, of in zip(moves, leaving, strict=True)]
        assert abs(shares[0] - shares[1]) <= 0.02


def measured(con: duckdb.DuckDBPyConnection, table: str) -> dict[str, list]:
    """Return the numbers of visits, the gaps between them, and from where to where patients went."""
    rows = con.execute(
        f"""SELECT visited - lag(visited) OVER own AS gap, lag(department) OVER own, department
            FROM {table} WINDOW own AS (PARTITION BY patient_id ORDER BY visited, department)"""
    ).fetchall()
    numbers = con.execute(f"SELECT count(*) FROM {table} GROUP BY patient_id").fetchall()
    later = [row for row in rows if row[0] is not None]
    return {
        "numbers": [count for (count,) in numbers],
        "gaps": [gap for gap, _, _ in later],
        "moves": [(last, own) for _, last, own in later],
    }


def test_times_between_rows_that_few_people_have_are_refused_in_a_sentence() -> None:
    """Nine of 81 patients have a second row, five of them without its date."""
    days = [START + datetime.timedelta(days=int(day)) for day in np.random.default_rng(1).integers(0, 90, 81)]
    later = [None if patient < 5 else days[patient] + datetime.timedelta(days=3 + patient) for patient in range(9)]
    table = pa.table(
        {
            "patient": [*range(81), *range(9)],
            "group": ["abc"[patient % 3] for patient in [*range(81), *range(9)]],
            "when": pa.array([*days, *later], pa.date32()),
        }
    )
    with pytest.raises(ValueError, match=r'column "when" has too few numbers'):
        released(table, k=7, leaf=10, keep_out=5, order_by="when", seed=1)

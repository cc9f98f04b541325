"""`anon.assess` fails closed: judged by true roles, of generated tables here and of surveys in the thorough run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from duckanon._measure.assess import vocabulary
from duckanon._measure.assess.profiles import Numbers
from tests.assess import role_tables
from tests.sqltest import data_file

LETTERS = {
    "person key": "P",
    "household key": "H",
    "identifier": "I",
    "quasi-identifier": "Q",
    "possible quasi-identifier": "O",
    "sensitive": "S",
    "weight": "W",
    "constant": "C",
    "undecided": "?",
}

SURVEYS = {
    "adult.csv": "Q age education marital_status race sex native_country; QO workclass occupation relationship; "
    "DQ education_num; S capital_gain capital_loss; OQ hours_per_week; SO income; W fnlwgt",
    "nhanes.parquet": "PI seqn; OC cycle; Q gender race marital education age_years; SO income smoked100; S hiv "
    "drug_use ALB ALT AST ALP BUN CA CHOL HCO3 GGT GLU FE LDH PHOS TBIL TP TRIG UA CREA SOD K CL HDL HBA1C WBC RBC HGB "
    "MCV RDW PLT SBP; SD OSMO GLOB; QOS WEIGHT HEIGHT; DQSO BMI; QO household_size; W mec_weight",
    "acs_pums_2024_workers.parquet": "Q STATE PUMA AGEP SEX RAC1P HISP MAR SCHL OCCP INDP CIT; QO COW ESR; OQ WKHP "
    "WKWN; S PINCP WAGP; SO POVPIP; QD NATIVITY; W PWGTP",
    "CASCrefmicrodata.csv": "W AFNLWGT; SD AGI EMCONTRB FEDTAX PTOTVAL STATETAX TAXINC POTHVAL INTVAL PEARNVAL FICA "
    "WSALVAL ERNVAL",
    "risk/testdata.csv": "QO urbrur relat; OQ roof walls water electcon; Q sex age hhcivil; S expend income savings; "
    "HI ori_hid; WC sampling_weight; WD household_weights",
}


@dataclass
class Judgement:
    """Columns that were judged, and what was wrong with some."""

    columns: int = 0
    leave: list[str] = field(default_factory=list)
    undecided: Counter[str] = field(default_factory=Counter)
    possible: int = 0
    alarms: list[str] = field(default_factory=list)
    lost_keys: list[str] = field(default_factory=list)

    def add(self, table: str, roles: dict[str, str], truth: role_tables.Truth) -> None:
        assert roles.keys() == truth.keys()
        assert all(role != "free" for role in roles.values())
        for name, role in roles.items():
            true, said = truth[name], LETTERS[role]
            shown = f"{table}: {name} is {true}, called {role}"
            self.columns += 1
            self.possible += said == "O"
            self.undecided[table] += said == "?"
            if said not in true and (said in "WC" if true[0] in "PHIQOS" else said == "W"):
                self.leave.append(shown)
            if said == "S" and true[0] in "PHIQO" and "S" not in true:
                self.leave.append(shown)  # a sensitive column leaves as it is
            if said not in true and ((true[0] in "WDC" and said in "PHIQS") or (true[0] in "OSQ" and said in "PHI")):
                self.alarms.append(shown)
            if true[0] in "PH" and said not in "PHI":
                self.lost_keys.append(shown)
        assert self.undecided[table] <= 0.35 * len(roles), (table, roles)

    def check(self) -> None:
        assert self.leave == []
        assert self.lost_keys == []
        assert self.undecided.total() <= 0.2 * self.columns
        assert self.possible <= 0.4 * self.columns
        assert len(self.alarms) <= 0.03 * self.columns, self.alarms


def roles_of(con: duckdb.DuckDBPyConnection, table: str) -> dict[str, str]:
    return dict(con.execute(f"SELECT column_name, role FROM anon.assess('{table}')").fetchall())


def judge(con: duckdb.DuckDBPyConnection, tables: dict[str, tuple[pa.Table, role_tables.Truth]]) -> None:
    judgement = Judgement()
    for name, (made, truth) in tables.items():
        con.register("role_table", made)
        judgement.add(name, roles_of(con, "role_table"), truth)
        con.unregister("role_table")
    judgement.check()


@pytest.mark.thorough
def test_roles_of_generated_tables(con: duckdb.DuckDBPyConnection) -> None:
    """With names in two languages, with and without names."""
    chosen = ("clinic, German", "clinic, none", "survey", "survey, hidden names", "panel, hidden names", "payroll")
    made = role_tables.tables(seed=1)
    judge(con, {name: made[name] for name in chosen})


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(1, 4))
def test_roles_of_more_generated_tables(con: duckdb.DuckDBPyConnection, seed: int) -> None:
    judge(con, role_tables.tables(seed))


@pytest.mark.thorough
def test_roles_of_surveys(con: duckdb.DuckDBPyConnection) -> None:
    judgement = Judgement()
    for file, written in SURVEYS.items():
        truth = {}
        for part in written.split(";"):
            role, *names = part.split()
            truth |= dict.fromkeys(names, role)
        con.execute(f"CREATE OR REPLACE TEMP VIEW survey AS FROM '{data_file(file)}'").fetchall()
        judgement.add(file, roles_of(con, "survey"), truth)
    judgement.check()


@pytest.mark.thorough
def test_people_and_households_are_whole_in_a_sample(con: duckdb.DuckDBPyConnection) -> None:
    """Visits of people who live in families, shuffled: a sample of rows would break both keys."""
    random = np.random.default_rng(3)
    family = np.repeat(np.arange(20_000), random.integers(1, 5, 20_000))
    people = len(family)
    who = random.permutation(np.repeat(np.arange(people), random.integers(1, 4, people)))
    visits = pa.table(
        {
            "a": (1_000_003 + 17 * np.arange(people))[who],
            "b": (500_009 + 13 * np.arange(20_000))[family][who],
            "c": random.integers(1, 3, people)[who],
            "d": random.integers(0, 99, people)[who],
            "e": random.integers(0, 12, 20_000)[family][who],
            "f": random.integers(0, 40, 20_000)[family][who],
            "g": random.integers(0, 9, len(who)),
        }
    )
    con.register("role_table", visits)
    roles = roles_of(con, "role_table")
    con.unregister("role_table")
    assert (roles["a"], roles["b"]) == ("person key", "household key")
    assert "sensitive" not in roles.values()


def test_a_weight_that_tells_the_region_is_not_harmless(con: duckdb.DuckDBPyConnection) -> None:
    random = np.random.default_rng(4)
    region = random.integers(1, 9, 3000)
    spread = np.exp(random.normal(0, 0.05, 3000))
    for told, expected in ((region, "undecided"), (random.permutation(region), "weight")):
        con.register("role_table", pa.table({"region": region, "sampling_weight": 100 * 2.0**told * spread}))
        assert roles_of(con, "role_table") == {"region": "quasi-identifier", "sampling_weight": expected}
        con.unregister("role_table")


def test_a_weight_that_varies_little_is_one_of_strata_of_fifty_rows(con: duckdb.DuckDBPyConnection) -> None:
    """Of 200 rows: values of fewer rows each may be measured, whatever they are called."""
    con.register(
        "role_table",
        pa.table(
            {
                "sampling_weight": 101.37 + np.arange(200) % 4 * 9.21,
                "sampling_weight_b": 101.37 + np.arange(200) % 5 * 9.21,
            }
        ),
    )
    assert roles_of(con, "role_table") == {"sampling_weight": "weight", "sampling_weight_b": "undecided"}
    con.unregister("role_table")


def test_decimals_are_counted_as_they_are_written() -> None:
    numbers = Numbers(np.array([1, 20.5, 3.25, 4.125, -5.0625, 0, np.nan, 1200.01]), 8)
    assert numbers.decimals == {2: 2 / 7, 3: 1 / 7}


def test_sex_in_eight_languages(con: duckdb.DuckDBPyConnection) -> None:
    names = ["sex", "Geschlecht", "sexe", "sexo", "sesso", "género", "geslacht", "płeć"]
    columns = ", ".join(f'(i >> {place}) % 2 AS "{name}"' for place, name in enumerate(names))
    con.execute(f"CREATE OR REPLACE TEMP VIEW named AS SELECT {columns} FROM range(300) AS t(i)").fetchall()
    assert roles_of(con, "named") == dict.fromkeys(names, "quasi-identifier")


def test_the_number_of_a_visit_follows_from_nothing(con: duckdb.DuckDBPyConnection) -> None:
    """The first rows of all people are their first visits, and agree; aq and bq do in all rows."""
    con.execute(
        """CREATE TABLE visits AS
           SELECT 'P' || lpad(i::VARCHAR, 6, '0') AS person_id, 18 + (hash(i) % 70)::INTEGER AS age, j AS visit,
                  hash(i, 2) % 40 AS aq, (hash(i, 2) % 40) // 8 AS bq
           FROM range(900) AS t(i), range(4) AS u(j) WHERE j <= hash(i, 9) % 4"""
    ).fetchall()
    reasons = dict(con.execute("SELECT column_name, why FROM anon.assess('visits')").fetchall())
    assert "follows" not in reasons["visit"]
    assert "follows from aq" in reasons["bq"]


@pytest.mark.parametrize(
    ("value", "is_time"),
    [
        ("DATE '2024-01-01' + (hash(i, j) % 600)::INTEGER", True),
        ("'2024-' || lpad((1 + hash(i, j) % 12)::VARCHAR, 2, '0')", True),
        ("hash(i, j) % 5000", False),
        ("'ward ' || hash(i, j) % 97", False),
    ],
)
def test_rows_of_a_person_differ_by_dates_and_months_not_by_any_number(
    con: duckdb.DuckDBPyConnection, value: str, is_time: bool
) -> None:
    con.execute(
        f"""CREATE TABLE stays AS
            SELECT 'K' || lpad((hash(i) % 1000000007)::VARCHAR, 10, '0') AS code, 'house ' || hash(i, 1) % 7 AS house,
                   'plan ' || hash(i, 2) % 5 AS plan, {value} AS x
            FROM range(200) AS t(i), range(3) AS u(j)"""
    ).fetchall()
    (why,) = con.execute("SELECT why FROM anon.assess('stays') WHERE column_name = 'code'").fetchone()
    assert ("its rows differ by time" in why) is is_time
    assert ("the values do not show whether it is a person or a group" in why) is not is_time


@pytest.mark.parametrize(("years", "expected"), [(6, "person key"), (7, "household key")])
def test_a_person_s_ages_differ_by_six_years_at_most(con: duckdb.DuckDBPyConnection, years: int, expected: str) -> None:
    """In two of five pairs of rows, so that nine of ten are not nearer."""
    con.execute(
        f"""CREATE TABLE visits AS
            SELECT 'K' || lpad((hash(i) % 1000000007)::VARCHAR, 10, '0') AS code, 'house ' || hash(i, 1) % 7 AS house,
                   'plan ' || hash(i, 2) % 5 AS plan, 18 + i % 60 + CASE WHEN i % 5 < 2 THEN j * {years} ELSE 0 END AS x
            FROM range(300) AS t(i), range(2) AS u(j)"""
    ).fetchall()
    assert roles_of(con, "visits")["code"] == expected


@pytest.mark.parametrize(
    ("values", "is_country"),
    [
        (["no", "in"], False),  # codes of Norway and India, but two answers are nobody's nationality
        (["no", "in", "de"], True),
        (["germany", "france", "other"], True),
        (["red", "green", "blue"], False),
    ],
)
def test_two_words_are_no_countries(values: list[str], is_country: bool) -> None:
    assert vocabulary.tells_country(values) is is_country

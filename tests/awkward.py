"""Small awkward tables, each ordinary somewhere: what clinics, registers, logs and spreadsheets hold.

`TABLES` holds them by name. Every value is arithmetic on the number of its row, so that a table is the same wherever it
is made. Each table has

- ``rid``, the number of the row. No test draws it as a column to protect; where ``keep := ['rid'],
  narrowing := ['rid']`` is given, it tells which released row was which;
- its other columns: an SQL expression of ``i``, the number of the row, each;
- ``person``: the column that identifies people, None where every row is another person;
- ``claims``: what makes the table awkward, as SQL that is true of it. `tests/seams/test_awkward.py` checks the claims,
  and that every column has at least two values but those in ``constant``;
- ``hierarchies`` by column and ``linked`` tables: queries of other tables that are made with it.

To add a table: add an `Awkward` to a list, with claims that would be false if it were not awkward. Every test that runs
over `TABLES` then takes it, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import duckdb


@dataclass(frozen=True)
class Awkward:
    """An awkward table."""

    name: str
    size: int  # the number of rows
    columns: Mapping[str, str]  # the SQL of each column
    person: str | None = None
    claims: tuple[str, ...] = ()
    constant: tuple[str, ...] = ()  # the columns with fewer than two different values
    copies: int = 1  # how many times each row is there
    hierarchies: Mapping[str, str] = field(default_factory=dict)  # the query of a hierarchy by column
    linked: Mapping[str, str] = field(default_factory=dict)  # the query of a table about the same people by name

    @property
    def query(self) -> str:
        """The rows."""
        columns = ", ".join(f"{sql} AS {quoted(name)}" for name, sql in self.columns.items())
        rows = f"SELECT n, n // {self.copies} AS i FROM range({self.size}) AS r(n)"
        return f"SELECT n::INTEGER AS rid, {columns} FROM ({rows})"

    def hierarchy_of(self, column: str) -> str | None:
        """Return the name of a column's hierarchy; None where it has none."""
        return f"{self.name}_{column}_hierarchy" if column in self.hierarchies else None

    def create(self, con: duckdb.DuckDBPyConnection) -> None:
        """Make the table, its hierarchies and its linked tables."""
        queries = {self.name: self.query, **self.linked}
        queries |= {f"{self.name}_{column}_hierarchy": query for column, query in self.hierarchies.items()}
        for name, query in queries.items():
            con.execute(f"CREATE OR REPLACE TABLE {quoted(name)} AS {query}").fetchall()


def create(con: duckdb.DuckDBPyConnection, names: Iterable[str] | None = None) -> None:
    """Make some of the tables; all of them where no names are given."""
    for name in TABLES if names is None else names:
        TABLES[name].create(con)


def quoted(name: str) -> str:
    """Quote the name of a column or table."""
    return '"' + name.replace('"', '""') + '"'


# ---- values of a row


def spread(salt: int, below: int) -> str:
    """A whole number from 0 to `below`, exclusive, without an order: as hash() would give, which may change."""
    return f"((i * i * {7919 + 31 * salt} + i * 104729 + {salt * 15485863}) % 1000003 % {below})"


def pick(values: Iterable[str], salt: int) -> str:
    """One of several texts."""
    texts = ["'" + value.replace("'", "''") + "'" for value in values]
    return f"[{', '.join(texts)}][1 + {spread(salt, len(texts))}]"


def missing(sql: str, salt: int, every: int = 6) -> str:
    """A value that is NULL in about one row of so many."""
    return f"CASE WHEN {spread(salt, every)} <> 0 THEN {sql} END"


def day(salt: int, span: int, first: str = "1940-01-01") -> str:
    """A date in the span of days from the first one on."""
    return f"DATE '{first}' + {spread(salt, span)}::INTEGER"


def moment(salt: int, minutes: int) -> str:
    """A time from 2020 on."""
    return f"TIMESTAMP '2020-01-01' + to_minutes({spread(salt, minutes)})"


AGE = f"(20 + {spread(1, 60)})::INTEGER"
SEX = f"['F', 'M'][1 + ({spread(2, 97)} >= 55)::INTEGER]"
ZIP = f"lpad((1000 + 100 * {spread(3, 9)} + {spread(4, 6)})::VARCHAR, 5, '0')"
DIAGNOSIS = pick(["flu", "cold", "asthma", "angina", "ulcer"], 5)
BMI = f"(18 + {spread(6, 200)} / 10.0)::DOUBLE"
BORN = day(7, 20000)
PERSON = f"'p' || lpad({spread(8, 45)}::VARCHAR, 3, '0')"

PATIENT = {"age": AGE, "sex": SEX, "diagnosis": DIAGNOSIS, "bmi": BMI}
VISIT = {"pid": PERSON, **PATIENT, "born": BORN}

LABELS = ["*", "other", "Total", "[1, 2)", "{a,b}", "<5", "NULL", "", " ", ">=90", "[1, 2]", "a"]
"""Genuine values that look like what the package makes up."""

STRANGE = ["e\u0301", "\u00e9", "\U0001f600", "\u05e9\u05dc\u05d5\u05dd", "\u202eabc", "a\tb", "a\nb", "\x01", "%s {0}"]
STRANGE += ["'", '"', "\\", "\u200b", "a", "A", "a "]

NULL_SPELLINGS = ["NULL", "null", "NA", "N/A", "n/a", "nan", "NaN", "None", "-", "?", "", " ", "unknown", "-99", "."]

LATIN_1 = ["MÃ¼nchen", "KÃ¶ln", "München", "Köln", "M\ufffdnchen", "D\xfcren\x96Nord", "Caf\xc3\xa9", "\xa0Bonn"]
"""UTF-8 read as Latin-1, what could not be read, a control character of Windows-1252, a space that is none."""

HUGE = ["-170141183460469231731687303715884105728", "170141183460469231731687303715884105727", "0", "-1", "1"]
HUGE += ["36893488147419103232", "9007199254740993"]

DAYS = ["0001-01-01", "9999-12-31", "0044-03-15 (BC)", "infinity", "-infinity", "2020-02-29", "1970-01-01"]
MOMENTS = ["infinity", "2262-04-12 00:00:00", "1677-01-01", "2020-10-25 02:30:00.000001"]

TOWNS = ["Mainz", "Trier", "Speyer", "Worms", "Bonn", "Köln", "Aachen", "Wien", "Graz", "Genf"]

# The names of parameters, and of columns that the functions return: a table may have them, too
PARAMETERS = {"k": AGE, "tbl": SEX, "cols": DIAGNOSIS, "seed": BMI, "by": BORN, "person": PERSON, "value": ZIP}
RESULTS = {"box": AGE, "rows": SEX, "class_size": DIAGNOSIS, "count": BMI, "risk": BORN, "label": ZIP, "people": PERSON}

_DRUGS = f"""
    SELECT {PERSON} AS pid, {pick(["A10", "B20", "X99"], 6)} AS code, {spread(7, 4)} AS dose
    FROM range(100) AS r(i)"""
_EVENT_PEOPLE = f"""
    SELECT {PERSON} AS pid, ['F', 'M'][1 + min(i) % 2] AS sex, DATE '1950-01-01' + min(i)::INTEGER AS day
    FROM range(120) AS r(i) GROUP BY pid"""

_TOWN_HIERARCHY = """
    FROM (VALUES ('Mainz', 'Pfalz', 'DE'), ('Trier', 'Pfalz', 'DE'), ('Speyer', 'Pfalz', 'DE'),
                 ('Worms', 'Pfalz', 'DE'), ('Bonn', 'NRW', 'DE'), ('Köln', 'NRW', 'DE'), ('Aachen', 'NRW', 'DE'),
                 ('Wien', 'AT', 'AT'), ('Graz', 'AT', 'AT'), ('Genf', 'Genf', 'Genf')) AS h(town, state, country)"""
_WARD_HIERARCHY = """
    SELECT 'w' || w AS ward, CASE WHEN w < 6 THEN 'w' || w // 2 * 2 || '+' ELSE 'w' || w END AS pair, '*' AS everything
    FROM range(8) AS r(w)"""

_PEOPLE = [
    Awkward("plain", 160, {"age": AGE, "sex": SEX, "zip": ZIP, "diagnosis": DIAGNOSIS, "bmi": BMI, "born": BORN}),
    Awkward("visits", 200, VISIT, person="pid", claims=("count(DISTINCT pid) BETWEEN 30 AND 60",)),
    Awkward(
        "nulls",
        150,
        {
            **{name: missing(sql, 20 + n) for n, (name, sql) in enumerate(VISIT.items())},
            "smoker": missing(f"{spread(9, 3)} = 0", 30),
            "seen": missing(moment(9, 90000), 31),
            "cost": missing(f"({spread(10, 900)} / 10)::DECIMAL(6, 1)", 32),
        },
        person="pid",
        claims=tuple(
            f"count(*) FILTER ({name} IS NULL) BETWEEN 10 AND 50" for name in (*VISIT, "smoker", "seen", "cost")
        ),
    ),
    Awkward(
        "rows_of_nobody",
        120,
        {**VISIT, "pid": missing(PERSON, 9, 3)},
        person="pid",
        claims=("count(*) FILTER (pid IS NULL) BETWEEN 20 AND 60",),
    ),
    Awkward(
        "half_of_one_person",
        160,
        {**PATIENT, "pid": f"CASE WHEN i % 2 = 0 THEN 'boss' ELSE 'p' || {spread(8, 60)} END"},
        person="pid",
        claims=("count(*) FILTER (pid = 'boss') = count(*) / 2",),
    ),
    Awkward("few_people", 90, {**VISIT, "pid": "'p' || (i % 3)"}, person="pid", claims=("count(DISTINCT pid) = 3",)),
    Awkward("nobody", 60, {**PATIENT, "pid": "NULL::VARCHAR"}, person="pid", constant=("pid",)),
    Awkward(
        "twins",
        90,
        {**PATIENT, "zip": ZIP},
        copies=3,
        claims=("count(*) = 3 * count(DISTINCT (age, sex, zip, bmi, diagnosis))",),
    ),
    Awkward(
        "measure_of_few",  # the measure is NULL for most people of each cell
        120,
        {
            "pid": "'p' || i",
            "ward": pick(["north", "south", "east"], 3),
            "sex": SEX,
            "cost": missing(f"{spread(6, 900)} / 4.0", 7, 2),
            "stay": f"CASE WHEN {spread(8, 6)} = 0 THEN {spread(9, 30)} END::INTEGER",
        },
        person="pid",
        claims=("count(stay) < 40", "count(cost) BETWEEN 40 AND 90"),
    ),
    Awkward(
        "events",  # two tables about the same people that share columns
        120,
        {
            "pid": PERSON,
            "code": pick(["A10", "B20", "C30", "D40"], 3),
            "day": missing(day(4, 700, "2022-01-01"), 5, 9),
            "sex": SEX,
        },
        person="pid",
        linked={
            "events_of_drugs": _DRUGS,
            "events_people": _EVENT_PEOPLE,
        },
        claims=(
            "(SELECT count(*) FROM events JOIN events_of_drugs USING (pid, code)) > 10",
            "(SELECT count(*) = count(DISTINCT pid) FROM events_people)",
        ),
    ),
]

_NUMBERS = [
    Awkward(
        "float_in_double",
        140,
        {
            "dose": f"({spread(6, 97)} / 10)::FLOAT::DOUBLE",
            "share": f"({spread(7, 1000)} / 3)::FLOAT",
            "sex": SEX,
            "diagnosis": DIAGNOSIS,
        },
        claims=("bool_and(dose = dose::FLOAT::DOUBLE)", "count(*) FILTER (dose <> round(dose, 1)) > 50"),
    ),
    Awkward(
        "negative_zero",
        90,
        {
            "balance": f"CASE i % 3 WHEN 0 THEN -0.0::DOUBLE WHEN 1 THEN 0.0::DOUBLE ELSE ({spread(3, 9)} - 4) / 2 END",
            "sex": SEX,
            "age": AGE,
        },
        claims=("count(*) FILTER (balance::VARCHAR = '-0.0') = 30", "count(DISTINCT balance) BETWEEN 5 AND 9"),
    ),
    Awkward(
        "nan_and_infinities",
        100,
        {
            "x": "CASE i % 10 WHEN 0 THEN 'nan' WHEN 1 THEN 'inf' WHEN 2 THEN '-inf' "
            f"ELSE ({spread(6, 50)} / 4)::VARCHAR END::DOUBLE",
            "y": "CASE WHEN i % 25 = 3 THEN 'nan'::FLOAT ELSE (i % 7)::FLOAT END",
            "sex": SEX,
            "age": AGE,
        },
        claims=("count(*) FILTER (isnan(x)) = 10", "count(*) FILTER (isinf(x)) = 20", "count(*) FILTER (isnan(y)) = 4"),
    ),
    Awkward(
        "ends_of_double",
        100,
        {
            "x": f"([1e308, -1e308, 5e-324, 1e-300, 0, 1, 3.5]::DOUBLE[])[1 + {spread(6, 7)}]",
            "y": f"pow(10.0, {spread(7, 600)} - 300)",
            "sex": SEX,
            "age": AGE,
        },
        claims=("max(x) = 1e308", "min(x) = -1e308", "max(y) / min(y) > 1e300"),
    ),
    Awkward(
        "decimals",
        120,
        {
            "wide": f"({spread(6, 90000)} / 7)::DECIMAL(38, 10)",
            "small": f"({spread(7, 900)} / 10)::DECIMAL(4, 1)",
            "top": f"('9999999999999999999999999999.' || lpad({spread(4, 99)}::VARCHAR, 10, '0'))::DECIMAL(38, 10)",
            "euros": f"({spread(5, 900)} * 100)::DECIMAL(18, 0)",
            "sex": SEX,
        },
        claims=("count(DISTINCT top) > 20", "count(DISTINCT top::DOUBLE) = 1"),
    ),
    Awkward(
        "huge",
        90,
        {
            "h": f"{pick(HUGE, 5)}::HUGEINT",
            "u": f"18446744073709551615::UBIGINT - {spread(6, 40)}::UBIGINT",
            "b": f"9223372036854775807 - {spread(7, 40)}",
            "n": f"-9223372036854775807 - 1 + {spread(8, 40)}",
            "id": f"9007199254740990 + {spread(9, 9)}",
            "sex": SEX,
        },
        claims=("count(DISTINCT b) > 20", "count(DISTINCT b::DOUBLE) = 1", "min(n) = -9223372036854775808"),
    ),
    Awkward(
        "small_integers",
        120,
        {
            "t": f"({spread(3, 256)} - 128)::TINYINT",
            "ut": f"{spread(4, 256)}::UTINYINT",
            "s": f"({spread(5, 65536)} - 32768)::SMALLINT",
            "ui": f"({spread(6, 65536)} * 65536)::UINTEGER",
            "sex": SEX,
        },
        claims=("min(t) < -100", "max(ui) > 4000000000"),
    ),
    Awkward(
        "zeros_and_negatives",
        150,
        {
            "balance": f"CASE WHEN i % 2 = 0 THEN 0 ELSE {spread(5, 500)} - 250 END",
            "cigarettes": f"CASE i % 5 WHEN 0 THEN -8 WHEN 1 THEN 0 ELSE {spread(4, 30)} END",
            "sex": SEX,
            "age": AGE,
        },
        claims=("count(*) FILTER (balance = 0) >= 75", "count(*) FILTER (cigarettes = -8) = 30", "min(balance) < -100"),
    ),
    Awkward(
        "heavy_tails",
        200,
        {
            "wage": f"exp({spread(6, 3000)} / 150)",
            "one_far": f"CASE WHEN i = 17 THEN 1e12 ELSE {spread(4, 40)} END",
            "sex": SEX,
            "age": AGE,
        },
        claims=("max(wage) > 20 * median(wage)", "count(*) FILTER (one_far > 40) = 1"),
    ),
    Awkward(
        "derived",
        150,
        {
            "a": f"{spread(5, 40)}::INTEGER",
            "b": f"{spread(6, 30)}::INTEGER",
            "total": f"({spread(5, 40)} + {spread(6, 30)})::INTEGER",
            "decade": f"({spread(5, 40)} // 10)::INTEGER",
            "sex": SEX,
        },
        claims=("bool_and(total = a + b)", "bool_and(decade = a // 10)"),
    ),
]

_TIMES = [
    Awkward(
        "dates",
        120,
        {
            "born": missing(BORN, 30, 8),
            "seen": f"TIMESTAMP '2020-01-01' + to_seconds({spread(9, 90000)} * 991)",
            "zoned": f"TIMESTAMPTZ '2020-01-01 00:00:00+02' + to_minutes({spread(4, 50000)} * 13)",
            "as_text": f"strftime({day(5, 9000, '1990-01-01')}, '%d.%m.%Y')",
            "iso_text": f"({day(6, 900, '2020-01-01')})::VARCHAR",
            "epoch": f"(1500000000 + {spread(6, 90000)} * 997)::BIGINT",
            "sex": SEX,
        },
        claims=(
            "count(*) FILTER (born IS NULL) BETWEEN 5 AND 30",
            "count(DISTINCT as_text) > 100",
            "typeof(min(zoned)) = 'TIMESTAMP WITH TIME ZONE'",
        ),
    ),
    Awkward(
        "ends_of_dates",
        60,
        {
            "day": f"{pick(DAYS, 3)}::DATE",
            "ts": f"{pick(MOMENTS, 4)}::TIMESTAMP",
            "sex": SEX,
            "age": AGE,
        },
        claims=("count(DISTINCT day) = 7", "count(*) FILTER (isinf(ts)) > 5", "min(day) = '-infinity'"),
    ),
    Awkward(
        "timestamps",
        80,
        {
            "ts_s": f"({moment(9, 150000)})::TIMESTAMP_S",
            "ts_ms": f"({moment(8, 150000)})::TIMESTAMP_MS",
            "ts_ns": f"({moment(7, 150000)})::TIMESTAMP_NS",
            "clock": f"TIME '00:00:00' + to_minutes({spread(6, 1440)})",
            "zoned_clock": f"('10:' || lpad({spread(4, 60)}::VARCHAR, 2, '0') || ':00+02')::TIMETZ",
            "stay": f"to_days({spread(5, 40)}::INTEGER)",
            "sex": SEX,
        },
    ),
    Awkward(
        "one_day_a_month",
        96,
        {
            "day": "make_date(2010 + (i // 12) % 8, 1 + i % 12, 15)",
            "one_year": "make_date(2020, 1 + i % 12, 1 + i % 28)",
            "sex": SEX,
            "age": AGE,
        },
        claims=("count(DISTINCT day(day)) = 1", "count(DISTINCT year(one_year)) = 1"),
    ),
]

_TYPES = [
    Awkward(
        "enum_uuid_boolean",
        120,
        {
            "grade": f"{pick(['low', 'mid', 'high'], 3)}::ENUM('low', 'mid', 'high', 'never')",
            "device": f"('00000000-0000-0000-0000-' || lpad({spread(5, 12)}::VARCHAR, 12, '0'))::UUID",
            "rare_device": "('00000000-0000-0000-0000-' || "
            "lpad((CASE WHEN i < 100 THEN i % 3 ELSE i END)::VARCHAR, 12, '0'))::UUID",
            "smoker": f"{spread(4, 3)} = 0",
            "age": AGE,
        },
        claims=("count(DISTINCT rare_device) = 23", "bool_or(smoker) AND NOT bool_and(smoker)"),
    ),
    Awkward(
        "nested",
        80,
        {
            "codes": f"[{spread(3, 3)}, {spread(4, 2)}]",
            "pair": f"{{'a': {spread(5, 3)}, 'b': 'x'}}",
            "tags": f"MAP {{'m': {spread(6, 3)}}}",
            "fixed": f"[{spread(3, 2)}, 1]::INTEGER[2]",
            "sex": SEX,
            "age": AGE,
        },
    ),
    Awkward(
        "deep",  # types that DuckDB's own functions and Arrow do not all take
        80,
        {
            "lists": f"[[{spread(3, 2)}], [NULL]]",
            "of_lists": f"MAP {{'k': [{spread(5, 2)}]}}",
            "inside": f"{{'a': {{'b': {spread(4, 3)}}}, 'l': ['x', NULL]}}",
            "either": f"CASE WHEN i % 2 = 0 THEN union_value(n := {spread(6, 3)}) END",
            "sex": SEX,
            "age": AGE,
        },
        claims=("typeof(min(lists)) = 'BIGINT[][]'",),
    ),
    Awkward(
        "binary",
        80,
        {
            "raw": f"encode('b' || {spread(3, 4)})",
            "bits": f"{spread(4, 4)}::BIT",
            "ends": f"CASE WHEN {spread(5, 3)} = 0 THEN '\\x00\\xFF' ELSE '' END::BLOB",
            "sex": SEX,
            "age": AGE,
        },
    ),
    Awkward(
        "untyped_null",
        40,
        {"nothing": "NULL", "sex": SEX, "age": AGE},
        constant=("nothing",),
        claims=("""(SELECT column_type FROM (DESCRIBE untyped_null) WHERE column_name = 'nothing') = '"NULL"'""",),
    ),
]

_TEXTS = [
    Awkward(
        "labels",
        150,
        {
            "label": pick(LABELS, 3),
            "topic": pick([*LABELS[:3], "b"], 4),
            "code": pick(["0", "1", "01", "1.0", "1e0", " 1"], 5),
            "age": AGE,
        },
        claims=(
            "count(DISTINCT label) = 12",
            "count(*) FILTER (label = '*') > 3",
            "count(DISTINCT code) = 6",
            "count(DISTINCT code::DOUBLE) = 2",
        ),
    ),
    Awkward(
        "genuine_labels",  # values that many people share and that the package makes up for others
        150,
        {
            "job": f"CASE {spread(3, 4)} WHEN 0 THEN 'other' WHEN 1 THEN '*' WHEN 2 THEN 'clerk' "
            "ELSE 'job ' || (i % 40) END",
            "star": pick(["*", "a"], 4),
            "age": AGE,
        },
        claims=("count(*) FILTER (job = 'other') > 10", "count(*) FILTER (job = '*') > 10", "count(DISTINCT job) > 20"),
    ),
    Awkward(
        "strange_text",
        130,
        {"t": pick(STRANGE, 3), "u": pick(STRANGE[:4], 4), "long": f"repeat('x', 5000) || {spread(5, 4)}", "age": AGE},
        claims=("count(DISTINCT t) = 16",),
    ),
    Awkward(
        "null_spellings",
        150,
        {
            "answer": f"CASE WHEN {spread(2, 2)} = 0 THEN 'yes' ELSE {pick(NULL_SPELLINGS, 3)} END",
            "income": f"CASE WHEN {spread(4, 4)} = 0 THEN {pick(NULL_SPELLINGS, 5)} "
            f"ELSE (1000 + 10 * {spread(6, 90)})::VARCHAR END",
            "sex": SEX,
            "age": AGE,
        },
        claims=("count(DISTINCT answer) > 12", "count(TRY_CAST(income AS DOUBLE)) BETWEEN 80 AND 140"),
    ),
    Awkward(
        "latin_1",
        120,
        {
            "town": pick(LATIN_1, 3),
            "name": pick(["Müller", "MÃ¼ller", "Mueller", "MULLER", "Muller"], 4),
            "age": AGE,
            "sex": SEX,
        },
        claims=("count(DISTINCT town) = 8", "count(DISTINCT name) = 5"),
    ),
    Awkward(
        "numbers_as_text",
        120,
        {
            "number": f"({spread(6, 90)} / 10)::VARCHAR",
            "mostly": f"CASE WHEN i % 9 = 0 THEN 'n/a' ELSE {spread(5, 80)}::VARCHAR END",
            "comma": f"replace(({spread(7, 90)} / 10)::VARCHAR, '.', ',')",
            "zip": ZIP,
            "age": AGE,
        },
        claims=("count(TRY_CAST(number AS DOUBLE)) = 120", "bool_and(zip LIKE '0%')"),
    ),
    Awkward(
        "towns",  # hierarchies whose branches end at different heights
        140,
        {"town": pick(TOWNS, 3), "ward": f"'w' || {spread(4, 8)}", "age": AGE},
        hierarchies={
            "town": _TOWN_HIERARCHY,
            "ward": _WARD_HIERARCHY,
        },
        claims=(
            "(SELECT count(DISTINCT state) = 4 AND count(DISTINCT country) = 3 FROM towns_town_hierarchy)",
            "(SELECT count(*) = 2 FROM towns_ward_hierarchy WHERE ward = pair)",
        ),
    ),
]

_NAMES = [
    Awkward(
        "names_to_quote",
        110,
        {"größe": AGE, 'a"b': SEX, "select": DIAGNOSIS, "with space": BMI, "it's": BORN, "a.b": ZIP, "group": PERSON},
        person="group",
    ),
    Awkward("names_of_parameters", 110, {**PARAMETERS, "keep": spread(3, 5)}, person="person"),
    Awkward("names_of_results", 110, RESULTS, person="people"),
    Awkward("names_of_ours", 90, {"_duckanon_x": AGE, "_duckanon_row": SEX, "_DUCKANON_number": DIAGNOSIS, "bmi": BMI}),
    Awkward(
        "names_beside_ours",
        90,
        {
            "bmi": BMI,
            "age": AGE,
            "sex": SEX,
            "_duckanon_row": "'x'",
            "_duckanon_one": "'x'",
            "_duckanon_sizes": spread(4, 3),
        },
        constant=("_duckanon_row", "_duckanon_one"),
    ),
    Awkward(
        "names_without_letters",
        90,
        {" ": AGE, "%": SEX, "\U0001f600": DIAGNOSIS, "{0}": BMI, "a,b": ZIP, "1": spread(3, 4)},
    ),
    # DuckDB compares names without regard to the case of ASCII only, Python's lower() knows all of Unicode
    Awkward(
        "names_in_two_cases",
        90,
        {"Ä": AGE, "ä": SEX, "\u212a": DIAGNOSIS, "k": BMI, "ſ": ZIP, "s": spread(3, 4), "Age": spread(4, 30)},
        claims=("(SELECT count(*) FROM (DESCRIBE names_in_two_cases)) = 8",),
    ),
]

_SHAPES = [
    Awkward("no_row", 0, VISIT, person="pid", constant=tuple(VISIT), claims=("count(*) = 0",)),
    Awkward("one_row", 1, VISIT, person="pid", constant=tuple(VISIT), claims=("count(*) = 1",)),
    Awkward("two_rows", 2, VISIT, person="pid", claims=("count(*) = 2",)),
    Awkward(
        "all_equal",
        80,
        {"age": "34", "sex": "'F'", "bmi": "1.5::DOUBLE", "born": "DATE '2020-02-29'", "diagnosis": "'flu'"},
        constant=("age", "sex", "bmi", "born", "diagnosis"),
    ),
    Awkward(
        "some_constant",
        70,
        {"age": "7", "sex": "'x'", "bmi": "0.0::DOUBLE", "born": "DATE '2020-01-01'", "diagnosis": DIAGNOSIS},
        constant=("age", "sex", "bmi", "born"),
    ),
    Awkward(
        "all_different",
        90,
        {
            "age": "i * 3",
            "name": "'name ' || i",
            "bmi": "i * 1.37::DOUBLE",
            "born": "DATE '1990-01-01' + (i * 11)::INTEGER",
        },
        claims=("count(*) = count(DISTINCT age)", "count(*) = count(DISTINCT name)", "count(*) = count(DISTINCT born)"),
    ),
    Awkward(
        "all_null",
        50,
        {
            "age": "NULL::INTEGER",
            "sex": "NULL::VARCHAR",
            "bmi": "NULL::DOUBLE",
            "born": "NULL::DATE",
            "pid": "'p' || i",
        },
        person="pid",
        constant=("age", "sex", "bmi", "born"),
    ),
    Awkward(
        "skewed",
        200,
        {
            "country": "CASE WHEN i < 188 THEN 'DE' ELSE 'rare' || (i % 7) END",
            "code": "CASE WHEN i < 195 THEN 1 ELSE i END",
            "age": AGE,
            "bmi": BMI,
        },
        claims=("count(*) FILTER (country = 'DE') = 188", "count(DISTINCT code) = 6"),
    ),
    Awkward(
        "wide",
        60,
        {f"c{n}": spread(n + 1, 2 + n % 9) for n in range(300)},
        claims=("(SELECT count(*) FROM (DESCRIBE wide)) = 301",),
    ),
]

TABLES = {table.name: table for table in (*_PEOPLE, *_NUMBERS, *_TIMES, *_TYPES, *_TEXTS, *_NAMES, *_SHAPES)}
"""The catalogue."""

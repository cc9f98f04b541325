"""Values of any type, and very long ones: each function works on them, or refuses them in one sentence."""

from __future__ import annotations

import re
import warnings

import duckdb
import pytest

from duckanon._bridge import parcels

TYPES = {
    "JSON": """CAST('{"a": ' || i % 4 || '}' AS JSON)""",
    "VARIANT": "CAST(i % 4 AS VARIANT)",
    "UNION": "CAST(union_value(n := i % 4) AS UNION(n BIGINT, s VARCHAR))",
    "TIMETZ": "CAST(TIME '10:00:00' + to_hours(i % 4) AS TIMETZ)",
    "TIME": "CASE WHEN i % 4 = 0 THEN TIME '24:00:00' ELSE TIME '10:00:00' + to_hours(i % 4) END",
    "BIT": "CAST(CAST(i % 4 AS INTEGER) AS BIT)",
    "TIMESTAMPTZ": "TIMESTAMPTZ '2020-01-01 00:00:00+00' + to_days(CAST(i % 4 AS INTEGER))",
    "TIMESTAMP_NS": "CAST(TIMESTAMP '2020-01-01' + to_days(CAST(i % 4 AS INTEGER)) AS TIMESTAMP_NS)",
    "INTERVAL": "to_days(CAST(i % 4 AS INTEGER))",
    "UUID": "CAST(md5(CAST(i % 4 AS VARCHAR)) AS UUID)",
    "BLOB": "CAST(CAST(i % 4 AS VARCHAR) AS BLOB)",
    "HUGEINT": "CAST(i % 4 AS HUGEINT)",
    "LIST": "[i % 4]",
    "STRUCT": "CASE WHEN i % 4 > 0 THEN {'a': i % 4} END",
    "STRUCT of UNION": "CASE WHEN i % 4 > 0 THEN {'a': union_value(n := i % 4)} END",
    "MAP": "MAP {'a': i % 4}",
    "endless": "CASE WHEN i % 4 = 0 THEN CAST('infinity' AS TIMESTAMP) ELSE TIMESTAMP '2020-01-01' END",
}

RELEASES = [
    "anon.swap('people', ['x', 'n'])",
    "anon.data_shuffle('people', ['x', 'n'])",
    "anon.rhs('people', ['x', 'n'], 3)",
    "anon.copula_synthesize('people', ['x', 'n'], k := 2)",
    "anon.boxes('people', ['x', 'n'], 3)",
    "anon.boxes('people', ['n'], 3, keep := ['x'], narrowing := ['x'])",
    "anon.boxes('people', ['n'], 3, person := 'x')",
    "anon.microaggregate('people', ['x', 'n'], 3)",
    "anon.microaggregate('people', ['n'], 3, keep := ['x'], narrowing := ['x'], label := 'interval')",
    "anon.suppress_cells('people', ['x', 'n'], 3)",
    "anon.generalize('people', ['x', 'n'], 3)",
    "anon.quantile_partition('people', 'x', k := 3)",
    "anon.sampled_partition('people', 'x', 2)",
]
OTHERS = [
    "anon.generalize('people', ['n'], 3, keep := ['x'], narrowing := ['x'])",
    "anon.generalize('people', ['n'], 3, person := 'x')",
    "anon.svd_swap('people', ['x', 'n'])",
    "anon.pica('people', ['x', 'n'], cluster_size := 8)",
    "anon.spectral_release('people', ['x', 'n'], k := 2)",
    "anon.synthesize('people', ['x', 'n'], k := 2, leaf := 5, keep_out := 0)",
    "anon.spectral_rhs('people', ['x', 'n'], 3)",
    "anon.additive_noise('people', ['x', 'n'])",
    "anon.optimal_partition('people', 'x', 3)",
    "anon.kept_column_risk('people', ['n'], ['x'])",
    "anon.k_anonymity('people', ['x', 'n'])",
    "anon.l_diversity('people', ['n'], 'x')",
    "anon.t_closeness('people', ['n'], 'x')",
    "anon.risky_rows('people', ['x'], 3)",
    "anon.quasi_identifiers('people')",
    "anon.quasi_identifiers('people', approximate := true)",
    "anon.assess('people')",
    "anon.split_reference('people')",
    "anon.utility('people', 'people', ['x', 'n'])",
    "anon.query_utility('people', 'people', ['x', 'n'])",
    "anon.linkage_risk('people', 'people', ['n'], ['x'])",
    "anon.singling_out_risk('people', 'people', ['x', 'n'])",
    "anon.matching_attack('people', 'people', ['x', 'n'])",
    "anon.containment_risk('people', 'people', ['x', 'n'])",
    "anon.suppressed('people', 'people', ['x', 'n'])",
    "anon.generalization_loss('people', 'people', ['x', 'n'])",
    "anon.compare_releases('people', {'same': 'people'}, ['x', 'n'])",
]

SENTENCE = re.compile(r"\banon(\.\w+)?: [^\n]+\.")


@pytest.mark.thorough
@pytest.mark.parametrize("call", [*RELEASES, *OTHERS])
def test_values_of_any_type(call: str, con: duckdb.DuckDBPyConnection) -> None:
    """Errors of Arrow and of DuckDB's binder are no answer, and UNIONs in a NULL struct ended the program."""
    for name, values in TYPES.items():
        con.execute(f"CREATE OR REPLACE TABLE people AS SELECT {values} AS x, i % 12 AS n FROM range(48) AS t(i)")
        message = _refusal(con, call)
        assert message is None or (SENTENCE.search(message) and "Arrow" not in message), (name, message)


def _refusal(con: duckdb.DuckDBPyConnection, call: str) -> str | None:
    try:
        con.execute(f"FROM {call}").fetchall()
    except duckdb.Error as error:
        return str(error)
    return None


def test_what_travels_comes_back(con: duckdb.DuckDBPyConnection) -> None:
    for name in ("TIME", "TIMESTAMPTZ", "TIMESTAMP_NS", "UUID", "HUGEINT", "JSON"):
        con.execute(f"CREATE OR REPLACE TABLE people AS SELECT {TYPES[name]} AS x FROM range(48) AS t(i)").fetchall()
        assert con.execute("FROM people EXCEPT ALL FROM anon.swap('people', ['x'])").fetchall() == [], name
    con.execute(
        f"CREATE OR REPLACE TABLE people AS SELECT {TYPES['TIMESTAMPTZ']} AS x FROM range(48) AS t(i)"
    ).fetchall()
    boxed = con.execute("SELECT typeof(x), count(*) FROM anon.boxes('people', ['x'], 3) GROUP BY ALL").fetchall()
    assert boxed == [("STRUCT(lo TIMESTAMP WITH TIME ZONE, hi TIMESTAMP WITH TIME ZONE)", 48)]


LONG = [
    "anon.swap('people', ['x'])",
    "anon.swap('people', ['x'], seed := 1)",
    "anon.boxes('people', ['n'], 3, keep := ['x'], narrowing := ['x'])",
    "anon.utility('people', 'people', ['x', 'n'])",
]


@pytest.mark.thorough
@pytest.mark.parametrize("call", LONG)
def test_too_much_text_is_refused(call: str, con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the limit lowered from 2 GB to 2 MB."""
    monkeypatch.setattr(parcels, "MOST_BYTES", 2_000_000)
    con.execute("CREATE TABLE people AS SELECT repeat('x', 900) AS x, i AS n FROM range(2_000) AS t(i)").fetchall()
    con.execute(f"FROM {call}").fetchall()
    con.execute("INSERT INTO people FROM people").fetchall()
    with pytest.raises(duckdb.Error, match='column "x" holds more than 2 GB of text; leave it out, or shorten it'):
        con.execute(f"FROM {call}").fetchall()


@pytest.mark.thorough
def test_two_gigabytes_of_text_are_refused(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE VIEW people AS SELECT repeat('x', 70_000) AS x FROM range(33_000) AS t(i)").fetchall()
    with pytest.raises(duckdb.Error, match='column "x" holds more than 2 GB of text'):
        con.execute("FROM anon.swap('people', ['x'])").fetchall()


@pytest.mark.parametrize(
    "call",
    [
        "anon.swap({}, ['a'])",
        "anon.k_anonymity({}, ['a'])",
        "anon.assess({})",
        "anon.column_profile({})",
        "anon.direct_identifiers({})",
        "anon.quasi_identifiers({})",
        "anon.split_reference({})",
        "anon.generalize({}, ['a'], 3)",
        "anon.boxes({}, ['a'], 3)",
        "anon.explain_plan({})",
        "anon.apply_plan('people', {})",
        "anon.apply_plan({}, 'people')",
        "anon.plan_coverage('people', {})",
        "anon.apply_partition('people', 'a', {})",
        "anon.box_table({})",
        "anon.utility('people', {}, ['a'])",
        "anon.suppressed('people', {}, ['a'])",
        "anon.hierarchy_level('people', 'a', {}, 3)",
        "anon.compare_releases('people', MAP {{'same': 'people', 'other': {}}}, ['a'])",
        "anon.compare_releases({}, MAP {{'same': 'people'}}, ['a'])",
    ],
)
@pytest.mark.parametrize("name", ["NULL", "''", "' '", "'_duckanon_call'"])
def test_names_that_no_table_can_have(call: str, name: str, con: duckdb.DuckDBPyConnection) -> None:
    """A release called NULL was left out silently; a table called like a step was taken for it."""
    con.execute("CREATE TABLE people AS SELECT i % 4 AS a FROM range(48) AS t(i)").fetchall()
    con.execute("CREATE TABLE _duckanon_call AS FROM people").fetchall()
    with pytest.raises(duckdb.Error, match=r"anon\.\w+: (tbl|plan|original|released|hierarchy|releases) must be"):
        con.execute("FROM " + call.format(name)).fetchall()


def test_a_type_that_does_not_travel_is_refused_in_the_name_of_the_function(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(f"CREATE TABLE people AS SELECT {TYPES['UNION']} AS x, i % 12 AS n FROM range(48) AS t(i)").fetchall()
    calls = {"swap": "['x', 'n']", "utility": "'people', ['x', 'n']", "boxes": "['n'], 3, keep := ['x']"}
    calls |= {"dp_table": "['x'], 1, delta := 1e-6, unaccounted := true", "release_linked": "'n', ['x'], 3"}
    for name, rest in calls.items():
        table = "['people']" if name == "release_linked" else "'people'"
        refusal = _refusal(con, f"anon.{name}({table}, {rest})")
        assert str(refusal).startswith(f"anon.{name}: a column of type UNION or VARIANT cannot be worked on"), refusal


def test_infinities_on_the_way_are_told_to_nobody(con: duckdb.DuckDBPyConnection) -> None:
    """numpy would warn of them on the terminal."""
    rows = "SELECT 1e308 * (i % 9 - 4) AS x, 1e307 * (i % 11) AS y, pow(10.0, i % 300) AS z FROM range(99) AS t(i)"
    con.execute(f"CREATE TABLE people AS {rows}").fetchall()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        con.execute("FROM anon.assess('people')").fetchall()
    assert [str(one.message) for one in caught] == []

"""What a connection has set does not change a result."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import duckanon
from tests.sqltest import ROOT, PythonEngine, check, each_test_file, parse

SETTINGS = {"default_order": "DESC", "default_null_order": "NULLS_FIRST"}
QUICK = {"t_closeness", "apply_partition"}
"""Of the functions that once gave other results, those that are quick; all others are for the thorough run."""


@pytest.mark.parametrize("path", each_test_file(QUICK))
def test_orders_do_not_depend_on_defaults(path: Path, own_con: duckdb.DuckDBPyConnection) -> None:
    """The settings hold for a whole database. Only the queries' own ORDER BY may bring rows in another order."""
    for name, value in SETTINGS.items():
        own_con.execute(f"SET {name} = '{value}'").fetchall()
    records = [replace(record, rowsort=record.kind == "query") for record in parse(path)[0]]
    check(path, records, PythonEngine(own_con).run(records))


ODD = {
    "values": {
        "ieee_floating_point_ops": "false",
        "TimeZone": "'Asia/Kathmandu'",
        "old_implicit_casting": "true",
        "preserve_identifier_case": "false",
        "scalar_subquery_error_on_multiple_rows": "false",
        "order_by_non_integer_literal": "true",
    },
    "arrow": {"arrow_output_version": "'1.5'", "arrow_lossless_conversion": "true", "threads": "1"},
    "large": {"arrow_large_buffer_size": "true", "preserve_insertion_order": "false", "lock_configuration": "true"},
    "views": {"produce_arrow_string_view": "true"},
}
"""Settings that change how queries are read, computed or handed over, each with another value than its default; those
that have nothing to do with each other are set together.

Of those that ``duckdb_settings()`` lists, the others are left out, untried: they say where files, extensions, secrets
and logs are, how much memory and disk is used, when the optimizer prefers which join, or what is shown of a result.
The files' own queries divide, so that ``integer_division`` and ``default_collation`` have tests of their own."""

RISKY = [("arrow", "swap"), ("large", "swap")]
"""Of what failed once, what is quick; all other pairs are for the thorough run."""


@pytest.mark.parametrize(
    ("settings", "path"),
    [
        pytest.param(settings, path, marks=() if (settings, path.stem) in RISKY else pytest.mark.thorough)
        for settings in ODD
        for path in sorted(ROOT.glob("tests/*/*.test"))
    ],
    ids=lambda part: part if isinstance(part, str) else part.stem,
)
def test_results_do_not_depend_on_settings(settings: str, path: Path, own_con: duckdb.DuckDBPyConnection) -> None:
    if settings == "arrow" and not hasattr(pa, "decimal32"):
        own_con.execute("SET GLOBAL arrow_output_version = '1.5'").fetchall()
        own_con.execute("CREATE TABLE prices AS SELECT 1.5 AS price").fetchall()
        with pytest.raises(duckdb.Error, match="anon: arrow_output_version asks for types that pyarrow"):
            own_con.execute("FROM anon.swap('prices', ['price'])").fetchall()
        return
    records = [replace(record, rowsort=record.kind == "query") for record in parse(path)[0]]
    known = {name for (name,) in own_con.execute("SELECT name FROM duckdb_settings()").fetchall()}
    sets_its_own = any(record.sql.startswith("SET ") for record in records)
    for name, value in ODD[settings].items():
        if name in known and not (name == "lock_configuration" and sets_its_own):  # not every version has all of them
            own_con.execute(f"SET GLOBAL {name} = {value}").fetchall()
    check(path, records, PythonEngine(own_con).run(records))


def test_a_collation_is_refused(own_con: duckdb.DuckDBPyConnection) -> None:
    """F and f made a class of two for GROUP BY, and apply_plan called f as F."""
    own_con.execute("CREATE TABLE people AS SELECT unnest(['F', 'f', 'M', 'm']) AS sex").fetchall()
    assert own_con.execute("SELECT k FROM anon.k_anonymity('people', ['sex'])").fetchall() == [(1,)]
    own_con.execute("SET default_collation = 'NOCASE'").fetchall()
    for call in ("k_anonymity('people', ['sex'])", "generalize('people', ['sex'], 2)", "swap('people', ['sex'])"):
        with pytest.raises(duckdb.Error, match=r"anon\.\w+: default_collation must be empty, since .*; got NOCASE"):
            own_con.execute(f"FROM anon.{call}").fetchall()
    own_con.execute("RESET default_collation").fetchall()
    assert own_con.execute("SELECT k FROM anon.k_anonymity('people', ['sex'])").fetchall() == [(1,)]


COMPARES_TEXTS = (
    "k_anonymity('{}', ['sex', 'n'])",
    "k_anonymity('{}', ['n'], person := 'who')",
    "risky_rows('{}', ['sex', 'n'], 12)",
    "l_diversity('{}', ['n'], 'illness')",
    "l_diversity_classes('{}', ['n'], 'illness', person := 'who')",
    "t_closeness('{}', ['n'], 'illness')",
    "quasi_identifier('{}', ['sex', 'illness'])",
    "quasi_identifiers('{}', ['sex', 'illness', 'n'])",
    "generalize('{}', ['sex', 'n'], 5, keep := ['illness'])",
    "containment_risk('{}', '{}', ['sex', 'n'])",
    "suppressed('{}', '{}', ['sex', 'n'])",
    "generalization_loss('{}', '{}', ['sex', 'n'])",
    "kept_column_risk('{}', ['sex', 'n'], ['illness'])",
)


@pytest.mark.parametrize("collation", ["NOCASE", "NOACCENT", "NFC"])
def test_a_collation_of_a_column_is_refused_or_changes_nothing(con: duckdb.DuckDBPyConnection, collation: str) -> None:
    """A record had 18 candidates instead of 14, a class half as many sensitive values."""
    for table, collate in (("plain", ""), ("collated", f"COLLATE {collation}")):
        con.execute(f"""
            CREATE TABLE {table} (sex VARCHAR {collate}, illness VARCHAR {collate}, who VARCHAR {collate}, n INTEGER)
            """).fetchall()
        con.execute(f"""
            INSERT INTO {table}
            SELECT ['F', 'f', 'm', 'é', 'e' || chr(769)][1 + (hash(i) % 5)::INTEGER],
                   ['Flu', 'flu', 'cöld', 'cold', 'co' || chr(776) || 'ld'][1 + (hash(i + 1000) % 5)::INTEGER],
                   ['p', 'P'][1 + i % 2] || i // 7, i % 5
            FROM range(200) AS r(i)""").fetchall()
    for call in COMPARES_TEXTS:
        expected = con.execute(f"FROM anon.{call.replace('{}', 'plain')}").fetchall()
        try:
            assert con.execute(f"FROM anon.{call.replace('{}', 'collated')}").fetchall() == expected, call
        except duckdb.Error as error:
            assert re.search(  # noqa: PT017
                r"^anon\.\w+: columns must not have a collation, since .*; got one in \"\w+\": use a view", str(error)
            )
    con.execute("CREATE VIEW cured AS SELECT * REPLACE (decode(encode(sex)) AS sex) FROM collated").fetchall()
    counted = "SELECT k, classes FROM anon.k_anonymity('{}', ['sex', 'n'])"
    assert con.execute(counted.format("cured")).fetchall() == con.execute(counted.format("plain")).fetchall()


@pytest.mark.parametrize("is_locked", [False, True])
def test_a_slash_divides(is_locked: bool) -> None:
    """A slash means what it meant when a macro was parsed: set before registering, every risk was 0."""
    con = duckdb.connect()
    con.execute("CREATE TABLE people AS SELECT i % 4 AS a FROM range(48) AS t(i)").fetchall()
    con.execute("SET GLOBAL integer_division = true").fetchall()
    if is_locked:
        con.execute("SET GLOBAL lock_configuration = true").fetchall()
        with pytest.raises(ValueError, match=r"^duckanon.register: integer_division must be off"):
            duckanon.register(con)
    else:
        duckanon.register(con)
        assert con.execute("SELECT average_risk FROM anon.reidentification_risk('people', ['a'])").fetchone()[0] > 0.08
        assert con.execute("SELECT 7 / 2").fetchall() == [(3,)]
    con.close()

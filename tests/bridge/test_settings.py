"""What a connection has set does not change a result."""

from __future__ import annotations

import functools
import re
import zlib
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import duckanon
from tests.sqltest import PythonEngine, check, each_test_file, empty_schema, parse

ODD = {
    "values": {
        "ieee_floating_point_ops": "false",
        "TimeZone": "'Asia/Kathmandu'",
        "old_implicit_casting": "true",
        "legacy_disable_null_type": "true",
        "error_on_division_by_zero": "false",
        "regex_match_operator_semantics": "'full'",
        "preserve_identifier_case": "false",
        "scalar_subquery_error_on_multiple_rows": "false",
        "order_by_non_integer_literal": "true",
        "dialect_compatibility_mode": "'spark'",
        "arrow_output_version": "'1.5'",
        "arrow_lossless_conversion": "true",
        "threads": "1",
    },
    "planning": {
        "default_order": "'DESC'",
        "default_null_order": "'NULLS_FIRST'",
        "arrow_large_buffer_size": "true",
        "arrow_output_list_view": "true",
        "produce_arrow_string_view": "true",
        "preserve_insertion_order": "false",
        "immediate_transaction_mode": "true",
        "python_enable_replacements": "false",
        "enable_macro_dependencies": "true",
        "enable_view_dependencies": "true",
        "enable_optimizer": "false",
        "asof_loop_join_threshold": "0",
        "delim_join_as_cte": "false",
        "dynamic_or_filter_threshold": "0",
        "enable_fsst_vectors": "true",
        "late_materialization_max_rows": "0",
        "merge_join_threshold": "0",
        "nested_loop_join_threshold": "0",
        "ordered_aggregate_threshold": "1",
        "perfect_ht_threshold": "0",
        "pivot_filter_threshold": "0",
        "prefer_range_joins": "true",
        "scheduler_process_partial": "true",
        "lock_configuration": "true",  # the last
    },
}
"""Settings that change how queries are read, planned, computed or handed over, each with another value than its
default; those that have nothing to do with each other are set together."""

OWN_TESTS = {"null_order", "default_collation", "integer_division"}
OWN_TESTS |= {"schema", "search_path", "worker_threads", "memory_limit"}
"""Those that have tests of their own, here or in test_names.py, and other names of some that are tried."""

LEFT_OUT = {
    "where files, extensions, secrets and logs are, and who may reach them": """
        access_mode allow_.* allowed_.* auto(install|load)_.* custom_extension_repository custom_user_agent
        default_secret_storage disabled_filesystems disabled_log_types duckdb_api enable_external_access enable_logging
        enable_http_logging enabled_log_types extension_.* file_search_path home_directory http_.* log_query_path
        logging_.* password redact_http_logs secret_directory temp_directory temp_file_encryption user username
        warnings_as_errors""",
    "how much memory, disk and how many threads are used, and when a file is written": """
        allocator_.* async_threads auto_checkpoint_skip_wal_threshold block_allocator_memory checkpoint_.*
        default_block_size disable_database_invalidation disabled_compression_methods enable_optimistic_write
        experimental_metadata_reuse external_threads force_.* fsync_mode initial_column_segment_size max_execution_time
        max_memory max_streaming_buffer_size max_temp_directory_size max_vacuum_tasks operator_memory_limit pin_threads
        standard_vector_size storage_.* streaming_buffer_size wal_.* write_buffer_.* zstd_min_string_length""",
    "how Parquet and other files are read and written": """
        binary_as_string cache_local_files disable_parquet_prefetching enable_external_file_cache
        enable_geoparquet_conversion enable_http_metadata_cache enable_object_cache external_file_cache_.*
        geometry_minimum_shredding_size ignore_unknown_crs json_geometry_format pandas_analyze_sample parquet_.*
        partitioned_write_.* prefetch_all_parquet_files read_ahead_depth validate_external_file_cache
        variant_minimum_shredding_size""",
    "what is shown of a query, its plan, its progress and its errors": """
        catalog_error_max_schemas custom_profiling_settings enable_profiling enable_progress_.* errors_as_json
        explain_output profil.* progress_bar_time show_behavior tracked_metrics""",
    "parsers that extensions bring, old syntax, and how long a query may be": """
        active_grammar_extensions current_dialect deprecated_using_key_syntax lambda_syntax max_expression_depth
        table_function_identifier_conversion""",
    "makes DuckDB itself convert timestamps with a zone to years of another calendar, or before Christ": "Calendar",
    "refuses the casts between timestamps with and without a zone by an error of DuckDB's own": """
        disable_timestamptz_casts""",
    "one more way to plan the same joins, scans and pivots": """
        approximate_join_order_threshold disabled_optimizers index_scan_.* pivot_limit""",
    "when a transaction is over after an error": """
        current_transaction_invalidation_policy default_transaction_invalidation_policy""",
    "for those who debug DuckDB": "debug_.*",
    "whose variables are taken for tables: the caller's, which macros do not see": "python_scan_all_frames",
}
"""Those that are not tried: what they say, and their names."""


def test_every_setting_is_tried_or_left_out_for_a_reason() -> None:
    con = duckdb.connect()
    known = {name for (name,) in con.execute("SELECT name FROM duckdb_settings()").fetchall()}
    con.close()
    if not duckdb.__version__.startswith(("1.5.", "2.0.")):
        pytest.skip("newer versions may have settings that nobody here has met")
    tried = OWN_TESTS.union(*ODD.values())
    left_out = [pattern for names in LEFT_OUT.values() for pattern in names.split()]
    unmatched = {name for name in known - tried if not any(re.fullmatch(pattern, name) for pattern in left_out)}
    assert unmatched == set()
    assert not [name for name in tried if any(re.fullmatch(pattern, name) for pattern in left_out)]


RISKY = {"values": ["swap"], "planning": ["swap", "t_closeness", "apply_partition"]}
"""Of what failed once, what is quick; other files are for the thorough run, each under one kind of settings."""


@pytest.mark.parametrize(
    ("settings", "path"),
    [
        pytest.param(settings, *file.values, id=f"{settings}-{file.id}", marks=file.marks)
        for place, settings in enumerate(ODD)
        for file in each_test_file(RISKY[settings])
        if file.id in RISKY[settings] or zlib.crc32(file.id.encode()) % len(ODD) == place
    ],
)
def test_results_do_not_depend_on_settings(settings: str, path: Path) -> None:
    """Only the queries' own ORDER BY may bring rows in another order."""
    records = [replace(record, rowsort=record.kind == "query") for record in parse(path)[0]]
    sets_its_own = any(record.sql.startswith("SET ") for record in records)
    with empty_schema(lambda: having_set(settings, is_open=sets_its_own)) as con:
        check(path, records, PythonEngine(con).run(records))


NEEDS_NEW_ARROW = {"arrow_output_version"}
"""What asks for types that an old pyarrow does not have."""


@pytest.mark.skipif(hasattr(pa, "decimal32"), reason="pyarrow has all types")
def test_types_that_pyarrow_does_not_have_are_refused(own_con: duckdb.DuckDBPyConnection) -> None:
    own_con.execute(f"SET arrow_output_version = {ODD['values']['arrow_output_version']}").fetchall()
    own_con.execute("CREATE TABLE prices AS SELECT 1.5 AS price").fetchall()
    with pytest.raises(duckdb.Error, match="anon: arrow_output_version asks for types that pyarrow"):
        own_con.execute("FROM anon.swap('prices', ['price'])").fetchall()


@functools.cache
def having_set(settings: str, is_open: bool = False) -> duckdb.DuckDBPyConnection:
    """Return a database with these settings, in which everything is registered: one for all tests of a process.

    One that is open for other settings too is not locked.
    """
    con = duckanon.connect()
    known = {name for (name,) in con.execute("SELECT name FROM duckdb_settings()").fetchall()}
    known -= set() if hasattr(pa, "decimal32") else NEEDS_NEW_ARROW
    for name, value in ODD[settings].items():
        if name in known and not (name == "lock_configuration" and is_open):  # not every version has all of them
            con.execute(f"SET GLOBAL {name} = {value}").fetchall()
    return con


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


@pytest.mark.thorough
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
            refused = (
                r"^anon\.\w+: columns must not have a collation, since .*; got one (in \"\w+\"|among \[.*\]): use a "
            )
            assert re.search(refused, str(error))  # noqa: PT017
    con.execute("CREATE VIEW cured AS SELECT * REPLACE (decode(encode(sex)) AS sex) FROM collated").fetchall()
    counted = "SELECT k, classes FROM anon.k_anonymity('{}', ['sex', 'n'])"
    assert con.execute(counted.format("cured")).fetchall() == con.execute(counted.format("plain")).fetchall()


def test_another_calendar_does_not_show_who_is_over_89(own_con: duckdb.DuckDBPyConnection) -> None:
    """current_date was a day of the year 2569 before Christ: nobody was old enough."""
    own_con.execute("SET Calendar = 'buddhist'").fetchall()
    assert own_con.execute("SELECT anon.safe_harbor_date(DATE '1900-01-01')").fetchone()[0].startswith("<=")


@pytest.mark.thorough
@pytest.mark.parametrize("is_prepared", [False, True])
def test_a_slash_divides(is_prepared: bool, request: pytest.FixtureRequest) -> None:
    """A slash means what it meant when a macro was parsed: set before registering, every risk was 0."""
    if not is_prepared:
        request.getfixturevalue("unprepared")
    con = duckdb.connect()
    con.execute("CREATE TABLE people AS SELECT i % 4 AS a FROM range(48) AS t(i)").fetchall()
    con.execute("SET GLOBAL integer_division = true").fetchall()
    duckanon.register(con)
    assert con.execute("SELECT average_risk FROM anon.reidentification_risk('people', ['a'])").fetchone()[0] > 0.08
    assert con.execute("SELECT 7 / 2").fetchall() == [(3,)]
    con.close()


@pytest.mark.usefixtures("unprepared")
def test_a_locked_configuration_is_refused_where_macros_must_be_parsed() -> None:
    con = duckdb.connect(config={"integer_division": True, "lock_configuration": True})
    with pytest.raises(ValueError, match=r"^duckanon.register: integer_division must be off"):
        duckanon.register(con)
    con.close()

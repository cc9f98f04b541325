"""Tables of one and of two rows, and columns of nothing but NULL: each function works, or refuses in one sentence."""

from __future__ import annotations

import re

import duckdb
import pytest

TABLES = {
    "one": "SELECT 1 AS x, 2.5 AS y, 'a' AS s, NULL::INTEGER AS h, 1 AS p",
    "two": "FROM (VALUES (1, 2.5, 'a', NULL::INTEGER, 1), (2, 3.5, 'b', NULL, 2)) AS t(x, y, s, h, p)",
    "same": "SELECT 1 AS x, 2.5 AS y, 'a' AS s, NULL::INTEGER AS h, i AS p FROM range(2) AS t(i)",
    "holes": """SELECT (i % 7)::INTEGER AS x, (i % 11) / 2.0 AS y, ['a', 'b', 'c'][1 + i % 3] AS s, NULL::INTEGER AS h,
                       i AS p FROM range(60) AS t(i)""",
}
"""By name: a number, a decimal, a text, nothing but NULL, and a person."""

COLUMNS = {"one": "['x', 'y']", "two": "['x', 's']", "same": "['y', 'h']", "holes": "['x', 'h']"}
"""The columns that are asked for in each of them."""

OF_COLUMNS = [
    "anon.additive_noise('{t}', {c}, nulls := 'category')",
    "anon.boxes('{t}', {c}, 2)",
    "anon.audit_table('{t}', {c}, value := 'y')",
    "anon.cell_rules('{t}', {c}, k := 2)",
    "anon.class_sizes('{t}', {c})",
    "anon.classifier_utility('{t}', '{t}', {c}, 'x')",
    "anon.compare_releases('{t}', {{'same': '{t}'}}, {c})",
    "anon.containment_candidates('{t}', '{t}', {c})",
    "anon.containment_risk('{t}', '{t}', {c})",
    "anon.copula_synthesize('{t}', {c}, k := 2, nulls := 'category')",
    "anon.data_shuffle('{t}', {c}, nulls := 'category')",
    "anon.delta_presence('{t}', {c}, '{t}')",
    "anon.detectability('{t}', '{t}', {c})",
    "anon.dp_table('{t}', {c}, 1, delta := 1e-6, unaccounted := true)",
    "anon.generalization_loss('{t}', '{t}', {c})",
    "anon.contradictions('{t}', '{t}', {c}, k := 2)",
    "anon.generalize('{t}', {c}, 2)",
    "anon.global_risk('{t}', {c}, population := 100)",
    "anon.individual_risk('{t}', {c}, population := 100)",
    "anon.interval_disclosure('{t}', '{t}', {c})",
    "anon.joint_releases(['{t}', '{t}'], {c}, 'p', k := 2)",
    "anon.k_anonymity('{t}', {c})",
    "anon.k_map('{t}', {c}, 100)",
    "anon.kept_column_risk('{t}', {c}, ['p'])",
    "anon.known_events(['{t}'], 'p', {c})",
    "anon.kernel_components('{t}', '{t}', {c})",
    "anon.kernel_utility('{t}', '{t}', {c})",
    "anon.l_diversity('{t}', {c}, 's')",
    "anon.l_diversity_classes('{t}', {c}, 'h')",
    "anon.linkage_risk('{t}', '{t}', {c}, ['p'])",
    "anon.matching_attack('{t}', '{t}', {c})",
    "anon.protect_table('{t}', {c}, k := 2)",
    "anon.membership_audit('{t}', {c})",
    "anon.microaggregate('{t}', {c}, 2)",
    "anon.optimal_uncertainty('{t}', {c}, 2)",
    "anon.pica('{t}', {c}, cluster_size := 20, nulls := 'category')",
    "anon.pica_report('{t}', {c}, nulls := 'category')",
    "anon.plan('{t}', {c}, 2)",
    "anon.population_uniques('{t}', {c}, 100)",
    "anon.prediction_risk('{t}', '{t}', {c})",
    "anon.privacy_test('{t}', '{t}', {c})",
    "anon.quasi_identifier('{t}', {c})",
    "anon.quasi_identifiers('{t}', {c})",
    "anon.query_utility('{t}', '{t}', {c}, queries := 20)",
    "anon.recode('{t}', {c}, 2)",
    "anon.recode('{t}', {c}, 2, sensitive := 'p', t := 0.5)",
    "anon.recode_classes('{t}', {c})",
    "anon.reidentification_risk('{t}', {c})",
    "anon.release_linked(['{t}'], 'p', {c}, 2)",
    "anon.require('{t}', '{t}', {c})",
    "anon.rhs('{t}', {c}, 2, nulls := 'category')",
    "anon.risk_summary('{t}', {c}, population := 100)",
    "anon.risky_rows('{t}', {c}, 2)",
    "anon.sensitive_risk('{t}', {c}, 'p')",
    "anon.sensitive_risk_classes('{t}', {c}, 'p')",
    "anon.singling_out_risk('{t}', '{t}', {c}, attacks := 20)",
    "anon.small_classes('{t}', {c}, 2)",
    "anon.special_unique_columns('{t}', {c})",
    "anon.special_uniques('{t}', {c})",
    "anon.spectral_release('{t}', {c}, k := 2, nulls := 'category')",
    "anon.spectral_rhs('{t}', {c}, 2, nulls := 'category')",
    "anon.suppress_cells('{t}', {c}, 2)",
    "anon.suppressed('{t}', '{t}', {c})",
    "anon.svd_swap('{t}', {c}, k := 2, nulls := 'category')",
    "anon.swap('{t}', {c})",
    "anon.synthesize('{t}', {c}, k := 2, leaf := 3, keep_out := 0, nulls := 'category')",
    "anon.t_closeness('{t}', {c}, 'p')",
    "anon.t_closeness_classes('{t}', {c}, 'h')",
    "anon.utility('{t}', '{t}', {c})",
    "anon.verdict('{t}', '{t}', {c})",
]

OF_TABLES = [
    "anon.apply_partition('{t}', 'x', 'parts')",
    "anon.apply_plan('{t}', 'plans')",
    "anon.assess('{t}')",
    "anon.column_profile('{t}')",
    "anon.direct_identifiers('{t}')",
    "anon.explain_plan('plans', '{t}')",
    "anon.hierarchy_level('{t}', 's', 'places', 2)",
    "anon.hierarchy_level('{t}', 'h', 'places', 2)",
    "anon.optimal_partition('{t}', 'x', 2)",
    "anon.optimal_partition('{t}', 'h', 2)",
    "anon.plan_coverage('{t}', 'plans')",
    "anon.quantile_partition('{t}', 'x', k := 2)",
    "anon.quantile_partition('{t}', 'h', buckets := 2)",
    "anon.sampled_partition('{t}', 'x', 2)",
    "anon.sampled_partition('{t}', 'h', 2)",
    "anon.split_reference('{t}')",
]

OF_BOXES = [
    "anon.box_table('boxed')",
    "anon.box_weights('boxed', {{'kind': 'mean', 'column': 'x'}}, ['x', 'y'])",
    "anon.dismissal('boxed', {{'kind': 'mean', 'column': 'x'}}, ['x', 'y'])",
    "anon.explain_boxes('boxed')",
    "anon.flatten_boxes('boxed')",
    "anon.interval_counts('boxed', 'x > 1')",
    "anon.interval_quantiles('boxed', ['x', 'y'])",
    "anon.interval_regression('boxed', 'y', ['x'])",
    "anon.interval_statistics('boxed', ['x', 'y'])",
    "anon.label_boxes('{t}', 'box_list', ['x', 'y'])",
    "anon.midpoints('boxed')",
    "anon.unflatten_boxes('flat')",
]

SENTENCE = re.compile(r"anon(\.\w+)?: [^\n]+[.?]")
OF_NUMPY = re.compile(r"broadcast|shape|array|nan\b|axis|index|division|convert|Arrow|reduction|argument|object|dtype")
"""Words of libraries, which a sentence of ours does without."""


def every_call() -> list[str]:
    return [*OF_COLUMNS, *OF_TABLES, *OF_BOXES]


@pytest.mark.thorough
@pytest.mark.parametrize("call", every_call())
def test_small_tables_and_empty_columns(call: str, shared: duckdb.DuckDBPyConnection) -> None:
    make(shared, call)
    wrong = []
    for table in TABLES:
        if "boxed" in call or "flat" in call or "box_list" in call:
            box(shared, table)
        asked = call.format(t=table, c=COLUMNS[table])
        try:
            shared.execute(f"FROM {asked}").fetchall()
        except duckdb.Error as error:
            message = str(error)
            if not SENTENCE.fullmatch(message) or OF_NUMPY.search(message):
                wrong.append((asked, message))
    assert wrong == []


def make(con: duckdb.DuckDBPyConnection, call: str) -> None:
    for name, rows in TABLES.items():
        con.execute(f"CREATE TABLE IF NOT EXISTS {name} AS {rows}").fetchall()
    made = {
        "places": "FROM (VALUES ('a', 'A'), ('b', 'B')) AS t(leaf, label)",
        "plans": "FROM anon.plan('holes', ['x', 's'], 2)",
        "parts": "FROM anon.quantile_partition('holes', 'x', k := 5)",
    }
    for name, rows in made.items():
        if f"'{name}'" in call:
            con.execute(f"CREATE TABLE IF NOT EXISTS {name} AS {rows}").fetchall()


def box(con: duckdb.DuckDBPyConnection, table: str) -> None:
    """Make boxes of a table by hand: one a row."""
    con.execute(f"""CREATE OR REPLACE TABLE boxed AS SELECT row_number() OVER () AS box,
        {{'lo': x, 'hi': x + 1}} AS x, {{'lo': y, 'hi': y + 1}} AS y FROM {table}""").fetchall()
    con.execute("CREATE OR REPLACE TABLE box_list AS FROM anon.box_table('boxed')").fetchall()
    con.execute("CREATE OR REPLACE TABLE flat AS FROM anon.flatten_boxes('boxed')").fetchall()


def test_every_function_of_tables_is_among_them(con: duckdb.DuckDBPyConnection) -> None:
    listed = {row[0] for row in con.execute("SELECT name FROM anon.functions()").fetchall()}
    of_tables = {
        f"anon.{row[0]}"
        for row in con.execute("""
            SELECT function_name FROM duckdb_functions()
            WHERE database_name = 'anon' AND function_type = 'table_macro'
        """).fetchall()
    }
    swept = {call.partition("(")[0] for call in every_call()}
    assert swept == listed & of_tables - {"anon.functions", "anon.anonymity_probability"}  # which take no table

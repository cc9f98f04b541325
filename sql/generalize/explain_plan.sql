-- anon.explain_plan: a plan in one row per column: its method, the number of values that remain, and the information
-- loss.
--     distinct_before  different values in tbl, including NULL
--     distinct_after   labels of which rows were released
--     allowed          values that the budget of the population allows it (anon.allocate), where the search begins;
--                      NULL for a plan without a population
--     budget_share     its part of the number of combinations, ln(distinct_after) over the sum of these: the shares add
--                      up to 1
--     expected_loss    share of the column's other values that a row's label contains too, on average: 0 nothing lost,
--                      1 everything. anon.generalization_loss measures the loss of a release, with the range of numbers
--                      and the suppressed rows
--     plan             name of the table of a stored plan (`anon.plan`) [a text]
--     tbl              table that the plan was made for, or another one: distinct_before and expected_loss are those of
--                      its rows. NULL: both are NULL, since a plan does not contain them [a text, or NULL]
-- promises: Between(0, 1, 'budget_share'), InvariantUnder('storage')
-- test: tests/generalize/explain_plan.test
CREATE OR REPLACE MACRO anon.explain_plan(plan, tbl := NULL) AS TABLE
WITH _duckanon_plan AS (
    FROM anon._plan_table('anon.explain_plan', plan)
), _duckanon_columns AS (
    SELECT column_name, any_value(method) AS method, any_value(allowed) AS allowed,
           greatest(count(DISTINCT coalesce('=' || label, '')) FILTER ("rows" > 0), 1) AS distinct_after
    FROM _duckanon_plan
    GROUP BY column_name
), _duckanon_not_asked AS (
    SELECT NULL::VARCHAR AS column_name, NULL::BIGINT AS distinct_before, NULL::DOUBLE AS expected_loss LIMIT 0
), _duckanon_cells AS (
    SELECT struct_pack(column_name := lower(alias(COLUMNS(* EXCLUDE (_duckanon_none)))),
                       is_planned := struct_extract(COLUMNS(* EXCLUDE (_duckanon_none)), 'code') IS NOT NULL,
                       value_hash := coalesce(anon._value_code(struct_extract(COLUMNS(* EXCLUDE (_duckanon_none)),
                                                                              'value')), hash(NULL)),
                       label := struct_extract(COLUMNS(* EXCLUDE (_duckanon_none)), 'label'))
    FROM anon._labelled_cells('anon.explain_plan',
                              anon._checked_table('anon.explain_plan', 'tbl', tbl, CAST(tbl AS VARCHAR)),
                              '"_duckanon_plan"')
), _duckanon_label_counts AS (
    SELECT column_name, label, count(*) AS size, count(DISTINCT value_hash) AS distinct_values
    FROM (SELECT unnest([UNPACK(COLUMNS(*))], max_depth := 2) FROM _duckanon_cells)
    WHERE is_planned GROUP BY column_name, label
), _duckanon_looked_at AS (
    SELECT column_name, sum(distinct_values)::BIGINT AS distinct_before,
           coalesce(sum(size * (distinct_values - 1)) / sum(size) / nullif(sum(distinct_values) - 1, 0), 0)::DOUBLE
               AS expected_loss
    FROM _duckanon_label_counts GROUP BY column_name
), _duckanon_losses AS (
    FROM query_table(CASE WHEN tbl IS NULL THEN '_duckanon_not_asked' ELSE '_duckanon_looked_at' END)
)
SELECT _duckanon_columns.column_name, method, distinct_before, distinct_after, allowed,
       coalesce(ln(distinct_after) / nullif(sum(ln(distinct_after)) OVER (), 0), 0) AS budget_share, expected_loss
FROM _duckanon_columns LEFT JOIN _duckanon_losses ON lower(_duckanon_columns.column_name) = _duckanon_losses.column_name
ORDER BY _duckanon_columns.column_name ASC NULLS LAST;
COMMENT ON MACRO TABLE anon.explain_plan IS
    'A plan in one row per column: method, distinct values before and after, share of the budget, expected loss.';

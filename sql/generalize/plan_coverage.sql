-- anon.plan_coverage: how well a stored plan fits a table, one row per planned column: rows whose value lies below or
-- above the range that the plan was fitted on (they go to its first or last bucket), rows with a value that it has
-- never seen (they go to its rest), and NULLs.
-- test: tests/generalize/plan_coverage.test
CREATE OR REPLACE MACRO anon.plan_coverage(tbl, plan) AS TABLE
WITH _duckanon_counts AS (
    SELECT anon._plan_counts(COLUMNS(* EXCLUDE (_duckanon_lists)),
                             any_value(alias(COLUMNS(* EXCLUDE (_duckanon_lists)))))
    FROM anon._plan_cells('anon.plan_coverage', tbl, plan)
)
SELECT * EXCLUDE (is_planned)
FROM (SELECT unnest([UNPACK(COLUMNS(*))], max_depth := 2) FROM _duckanon_counts)
WHERE is_planned;
COMMENT ON MACRO TABLE anon.plan_coverage IS
    'How many values of a table a stored plan has never seen: beyond its range, new categories, NULLs.';

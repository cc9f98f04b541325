-- anon.plan_coverage: how well a stored plan fits a table, one row per planned column: rows with a value that the plan
-- does not contain (they belong to its rest), NULLs, and whether more of the rows lie at the ends than when it was
-- made.
--     below_range, above_range    rows beyond the range that the plan was fitted on, where the plan says it: the first
--                                 and the last bucket of numbers and times are open, since an end would be somebody's
--                                 value, and contain whatever lies beyond; 0 then
--     outer_fraction, fitted_outer_fraction  share of the rows with a number or a time that fall into the first or the
--                                 last bucket: of this table, and of the table that the plan was fitted on.
--                                 If the first is much larger, the values have moved; NULL for other columns
--     plan                        name of the table of a stored plan (`anon.plan`) [a text]
-- promises: Between(0, 1, 'outer_fraction', 'fitted_outer_fraction'), InvariantUnder(*TABLE)
-- test: tests/generalize/plan_coverage.test
CREATE OR REPLACE MACRO anon.plan_coverage(tbl, plan) AS TABLE
WITH _duckanon_plan AS (
    FROM anon._plan_table('anon.plan_coverage', plan)
), _duckanon_lookup AS MATERIALIZED (
    FROM anon._plan_lookup('anon.plan_coverage',
                           anon._checked_table('anon.plan_coverage', 'tbl', tbl, CAST(tbl AS VARCHAR)),
                           '"_duckanon_plan"')
), _duckanon_counts AS (
    SELECT anon._plan_counts(COLUMNS(_cells.*), any_value(alias(COLUMNS(_cells.*))),
                             anon._plan_place(alias(COLUMNS(_cells.*)), _lists.names),
                             _lists.is_number[anon._plan_place(alias(COLUMNS(_cells.*)), _lists.names)],
                             _lists.first[anon._plan_place(alias(COLUMNS(_cells.*)), _lists.names)],
                             _lists.last[anon._plan_place(alias(COLUMNS(_cells.*)), _lists.names)],
                             _lists.least_number[anon._plan_place(alias(COLUMNS(_cells.*)), _lists.names)],
                             _lists.end_number[anon._plan_place(alias(COLUMNS(_cells.*)), _lists.names)],
                             _lists.fitted_outer_fraction[anon._plan_place(alias(COLUMNS(_cells.*)), _lists.names)])
    FROM anon._plan_cells('anon.plan_coverage', tbl, '_duckanon_lookup') AS _cells,
         _duckanon_lookup AS _lists
)
SELECT * EXCLUDE (is_planned)
FROM (SELECT unnest([UNPACK(COLUMNS(*))], max_depth := 2) FROM _duckanon_counts)
WHERE is_planned;
COMMENT ON MACRO TABLE anon.plan_coverage IS
    'How well a stored plan fits a table: values beyond its range or at its ends, new categories, NULLs.';

-- anon.apply_plan: the planned columns of a table, generalized by a stored plan (anon.plan). The same value gets the
-- same label in every table. Values beyond the fitted range belong to the first or the last bucket, categories and
-- NULLs that the plan does not contain to its "rest": no value is lost, and anon.plan_coverage counts them. No row is
-- suppressed and no class counted: next month's table may have other small classes (anon.small_classes). A plan of
-- times is for dates and timestamps: their texts are refused.
--     plan  name of the table of a stored plan (`anon.plan`) [a text]
--     keep  other columns to release as they are, one by one; NULL: none [a list of names, or NULL]
-- promises: RowPer('row'), KeepsTypes('keep'), KeepsValues('keep'), InvariantUnder(*TABLE)
-- test: tests/generalize/apply_plan.test
CREATE OR REPLACE MACRO anon.apply_plan(tbl, plan, keep := NULL) AS TABLE
WITH _duckanon_plan AS (
    FROM anon._plan_table('anon.apply_plan', plan)
)
FROM anon._applied('anon.apply_plan',
                   CASE WHEN list_contains(TRY_CAST(keep AS VARCHAR[]), '*')
                        THEN error('anon.apply_plan: keep must name the columns one by one; got *.')
                        ELSE anon._checked_table('anon.apply_plan', 'tbl', tbl, CAST(tbl AS VARCHAR)) END,
                   [], '"_duckanon_plan"', keep);
COMMENT ON MACRO TABLE anon.apply_plan IS
    'The planned columns of a table, generalized by a stored plan, and the columns to keep.';

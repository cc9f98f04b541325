-- anon.apply_plan: the planned columns of a table, made coarser as a stored plan says (anon.plan). The same value gets
-- the same label in every table. Values beyond the fitted range go to the first or the last bucket, categories and
-- NULLs that the plan has never seen to its "rest": nothing is lost, and anon.plan_coverage counts them. No row is
-- dropped and no class counted: next month's table may have other small classes (anon.small_classes). A plan of
-- times is for dates and timestamps: their texts are refused.
--     plan  the name of the plan's table
--     keep  other columns to release as they are, one by one: ['diagnosis']; NULL: none
-- test: tests/generalize/apply_plan.test
CREATE OR REPLACE MACRO anon.apply_plan(tbl, plan, keep := NULL) AS TABLE
FROM anon._applied('anon.apply_plan',
                   CASE WHEN list_contains(TRY_CAST(keep AS VARCHAR[]), '*')
                        THEN error('anon.apply_plan: keep must name the columns one by one; got *.')
                        ELSE anon._checked_table('anon.apply_plan', 'tbl', tbl, CAST(tbl AS VARCHAR)) END,
                   [], anon._checked_table('anon.apply_plan', 'plan', plan, CAST(plan AS VARCHAR)), keep);
COMMENT ON MACRO TABLE anon.apply_plan IS
    'The planned columns of a table, made coarser as a stored plan says, and the columns to keep.';

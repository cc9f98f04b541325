-- anon.apply_plan: a table with its planned columns made coarser as a stored plan says (anon.plan), all others
-- unchanged. The same value gets the same label in every table. Values beyond the fitted range go to the first or the
-- last bucket, categories and NULLs that the plan has never seen to its "rest": nothing is lost, and anon.plan_coverage
-- counts them. No row is dropped and no class counted: next month's table may have other small classes
-- (anon.small_classes).
--     plan  the name of the plan's table
-- Planned columns get the names and types of the struct in the plan's column `released`, since a query's columns must
-- be known before any row is read: an empty table of that struct is joined by UNION BY NAME.
-- test: tests/generalize/apply_plan.test
CREATE OR REPLACE MACRO anon.apply_plan(tbl, plan) AS TABLE
WITH _duckanon_labelled AS (
    SELECT anon._plan_label(COLUMNS(* EXCLUDE (_duckanon_lists)), _duckanon_lists)
    FROM anon._plan_cells('anon.apply_plan', tbl, plan)
    UNION ALL BY NAME
    SELECT struct_pack(value := COLUMNS(*), label := NULL::VARCHAR)
    FROM (SELECT unnest(released) FROM query_table(plan) LIMIT 0)
)
SELECT CASE WHEN struct_extract(COLUMNS(*), 'label') IS NULL THEN struct_extract(COLUMNS(*), 'value')
            ELSE cast_to_type(struct_extract(COLUMNS(*), 'label'), struct_extract(COLUMNS(*), 'value')) END
FROM _duckanon_labelled;
COMMENT ON MACRO TABLE anon.apply_plan IS
    'A table with its planned columns made coarser as a stored plan says, all others unchanged.';

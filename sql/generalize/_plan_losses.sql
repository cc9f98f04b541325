-- anon._plan_losses: what a plan makes of each planned column of a table: how many different values it has, NULL among
-- them, and which share of the others have a row's label too, on average.
--     column_name  in lower case
CREATE OR REPLACE MACRO anon._plan_losses(caller, tbl, plan) AS TABLE
WITH _duckanon_cells AS (
    SELECT anon._plan_named_cell(COLUMNS(* EXCLUDE (_duckanon_none)), lower(alias(COLUMNS(* EXCLUDE (_duckanon_none)))))
    FROM anon._labelled_cells(caller, anon._checked_table(caller, 'tbl', tbl, CAST(tbl AS VARCHAR)), plan)
), _duckanon_labels AS (
    SELECT column_name, label, count(*) AS size, count(DISTINCT value_hash) AS distinct_values
    FROM (SELECT unnest([UNPACK(COLUMNS(*))], max_depth := 2) FROM _duckanon_cells)
    WHERE is_planned
    GROUP BY column_name, label
)
SELECT column_name, sum(distinct_values)::BIGINT AS distinct_before,
       coalesce(sum(size * (distinct_values - 1)) / sum(size) / nullif(sum(distinct_values) - 1, 0), 0)::DOUBLE
           AS expected_loss
FROM _duckanon_labels
GROUP BY column_name;

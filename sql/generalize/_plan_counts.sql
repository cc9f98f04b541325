-- anon._plan_counts: one column's row of anon.plan_coverage. (Not FILTER: in DuckDB 2.0 a condition over COLUMNS is
-- there one condition over all columns.)
CREATE OR REPLACE MACRO anon._plan_counts(cell, name) AS
    struct_pack(column_name := name, is_planned := bool_or(cell.c IS NOT NULL), "rows" := count(*),
                nulls := count(CASE WHEN cell.x IS NULL THEN 1 END),
                below_range := count(CASE WHEN cell.n < cell.c.least_number THEN 1 END),
                above_range := count(CASE WHEN cell.n > cell.c.largest_number THEN 1 END),
                unseen := count(CASE WHEN cell.b IS NULL AND cell.x IS NOT NULL THEN 1 END));

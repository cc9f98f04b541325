-- anon._plan_counts: one column's row of anon.plan_coverage. (Not with FILTER: in DuckDB 2.0 a condition over COLUMNS
-- becomes a single condition over all columns there.)
CREATE OR REPLACE MACRO anon._plan_counts(
    cell, name, place, is_number, first, last, least_number, end_number, fitted_outer_fraction
) AS
    struct_pack(column_name := name, is_planned := bool_or(place IS NOT NULL), "rows" := count(*),
                nulls := count(CASE WHEN cell.value IS NULL THEN 1 END),
                below_range := count(CASE WHEN cell.number < least_number THEN 1 END),
                above_range := count(CASE WHEN cell.number >= end_number THEN 1 END),
                unseen := count(CASE WHEN cell.bucket IS NULL AND cell.value IS NOT NULL THEN 1 END),
                outer_fraction := count(CASE WHEN cell.bucket IN (first, last) AND is_number THEN 1 END)
                                  / nullif(count(CASE WHEN cell.bucket IS NOT NULL AND is_number THEN 1 END), 0),
                fitted_outer_fraction := any_value(fitted_outer_fraction));

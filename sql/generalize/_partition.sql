-- anon._partition: the buckets of one column that a Python function reported, as a table, with bounds of the type that
-- goes with the column's (anon._bound_types).
-- needs: python
CREATE OR REPLACE MACRO anon._partition(report, tbl, col) AS TABLE
SELECT bucket, cast_to_type(lower, _duckanon_bound) AS lower, cast_to_type(upper, _duckanon_bound) AS upper, "rows",
       label, cost
FROM (SELECT unnest(report, max_depth := 2)) LEFT JOIN anon._bound_types(tbl, col) ON true
ORDER BY bucket ASC NULLS LAST;

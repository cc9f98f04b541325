-- anon.apply_partition: a table with one column replaced by the labels of a partition of it (anon.quantile_partition,
-- anon.sampled_partition, anon.optimal_partition), as text. Values beyond its range get the label of the first or the
-- last bucket; NULL stays NULL. All other columns are unchanged.
--     partition  the name of the partition's table
-- test: tests/generalize/apply_partition.test
CREATE OR REPLACE MACRO anon.apply_partition(tbl, col, partition) AS TABLE
WITH _duckanon_plan AS (
    SELECT col AS column_name, CASE anon._kind(typeof(lower)) WHEN 'date' THEN 'time' ELSE 'number' END AS covers,
           CAST(lower AS VARCHAR) AS lower, CAST(upper AS VARCHAR) AS upper, label, "rows", released
    FROM query_table(anon._checked('anon.apply_partition', partition, [col]))
         LEFT JOIN anon._released_types(tbl, [col]) ON true
)
FROM anon.apply_plan(tbl, '_duckanon_plan');
COMMENT ON MACRO TABLE anon.apply_partition IS
    'A table with one column replaced by the labels of a partition of it.';

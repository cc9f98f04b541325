-- anon.apply_partition: one column of a table, replaced by the labels of a partition of it (anon.quantile_partition,
-- anon.sampled_partition, anon.optimal_partition), as text. Values beyond its range get the label of the first or the
-- last bucket; NULL stays NULL.
--     partition  the name of the partition's table
--     keep       other columns to release as they are: ['diagnosis']; ['*']: all whose name does not say that they
--                identify people; NULL: none
-- test: tests/generalize/apply_partition.test
CREATE OR REPLACE MACRO anon.apply_partition(tbl, col, partition, keep := NULL) AS TABLE
WITH _duckanon_plan AS (
    SELECT col AS column_name, CASE anon._kind(typeof(lower)) WHEN 'date' THEN 'time' ELSE 'number' END AS covers,
           CAST(lower AS VARCHAR) AS lower, CAST(upper AS VARCHAR) AS upper, label, "rows", released
    FROM query_table(anon._checked('anon.apply_partition', partition, [col]))
         LEFT JOIN anon._released_types(tbl, [col]) ON true
)
FROM anon._applied('anon.apply_partition', tbl, [col], '_duckanon_plan', keep);
COMMENT ON MACRO TABLE anon.apply_partition IS
    'One column of a table as the labels of a partition of it, and the columns to keep.';

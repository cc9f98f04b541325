-- anon.apply_partition: one column of a table, replaced by the labels of a partition of it (anon.quantile_partition,
-- anon.sampled_partition, anon.optimal_partition), as text. Its first and its last bucket are open, so that every value
-- has one; NULL stays NULL.
--     col        column to replace by labels [a name]
--     partition  name of the partition's table [a text]
--     keep       other columns to release as they are; ['*']: all whose name does not look like an identifier; NULL:
--                none [a list of names, or NULL]
-- promises: RowPer('row'), OnlyColumns('col', 'keep'), KeepsTypes('keep'), KeepsValues('keep'), InvariantUnder(*TABLE)
-- test: tests/generalize/apply_partition.test
CREATE OR REPLACE MACRO anon.apply_partition(tbl, col, partition, keep := NULL) AS TABLE
WITH _duckanon_chosen AS NOT MATERIALIZED (       -- of every column in it, each step would bind a dozen expressions
    SELECT COLUMNS([col]), COLUMNS(lambda name: anon._is_kept(name, [col], keep, NULL))
    FROM (SELECT *, NULL::VARCHAR AS _duckanon_none
          FROM query_table(anon._checked_table('anon.apply_partition', 'tbl', tbl, CAST(tbl AS VARCHAR))))
), _duckanon_plan AS (
    SELECT col AS column_name, CASE anon._kind(typeof(lower)) WHEN 'date' THEN 'time' ELSE 'number' END AS covers,
           anon._bound_text(anon._plan_number(lower), typeof(lower)) AS lower,
           anon._bound_text(anon._plan_number(upper), typeof(upper)) AS upper, CAST(label AS VARCHAR) AS label,
           TRY_CAST(CAST("rows" AS VARCHAR) AS BIGINT) AS "rows", released
    FROM (FROM (SELECT NULL AS lower, NULL AS upper, NULL AS label, NULL AS "rows" LIMIT 0)
          UNION ALL BY NAME
          FROM query_table(anon._checked('anon.apply_partition', partition, [col])))
         LEFT JOIN anon._released_types('"_duckanon_chosen"', [col]) ON true
    WHERE anon._unless((SELECT anon._lacking('anon.apply_partition', 'partition',
                                             'a partition, as anon.quantile_partition makes it', list(column_name),
                                             ['lower', 'upper', 'label', 'rows'])
                        FROM anon._columns(CAST(partition AS VARCHAR))))
)
FROM anon._applied('anon.apply_partition', '"_duckanon_chosen"', [col], '_duckanon_plan', keep);
COMMENT ON MACRO TABLE anon.apply_partition IS
    'One column of a table as the labels of a partition of it, and the columns to keep.';

-- anon.class_sizes: the histogram of class sizes: for each size that occurs the number of classes, their rows, and the
-- share of all rows that is in classes of this size or smaller.
--     nulls, alpha, person  as in anon.k_anonymity
-- promises: EqualsDefinition(), CountsPeople('class_size', 'classes'), InvariantUnder(*TABLE, 'types')
-- test: tests/assess/class_sizes.test
CREATE OR REPLACE MACRO anon.class_sizes(tbl, cols, nulls := 'value', person := NULL, alpha := 1) AS TABLE
WITH _duckanon_plain AS (
    SELECT _duckanon_size AS size, _duckanon_size AS row_count
    FROM anon._plain_classes('anon.class_sizes', tbl, cols)
), _duckanon_checked AS (
    SELECT _duckanon_size AS size, _duckanon_rows AS row_count
    FROM anon._classes('anon.class_sizes', tbl, cols, nulls, person := person, alpha := alpha,
                       is_open := anon._checked_nulls('anon.class_sizes', nulls, alpha, person) = 'any')
)
SELECT size AS class_size, count(*) AS classes, sum(row_count)::BIGINT AS "rows",
       sum(sum(row_count)) OVER (ORDER BY size ASC NULLS LAST) / sum(sum(row_count)) OVER () AS cumulative_fraction
FROM query_table(CASE WHEN anon._is_default(nulls, person, alpha) AND anon._is_plain_call(tbl, cols, nulls)
                      THEN '_duckanon_plain' ELSE '_duckanon_checked' END)
GROUP BY size
ORDER BY size ASC NULLS LAST;
COMMENT ON MACRO TABLE anon.class_sizes IS
    'Histogram of class sizes: classes and rows of each size, and the share of rows up to it.';

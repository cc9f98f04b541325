-- anon.class_sizes: the histogram of class sizes: for each size that occurs the number of classes, their rows, and the
-- share of all rows that is in classes of this size or smaller.
--     nulls   'value': NULL is a value; 'drop': rows with a NULL in cols are left out; 'any': NULL matches anything,
--             and the size of a class is the number of rows that it matches
--     alpha   with 'any', how much a match counts that another row's NULL allows, from 0 to 1
--     person  name of the column that says whose row it is: sizes then count different people, and a row whose person
--             is NULL counts as nobody. NULL: every row is a person
-- test: tests/assess/class_sizes.test
CREATE OR REPLACE MACRO anon.class_sizes(tbl, cols, nulls := 'value', person := NULL, alpha := 1) AS TABLE
WITH _sizes AS (
    SELECT _duckanon_size AS size, _duckanon_rows AS row_count
    FROM anon._classes('anon.class_sizes', tbl, cols, anon._checked_nulls('anon.class_sizes', nulls, alpha, person),
                       person := person, alpha := alpha)
)
SELECT size AS class_size, count(*) AS classes, sum(row_count)::BIGINT AS "rows",
       sum(sum(row_count)) OVER (ORDER BY size ASC NULLS LAST) / sum(sum(row_count)) OVER () AS cumulative_fraction
FROM _sizes
GROUP BY size
ORDER BY size ASC NULLS LAST;
COMMENT ON MACRO TABLE anon.class_sizes IS
    'Histogram of class sizes: classes and rows of each size, and the share of rows up to it.';

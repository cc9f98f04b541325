-- anon.class_sizes: the histogram of class sizes: for each size that occurs the number of classes, their rows, and the
-- share of all rows that is in classes of this size or smaller.
--     nulls  'value': NULL is a value; 'drop': rows with a NULL in cols are left out
-- test: tests/assess/class_sizes.test
CREATE OR REPLACE MACRO anon.class_sizes(tbl, cols, nulls := 'value') AS TABLE
SELECT _duckanon_size AS class_size, count(*) AS classes, (count(*) * class_size)::BIGINT AS "rows",
       sum(count(*) * _duckanon_size) OVER (ORDER BY _duckanon_size ASC NULLS LAST)
           / sum(count(*) * _duckanon_size) OVER ()
           AS cumulative_fraction
FROM anon._classes('anon.class_sizes', tbl, cols, nulls)
GROUP BY _duckanon_size
ORDER BY _duckanon_size ASC NULLS LAST;
COMMENT ON MACRO TABLE anon.class_sizes IS
    'Histogram of class sizes: classes and rows of each size, and the share of rows up to it.';

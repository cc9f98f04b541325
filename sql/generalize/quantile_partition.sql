-- anon.quantile_partition: a column of numbers, dates or timestamps in buckets of equal size, one row each: the
-- quantile transformation, which has the smallest rank difference of all partitions in which a bucket has at least `k`
-- rows and equal values are together.
--     k | buckets   give one: the least rows of a bucket, or how many buckets there may be (fewer where ties force it)
--     label         'interval', 'median' or 'mean'
--     nulls         'error': NULLs are refused; 'drop': they are left out
--     lower, upper  where a bucket begins, and where the next one does: round numbers between the values; at the ends
--                   of the column its smallest and largest value
--     cost          its rank difference: m^2 / 4, rounded down, for m rows that all become their median
--     (Probabilistic Anonymity, Section 4.1, Definition 9; Theorem 5 with equal values together)
-- anon.apply_partition puts the labels into a table.
-- test: tests/generalize/quantile_partition.test
-- needs: python
CREATE OR REPLACE MACRO anon.quantile_partition(
    tbl, col, k := NULL, buckets := NULL, label := 'interval', nulls := 'error'
) AS TABLE
FROM anon._partition('anon.quantile_partition',
                     _anon_quantile_partition(anon._column_list('anon.quantile_partition', tbl, col),
                                              {'name': col, 'k': k, 'buckets': buckets, 'nulls': nulls}),
                     tbl, col, label);
COMMENT ON MACRO TABLE anon.quantile_partition IS
    'Buckets of equal size for one column, equal values together: the quantile transformation.';

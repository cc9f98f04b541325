-- anon.quantile_partition: a column of numbers, dates or timestamps in buckets of equal size, one row each: the
-- quantile transformation, which has the smallest rank difference of all partitions in which a bucket has at least `k`
-- rows and equal values are together.
--     k | buckets   give one: the least rows of a bucket, or how many buckets there may be (fewer where ties force it)
--     label         'interval', 'median' or 'mean', as in anon.optimal_partition. With `buckets` the last two want 10
--                   rows in every bucket
--     nulls         'error': NULLs are refused; 'drop': they are left out
--     lower, upper  where a bucket begins, and where the next one does: the roundest number between the values on both
--                   sides, or a value that at least k rows (and at least two; with `buckets` 10) have. NULL at the ends
--                   of the column, which are somebody's values. DOUBLE for numbers, TIMESTAMP for dates
--     cost          its rank difference: m^2 / 4, rounded down, for m rows that all become their median
-- Values between which no number can be written, such as neighbouring doubles, count as equal. Whole numbers from
-- 2^53 on and decimals of more than 15 digits are refused.
--     (Probabilistic Anonymity, Section 4.1, Definition 9; Theorem 5 with equal values together)
-- anon.apply_partition puts the labels into a table.
-- test: tests/generalize/quantile_partition.test
-- needs: python
CREATE OR REPLACE MACRO anon.quantile_partition(
    tbl, col, k := NULL, buckets := NULL, label := 'interval', nulls := 'error'
) AS TABLE
FROM anon._partition(
    anon._run_quantile_partition(
        anon._column_list('anon.quantile_partition', tbl, col),
        {'name': col, 'k': k, 'buckets': buckets, 'nulls': nulls,
         'label': anon._checked_choice('anon.quantile_partition', 'label', label, ['interval', 'median', 'mean'],
                                       label)}),
    tbl, col);
COMMENT ON MACRO TABLE anon.quantile_partition IS
    'Buckets of equal size for one column, equal values together: the quantile transformation.';

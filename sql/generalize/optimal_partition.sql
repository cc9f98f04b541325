-- anon.optimal_partition: a column of numbers, dates or timestamps in buckets of at least `k` rows, equal values
-- together, at the least cost that any such partition has; one row per bucket.
--     cost    what is minimized, summed over the buckets:
--             'squares'  squared distances to the bucket's mean
--             'median'   distances to the bucket's median
--             'radius'   half the bucket's range, times its rows
--             'center'   half the bucket's range: not the sum, but the largest of all buckets
--     lower, upper   where a bucket begins, and where the next one does: round numbers between the values; at the ends
--             of the column its smallest and largest value
--     label   'interval', 'median' or 'mean'
--     nulls   'error': NULLs are refused; 'drop': they are left out
-- The paper's dynamic program takes n k steps for n rows; this one takes about n, whatever k is.
--     (Probabilistic Anonymity, Section 4.1)
-- test: tests/generalize/optimal_partition.test
-- needs: python
CREATE OR REPLACE MACRO anon.optimal_partition(
    tbl, col, k, cost := 'squares', label := 'interval', nulls := 'error'
) AS TABLE
FROM anon._partition('anon.optimal_partition',
                     _anon_optimal_partition(
                         anon._column_list('anon.optimal_partition', tbl, col),
                         {'name': col, 'k': k, 'nulls': nulls,
                          'cost': anon._checked_choice('anon.optimal_partition', 'cost', cost,
                                                       ['squares', 'median', 'radius', 'center'], cost)}),
                     tbl, col, label);
COMMENT ON MACRO TABLE anon.optimal_partition IS
    'Buckets of at least k rows for one column at the least possible cost.';

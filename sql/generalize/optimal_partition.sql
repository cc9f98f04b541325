-- anon.optimal_partition: a column of numbers, dates or timestamps in buckets of at least `k` rows, equal values
-- together, at the least cost that any such partition has; one row per bucket.
--     cost    what is minimized, summed over the buckets:
--             'squares'  squared distances to the bucket's mean
--             'median'   distances to the bucket's median
--             'radius'   half the bucket's range, times its rows
--             'center'   half the bucket's range: not the sum, but the largest of all buckets
--             (exact figures of few people: leave the column out of what you pass on); of dates and timestamps in days,
--             squares in squared days
--     lower, upper   where a bucket begins, and where the next one does: the roundest number between the values on both
--             sides, or a value that at least k rows (and at least two) have. NULL at the ends of the column, which are
--             somebody's values. DOUBLE for numbers, TIMESTAMP for dates, since a cut between two days is no day
--     label   'interval', 'median' or 'mean'. The median is given where at least k rows have it, else the roundest
--             number between the values of the k rows in the middle of the bucket
--     nulls   'error': NULLs are refused; 'drop': they are left out
-- Values between which no number can be written, such as neighbouring doubles, count as equal. Whole numbers from
-- 2^53 on and decimals of more than 15 digits are refused.
-- The paper's dynamic program takes n k steps for n rows; this one takes about n, whatever k is.
--     (Probabilistic Anonymity, Section 4.1)
-- test: tests/generalize/optimal_partition.test
-- needs: python
CREATE OR REPLACE MACRO anon.optimal_partition(
    tbl, col, k, cost := 'squares', label := 'interval', nulls := 'error'
) AS TABLE
FROM anon._partition(
    anon._run_optimal_partition(
        anon._column_list('anon.optimal_partition', tbl, col),
        {'name': col, 'k': k, 'nulls': nulls,
         'cost': anon._checked_choice('anon.optimal_partition', 'cost', cost,
                                      ['squares', 'median', 'radius', 'center'], cost),
         'label': anon._checked_choice('anon.optimal_partition', 'label', label, ['interval', 'median', 'mean'],
                                       label)}),
    tbl, col);
COMMENT ON MACRO TABLE anon.optimal_partition IS
    'Buckets of at least k rows for one column at the least possible cost.';

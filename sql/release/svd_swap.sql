-- anon.svd_swap: new records with the same means, variances and correlations: each of the table's principal components
-- is permuted on its own, and they are turned back into columns. What is nonlinear between the columns is lost.
--     tolerance  the largest correlation that two permuted components may have, in units of 1/sqrt(rows - 1);
--                components are permuted again until it is kept (below 100,000 rows; above, chance does as well)
--     log        the columns to take logarithms of; NULL: those that are positive and heavily skewed; []: none
--     nulls      'error' refuses NULLs; 'category': that a value is missing is swapped with all else
--     checks     the release is searched for copies of records, near copies of isolated ones and the order of the rows:
--                'error' refuses a release in which one is found, 'repair' leaves those rows out, 'off' does not search
--     seed       NULL draws from the operating system; a number makes the release repeatable, and whoever knows it can
--                undo it
--     k          the smallest and the largest number of a column are the rounded means of the k most extreme, and
--                categories that fewer than k people hold are merged; 1 leaves them as they are
--     special, categories, derived  as in anon.spectral_release: special values, numbers that are categories, columns
--                that follow from others. k := 1, special := 'off', categories := [], derived := 'off' is the thesis's
-- Booleans and categories become groups of -1 and 1, and come back as the largest of the group; numbers come back with
-- as many decimals as they had and inside their range, dates as dates.
--     (Thesis, Figure 4-1)
-- test: tests/release/svd_swap.test
-- needs: python
CREATE OR REPLACE MACRO anon.svd_swap(
    tbl, cols, tolerance := 1.5, log := NULL, nulls := 'error', checks := 'error', seed := NULL, k := 10,
    special := 'auto', categories := NULL, derived := 'auto'
) AS TABLE
FROM anon._unpack(anon._run_svd_swap(anon._pack('anon.svd_swap', tbl, cols, seed),
                                     {'tolerance': tolerance, 'log': log, 'nulls': nulls, 'checks': checks,
                                      'seed': seed, 'k': k, 'special': special, 'categories': categories,
                                      'derived': derived}),
                  tbl, cols);
COMMENT ON MACRO TABLE anon.svd_swap IS
    'New records with the same means, variances and correlations: permutes each principal component.';

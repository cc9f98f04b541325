-- anon.copula_synthesize: new records drawn from a normal copula with the table's rank correlations and each column's
-- distribution, but no value that fewer than `k` people hold: that is counted before the rows are returned.
--     rows    how many records; NULL: as many as the table has
--     k       values that at least k people hold keep their shares. Other numbers and dates are drawn between the ends
--             of groups of at least k people; what falls on a number of fewer is moved to the nearest that k people
--             hold, or nobody. Categories, and NULL, that fewer than k people have are left out: their shares go to the
--             others in proportion
--     nulls, seed  as in anon.svd_swap
--     person  a column that tells whose each row is, none of `cols`: k then means different people; a row without one
--             counts as nobody's, and the column is not released. NULL: each row is another person
--     (Thesis, Equations 2.14 to 2.17)
-- test: tests/release/copula_synthesize.test
-- needs: python
CREATE OR REPLACE MACRO anon.copula_synthesize(
    tbl, cols, rows := NULL, k := 10, nulls := 'error', seed := NULL, person := NULL
) AS TABLE
FROM anon._unpack(anon._run_copula_synthesize(anon._pack_people('anon.copula_synthesize', tbl, cols, person, seed),
                                              {'rows': rows, 'k': k, 'nulls': nulls, 'seed': seed, 'person': person}),
                  tbl, cols);
COMMENT ON MACRO TABLE anon.copula_synthesize IS
    'Draws new records with the table''s rank correlations and distributions, '
    'and no value that fewer than k people hold.';

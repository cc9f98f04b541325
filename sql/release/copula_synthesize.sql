-- anon.copula_synthesize: new records drawn from a normal copula with the table's rank correlations and each column's
-- distribution; numbers are drawn between the table's values, not only among them.
--     rows  how many records; NULL: as many as the table has
--     nulls, seed  as in anon.svd_swap
--     (Thesis, Equations 2.14 to 2.17)
-- test: tests/release/copula_synthesize.test
-- needs: python
CREATE OR REPLACE MACRO anon.copula_synthesize(
    tbl, cols, rows := NULL, k := 10, nulls := 'error', seed := NULL, person := NULL
) AS TABLE
FROM anon._unpack(_anon_copula_synthesize(anon._pack_people('anon.copula_synthesize', tbl, cols, person, seed),
                                          {'rows': rows, 'k': k, 'nulls': nulls, 'seed': seed, 'person': person}),
                  tbl, cols);
COMMENT ON MACRO TABLE anon.copula_synthesize IS
    'Draws new records from a normal copula with the table''s rank correlations and distributions.';

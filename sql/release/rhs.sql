-- anon.rhs: recursive histogram sanitization, for comparison: the method that anon.spectral_rhs improves. Parts of more
-- than 2k rows are split at the median of all columns at once. With many columns nearly every record ends up alone and
-- is released as it is: a release that breaks k is refused unless `checks := 'off'`.
--     label, key, log, nulls, seed, person  as in anon.spectral_rhs
--     (Thesis, Section 4.1.2)
-- test: tests/release/rhs.test
-- needs: python
CREATE OR REPLACE MACRO anon.rhs(
    tbl, cols, k, label := 'mean', key := NULL, log := NULL, nulls := 'error', checks := 'error', seed := NULL,
    person := NULL
) AS TABLE
FROM anon._unpack(anon._run_rhs(anon._pack_people('anon.rhs', tbl, cols, person, seed),
                                {'k': k, 'label': label, 'key': key, 'log': log, 'nulls': nulls, 'checks': checks,
                                 'seed': seed, 'person': person}),
                  tbl, cols);
COMMENT ON MACRO TABLE anon.rhs IS
    'Recursive histogram sanitization, for comparison: splits all columns at once, and fails when there are many.';

-- anon.additive_noise: normal noise added to every record, then corrected to the mean and covariance of the table. For
-- comparison: with more than a few columns nearly every record is found again by its nearest released one
-- (anon.matching_attack).
--     noise_fraction  the noise's variance as a share of the column's
--     correlated      true: noise with the table's covariance; false: independent between columns (correlations shrink)
--     key, log, nulls, seed  as in anon.spectral_rhs
--     (Thesis, Section 2.3.1, Equation 2.4)
-- test: tests/release/additive_noise.test
-- needs: python
CREATE OR REPLACE MACRO anon.additive_noise(
    tbl, cols, noise_fraction := 0.1, correlated := true, key := NULL, log := NULL, nulls := 'error', seed := NULL
) AS TABLE
FROM anon._unpack(anon._run_additive_noise(anon._pack('anon.additive_noise', tbl, cols, seed),
                                           {'noise_fraction': noise_fraction, 'correlated': correlated, 'key': key,
                                            'log': log, 'nulls': nulls, 'seed': seed}),
                  tbl, cols);
COMMENT ON MACRO TABLE anon.additive_noise IS
    'Adds noise with the table''s own covariance: keeps all statistics, and hides nobody; for comparison.';

-- anon.pica_report: the search for the cluster size that anon.pica makes where none is given, one row per trial
-- release.
--     step, cluster_size   the trial
--     purpose       'one cluster', 'search' or 'confirm'
--     distance_shift, ambiguity_shift, uncertainty_shift   95 % bounds of how far the measures lie below those of the
--                   reference
--     exact_copies, unique_copies, near_copies   the shares of records that are repeated, of unique records that are,
--                   and of isolated records that a released row comes too near to
--     passed        whether the trial is as safe as the reference
--     chosen        whether anon.pica would take this size
-- The parameters are those of anon.pica.
-- test: tests/release/pica_report.test
-- needs: python
CREATE OR REPLACE MACRO anon.pica_report(
    tbl, cols, basis := 'ica', clustering := 'auto', reference := NULL, log := NULL, nulls := 'error',
    checks := 'error', seed := NULL, k := 10, special := 'auto', categories := NULL, derived := 'auto'
) AS TABLE
SELECT unnest(anon._run_pica_report(anon._pack('anon.pica_report', tbl, cols, seed),
                                    anon._pack_other('anon.pica_report', reference, tbl, cols, seed),
                                    {'basis': basis, 'clustering': clustering, 'log': log, 'nulls': nulls,
                                     'checks': checks, 'seed': seed, 'k': k, 'special': special,
                                     'categories': categories, 'derived': derived}), max_depth := 2);
COMMENT ON MACRO TABLE anon.pica_report IS
    'The search for the cluster size of anon.pica: one row per trial release, with its privacy measures.';

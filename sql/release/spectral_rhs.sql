-- anon.spectral_rhs: every record replaced by one that at least `k` records share: the principal components are split
-- at medians, always the widest one, while a part has more than 2k rows; each part is released as copies of one record.
--     label  'mean': the part's mean (variances shrink); 'member': the record nearest to it, a real one, whose
--            categories and decimals are possible ones
--     key    one of `cols` that stays unchanged, to measure a release with anon.matching_attack; not to be given away
--     log, nulls, seed  as in anon.svd_swap
--     person  a column that tells whose each row is, none of `cols`: each released record then stands for at least k
--             different people; a row without one counts as nobody's, and the column is not released. NULL: each row is
--             another person
-- That at least k rows, or people, share each released record is counted before the rows are returned.
--     (Thesis, Figure 4-2)
-- test: tests/release/spectral_rhs.test
-- needs: python
CREATE OR REPLACE MACRO anon.spectral_rhs(
    tbl, cols, k, label := 'mean', key := NULL, log := NULL, nulls := 'error', seed := NULL, person := NULL
) AS TABLE
FROM anon._unpack(anon._run_spectral_rhs(anon._pack_people('anon.spectral_rhs', tbl, cols, person, seed),
                                         {'k': k, 'label': label, 'key': key, 'log': log, 'nulls': nulls, 'seed': seed,
                                          'person': person}),
                  tbl, cols);
COMMENT ON MACRO TABLE anon.spectral_rhs IS
    'Microaggregation along principal components: every released record stands for at least k.';

-- anon.pica: new records that keep nonlinear structure too: the table is cut into clusters, and in each the independent
-- components are permuted and turned back into columns (Partitioned ICA swapping).
--     cluster_size  records per cluster (from half to one and a half times as many); fewer keep more structure and
--                   hide less. NULL: the smallest size whose release is as safe as not taking
--                   part, as far as the measures of anon.privacy_test tell; anon.pica_report shows the search
--     basis         'ica': independent components; 'pca': principal components, far cheaper and safer for isolated
--                   records
--     clustering    'spectral': as in the Thesis, for some thousands of rows; 'bisect': repeated 2-means, at a cost
--                   linear in the rows; 'auto': by the number of rows
--     reference     a table of people who are not in `tbl`, to compare with while searching; NULL: leave-one-out
--     log, nulls, checks, seed, k, special, categories, derived  as in anon.svd_swap
--     (Thesis, Figure 5-1)
-- test: tests/release/pica.test
-- needs: python
CREATE OR REPLACE MACRO anon.pica(
    tbl, cols, cluster_size := NULL, basis := 'ica', clustering := 'auto', reference := NULL, log := NULL,
    nulls := 'error', checks := 'error', seed := NULL, k := 10, special := 'auto', categories := NULL, derived := 'auto'
) AS TABLE
FROM anon._unpack(anon._run_pica(anon._pack('anon.pica', tbl, cols, seed),
                                 anon._pack_other('anon.pica', reference, tbl, cols, seed),
                                 {'cluster_size': cluster_size, 'basis': basis, 'clustering': clustering, 'log': log,
                                  'nulls': nulls, 'checks': checks, 'seed': seed, 'k': k, 'special': special,
                                  'categories': categories, 'derived': derived}),
                  tbl, cols);
COMMENT ON MACRO TABLE anon.pica IS
    'New records that keep nonlinear structure: permutes the independent components of clusters.';

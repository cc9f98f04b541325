-- anon.spectral_release: new records that keep what the table's clusters of similar records have in common, made of
-- values that many people hold: the release to recommend for tables of people. Clusters keep their means and
-- covariances of normal scores; each record of a cluster is drawn anew, in place of permuting what its people have.
--     k             a value comes out only if at least k people hold it, or nobody, at the digits that the column has
--                   (unrounded numbers: those that tell its values apart); numbers such as ages, of which
--                   nearly all are somebody's, also if three people do. That is counted before the rows are returned.
--                   Numbers that fewer than k people hold are drawn between the ends of groups of at least k; the
--                   smallest and the largest are the rounded means of the k most extreme; rare categories are merged,
--                   texts as 'other'
--     cluster_size  records per cluster (from half to one and a half times as many); fewer keep more structure and hide
--                   less. NULL: the smallest size with which isolated people are hardly recognised, whether they take
--                   part or not (a tolerance, not a proof, that is kept with a margin), or all records as one cluster
--     rows          how many records; NULL: as many as the table has
--     by            columns that are released as they are: records are drawn within each of their groups, whose shares
--                   are those of who is not kept out: exact sizes would tell the last one's labels
--     keep_out      people, drawn at random in each group, whom the release says nothing about: who knows everybody but
--                   one could compute the last one from exact means and counts
--     special       numbers that stand for something else, such as zeros of many and negative codes, are told from the
--                   others and come back as often: 'auto' finds them, MAP {'cigarettes': [-8, 0]} says which a column
--                   has, 'off' has none
--     categories    the numbers that are categories; NULL: whole ones of at most twelve values; []: none
--     derived       'auto': sums, products and coarser columns that follow from others are computed again, and
--                   contradict nothing; 'off': they are drawn like others
--     nulls, seed   as in anon.svd_swap
--     person        a column that tells whose each row is, none of `cols`: k then means different people; a row without
--                   one counts as nobody's, and the column is not released. NULL: each row is another person
--     (Perkonoja and Virta 2024, in clusters, with the quantile functions of anon.copula_synthesize)
-- test: tests/release/spectral_release.test
-- needs: python
CREATE OR REPLACE MACRO anon.spectral_release(
    tbl, cols, k := 10, cluster_size := NULL, rows := NULL, by := NULL, keep_out := 25, special := 'auto',
    categories := NULL, derived := 'auto', nulls := 'error', seed := NULL, person := NULL
) AS TABLE
FROM anon._unpack(anon._run_spectral_release(
                      anon._pack_people('anon.spectral_release',
                                        anon._checked_by('anon.spectral_release', "by", cols, [], tbl),
                                        anon._with_columns(cols, "by"), person, seed),
                      {'k': k, 'cluster_size': cluster_size, 'rows': rows, 'by': TRY_CAST("by" AS VARCHAR[]),
                       'keep_out': keep_out, 'special': special, 'categories': categories, 'derived': derived,
                       'nulls': nulls, 'seed': seed, 'person': person}),
                  tbl, anon._with_columns(cols, "by"));
COMMENT ON MACRO TABLE anon.spectral_release IS
    'New records that keep a table''s structure, of values that at least k people share: the release to recommend.';

-- anon.compare_releases: several releases of one table side by side, one row per release and measure: a risk-utility
-- map.
--     releases   a map from names to tables: MAP {'swapped': 'svd', 'clusters': 'pica'}
--     kind       'privacy' or 'utility'
--     measure    privacy: what anon.privacy_test judges: the 95 % bounds of the shifts of distance, ambiguity and
--                uncertainty, the shares of exact, unique and near copies, and with `reference` the AUC of
--                isolated_membership
--                utility: the median differences of anon.utility; kernel_ks, the mean Kolmogorov-Smirnov distance along
--                the first 20 kernel principal components; detectability, an AUC; query_error, the median of
--                anon.query_utility
--     value      of the release
--     reference_value   of the reference sample, where one is given: what another sample would have
--     pass       of privacy: as anon.privacy_test judges; NULL for utility
--     max_rows   a table of more rows is compared by this many, drawn at random
--     hierarchies   of coarse releases: MAP {'education': 'education_hierarchy'}, as in anon.generalization_loss
--     log           as in anon.prediction_risk: of privacy and kernel_ks
--     special, categories   as in anon.prediction_risk, for all measures but query_error: anon.utility and
--                anon.detectability are called with them, too
--     derived    'auto' leaves out columns that follow from others, of privacy and kernel_ks, as in anon.privacy_test
-- Releases of all families stand side by side: new records, and coarse releases (labels, intervals, ancestors), which
-- are read as in anon.privacy_test and anon.utility.
-- test: tests/measure/compare_releases.test
-- needs: python
CREATE OR REPLACE MACRO anon.compare_releases(
    original, releases, cols, reference := NULL, max_rows := 10_000, hierarchies := NULL, log := NULL,
    special := 'auto', categories := NULL, derived := 'off', seed := NULL
) AS TABLE
WITH _duckanon_stacked AS (
    FROM anon._stacked('anon.compare_releases', releases, cols)
), _duckanon_meanings AS (
    SELECT list(struct_pack(release, meanings)) AS all_meanings
    FROM anon._stacked_meanings('anon.compare_releases', original, releases, cols, hierarchies)
)
SELECT unnest(anon._run_compare_releases(
           anon._pack('anon.compare_releases', original, cols, seed),
           anon._tickets('_duckanon_stacked', '', seed, true),
           anon._pack_other('anon.compare_releases', reference, original, cols, seed),
           {'meanings': (SELECT all_meanings FROM _duckanon_meanings), 'max_rows': max_rows, 'log': log,
            'special': special, 'categories': categories, 'derived': derived, 'seed': seed}),
           max_depth := 2);
COMMENT ON MACRO TABLE anon.compare_releases IS
    'Privacy and utility of several releases of a table, one row per release and measure.';

-- anon.membership_audit: whether a way to release tells who is in a table, for the people whom it would tell first: the
-- 10 % who are farthest from everybody else. Random halves of `tbl` are released, each with the other, so that
-- everybody is part of half of the releases; these should come no nearer to people who are part of them than to others.
--     method      'spectral_release', 'svd_swap', 'pica', 'copula_synthesize', 'data_shuffle' or 'additive_noise'
--     options     its options: {'cluster_size': 200, 'basis': 'pca'}. Its own checks are off: a release that they would
--                 refuse is measured, too
--     splits      how often the table is halved; each half is released
--     max_rows    a larger table is audited on this many rows, drawn at random
--     log, special, categories, seed   as in anon.privacy_test; the release's own, too, where it has these options
--     derived     'auto' leaves columns that follow from others out of distances, as in anon.privacy_test; what the
--                 release does with them is one of its options
--     scale       'standardised' or 'normal_scores': in which the distances are, and who is isolated
--     people, releases   how many isolated people, and releases, were looked at
--     win_rate    how often a release with a person comes nearer to that person than one without: 0.5 tells nothing
--     standard_error   of the win rate over the people
--     tolerance   what win_rate may be at most. It is a tolerance: a method that passes may leak that much
--     pass        whether it is, or exceeds it by at most 1.645 standard errors, which chance explains: of methods at
--                 the tolerance one in twenty fails
-- Halves have half the people of the whole table, in which everybody is a little better hidden; releasing the same
-- people again adds to what is known.
-- test: tests/measure/membership_audit.test
-- needs: python
CREATE OR REPLACE MACRO anon.membership_audit(
    tbl, cols, method := 'svd_swap', options := NULL, splits := 5, max_rows := 10_000, log := NULL,
    special := 'auto', categories := NULL, derived := 'off', seed := NULL
) AS TABLE
SELECT unnest(anon._run_membership_audit(anon._pack('anon.membership_audit', tbl, cols, seed),
                                         {'method': method, 'options': options, 'splits': splits,
                                          'max_rows': max_rows, 'log': log, 'special': special,
                                          'categories': categories, 'derived': derived, 'seed': seed}), max_depth := 2);
COMMENT ON MACRO TABLE anon.membership_audit IS
    'Whether releases by a method come nearer to isolated people who are part of them than to those who are not.';

-- anon.privacy_test: whether a release is as safe for the people in `original` as not taking part would have been: the
-- measures of anon.prediction_risk against those of a sample that none of them is in, and what such distributions
-- cannot see.
--     measure      distance, ambiguity, uncertainty: their distributions over the records
--                  exact_copies: the share of the records that the release has a copy of
--                  unique_copies: the same among the records that have no equal
--                  near_copies: the share of the most isolated 5 % of the records to which a released row comes nearer
--                  than half the distance that the reference leaves
--                  membership: with `holdout`, the AUC of telling members by their distance
--     value, reference_value   the medians, the shares, the AUC
--     ks, p_value  the one-sided Kolmogorov-Smirnov test of the Thesis: small p means less privacy than the reference
--     shift        by how much the release's distribution function exceeds the reference's at most: the share of the
--                  records that moved to smaller values
--     shift_bound  its upper 95 % bound
--     "limit"      what shift_bound, or value, may be at most
--     pass         whether it is
--     reference    a table of other people from the same population, as large as the release; NULL: every record is
--                  compared with all other records (leave-one-out)
--     holdout      a table of other people, to whom released rows should be as near as to the members
--     sample       look at this many originals, drawn at random; NULL: up to 5,000
--     hierarchies  of a coarse release: MAP {'education': 'education_hierarchy'}, as in anon.generalization_loss
-- A row of a coarse release (labels, intervals, ancestors) stands for a value drawn from what its cells hold, as in
-- anon.prediction_risk. An exact copy is a row whose cells hold the record's values and no others; a unique copy one
-- whose cells hold the record and nobody else of the original, however wide they are: in a k-anonymous release there is
-- none. With a reference, as many of its people may be singled out by the same cells.
--     (Thesis, Sections 3.1 and 5.2, with equivalence tested instead of a p-value)
-- test: tests/measure/privacy_test.test
-- needs: python
CREATE OR REPLACE MACRO anon.privacy_test(
    original, released, cols, reference := NULL, holdout := NULL, k := 5, sample := NULL, hierarchies := NULL,
    log := NULL, seed := NULL
) AS TABLE
SELECT unnest(anon._run_privacy_test(anon._pack('anon.privacy_test', original, cols, seed),
                                     anon._pack('anon.privacy_test', released, cols, seed),
                                     anon._pack_other('anon.privacy_test', reference, original, cols, seed),
                                     anon._pack_other('anon.privacy_test', holdout, original, cols, seed),
                                     {'meanings': anon._label_meanings('anon.privacy_test', original, released, cols,
                                                                       hierarchies),
                                      'k': k, 'sample': sample, 'log': log, 'seed': seed}), max_depth := 2);
COMMENT ON MACRO TABLE anon.privacy_test IS
    'Tests whether a release is as safe as not taking part: prediction risk, copies, isolated records, membership.';

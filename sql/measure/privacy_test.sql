-- anon.privacy_test: whether a release is as safe for the people in `original` as not taking part would have been: the
-- measures of anon.prediction_risk against those of a sample that none of them is in, and what such distributions
-- cannot see.
--     measure      distance, ambiguity, uncertainty: their distributions over the records
--                  exact_copies: the share of the records that the release has a copy of
--                  unique_copies: the same among the records that have no equal; a record weighs the more the less
--                  likely its values are together among the others (of the original, and of `reference`): chance copies
--                  those that are likely
--                  near_copies: the share of the most isolated 5 % of the records to which a released row comes nearer
--                  than half the distance that the reference leaves
--                  membership: with `holdout`, the AUC of telling members by their distance
--                  isolated_membership: with `holdout` or `reference`, the same among the most isolated 10 % of either
--                  side, by the distance to the release as a share of that to the nearest of their own side; the larger
--                  AUC of standardised columns and of their normal scores. Not for coarse releases
--                  class_size: in place of uncertainty, where released rows are equal in classes (microaggregates):
--                  the people who share a row, at least k
--     value, reference_value   the medians, the shares, the AUC
--     ks, p_value  the one-sided Kolmogorov-Smirnov test of the Thesis: small p means less privacy than the reference
--     shift        by how much the release's distribution function exceeds the reference's at most: the share of the
--                  records that moved to smaller values
--     shift_bound  its upper 95 % bound
--     "limit"      what shift_bound, or value, may be at most; class_size at least. In small tables it is what chance
--                  explains
--     pass         whether it is
--     answer       'pass', 'fail', or 'too few records to tell', which is no pass
--     reference    a table of other people from the same population, as large as the release; NULL: every record is
--                  compared with all other records (leave-one-out)
--     holdout      a table of other people, to whom released rows should be as near as to the members
--     draws        names of further releases of the same people: ['second', 'third']; both tests of membership attack
--                  all of them together, by mean distances. Every further release adds to what is known
--     sample       look at this many originals, drawn at random; NULL: up to 5,000
--     log, special, categories  how numbers are coded, as in anon.prediction_risk
--     derived      'auto' leaves columns out of distances that follow from others of the original, as the spectral
--                  releases find them; 'off' keeps them. Copies are counted over all columns but these
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
    draws := NULL, log := NULL, special := 'auto', categories := NULL, derived := 'off', seed := NULL
) AS TABLE
WITH _duckanon_draws AS (
    FROM anon._stacked('anon.privacy_test', anon._numbered_draws('anon.privacy_test', draws, released), cols)
)
SELECT unnest(anon._run_privacy_test(anon._pack('anon.privacy_test', original, cols, seed),
                                     anon._pack('anon.privacy_test', released, cols, seed),
                                     anon._pack_other('anon.privacy_test', reference, original, cols, seed),
                                     anon._pack_other('anon.privacy_test', holdout, original, cols, seed),
                                     anon._tickets('_duckanon_draws', '', seed, draws IS NOT NULL),
                                     {'meanings': anon._label_meanings('anon.privacy_test', original, released, cols,
                                                                       hierarchies),
                                      'k': k, 'sample': sample, 'log': log, 'special': special,
                                      'categories': categories, 'derived': derived, 'seed': seed}), max_depth := 2);
COMMENT ON MACRO TABLE anon.privacy_test IS
    'Tests whether a release is as safe as not taking part: prediction risk, copies, isolated records, membership.';

-- anon.classifier_utility: what a model learns from a release: it is trained on released rows and on as many originals,
-- and tested on other originals. One row per model and measure.
--     target    the column to predict, one of `cols` or another: a category (auc where it has two values, accuracy) or
--               a number (r2)
--     holdout   people whom the release was not made from, to test on; NULL: a random part of `original`, which the
--               release may have been made from
--     model     'boosted_trees', 'linear' (logistic for categories), and 'constant', which knows nothing but the
--               distribution of the target
--     trained_on_original, trained_on_released, difference   the scores
--     train_rows, test_rows   how many rows they rest on
--     hierarchies   of a coarse release, from whose cells values are drawn, as in anon.utility
--     special, categories   as in anon.utility: linear models get an indicator of each special value, and a target that
--               is a category is one of several classes
-- test: tests/measure/classifier_utility.test
-- needs: python
CREATE OR REPLACE MACRO anon.classifier_utility(
    original, released, cols, target, holdout := NULL, hierarchies := NULL, special := 'off', categories := [],
    seed := NULL
) AS TABLE
SELECT unnest(anon._run_classifier_utility(
           anon._pack('anon.classifier_utility', original, anon._with_target(cols, target), seed),
           anon._pack('anon.classifier_utility', released, anon._with_target(cols, target), seed),
           anon._pack_other('anon.classifier_utility', holdout, original, anon._with_target(cols, target), seed),
           {'meanings': anon._label_meanings('anon.classifier_utility', original, released,
                                             anon._with_target(cols, target), hierarchies),
            'target': target, 'special': special, 'categories': categories, 'seed': seed}), max_depth := 2);
COMMENT ON MACRO TABLE anon.classifier_utility IS
    'What models trained on a release predict for originals, against models trained on originals.';

-- anon.prediction_risk: how well each original record can be predicted from a release, one row per record: what an
-- attacker who knows the record's values, or some guess at them, finds nearest to it.
--     record       the values of `cols`
--     distance     to the nearest released row: the root of the mean squared difference of the standardized columns
--     ambiguity    the distance to the nearest over that to the k-th nearest row: 0 one row stands out, 1 a tie of k
--     uncertainty  the mean variance of the columns among the k nearest rows; with `weights` the weighted mean
--     weights      how much columns matter: MAP {'income': 3}; those that are not named have 1
--     column_uncertainty   the same by column
--     sample       look at this many originals, drawn at random; NULL: all
--     log          the columns to take logarithms of; NULL: those that are positive and heavily skewed; []: none
--     special      numbers that stand for something else, such as zeros of many and negative codes, are told from
--                  amounts ('auto', as in anon.spectral_release), or none are ('off'); MAP {'cigarettes': [-8]} says
--                  which
--     categories   the numbers that are categories; NULL: whole ones of at most twelve values, in at least ten rows for
--                  each value; []: none
--     derived      'auto' leaves columns out that follow from others of the original, as in anon.privacy_test: whoever
--                  predicts the others knows them. Their column_uncertainty is NULL; 'off' keeps them
--     hierarchies  of a coarse release: MAP {'education': 'education_hierarchy'}, as in anon.generalization_loss
-- Distances are exact. A missing value is a category of its own, and differs from every other. A special value is at
-- the mean of the others, with an indicator beside it. special := 'off', categories := [] takes all numbers as amounts,
-- as the thesis does.
-- A row of a coarse release (labels, intervals, ancestors) is known up to its cells: it stands for a value drawn from
-- what they hold, all equally likely (anon.utility). Its distance is the root of the mean squared one, which is 0 only
-- where the cells hold nothing else, and the plain distance where they are values; rows of the same cells are equally
-- near, so that a class of k has an ambiguity of 1; the uncertainty counts the variance within the cells too.
--     (Thesis, Section 3.1)
-- Names that begin with a space are used inside for what is measured: nobody's columns are called so.
-- test: tests/measure/prediction_risk.test
-- needs: python
CREATE OR REPLACE MACRO anon.prediction_risk(
    original, released, cols, k := 5, sample := NULL, hierarchies := NULL, weights := NULL, log := NULL,
    special := 'auto', categories := NULL, derived := 'off', seed := NULL
) AS TABLE
SELECT record, distance, ambiguity, uncertainty,
       map(list_transform(prefixed_names,
                          lambda prefixed: prefixed[len(' uncertainty of ') + 1:len(prefixed)]), by_column)
           AS column_uncertainty
FROM (SELECT struct_pack(*COLUMNS(cols)) AS record, " distance" AS distance, " ambiguity" AS ambiguity,
             " uncertainty" AS uncertainty,
             [UNPACK(alias(COLUMNS(lambda name: starts_with(name, ' uncertainty of '))))] AS prefixed_names,
             [UNPACK(COLUMNS(lambda name: starts_with(name, ' uncertainty of ')))] AS by_column
      FROM (SELECT unnest(anon._slot(_py._duckanon_released, alias(COLUMNS(_duckanon_original.*)),
                                     COLUMNS(_duckanon_original.*))),
                   unnest(anon._released(_py._duckanon_released, ' distance').f) AS " distance",
                   unnest(anon._released(_py._duckanon_released, ' ambiguity').f) AS " ambiguity",
                   unnest(anon._released(_py._duckanon_released, ' uncertainty').f) AS " uncertainty",
                   unnest(anon._released(_py._duckanon_released, alias(COLUMNS(_duckanon_uncertainties.*))).f)
            FROM (SELECT anon._run_prediction_risk(anon._pack('anon.prediction_risk', original, cols, seed),
                                                   anon._pack('anon.prediction_risk', released, cols, NULL),
                                                   {'meanings': anon._label_meanings('anon.prediction_risk', original,
                                                                                     released, cols, hierarchies),
                                                    'weights': anon._column_weights('anon.prediction_risk', weights),
                                                    'k': k, 'sample': sample, 'log': log, 'special': special,
                                                    'categories': categories, 'derived': derived, 'seed': seed})
                         AS _duckanon_released LIMIT 1) AS _py
                 LEFT JOIN (SELECT COLUMNS(cols) FROM query_table(original) LIMIT 0) AS _duckanon_original ON true
                 LEFT JOIN (SELECT COLUMNS('(.*)') AS ' uncertainty of \1'
                            FROM (SELECT COLUMNS(cols) FROM query_table(original) LIMIT 0))
                        AS _duckanon_uncertainties ON true));
COMMENT ON MACRO TABLE anon.prediction_risk IS
    'How well each original record can be predicted from a release: distance, ambiguity and uncertainty.';

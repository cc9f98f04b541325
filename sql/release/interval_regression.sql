-- anon.interval_regression: the coefficients of a linear regression over columns of intervals. Each comes with a range
-- that holds the coefficient of every table within the boxes. The row without a predictor is the intercept. With
-- several predictors the ranges are guaranteed but may be much wider than the exact ones; an infinite end means that
-- nothing could be ruled out.
--     estimate, lower, upper, lower_looseness, upper_looseness, linear_halfwidth, standard_error, records, weights, by
--     as in anon.interval_statistics
-- test: tests/release/interval_regression.test
-- needs: python
CREATE OR REPLACE MACRO anon.interval_regression(boxed, target, predictors, weights := NULL, by := NULL) AS TABLE
WITH _duckanon_boxes AS MATERIALIZED (
    FROM anon._grouped_boxes('anon.interval_regression', boxed,
                             anon._with_column(list_concat([target], predictors), weights), "by",
                             ['predictor', 'estimate', 'lower', 'upper', 'lower_looseness', 'upper_looseness',
                              'linear_halfwidth', 'standard_error', 'records'])
), _duckanon_answers AS (
    SELECT unnest(anon._run_interval_regression(
               anon._pack('anon.interval_regression', '"_duckanon_boxes"',
                          list_concat(anon._with_column(list_concat([target], predictors), weights),
                                      ['_duckanon_group', '_duckanon_size']), NULL),
               {'target': target, 'predictors': predictors, 'weights': weights}), max_depth := 2)
)
FROM anon._answers_of_groups('"_duckanon_boxes"', '"_duckanon_answers"');
COMMENT ON MACRO TABLE anon.interval_regression IS
    'Coefficients of a linear regression over columns of intervals, each with a guaranteed range.';

-- anon.interval_regression: the coefficients of a linear regression over columns of intervals. Each comes with a range
-- that holds the coefficient of every table within the boxes. The row without a predictor is the intercept. With up to
-- three predictors the ranges are nearly exact; with more they are guaranteed but may be much wider. An infinite end
-- means that nothing could be ruled out: some table within the boxes may have dependent predictors.
--     inner_lower, inner_upper   coefficients that some tables within the boxes have: the exact range is between this
--                                one and that of lower and upper
--     estimate, lower, upper, lower_looseness, upper_looseness, linear_halfwidth, standard_error, records, weights, by
--     as in anon.interval_statistics
--     seconds                    when to be content with what is proven by then, for all groups together; NULL: take
--                                the time it takes
--     (REFERENCES.md, Boxes: regression with several predictors)
-- test: tests/release/interval_regression.test
-- needs: python
CREATE OR REPLACE MACRO anon.interval_regression(
    boxed, target, predictors, weights := NULL, seconds := NULL, by := NULL
) AS TABLE
WITH _duckanon_boxes AS MATERIALIZED (
    FROM anon._grouped_boxes('anon.interval_regression',
                             anon._checked_regression('anon.interval_regression', boxed, target, predictors, weights),
                             boxed, anon._weighted_columns(anon._regression_columns(target, predictors), weights),
                             "by",
                             ['predictor', 'estimate', 'lower', 'upper', 'lower_looseness', 'upper_looseness',
                              'linear_halfwidth', 'standard_error', 'records', 'inner_lower', 'inner_upper'])
), _duckanon_answers AS (
    SELECT unnest(anon._run_interval_regression(
               anon._tickets('"_duckanon_boxes"',
                             list_concat(anon._weighted_columns(anon._regression_columns(target, predictors), weights),
                                         ['_duckanon_group', '_duckanon_size']), NULL, true),
               {'target': target, 'predictors': predictors, 'weights': weights, 'seconds': seconds}), max_depth := 2)
)
FROM anon._answers_of_groups('"_duckanon_boxes"', '"_duckanon_answers"');
COMMENT ON MACRO TABLE anon.interval_regression IS
    'Coefficients of a linear regression over columns of intervals, each with a guaranteed range.';

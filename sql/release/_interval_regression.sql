-- anon._interval_regression: the query of anon.interval_regression.
-- needs: python
CREATE OR REPLACE MACRO anon._interval_regression(boxed, target, predictors, weights, seconds, by) AS TABLE
WITH _duckanon_boxes AS MATERIALIZED (
    FROM anon._grouped_boxes('anon.interval_regression', boxed,
                             {'target': target, 'predictors': predictors, 'weights': weights}, "by")
), _duckanon_counted AS (
    SELECT * EXCLUDE (_duckanon_key) FROM _duckanon_boxes
), _duckanon_answers AS (
    SELECT unnest(anon._run_interval_regression(anon._tickets('"_duckanon_counted"', '', NULL, true),
                                                {'target': target, 'predictors': predictors, 'weights': weights,
                                                 'seconds': seconds}), max_depth := 2)
)
FROM anon._answers_of_groups('"_duckanon_boxes"', '"_duckanon_answers"');

-- anon.interval_statistics: means, variances, standard deviations, covariances and correlations of columns of
-- intervals. Each comes with a range that holds the statistic of every table within the boxes, the original among them.
--     estimate           with every record at the midpoint of its box
--     lower, upper       the ends of the guaranteed range
--     lower_looseness, upper_looseness   how far inside the exact ends can lie at most, proven
--     linear_halfwidth   by the derivatives, as in the papers: the right width in the wrong place
--     standard_error     of the sampling
--     records            how many there are
--     weights            a column of weights, NULL: all the same
--     unbiased           true: variances are multiplied by N / (N - 1), N the number of records
--     by                 exact columns: an answer for each group of records that agree in them, the groups' columns
--                        first; NULL: one answer for all
-- Columns may also hold exact numbers or times. Dates and timestamps count in days since 1970. The cost grows with the
-- number of distinct boxes.
--     (Accurate Boxes; REFERENCES.md, Boxes: exact ranges over boxes)
-- test: tests/release/interval_statistics.test
-- needs: python
CREATE OR REPLACE MACRO anon.interval_statistics(boxed, cols, weights := NULL, unbiased := false, by := NULL) AS TABLE
WITH _duckanon_boxes AS MATERIALIZED (
    FROM anon._grouped_boxes('anon.interval_statistics',
                             anon._checked_weights('anon.interval_statistics', weights, cols,
                                                   anon._checked('anon.interval_statistics', boxed, cols)), boxed,
                             anon._weighted_columns(cols, weights), "by",
                             ['statistic', 'columns', 'estimate', 'lower', 'upper', 'lower_looseness',
                              'upper_looseness', 'linear_halfwidth', 'standard_error', 'records'])
), _duckanon_answers AS (
    SELECT unnest(anon._run_interval_statistics(
               anon._tickets('"_duckanon_boxes"', list_concat(anon._weighted_columns(cols, weights),
                                                              ['_duckanon_group', '_duckanon_size']), NULL, true),
               {'weights': weights, 'unbiased': unbiased}), max_depth := 2)
)
FROM anon._answers_of_groups('"_duckanon_boxes"', '"_duckanon_answers"');
COMMENT ON MACRO TABLE anon.interval_statistics IS
    'Statistics of columns of intervals, each with a guaranteed range.';

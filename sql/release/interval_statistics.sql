-- anon.interval_statistics: means, variances, standard deviations, covariances and correlations of columns of
-- intervals, each with a range that the statistic of every table within the boxes keeps to, the original's among them.
--     estimate       every record at the midpoint of its box
--     lower, upper   guaranteed;  lower_looseness, upper_looseness   the exact ends are at most so far inside, proven
--     linear_halfwidth   by the derivatives, as in the papers: the right width in the wrong place
--     standard_error     of the sampling;  records
--     weights        a column of weights, NULL: all the same;  unbiased   variances times N / (N - 1)
-- Dates and timestamps count in days since 1970. The cost goes with the number of distinct boxes.
--     (Accurate Boxes; ERRATA: exact ranges)
-- test: tests/release/interval_statistics.test
-- needs: python
CREATE OR REPLACE MACRO anon.interval_statistics(boxed, cols, weights := NULL, unbiased := false) AS TABLE
WITH _duckanon_boxes AS (
    FROM anon._classes('anon.interval_statistics', boxed, list_concat(cols, list_filter([weights], lambda w: w IS NOT NULL)), 'value')
)
SELECT unnest(_anon_interval_statistics(
           anon._pack('anon.interval_statistics', '_duckanon_boxes',
                      list_concat(cols, list_filter([weights, '_duckanon_size'], lambda w: w IS NOT NULL)), NULL),
           weights, unbiased), max_depth := 2);
COMMENT ON MACRO TABLE anon.interval_statistics IS
    'Statistics of columns of intervals, each with a guaranteed range.';

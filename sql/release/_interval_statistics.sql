-- anon._interval_statistics: the query of anon.interval_statistics.
-- needs: python
CREATE OR REPLACE MACRO anon._interval_statistics(boxed, cols, weights, unbiased, by) AS TABLE
WITH _duckanon_boxes AS MATERIALIZED (
    FROM anon._grouped_boxes('anon.interval_statistics', boxed, {'cols': cols, 'weights': weights}, "by")
), _duckanon_counted AS (
    SELECT * EXCLUDE (_duckanon_key) FROM _duckanon_boxes
), _duckanon_answers AS (
    SELECT unnest(anon._run_interval_statistics(anon._tickets('"_duckanon_counted"', '', NULL, true),
                                                {'weights': weights, 'unbiased': unbiased}), max_depth := 2)
)
FROM anon._answers_of_groups('"_duckanon_boxes"', '"_duckanon_answers"');

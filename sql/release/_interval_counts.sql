-- anon._interval_counts: the query of anon.interval_counts. Only columns whose names occur in the condition, each as a
-- word of its own, travel to Python.
-- needs: python
CREATE OR REPLACE MACRO anon._interval_counts(boxed, condition, by) AS TABLE
WITH _duckanon_shaped AS (
    SELECT *, NULL AS _duckanon_none FROM anon._intervals('anon.interval_counts', boxed, boxed)
), _duckanon_distinct AS (
    SELECT COLUMNS(lambda name: name = '_duckanon_none'
                                OR regexp_matches(condition, '(?is)(^|\W)' || regexp_escape(replace(name, '"', '""'))
                                                             || '(\W|$)')),
           struct_pack(*COLUMNS(_anon_choose(*, 'anon.interval_counts', boxed, {'by': anon._group_columns("by")})))
               AS _duckanon_key, count(*) AS _duckanon_size
    FROM _duckanon_shaped
    WHERE anon._unless((SELECT sentence FROM anon._refused_groups('anon.interval_counts', boxed, "by")))
    GROUP BY ALL
), _duckanon_boxes AS MATERIALIZED (
    SELECT *, dense_rank() OVER (ORDER BY _duckanon_key ASC NULLS LAST) AS _duckanon_group FROM _duckanon_distinct
), _duckanon_counted AS (
    SELECT * EXCLUDE (_duckanon_key, _duckanon_none) FROM _duckanon_boxes
), _duckanon_answers AS (
    SELECT unnest(anon._run_interval_counts(anon._tickets('"_duckanon_counted"', '', NULL, true),
                                            {'condition': condition}), max_depth := 2)
)
FROM anon._answers_of_groups('"_duckanon_boxes"', '"_duckanon_answers"');

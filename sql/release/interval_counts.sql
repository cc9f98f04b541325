-- anon.interval_counts: how many records of a boxed table meet a condition. Whatever table lies within the boxes, and
-- the original is one of them, between `certain` and `possible` of its records do, and two tables have these very
-- counts.
--     condition  a text: comparisons of columns with values, joined by AND, OR, NOT and parentheses, such as
--                'sbp >= 140 AND age BETWEEN 30 AND 40' (_methods/intervals/conditions.py). It is read, never run
--                as SQL
--     certain    records whose whole box meets it
--     estimate   the sum of the shares of the boxes that meet it, as if values were spread evenly there
--     possible   records for which some part of the box meets it
--     records    how many there are
--     certain_fraction, estimate_fraction, possible_fraction   the same over all records
--     by         as in anon.interval_statistics
-- Exact columns, also texts and booleans, may stand beside intervals; for a NULL a comparison does not hold, as in SQL.
-- An open end has no bound; for the estimate such an interval counts as the end that it has.
-- Only columns whose names occur in the condition are read.
-- test: tests/release/interval_counts.test
-- needs: python
CREATE OR REPLACE MACRO anon.interval_counts(boxed, condition, by := NULL) AS TABLE
WITH _duckanon_shaped AS (
    SELECT *, NULL AS _duckanon_none
    FROM anon._intervals('anon.interval_counts',
                         anon._checked_by('anon.interval_counts', "by", [],
                             ['certain', 'estimate', 'possible', 'records', 'certain_fraction', 'estimate_fraction',
                              'possible_fraction'],
                             anon._checked('anon.interval_counts', boxed, ['*'])), boxed)
), _duckanon_distinct AS (
    SELECT COLUMNS(lambda name: anon._is_mentioned(name, condition)),
           struct_pack(*COLUMNS(anon._group_columns("by"))) AS _duckanon_key, count(*) AS _duckanon_size
    FROM _duckanon_shaped
    WHERE anon._unless((SELECT sentence FROM anon._refused_groups('anon.interval_counts', boxed, "by")))
    GROUP BY ALL
), _duckanon_boxes AS MATERIALIZED (
    SELECT *, dense_rank() OVER (ORDER BY _duckanon_key ASC NULLS LAST) AS _duckanon_group FROM _duckanon_distinct
), _duckanon_counted AS (
    SELECT * EXCLUDE (_duckanon_key, _duckanon_none) FROM _duckanon_boxes
), _duckanon_answers AS (
    SELECT unnest(anon._run_interval_counts(
               anon._pack_all('anon.interval_counts', '"_duckanon_counted"', ['_duckanon_group', '_duckanon_size']),
               {'condition': condition}), max_depth := 2)
)
FROM anon._answers_of_groups('"_duckanon_boxes"', '"_duckanon_answers"');
COMMENT ON MACRO TABLE anon.interval_counts IS
    'How many records of a boxed table meet a condition: for certain, at most, and estimated.';

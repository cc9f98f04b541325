-- anon.query_utility: how far random counts (`WHERE age BETWEEN .. AND city IN ..`) on a release are from those on the
-- original.
--     predicates    one to three columns in a query; NULL: over all queries
--     queries       how many were asked
--     median_relative_error, mean_relative_error, p90_relative_error   of their counts; counts below 0.1 % of the rows
--                   are taken relative to that share
--     hierarchies   MAP {'education': 'education_hierarchy'}, as in anon.generalization_loss
-- A released cell may be a value, an interval STRUCT(lo, hi) (anon.boxes, both ends belong to it), or any label that
-- anon.generalization_loss reads: '[20, 30)', '<25', '1950s', '021**', '{a, b}', 'other', '*', one of `hierarchies`. A
-- row counts with the share of its cell that the query covers, as if values were spread evenly over the cell and
-- independently across columns, as is usual for k-anonymous tables. Without an end a cell reaches to the original's
-- smallest or largest value. Rows that were suppressed are taken to be like the others: counts are scaled to the
-- original's number of rows.
-- test: tests/measure/query_utility.test
-- needs: python
CREATE OR REPLACE MACRO anon.query_utility(
    original, released, cols, queries := 1000, hierarchies := NULL, seed := NULL
) AS TABLE
SELECT unnest(anon._run_query_utility(
           anon._pack('anon.query_utility',
                      anon._checked_table('anon.query_utility', 'original', original, original), cols, seed),
           anon._pack('anon.query_utility',
                      anon._checked_table('anon.query_utility', 'released', released, released), cols, seed),
           {'meanings': anon._label_meanings('anon.query_utility', original, released, cols, hierarchies),
            'queries': queries, 'seed': seed}), max_depth := 2);
COMMENT ON MACRO TABLE anon.query_utility IS
    'Relative errors of random range counts on a release.';

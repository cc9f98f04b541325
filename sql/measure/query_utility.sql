-- anon.query_utility: how far random counts (`WHERE age BETWEEN .. AND city IN ..`) on a release are from those on the original.
--     predicates    one to three columns in a query; NULL: over all queries
--     queries, median_relative_error, mean_relative_error, p90_relative_error   errors, of counts below 0.1 % of the rows relative to that share
-- Released columns may be intervals (anon.boxes) or labels such as '[20, 30)': rows count with the share of their cell that the range
-- covers, as is usual for k-anonymous tables. Counts are scaled to the original's number of rows.
-- test: tests/measure/query_utility.test
-- needs: python
CREATE OR REPLACE MACRO anon.query_utility(original, released, cols, queries := 1000, seed := NULL) AS TABLE
SELECT unnest(_anon_query_utility(anon._pack('anon.query_utility', original, cols, seed),
                                  anon._pack('anon.query_utility', released, cols, seed), queries, seed), max_depth := 2);
COMMENT ON MACRO TABLE anon.query_utility IS
    'Relative errors of random range counts on a release.';

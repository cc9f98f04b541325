-- anon._diversity: what the sensitive values of each class look like to someone who knows that a person is in it.
--     entropy_l  exp of the entropy of the values' shares
--     counts     how often each value occurs, the most frequent first
CREATE OR REPLACE MACRO anon._diversity(caller, tbl, cols, sensitive, nulls) AS TABLE
SELECT class, sum(size)::BIGINT AS class_size, count(*) AS distinct_l,
       greatest(exp(ln(sum(size)) - sum(size * ln(size)) / sum(size)), 1) AS entropy_l, list(size ORDER BY size DESC) AS counts
FROM anon._sensitive_cells(caller, tbl, cols, sensitive, nulls)
GROUP BY class;

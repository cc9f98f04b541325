-- anon._diversity: what the sensitive values of each class look like to someone who knows that a person is in it. All
-- counts are of rows, or with `person` of the different people who have the value.
--     cells      name of a step with the rows of anon._sensitive_cells
--     total      the sum of the values' counts; a person with two values is in it twice
--     largest    the count of the most frequent value
--     entropy_l  exp of the entropy of the values' shares of the total, 0 where there is nobody
CREATE OR REPLACE MACRO anon._diversity(cells) AS TABLE
SELECT class, total, distinct_l, largest,
       CASE WHEN total = 0 THEN 0 ELSE greatest(exp(ln(total) - logs / total), 1) END AS entropy_l
FROM (SELECT class, sum(size)::BIGINT AS total, count(*) FILTER (size > 0) AS distinct_l, max(size) AS largest,
             sum(size * ln(greatest(size, 1))) AS logs
      FROM query_table(cells) GROUP BY class);

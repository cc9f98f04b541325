-- anon._population_classes: how many people of the table and of the population are in each class, and how many rows of
-- the table.
--     members  name of a step with the rows of anon._population_members
CREATE OR REPLACE MACRO anon._population_classes(members, person) AS TABLE
SELECT class, coalesce(sum(row_count) FILTER (is_sample), 0)::BIGINT AS row_count,
       CASE WHEN person IS NULL THEN coalesce(sum(row_count) FILTER (is_sample), 0)
            ELSE count(member) FILTER (is_sample) END::BIGINT AS sample_people,
       CASE WHEN person IS NULL THEN coalesce(sum(row_count) FILTER (NOT is_sample), 0)
            ELSE count(member) FILTER (NOT is_sample) END::BIGINT AS population_people
FROM query_table(members)
GROUP BY class;

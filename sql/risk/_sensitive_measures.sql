-- anon._sensitive_measures: what each class tells about the sensitive column, by the criteria that have no distance.
-- All shares are of people: q of those of the class who have a value, p of those of the table.
--     members         name of a step with the rows of anon._sensitive_members
--     basic_beta      largest (q - p) / p of a value of the class, at least 0
--     enhanced_beta   the same, infinite where it exceeds -ln p for some value: no beta would do then
--     delta           largest |log2(q / p)| of a value of the class
--     recursive_l     the largest l with r1 < c (rl + ... + rm), r1 >= r2 >= ... the values' counts; at least 1
--     people_l        1 / the largest q: how many values seem equally likely at the worst
--     people_entropy  exp of the entropy of the values, where every person has one vote, divided among their rows
--     is_for_all      whether recursive_l and people_entropy are right in every class; else only where they are
--                     smallest: in other classes recursive_l may be 2 instead of more, and people_entropy too large
-- A class of nobody whose name is known has no shares: it is as bad as can be. Only recursive_l takes sorted values;
-- they are sorted only in classes where it is more than 1. Of the worst entropies, that of a class with one value is 1,
-- and no other class has it: where there is one, no logarithms are summed, unless people have several values.
CREATE OR REPLACE MACRO anon._sensitive_measures(members, c, person, is_for_all) AS TABLE
WITH _measured_row_cells AS NOT MATERIALIZED (
    SELECT class, value, size AS people, size::DOUBLE AS votes FROM query_table(members)
), _measured_people_cells AS MATERIALIZED (
    SELECT class, value, count(member) AS people, fsum(votes) AS votes
    FROM (SELECT class, value, member,
                 CASE WHEN member IS NOT NULL THEN size / sum(size) OVER (PARTITION BY class, member) END AS votes
          FROM query_table(members))
    GROUP BY class, value HAVING people > 0
), _measured_cells AS NOT MATERIALIZED (
    FROM query_table(CASE WHEN person IS NULL THEN '_measured_row_cells' ELSE '_measured_people_cells' END)
), _measured_row_values AS NOT MATERIALIZED (
    SELECT value, sum(size)::BIGINT AS value_people FROM query_table(members) GROUP BY value
), _measured_people_values AS NOT MATERIALIZED (
    SELECT value, count(DISTINCT member) AS value_people FROM query_table(members) GROUP BY value
), _measured_value_people AS MATERIALIZED (
    FROM query_table(CASE WHEN person IS NULL THEN '_measured_row_values' ELSE '_measured_people_values' END)
), _measured_all_rows AS NOT MATERIALIZED (
    SELECT sum(value_people)::BIGINT AS everybody FROM _measured_value_people
), _measured_all_people AS NOT MATERIALIZED (
    SELECT count(DISTINCT member) AS everybody FROM query_table(members)
), _measured_everybody AS MATERIALIZED (
    FROM query_table(CASE WHEN person IS NULL THEN '_measured_all_rows' ELSE '_measured_all_people' END)
), _measured_values AS (
    SELECT value, value_people, value_people * (1 - ln(value_people / everybody)) AS enhanced_people
    FROM _measured_value_people, _measured_everybody
    WHERE value_people > 0
), _measured_found AS MATERIALIZED (
    SELECT class, sum(people::DOUBLE)::BIGINT AS total, max(people) AS largest, max(people / value_people) AS highest,
           min(people / value_people) AS lowest, max(people / enhanced_people) AS enhanced
    FROM _measured_cells
         JOIN _measured_values ON _measured_cells.value IS NOT DISTINCT FROM _measured_values.value
    GROUP BY class
), _measured_vote_logs AS (                                     -- nothing is read where no class needs it
    SELECT class, sum(votes * ln(votes)) AS vote_logs
    FROM _measured_cells
    WHERE votes <> 1
          AND (is_for_all OR person IS NOT NULL OR (SELECT bool_and(largest < total) FROM _measured_found))
    GROUP BY class
), _measured_longer AS (                                        -- classes with a recursive_l of at least 2
    SELECT class, largest FROM _measured_found
    WHERE largest < c * (total - largest)
          AND (is_for_all OR (SELECT bool_and(largest < c * (total - largest)) FROM _measured_found))
), _measured_recursive AS (
    SELECT class, count(*) FILTER (largest < c * at_most) AS recursive_l
    FROM (SELECT class, largest, sum(people) OVER (PARTITION BY class ORDER BY people ASC NULLS LAST
                                                   ROWS UNBOUNDED PRECEDING) AS at_most
          FROM _measured_cells JOIN _measured_longer USING (class))
    GROUP BY class
), _measured_of_rows AS NOT MATERIALIZED (
    SELECT *, total AS class_people FROM _measured_found
), _measured_of_people AS NOT MATERIALIZED (
    FROM (SELECT class, count(DISTINCT member) AS class_people FROM query_table(members) GROUP BY class)
         LEFT JOIN _measured_found USING (class)
), _measured_ratios AS (                                        -- q / p; three roundings may miss a 1 by 3e-16
    SELECT *, class_people / everybody AS class_share,
           coalesce(vote_logs, CASE WHEN largest = total THEN total * ln(total) ELSE 0 END) AS logs,
           CASE WHEN abs(highest / class_share - 1) < 1e-15 THEN 1 ELSE highest / class_share END AS highest_ratio,
           CASE WHEN abs(lowest / class_share - 1) < 1e-15 THEN 1 ELSE lowest / class_share END AS lowest_ratio
    FROM query_table(CASE WHEN person IS NULL THEN '_measured_of_rows' ELSE '_measured_of_people' END)
         LEFT JOIN _measured_recursive USING (class) LEFT JOIN _measured_vote_logs USING (class), _measured_everybody
)
SELECT class, class_people,
       CASE WHEN total > 0 THEN greatest(highest_ratio - 1, 0) ELSE 'inf'::DOUBLE END AS basic_beta,
       CASE WHEN enhanced / class_share <= 1 THEN greatest(highest_ratio - 1, 0) ELSE 'inf'::DOUBLE END
           AS enhanced_beta,
       CASE WHEN total > 0 THEN greatest(log2(highest_ratio), -log2(lowest_ratio)) ELSE 'inf'::DOUBLE END AS delta,
       CASE WHEN largest < c * (total - largest) THEN coalesce(recursive_l, 2) WHEN total > 0 THEN 1 ELSE 0 END
           AS recursive_l,
       CASE WHEN total > 0 THEN class_people / largest ELSE 0 END AS people_l,
       CASE WHEN total > 0 THEN greatest(exp(ln(class_people) - logs / class_people), 1) ELSE 0 END
           AS people_entropy
FROM _measured_ratios;

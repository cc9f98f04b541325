-- anon._sensitive_measures: what each class tells about the sensitive column, by the criteria that have no distance.
-- All shares are of people: q of those of the class who have a value, p of those of the table.
--     members         name of a step with the rows of anon._sensitive_members
--     basic_beta      largest (q - p) / p of a value of the class, at least 0
--     enhanced_beta   the same, infinite where it exceeds -ln p for some value: no beta would do then
--     delta           largest |log2(q / p)| of a value of the class
--     recursive_l     the largest l with r1 < c (rl + ... + rm), r1 >= r2 >= ... the values' counts; at least 1
--     people_l        1 / the largest q: how many values seem equally likely at the worst
--     people_entropy  exp of the entropy of the values, where every person has one vote, divided among their rows
-- A class of nobody whose name is known has no shares: it is as bad as can be.
CREATE OR REPLACE MACRO anon._sensitive_measures(members, c, person) AS TABLE
WITH _measured_row_cells AS NOT MATERIALIZED (
    SELECT class, value, size AS people, size::DOUBLE AS votes FROM query_table(members)
), _measured_people_cells AS NOT MATERIALIZED (
    SELECT class, value, count(member) AS people, fsum(votes) AS votes
    FROM (SELECT class, value, member,
                 CASE WHEN member IS NOT NULL THEN size / sum(size) OVER (PARTITION BY class, member) END AS votes
          FROM query_table(members))
    GROUP BY class, value
), _measured_cells AS MATERIALIZED (
    FROM query_table(CASE WHEN person IS NULL THEN '_measured_row_cells' ELSE '_measured_people_cells' END)
), _measured_classes AS MATERIALIZED (
    SELECT class, CASE WHEN person IS NULL THEN sum(size) ELSE count(DISTINCT member) END::BIGINT AS class_people
    FROM query_table(members) GROUP BY class
), _measured_values AS MATERIALIZED (
    SELECT value, CASE WHEN person IS NULL THEN sum(size) ELSE count(DISTINCT member) END::BIGINT AS value_people
    FROM query_table(members) GROUP BY value
), _measured_everybody AS (
    SELECT CASE WHEN person IS NULL THEN sum(size) ELSE count(DISTINCT member) END::BIGINT AS everybody
    FROM query_table(members)
), _measured_shares AS (
    SELECT class, people, class_people, votes / class_people AS vote_share,
           (people / class_people) / (value_people / everybody) AS ratio, -ln(value_people / everybody) AS surprise,
           max(people) OVER (PARTITION BY class) AS largest,
           sum(people) OVER (PARTITION BY class ORDER BY people ASC NULLS LAST ROWS UNBOUNDED PRECEDING) AS at_most
    FROM _measured_cells JOIN _measured_classes USING (class)
         JOIN _measured_values ON _measured_cells.value IS NOT DISTINCT FROM _measured_values.value,
         _measured_everybody
    WHERE people > 0
), _measured_found AS (
    SELECT class, greatest(max(ratio) - 1, 0) AS basic_beta,
           max(CASE WHEN ratio - 1 > surprise THEN 'inf'::DOUBLE ELSE greatest(ratio - 1, 0) END) AS enhanced_beta,
           max(abs(log2(ratio))) AS delta,
           greatest(count(*) FILTER (largest < c * at_most), 1) AS recursive_l,
           any_value(class_people) / any_value(largest) AS people_l,
           greatest(exp(-fsum(vote_share * ln(vote_share))), 1) AS people_entropy
    FROM _measured_shares GROUP BY class
)
SELECT class, class_people, coalesce(basic_beta, 'inf'::DOUBLE) AS basic_beta,
       coalesce(enhanced_beta, 'inf'::DOUBLE) AS enhanced_beta, coalesce(delta, 'inf'::DOUBLE) AS delta,
       coalesce(recursive_l, 0) AS recursive_l, coalesce(people_l, 0) AS people_l,
       coalesce(people_entropy, 0) AS people_entropy
FROM _measured_classes LEFT JOIN _measured_found USING (class);

-- anon._learned_values: what choices of events tell about a sensitive column, in the worst choice of each size.
--     share      the largest share of one value among the people who hold a choice
--     l          the fewest different values that they have
--     t          the largest half sum of |p - q|, p the shares of the values among them and q those among all people; a
--                person with two values is counted twice, as in anon.t_closeness
--     choices    name of a step with a row for each person and choice: person_number, size, choice
--     counted    name of a step with the people who hold each choice: size, choice, held
--     values_of  name of a step with the different values of each person, '' for people who have none: person_number,
--                told
-- Sums are of whole numbers, so that they do not change from run to run.
CREATE OR REPLACE MACRO anon._learned_values(choices, counted, values_of) AS TABLE
WITH _duckanon_totals AS (
    SELECT told, count(*) AS total, sum(count(*)) OVER ()::BIGINT AS everybody FROM query_table(values_of) GROUP BY told
), _duckanon_cells AS MATERIALIZED (
    SELECT size, choice, told, count(*) AS cell
    FROM query_table(choices) JOIN query_table(values_of) USING (person_number) GROUP BY size, choice, told
), _duckanon_answers AS (
    SELECT size, choice, sum(cell)::BIGINT AS answers, count(*) AS l,
           coalesce(max(cell) FILTER (told <> ''), 0) AS largest
    FROM _duckanon_cells GROUP BY size, choice
), _duckanon_learned AS (
    SELECT size, any_value(largest / held) AS share, any_value(l) AS l,
           sum(greatest(cell * everybody - total * answers, 0)) / any_value(answers * everybody) AS t
    FROM _duckanon_cells JOIN _duckanon_answers USING (size, choice) JOIN query_table(counted) USING (size, choice)
         JOIN _duckanon_totals USING (told)
    GROUP BY size, choice
)
SELECT size, max(share) AS share, min(l) AS l, max(t) AS t FROM _duckanon_learned GROUP BY size;

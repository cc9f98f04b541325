-- anon._risk_classes: for each class how many rows or people of the table are in it, for how many of the population
-- they stand, and its risk.
--     records   name of a step with rows of anon._risk_records
--     method    'exact', or 'approximate' as sdcMicro has it for classes of more than two
--     everyone  name of the step in which everybody is once: `records` may have them several times, with other classes
--     are_classes  whether each class is one record
CREATE OR REPLACE MACRO anon._risk_classes(
    caller, records, everyone, population, person, method, nulls, alpha, are_classes := false
) AS TABLE
WITH _risk_of_rows AS NOT MATERIALIZED (
    SELECT class, sum(row_count)::BIGINT AS frequency, fsum(stands_for) AS stands_for
    FROM query_table(records) GROUP BY class
), _risk_of_people AS NOT MATERIALIZED (                        -- a person has one weight, the largest of the rows'
    SELECT class, count(member) AS frequency, fsum(stands_for) FILTER (member IS NOT NULL) AS stands_for
    FROM (SELECT class, member, max(stands_for) AS stands_for FROM query_table(records) GROUP BY class, member)
    GROUP BY class
), _risk_of_matches AS NOT MATERIALIZED (
    FROM anon._matching_classes(records, alpha, are_classes)
), _risk_counted AS MATERIALIZED (
    FROM query_table(CASE WHEN nulls = 'any' THEN '_risk_of_matches' WHEN person IS NULL THEN '_risk_of_rows'
                          ELSE '_risk_of_people' END)
), _risk_universe AS (
    SELECT anon._checked_people(caller, population, row_count, people, person) / people AS people_per_record
    FROM (SELECT coalesce(sum(row_count), 0)::BIGINT AS row_count,
                 CASE WHEN person IS NULL THEN coalesce(sum(row_count), 0)::BIGINT ELSE count(DISTINCT member) END
                     AS people
          FROM query_table(everyone))
), _risk_sized AS MATERIALIZED (
    SELECT class, frequency::DOUBLE AS sample_frequency,
           coalesce(stands_for, frequency * people_per_record)::DOUBLE AS population_frequency
    FROM _risk_counted, _risk_universe
), _risk_kinds AS MATERIALIZED (
    SELECT *,
           CASE WHEN population_frequency > sample_frequency AND sample_frequency > 0
                     THEN sample_frequency / population_frequency END AS sampled,
           CASE WHEN sample_frequency > 0 THEN sample_frequency ELSE 1 END AS size
    FROM (SELECT DISTINCT sample_frequency, population_frequency FROM _risk_sized)
), _risk_of_whole AS NOT MATERIALIZED (                         -- only one of them is bound
    SELECT *, anon._expected_whole_risk(size, sampled) AS expected FROM _risk_kinds
), _risk_of_parts AS NOT MATERIALIZED (
    SELECT *, anon._expected_risk(size, sampled) AS expected FROM _risk_kinds
)
SELECT class, sample_frequency, population_frequency, risk
FROM _risk_sized JOIN (
    SELECT *, CASE WHEN sampled IS NULL THEN 1 / size           -- of nobody whose name is known 1
                   WHEN method = 'approximate' AND sample_frequency > 2
                        THEN sampled / (sample_frequency - 1 + sampled)
                   ELSE expected END AS risk
    FROM query_table(CASE WHEN nulls = 'any' THEN '_risk_of_parts' ELSE '_risk_of_whole' END)
) USING (sample_frequency, population_frequency);

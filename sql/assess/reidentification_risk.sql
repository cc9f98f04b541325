-- anon.reidentification_risk: the probability that an attacker who knows the columns of a person finds the right row,
-- for the three attackers of El Emam's guide:
--     prosecutor                  knows that the person is in the table: 1 / class size
--     journalist                  does not know it: expected 1 / number of people in the population who share the
--                                 values, estimated from the class size when the table is a random sample of the
--                                 population (Benedetti and Franconi 1998)
--     marketer                    wants as many people as possible: only the average counts
--     maximum_risk, average_risk  over the people
--     rows_at_risk                rows in classes whose risk is above `threshold`
--     people_at_risk, fraction_at_risk  people who have such a row, and their share
--     population                  number of people that the table is a sample of, or name of a table of them with the
--                                 columns, in which the journalist counts who shares the values (a class has at least
--                                 as many people there as in the table). NULL: the table is its own population, and the
--                                 journalist's risk is the prosecutor's, an upper bound [a number, a text, or NULL]
--     threshold                   a row is at risk if its risk is above this [a number from 0 to 1]
--     nulls                       as in anon.l_diversity
--     person                      column that identifies the person of a row: a class then has as many members as
--                                 different people, and a person with rows in several classes has the risk of the
--                                 smallest. A row whose person is NULL counts as nobody, and in a class without anybody
--                                 the risk is 1. A table of the population has the column too. NULL: every row is a
--                                 person [a name, or NULL]
-- The classes at risk: anon.small_classes, with the k for which 1 / k does not exceed the threshold.
-- promises: EqualsDefinition(), Between(0, 1, 'maximum_risk', 'average_risk', 'fraction_at_risk'),
--           InvariantUnder(*TABLE, 'types')
-- test: tests/assess/reidentification_risk.test
CREATE OR REPLACE MACRO anon.reidentification_risk(
    tbl, cols, population := NULL, threshold := 0.2, nulls := 'value', person := NULL
) AS TABLE
WITH _duckanon_by_rows AS (
    SELECT _duckanon_size AS class_size, sum(_duckanon_size)::BIGINT AS people, sum(_duckanon_size)::BIGINT AS row_count
    FROM anon._row_classes('anon.reidentification_risk', tbl, cols, nulls)
    GROUP BY _duckanon_size
), _duckanon_members AS MATERIALIZED (
    FROM anon._hashed_members('anon.reidentification_risk', tbl, cols, nulls, person)
), _duckanon_hashed AS MATERIALIZED (
    SELECT class, count(member) AS class_size, sum(row_count) AS row_count FROM _duckanon_members GROUP BY class
), _duckanon_by_people AS (                             -- people count where they have no smaller class
    SELECT class_size, sum(people)::BIGINT AS people, sum(row_count)::BIGINT AS row_count
    FROM (SELECT min(class_size) AS class_size, 1 AS people, 0 AS row_count
          FROM _duckanon_members JOIN _duckanon_hashed USING (class) WHERE member IS NOT NULL GROUP BY member
          UNION ALL
          SELECT class_size, 0, sum(row_count) FROM _duckanon_hashed GROUP BY class_size)
    GROUP BY class_size
), _sizes AS (
    FROM query_table(anon._checked_fraction('anon.reidentification_risk', 'threshold', threshold,
                         CASE WHEN person IS NULL THEN '_duckanon_by_rows' ELSE '_duckanon_by_people' END))
), _universe AS (
    SELECT everybody / anon._checked_people('anon.reidentification_risk',
                           CASE WHEN typeof(population) <> 'VARCHAR' THEN population END, all_rows, everybody, person)
               AS sampled
    FROM (SELECT coalesce(sum(people), 0)::BIGINT AS everybody, coalesce(sum(row_count), 0)::BIGINT AS all_rows
          FROM _sizes)
), _expected_risks AS (                                 -- what is written out often has a name
    SELECT people, row_count, 1 / size AS prosecutor, anon._expected_whole_risk(size, sampled) AS journalist
    FROM (SELECT people, row_count, greatest(class_size, 1) AS size,
                 nullif(sum(people) OVER (), 0) / TRY_CAST(population AS DOUBLE) AS sampled
          FROM _sizes)
), _expected_totals AS (
    SELECT sum(people) AS everybody, max(prosecutor) AS highest, max(journalist) AS highest_expected,
           sum(prosecutor * people) AS risk, sum(journalist * people) AS expected,
           coalesce(sum(row_count) FILTER (prosecutor > threshold), 0)::BIGINT AS at_risk,
           coalesce(sum(row_count) FILTER (journalist > threshold), 0)::BIGINT AS expected_at_risk,
           coalesce(sum(people) FILTER (prosecutor > threshold), 0)::BIGINT AS people_at_risk,
           coalesce(sum(people) FILTER (journalist > threshold), 0)::BIGINT AS people_expected
    FROM _expected_risks
    HAVING CASE WHEN everybody > 0 AND TRY_CAST(population AS DOUBLE) BETWEEN everybody AND 1e308 THEN true
                ELSE error(anon._without_people('anon.reidentification_risk', sum(row_count), everybody, person,
                               concat('population must be NULL or at least the number of ',
                                      CASE WHEN person IS NULL THEN 'rows, ' ELSE 'people, ' END,
                                      CAST(everybody AS VARCHAR), '; got ', CAST(population AS VARCHAR), '.'))) END
), _in_number AS (
    SELECT unnest(['prosecutor', 'journalist', 'marketer']) AS attacker,
           unnest([highest, highest_expected, NULL]) AS maximum_risk,
           unnest([risk, expected, expected]) / everybody AS average_risk,
           unnest([at_risk, expected_at_risk, NULL]) AS rows_at_risk,
           unnest([people_at_risk, people_expected, NULL]) / everybody AS fraction_at_risk,
           unnest([people_at_risk, people_expected, NULL]) AS people_at_risk
    FROM _expected_totals
), _among_members AS MATERIALIZED (
    FROM anon._population_members('anon.reidentification_risk', tbl, cols, population, nulls, person)
), _among_classes AS MATERIALIZED (                     -- a class has at least as many people there as in the table
    SELECT class, row_count, 1 / greatest(population_people, sample_people, 1) AS risk
    FROM anon._population_classes('_among_members', person) WHERE row_count > 0
), _among_people AS (                                   -- people count where they have no larger risk
    SELECT risk, row_count, CASE WHEN person IS NULL THEN row_count ELSE 0 END AS people FROM _among_classes
    UNION ALL
    SELECT max(risk), 0, 1
    FROM _among_members JOIN _among_classes USING (class) WHERE is_sample AND member IS NOT NULL GROUP BY member
), _counted_risks AS (
    SELECT 'prosecutor' AS attacker, people AS size_rows, row_count, false AS is_nobody,
           1 / greatest(class_size, 1) AS risk
    FROM _universe LEFT JOIN _sizes ON true
    WHERE sampled IS NOT NULL
    UNION ALL
    SELECT 'journalist', sum(people)::BIGINT, sum(row_count)::BIGINT, false, risk FROM _among_people GROUP BY risk
), _rows_at_risk AS (
    SELECT attacker, coalesce(sum(row_count) FILTER (risk > threshold), 0)::BIGINT AS class_rows
    FROM _counted_risks GROUP BY attacker
), _in_population AS (
    SELECT attacker, maximum_risk, average_risk, class_rows AS rows_at_risk, fraction_at_risk,
           attackers.rows_at_risk AS people_at_risk
    FROM anon._attackers('_counted_risks', threshold) AS attackers LEFT JOIN _rows_at_risk USING (attacker)
    ORDER BY list_position(['prosecutor', 'journalist', 'marketer'], attacker) ASC NULLS LAST
), _totals AS (                                         -- the table is its own population: the risks of both are equal
    SELECT max(risk) AS maximum_risk, sum(risk * people) / sum(people) AS average_risk,
           coalesce(sum(row_count) FILTER (risk > threshold), 0)::BIGINT AS rows_at_risk,
           coalesce(sum(people) FILTER (risk > threshold), 0)::BIGINT AS people_at_risk,
           people_at_risk / sum(people) AS fraction_at_risk
    FROM (SELECT 1 / greatest(class_size, 1) AS risk, people, row_count FROM _sizes)
    HAVING CASE WHEN sum(people) > 0 THEN true
                ELSE error(anon._without_people('anon.reidentification_risk', sum(row_count), 0, person, '')) END
), _in_table AS (                                       -- the marketer has the average
    SELECT attacker, CASE WHEN attacker <> 'marketer' THEN maximum_risk END AS maximum_risk, average_risk,
           CASE WHEN attacker <> 'marketer' THEN rows_at_risk END AS rows_at_risk,
           CASE WHEN attacker <> 'marketer' THEN fraction_at_risk END AS fraction_at_risk,
           CASE WHEN attacker <> 'marketer' THEN people_at_risk END AS people_at_risk
    FROM (SELECT *, unnest(['prosecutor', 'journalist', 'marketer']) AS attacker FROM _totals)
)
FROM query_table(CASE WHEN population IS NULL THEN '_in_table'                         -- only one of them is bound
                      WHEN typeof(population) = 'VARCHAR' THEN '_in_population' ELSE '_in_number' END);
COMMENT ON MACRO TABLE anon.reidentification_risk IS
    'Prosecutor, journalist and marketer risk: the largest, the average, and the rows above a threshold.';

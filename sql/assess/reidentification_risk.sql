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
-- test: tests/assess/reidentification_risk.test
CREATE OR REPLACE MACRO anon.reidentification_risk(
    tbl, cols, population := NULL, threshold := 0.2, nulls := 'value', person := NULL
) AS TABLE
WITH _duckanon_counted AS NOT MATERIALIZED (
    FROM anon._risks_among('anon.reidentification_risk', tbl, cols,
                           CASE WHEN typeof(population) = 'VARCHAR' THEN CAST(population AS VARCHAR) ELSE tbl END,
                           nulls, person)
    WHERE typeof(population) = 'VARCHAR'
), _sizes AS MATERIALIZED (
    FROM anon._risk_sizes('anon.reidentification_risk',
                          anon._checked_fraction('anon.reidentification_risk', 'threshold', threshold, tbl), cols,
                          nulls, person)
), _universe AS (
    SELECT everybody / anon._checked_people('anon.reidentification_risk',
                           CASE WHEN typeof(population) <> 'VARCHAR' THEN population END, all_rows, everybody, person)
               AS sampled
    FROM (SELECT coalesce(sum(people), 0)::BIGINT AS everybody, coalesce(sum(row_count), 0)::BIGINT AS all_rows
          FROM _sizes)
), _risks AS (
    SELECT unnest(['prosecutor', 'journalist']) AS attacker, people AS size_rows, row_count, false AS is_nobody,
           unnest([1 / greatest(class_size, 1), anon._expected_risk(greatest(class_size, 1), sampled)]) AS risk
    FROM _universe LEFT JOIN _sizes ON true
    WHERE typeof(population) <> 'VARCHAR'
    UNION ALL
    SELECT 'prosecutor', people, row_count, false, 1 / greatest(class_size, 1)
    FROM _universe LEFT JOIN _sizes ON true
    WHERE typeof(population) = 'VARCHAR' AND sampled IS NOT NULL
    UNION ALL
    SELECT 'journalist', people, row_count, false, risk FROM _duckanon_counted
), _rows_at_risk AS (
    SELECT attacker, coalesce(sum(row_count) FILTER (risk > threshold), 0)::BIGINT AS class_rows
    FROM _risks GROUP BY attacker
)
SELECT attacker, maximum_risk, average_risk, class_rows AS rows_at_risk, fraction_at_risk,
       attackers.rows_at_risk AS people_at_risk
FROM anon._attackers('_risks', threshold) AS attackers LEFT JOIN _rows_at_risk USING (attacker)
ORDER BY list_position(['prosecutor', 'journalist', 'marketer'], attacker) ASC NULLS LAST;
COMMENT ON MACRO TABLE anon.reidentification_risk IS
    'Prosecutor, journalist and marketer risk: the largest, the average, and the rows above a threshold.';

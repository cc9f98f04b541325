-- anon.reidentification_risk: how likely an attacker who knows the columns of a person finds the right row, for the
-- three attackers of El Emam's guide:
--     prosecutor  knows that the person is in the table: 1 / class size
--     journalist  does not know it: expected 1 / number of people in the population who share the values, estimated
--                 from the class size when the table is a random sample of the population (Benedetti and Franconi 1998)
--     marketer    wants as many as possible: only the average counts
--     maximum_risk, average_risk (over the rows), rows_at_risk and fraction_at_risk (risk above `threshold`)
--     population  number of people that the table is a sample of; NULL: the table is its own universe, and the
--                 journalist is as well off as the prosecutor, who is the upper bound in any case
--     nulls       'value': NULL is a value; 'drop': rows with a NULL in cols are left out
-- The classes at risk: anon.small_classes, with the k that 1 / k does not exceed the threshold.
-- test: tests/assess/reidentification_risk.test
CREATE OR REPLACE MACRO anon.reidentification_risk(
    tbl, cols, population := NULL, threshold := 0.2, nulls := 'value'
) AS TABLE
WITH _sizes AS MATERIALIZED (                          -- all that matters: how many classes have which size
    SELECT _duckanon_size AS size, count(*) AS classes
    FROM anon._classes('anon.reidentification_risk',
                       anon._checked_fraction('anon.reidentification_risk', 'threshold', threshold, tbl), cols, nulls)
    GROUP BY size
), _universe AS (
    SELECT row_count / anon._checked_population('anon.reidentification_risk', population, row_count) AS sampled
    FROM (SELECT coalesce(sum(size * classes), 0)::BIGINT AS row_count FROM _sizes)
), _risks AS (
    SELECT unnest(['prosecutor', 'journalist']) AS attacker, size * classes AS size_rows, false AS is_nobody,
           unnest([1 / size, anon._expected_risk(size, sampled)]) AS risk
    FROM _universe LEFT JOIN _sizes ON true
)
SELECT * EXCLUDE (rows_without_candidate)
FROM anon._attackers('_risks', threshold)
ORDER BY list_position(['prosecutor', 'journalist', 'marketer'], attacker) ASC NULLS LAST;
COMMENT ON MACRO TABLE anon.reidentification_risk IS
    'Prosecutor, journalist and marketer risk: the largest, the average, and the rows above a threshold.';

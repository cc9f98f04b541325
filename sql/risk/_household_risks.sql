-- anon._household_risks: the probability that at least one person of a household is found, 1 - product of 1 - risk. A
-- person with several rows counts once, with the largest risk; a row whose person is NULL counts as nobody.
--     records, risks  names of steps with the rows of anon._risk_records and anon._risk_classes
CREATE OR REPLACE MACRO anon._household_risks(records, risks, person) AS TABLE
WITH _duckanon_of_rows AS NOT MATERIALIZED (
    SELECT home, pow(1 - risk, row_count) AS kept
    FROM query_table(records) JOIN query_table(risks) USING (class)
), _duckanon_of_people AS NOT MATERIALIZED (
    SELECT home, 1 - max(risk) AS kept
    FROM query_table(records) JOIN query_table(risks) USING (class)
    WHERE member IS NOT NULL
    GROUP BY home, member
)
SELECT home, 1 - product(kept) AS household_risk
FROM query_table(CASE WHEN person IS NULL THEN '_duckanon_of_rows' ELSE '_duckanon_of_people' END)
WHERE home IS NOT NULL
GROUP BY home;

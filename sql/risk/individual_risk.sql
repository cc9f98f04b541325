-- anon.individual_risk: every row, with the probability that an attacker who knows its columns, and that the person is
-- in the population, finds the right person: the expected 1/F, F the people of the population who share its values.
--     sample_frequency      rows of the table, or people, who share them
--     population_frequency  number of people of the population that these stand for: the sum of their weights
--     risk                  of the row; of a person with several rows, see anon.global_risk
--     household_risk        that at least one person of the row's household is found; NULL without `household`. A row
--                           whose household is NULL is a household of its own
--     weight                column with the number of people of the population that a row stands for; NULL: no weights
--                           [a name, or NULL]
--     population            number of people that the table is a simple random sample of, if there are no weights.
--                           Without either the table is its own population and the risk is 1/f [a number, or NULL]
--     household             column that says which people belong together; NULL: none [a name, or NULL]
--     person                column that identifies the person of a row: frequencies then count different people, of
--                           whom each has one weight (the largest of the rows'). A row whose person is NULL counts as
--                           nobody. NULL: every row is a person [a name, or NULL]
--     method                'exact': the expectation itself; 'approximate': p / (f - 1 + p) for f > 2 rows and p = f /
--                           weights, sdcMicro's default [one of 'exact', 'approximate']
--     nulls                 'value': NULL is a value; 'drop': rows with a NULL in cols are left out; 'any': NULL
--                           matches anything [one of 'value', 'drop', 'any']
--     alpha                 with 'any', weight of a match with a row that has a NULL; a match with a row that has none
--                           counts 1 [a number from 0 to 1]
-- A table that has a column called like one of these results is refused: the result would have two columns of the same
-- name.
-- (Benedetti and Franconi 1998; Franconi and Polettini 2004)
-- promises: RowPer('row'), Between(0, 1, 'risk', 'household_risk'), InvariantUnder(*TABLE, 'types')
-- test: tests/risk/individual_risk.test
CREATE OR REPLACE MACRO anon.individual_risk(
    tbl, cols, weight := NULL, population := NULL, household := NULL, person := NULL, method := 'exact',
    nulls := 'value', alpha := 1
) AS TABLE
WITH _duckanon_names AS (
    FROM anon._names_apart('anon.individual_risk', tbl, ['sample_frequency', 'population_frequency', 'risk',
                                                         'household_risk'])
), _duckanon_records AS NOT MATERIALIZED (
    FROM anon._risk_records('anon.individual_risk', tbl, cols, weight, population, household, person, method, nulls,
                            alpha)
), _duckanon_rows AS NOT MATERIALIZED (                         -- the records are read once where NULL matches anything
    SELECT 1 AS row_count, NULL::UBIGINT AS member FROM query_table(tbl)
), _duckanon_risks AS NOT MATERIALIZED (                        -- read once without households: nothing is to be kept
    FROM anon._risk_classes('anon.individual_risk',
                            '_duckanon_records',
                            CASE WHEN nulls = 'any' THEN '_duckanon_rows' ELSE '_duckanon_records' END,
                            population, person, method, nulls, alpha, are_classes := household IS NULL)
    WHERE (SELECT are_apart FROM _duckanon_names)
), _duckanon_kept_risks AS MATERIALIZED (
    FROM _duckanon_risks
), _duckanon_no_homes AS NOT MATERIALIZED (
    SELECT NULL::UBIGINT AS home, NULL::DOUBLE AS kept WHERE false
), _duckanon_homes_of_rows AS NOT MATERIALIZED (
    SELECT home, pow(1 - risk, row_count) AS kept FROM _duckanon_records JOIN _duckanon_kept_risks USING (class)
), _duckanon_homes_of_people AS NOT MATERIALIZED (              -- a person counts once, with the largest risk
    SELECT home, 1 - max(risk) AS kept FROM _duckanon_records JOIN _duckanon_kept_risks USING (class)
    WHERE member IS NOT NULL GROUP BY home, member
), _duckanon_households AS (
    SELECT home, 1 - product(kept) AS household_risk
    FROM query_table(CASE WHEN household IS NULL THEN '_duckanon_no_homes'
                          WHEN person IS NULL THEN '_duckanon_homes_of_rows' ELSE '_duckanon_homes_of_people' END)
    WHERE home IS NOT NULL GROUP BY home
), _duckanon_keyed AS NOT MATERIALIZED (
    SELECT * EXCLUDE (_duckanon_none), hash(UNPACK(anon._value_code(COLUMNS(cols)))) AS _duckanon_class,
           anon._value_code(COLUMNS([anon._or_none(household)])) AS _duckanon_household
    FROM (SELECT *, NULL::UBIGINT AS _duckanon_none
          FROM query_table(anon._checked_risk('anon.individual_risk', tbl, cols, weight, population, household, person,
                                              method, nulls, alpha)))
    WHERE nulls <> 'drop' OR COLUMNS(cols) IS NOT NULL
)
SELECT _duckanon_keyed.* EXCLUDE (_duckanon_class, _duckanon_household), _duckanon_risks.sample_frequency,
       _duckanon_risks.population_frequency, _duckanon_risks.risk,
       CASE WHEN household IS NOT NULL
                 THEN coalesce(_duckanon_households.household_risk, _duckanon_risks.risk) END AS household_risk
FROM _duckanon_keyed
     JOIN query_table(CASE WHEN household IS NULL THEN '_duckanon_risks' ELSE '_duckanon_kept_risks' END)
          AS _duckanon_risks ON _duckanon_keyed._duckanon_class = _duckanon_risks.class
     LEFT JOIN _duckanon_households ON _duckanon_keyed._duckanon_household = _duckanon_households.home;
COMMENT ON MACRO TABLE anon.individual_risk IS
    'Every row with its risk of re-identification, by weights, a population or the table itself, and its '
    'household''s.';

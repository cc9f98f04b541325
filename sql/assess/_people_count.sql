-- anon._people_count: how many different people are in the rows that a check looks at.
--     observed  name of a step with the number of these rows, row_count: without `person` every row is a person
CREATE OR REPLACE MACRO anon._people_count(tbl, cols, nulls, person, observed) AS TABLE
WITH _duckanon_every_row AS (
    SELECT row_count AS people FROM query_table(observed)
), _duckanon_everybody AS (
    SELECT count(DISTINCT CASE WHEN COLUMNS([person]) IS NOT NULL THEN hash(COLUMNS([person])) END) AS people
    FROM query_table(tbl) WHERE nulls = 'value' OR COLUMNS(cols) IS NOT NULL
)
FROM query_table(CASE WHEN person IS NULL THEN '_duckanon_every_row' ELSE '_duckanon_everybody' END);

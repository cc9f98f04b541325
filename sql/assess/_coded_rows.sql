-- anon._coded_rows: every row of a table as its number and the list of its values' 64-bit hashes, NULL for NULL. After
-- the columns follows the person's hash, which is NULL without `person`.
CREATE OR REPLACE MACRO anon._coded_rows(caller, tbl, person) AS TABLE
WITH _duckanon_of_rows AS (
    SELECT *, NULL::UBIGINT AS _duckanon_person FROM query_table(anon._checked(caller, tbl, ['*']))
), _duckanon_of_people AS (
    SELECT *, COLUMNS([person]) AS _duckanon_person
    FROM query_table(anon._checked_person(caller, person, ['*'], anon._checked(caller, tbl, ['*'])))
), _duckanon_codes AS (
    SELECT CASE WHEN COLUMNS(*) IS NOT NULL THEN hash(COLUMNS(*)) END
    FROM query_table(CASE WHEN person IS NULL THEN '_duckanon_of_rows' ELSE '_duckanon_of_people' END)
)
SELECT row_number() OVER () AS id, [UNPACK(COLUMNS(*))] AS row_codes FROM _duckanon_codes;

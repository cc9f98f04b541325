-- anon._checked_person: passes `result` on where `person` is NULL or the name of one column that is not among the
-- others; refuses it otherwise. `result` is written once, since checks are nested in each other: written twice, each
-- of them would double the time in which DuckDB binds those within.
CREATE OR REPLACE MACRO anon._checked_person(caller, person, cols, result) AS
    CASE WHEN person IS NOT NULL AND typeof(person) <> 'VARCHAR'
              THEN error(anon._must_be(caller, 'person', 'NULL or the name of one column, in quotes', person))
         WHEN person IS NOT NULL AND anon._is_among(CAST(person AS VARCHAR), cols)
              THEN error(caller || ': person must not be one of cols; got ' || CAST(person AS VARCHAR) || '.')
         ELSE result END;

-- anon._checked_person: passes `result` on where `person` is NULL or the name of one column that is not among the
-- others; refuses it otherwise.
CREATE OR REPLACE MACRO anon._checked_person(caller, person, cols, result) AS
    CASE WHEN person IS NULL THEN result
         WHEN typeof(person) <> 'VARCHAR'
              THEN error(anon._must_be(caller, 'person', 'NULL or the name of one column, in quotes', person))
         WHEN anon._is_among(CAST(person AS VARCHAR), cols)
              THEN error(caller || ': person must not be one of cols; got ' || CAST(person AS VARCHAR) || '.')
         ELSE result END;

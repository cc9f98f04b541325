-- anon._checked_person: passes `result` on where `person` is NULL or the name of a column that is none of `cols`,
-- refuses it otherwise: a column that tells people apart is not to be released among the others.
CREATE OR REPLACE MACRO anon._checked_person(caller, person, cols, result) AS
    CASE WHEN person IS NULL THEN result
         WHEN typeof(person) <> 'VARCHAR'
              THEN error(anon._must_be(caller, 'person', 'NULL or the name of one column, in quotes', person))
         WHEN anon._is_among(CAST(person AS VARCHAR), cols)
              THEN error(anon._must_be(caller, 'person', 'a column that is none of cols', person))
         ELSE result END;

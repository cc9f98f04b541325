-- anon._checked_name: passes `result` on where the value of a parameter is text, the name of a table or a column; refuses
-- it otherwise.
CREATE OR REPLACE MACRO anon._checked_name(caller, parameter, what, value, result) AS
    CASE WHEN value IS NOT NULL AND typeof(value) = 'VARCHAR' THEN result
         ELSE error(caller || ': ' || parameter || ' must be the name of ' || what || ', in quotes; got '
                           || coalesce(CAST(value AS VARCHAR), 'NULL') || '.') END;

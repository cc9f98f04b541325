-- anon._checked_name: passes `result` on where the value of a parameter is a name, refuses it otherwise.
--     what  what it names: 'one column'
CREATE OR REPLACE MACRO anon._checked_name(caller, parameter, what, value, result) AS
    CASE WHEN value IS NOT NULL AND typeof(value) = 'VARCHAR' THEN result
         ELSE error(anon._must_be(caller, parameter, 'the name of ' || what || ', in quotes', value)) END;

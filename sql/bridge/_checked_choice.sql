-- anon._checked_choice: passes `result` on where the value of a parameter is one of the choices, refuses it otherwise.
CREATE OR REPLACE MACRO anon._checked_choice(caller, parameter, value, choices, result) AS
    CASE WHEN list_contains(choices, CAST(value AS VARCHAR)) THEN result
         ELSE error(anon._must_be(caller, parameter, 'one of ' || CAST(choices AS VARCHAR), value)) END;

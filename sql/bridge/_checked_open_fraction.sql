-- anon._checked_open_fraction: passes `result` on where the value of a parameter is a number between 0 and 1 and
-- neither of them, refuses it otherwise.
CREATE OR REPLACE MACRO anon._checked_open_fraction(caller, parameter, value, result) AS
    CASE WHEN TRY_CAST(value AS DOUBLE) > 0 AND TRY_CAST(value AS DOUBLE) < 1 THEN result
         ELSE error(anon._must_be(caller, parameter, 'between 0 and 1, both excluded', value)) END;

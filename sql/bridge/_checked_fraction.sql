-- anon._checked_fraction: passes `result` on where the value of a parameter is a number from 0 to 1, refuses it
-- otherwise.
CREATE OR REPLACE MACRO anon._checked_fraction(caller, parameter, value, result) AS
    CASE WHEN TRY_CAST(value AS DOUBLE) BETWEEN 0 AND 1 THEN result
         ELSE error(anon._must_be(caller, parameter, 'a number from 0 to 1', value)) END;

-- anon._checked_ratio: passes `result` on where the value of a parameter is a number above 0, refuses it otherwise.
CREATE OR REPLACE MACRO anon._checked_ratio(caller, parameter, value, result) AS
    CASE WHEN TRY_CAST(value AS DOUBLE) > 0 AND isfinite(TRY_CAST(value AS DOUBLE)) THEN result
         ELSE error(anon._must_be(caller, parameter, 'a number above 0', value)) END;

-- anon._checked_whole: passes `result` on where the value of a parameter is a whole number of at least `least`, refuses
-- it otherwise.
CREATE OR REPLACE MACRO anon._checked_whole(caller, parameter, value, least, result) AS
    CASE WHEN regexp_full_match(CAST(value AS VARCHAR), '\d+') AND TRY_CAST(CAST(value AS VARCHAR) AS HUGEINT) >= least
              THEN result
         ELSE error(anon._must_be(caller, parameter, 'a whole number of at least ' || CAST(least AS VARCHAR),
                                  value)) END;

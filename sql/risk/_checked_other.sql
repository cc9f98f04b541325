-- anon._checked_other: passes `result` on where a parameter is NULL or the name of one column that is not among the
-- others; refuses it otherwise.
CREATE OR REPLACE MACRO anon._checked_other(caller, parameter, named, cols, result) AS
    CASE WHEN named IS NOT NULL AND typeof(named) <> 'VARCHAR'
              THEN error(anon._must_be(caller, parameter, 'NULL or the name of one column, in quotes', named))
         WHEN named IS NOT NULL AND anon._is_among(CAST(named AS VARCHAR), cols)
              THEN error(caller || ': ' || parameter || ' must not be one of cols; got ' || CAST(named AS VARCHAR)
                         || '.')
         ELSE result END;

-- anon._checked_names: passes `result` on where no column is called as our own steps are, refuses it otherwise: the two
-- would be taken for each other.
--     names  a list of columns, or NULL
CREATE OR REPLACE MACRO anon._checked_names(caller, parameter, names, result) AS
    CASE WHEN len(list_filter(TRY_CAST(names AS VARCHAR[]), lambda named: anon._is_own_name(named))) > 0
              THEN error(concat(caller, ': ', parameter, ' must not name a column that begins with _duckanon_; got ',
                                list_filter(TRY_CAST(names AS VARCHAR[]), lambda named: anon._is_own_name(named))[1],
                                ': rename it first.'))
         ELSE result END;

-- anon._checked_table: passes `result` on where the value of a parameter is the name of a table, refuses it otherwise.
-- A table that is called as our own steps are would be taken for the step, which hides it; the steps themselves are
-- handed over in quotes: '"_duckanon_boxes"'. Where a collation is set, 'F' and 'f' are the same to GROUP BY and to =,
-- and yet a release tells them apart: a class of k people would be none.
CREATE OR REPLACE MACRO anon._checked_table(caller, parameter, value, result) AS
    anon._checked_name(caller, parameter, 'a table, a view or a CTE', value,
        CASE WHEN trim(CAST(value AS VARCHAR)) = ''
                  THEN error(anon._must_be(caller, parameter, 'the name of a table, a view or a CTE, in quotes',
                                           'an empty text'))
             WHEN anon._is_own_name(CAST(value AS VARCHAR))
                  THEN error(anon._must_be(caller, parameter, 'a table whose name does not begin with _duckanon_',
                                           CAST(value AS VARCHAR) || ', which is called as our own steps are'))
             WHEN lower(coalesce(current_setting('default_collation'), '')) NOT IN ('', 'binary', 'c', 'posix')
                  THEN error(caller || ': default_collation must be empty, since people whose values differ would be '
                             || 'counted as alike; got ' || current_setting('default_collation')
                             || ': RESET default_collation.')
             ELSE result END);

-- anon._checked_apart: passes `result` on where none of the columns is called like one that a check adds to them;
-- refuses them otherwise, since nobody could tell the two apart.
--     added  the names that the check gives to columns of its own
CREATE OR REPLACE MACRO anon._checked_apart(caller, cols, added, result) AS
    CASE WHEN list_has_any(list_transform(TRY_CAST(cols AS VARCHAR[]), lambda named: lower(named)), added)
              THEN error(caller || ': cols must not name a column that is called like one of the check''s own; got '
                         || list_filter(TRY_CAST(cols AS VARCHAR[]),
                                        lambda named: list_contains(added, lower(named)))[1]
                         || ', which must be renamed first.')
         ELSE result END;

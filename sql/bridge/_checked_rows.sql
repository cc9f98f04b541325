-- anon._checked_rows: passes `result` on where a table has rows, refuses it otherwise: figures about nobody would be
-- divisions by zero.
CREATE OR REPLACE MACRO anon._checked_rows(caller, row_count, result) AS
    CASE WHEN coalesce(row_count, 0) = 0 THEN error(caller || ': the table has no rows to look at.') ELSE result END;

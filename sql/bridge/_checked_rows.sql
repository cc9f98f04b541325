-- anon._checked_rows: passes `result` on where a table has rows, refuses it otherwise: figures about nobody would be
-- divisions by zero.
CREATE OR REPLACE MACRO anon._checked_rows(caller, row_count, result) AS
    CASE WHEN row_count > 0 THEN result ELSE error(caller || ': the table has no rows to look at.') END;

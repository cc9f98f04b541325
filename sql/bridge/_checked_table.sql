-- anon._checked_table: passes `result` on where the value of a parameter is the name of a table, refuses it otherwise.
CREATE OR REPLACE MACRO anon._checked_table(caller, parameter, value, result) AS
    anon._checked_name(caller, parameter, 'a table, a view or a CTE', value, result);

-- anon._column_list: one column of a table as a list, in any order, for a Python function that looks at one column.
CREATE OR REPLACE MACRO anon._column_list(caller, tbl, col) AS
    (SELECT list(anon._told_apart(caller, col, COLUMNS([col])))
     FROM query_table(anon._checked(caller, tbl, [col])));

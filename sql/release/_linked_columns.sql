-- anon._linked_columns: the columns of one of several linked tables, one row each, with the name of the table.
CREATE OR REPLACE MACRO anon._linked_columns(tbl) AS TABLE
SELECT tbl AS table_name, column_name FROM anon._columns(tbl);

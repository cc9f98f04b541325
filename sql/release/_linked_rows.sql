-- anon._linked_rows: the columns of one of several linked tables that travel to Python, with the name of the table.
CREATE OR REPLACE MACRO anon._linked_rows(tbl, columns) AS TABLE
SELECT tbl AS table_name, COLUMNS(lambda name: anon._is_among(name, columns)) FROM query_table(tbl);

-- anon._released_types: the column `released` of a plan, without rows: a struct with the names of the planned columns,
-- whose type tells anon.apply_plan what it returns before it reads a row.
CREATE OR REPLACE MACRO anon._released_types(tbl, cols) AS TABLE
SELECT struct_pack(*COLUMNS(*)) AS released FROM (SELECT CAST(COLUMNS(cols) AS VARCHAR) FROM query_table(tbl)) LIMIT 0;

-- anon._hierarchy: one hierarchy table, whatever its columns are called: one row per leaf, the labels of its levels as
-- a list, the leaf itself first.
CREATE OR REPLACE MACRO anon._hierarchy(column_name, hierarchy) AS TABLE
SELECT column_name AS column_name, [UNPACK(CAST(COLUMNS(*) AS VARCHAR))] AS labels FROM query_table(hierarchy);
